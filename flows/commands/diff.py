"""`passnet diff`: what changed between two snapshots."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from flows.commands.options import Json, Warehouse

#: Groups of a kind that the table shows; --json has all.
SHOWN = 12


def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="Snapshot id, unique beginning of one, or number.")],
    after: Annotated[str | None, typer.Argument(metavar="[B]", help="Another; the newest if left out.")] = None,
    warehouse: Warehouse = "lake",
    as_json: Json = False,
) -> None:
    """Say what changed from snapshot A to snapshot B: models, captures, failures, graphs."""
    from warehouse.changes import between

    found = between(warehouse, before, after)
    if as_json:
        json.dump(found, sys.stdout, indent=1)
        print()
        return
    _print(found)


def _print(found: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(f"snapshot {found['before']['number']} to {found['after']['number']}", style="bold")
    if found["before"]["id"] == found["after"]["id"]:
        console.print("one and the same")
        return
    for kind in ("graphs", "models", "captures", "failures"):
        rows = found[kind]
        if not rows:
            console.print(f"{kind}: nothing came or went")
            continue
        table = Table(header_style="bold", box=None, padding=(0, 1, 0, 0))
        for column in rows[0]:
            table.add_column(column, justify="right" if isinstance(rows[0][column], int) else "left")
        for row in rows[:SHOWN]:
            table.add_row(*(str(value) for value in row.values()))
        console.print(table)
        if len(rows) > SHOWN:
            console.print(f"... and {len(rows) - SHOWN} more rows of {kind}: --json has them all")
