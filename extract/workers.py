"""A pool of reusable, isolated worker processes: whatever a model's code does costs that model alone.

Jobs go in, one `JobResult` each comes out, as they finish. Workers are forked from a warm parent (`extract.zygote`)
and each has a session of its own, a deadline, a memory cap and no network. A crash, a hang, an exit or an allocation
of 38 GB is a Failure with a class; a worker killed from outside has its job tried once more.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import socket
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from extract.channel import receive, send
from extract.model import Failure
from extract.processes import kill, last_place, launch, of_exit, resident_mb

#: Seconds between looks at deadlines and memory.
TICK = 0.25
#: Seconds that a worker may take over one message, that its end may take to be reported, and the warm parent to end.
PATIENCE = 10.0
#: Workers in a row that may end before they are up.
STILLBORN = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """deadline_s: seconds for one job. memory_mb: resident memory of a worker and its children. node_budget: nodes of
    all graphs of a capture. recycle_after: jobs that a worker does before it is replaced."""

    deadline_s: float = 120.0
    memory_mb: int = 2048
    node_budget: int = 20_000
    recycle_after: int = 40


@dataclass(frozen=True, slots=True)
class Job:
    """`payload` is JSON-ready and handed to the job function as it is."""

    id: str
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class JobResult:
    """Exactly one of value and failure is set. seconds: wall clock. peak_mb: peak resident memory, MiB."""

    id: str
    value: dict[str, Any] | None
    failure: Failure | None
    seconds: float
    peak_mb: float


class PoolError(Exception):
    """The pool itself cannot work: its warm parent does not start."""


@dataclass(slots=True)
class _Worker:
    number: int
    channel: socket.socket
    pid: int = 0
    job: Job | None = None
    since: float = 0.0
    done: int = 0
    peak_mb: float = 0.0
    verdict: Failure | None = None  # why the pool killed it
    up: bool = False  # it has set itself up


class WorkerPool:
    """`workers` processes that run `job` ("module:function", called with payload and limits) on every Job.

    `preload` names modules that the warm parent imports. Use as a context manager, or call `close`.
    """

    def __init__(self, workers: int, limits: Limits, job: str, preload: Sequence[str] = ()):
        if workers < 1:
            raise ValueError("a pool needs at least one worker")
        self.size, self.limits, self.job, self.preload = workers, limits, job, tuple(preload)
        self._scratch = ""
        self._parent: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._workers: dict[int, _Worker] = {}
        self._exits: dict[int, int] = {}
        self._forks = self._stillborn = 0
        self._looked = 0.0

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every process of the pool at once."""
        for worker in list(self._workers.values()):
            self._forget(worker)
        self._stop_parent()
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = ""

    def map_unordered(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
        """One result a job, as they finish. Never raises for what a job does; PoolError when no worker can start."""
        waiting = deque(jobs)
        tries: dict[str, int] = {}
        try:
            while waiting or any(w.job for w in self._workers.values()):
                self._staff(waiting)
                for worker in self._ready():
                    yield from self._hear(worker, waiting, tries)
                self._watch()
        finally:
            for worker in [w for w in self._workers.values() if w.job]:
                self._forget(worker)  # not asked for to the end: no later caller may get its answer

    # ------------------------------------------------------------- processes

    def _staff(self, waiting: deque[Job]) -> None:
        """Start missing workers and give idle ones a job."""
        if self._parent is not None and self._parent.poll() is not None:  # the kernel ends its workers with it
            self._stop_parent()
            for worker in [w for w in self._workers.values() if w.job is None]:
                self._forget(worker)
        idle = [w for w in self._workers.values() if w.job is None]
        while waiting and (idle or len(self._workers) < self.size):
            worker = idle.pop() if idle else self._fork()
            worker.job, worker.since, worker.peak_mb = waiting.popleft(), time.monotonic(), 0.0
            try:
                send(worker.channel, {"id": worker.job.id, "payload": worker.job.payload})
            except OSError:  # it died between two jobs: its end is heard like any other
                continue

    def _fork(self) -> _Worker:
        for attempt in range(2):
            if self._parent is None or self._parent.poll() is not None:
                self._start()
            ours, theirs = socket.socketpair()
            ours.settimeout(PATIENCE)  # half a message, or a worker that does not read, must not stop the pool
            self._forks += 1
            worker = _Worker(self._forks, ours)
            try:
                assert self._channel is not None
                send(self._channel, {"fork": worker.number}, [theirs.fileno()])
                while not worker.pid:
                    message, _ = receive(self._channel)
                    if message is None:
                        raise OSError("the warm parent closed its channel")
                    if message.get("forked") == worker.number:
                        worker.pid = message["pid"]
                    else:
                        self._note(message)
            except OSError as error:
                ours.close()
                self._stop_parent()
                if attempt:
                    raise PoolError(f"no capture worker can be started: {error}") from error
                continue
            finally:
                theirs.close()
            self._exits.pop(worker.pid, None)  # of an earlier process of the same number
            self._workers[worker.number] = worker
            return worker
        raise PoolError("no capture worker can be started")

    def _start(self) -> None:
        """Start the warm parent; it answers when its imports are done."""
        self._stop_parent()
        if not self._scratch:
            self._scratch = tempfile.mkdtemp(prefix="passnet-workers-")
        self._parent, self._channel = launch(
            {**asdict(self.limits), "job": self.job, "preload": self.preload, "scratch": self._scratch}
        )
        ready, _ = receive(self._channel)
        if ready is None or "failed" in ready:
            self._stop_parent()
            why = "it died" if ready is None else ready["failed"]
            what = ", ".join((*self.preload, self.job))
            raise PoolError(f"capture workers cannot be started: importing {what}: {why}")

    def _stop_parent(self) -> None:
        if self._channel is not None:
            self._channel.close()  # it then ends what its workers left, and itself
        if self._parent is not None:
            try:
                self._parent.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self._parent.kill()
                self._parent.wait()
        self._parent = self._channel = None
        self._scratch = self._scratch if os.path.isdir(self._scratch) else ""

    def _forget(self, worker: _Worker) -> None:
        kill(worker.pid)
        worker.channel.close()
        self._workers.pop(worker.number, None)
        with contextlib.suppress(OSError):
            os.unlink(Path(self._scratch) / f"{worker.pid}.trace")
        shutil.rmtree(Path(self._scratch) / str(worker.pid), ignore_errors=True)

    def _note(self, message: dict[str, Any]) -> None:
        if "exited" in message:
            self._exits[message["exited"]] = message["code"]

    # --------------------------------------------------------------- listening

    def _ready(self) -> list[_Worker]:
        """Workers with something to say, or nothing more to say, after at most one tick."""
        with selectors.DefaultSelector() as selector:
            for worker in self._workers.values():
                selector.register(worker.channel, selectors.EVENT_READ, worker)
            if self._channel is not None:
                selector.register(self._channel, selectors.EVENT_READ)
            heard = [key.data for key, _ in selector.select(TICK)]
        if None in heard:
            self._listen_to_parent()
        ready = [w for w in heard if w is not None]
        # A worker may have died while a process that it forked still holds its end of the channel.
        return ready or [w for w in self._workers.values() if w.pid in self._exits]

    def _hear(self, worker: _Worker, waiting: deque[Job], tries: dict[str, int]) -> Iterator[JobResult]:
        message = self._message(worker)
        job, seconds = worker.job, time.monotonic() - worker.since
        if message is not None and "up" in message:
            worker.up, self._stillborn = True, 0
            return
        if message is not None and job is not None and message.get("id") == job.id:
            worker.job, worker.done = None, worker.done + 1
            if message["replace"] or worker.done >= self.limits.recycle_after:
                self._forget(worker)
            failure = Failure(**message["failure"]) if "failure" in message else None
            yield JobResult(job.id, message.get("value"), failure, message["seconds"], message["peak_mb"])
            return
        code = self._exit_code(worker)
        cut_off = code is None and self._channel is not None  # it lives, without a channel
        self._forget(worker)
        if not worker.up and code is not None and code >= 0:
            self._stillborn += 1
            if self._stillborn >= STILLBORN:
                raise PoolError(f"capture workers end before their first job, with status {code}, in {self._scratch}")
            if job is not None:
                waiting.appendleft(job)
            return
        if job is None:
            return
        failure = worker.verdict or of_exit(code)
        if failure is None and cut_off:
            failure = Failure("exit", "worker", "ChannelClosed", "the model's code closed the worker's channel", "")
        if failure is None:  # killed by someone else: perhaps not the model's doing
            tries[job.id] = tries.get(job.id, 0) + 1
            if tries[job.id] < 2:
                waiting.appendleft(job)
                return
            failure = Failure("killed", "worker", "SIGKILL", "the worker was killed from outside, twice", "")
        yield JobResult(job.id, None, failure, seconds, worker.peak_mb)

    def _message(self, worker: _Worker) -> dict[str, Any] | None:
        """What a worker says; None when it has died, or says what no worker says."""
        with selectors.DefaultSelector() as selector:
            selector.register(worker.channel, selectors.EVENT_READ)
            if not selector.select(0):
                return None
        try:
            return receive(worker.channel)[0]
        except (OSError, ValueError):
            return None

    def _listen_to_parent(self) -> None:
        """Note one message of the warm parent, or its death."""
        assert self._channel is not None
        try:
            message, _ = receive(self._channel)
        except OSError:
            message = None
        if message is None:
            self._stop_parent()
        else:
            self._note(message)

    def _exit_code(self, worker: _Worker) -> int | None:
        """How a worker ended, as its parent reports it; None when it has not, or nobody knows."""
        until = time.monotonic() + PATIENCE / 5
        while worker.pid not in self._exits and self._channel is not None and time.monotonic() < until:
            with selectors.DefaultSelector() as selector:
                selector.register(self._channel, selectors.EVENT_READ)
                if selector.select(TICK):
                    self._listen_to_parent()
        return self._exits.pop(worker.pid, None)

    def _watch(self) -> None:
        """Kill workers that are past their deadline or above their memory."""
        now = time.monotonic()
        if now - self._looked < TICK:  # looking is dearer than a short job
            return
        self._looked = now
        for worker in list(self._workers.values()):
            if worker.job is None or worker.verdict is not None:
                continue
            memory = resident_mb(worker.pid)
            worker.peak_mb = max(worker.peak_mb, memory)
            if now - worker.since > self.limits.deadline_s:
                place = last_place(Path(self._scratch) / f"{worker.pid}.trace")
                text = f"longer than {self.limits.deadline_s:g} s"
                worker.verdict = Failure("timeout", "worker", "Deadline", text, place)
            elif memory > self.limits.memory_mb:
                text = f"more than {self.limits.memory_mb} MiB resident"
                worker.verdict = Failure("out_of_memory", "worker", "MemoryCap", text, "")
            if worker.verdict is not None:
                kill(worker.pid)
