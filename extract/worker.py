"""A capture worker from inside: one job after another, each answered once, with nothing left of it for the next.

Forked by `extract.zygote` in a session of its own; the pool (`extract.workers`) watches it from outside. Threads,
memory or a way out that a job leaves behind cost a new worker, everything else is undone here.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import resource
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from extract.channel import receive, send
from extract.failures import classify

Job = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]
#: Share of the memory cap left by the imports, above which a worker is replaced after its job.
HEAVY_SHARE = 0.6
#: Part of the deadline after which faulthandler notes where the job is.
NOTED = 0.98


def serve(channel: socket.socket, job: Job, settings: dict[str, Any]) -> int:
    """A worker's life, until the pool closes the channel or a job makes it unfit; returns the exit status."""
    scratch, own = Path(settings["scratch"]), os.getpid()
    folder = scratch / str(own)
    folder.mkdir(parents=True, exist_ok=True)
    _contain(settings["memory_mb"], folder)
    imported_mb = status_kb("VmRSS") / 1024  # the rest of the cap is for jobs
    heavy_mb = imported_mb + HEAVY_SHARE * max(0.0, settings["memory_mb"] - imported_mb)
    kept = _State(folder)
    with open(scratch / f"{own}.trace", "w+") as trace:
        send(channel, {"up": own})
        while True:
            message, _ = receive(channel)
            if message is None:
                return 0
            with contextlib.suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")  # peak memory counts from here
            trace.seek(0)
            trace.truncate()
            answer: dict[str, Any] = {"id": message["id"]}
            fit, start = True, time.perf_counter()
            try:
                faulthandler.dump_traceback_later(settings["deadline_s"] * NOTED, file=trace)
                answer["value"] = job(message["payload"], settings)
            except BaseException as error:  # SystemExit and others that are no Exception: the model's doing as well
                answer["failure"] = asdict(classify(error, "worker"))
                fit = isinstance(error, Exception) and not isinstance(error, MemoryError)
            finally:
                if os.getpid() != own:  # the job forked, and this is the copy: it has no say
                    os._exit(0)
                faulthandler.cancel_dump_traceback_later()
            answer["seconds"] = time.perf_counter() - start
            answer["peak_mb"] = status_kb("VmHWM") / 1024
            fit = kept.restore() and fit and status_kb("VmRSS") / 1024 <= heavy_mb
            answer["replace"] = not fit
            try:
                send(channel, answer)
            except (TypeError, ValueError, RecursionError) as error:  # the value is not JSON
                del answer["value"]
                send(channel, {**answer, "failure": asdict(classify(error, "worker"))})
            if not fit:
                return 0


def _contain(memory_mb: int, folder: Path) -> None:
    sink = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(sink, stream)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the pool decides when to end
    # Not RLIMIT_AS: torch reserves far more address space than it uses. What is mapped so far does not count.
    _lower(resource.RLIMIT_DATA, status_kb("VmData") * 1024 + memory_mb * 2**20)
    _lower(resource.RLIMIT_CORE, 0)
    os.chdir(folder)
    os.environ["TMPDIR"] = str(folder)


def _lower(which: int, limit: int) -> None:
    """Set a resource limit, or leave a stricter one as it is."""
    _, hard = resource.getrlimit(which)
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(which, (limit, limit))


class _State:
    """What belongs to the whole process and a job may change, as it was before the first job."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._environment = dict(os.environ)
        self._umask = os.umask(0o022)
        os.umask(self._umask)
        self._handlers = {s: signal.getsignal(s) for s in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}}
        self._streams = sys.stdin, sys.stdout, sys.stderr
        self._path, self._depth = list(sys.path), sys.getrecursionlimit()
        self._threads = threading.active_count()

    def restore(self) -> bool:
        """Undo a job's changes; False when something is left that only the end of the process undoes."""
        for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            signal.setitimer(timer, 0)
        for number, handler in self._handlers.items():
            if handler is not None and signal.getsignal(number) != handler:
                signal.signal(number, handler)
        alone = end_descendants(frozenset())
        os.environ.clear()
        os.environ.update(self._environment)
        os.umask(self._umask)
        sys.stdin, sys.stdout, sys.stderr = self._streams
        sys.path[:] = self._path
        sys.setrecursionlimit(self._depth)
        tempfile.tempdir = None
        _restore_torch()
        gc.enable()
        gc.collect()
        with contextlib.suppress(OSError):
            for entry in os.scandir(self._folder):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    os.unlink(entry)
        try:
            os.chdir(self._folder)
        except OSError:
            return False
        return alone and threading.active_count() <= self._threads


def _restore_torch() -> None:
    if "torch" not in sys.modules:
        return
    import torch

    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("highest")
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)


def end_descendants(spared: frozenset[int]) -> bool:
    """Kill and reap what runs below this process, but for the `spared` children and theirs. False: some outlived it.

    What daemonised itself is found too where this process is its subreaper.
    """
    for _ in range(50):
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True  # no children: by far the most frequent case, and cheap to know
        found = _descendants(os.getpid(), spared)
        if not found:
            return True
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in found:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)
    return False


def _descendants(top: int, spared: frozenset[int]) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, IndexError):
                parent = Path(f"/proc/{entry}/stat").read_text(errors="replace").rpartition(")")[2].split()[1]
                children.setdefault(int(parent), []).append(int(entry))
    found: list[int] = []
    below = [top]
    while below:
        below = [c for p in below for c in children.get(p, []) if c not in spared]
        found += below
    return found


def status_kb(name: str) -> int:
    """A line of /proc/self/status, in KiB; 0 where there is none."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1])
    return 0
