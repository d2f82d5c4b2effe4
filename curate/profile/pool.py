"""The workers of a run: forked from this process, watched by stage, replaced when they end.

In go hashes, out come rows, one each: the worker's own, or one of class `timeout` or `crash` for a worker that had to
be killed or died. Waiting for the device lock has no deadline; compiling and measuring have.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from typing import Any

from curate.profile.items import Items
from curate.profile.results import blank
from curate.profile.worker import Settings, serve
from evaluate.measure.device import NoDevice
from evaluate.measure.floor import Copies

#: Seconds that a worker may take from its start to `up`: a CUDA context, and the table of copies for the first.
START_SECONDS = 120.0
#: Subgraphs that a worker does before it is replaced: Dynamo and Inductor keep modules of every one.
RECYCLE_AFTER = 250
#: Seconds between looks at deadlines.
TICK = 0.5
#: Workers in a row that may fail to start before the device counts as lost.
STILLBORN = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds for one compilation and for one measurement."""

    compile_s: float = 120.0
    measure_s: float = 60.0

    def of(self, stage: str) -> float:
        return {"measure": self.measure_s, "wait": float("inf"), "start": START_SECONDS}.get(stage, self.compile_s)


@dataclass(slots=True)
class _Worker:
    process: Any
    channel: Connection
    stage: str = "start"
    since: float = 0.0
    item: str | None = None
    done: int = 0
    up: bool = False


class Pool:
    """`size` workers over `items`. Use as a context manager."""

    def __init__(self, size: int, items: Items, settings: Settings, limits: Limits):
        self.size, self.items, self.settings, self.limits = size, items, settings, limits
        self.origin: dict[str, Any] = {}
        self._fork = multiprocessing.get_context("fork")
        self._workers: list[_Worker] = []
        self._stillborn, self._why = 0, ""

    def __enter__(self) -> Pool:
        """Start the first worker and wait until it is up. Raises NoDevice."""
        try:
            self._start()
            while not self.origin:
                for row in self._turn():
                    raise NoDevice(f"the first worker ended: {row['detail']}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for worker in list(self._workers):
            self._end(worker)

    def rows(
        self, hashes: Iterable[str], until: float = float("inf"), grace_s: float = 30.0
    ) -> Iterator[dict[str, Any]]:
        """One row a hash, as they finish. After `until` (time.monotonic) no hash is handed out, and what is under way
        has `grace_s` seconds. Raises NoDevice when the device is lost: what was under way has no row."""
        waiting = deque(hashes)
        while True:
            late = time.monotonic() > until
            if late and (time.monotonic() > until + grace_s or not self._busy()):
                return
            if not waiting and not self._busy():
                return
            if not late:
                self._hand_out(waiting)
            yield from self._turn()

    # --------------------------------------------------------------- workers

    def _busy(self) -> bool:
        return any(worker.item is not None for worker in self._workers)

    def _start(self) -> None:
        ours, theirs = self._fork.Pipe()
        process = self._fork.Process(target=serve, args=(theirs, self.items, self.settings), daemon=True)
        process.start()
        theirs.close()
        self._workers.append(_Worker(process, ours, since=time.monotonic()))

    def _end(self, worker: _Worker) -> None:
        worker.channel.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(worker.process.pid, signal.SIGKILL)
        worker.process.kill()
        worker.process.join()
        self._workers.remove(worker)

    def _hand_out(self, waiting: deque[str]) -> None:
        wanted = min(self.size, len(waiting) + sum(w.item is not None for w in self._workers))
        while len(self._workers) < wanted and self._stillborn < STILLBORN:
            self._start()
        if not self._workers and waiting:
            raise NoDevice(self._why)
        for worker in self._workers:
            if worker.up and worker.item is None and waiting:
                worker.item, worker.stage, worker.since = waiting.popleft(), "record", time.monotonic()
                with contextlib.suppress(OSError):  # it died between two items: its end is heard in the next turn
                    worker.channel.send_bytes(worker.item.encode())

    # --------------------------------------------------------------- listening

    def _turn(self) -> list[dict[str, Any]]:
        """Rows of at most one tick."""
        by_channel = {worker.channel: worker for worker in self._workers}
        rows: list[dict[str, Any]] = []
        for ready in wait(list(by_channel), TICK):
            worker = by_channel[ready]  # type: ignore[index]
            try:
                rows += self._hear(worker, json.loads(worker.channel.recv_bytes()))
            except (EOFError, OSError):
                rows += self._died(worker)
        now = time.monotonic()
        for worker in list(self._workers):
            if (worker.item is not None or not worker.up) and now - worker.since > self.limits.of(worker.stage):
                rows += self._overdue(worker)
        return rows

    def _hear(self, worker: _Worker, message: dict[str, Any]) -> list[dict[str, Any]]:
        if "no_device" in message:
            self._end(worker)
            self._not_started(message["no_device"])
        elif "up" in message:
            worker.up, self._stillborn, self.origin = True, 0, message["up"]
            if message["copies"] and self.settings.copies is None:
                copies = Copies(tuple((int(size), float(us)) for size, us in message["copies"]))
                self.settings = replace(self.settings, copies=copies)
        elif "stage" in message:
            worker.stage, worker.since = message["stage"], time.monotonic()
        elif "row" in message:
            worker.item, worker.done = None, worker.done + 1
            if message["replace"] or worker.done >= RECYCLE_AFTER:
                self._end(worker)
            return [message["row"]]
        return []

    def _died(self, worker: _Worker) -> list[dict[str, Any]]:
        worker.process.join(TICK)
        code = worker.process.exitcode
        how = f"signal {-code} ({signal.Signals(-code).name})" if code and code < 0 else f"exit status {code}"
        item, stage, up = worker.item, worker.stage, worker.up
        self._end(worker)
        if not up:
            self._not_started(f"a worker ended at its start with {how}")
            return []
        return [self._row(item, "crash", stage, how)] if item is not None else []

    def _overdue(self, worker: _Worker) -> list[dict[str, Any]]:
        item, stage, up = worker.item, worker.stage, worker.up
        self._end(worker)
        if not up:
            self._not_started(f"a worker was not ready after {START_SECONDS:g} s")
            return []
        return [self._row(item, "timeout", stage, f"longer than {self.limits.of(stage):g} s")] if item else []

    def _not_started(self, why: str) -> None:
        """A worker that is up may still finish what it has; the run ends when none is left."""
        self._stillborn, self._why = self._stillborn + 1, why
        if not self.origin:
            raise NoDevice(why)

    def _row(self, item: str | None, klass: str, stage: str, detail: str) -> dict[str, Any]:
        known = {**blank(str(item), self.settings.mode), **self.origin, "seed": self.settings.seed}
        return {**known, "class": klass, "stage": stage, "detail": detail}
