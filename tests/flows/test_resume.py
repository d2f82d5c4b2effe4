"""Whatever is killed, whenever: the same command goes on, repeats nothing, and ends with the same bytes."""

from __future__ import annotations

import json
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

from extract.model import Variant
from extract.staged import payload
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


def refresh_with_kills(root: Path, log: Path, seed: int, *runs: list[str]) -> None:
    """Begin the refresh once for each of `runs`, killing a process of each kind named at a random moment; then once
    more, to the end."""
    draw = random.Random(seed)
    for kinds in runs:
        process = start(root, log, pace=0.05, own_server=True)
        everyone: set[psutil.Process] = set()
        for kind in kinds:
            wait_for(log, draw.randint(len(lines(log)), LOGGED), process)
            time.sleep(draw.uniform(0, 0.5))
            if process.poll() is not None:
                break
            everyone.update(psutil.Process(process.pid).children(recursive=True))
            if chosen := victims(process, kind):
                chosen[draw.randrange(len(chosen))].kill()
        code, _, err = finish(process)
        if "flow" in kinds:
            assert code in (-signal.SIGKILL, 0), err
        else:
            assert code == 0, f"the flow did not survive the loss of {kinds}: {err}"
        assert gone(list(everyone)), "a refresh that ended or was killed leaves no process behind"
    code, _, err = finish(start(root, log))
    assert code == 0, err


def test_a_refresh_killed_at_random_moments_ends_with_the_same_bytes(tmp_path: Path, uninterrupted: Any):
    refresh_with_kills(tmp_path / "lake", tmp_path / "log", 1, ["flow"], ["worker", "capture"])
    assert toy.published(tmp_path / "lake") == uninterrupted[1]
    assert max(Counter(lines(tmp_path / "log")).values()) == 1, "a finished model was captured again"


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("seed", range(5))
def test_ten_random_kills_of_flow_dask_worker_and_capture_worker(tmp_path: Path, uninterrupted: Any, seed: int):
    kinds = random.Random(seed).choices(["flow", "worker", "capture"], k=2)
    refresh_with_kills(tmp_path / "lake", tmp_path / "log", seed, *([kind] for kind in kinds))
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
    process = start(root, log, pace=2.0, own_server=True)
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


def test_a_damaged_staged_capture_alone_is_made_again(tmp_path: Path):
    root, log = tmp_path / "lake", tmp_path / "log"
    storage = Warehouse.open(root, create=True).storage
    limits: dict[str, Any] = {}
    for ref in list(toy.ToyZoo().list())[:3]:
        toy.run(payload(ref, Variant(), storage.url), limits)
    damaged = sorted(staging.finished(storage))[0]
    path = root / staging.path_of(damaged)
    path.write_bytes(path.read_bytes()[:50])
    code, out, err = finish(start(root, log, models="good-[012]"))
    assert code == 0, err
    assert lines(log) == [damaged]
    assert json.loads(out)["captured"] == 3


def test_a_model_and_a_name_more_add_just_that(tmp_path: Path):
    root, log, names = tmp_path / "lake", tmp_path / "log", tmp_path / "names"
    names.write_text("toy:good-1\ntoy:same-0\n")
    assert finish(start(root, log, models=str(names)))[0] == 0
    before, already = toy.published(root), lines(log)
    names.write_text("toy:good-1\ntoy:good-2\ntoy:same-0\ntoy:same-1\n")
    code, out, err = finish(start(root, log, models=str(names)))
    assert code == 0, err
    found = json.loads(out)
    assert (found["models"], found["configurations"], found["skipped"], found["captured"]) == (4, 3, 2, 3)
    assert len(lines(log)) == len(already) + 1, "one configuration is new, the other name has a capture"
    after = toy.published(root)
    assert before.items() <= after.items(), "what was published stays as it was"
    old, new = Warehouse.open(root).snapshots()
    assert new.parent == old.id
    for name, table in old.tables.items():
        assert {f.path for f in table.files} <= {f.path for f in new.tables[name].files}, f"{name} was written again"
    assert [new.rows(n) - old.rows(n) for n in ("models", "captures", "occurrences")] == [2, 1, 2]


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
