"""The Prefect flow behind `passnet refresh`, and how its tasks use Dask.

A batch of captures is one Prefect task: a thread that hands the batch to the cluster and waits, with retries. Dask
moves a batch whose worker is lost; a batch left in the middle goes on after its last staged capture. Merging and
publishing are one task. Prefect's own Dask runner is not used: it costs 0.1 s and a server connection a task, and
gives a batch nothing that `client.submit` does not.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

# Read by Prefect when it is imported: no telemetry, no log lines between ours, an in-process server when none is given.
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
os.environ.setdefault("PREFECT_SERVER_ALLOW_EPHEMERAL_MODE", "true")
os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")

from concurrent.futures import CancelledError

from distributed import Client
from distributed.comm import CommClosedError
from prefect import flow, task
from prefect.artifacts import create_markdown_artifact, create_progress_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.task_runners import ThreadPoolTaskRunner

from dedup.merge import merge
from flows.batch import TOPIC, capture_batch
from flows.cluster import connected
from flows.errors import SchedulerLost, UserError
from flows.plan import Plan
from flows.refresh import Request, batches, limits, worker_count
from flows.report import failure_table, markdown, write_files
from warehouse.snapshot import Snapshot, Warehouse

#: Times that captures whose staged files turn out damaged are made again.
ROUNDS = 3

Progress = Callable[[dict[str, Any]], None]


def run(request: Request, warehouse: Warehouse, work: Plan, progress: Progress) -> Snapshot:
    """Run the flow. Raises SchedulerLost when the cluster goes away, and what the tasks raise."""
    found = _refresh_flow.with_options(
        name="passnet-refresh", task_runner=ThreadPoolTaskRunner(max_workers=4 * worker_count(request))
    )(_Context(request, warehouse, work, progress))
    if not isinstance(found, Snapshot):
        raise UserError("the refresh flow ended without a snapshot: see the Prefect log, then run it again")
    return found


class _Context:
    """What the flow is about; passed whole, and never serialised."""

    def __init__(self, request: Request, warehouse: Warehouse, work: Plan, progress: Progress):
        self.request, self.warehouse, self.work, self.progress = request, warehouse, work, progress


@flow(validate_parameters=False, persist_result=False)
def _refresh_flow(context: _Context) -> Snapshot:
    request, work = context.request, context.work
    waiting = work.to_capture
    with connected(request.scheduler, worker_count(request)) as client:
        client.subscribe_topic(TOPIC, lambda event: context.progress(event[1]))
        for _ in range(ROUNDS):
            _capture(context, client, waiting)
            merged = _merge_task(context)
            if merged.snapshot is not None:
                break
            waiting = list(merged.damaged)
        else:
            raise UserError(
                f"staged captures in {context.warehouse.storage.url} are damaged again and again: check its disk"
            )
        client.unsubscribe_topic(TOPIC)
    snapshot: Snapshot = merged.snapshot
    summary = write_files(context.warehouse, snapshot, work)
    create_markdown_artifact(markdown(summary), key="refresh-summary", description="What the last refresh did")
    create_table_artifact(failure_table(summary), key="refresh-failures", description="Failed captures by class")
    return snapshot


def _capture(context: _Context, client: Client, ids: list[str]) -> None:
    """All batches, each a task; an artifact shows the share that is done."""
    cut = batches(ids, worker_count(context.request))
    if not cut:
        return
    artifact = create_progress_artifact(0.0, key="refresh-captures", description=f"{len(ids)} captures")
    futures = [_capture_task.submit(context, client, batch) for batch in cut]
    for number, future in enumerate(futures, 1):
        future.result()
        _show_share(artifact, 100.0 * number / len(futures))


def _show_share(artifact: Any, percent: float) -> None:
    from prefect.artifacts import update_progress_artifact

    update_progress_artifact(artifact, percent)


@task(name="capture-batch", retries=2, retry_delay_seconds=[2, 10], cache_policy=NO_CACHE, persist_result=False)
def _capture_task(context: _Context, client: Client, ids: list[str]) -> int:
    request = context.request
    jobs = [(identity, context.work.wanted[identity]) for identity in ids]
    future = client.submit(capture_batch, jobs, limits(request), request.preload, request.job, pure=False, retries=3)
    try:
        return len(future.result())
    except (CancelledError, CommClosedError, OSError) as error:
        if client.status == "running":
            raise
        raise _lost(request) from error


@task(name="merge-and-publish", retries=1, retry_delay_seconds=2, cache_policy=NO_CACHE, persist_result=False)
def _merge_task(context: _Context) -> Any:
    parent = context.warehouse.latest()
    return merge(context.warehouse, parent, context.work.wanted, context.work.model_rows())


def _lost(request: Request) -> SchedulerLost:
    where = request.scheduler or "the local cluster"
    return SchedulerLost(
        f"the Dask scheduler ({where}) went away: finished captures are kept, run the same command again"
    )
