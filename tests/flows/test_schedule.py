"""A schedule on a real Prefect server: it fires, a second run costs next to nothing, and what fails can be seen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import pytest
import yaml
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    FlowRunFilter,
    FlowRunFilterParentFlowRunId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.schedules import IntervalSchedule
from prefect.settings import PREFECT_API_URL, temporary_settings

from tests.flows import toy
from tests.flows.conftest import HUNG, ROOT, finish, start
from tests.flows.test_resume import free_port
from warehouse.snapshot import Warehouse

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
NAME = "passnet-scheduled-refresh/nightly"


class Served:
    """`prefect server`, a deployment of prefect.yaml with toys for models, and a Prefect worker that runs it."""

    def __init__(self, place: Path):
        self.lake, self.log, self.place = place / "lake", place / "log", place
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/api"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.environment = {
            **os.environ,
            "PREFECT_API_URL": self.url,
            "PREFECT_HOME": str(place / "prefect"),
            "PREFECT_WORKER_QUERY_SECONDS": "1",
            "PYTHONPATH": str(ROOT),
            toy.LOG: str(self.log),
            toy.PACE: "0.2",
        }

    def __enter__(self) -> Served:
        self.background("server", "start", "--host", "127.0.0.1", "--port", str(self.port), "--no-ui")
        until(self._healthy, "the server answers")
        declared = yaml.safe_load((ROOT / "prefect.yaml").read_text())
        (nightly,) = declared["deployments"]
        nightly["entrypoint"] = "tests/flows/scheduled_toy.py:scheduled_refresh"
        nightly["parameters"] = {"warehouse": str(self.lake), "sources": ["toy"], "workers": 2}
        (self.place / "prefect.yaml").write_text(yaml.safe_dump(declared))
        self.prefect("work-pool", "create", "default", "--type", "process")
        self.prefect("deploy", "--prefect-file", str(self.place / "prefect.yaml"), "--name", "nightly")
        self.background("worker", "start", "--pool", "default")
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            family = psutil.Process(process.pid).children(recursive=True)
            for one in (*family, process):
                try:
                    one.kill()
                except psutil.NoSuchProcess:
                    continue
            process.wait()

    def _healthy(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}/health", timeout=5).close()
        except OSError:
            return False
        return True

    def background(self, *words: str) -> None:
        with open(self.place / f"{words[0]}.log", "wb") as log:
            command = [sys.executable, "-m", "prefect", "--no-prompt", *words]
            self.processes.append(
                subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=log, stderr=subprocess.STDOUT)
            )

    def prefect(self, *words: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "prefect", "--no-prompt", *words],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=HUNG,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def flow_process(self) -> psutil.Process:
        """The process in which the flow runs: the one that starts Dask's workers."""
        for child in psutil.Process(self.processes[-1].pid).children(recursive=True):
            if any("spawn_main" in " ".join(c.cmdline()) for c in child.children()):
                return child
        raise LookupError("no flow runs")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("served")) as found, temporary_settings({PREFECT_API_URL: found.url}):
        yield found


def until(true: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + HUNG
    while time.monotonic() < end:
        if answer := true():
            return answer
        time.sleep(0.2)
    raise AssertionError(f"waited in vain until {what}")


def state(run: UUID) -> tuple[str, str]:
    with get_client(sync_client=True) as client:
        found = client.read_flow_run(run).state
        assert found is not None
        return found.name, found.message or ""


def ended(run: UUID) -> str:
    return str(until(lambda: state(run)[0] in ("Completed", "Failed", "Crashed") and state(run)[0], "it ends"))


def ask(**parameters: Any) -> UUID:
    """Have the deployment run once, now."""
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name(NAME)
        return client.create_flow_run_from_deployment(
            deployment.id, parameters={**(deployment.parameters or {}), **parameters}
        ).id


def runs(kind: str) -> list[FlowRun]:
    """The deployment's runs that are in a state of that type."""
    wanted = FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType[kind.upper()]]))
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name(NAME)
        found = client.read_flow_runs(flow_run_filter=FlowRunFilter(state=wanted))
        return [run for run in found if run.deployment_id == deployment.id]


def artifacts(run: UUID) -> dict[str, str]:
    with get_client(sync_client=True) as client:
        found = client.read_artifacts(artifact_filter=ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run])))
        return {artifact.key or "": str(artifact.data) for artifact in found}


def captures(log: Path) -> list[str]:
    return log.read_text().split() if log.exists() else []


def test_a_flow_that_is_killed_shows_as_crashed_and_the_next_run_goes_on(served: Served, uninterrupted: Any):
    run = ask()
    until(lambda: len(captures(served.log)) >= 5, "five captures are there")
    os.kill(served.flow_process().pid, signal.SIGKILL)
    assert ended(run) == "Crashed"
    assert Warehouse.open(served.lake, create=True).latest() is None
    again = ask()
    assert ended(again) == "Completed"
    assert toy.published(served.lake) == uninterrupted[1]
    assert max(Counter(captures(served.log)).values()) == 1, "a finished model was captured again"
    assert "to snapshot 1" in artifacts(again)["snapshot-changes"]


def test_the_schedule_fires_and_a_run_that_finds_nothing_new_does_nothing(served: Served):
    before = captures(served.log)
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name(NAME)
        (nightly,) = client.read_deployment_schedules(deployment.id)
        assert nightly.active is False
        soon = IntervalSchedule(interval=timedelta(seconds=20))
        client.update_deployment_schedule(deployment.id, nightly.id, active=True, schedule=soon)
        fired = until(lambda: [r for r in runs("Completed") if r.auto_scheduled], "a scheduled run ends")[0]
        client.update_deployment_schedule(deployment.id, nightly.id, active=False)
        until(lambda: not runs("Scheduled"), "a paused schedule takes back the runs that it had planned")
        assert artifacts(fired.id)["snapshot-changes"].startswith("# Nothing new")
        below = client.read_flow_runs(
            flow_run_filter=FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[fired.id]))
        )
    assert not below, "with nothing to do there is no flow inside, no Dask, no capture"
    assert captures(served.log) == before
    assert len(Warehouse.open(served.lake).snapshots()) == 1


def test_runs_that_overlap_wait_and_a_command_beside_them_is_refused(served: Served, tmp_path: Path):
    lake = str(tmp_path / "lake")
    first = ask(warehouse=lake)
    until(lambda: (tmp_path / "lake" / ".refresh-lock").exists(), "the first run works")
    second = ask(warehouse=lake)
    until(lambda: state(second)[0] == "AwaitingConcurrencySlot", "the second run waits")
    code, out, err = finish(start(tmp_path / "lake"))
    assert (code, out) == (2, "") and "another refresh" in err
    assert state(first)[0] == "Running"
    assert ended(first) == "Completed"
    assert ended(second) == "Completed"
    assert artifacts(second)["snapshot-changes"].startswith("# Nothing new")
    assert len(Warehouse.open(lake).snapshots()) == 1


def test_a_run_that_cannot_work_fails_with_the_line_that_says_why(served: Served, tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    run = ask(warehouse=str(tmp_path / "file"))
    assert ended(run) == "Failed"
    assert "cannot create the warehouse" in state(run)[1]
