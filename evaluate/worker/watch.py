"""What the worker notes while a submission runs: evidence for the judge, never a verdict.

`Guard` sees every ATen operator inside a replacement (I7), and fills what is allocated there with a pattern that no
kernel writes (I5). `launches` counts Triton kernels and can make them do nothing. `audit` is Python's own audit hook,
which cannot be taken off again: attempts to reach files, processes, sockets and native code. `state` is all that a
submission could set so as to change how others run, and the functions that it could replace.
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

#: Bytes of memory that was allocated and never written: as float16, bfloat16, float32 or float64 it is a NaN.
POISON = bytes.fromhex("c5ff")
_ALLOCATES = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
#: ATen operators that a replacement may use: it allocates, fills with a constant, and views.
_PLAIN = _ALLOCATES | {
    "zeros", "zeros_like", "ones", "ones_like", "full", "full_like", "new_zeros", "new_ones", "new_full", "fill_",
    "zero_", "detach", "clone", "copy_", "_unsafe_view", "_reshape_alias", "alias", "resolve_conj", "lift_fresh",
    "_to_copy",
}  # fmt: skip


class Guard(TorchDispatchMode):
    """Notes operators that compute, and poisons fresh memory."""

    def __init__(self, poison: bool) -> None:
        super().__init__()
        self.poison, self.computed = poison, set[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        result = func(*args, **(kwargs or {}))
        if name not in _PLAIN and not func.is_view and func.namespace != "prim":
            self.computed.add(name)
        elif name in _ALLOCATES and self.poison and isinstance(result, torch.Tensor):
            _poisoned(result)
        return result


def _poisoned(fresh: torch.Tensor) -> None:
    memory = torch.empty(0, dtype=torch.uint8, device=fresh.device).set_(fresh.untyped_storage())  # type: ignore[call-overload]
    if fresh.dtype.itemsize == 1:
        memory.fill_(POISON[0])
    elif memory.numel() >= 2:
        memory[: memory.numel() // 2 * 2].view(torch.int16).fill_(int.from_bytes(POISON, "little", signed=True))


class Launches:
    """Triton kernels: how many were launched, and whether launching does anything. One for the process."""

    def __init__(self) -> None:
        self.count, self.ghost = 0, False

    def install(self) -> None:
        """Before any submission is loaded. Covers compiled kernels and those of Triton's interpreter."""
        from triton.runtime import interpreter, jit

        self._around(interpreter.GridExecutor, "__call__")
        self._around(jit.JITFunction, "run")

    def _around(self, owner: Any, name: str) -> None:
        inner = getattr(owner, name)

        def launched(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            if self.ghost:
                return None
            if not torch._C._len_torch_dispatch_stack():  # as when timed: nothing to be kept out
                return inner(*args, **kwargs)
            with _disable_current_modes():  # what a launch does inside is the launcher's, not the replacement's
                return inner(*args, **kwargs)

        setattr(owner, name, launched)


LAUNCHES = Launches()


class Replacements:
    """Puts itself around each replacement of a rewritten graph. `guarded` is set call by call."""

    def __init__(self) -> None:
        self.guarded, self.poison, self.computed, self.idle = False, True, set[str](), 0

    def around(self, replacement: Callable[..., Any]) -> Callable[..., Any]:
        def replaced(*args: Any) -> Any:
            if not self.guarded:
                return replacement(*args)
            before = LAUNCHES.count
            with Guard(self.poison) as guard:
                result = replacement(*args)
            self.computed |= guard.computed
            self.idle += LAUNCHES.count == before
            return result

        return replaced


# ------------------------------------------------------------------ audit
_EVENTS = {
    "socket.": "network", "subprocess.": "package_installation", "os.exec": "package_installation",
    "os.posix_spawn": "package_installation", "os.system": "package_installation", "os.fork": "background_thread",
    "_thread.start_new_thread": "background_thread", "ctypes.": "native_code", "mmap.": "native_code",
    "open": "filesystem", "os.listdir": "filesystem", "os.scandir": "filesystem", "os.remove": "filesystem",
    "os.rename": "filesystem", "os.mkdir": "filesystem", "os.kill": "early_exit", "signal.": "early_exit",
    "gc.": "introspection", "sys._getframe": "introspection", "sys._current_frames": "introspection",
    "sys.setprofile": "introspection", "sys.settrace": "introspection",
}  # fmt: skip
_FAMILIES = tuple(_EVENTS)
_EVENT_LIMIT = 32


class Audit:
    """Events that a submission's own files caused: between them and the event stands no file of torch or Triton."""

    def __init__(self, folder: str) -> None:
        self.folder, self.events = folder, list[tuple[str, str]]()
        self._libraries = tuple(sysconfig.get_paths()[k] for k in ("purelib", "platlib"))
        self._busy = False
        self._python = sysconfig.get_paths()["stdlib"]

    def install(self) -> None:
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if self._busy or not event.startswith(_FAMILIES) or len(self.events) >= _EVENT_LIMIT:
            return
        self._busy = True  # what is asked here causes events of its own
        try:
            self._attribute(event, args)
        finally:
            self._busy = False

    def _attribute(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and not self._foreign(args[0]):
            return
        frame = sys._getframe(2)
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(self.folder):
                family = next(f for f in _FAMILIES if event.startswith(f))
                self.events.append((_EVENTS[family], f"{event} {str(args[:1])[:120]}"))
                return
            if "importlib" in file or (file.startswith(self._libraries)):
                return
            frame = frame.f_back  # type: ignore[assignment]

    def _foreign(self, path: Any) -> bool:
        """Whether a file is neither the submission's nor part of what is installed."""
        text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else ""
        return not str(text).startswith((self.folder, self._python, sys.prefix, *self._libraries))


# ------------------------------------------------------------------ state
def state() -> dict[str, str]:
    """Settings and the identities of functions, as texts to compare."""
    found = {
        "default_dtype": torch.get_default_dtype(),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "threads": torch.get_num_threads(),
        "grad": torch.is_grad_enabled(),
        "tf32": torch.backends.cuda.matmul.allow_tf32,
        "cudnn": (torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32),
        "signals": [str(signal.getsignal(n)) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD)],
        "environment": hash(frozenset(os.environ.items())),
    }
    return {**{k: str(v) for k, v in found.items()}, **{k: str(id(v)) for k, v in _functions()}}


#: Names of functions in `state`, and what it means when one is another than before.
TIMERS = (
    "torch.cuda.Event.elapsed_time",
    "torch.cuda.Event.record",
    "time.perf_counter",
    "time.time",
    "torch.cuda.synchronize",
    "torch.cuda.Event",
)
COMPARERS = ("torch.allclose", "torch.equal", "torch.testing.assert_close", "torch.Tensor.__eq__", "torch.isclose")


def _functions() -> Iterator[tuple[str, Any]]:
    yield "time.perf_counter", time.perf_counter
    yield "time.time", time.time
    yield "torch.cuda.synchronize", torch.cuda.synchronize
    yield "torch.cuda.Event", torch.cuda.Event
    yield "torch.cuda.Event.elapsed_time", torch.cuda.Event.elapsed_time
    yield "torch.cuda.Event.record", torch.cuda.Event.record
    yield "statistics.median", statistics.median
    yield "torch.allclose", torch.allclose
    yield "torch.equal", torch.equal
    yield "torch.isclose", torch.isclose
    yield "torch.testing.assert_close", torch.testing.assert_close
    yield "torch.Tensor.__eq__", torch.Tensor.__eq__
    for name in ("empty", "empty_like", "zeros", "add", "matmul", "relu"):
        yield f"torch.{name}", getattr(torch, name)
    yield "torch.Tensor.__getattribute__", torch.Tensor.__getattribute__


def means(changed: str) -> str:
    """The exploit that a change of state stands for."""
    if changed in TIMERS:
        return "timer_patch"
    if changed == "statistics.median":
        return "statistics_patch"
    if changed == "signals":
        return "early_exit"
    if changed in COMPARERS:
        return "comparison_patch"
    return "monkeypatch" if changed.startswith("torch.") else "global_state"


def threads() -> int:
    """Threads of this process, whoever started them."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


@contextmanager
def stopped_launches(ghost: bool) -> Iterator[None]:
    LAUNCHES.ghost = ghost
    try:
        yield
    finally:
        LAUNCHES.ghost = False
