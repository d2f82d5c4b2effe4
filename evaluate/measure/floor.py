"""The least time a subgraph can take: the bytes it must move, and what a plain copy of as many bytes takes.

In go a module and its inputs (fake ones suffice), out come the bytes that must be read and written; and, from a table
of measured copies, the time below which no implementation can be believed.

Read: of each input's memory, the elements that some operator other than a view reaches, once; what a gather-like
operator reads of its source is at most what it yields. Written: each output's memory once, not that of outputs that are
views of inputs; and inputs that are mutated. Elements repeated by a stride of 0 count once.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from evaluate.measure.compare import leaves
from evaluate.measure.device import Device
from evaluate.measure.graphs import replays

#: ATen operators that read only the elements of their first tensor that an index names.
_GATHERS = {"embedding", "index", "index_select", "gather", "take", "_unsafe_index"}
#: Views that their schemas do not call so.
_VIEWS = {"_unsafe_view", "detach", "lift_fresh"}
#: Bytes moved by the copies of the table: 1 KiB to 1 GiB.
SIZES = tuple(2**k for k in range(10, 31, 2))
_REPEATS, _SAMPLES = 10, 12


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes that must be read and written at least."""

    read: int
    written: int

    @property
    def total(self) -> int:
        return self.read + self.written


class _Reads(TorchDispatchMode):
    """Notes which parts of which inputs' memory operators other than views read or write."""

    def __init__(self, owners: Mapping[int, int]):
        super().__init__()
        self.owners = owners  # address of the storage object -> its bytes
        self.read: dict[int, dict[tuple[Any, ...], int]] = {}
        self.written: dict[int, dict[tuple[Any, ...], int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        schema = func._schema
        if func.is_view or func.namespace == "prim" or func.overloadpacket.__name__ in _VIEWS:
            return result  # a view, or a question about the tensor (its device): no element is read
        yielded = sum(_extent(t) for t in tree_leaves(result) if isinstance(t, torch.Tensor))
        gathers = func.overloadpacket.__name__ in _GATHERS
        for position, argument in enumerate((*args, *kwargs.values())):
            named = schema.arguments[position] if position < len(args) else None
            writes = named is not None and named.alias_info is not None and named.alias_info.is_write
            for tensor in tree_leaves(argument):
                if isinstance(tensor, torch.Tensor) and (key := _storage(tensor)) in self.owners:
                    size = min(_extent(tensor), yielded) if gathers and position == 0 else _extent(tensor)
                    place = (tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.dtype)
                    (self.written if writes else self.read).setdefault(key, {})[place] = size
                    if writes:
                        self.read.setdefault(key, {})[place] = size
        return result


def bytes_moved(module: Callable[..., Any], inputs: Sequence[Any]) -> Moved:
    """Bytes that `module(*inputs)` must move. Runs it once: give fake tensors to keep the device out of it."""
    owners: dict[int, int] = {}
    for value in inputs:
        if isinstance(value, torch.Tensor):
            owners[_storage(value)] = max(owners.get(_storage(value), 0), _extent(value))
    with torch.no_grad(), _Reads(owners) as seen:
        outputs = module(*inputs)
    read = sum(min(owners[key], sum(places.values())) for key, places in seen.read.items())
    written = sum(min(owners[key], sum(places.values())) for key, places in seen.written.items())
    fresh: dict[int, int] = {}
    for tensor in leaves(outputs):
        if isinstance(tensor, torch.Tensor) and (key := _storage(tensor)) not in owners:
            fresh[key] = max(fresh.get(key, 0), _extent(tensor))
    return Moved(read, written + sum(fresh.values()))


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _extent(tensor: torch.Tensor) -> int:
    """Bytes of the distinct elements of a tensor."""
    sizes = [int(s) for s, t in zip(tensor.shape, tensor.stride(), strict=True) if t != 0]
    return math.prod(sizes) * tensor.element_size() if tensor.numel() else 0


@dataclass(frozen=True, slots=True)
class Copies:
    """Measured times of plain copies on one device: (bytes moved, microseconds), ascending."""

    points: tuple[tuple[int, float], ...]

    def floor_us(self, moved: int) -> float:
        """Time of a copy that moves as many bytes: linear between measured sizes, proportional above the last."""
        sizes = [size for size, _ in self.points]
        place = bisect.bisect_left(sizes, moved)
        if place == 0:
            return self.points[0][1]
        low, high = self.points[place - 1], self.points[min(place, len(sizes) - 1)]
        if low == high:
            return low[1] * moved / low[0]
        return low[1] + (high[1] - low[1]) * (moved - low[0]) / (high[0] - low[0])

    @property
    def bandwidth_gbps(self) -> float:
        """Bytes moved by the largest copy over its time, in GB/s."""
        size, us = self.points[-1]
        return size / us / 1e3

    @property
    def launch_us(self) -> float:
        """Time of the smallest copy: launching one kernel and one visit to memory."""
        return self.points[0][1]


def measure_copies(device: Device, sizes: Sequence[int] = SIZES) -> Copies:
    """Time an element-wise kernel (negation, float32) that reads and writes half of each size; L2 flushed, as in
    `evaluate.measure.graphs.replays`, which is the clock that `floor_us` is compared with. CUDA only."""
    points = []
    for size in sizes:
        source = torch.ones(max(size // 8, 1), device=device.kind)
        target = torch.empty_like(source)
        call = _negation(source, target)
        call()
        repeats = _REPEATS if size < 2**26 else 2
        timing = replays({"copy": call}, device, repeats, _SAMPLES)["copy"]
        if not timing.samples:  # throttled from the first copy on: wait for nothing, take it once more
            timing = replays({"copy": call}, device, repeats, _SAMPLES)["copy"]
        if timing.samples:
            points.append((size, timing.median_us))
    if not points:
        raise RuntimeError("the device is throttled: no copy could be timed")
    return Copies(tuple(points))


def _negation(source: torch.Tensor, target: torch.Tensor) -> Callable[[], object]:
    return lambda: torch.neg(source, out=target)
