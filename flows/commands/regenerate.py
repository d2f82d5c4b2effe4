"""`passnet regenerate`: a PassBench from a snapshot."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.commands.options import Json, SnapshotName, Warehouse
from flows.errors import UserError

SELECTIONS = ("mix", "device", "headroom", "host")


def regenerate(
    warehouse: Warehouse = "lake",
    snapshot: SnapshotName = None,
    out: Annotated[Path, typer.Option("--out", help="Folder of the bench; made, or replaced.")] = Path("bench"),
    tasks: Annotated[int, typer.Option("--tasks", min=1, help="Tasks of the eval split.")] = 200,
    subgraphs: Annotated[
        int, typer.Option("--subgraphs", min=1, help="Subgraphs of the eval split together, at most.")
    ] = 2060,
    select: Annotated[
        str, typer.Option("--select", help=f"Why a task is worth a pass: {', '.join(SELECTIONS)}.")
    ] = "mix",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another seed, another bench by the same rules.")] = 0,
    device: Annotated[
        str | None,
        typer.Option("--device", help="Whose profiles count, as `profiles.device` has it.", show_default=False),
    ] = None,
    publish: Annotated[
        bool, typer.Option("--publish", help="Put `tasks` and `task_members` into a new snapshot.")
    ] = False,
    samples: Annotated[
        bool, typer.Option("--samples", help="Also write the eval split in PassNet's own folder layout.")
    ] = False,
    items: Annotated[
        Path | None,
        typer.Option("--items", help="Make no bench: write possible members without figures, for profiling."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Choose tasks from a snapshot's profiled subgraphs and write the folder that `passnet score --bench` judges by."""
    if select not in SELECTIONS:
        raise UserError(f"--select {select!r}: give one of {', '.join(SELECTIONS)}")
    if subgraphs < tasks:
        raise UserError(f"--subgraphs {subgraphs} is less than --tasks {tasks}: every task has at least one")
    from flows.regenerate import Request, write_items
    from flows.regenerate import regenerate as run

    request = Request(warehouse, snapshot, out, tasks, subgraphs, select, seed, device, publish, samples)
    if items is not None:
        told = write_items(request, items)
        line = f"{told['items']} subgraphs without figures of {told['device']}, the most wanted first, in {items}"
        print(json.dumps(told) if as_json else line)
        return
    found = run(request)
    if as_json:
        json.dump(found.summary(), sys.stdout)
        print()
        return
    _close(found, out)


def _close(found: Any, out: Path) -> None:
    print(f"{'filter':16}{'structures':>12}{'left':>8}{'subgraphs':>12}")
    for row in found.choice.funnel:
        print(f"{row['filter']:16}{row['structures']:12,}{row['structures_left']:8,}{row['subgraphs']:12,}")
    for split, held in found.written.figures.items():
        strata = ", ".join(f"{name} {count}" for name, count in held["strata"].items())
        dtypes = ", ".join(f"{name} {count}" for name, count in held["dtypes"].items())
        print(
            f"{split}: {held['tasks']} tasks ({strata}), {held['subgraphs']} subgraphs ({dtypes}), {held['held_out']} "
            f"held out, {held['families']} model families"
        )
    if found.written.samples:
        held = found.written.samples
        print(f"samples: {held['tasks']} tasks, {held['subgraphs']} subgraphs; {held['left_out']} cannot be said in it")
    if found.published:
        print(f"published as snapshot {found.published.sequence} ({found.published.id[:12]})")
    print(f"{found.written.version} by figures of {found.device}, {found.seconds:.1f} s; read {out / 'README.md'}")
