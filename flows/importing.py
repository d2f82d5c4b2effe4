"""`passnet import graphnet`: published sample folders into a warehouse, by the path that captures take.

find and describe -> plan -> batches of imports -> merge -> publish. A sample is a model of source `graphnet`, its
graph a capture of it: staged one by one, deduplicated against all graphs that are there, published by one rename.
Killed at any moment, the same command goes on; with nothing new, nothing is started.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dedup.hashes import HASH_VERSION
from extract.graphnet import samples
from extract.model import ModelRef, capture_id
from flows.errors import UserError
from flows.plan import Plan
from flows.refresh import Progress, Request, alone
from warehouse import staging
from warehouse.snapshot import Snapshot, Warehouse

JOB = "extract.graphnet.job:run"
#: What import workers have loaded before they are forked; the last brings what fake tensors need.
#: Samples that a worker does before it is replaced: it remembers what calls yield, and leaks nothing.
RECYCLE_AFTER = 500
PRELOAD = ("torch", "torch._decomp.decompositions", "torch._refs", "extract.graphnet.job")


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did. `failed` counts samples by class; graphs, structures and templates are distinct ones."""

    snapshot: Snapshot
    samples: int
    imported: int
    failed: dict[str, int]
    skipped: int
    graphs: int
    structures: int
    templates: int
    seconds: float

    def summary(self) -> dict[str, Any]:
        """The object that `import --json` ends with."""
        return {
            "samples": self.samples,
            "imported": self.imported,
            "failed": self.failed,
            "skipped": self.skipped,
            "unique": {"graphs": self.graphs, "structures": self.structures, "templates": self.templates},
            "seconds": round(self.seconds, 2),
            "snapshot": self.snapshot.id,
        }


def import_graphnet(folder: Path, request: Request, started: Callable[[Plan], Progress]) -> Imported:
    """Import every sample under `folder` into `request.warehouse`. `started` as for `flows.refresh.refresh`.

    Raises UserError when the folder is missing or holds no sample, WarehouseError, and SchedulerLost.
    """
    clock = time.perf_counter()
    try:
        if not folder.is_dir():
            raise UserError(f"{str(folder)!r} is no folder: give the one that holds the samples")
        found = list(samples.find(folder))
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read the folder {str(folder)!r}: {error}") from error
    if not found:
        needed = ", ".join(samples.NEEDED)
        raise UserError(f"no sample is under {str(folder)!r}: a sample is a folder that holds {needed}")
    warehouse = Warehouse.open(request.warehouse, create=True)
    with alone(warehouse):
        parent = warehouse.latest()
        work = _plan(warehouse, parent, found)
        progress = started(work)
        if parent is not None and not work.wanted:
            snapshot = parent
        else:
            from flows.orchestrate import run  # Prefect and Dask: imported only when there is work

            snapshot = run(request, warehouse, work, progress)
        return _outcome(warehouse, snapshot, work, len(found), time.perf_counter() - clock)


def _plan(warehouse: Warehouse, parent: Snapshot | None, found: list[samples.Sample]) -> Plan:
    """What is new among the samples. Their files are read, to tell a changed sample from a known one."""
    from extract.graphnet.job import payload

    held: set[str] = set()
    if parent is not None:
        held = set(warehouse.read(parent, "captures", ["capture_id"])["capture_id"].to_pylist())
    staged = staging.finished(warehouse.storage)
    refs: list[ModelRef] = []
    asked: dict[str, dict[str, Any]] = {}
    for sample in found:
        ref, variant = samples.describe(sample)
        refs.append(ref)
        asked[capture_id(ref.config_hash, variant, HASH_VERSION)] = payload(sample, ref, variant, warehouse.storage.url)
    wanted = {identity: given for identity, given in asked.items() if identity not in held}
    return Plan(tuple(refs), wanted, frozenset(staged & set(wanted)), frozenset(held & set(asked)))


def _outcome(warehouse: Warehouse, snapshot: Snapshot, work: Plan, count: int, seconds: float) -> Imported:
    asked = set(work.wanted) | work.held
    captures = warehouse.read(snapshot, "captures", ["capture_id", "status"]).to_pylist()
    failures = warehouse.read(snapshot, "failures", ["capture_id", "class"]).to_pylist()
    occurrences = warehouse.read(snapshot, "occurrences", ["capture_id", "graph_hash"]).to_pylist()
    ours = {row["graph_hash"] for row in occurrences if row["capture_id"] in asked}
    graphs = warehouse.read(snapshot, "graphs", ["graph_hash", "structure_hash", "template_hash"]).to_pylist()
    kept = [row for row in graphs if row["graph_hash"] in ours]
    classes = Counter(row["class"] for row in failures if row["capture_id"] in asked)
    return Imported(
        snapshot=snapshot,
        samples=count,
        imported=sum(row["status"] == "complete" for row in captures if row["capture_id"] in asked),
        failed=dict(sorted(classes.items())),
        skipped=len(work.held),
        graphs=len(kept),
        structures=len({row["structure_hash"] for row in kept}),
        templates=len({row["template_hash"] for row in kept}),
        seconds=seconds,
    )
