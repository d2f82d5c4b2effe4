"""Containment of one worker, from inside, before it reads a line of a submission.

`enter` is called in a freshly forked process and forks once more: what runs the submission is process 1 of a process
namespace of its own, so that when it ends everything that it started ends. Each layer is tried, and the list of those
that hold is told to the judge, which stores it with every result. What needs root, or a user namespace, is missing
where neither is to be had; nothing here is assumed.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evaluate.worker import kernel

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_MS_BIND, _MS_REC, _MS_PRIVATE, _MS_MOVE = 4096, 16384, 1 << 18, 8192
_RECURSIVE, _RDONLY = 0x8000, 1
_PDEATHSIG, _DUMPABLE = 1, 4
#: First of a hundred user ids that nobody has.
FIRST_USER = 60_100

LAYERS = (
    "own processes", "no network", "own files: read-only but scratch", "unprivileged user", "no new privileges",
    "landlock", "seccomp", "not dumpable", "limits",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Caps:
    """memory_mb: of data, on a CPU alone (a CUDA context reserves more than it uses). file_mb: one file, and all of
    scratch. processes: threads counted. cpu_s: processor seconds."""

    memory_mb: int = 4096
    file_mb: int = 2048
    processes: int = 256
    cpu_s: int = 1800


def enter(scratch: Path, slot: int, caps: Caps, cuda: bool, contained: bool = True) -> list[str]:
    """Returns, in the process that is to go on, the layers that are active; the process that called never returns."""
    if not contained:
        os.chdir(scratch)
        return []
    root = os.getuid() == 0
    active: list[str] = []
    spaces = _NEWNS | _NEWIPC | _NEWPID | _NEWNET
    apart = _LIBC.unshare(spaces) == 0 or (not root and _own_user(spaces))
    if apart:
        active += ["own processes", "no network"]
    _keep(apart)
    if apart and _mounts(scratch, caps, root):
        active.append("own files: read-only but scratch")
    os.chdir(scratch)
    readable, devices = _needed()
    _limits(caps, cuda)
    if root and _drop(FIRST_USER + slot % 100, scratch):
        active.append("unprivileged user")
    _LIBC.prctl(_PDEATHSIG, signal.SIGKILL)
    if kernel.no_new_privileges():
        active.append("no new privileges")
    if kernel.landlock(readable, devices, [str(scratch), "/dev/shm"]):
        active.append("landlock")
    if kernel.filter_calls():
        active.append("seccomp")
    if _LIBC.prctl(_DUMPABLE, 0, 0, 0, 0) == 0:
        active.append("not dumpable")
    return [*active, "limits"]


def _own_user(spaces: int) -> bool:
    """A user namespace, and the others inside it: what a user without privileges may do on most kernels."""
    user, group = os.getuid(), os.getgid()
    if _LIBC.unshare(_NEWUSER | spaces) != 0:
        return False
    with suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return True


def _keep(apart: bool) -> None:
    """Fork; the parent waits and ends as the child did, so that the judge sees how the submission ended."""
    child = os.fork()
    if child == 0:
        _LIBC.prctl(_PDEATHSIG, signal.SIGKILL)
        return
    os.closerange(3, 256)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if not apart:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with suppress(OSError):
            os.killpg(0, signal.SIGTERM)
    os._exit(code if code >= 0 else 128 - code)


def _mounts(scratch: Path, caps: Caps, root: bool) -> bool:
    """A /proc of its own, a scratch of bounded size, everything else read-only; folders that only root may enter are
    covered, with the interpreter put back where it was."""
    if _LIBC.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None) != 0:
        return False
    size = f"size={caps.file_mb}m,mode=0777".encode()
    if _LIBC.mount(b"tmpfs", os.fsencode(scratch), b"tmpfs", 0, size) != 0:
        return False
    _LIBC.mount(b"proc", b"/proc", b"proc", 0, None)
    if root:
        _open_up(scratch)
    read_only = struct.pack("<4Q", _RDONLY, 0, 0, 0)
    if _LIBC.syscall(442, -100, b"/", _RECURSIVE, read_only, ctypes.c_size_t(32)) != 0:
        return False
    for path in (os.fsencode(scratch), b"/dev"):
        _LIBC.syscall(442, -100, path, _RECURSIVE, struct.pack("<4Q", 0, _RDONLY, 0, 0), ctypes.c_size_t(32))
    return True


def _open_up(scratch: Path) -> None:
    for prefix in {Path(sys.base_prefix), Path(sys.prefix).resolve()}:
        closed = next((p for p in reversed(prefix.parents) if p.exists() and not p.stat().st_mode & 0o001), None)
        if closed is None:
            continue
        kept = scratch / ".prefix"
        kept.mkdir()
        _LIBC.mount(os.fsencode(prefix), os.fsencode(kept), None, _MS_BIND | _MS_REC, None)
        _LIBC.mount(b"tmpfs", os.fsencode(closed), b"tmpfs", 0, b"size=1m,mode=0755")
        prefix.mkdir(parents=True)
        _LIBC.mount(os.fsencode(kept), os.fsencode(prefix), None, _MS_MOVE, None)
        kept.rmdir()


def _needed() -> tuple[list[str], list[str]]:
    """Folders to read: the interpreter and what is installed with it, not the checkout; and devices."""
    own = Path(__file__).resolve().parents[2]
    installed = [p for p in sys.path if p and Path(p).resolve() != own and Path(p).is_dir()]
    system = ["/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/proc", "/sys", "/opt", "/run/nvidia-persistenced"]
    return [sys.prefix, sys.base_prefix, *installed, *system], ["/dev"]


def _drop(user: int, scratch: Path) -> bool:
    """Become a user that owns nothing but scratch, if the interpreter can be read as that user."""
    os.chown(scratch, user, user)
    probe = os.fork()
    if probe == 0:
        try:
            _become(user)
            os._exit(0 if Path(os.__file__).read_bytes() else 1)
        except BaseException:
            os._exit(1)
    if os.waitpid(probe, 0)[1] != 0:
        return False
    _become(user)
    return True


def _become(user: int) -> None:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def _limits(caps: Caps, cuda: bool) -> None:
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: caps.file_mb << 20,
        resource.RLIMIT_NPROC: caps.processes,
        resource.RLIMIT_CPU: caps.cpu_s,
        resource.RLIMIT_NOFILE: 512,
    }
    if not cuda:
        wanted[resource.RLIMIT_DATA] = caps.memory_mb << 20
    for limit, value in wanted.items():
        with suppress(OSError, ValueError):
            resource.setrlimit(limit, (value, value))
