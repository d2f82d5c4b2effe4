"""`passnet import`: graphs that others published, into a warehouse."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from flows.commands.options import Json, Warehouse
from flows.commands.refresh import MAX_DEADLINE, MAX_WORKERS

app = typer.Typer(help="Import published graphs into a warehouse.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Import published graphs into a warehouse."""


@app.command("graphnet")
def graphnet(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with GraphNet samples or PassBench tasks.")],
    warehouse: Warehouse = "lake",
    workers: Annotated[
        int, typer.Option("--workers", min=0, max=MAX_WORKERS, help="Import processes; 0: one for each core.")
    ] = 0,
    deadline: Annotated[
        float, typer.Option("--deadline", min=1.0, max=MAX_DEADLINE, help="Seconds that one sample may take.")
    ] = 120.0,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="Address of an existing Dask scheduler (tcp://host:port).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Read sample folders as data, never running them, and publish their graphs as a new snapshot.

    Only what is new is done. Kill it at any moment: the same command goes on.
    """
    from flows.importing import JOB, PRELOAD, RECYCLE_AFTER, import_graphnet
    from flows.progress import Display
    from flows.refresh import Request

    request = Request(
        warehouse=warehouse,
        workers=workers,
        deadline=deadline,
        scheduler=scheduler,
        job=JOB,
        preload=PRELOAD,
        recycle_after=RECYCLE_AFTER,
    )
    with Display() as display:
        found = import_graphnet(folder, request, display.started)
    if as_json:
        json.dump(found.summary(), sys.stdout)
        print()
        return
    print(f"{found.imported} of {found.samples} samples imported ({found.skipped} were there already)")
    for kind, count in found.failed.items():
        print(f"  {kind}: {count}")
    print(
        f"they hold {found.graphs} distinct graphs, {found.structures} structures, {found.templates} templates; "
        f"snapshot {found.snapshot.sequence} ({found.snapshot.id[:12]}), {found.seconds:.1f} s"
    )
