"""The warm parent of capture workers: imports the libraries once, then forks a worker whenever the pool asks.

Run as `python -m extract.zygote FD`, with FD one end of a socket pair held by the pool (`extract.workers`). It is a
fresh interpreter with one thread, so forking it is safe, which forking a Dask worker or a flow would not be. It and
its workers die with the pool's process, however that dies.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import resource
import selectors
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
#: A worker whose exit was reported this way was asked to end by the pool.
DONE = 0
#: Exit status of a worker that must be replaced after an answer (its memory ran out, or its model left it).
REPLACE = 97
#: Share of the memory cap left by the imports, above which a worker is replaced after its job.
HEAVY_SHARE = 0.6

Job = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]


def send(channel: socket.socket, message: dict[str, Any], files: list[int] | None = None) -> None:
    """One length-prefixed JSON message, with open files attached if any."""
    body = json.dumps(message).encode()
    data = struct.pack("<I", len(body)) + body
    if files:
        sent = socket.send_fds(channel, [data], files)
        data = data[sent:]
    if data:
        channel.sendall(data)


def receive(channel: socket.socket, files: int = 0) -> tuple[dict[str, Any] | None, list[int]]:
    """The next message and its attached files; None at the end of the channel."""
    attached: list[int] = []
    head = b""
    while len(head) < 4:
        if files and not head:
            part, found, _, _ = socket.recv_fds(channel, 4, files)
            attached += found
        else:
            part = channel.recv(4 - len(head))
        if not part:
            return None, attached
        head += part
    (size,) = struct.unpack("<I", head)
    body = bytearray()
    while len(body) < size:
        part = channel.recv(min(1 << 20, size - len(body)))
        if not part:
            return None, attached
        body += part
    return json.loads(bytes(body)), attached


def die_with_parent(parent: int) -> None:
    """Ask the kernel for SIGKILL when the parent process dies; leave at once if it has died already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def without_network() -> bool:
    """Move into a network namespace without interfaces: as root, or through a user namespace. False if refused."""
    libc = ctypes.CDLL(None)
    return bool(libc.unshare(_CLONE_NEWNET) == 0 or libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0)


def without_new_privileges() -> bool:
    return bool(ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)


def main() -> None:
    """Serve the pool until it closes its end."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    settings, _ = receive(channel)
    if settings is None:
        return
    die_with_parent(settings["owner"])
    layers = {"no network": without_network(), "no new privileges": without_new_privileges()}
    if settings.get("probe"):
        send(channel, {"layers": layers})
        return
    for name in settings["preload"]:
        import_module(name)
    module, _, function = settings["job"].partition(":")
    job: Job = getattr(import_module(module), function)
    if "torch" in sys.modules:
        _warm_torch()
    gc.collect()
    gc.freeze()  # forked workers then never touch, and so never copy, what was imported
    send(channel, {"ready": os.getpid(), "layers": layers})
    _serve(channel, job, settings)


def _warm_torch() -> None:
    """The first use of Dynamo in a process costs seconds: have it once, before forking."""
    import torch

    torch.set_num_threads(1)
    torch.compile(torch.nn.Linear(2, 2), backend="eager")(torch.ones(1, 2))
    torch._dynamo.reset()


def _serve(channel: socket.socket, job: Job, settings: dict[str, Any]) -> None:
    wake, woken = socket.socketpair()
    wake.setblocking(False)
    woken.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    waiting = selectors.DefaultSelector()
    waiting.register(channel, selectors.EVENT_READ)
    waiting.register(woken, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fileobj is woken:
                with contextlib.suppress(BlockingIOError):
                    woken.recv(4096)
                _report_deaths(channel)
                continue
            message, files = receive(channel, files=1)
            if message is None:
                return
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                for inherited in (channel, wake, woken):
                    inherited.close()
                _work(socket.socket(fileno=files[0]), job, settings, os.getppid())
            os.close(files[0])
            send(channel, {"forked": message["fork"], "pid": pid})
            _report_deaths(channel)


def _report_deaths(channel: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        send(channel, {"exited": pid, "code": os.waitstatus_to_exitcode(status)})


def _work(channel: socket.socket, job: Job, settings: dict[str, Any], parent: int) -> None:
    """A worker's life: one job after another until the pool closes the channel."""
    code = 1
    try:
        os.setsid()
        die_with_parent(parent)
        _contain(settings)
        code = _jobs(channel, job, settings)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _contain(settings: dict[str, Any]) -> None:
    sink = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(sink, stream)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the pool decides when to end
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Not RLIMIT_AS: torch reserves far more address space than it uses. What is mapped so far does not count.
    cap = _status("VmData") * 1024 + settings["memory_mb"] * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (cap, cap))
    os.chdir(settings["scratch"])


def _jobs(channel: socket.socket, job: Job, settings: dict[str, Any]) -> int:
    import faulthandler

    from extract.failures import classify

    environment = dict(os.environ)
    own = _status("VmRSS") / 1024  # what the imports take; the rest of the cap is for jobs
    heavy_mb = own + HEAVY_SHARE * max(0.0, settings["memory_mb"] - own)
    trace = open(Path(settings["scratch"]) / f"{os.getpid()}.trace", "w+")  # noqa: SIM115 - lives as long as the worker
    while True:
        message, _ = receive(channel)
        if message is None:
            return DONE
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # peak memory counts from here
        trace.seek(0)
        trace.truncate()
        faulthandler.dump_traceback_later(settings["deadline_s"] * 0.98, file=trace)
        answer: dict[str, Any] = {"id": message["id"]}
        start, code = time.perf_counter(), None
        try:
            answer["value"] = job(message["payload"], settings)
        except SystemExit as error:
            answer["failure"], code = vars_of(classify(error, "worker")), REPLACE
        except MemoryError as error:
            answer["failure"], code = vars_of(classify(error, "worker")), REPLACE
        except Exception as error:
            answer["failure"] = vars_of(classify(error, "worker"))
        finally:
            faulthandler.cancel_dump_traceback_later()
        answer["seconds"] = time.perf_counter() - start
        answer["peak_mb"] = _status("VmHWM") / 1024
        answer["replace"] = code is not None or _status("VmRSS") / 1024 > heavy_mb
        send(channel, answer)
        if code is not None:
            return code
        _restore(environment, settings["scratch"])


def vars_of(failure: Any) -> dict[str, str]:
    return {name: getattr(failure, name) for name in ("kind", "stage", "exception", "message", "place")}


def _restore(environment: dict[str, str], scratch: str) -> None:
    """Undo what a model's code may have set for the whole process."""
    os.chdir(scratch)
    os.umask(0o022)
    os.environ.clear()
    os.environ.update(environment)
    if "torch" in sys.modules:
        import torch

        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
        torch.set_grad_enabled(True)
        torch.use_deterministic_algorithms(False)
        if torch.get_num_threads() != 1:
            torch.set_num_threads(1)
    gc.collect()


def _status(name: str) -> int:
    """A line of /proc/self/status, in KiB; 0 where there is none."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1])
    return 0


if __name__ == "__main__":
    main()
