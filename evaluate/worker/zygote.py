"""The warm parent of workers: imports torch and Triton once, then forks a worker whenever the judge asks.

Run as `python -m evaluate.worker.zygote FD`, a fresh interpreter with one thread and a cleaned environment. Never
touches a CUDA device: a context does not survive a fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import socket
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from evaluate.worker.channel import Closed, receive, send


def main() -> None:
    """Serve the judge until it closes its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = socket.socket(fileno=int(sys.argv[1]))
    settings, _ = receive(channel)
    _warm(settings["device"])
    gc.collect()
    gc.freeze()
    send(channel, {"ready": os.getpid()})
    ended: dict[int, int] = {}
    while True:
        try:
            message, files = receive(channel, files=2)
        except Closed:
            return
        if "fork" in message:
            pid = os.fork()
            if pid == 0:
                channel.close()
                _live(message, files, settings["device"])
            for handle in files:
                os.close(handle)
            send(channel, {"pid": pid})
        else:
            send(channel, {"code": _ended(int(message["wait"]), ended)})


def _ended(pid: int, known: dict[int, int], patience: float = 5.0) -> int | None:
    """Exit status of a worker, killed if it does not end by itself."""
    limit = time.monotonic() + patience
    while time.monotonic() < limit:
        try:
            found, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return None
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -signal.SIGKILL


def _warm(device: str) -> None:
    import torch
    import triton
    import triton.language  # noqa: F401

    import evaluate.worker.sandbox
    import evaluate.worker.serve  # noqa: F401
    from evaluate.match import make_pass, rewrite
    from evaluate.worker.watch import LAUNCHES

    LAUNCHES.install()
    if device == "cpu":
        torch.set_num_threads(1)
    # The first use of these parts imports more: have it once, here.
    made = make_pass("warm", lambda x: torch.relu(x) + 1, lambda x: (x,), lambda: _warmed)
    rewrite(torch.fx.symbolic_trace(lambda x: (torch.relu(x) + 1,)), [made])
    torch._dynamo.reset()
    torch.randn(4, dtype=torch.bfloat16).double().isnan().any().item()
    torch.get_float32_matmul_precision()


def _warmed(x: Any) -> Any:
    return x


def _live(message: dict[str, Any], files: list[int], device: str) -> None:
    """Never returns."""
    from evaluate.worker.sandbox import Caps, enter
    from evaluate.worker.serve import serve

    code = 1
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        for stream in (1, 2):
            os.dup2(files[1], stream)
        scratch = Path(message["scratch"])
        for name in ("HOME", "TMPDIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
            os.environ[name] = (
                str(scratch / name.lower()) if name.endswith("DIR") and name != "TMPDIR" else str(scratch)
            )
        tempfile.tempdir = None  # asked for before, in the parent
        layers = enter(scratch, int(message["slot"]), Caps(**message["caps"]), device == "cuda", message["contained"])
        serve(socket.socket(fileno=files[0]), scratch, device, layers)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
