"""The Prefect flow behind `passnet profile`, and the two places where its work can happen.

Here: the worker program is started on this machine and everything is one batch. On a Dask cluster: batches go to
workers that declare the resource GPU (`dask worker … --resources GPU=1`), one at a time each; profiles on a CPU go to
any worker. Either way the program is `python -m curate.profile.run`, in a process of its own, and its rows come back as
they stand on disk.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")

import pyarrow as pa
import pyarrow.parquet as pq
from prefect import flow, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.settings import PREFECT_API_URL, temporary_settings

from curate.profile.results import Results
from flows import server
from flows.errors import SchedulerLost, UserError
from flows.profile import Progress, Request, publish
from flows.unprofiled import Unprofiled, node_rows
from warehouse.snapshot import Snapshot, Warehouse

ROOT = Path(__file__).parents[1]
#: Subgraphs that one Dask task profiles: minutes of work, so that little is done twice when a worker is lost.
BATCH = 500


class Here:
    """This machine."""

    def __init__(self, request: Request):
        self.request = request

    def device(self) -> str:
        return identify(self.request.device)

    def profile(self, items: pa.Table, results: Results, progress: Progress) -> None:
        """Add rows for `items` to `results`. Raises UserError when the program cannot work."""
        path = results.folder / "items.parquet"
        pq.write_table(items, path)
        _run_program(path, results.folder, self.request, progress)


class Cluster:
    """Workers of an existing Dask cluster. Results are copied into `results` batch by batch."""

    def __init__(self, request: Request, client: Any):
        self.request, self.client = request, client
        self.resources = {"GPU": 1} if request.device == "cuda" else {}

    def device(self) -> str:
        self._check()
        return str(self._wait(self.client.submit(identify, self.request.device, pure=False, resources=self.resources)))

    def profile(self, items: pa.Table, results: Results, progress: Progress) -> None:
        hashes = list(dict.fromkeys(items.sort_by("priority").column("graph_hash").to_pylist()))
        futures = []
        for start in range(0, len(hashes), BATCH):
            chosen = pa.array(hashes[start : start + BATCH])
            batch = items.filter(pa.compute.is_in(items.column("graph_hash"), chosen))
            futures.append(
                self.client.submit(profile_batch, batch, self.request, pure=False, retries=3, resources=self.resources)
            )
        done = 0
        for future in futures:
            for row in self._wait(future):
                results.append(row)
                done += 1
            progress(f"{done} of {len(hashes)}")

    def _check(self) -> None:
        """One line where no worker of the cluster has what the work asks for; Dask would wait for ever."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        if self.resources and not any(w.get("resources", {}).get("GPU", 0) >= 1 for w in workers):
            raise UserError(
                f"no worker of the Dask cluster at {self.request.scheduler} has a GPU to give: start one with "
                "`dask worker … --nthreads 1 --resources GPU=1`, or use --device cpu"
            )

    def _wait(self, future: Any) -> Any:
        try:
            return future.result()
        except UserError:
            raise
        except Exception as error:
            if self.client.status != "running":
                raise SchedulerLost(
                    f"the Dask scheduler ({self.request.scheduler}) went away: finished profiles are kept, run the "
                    "same command again"
                ) from error
            raise


@contextlib.contextmanager
def place(request: Request) -> Iterator[Here | Cluster]:
    """Where the work is done."""
    if request.scheduler is None:
        yield Here(request)
        return
    from flows.cluster import connected

    with connected(request.scheduler, 1) as client:
        yield Cluster(request, client)


def run(
    request: Request,
    warehouse: Warehouse,
    parent: Snapshot,
    work: Unprofiled,
    chosen: tuple[str, ...],
    results: Results,
    at: Here | Cluster,
    progress: Progress,
) -> tuple[Snapshot, list[dict[str, Any]]]:
    """Run the flow: the new snapshot, and the rows made for `chosen`."""

    def measure() -> list[dict[str, Any]]:
        at.profile(node_rows(warehouse, parent, work.nodes, chosen), results, progress)
        wanted = set(chosen)
        return [r for r in results.rows() if r["subgraph_hash"] in wanted and r["mode"] == request.mode]

    with server.started() as api, temporary_settings({PREFECT_API_URL: api()}):
        found: Any = _profile_flow(measure, lambda rows: publish(warehouse, rows))
    snapshot, rows = found
    return snapshot, rows


@flow(name="passnet-profile", validate_parameters=False, persist_result=False)
def _profile_flow(measure: Callable[[], Any], publishing: Callable[[Any], Snapshot]) -> tuple[Snapshot, Any]:
    rows: Any = _measure_task(measure)
    snapshot: Any = _publish_task(publishing, rows)
    classes: dict[str, int] = {}
    for row in rows:
        classes[row["class"]] = classes.get(row["class"], 0) + 1
    table = [{"class": name, "subgraphs": count} for name, count in sorted(classes.items())]
    create_table_artifact(table, key="profile-classes", description="Profiled subgraphs by class")
    return snapshot, rows


@task(name="measure", cache_policy=NO_CACHE, persist_result=False)
def _measure_task(measure: Callable[[], Any]) -> Any:
    return measure()


@task(name="publish-profiles", retries=1, retry_delay_seconds=2, cache_policy=NO_CACHE, persist_result=False)
def _publish_task(publishing: Callable[[Any], Snapshot], rows: Any) -> Snapshot:
    return publishing(rows)


# ----------------------------------------------------------- on the machine that measures


def identify(device: str) -> str:
    """The name of this machine's device, from a process that ends with its CUDA context. Raises UserError."""
    done = subprocess.run(
        [sys.executable, "-m", "evaluate.measure.device", device],
        cwd=ROOT,
        env=_environment(),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise UserError((done.stderr.strip().splitlines() or [f"the device {device} does not answer"])[-1])
    return str(json.loads(done.stdout)["device"])


def profile_batch(items: pa.Table, request: Request) -> list[dict[str, Any]]:
    """One Dask task: profile `items` in a folder of its own; the rows."""
    with tempfile.TemporaryDirectory(prefix="passnet-batch-") as name:
        path = Path(name) / "items.parquet"
        pq.write_table(items, path)
        results = Results(Path(name) / "out")
        _run_program(path, results.folder, request, lambda line: None)
        return results.rows()


def _run_program(items: Path, out: Path, request: Request, progress: Progress) -> None:
    words = [str(items), str(out), "--device", request.device, "--mode", request.mode, "--seed", str(request.seed)]
    words += ["--compilers", str(request.compilers), "--end-with-parent"]
    words += ["--minutes", str(request.minutes)] if request.minutes is not None else []
    process = subprocess.Popen(
        [sys.executable, "-m", "curate.profile.run", *words],
        cwd=ROOT,
        env=_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    last = ""
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if last := line.strip() or last:
                progress(last)
        code = process.wait()
    finally:
        if process.poll() is None:
            process.terminate()  # it ends its workers
            process.wait()
    if code == 130:
        raise KeyboardInterrupt
    if code:
        raise UserError(last or f"the profiling program ended with exit code {code}")


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}
