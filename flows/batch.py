"""What one Dask task does: a batch of captures in an isolated pool of its own, each staged as it finishes.

Runs inside a Dask worker. The pool outlives the batch, since its start costs seconds; it dies with the Dask worker.
A batch that is tried again, because its worker was lost, leaves out what is already staged.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from extract.staged import stage_failure
from extract.workers import Job, Limits, WorkerPool
from warehouse import staging
from warehouse.storage import WarehouseError, open_storage

#: Dask event topic on which a worker reports each finished capture.
TOPIC = "passnet-captures"

_pools: dict[tuple[Limits, tuple[str, ...]], WorkerPool] = {}
_lock = threading.Lock()


def capture_batch(
    jobs: list[tuple[str, dict[str, Any]]], limits: Limits, preload: tuple[str, ...], job: str
) -> list[dict[str, Any]]:
    """Capture (capture_id, payload) pairs and return one summary each, in the order in which they finished."""
    report = reporter(TOPIC)
    waiting = [Job(identity, payload) for identity, payload in jobs if not _staged(identity, payload)]
    given = dict(jobs)
    summaries = []
    with _lock:  # one batch at a time, should a Dask worker have several threads
        for result in _pool(limits, preload, job).map_unordered(waiting):
            summary = result.value
            if summary is None:
                if result.failure is None:
                    raise RuntimeError(f"capture {result.id} gave neither a result nor a failure")
                if _staged(result.id, given[result.id]):
                    continue  # killed after it had finished, before it could say so
                summary = stage_failure(given[result.id], result.failure, result.seconds, result.peak_mb)
            elif "refused" in summary:
                raise WarehouseError(summary["refused"])  # the warehouse's trouble, not the model's
            summaries.append(summary)
            report(summary)
    return summaries


def _staged(identity: str, payload: dict[str, Any]) -> bool:
    return bool(open_storage(payload["warehouse"]).size(staging.path_of(identity)))


def _pool(limits: Limits, preload: tuple[str, ...], job: str) -> WorkerPool:
    key = (limits, (*preload, job))
    if key not in _pools:
        for other in list(_pools):
            _pools.pop(other).close()
        _pools[key] = WorkerPool(1, limits, job, preload)
    return _pools[key]


def reporter(topic: str) -> Callable[[dict[str, Any]], None]:
    """What tells the flow of each finished piece of work, on a Dask event topic."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:  # called outside a Dask worker
        return lambda summary: None
    return lambda summary: worker.log_event(topic, summary)
