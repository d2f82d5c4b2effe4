"""`passnet regenerate`: a snapshot becomes a PassBench, a folder that `passnet score` judges by.

choose (SQL, a file a step) -> write the folder -> perhaps publish `tasks` and `task_members`. Same snapshot, options
and versions: same bytes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.passbench import figures
from curate.passbench.card import FILTERS
from curate.passbench.choose import Choice, choose, devices, records, wanted
from curate.passbench.folder import Written, write
from curate.passbench.rules import MODE, Rules
from flows.errors import UserError
from flows.refresh import alone
from warehouse.graph.record import RecordError
from warehouse.snapshot import Snapshot, Warehouse
from warehouse.sql import connect, damage_named


@dataclass(frozen=True, slots=True)
class Request:
    """What a regeneration is told. device None: the GPU with the most figures, else the CPU."""

    warehouse: str = "lake"
    snapshot: str | None = None
    out: Path = Path("bench")
    tasks: int = 200
    subgraphs: int = 2060
    select: str = "mix"
    seed: int = 0
    device: str | None = None
    publish: bool = False
    samples: bool = False


@dataclass(frozen=True, slots=True)
class Regenerated:
    """What was made. snapshot: the one chosen from. published: the one that holds it, when asked for."""

    snapshot: Snapshot
    published: Snapshot | None
    device: str
    choice: Choice = field(repr=False)
    written: Written = field(repr=False)
    seconds: float = 0.0

    def summary(self) -> dict[str, Any]:
        """The object that `regenerate --json` prints."""
        return {
            "bench": self.written.version,
            "snapshot": self.snapshot.id,
            "device": self.device,
            "seed": self.choice.rules.seed,
            **self.written.figures,
            "filters": self.choice.funnel,
            "samples": self.written.samples,
            "published": self.published.id if self.published else None,
            "seconds": round(self.seconds, 2),
        }


def regenerate(request: Request) -> Regenerated:
    """Do what `request` says. Raises UserError or WarehouseError for what a user can mend; then nothing is written."""
    clock = time.perf_counter()
    connection, snapshot, rules = _opened(request)
    with damage_named(request.warehouse, snapshot.id):
        choice = choose(connection, rules)
        _complain(choice)
        try:
            held = records(connection)
        except RecordError as error:
            raise UserError(f"a stored subgraph cannot be read: {error}; restore the snapshot's files") from error
    written = write(request.out, choice, held, snapshot.id, request.samples)
    published = _published(Warehouse.open(request.warehouse), written) if request.publish else None
    return Regenerated(snapshot, published, rules.device, choice, written, time.perf_counter() - clock)


def write_items(request: Request, path: Path) -> dict[str, Any]:
    """Write the possible members without figures as work for `python -m curate.profile.run`; no bench is made.

    Returns {"items", "device"}. Raises UserError or WarehouseError.
    """
    connection, snapshot, rules = _opened(request)
    with damage_named(request.warehouse, snapshot.id):
        choose(connection, rules)
        rows = wanted(connection)
    if not rows.num_rows:
        raise UserError(f"no possible member of a task lacks figures of {rules.device!r}: there is nothing to write")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path, compression="zstd")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}; give --items another file") from error
    return {"items": len(pc.unique(rows["graph_hash"])), "device": rules.device}


def _opened(request: Request) -> tuple[duckdb.DuckDBPyConnection, Snapshot, Rules]:
    """A connection to the snapshot, which has subgraphs, and rules for a device that it has figures of."""
    warehouse = Warehouse.open(request.warehouse)
    snapshot = warehouse.snapshot(request.snapshot)
    if "subgraphs" not in snapshot.tables or not snapshot.rows("subgraphs"):
        raise UserError(
            f"snapshot {snapshot.sequence} of {warehouse.storage.url} holds no subgraphs: run `passnet decompose` "
            "and `passnet profile` first, or name a snapshot that has them with --snapshot"
        )
    with damage_named(request.warehouse, snapshot.id):
        connection = connect(request.warehouse, snapshot.id)
        device = _device(request, devices(connection, MODE), snapshot)
    return connection, snapshot, Rules(device, request.seed, request.tasks, request.subgraphs, request.select)


def _device(request: Request, known: dict[str, int], snapshot: Snapshot) -> str:
    if not known:
        raise UserError(
            f"snapshot {snapshot.sequence} of {request.warehouse} holds no figures of Inductor: run "
            "`passnet profile --device cuda` first"
        )
    if request.device is None:
        return next(iter(known))
    if request.device not in known:
        there = ", ".join(f"{name!r} ({count} subgraphs)" for name, count in known.items())
        raise UserError(
            f"snapshot {snapshot.sequence} has no figures of {request.device!r}: it was profiled on {there}; name one "
            "of these with --device, or run `passnet profile` there"
        )
    return request.device


def _complain(choice: Choice) -> None:
    there, filter, taken = figures.lacking(choice)
    structures = sum(row["structures"] for row in choice.funnel)
    if there < choice.rules.tasks:
        mend = f"ask for --tasks {there}, or profile more subgraphs" if there else "profile more subgraphs"
        raise UserError(
            f"there are candidates for {there} tasks, not {choice.rules.tasks}; of {structures} structures the filter "
            f"{filter} took the most, {taken} ({FILTERS[filter]}): {mend}"
        )


def _published(warehouse: Warehouse, written: Written) -> Snapshot:
    """The newest snapshot with the bench in it; nothing new when it is there already."""
    with alone(warehouse):
        parent = warehouse.snapshot()
        if written.version in warehouse.read(parent, "tasks", ["bench"])["bench"].to_pylist():
            return parent
        return warehouse.publish(parent, {"tasks": written.tasks, "task_members": written.members})
