"""The Prefect flow behind `passnet decompose`: cut, mine, cut again, publish; Dask works on batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")

import pyarrow as pa
from distributed import Client
from prefect import flow, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.settings import PREFECT_API_URL, temporary_settings

from extract.workers import Limits
from flows import server
from flows.cluster import connected
from flows.cut_batch import TOPIC, cut_batch
from flows.decompose import Progress, Request, Started, jobs, publish, sequences
from flows.errors import SchedulerLost, UserError
from flows.refresh import batches
from warehouse import cutting
from warehouse.snapshot import Snapshot, Warehouse

#: Times that cuts whose files turn out damaged are made again.
ROUNDS = 3


class _Cutter:
    """Makes cuts on the cluster, those that are not finished yet."""

    def __init__(self, request: Request, warehouse: Warehouse, client: Client):
        self.request, self.warehouse, self.client = request, warehouse, client
        self.limits = Limits(deadline_s=request.deadline, memory_mb=4096, recycle_after=400)
        self.progress: Progress = lambda summary: None

    def make(self, wanted: dict[str, dict[str, Any]], started: Callable[[int], Progress]) -> None:
        waiting = sorted(set(wanted) - cutting.finished(self.warehouse.storage))
        self.progress = started(len(waiting))
        futures = [
            self.client.submit(cut_batch, [(i, wanted[i]) for i in batch], self.limits, pure=False, retries=3)
            for batch in batches(waiting, self.request.worker_count)
        ]
        try:
            for future in futures:
                future.result()
        except BaseException as error:
            if self.client.status != "running":
                where = self.request.scheduler or "the local cluster"
                raise SchedulerLost(
                    f"the Dask scheduler ({where}) went away: finished cuts are kept, run the same command again"
                ) from error
            self.client.cancel(futures, force=True)
            raise

    def tables(self, cuts: Iterable[str], name: str) -> pa.Table:
        """Rows of one table of finished cuts; damaged files are removed, and CutDamaged raised."""
        found = []
        for cut in sorted(cuts):
            try:
                found.append(cutting.read(self.warehouse.storage, cut)[0][name])
            except cutting.CutDamaged:
                cutting.remove(self.warehouse.storage, [cut])
                raise
        return pa.concat_tables(found)


def run(request: Request, warehouse: Warehouse, parent: Snapshot, waiting: list[str], started: Started) -> Snapshot:
    """Run the flow. Raises SchedulerLost when the cluster goes away, UserError when cuts stay damaged."""
    with server.started() as api, connected(request.scheduler, request.worker_count) as client:
        cutter = _Cutter(request, warehouse, client)
        client.subscribe_topic(TOPIC, lambda event: cutter.progress(event[1]))
        with temporary_settings({PREFECT_API_URL: api()}):
            for _ in range(ROUNDS):
                try:
                    found: Any = _decompose_flow(cutter, warehouse, parent, waiting, started)
                    return found  # type: ignore[no-any-return]
                except cutting.CutDamaged:
                    continue
    raise UserError(f"finished cuts in {warehouse.storage.url} are damaged again and again: check its disk")


@flow(name="passnet-decompose", validate_parameters=False, persist_result=False)
def _decompose_flow(
    cutter: _Cutter, warehouse: Warehouse, parent: Snapshot, waiting: list[str], started: Started
) -> Any:
    first = jobs(warehouse, parent, dict.fromkeys(waiting))
    _cut_task(cutter, first, lambda count: started(count, "graphs"))
    spans: Any = _mine_task(lambda: sequences(warehouse, parent, cutter.tables(first, "decompositions")))
    second = jobs(warehouse, parent, spans)
    _cut_task(cutter, second, lambda count: started(count, "graphs with typical sequences"))
    snapshot: Any = _publish_task(lambda: publish(warehouse, parent, [*first, *second]))
    cutting.remove(warehouse.storage, cutting.finished(warehouse.storage))
    rows = [{"table": t, "rows": snapshot.rows(t)} for t in ("subgraphs", "subgraph_occurrences", "subgraph_failures")]
    create_table_artifact(rows, key="decompose-summary", description="Rows after the last decomposition")
    return snapshot


@task(name="cut", cache_policy=NO_CACHE, persist_result=False)
def _cut_task(cutter: _Cutter, wanted: dict[str, dict[str, Any]], started: Callable[[int], Progress]) -> None:
    cutter.make(wanted, started)


@task(name="mine-sequences", cache_policy=NO_CACHE, persist_result=False)
def _mine_task(mine: Callable[[], Any]) -> Any:
    return mine()


@task(name="publish-subgraphs", cache_policy=NO_CACHE, persist_result=False)
def _publish_task(publishing: Callable[[], Snapshot]) -> Snapshot:
    return publishing()
