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

# Read by Prefect when it is imported: no telemetry, no log lines between ours.
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")

from distributed import Client, Future
from prefect import flow, task
from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.cache_policies import NO_CACHE
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.task_runners import ThreadPoolTaskRunner

from dedup.merge import merge
from flows import server
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
    with server.started() as api, connected(request.scheduler, worker_count(request)) as client:
        client.subscribe_topic(TOPIC, lambda event: progress(event[1]))
        context = _Context(request, warehouse, work, client)
        runner: Any = ThreadPoolTaskRunner(max_workers=4 * worker_count(request))
        with temporary_settings({PREFECT_API_URL: api()}):
            try:
                found = _refresh_flow.with_options(name="passnet-refresh", task_runner=runner)(context)
            except Exception as error:
                raise (context.lost() or error) from error
    if not isinstance(found, Snapshot):
        raise UserError("the refresh flow ended without a snapshot: see the Prefect log, then run it again")
    return found


class _Context:
    """What the flow is about; passed whole, and never serialised. `batches` are those that Dask works on."""

    def __init__(self, request: Request, warehouse: Warehouse, work: Plan, client: Client):
        self.request, self.warehouse, self.work, self.client = request, warehouse, work, client
        self.batches: list[Future] = []
        self.stopped = False

    def lost(self) -> SchedulerLost | None:
        """The error to raise when the scheduler has gone away; None while it is there."""
        if self.client.status == "running":
            return None
        where = self.request.scheduler or "the local cluster"
        return SchedulerLost(
            f"the Dask scheduler ({where}) went away: finished captures are kept, run the same command again"
        )

    def worth_another_try(self, *_: Any) -> bool:
        """Whether Prefect should retry a task: not once the run is being ended, nor without a scheduler."""
        return not self.stopped and self.lost() is None

    def stop(self) -> None:
        """End what Dask works on, so that no thread of the flow waits for it."""
        self.stopped = True
        if self.lost() is None:
            self.client.cancel(self.batches, force=True)


@flow(validate_parameters=False, persist_result=False)
def _refresh_flow(context: _Context) -> Snapshot:
    waiting = context.work.to_capture
    for _ in range(ROUNDS):
        _capture(context, waiting)
        merged: Any = _merge_task(context)
        if merged.snapshot is not None:
            break
        waiting = list(merged.damaged)
    else:
        raise UserError(
            f"staged captures in {context.warehouse.storage.url} are damaged again and again: check its disk"
        )
    snapshot: Snapshot = merged.snapshot
    summary = write_files(context.warehouse, snapshot, context.work)
    create_markdown_artifact(markdown(summary), key="refresh-summary", description="What the last refresh did")
    rows = failure_table(summary) or [{"class": "none", "source": "", "captures": 0, "meaning": "nothing failed"}]
    create_table_artifact(rows, key="refresh-failures", description="Failed captures by class")
    return snapshot


def _capture(context: _Context, ids: list[str]) -> None:
    """All batches, each a task; an artifact shows the share that is done."""
    cut = batches(ids, worker_count(context.request))
    if not cut:
        return
    artifact = create_progress_artifact(0.0, key="refresh-captures", description=f"{len(ids)} captures")
    capture = _capture_task.with_options(retry_condition_fn=context.worth_another_try)
    futures = [capture.submit(context, batch) for batch in cut]
    try:
        for number, future in enumerate(futures, 1):
            future.result()
            update_progress_artifact(artifact, 100.0 * number / len(futures))  # type: ignore[arg-type]
    except BaseException:
        context.stop()
        raise


@task(name="capture-batch", retries=2, retry_delay_seconds=[2, 10], cache_policy=NO_CACHE, persist_result=False)
def _capture_task(context: _Context, ids: list[str]) -> int:
    request = context.request
    jobs = [(identity, context.work.wanted[identity]) for identity in ids]
    future = context.client.submit(
        capture_batch, jobs, limits(request), request.preload, request.job, pure=False, retries=3
    )
    context.batches.append(future)
    return len(future.result())


@task(name="merge-and-publish", retries=1, retry_delay_seconds=2, cache_policy=NO_CACHE, persist_result=False)
def _merge_task(context: _Context) -> Any:
    parent = context.warehouse.latest()
    return merge(context.warehouse, parent, context.work.wanted, context.work.models(), context.work.hub_models)
