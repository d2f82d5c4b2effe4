"""The warm parent of capture workers: imports the libraries once, then forks a worker whenever the pool asks.

Run as `python -m extract.zygote FD`, with FD one end of a socket pair held by the pool (`extract.workers`). It is a
fresh interpreter with one thread, so forking it is safe, which forking a Dask worker or a flow would not be. It and
all that its workers started die with the pool's process, however that dies.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import selectors
import shutil
import signal
import socket
import sys
import traceback
from importlib import import_module
from typing import Any

from extract.channel import receive, send

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000


def die_with_parent(parent: int) -> None:
    """Ask the kernel for SIGKILL when the thread that started this process ends; leave if the parent has already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def without_network() -> bool:
    """Move into a network namespace without interfaces: as root, or through a user namespace. False if refused."""
    libc = ctypes.CDLL(None)
    return bool(libc.unshare(_CLONE_NEWNET) == 0 or libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0)


def without_new_privileges() -> bool:
    return bool(ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)


def adopting_orphans() -> bool:
    """Become the parent of descendants that daemonise themselves, so that they can be found and ended."""
    return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def main() -> None:
    """Serve the pool until it closes its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the pool decides what it means
    channel = socket.socket(fileno=int(sys.argv[1]))
    settings, _ = receive(channel)
    if settings is None:
        return
    die_with_parent(settings["owner"])
    layers = {
        "no network": without_network(),
        "no new privileges": without_new_privileges(),
        "no orphans": adopting_orphans(),
    }
    if settings.get("probe"):
        send(channel, {"layers": layers})
        return
    try:
        for name in settings["preload"]:
            import_module(name)
        module, _, function = settings["job"].partition(":")
        job = getattr(import_module(module), function)
        from extract.worker import end_descendants

        if "torch" in sys.modules:
            _warm_torch()
    except Exception as error:
        send(channel, {"failed": f"{type(error).__name__}: {error}"[:500]})
        return
    gc.collect()
    gc.freeze()  # forked workers then never touch, and so never copy, what was imported
    # From here on the end of the channel tells of the owner's death. The kernel's signal would come too early: at the
    # end of the thread that started the pool, which need not be the end of the process.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, 0)
    try:
        send(channel, {"ready": os.getpid(), "layers": layers})
        _serve(channel, job, settings)
    except OSError:
        pass  # the owner died while it was written to
    finally:
        end_descendants(frozenset())
        shutil.rmtree(settings["scratch"], ignore_errors=True)


def _warm_torch() -> None:
    """The first use of Dynamo in a process costs seconds: have it once, before forking."""
    import torch

    torch.set_num_threads(1)
    torch.compile(torch.nn.Linear(2, 2), backend="eager")(torch.ones(1, 2))
    torch._dynamo.reset()


def _serve(channel: socket.socket, job: Any, settings: dict[str, Any]) -> None:
    wake, woken = socket.socketpair()
    wake.setblocking(False)
    woken.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    waiting = selectors.DefaultSelector()
    waiting.register(channel, selectors.EVENT_READ)
    waiting.register(woken, selectors.EVENT_READ)
    owner = _watched(settings["owner"])
    if owner is not None:
        waiting.register(owner, selectors.EVENT_READ)
    workers: set[int] = set()
    parent = os.getpid()
    while True:
        for key, _ in waiting.select():
            if key.fileobj is woken:
                with contextlib.suppress(BlockingIOError):
                    woken.recv(4096)
                _report_deaths(channel, workers)
                continue
            if key.fileobj == owner:
                return  # also when a child of the owner still holds the other end of the channel
            message, files = receive(channel, files=1)
            if message is None:
                return
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                for inherited in (channel, wake, woken, waiting):
                    inherited.close()
                _become_worker(files[0], job, settings, parent)
            os.close(files[0])
            workers.add(pid)
            send(channel, {"forked": message["fork"], "pid": pid})
            _report_deaths(channel, workers)


def _watched(pid: int) -> int | None:
    """A file that becomes readable when the process ends; None where the kernel has no such thing."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return None


def _report_deaths(channel: socket.socket, workers: set[int]) -> None:
    """Tell the pool which workers ended, and end what they left running."""
    from extract.worker import end_descendants

    ended = False
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == 0:
            break
        if pid in workers:
            ended = True
            workers.discard(pid)
            send(channel, {"exited": pid, "code": os.waitstatus_to_exitcode(status)})
    if ended:
        end_descendants(frozenset(workers))


def _become_worker(handle: int, job: Any, settings: dict[str, Any], parent: int) -> None:
    """Never returns: the worker's life, in a session of its own."""
    from extract.worker import serve

    code = 1
    try:
        os.setsid()
        die_with_parent(parent)
        adopting_orphans()
        code = serve(socket.socket(fileno=handle), job, settings)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
