"""Two of the kernel's own fences, through system calls that have no Python name: Landlock and seccomp.

Landlock (linux/landlock.h): after `landlock` the process reads, writes and executes below the named folders only.
seccomp (linux/seccomp.h, classic BPF): after `filter_calls` calls that look into other processes, mount, load code into
the kernel or open a network socket fail with EPERM. Both stay for all that the process starts, and cannot be undone.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterable

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2

# ------------------------------------------------------------------ Landlock
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE, _READ, _READ_DIR, _TRUNCATE, _IOCTL = 1, 2, 4, 8, 1 << 14, 1 << 15
_TCP = 3
_SCOPED = 3  # abstract Unix sockets and signals of others


def no_new_privileges() -> bool:
    return bool(_LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)


def landlock(readable: Iterable[str], devices: Iterable[str], writable: Iterable[str]) -> bool:
    """Close the file system but for these folders. False, with nothing changed, where the kernel has no Landlock."""
    version = _LIBC.syscall(_CREATE, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return False
    files = (1 << (13 if version < 2 else 14 if version < 3 else 15 if version < 5 else 16)) - 1
    words = [files, _TCP if version >= 4 else 0, _SCOPED if version >= 6 else 0]
    attributes = struct.pack("<3Q", *words)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = _LIBC.syscall(_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        return False
    try:
        _allow(ruleset, readable, files & (_EXECUTE | _READ | _READ_DIR))
        _allow(ruleset, devices, files & (_READ | _READ_DIR | _WRITE | _TRUNCATE | _IOCTL))
        _allow(ruleset, writable, files)
        return bool(_LIBC.syscall(_RESTRICT, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, paths: Iterable[str], access: int) -> None:
    for path in paths:
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # not on this machine
        try:
            mine = (
                access
                if os.path.isdir(path)
                else access & ~_READ_DIR & (_EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL)
            )
            _LIBC.syscall(_ADD, ruleset, 1, struct.pack("<Qi", mine, handle), 0)
        finally:
            os.close(handle)


# ------------------------------------------------------------------ seccomp
#: x86-64 numbers: ptrace, mount, umount2, pivot_root, chroot, (init|delete|finit)_module, kexec_load, keys,
#: unshare, setns, perf_event_open, open_by_handle_at, process_vm_*, kcmp, bpf, seccomp, userfaultfd, pidfd_getfd,
#: io_uring_*, new mount calls.
_DENIED = (
    *(101, 165, 166, 155, 161, 175, 176, 313, 246, 248, 249, 250, 272, 308, 298, 304),
    *(310, 311, 312, 321, 317, 323, 438, 425, 426, 427, 428, 429, 430, 442),
)
_SOCKET, _AF_UNIX = 41, 1
_X86_64 = 0xC000003E
_ALLOW, _EPERM = 0x7FFF0000, 0x00050001


def filter_calls() -> bool:
    """Deny the calls above from here on. False where this machine's numbers are not known or the kernel refuses."""
    if platform.machine() != "x86_64":
        return False
    program = _program()
    code = ctypes.create_string_buffer(program)
    head = struct.pack("<HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    return bool(_LIBC.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.create_string_buffer(head), 0, 0) == 0)


def _program() -> bytes:
    def load(offset: int) -> bytes:
        return struct.pack("<HBBI", 0x20, 0, 0, offset)

    def equal(value: int, then: int, otherwise: int) -> bytes:
        return struct.pack("<HBBI", 0x15, then, otherwise, value)

    def answer(value: int) -> bytes:
        return struct.pack("<HBBI", 0x06, 0, 0, value)

    # struct seccomp_data: nr at 0, arch at 4, args[0] at 16
    lines = [load(4), equal(_X86_64, 1, 0), answer(_EPERM), load(0)]
    for number in _DENIED:
        lines += [equal(number, 0, 1), answer(_EPERM)]
    # 32-bit x32 numbers have bit 30 set: jump-if-greater-or-equal
    lines += [struct.pack("<HBBI", 0x35, 0, 1, 0x40000000), answer(_EPERM)]
    lines += [equal(_SOCKET, 0, 3), load(16), equal(_AF_UNIX, 1, 0), answer(_EPERM), answer(_ALLOW)]
    return b"".join(lines)
