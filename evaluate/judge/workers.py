"""Workers as the judge sees them: asked with a nonce and a deadline, killed with all they started, replaced by others.

`Workers` owns the warm parent; `Workers.life` is one worker for one (submission, task). What a worker prints goes to a
memory file of one mebibyte that cannot grow, kept and never parsed.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluate.worker.channel import Closed, Garbled, Late, receive, send
from evaluate.worker.sandbox import Caps
from evaluate.worker.tensors import memory_file

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 120.0
OUTPUT_BYTES = 2**20


class Ended(Exception):
    """The worker is no more, or what it says is not to be used. how: `late`, `died`, `garbled`. code: of its exit."""

    def __init__(self, how: str, detail: str, code: int | None = None):
        super().__init__(detail)
        self.how, self.code = how, code


class CannotStart(Exception):
    """Our own fault or the machine's: the warm parent does not come up."""


@dataclass(slots=True)
class Life:
    """One worker. layers: containment that holds."""

    owner: Workers
    pid: int
    channel: socket.socket
    printed: int
    scratch: Path
    layers: list[str]

    def ask(self, verb: str, timeout: float, files: list[int] | None = None, **message: Any) -> dict[str, Any]:
        """The worker's answer. Raises Ended."""
        nonce = secrets.token_hex(8)
        try:
            send(self.channel, {"verb": verb, "nonce": nonce, **message}, files)
            answer, extra = receive(self.channel, timeout)
        except Late:
            self.kill()
            raise Ended("late", f"{verb}: longer than {timeout:g} s") from None
        except Closed:
            code = self.owner.ended(self)
            raise Ended("died", f"{verb}: the worker ended with {_how(code)}", code) from None
        except Garbled as error:
            self.kill()
            raise Ended("garbled", f"{verb}: {error}") from None
        for handle in extra:
            os.close(handle)
        if answer.get("nonce") != nonce:
            self.kill()
            raise Ended("garbled", f"{verb}: an answer without the question's nonce")
        return answer

    def kill(self) -> None:
        for pid in [*_below(self.pid), self.pid]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def said(self) -> str:
        """What it printed."""
        return os.pread(self.printed, OUTPUT_BYTES, 0).rstrip(b"\0").decode(errors="replace")


class Workers:
    """The warm parent. Use as a context manager; raises CannotStart on entry."""

    def __init__(self, device: str, caps: Caps | None = None, contained: bool = True, interpret: bool | None = None):
        self.device, self.caps, self.contained = device, caps or Caps(), contained
        self.interpret = device == "cpu" if interpret is None else interpret
        self._slot = os.getpid() % 100

    def __enter__(self) -> Workers:
        self.folder = Path(tempfile.mkdtemp(prefix="passnet-judge-"))
        self.folder.chmod(0o711)
        ours, theirs = socket.socketpair()
        self._log = open(self.folder / "zygote.log", "wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "evaluate.worker.zygote", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        theirs.close()
        self._channel = ours
        try:
            send(ours, {"device": self.device})
            receive(ours, START_SECONDS)
        except (Closed, Late, Garbled) as error:
            said = (self.folder / "zygote.log").read_text(errors="replace").strip().splitlines()[-1:]
            self.__exit__()
            raise CannotStart(f"workers do not start: {said[0] if said else error}") from None
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()
        self._process.kill()
        self._process.wait()
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def life(self) -> Iterator[Life]:
        """A new worker, ended with everything it started on the way out. Raises CannotStart."""
        self._slot += 1
        scratch = Path(tempfile.mkdtemp(prefix="life-", dir=self.folder))
        ours, theirs = socket.socketpair()
        printed = memory_file("printed", OUTPUT_BYTES)
        message = {
            "fork": True,
            "scratch": str(scratch),
            "slot": self._slot,
            "caps": asdict(self.caps),
            "contained": self.contained,
        }
        life = None
        try:
            send(self._channel, message, [theirs.fileno(), printed])
            theirs.close()
            pid = int(receive(self._channel, START_SECONDS)[0]["pid"])
            life = Life(self, pid, ours, printed, scratch, [])
            life.layers = [str(v) for v in receive(ours, START_SECONDS)[0]["up"]]
            yield life
        except (Closed, Late, Garbled) as error:
            said = life.said().strip().splitlines()[-1:] if life else []
            raise CannotStart(f"a worker does not start: {said[0] if said else error}") from None
        finally:
            ours.close()
            if life is not None:
                life.kill()
                with contextlib.suppress(Closed, Late, Garbled):
                    self.ended(life)
            os.close(printed)
            shutil.rmtree(scratch, ignore_errors=True)

    def ended(self, life: Life) -> int | None:
        send(self._channel, {"wait": life.pid})
        code = receive(self._channel, 30.0)[0]["code"]
        return None if code is None else int(code)

    def _environment(self) -> dict[str, str]:
        kept = (
            "PATH",
            "LANG",
            "LC_ALL",
            "LD_LIBRARY_PATH",
            "CUDA_HOME",
            "CUDA_VISIBLE_DEVICES",
            "NVIDIA_VISIBLE_DEVICES",
        )
        found = {k: os.environ[k] for k in kept if k in os.environ}
        found |= {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        if self.interpret:
            found |= {"TRITON_INTERPRET": "1"}
        if self.device == "cpu":
            found |= {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        return found


@functools.cache
def containment() -> tuple[str, ...]:
    """The containment layers that hold on this machine, found by starting a worker."""
    with Workers("cpu") as workers, workers.life() as life:
        return tuple(life.layers)


def _below(pid: int) -> list[int]:
    """Descendants of a process, deepest last."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                text = Path(f"/proc/{name}/stat").read_text()
                parents.setdefault(int(text.rpartition(")")[2].split()[1]), []).append(int(name))
    found, waiting = [], [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def _how(code: int | None) -> str:
    if code is None:
        return "an unknown status"
    number = -code if code < 0 else code - 128 if code > 128 else 0
    return (
        f"signal {signal.Signals(number).name}"
        if number in signal.valid_signals() and number
        else f"exit status {code}"
    )
