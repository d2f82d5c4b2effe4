"""Whatever a job does costs that job alone, and becomes a failure with a class."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import psutil
import pytest

from extract.processes import containment
from extract.workers import Job, Limits, PoolError, WorkerPool

LIMITS = Limits(deadline_s=3.0, memory_mb=600, recycle_after=50)
JOB = "tests.extract.misbehaving:run"


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(2, LIMITS, JOB, ("torch",)) as made:
        yield made


def outcomes(pool, *payloads):
    jobs = [Job(str(i), payload) for i, payload in enumerate(payloads)]
    found = list(pool.map_unordered(jobs))
    assert sorted(r.id for r in found) == sorted(j.id for j in jobs), "each job is answered exactly once"
    return {int(r.id): r for r in found}


@pytest.mark.parametrize(
    ("does", "kind", "exception"),
    [
        ("segfault", "crash", "SIGSEGV"),
        ("abort", "crash", "SIGABRT"),
        ("exit", "exit", "SystemExit"),
        ("hard_exit", "exit", "SystemExit"),
        ("sleep", "timeout", "Deadline"),
        ("busy", "timeout", "Deadline"),
        ("huge_tensor", "out_of_memory", None),
        ("huge_bytes", "out_of_memory", "MemoryError"),
        ("leak", "out_of_memory", None),
        ("recursion", None, "RecursionError"),
        ("forked_crash", "crash", "SIGSEGV"),
        ("not_json", "unclassified", "TypeError"),
        ("no_exception", "unclassified", "GeneratorExit"),
        ("unsayable", "unclassified", "UnsayableError"),
    ],
)
def test_a_misbehaving_job_costs_itself_alone(pool, does, kind, exception):
    found = outcomes(
        pool, {"do": "fine", "echo": 1}, {"do": does}, {"do": "fine", "echo": 2}, {"do": "fine", "echo": 3}
    )
    assert [found[i].value["echo"] for i in (0, 2, 3)] == [1, 2, 3]
    failure = found[1].failure
    assert found[1].value is None and failure is not None
    assert kind is None or failure.kind == kind, failure
    assert exception is None or failure.exception == exception, failure


def test_a_timeout_says_where_it_was(pool):
    assert "misbehaving.py" in outcomes(pool, {"do": "busy"})[0].failure.place


def test_many_jobs_are_answered_exactly_once_by_reused_workers(pool):
    found = outcomes(pool, *({"do": "fine", "echo": i} for i in range(150)))
    assert all(found[i].value["echo"] == i for i in range(150))
    assert len({r.value["pid"] for r in found.values()}) <= 8


def test_printing_megabytes_does_no_harm(pool):
    assert outcomes(pool, {"do": "flood"})[0].value == {}


def test_state_left_behind_by_one_job_is_gone_for_the_next():
    with WorkerPool(1, LIMITS, JOB, ("torch",)) as single:
        before, _, after = (outcomes(single, {"do": does})[0].value for does in ("state", "pollute", "state"))
    assert after == before
    assert before["offline"] == "1" and before["proxies"] == [] and before["threads"] == 1


def test_children_of_a_job_die_with_it(pool, tmp_path):
    noted = tmp_path / "child"
    assert outcomes(pool, {"do": "child", "child": str(noted)})[0].failure.kind == "timeout"
    assert not _alive(int(noted.read_text()))


def test_a_daemon_that_a_job_starts_ends_with_the_job(pool, tmp_path):
    noted = tmp_path / "daemon"
    assert outcomes(pool, {"do": "daemon", "child": str(noted)})[0].value == {}
    assert not _alive(int(noted.read_text()))


def test_a_forked_copy_of_a_job_has_no_say(pool):
    assert outcomes(pool, {"do": "forked_answer"})[0].value == {"who": "original"}


def test_alarms_handlers_and_threads_of_a_job_do_not_reach_the_next():
    with WorkerPool(1, LIMITS, JOB) as single:
        assert outcomes(single, {"do": "alarm"})[0].value == {}
        assert outcomes(single, {"do": "handlers"})[0].value == {"ignored": False}
        left = outcomes(single, {"do": "thread"})[0].value["pid"]
        assert outcomes(single, {"do": "fine"})[0].value["pid"] != left


def test_sets_of_strings_have_one_order_in_every_pool(pool):
    with WorkerPool(1, LIMITS, JOB) as other:
        assert outcomes(pool, {"do": "hash"})[0].value == outcomes(other, {"do": "hash"})[0].value


def test_an_abandoned_round_leaves_no_answer_for_the_next(pool):
    unfinished = pool.map_unordered([Job("first", {"do": "fine"}), Job("second", {"do": "sleep", "seconds": 1})])
    assert next(unfinished).id == "first"
    unfinished.close()
    assert outcomes(pool, {"do": "fine", "echo": 7})[0].value["echo"] == 7


def test_the_warm_parent_outlives_the_thread_that_started_it():
    with WorkerPool(1, LIMITS, JOB) as own:
        first = threading.Thread(target=lambda: outcomes(own, {"do": "fine"}))
        first.start()
        first.join()
        parent = own._parent.pid
        assert outcomes(own, {"do": "fine"})[0].value
        assert own._parent.pid == parent


def test_a_pool_that_cannot_import_says_why():
    with (
        pytest.raises(PoolError, match="no_such_module_anywhere"),
        WorkerPool(1, LIMITS, JOB, ("no_such_module_anywhere",)) as own,
    ):
        outcomes(own, {"do": "fine"})


def test_a_worker_killed_from_outside_is_tried_once_more(tmp_path):
    log = tmp_path / "log"
    with WorkerPool(1, LIMITS, JOB) as single:
        _kill_first_worker(log)
        found = outcomes(single, {"do": "sleep", "seconds": 1.5, "log": str(log)})
    assert found[0].value == {}
    assert len(set(log.read_text().split())) == 2


def test_a_dead_warm_parent_is_replaced(tmp_path):
    with WorkerPool(2, LIMITS, JOB) as own:
        assert outcomes(own, {"do": "fine"})[0].value
        os.kill(own._parent.pid, signal.SIGKILL)
        own._parent.wait()
        found = outcomes(own, *({"do": "fine", "echo": i} for i in range(6)))
    assert all(found[i].value["echo"] == i for i in range(6))


def test_a_job_whose_warm_parent_dies_is_tried_once_more(tmp_path):
    log = tmp_path / "log"
    with WorkerPool(1, LIMITS, JOB) as own:

        def kill_parent():
            _first_pid(log)
            os.kill(own._parent.pid, signal.SIGKILL)

        threading.Thread(target=kill_parent, daemon=True).start()
        found = outcomes(own, {"do": "sleep", "seconds": 1.5, "log": str(log)})
    assert found[0].value == {}
    assert len(set(log.read_text().split())) == 2


def test_nothing_is_left_behind_when_the_owner_is_killed(tmp_path):
    log = tmp_path / "log"
    code = (
        "from extract.workers import *\n"
        f"pool = WorkerPool(1, Limits(deadline_s=60), {JOB!r})\n"
        f"list(pool.map_unordered([Job('0', {{'do': 'sleep', 'log': {str(log)!r}}})]))\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    worker = _first_pid(log)
    family = [p.pid for p in psutil.Process(owner.pid).children(recursive=True)]
    assert worker in family
    owner.kill()
    owner.wait()
    deadline = time.monotonic() + 5
    while any(_alive(pid) for pid in family) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_alive(pid) for pid in family)


@pytest.mark.skipif(os.geteuid() != 0, reason="without root the kernel may refuse a network namespace")
def test_workers_have_no_network(pool):
    assert containment()["no network"]
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        failure = outcomes(pool, {"do": "network", "port": server.getsockname()[1]})[0].failure
    assert failure is not None and failure.exception in ("OSError", "ConnectionRefusedError", "TimeoutError")


def test_a_failures_text_is_the_same_on_every_machine(pool):
    first, second = (outcomes(pool, {"do": "error"})[0].failure for _ in range(2))
    assert "0x7f" not in first.message and "/home/" not in first.message
    assert "timm/models/x.py" in first.message
    assert first.place.endswith("in _error") and first.place == second.place


def _alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _first_pid(log):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if log.exists() and log.read_text().strip():
            return int(log.read_text().split()[0])
        time.sleep(0.02)
    raise AssertionError("the job never started")


def _kill_first_worker(log):
    def kill():
        with contextlib.suppress(ProcessLookupError):
            os.kill(_first_pid(log), signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()
