"""`passnet export`: stored graphs in the layouts of others."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from flows.commands.options import Json, SnapshotName, Warehouse

app = typer.Typer(help="Write stored graphs in the layouts of others.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Write stored graphs in the layouts of others."""


@app.command("graphnet")
def graphnet(
    graphs: Annotated[list[str], typer.Argument(metavar="HASH...", help="graph_hash, or a unique beginning of one.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write to; made where missing.")],
    task: Annotated[bool, typer.Option("--task", help="One PassBench task of all of them, not a folder each.")] = False,
    warehouse: Warehouse = "lake",
    snapshot: SnapshotName = None,
    as_json: Json = False,
) -> None:
    """Write graphs as GraphNet sample folders, which PassNet's evaluator loads and `passnet import` reads back."""
    from flows.commands.show import full_hash
    from flows.exporting import export_graphnet
    from warehouse.sql import connect

    connection = connect(warehouse, snapshot)
    wanted = list(dict.fromkeys(full_hash(connection, text) for text in graphs))
    found = export_graphnet(connection, wanted, folder, task)
    if as_json:
        json.dump(found.summary(), sys.stdout)
        print()
        return
    for graph_hash, path in found.paths.items():
        print(f"{graph_hash}  {folder / path}")
    for graph_hash, kind in found.failed.items():
        print(f"{graph_hash}  not exported: {kind}")
    if found.task is not None:
        print(f"task {found.task}  {folder}")


@app.command("hf")
def hugging_face(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write: new, empty, or an earlier export.")],
    warehouse: Warehouse = "lake",
    snapshot: SnapshotName = None,
    as_json: Json = False,
) -> None:
    """Write a snapshot as a Hugging Face dataset: a configuration a table, a card, Croissant metadata.

    DIR appears when it is whole, or not at all.
    """
    from warehouse.release.folder import release
    from warehouse.snapshot import Warehouse as Lake
    from warehouse.sql import connect

    lake = Lake.open(warehouse)
    chosen = lake.snapshot(snapshot)
    found = release(lake, chosen, connect(warehouse, chosen.sequence), folder)
    if as_json:
        json.dump(found.summary(), sys.stdout)
        print()
        return
    for name, shards in found.shards.items():
        print(f"{name:<16}{sum(s.rows for s in shards):>14,} rows  {len(shards):>5} files")
    print(f"snapshot {chosen.sequence} ({chosen.id[:12]}), {found.bytes:,} bytes, in {folder}")
