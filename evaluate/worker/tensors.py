"""Values as bytes in a memory file, and back: how inputs reach a worker and outputs reach the judge.

In go tensors and plain numbers, out come `specs` (JSON: dtype, shape, strides, place) and bytes. The layout is that of
memory: strides are kept, gaps and all. A reader checks every spec against the file's size before it looks.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Sequence
from typing import Any

import torch

from warehouse.graph.literals import DTYPES

_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_ALIGN = 64


class BadSpec(ValueError):
    """A description of a tensor that does not fit the file. One line."""


def reach(shape: Sequence[int], stride: Sequence[int]) -> int:
    """Elements from the first to the last in memory."""
    if math.prod(shape) == 0:
        return 0
    return 1 + sum((s - 1) * t for s, t in zip(shape, stride, strict=True))


def spec(value: Any, at: int = 0) -> dict[str, Any]:
    """What describes one value. Plain numbers describe themselves."""
    if not isinstance(value, torch.Tensor):
        return {"plain": value}
    return {"dtype": _NAMES[value.dtype], "shape": [*value.shape], "stride": [*value.stride()], "at": at}


def size_of(values: Sequence[Any]) -> int:
    """Bytes that `pack` will need."""
    return sum(_round(_bytes(v)) for v in values if isinstance(v, torch.Tensor))


def memory_file(name: str, size: int, sealed: bool = True) -> int:
    """A file in memory of exactly `size` bytes; when sealed nobody can make it larger or smaller."""
    handle = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(handle, max(size, 1))
    if sealed:
        import fcntl

        fcntl.fcntl(handle, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
    return handle


def pack(values: Sequence[Any], handle: int) -> list[dict[str, Any]]:
    """Write host tensors into a memory file made for them; returns their specs. Raises BadSpec when they do not fit."""
    room = os.fstat(handle).st_size
    needed = size_of(values)
    if needed > room:
        raise BadSpec(f"{needed} bytes for a file of {room}")
    specs, at = [], 0
    with mmap.mmap(handle, room) as memory:
        view = torch.frombuffer(memory, dtype=torch.uint8)
        for value in values:
            specs.append(spec(value, at))
            if isinstance(value, torch.Tensor) and (count := _bytes(value)):
                view[at : at + count].copy_(_flat(value))
                at += _round(count)
        del view
    return specs


def unpack(specs: Sequence[dict[str, Any]], handle: int) -> list[Any]:
    """Copies of the values in a memory file, on the host. Raises BadSpec for a spec that lies outside it."""
    room = os.fstat(handle).st_size
    with mmap.mmap(handle, room, flags=mmap.MAP_PRIVATE) as memory:
        view = torch.frombuffer(memory, dtype=torch.uint8)
        values = [_taken(s, view) for s in specs]
        del view
    return values


def _taken(described: Any, view: torch.Tensor) -> Any:
    if not isinstance(described, dict):
        raise BadSpec("a spec that is no object")
    if "plain" in described:
        return described["plain"]
    dtype = DTYPES.get(described.get("dtype", ""))
    shape, stride, at = described.get("shape"), described.get("stride"), described.get("at")
    if dtype is None or not _sizes(shape) or not _sizes(stride) or len(shape) != len(stride) or not _sizes([at]):
        raise BadSpec(f"a spec of {str(described)[:80]}")
    if math.prod(shape) > view.numel() * 8 and 0 not in stride:
        raise BadSpec("more elements than the file holds")
    elements = reach(shape, stride)
    if at + elements * dtype.itemsize > view.numel():
        raise BadSpec(f"{elements} elements of {dtype} at {at} in a file of {view.numel()} bytes")
    flat = torch.empty(elements, dtype=dtype)
    if elements:
        flat.view(torch.uint8).copy_(view[at : at + elements * dtype.itemsize])
    return flat.as_strided(shape, stride)


def _sizes(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= 64 and all(type(v) is int and 0 <= v < 2**48 for v in value)


def _flat(value: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor's stretch of memory."""
    value = value.detach().resolve_conj().resolve_neg()
    elements = reach(value.shape, value.stride())
    return value.as_strided((elements,), (1,), value.storage_offset()).view(torch.uint8)


def _bytes(value: torch.Tensor) -> int:
    return reach(value.shape, value.stride()) * value.dtype.itemsize


def _round(count: int) -> int:
    return -(-count // _ALIGN) * _ALIGN
