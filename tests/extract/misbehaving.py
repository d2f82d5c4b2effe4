"""A job for worker tests that does what models should not. `run` is called as a capture job is."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path


def run(given, limits):
    kind = given["do"]
    log = given.get("log")
    if log:
        with open(log, "a") as handle:
            handle.write(f"{os.getpid()}\n")
    return DOES[kind](given)


def _fine(given):
    return {"pid": os.getpid(), "echo": given.get("echo")}


def _sleep(given):
    time.sleep(given.get("seconds", 60))
    return {}


def _busy(given):
    while True:
        pass


def _segfault(given):
    ctypes.string_at(0)


def _abort(given):
    os.abort()


def _exit(given):
    sys.exit(3)


def _hard_exit(given):
    os._exit(0)


def _huge_tensor(given):
    import torch

    return {"numel": torch.empty(38 * 2**30 // 4).numel()}


def _huge_bytes(given):
    return {"len": len(bytearray(38 * 2**30))}


def _leak(given):
    kept = []
    while True:
        kept.append(bytearray(os.urandom(1 << 20)))
        time.sleep(0.002)


def _flood(given):
    for _ in range(20_000):
        print("x" * 500)
        print("y" * 500, file=sys.stderr)
    return {}


def _child(given):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(given["child"]).write_text(str(child.pid))
    time.sleep(60)


def _pollute(given):
    import torch

    os.chdir("/")
    os.environ["POLLUTED"] = "yes"
    os.umask(0o777)
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    return {}


def _state(given):
    import torch

    return {
        "cwd": os.getcwd(),
        "polluted": "POLLUTED" in os.environ,
        "dtype": str(torch.get_default_dtype()),
        "grad": torch.is_grad_enabled(),
        "threads": torch.get_num_threads(),
        "offline": os.environ.get("HF_HUB_OFFLINE"),
        "proxies": [k for k in os.environ if k.lower().endswith("_proxy")],
    }


def _network(given):
    import socket

    with socket.socket() as s:
        s.settimeout(2)
        s.connect(("127.0.0.1", given["port"]))
    return {}


def _recursion(given):
    return _recursion(given)


def _error(given):
    raise ValueError(
        f"bad shape at 0x7f00deadbeef in /home/someone/lib/site-packages/timm/models/x.py, object {id(given)}"
    )


def _forked_crash(given):
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
    ctypes.string_at(0)


def _forked_answer(given):
    if os.fork() == 0:
        return {"who": "copy"}
    time.sleep(0.3)
    return {"who": "original"}


def _not_json(given):
    return {"value": object()}


def _no_exception(given):
    raise GeneratorExit("not an Exception")


def _unsayable(given):
    class UnsayableError(Exception):
        def __str__(self):
            raise RuntimeError

    raise UnsayableError


def _daemon(given):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    Path(given["child"]).write_text(str(child.pid))
    return {}


def _alarm(given):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    return {}


def _handlers(given):
    time.sleep(0.4)
    return {"ignored": signal.getsignal(signal.SIGTERM) == signal.SIG_IGN}


def _thread(given):
    threading.Thread(target=time.sleep, args=(60,)).start()
    return {"pid": os.getpid()}


def _hash(given):
    return {"hash": hash("a string")}


DOES = {name[1:]: f for name, f in list(globals().items()) if name.startswith("_") and callable(f)}
