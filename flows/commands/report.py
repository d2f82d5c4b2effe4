"""`passnet report`: a leaderboard as static pages."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from flows.commands.options import Json, SnapshotName, Warehouse
from flows.errors import UserError


def report(
    warehouse: Warehouse = "lake",
    snapshot: SnapshotName = None,
    out: Annotated[Path, typer.Option("--out", help="Folder of the pages; made, or replaced.")] = Path("report"),
    as_json: Json = False,
) -> None:
    """Make the leaderboard of a warehouse: pages that work without a network, in a folder."""
    from curate.leaderboard.page import NotOurs, summary, write
    from warehouse.snapshot import Warehouse as Opened
    from warehouse.sql import connect, damage_named

    opened = Opened.open(warehouse)
    chosen = opened.snapshot(snapshot)
    try:
        with damage_named(warehouse, snapshot):
            made = write(connect(warehouse, chosen.id), chosen, out)
    except NotOurs as error:
        raise UserError(str(error)) from None
    if made is None:
        raise UserError(f"nothing was scored in {opened.storage.url} yet: run `passnet score SUBMISSION` first")
    if as_json:
        held = {"index": str(made.index), "snapshot": chosen.id, "boards": [summary(b) for b in made.boards]}
        json.dump({**held, "files": len(made.files)}, sys.stdout)
        print()
        return
    for board in made.boards:
        best = board.entries[0].row
        figure = "no AS" if best["aggregate"] is None else f"AS {best['aggregate']:.4f}"
        by = "correctness only" if board.clock == "none" else f"{board.clock} clock"
        name = "".join(c if c.isprintable() else "?" for c in str(best["submission_name"]))
        print(f"{board.bench}, {board.device}, {by}: {len(board.entries)} submissions, first {name} ({figure})")
    print(f"{len(made.files)} files; open {made.index}")
