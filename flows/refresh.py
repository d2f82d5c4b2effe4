"""`passnet refresh`: a Prefect flow of coarse tasks over a Dask cluster, from a selection of models to a snapshot.

plan -> batches of captures -> merge -> publish. Whatever is killed, the same command goes on: finished captures are
staged one by one, and publishing is one rename. When nothing is new, neither Prefect nor Dask is started.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from extract.model import ModelRef, Variant
from extract.sources.hub.query import Query
from extract.workers import Limits
from flows.catalog import Catalog
from flows.errors import SchedulerLost, UserError
from flows.plan import Plan, plan
from flows.selection import select
from warehouse.place import expect_writable
from warehouse.snapshot import Snapshot, Warehouse
from warehouse.storage import LocalStorage, Storage, explained, open_storage

#: Captures of a batch: enough that a task's overhead is nothing, few enough that all workers end together.
LARGEST_BATCH = 200
#: What capture workers import before they are forked.
PRELOAD = ("torch", "timm", "torchvision", "transformers")
JOB = "extract.job:run"

Progress = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Request:
    """Everything a refresh is told. `workers` 0 means one for each core; `recycle_after` as in `Limits`;
    `hub` is what a Hub is asked for when it is among the sources."""

    sources: tuple[str, ...] = ()
    models: str | None = None
    limit: int | None = None
    seed: int | None = None
    variants: tuple[str, ...] = ("default",)
    warehouse: str = "lake"
    workers: int = 0
    deadline: float = 120.0
    scheduler: str | None = None
    job: str = JOB
    preload: tuple[str, ...] = PRELOAD
    hub: Query | None = None
    recycle_after: int = Limits().recycle_after


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh did. `failed` counts by class among the captures asked for; `seconds` is wall clock."""

    snapshot: Snapshot
    models: int
    configurations: int
    captured: int
    failed: dict[str, int]
    skipped: int
    graphs: int
    unique_graphs: int
    seconds: float

    def summary(self) -> dict[str, Any]:
        """The object that `refresh --json` ends with."""
        return {
            "models": self.models,
            "configurations": self.configurations,
            "captured": self.captured,
            "failed": self.failed,
            "skipped": self.skipped,
            "graphs": self.graphs,
            "unique_graphs": self.unique_graphs,
            "seconds": round(self.seconds, 2),
            "snapshot": self.snapshot.id,
        }


def refresh(
    request: Request, started: Callable[[Plan], Progress], listing: Callable[[str], None] = lambda source: None
) -> Refreshed:
    """Do what `request` says. `started` is told the plan and gives the function that is told of each capture;
    `listing` is told of each source whose names must be asked for.

    Raises UserError or WarehouseError for what a user can mend, SchedulerLost when the cluster goes away.
    """
    clock = time.perf_counter()
    variants = variants_of(request.variants)
    if request.scheduler is not None and not request.scheduler.strip():
        raise UserError("the scheduler's address is empty: give tcp://host:port, or leave --scheduler out")
    storage = open_storage(request.warehouse)
    if storage.url.startswith("memory:"):
        raise UserError(f"{storage.url} ends with the process that made it: give a folder, or a URL that lasts")
    expect_writable(storage)  # before the sources are asked for their models, which takes a while
    chosen = selected(request, storage, listing)
    warehouse = Warehouse.open(request.warehouse, create=True)  # only now: a refused selection leaves no folder
    with alone(warehouse):
        chosen.catalog.save()
        parent = warehouse.latest()
        work = plan(warehouse, parent, chosen.refs, variants, chosen.hub_models)
        progress = started(work)
        if parent is not None and not work.wanted and not _unlisted_models(warehouse, parent, work):
            snapshot = parent
        else:
            snapshot = _run_flow(request, warehouse, work, progress)
        return _outcome(warehouse, snapshot, work, time.perf_counter() - clock)


@dataclass(frozen=True, slots=True)
class Selected:
    """Models asked for, the catalog that knows them, and rows for all that a Hub listed."""

    catalog: Catalog
    refs: list[ModelRef]
    hub_models: pa.Table | None


def selected(request: Request, storage: Storage, listing: Callable[[str], None]) -> Selected:
    """The selection of a request. Raises UserError; only a Hub among the sources makes this use the network."""
    catalog, rows = Catalog(storage, listing), None
    if "hub" in request.sources:
        from flows import hub

        listing("hub")
        rows = hub.fill(catalog, request.hub or Query(), lambda text: listing(f"hub ({text})"))
    refs = select(catalog, request.sources, request.models, request.limit, request.seed)
    return Selected(catalog, refs, rows)


def batches(ids: Sequence[str], workers: int) -> list[list[str]]:
    """Cut captures into batches: at most `LARGEST_BATCH`, and at least four a worker while there are enough."""
    size = max(1, min(LARGEST_BATCH, math.ceil(len(ids) / max(1, workers * 4))))
    return [list(ids[i : i + size]) for i in range(0, len(ids), size)]


def _run_flow(request: Request, warehouse: Warehouse, work: Plan, progress: Progress) -> Snapshot:
    from flows.orchestrate import run  # Prefect and Dask: imported only when there is work

    return run(request, warehouse, work, progress)


def worker_count(request: Request) -> int:
    return request.workers or len(os.sched_getaffinity(0))


def limits(request: Request) -> Limits:
    return Limits(deadline_s=request.deadline, recycle_after=request.recycle_after)


def variants_of(names: Sequence[str]) -> list[Variant]:
    try:
        return list(dict.fromkeys(Variant.parse(name) for name in names or ("default",)))
    except ValueError as error:
        raise UserError(f"--variant: {error}") from error


@contextlib.contextmanager
def alone(warehouse: Warehouse) -> Iterator[None]:
    """Keep a second refresh out of a local warehouse. The kernel drops the lock with its process."""
    if not isinstance(warehouse.storage, LocalStorage):
        yield
        return
    path = warehouse.storage.root / ".refresh-lock"
    with explained(warehouse.storage, "refresh"):
        handle = open(path, "a+")  # noqa: SIM115 (what follows is not about opening it)
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            raise UserError(
                f"another refresh ({handle.read(200).strip() or 'unknown'}) is working on {warehouse.storage.url}: "
                "wait for it, or give another --warehouse"
            ) from None
        handle.truncate(0)
        handle.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        handle.flush()
        yield


def _unlisted_models(warehouse: Warehouse, parent: Snapshot, work: Plan) -> bool:
    if work.hub_models is not None:
        keys = ["name", "revision", "class"]
        there = warehouse.read(parent, "hub_models", keys)
        if work.hub_models.select(keys).join(there, keys, join_type="left anti").num_rows:
            return True
    held = warehouse.read(parent, "models", ["source", "name", "revision"])
    known = set(zip(*(held[c].to_pylist() for c in held.column_names), strict=True))
    return any((ref.source, ref.name, ref.revision) not in known for ref in work.refs)


def _outcome(warehouse: Warehouse, snapshot: Snapshot, work: Plan, seconds: float) -> Refreshed:
    asked = set(work.wanted) | work.held
    captures = warehouse.read(snapshot, "captures", ["capture_id", "status", "graph_count"]).to_pylist()
    ours = [row for row in captures if row["capture_id"] in asked]
    failures = warehouse.read(snapshot, "failures", ["capture_id", "class"]).to_pylist()
    failed: dict[str, int] = {}
    for row in sorted(failures, key=lambda r: str(r["class"])):
        if row["capture_id"] in asked:
            failed[row["class"]] = failed.get(row["class"], 0) + 1
    occurrences = warehouse.read(snapshot, "occurrences", ["capture_id", "graph_hash"]).to_pylist()
    unique = {row["graph_hash"] for row in occurrences if row["capture_id"] in asked}
    return Refreshed(
        snapshot=snapshot,
        models=len(work.refs),
        configurations=len({ref.config_hash for ref in work.refs}),
        captured=sum(row["status"] == "complete" for row in ours),
        failed=failed,
        skipped=len(work.held),
        graphs=sum(row["graph_count"] for row in ours),
        unique_graphs=len(unique),
        seconds=seconds,
    )


__all__ = ["Refreshed", "Request", "SchedulerLost", "alone", "batches", "refresh"]
