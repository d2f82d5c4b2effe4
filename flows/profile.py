"""`passnet profile`: unprofiled subgraphs of the newest snapshot, measured on a device, as a new snapshot.

choose -> measure (the worker program, here or on a Dask cluster) -> merge into `profiles` -> publish. Finished rows
are durable in a folder beside the snapshots, so whatever is killed, the same command goes on. Profiles of other devices
stay.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import xxhash

from curate.profile.classes import OK
from curate.profile.results import Results
from flows.errors import UserError
from flows.refresh import alone
from flows.unprofiled import Unprofiled, unprofiled
from warehouse.schema import PROFILES
from warehouse.snapshot import Snapshot, Warehouse
from warehouse.storage import LocalStorage

Progress = Callable[[str], None]
KEY = list(PROFILES.sort)


@dataclass(frozen=True, slots=True)
class Request:
    """Everything a profile run is told. `compilers` 0: by cores. minutes: None for no end."""

    warehouse: str = "lake"
    device: str = "cpu"
    mode: str = "default"
    limit: int | None = None
    seed: int = 0
    compilers: int = 0
    minutes: float | None = None
    scheduler: str | None = None


@dataclass(frozen=True, slots=True)
class Profiled:
    """What a run did. classes: of the rows made now. skipped: subgraphs that had a profile. left: still without one."""

    snapshot: Snapshot
    device: str
    classes: dict[str, int]
    skipped: int
    left: int
    seconds: float
    rows: list[dict[str, Any]] = field(repr=False, default_factory=list)

    def summary(self) -> dict[str, Any]:
        """The object that `profile --json` prints."""
        done = sum(self.classes.values())
        return {
            "device": self.device,
            "profiled": done,
            "classes": self.classes,
            "skipped": self.skipped,
            "left": self.left,
            "seconds": round(self.seconds, 2),
            "snapshot": self.snapshot.id,
        }


def profile(request: Request, started: Callable[[int, int, str], Progress]) -> Profiled:
    """Do what `request` says. `started` is told how many are to be profiled, how many have a profile, and the device;
    it gives the function that is told of progress.

    Raises UserError or WarehouseError for what a user can mend, SchedulerLost when the cluster goes away.
    """
    from flows import profile_tasks  # Prefect and Dask

    clock = time.perf_counter()
    warehouse = Warehouse.open(request.warehouse)
    with alone(warehouse):
        parent = warehouse.snapshot()
        with profile_tasks.place(request) as at:
            device = at.device()
            work = unprofiled(warehouse, parent, device, request.mode)
            chosen = work.order[: request.limit]
            _complain(parent, work, warehouse)
            progress = started(len(chosen), work.held, device)
            results = Results(folder(warehouse, device))
            snapshot, rows = parent, list[dict[str, Any]]()
            if chosen:
                snapshot, rows = profile_tasks.run(request, warehouse, parent, work, chosen, results, at, progress)
        classes = dict(sorted(Counter(str(r["class"]) for r in rows).items()))
        return Profiled(
            snapshot, device, classes, work.held, len(work.order) - len(rows), time.perf_counter() - clock, rows
        )


def folder(warehouse: Warehouse, device: str) -> Path:
    """Where finished rows wait: in a local warehouse, else in the user's cache, by the warehouse's address."""
    slug = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")
    if isinstance(warehouse.storage, LocalStorage):
        return warehouse.storage.root / "profiling" / slug
    return Path.home() / ".cache/passnet/profiling" / xxhash.xxh3_128_hexdigest(warehouse.storage.url.encode()) / slug


def publish(warehouse: Warehouse, rows: list[dict[str, Any]]) -> Snapshot:
    """A snapshot with `rows` among its profiles; a row takes the place of an earlier one with its key."""
    parent = warehouse.snapshot()
    new = pa.Table.from_pylist(rows, schema=PROFILES.schema)
    held = warehouse.read(parent, "profiles")
    mine = {tuple(row[k] for k in KEY) for row in rows}
    stale = [tuple(row[k] for k in KEY) in mine for row in held.select(KEY).to_pylist()]
    if not any(stale):
        return warehouse.publish(parent, {"profiles": new})
    kept = held.filter(pa.array([not s for s in stale]))
    return warehouse.publish(parent, {"profiles": pa.concat_tables([kept, new])}, replace={"profiles"})


def slower(rows: list[dict[str, Any]], clock: str) -> tuple[int, int]:
    """(how many are slower under Inductor by `clock`, how many were timed by it) among measured rows."""
    pairs = [(r[f"eager_{clock}_us"], r[f"inductor_{clock}_us"]) for r in rows if r["class"] == OK]
    timed = [(e, i) for e, i in pairs if e is not None and i is not None]
    return sum(i > e for e, i in timed), len(timed)


def _complain(parent: Snapshot, work: Unprofiled, warehouse: Warehouse) -> None:
    if not work.order and not work.held:
        raise UserError(
            f"snapshot {parent.sequence} of {warehouse.storage.url} holds no subgraphs, and no graph small enough to "
            "be profiled whole: refresh more models, or cut their graphs into subgraphs first"
        )
