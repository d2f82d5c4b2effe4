"""`passnet decompose`: options, progress, and the closing figures."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Annotated, Any

import typer

from flows.commands.options import Json, Warehouse
from flows.commands.refresh import MAX_DEADLINE, MAX_WORKERS

#: Seconds between lines of progress.
EVERY = 10.0


def decompose(
    warehouse: Warehouse = "lake",
    workers: Annotated[
        int, typer.Option("--workers", min=0, max=MAX_WORKERS, help="Cutting processes; 0: one for each core.")
    ] = 0,
    deadline: Annotated[
        float, typer.Option("--deadline", min=1.0, max=MAX_DEADLINE, help="Seconds that one graph may take.")
    ] = 300.0,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="Address of an existing Dask scheduler (tcp://host:port).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Cut the graphs of the newest snapshot into subgraphs, and publish them as a new snapshot.

    Only graphs that were not decomposed yet are cut. Kill it at any moment: the same command goes on.
    """
    from flows.decompose import Request
    from flows.decompose import decompose as run

    found = run(Request(warehouse, workers, deadline, scheduler), _started)
    if as_json:
        json.dump(found.summary(), sys.stdout)
        print()
        return
    print(f"{found.graphs} graphs decomposed, {found.held} were before; {found.seconds:.1f} s")
    for kind, count in found.subgraphs.items():
        print(f"  {kind}: {count} subgraphs, {found.structures[kind]} structures")
    print(f"  at {found.occurrences} places")
    for kind, count in found.failed.items():
        print(f"  failed, {kind}: {count}")
    print(f"snapshot {found.snapshot.sequence} ({found.snapshot.id[:12]})")


def _started(total: int, what: str) -> Any:
    """Says what a round has to do; returns the function that is told of each cut, from any thread."""
    print(f"{total} {what} to cut", file=sys.stderr, flush=True)
    seen: set[str] = set()
    lock, last = threading.Lock(), [time.monotonic()]

    def finished(summary: dict[str, Any]) -> None:
        with lock:
            seen.add(summary["id"])
            if time.monotonic() - last[0] >= EVERY or len(seen) == total:
                last[0] = time.monotonic()
                print(f"{len(seen)} of {total}", file=sys.stderr, flush=True)

    return finished
