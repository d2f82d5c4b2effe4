"""What one Dask task of a decomposition does: a batch of cuts in an isolated pool, each durable as it finishes.

Runs inside a Dask worker, as flows/batch.py does for captures. A batch that is tried again, because its worker was
lost, leaves out what is finished.
"""

from __future__ import annotations

from typing import Any

from extract.subgraphs.job import stage_failure
from extract.workers import Job, Limits, WorkerPool
from flows.batch import reporter
from warehouse import cutting
from warehouse.storage import WarehouseError, open_storage

#: Dask event topic on which a worker reports each finished cut.
TOPIC = "passnet-cuts"
JOB = "extract.subgraphs.job:run"
PRELOAD = ("torch", "torchvision", "extract.subgraphs.job")


def cut_batch(batch: list[tuple[str, dict[str, Any]]], limits: Limits) -> int:
    """Make (cut id, payload) pairs; returns how many. WarehouseError when the warehouse cannot take them."""
    report = reporter(TOPIC)
    given = dict(batch)
    waiting = [Job(name, payload) for name, payload in batch if not _finished(name, payload)]
    if not waiting:
        return 0
    with WorkerPool(1, limits, JOB, PRELOAD) as pool:
        for result in pool.map_unordered(waiting):
            summary = result.value
            if summary is None:
                if result.failure is None:
                    raise RuntimeError(f"cut {result.id} gave neither a result nor a failure")
                if _finished(result.id, given[result.id]):
                    continue  # killed after it had finished, before it could say so
                summary = stage_failure(given[result.id], result.failure)
            elif "refused" in summary:
                raise WarehouseError(summary["refused"])
            report(summary)
    return len(waiting)


def _finished(name: str, payload: dict[str, Any]) -> bool:
    return bool(open_storage(payload["warehouse"]).size(cutting.path_of(name)))
