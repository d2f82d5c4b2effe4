"""The edge to the operating system under the worker pool: starting the warm parent, killing, reading memory, and
what the end of a process means."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil

from extract.channel import receive, send
from extract.failures import clean_text
from extract.model import Failure


def containment() -> dict[str, bool]:
    """Which layers of isolation are active on this machine, by trying them."""
    process, channel = launch({"probe": True})
    try:
        answer, _ = receive(channel)
    finally:
        channel.close()
        process.kill()
        process.wait()
    layers = dict((answer or {}).get("layers", dict.fromkeys(("no network", "no new privileges", "no orphans"), False)))
    peaks = os.access("/proc/self/clear_refs", os.W_OK)
    return {**layers, "own session, deadline, memory cap": True, "peak memory per model": peaks}


def launch(settings: dict[str, Any]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    environment = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    offline = dict.fromkeys(("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"), "1")
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    # A worker that touches a real device would break every worker forked after it; captures need none.
    offline["CUDA_VISIBLE_DEVICES"] = ""
    # One order of every set of strings, whatever the worker: graphs and messages must not depend on it.
    offline["PYTHONHASHSEED"] = "0"
    environment |= {**offline, **threads, "TOKENIZERS_PARALLELISM": "false", "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "extract.zygote", str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    theirs.close()
    send(ours, {"owner": os.getpid(), **settings})
    return process, ours


def kill(pid: int) -> None:
    """Kill a worker and all that it started, in its process group or out of it."""
    if not pid:
        return
    below: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        below = psutil.Process(pid).children(recursive=True)
    for end in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            end(pid, signal.SIGKILL)
    for process in below:
        with contextlib.suppress(psutil.Error):
            process.kill()


def resident_mb(pid: int) -> float:
    """Resident memory of a process and its children, MiB."""
    try:
        process = psutil.Process(pid)
        total = process.memory_info().rss
        for child in process.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                total += child.memory_info().rss
    except psutil.Error:
        return 0.0
    return float(total) / 2**20


def of_exit(code: int | None) -> Failure | None:
    """The failure that an exit without an answer means; None for a kill from outside."""
    if code is None or code in (-signal.SIGKILL, -signal.SIGTERM):
        return None
    if code < 0:
        name = signal.Signals(-code).name
        return Failure("crash", "worker", name, f"the worker died of {name}", "")
    return Failure("exit", "worker", "SystemExit", f"the model's code ended the worker with status {code}", "")


def last_place(trace: Path) -> str:
    """The innermost frame outside torch of what faulthandler wrote shortly before the deadline."""
    try:
        text = trace.read_text(errors="replace")
    except OSError:
        return ""
    frames = re.findall(r'File "([^"]+)", line (\d+) in (\S+)', text.split("\n\n")[0] + text)
    own = [
        f for f in frames if "/torch/" not in f[0] and not f[0].endswith(("/extract/zygote.py", "/extract/worker.py"))
    ]
    file, line, name = (own or frames or [("", "", "")])[0]
    return f"{clean_text(file)}:{line} in {name}" if file else ""
