"""Whatever is killed, whenever: the same command goes on, repeats nothing, and ends with the same bytes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.flows import toy
from tests.flows.conftest import ROOT, finish, start
from warehouse import staging
from warehouse.snapshot import Warehouse

#: Captures of the toy source that reach the log (an exit and a crash never do).
LOGGED = 44


def lines(log: Path) -> list[str]:
    return log.read_text().split() if log.exists() else []


def wait_for(log: Path, count: int, process: subprocess.Popen[str]) -> None:
    while process.poll() is None and len(lines(log)) < count:
        time.sleep(0.02)


def victims(process: subprocess.Popen[str], kind: str) -> list[psutil.Process]:
    """Processes below a refresh: `flow` itself, Dask `worker`s, `capture` workers (and the warm parents of them)."""
    if kind == "flow":
        return [psutil.Process(process.pid)]
    word = {"worker": "spawn_main", "capture": "extract.zygote"}[kind]
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        try:
            if word in " ".join(child.cmdline()):
                found.append(child)
        except psutil.Error:
            continue
    return found


def gone(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=20)
    return not alive


def refresh_with_kills(root: Path, log: Path, seed: int, kinds: list[str]) -> None:
    """Run refreshes, killing one process of each kind in turn at a random moment, until one ends well."""
    draw = random.Random(seed)
    for kind in kinds:
        process = start(root, log, pace=0.05)
        wait_for(log, draw.randint(len(lines(log)), LOGGED), process)
        time.sleep(draw.uniform(0, 0.5))
        if process.poll() is not None:
            finish(process)
            continue
        family = psutil.Process(process.pid).children(recursive=True)
        if chosen := victims(process, kind):
            chosen[draw.randrange(len(chosen))].kill()
        code, _, err = finish(process)
        if kind == "flow":
            assert code in (-signal.SIGKILL, 0), err
            assert gone(family), "a killed flow leaves no process behind"
        else:
            assert code == 0, f"the flow did not survive the loss of a {kind}: {err}"
    code, _, err = finish(start(root, log))
    assert code == 0, err


def test_a_refresh_killed_at_random_moments_ends_with_the_same_bytes(tmp_path: Path, uninterrupted: Any):
    refresh_with_kills(tmp_path / "lake", tmp_path / "log", 1, ["flow", "worker"])
    assert toy.published(tmp_path / "lake") == uninterrupted[1]
    assert max(Counter(lines(tmp_path / "log")).values()) == 1, "a finished model was captured again"


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("seed", range(5))
def test_ten_random_kills_of_flow_dask_worker_and_capture_worker(tmp_path: Path, uninterrupted: Any, seed: int):
    kinds = random.Random(seed).choices(["flow", "worker", "capture"], k=2)
    refresh_with_kills(tmp_path / "lake", tmp_path / "log", seed, kinds)
    assert toy.published(tmp_path / "lake") == uninterrupted[1]
    assert max(Counter(lines(tmp_path / "log")).values()) == 1, "a finished model was captured again"


def test_a_lost_scheduler_ends_in_one_line_and_the_same_command_goes_on(tmp_path: Path, uninterrupted: Any):
    root, log = tmp_path / "lake", tmp_path / "log"
    with cluster(log, pace=0.1) as (scheduler, address):
        process = start(root, scheduler=address)
        wait_for(log, 5, process)
        scheduler.kill()
        code, out, err = finish(process)
    assert (code, out) == (3, ""), err
    last = err.strip().splitlines()[-1]
    assert last.startswith("passnet: ") and "run the same command again" in last
    assert "Traceback" not in err
    assert Warehouse.open(root, create=True).latest() is None
    assert len(staging.finished(Warehouse.open(root, create=True).storage)) >= 5
    with cluster(log) as (_, address):
        code, _, err = finish(start(root, scheduler=address))
    assert code == 0, err
    assert toy.published(root) == uninterrupted[1]
    assert max(Counter(lines(log)).values()) == 1, "a finished model was captured again"


def test_ctrl_c_ends_at_once_and_the_same_command_goes_on(tmp_path: Path, uninterrupted: Any):
    root, log = tmp_path / "lake", tmp_path / "log"
    process = start(root, log, pace=2.0)
    wait_for(log, 2, process)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert (code, out) == (130, ""), err
    assert err.strip().splitlines()[-1] == "passnet: interrupted; run the same command again to go on"
    assert "Traceback" not in err
    assert gone(family)
    assert len(lines(log)) < LOGGED, "it went on to the end"
    code, _, err = finish(start(root, log))
    assert code == 0, err
    assert toy.published(root) == uninterrupted[1]


def test_a_damaged_staged_capture_is_made_again(tmp_path: Path, uninterrupted: Any):
    root, log = tmp_path / "lake", tmp_path / "log"
    process = start(root, log, pace=0.1)
    wait_for(log, 3, process)
    process.kill()
    finish(process)
    storage = Warehouse.open(root, create=True).storage
    damaged = sorted(staging.finished(storage))[0]
    path = root / staging.path_of(damaged)
    path.write_bytes(path.read_bytes()[:50])
    code, _, err = finish(start(root, log))
    assert code == 0, err
    assert toy.published(root) == uninterrupted[1]


class cluster:
    """A Dask scheduler and two workers of their own, as an administrator starts them; toys log and pace as given."""

    def __init__(self, log: Path, pace: float = 0.0):
        self.environment = {**os.environ, toy.LOG: str(log), toy.PACE: str(pace)}

    def __enter__(self) -> tuple[subprocess.Popen[bytes], str]:
        self.processes = []
        null = subprocess.DEVNULL
        quiet: Any = {"cwd": ROOT, "stdout": null, "stderr": null, "env": self.environment}
        dask = [sys.executable, "-m", "dask"]
        port = free_port()
        address = f"tcp://127.0.0.1:{port}"
        where = ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
        self.processes.append(subprocess.Popen([*dask, "scheduler", *where], **quiet))
        for _ in range(2):
            one = [*dask, "worker", address, "--nthreads", "1", "--no-dashboard", "--death-timeout", "30"]
            self.processes.append(subprocess.Popen(one, **quiet))
        for _ in self._connected(address):
            pass
        return self.processes[0], address

    @staticmethod
    def _connected(address: str) -> Iterator[None]:
        from distributed import Client

        with Client(address, timeout="60s") as client:
            client.wait_for_workers(2, timeout=60)
            yield

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            family = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
            for one in (process, *family):
                try:
                    one.kill()
                except psutil.NoSuchProcess:
                    continue
            process.wait()


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
