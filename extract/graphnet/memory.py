"""What calls of operators on fake tensors gave, remembered: the layers of a model, and of its kin, repeat each other.

The key of a call is its row's own text (operator and literals) with the sizes, strides, dtype and device of every
operand; the answer is the same description of its results, from which new fakes are made at a fraction of the cost of
running the operator. Left out are calls that write or draw, yield anything but tensors, or take a value that is not
fixed by its description (a symbol, a number read from a tensor).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._mode_utils import no_dispatch

from warehouse.graph import operators
from warehouse.graph.record import GraphRecord, Node

#: Calls remembered; beyond, all are forgotten.
MOST = 200_000
#: A tensor that such a method reshapes in place may be another name of one remembered apart.
_RESHAPES = re.compile(
    r"torch\.(Tensor\.)?(t|transpose|swapaxes|swapdims|squeeze|unsqueeze|resize|resize_as|set|as_strided)_"
)
_REFERENCE = re.compile(r'"%([1-9]\d*)"')
_UNKNOWN = object()

Described = Any  # (dtype, sizes, strides, device) of a tensor; a tuple of them; None


def described(value: Any) -> Described:
    """What stands for `value` in a key; LookupError when nothing can."""
    if isinstance(value, FakeTensor):
        if value.constant is not None or value.layout != torch.strided:
            raise LookupError
        shape, stride = tuple(value.shape), value.stride()
        if any(type(s) is not int for s in (*shape, *stride)):
            raise LookupError
        return value.dtype, shape, stride, value.device
    if value is None:
        return None
    if type(value) in (tuple, list):
        return (type(value), *(described(v) for v in value))
    raise LookupError


class Memory:
    """Results by call. One lives as long as its worker process."""

    def __init__(self) -> None:
        self.known: dict[Any, Described] = {}

    def learn(self, key: Any, value: Any) -> None:
        try:
            found = described(value)
        except LookupError:
            return
        if found is not None:
            if len(self.known) >= MOST:
                self.known.clear()
            self.known[key] = found


class Graph:
    """One graph while its calls are made: what stands for the value of each row, and whether memory serves at all."""

    def __init__(self, memory: Memory, record: GraphRecord):
        self.memory = memory
        self.values: list[Described] = []
        self.serves = not any(
            _RESHAPES.fullmatch(node.target) or operators.LISTED.get(node.target, ("",))[0] == "region"
            for node in record.nodes  # a region (autocast) changes what calls yield
        )

    def result(self, at: int, row: Node, mode: FakeTensorMode, make: Callable[[], Any]) -> Any:
        """What row `at` yields: remembered, or made by `make` and learnt."""
        key = self._key(at, row) if self.serves else None
        if key is None:
            return make()
        found = self.memory.known.get(key)
        if found is not None:
            with no_dispatch():
                return _made(found, mode)
        value = make()
        self.memory.learn(key, value)
        return value

    def note(self, at: int, value: Any) -> None:
        """Keep what stands for the value of row `at`; rows come in order."""
        try:
            self.values.append(described(value) if self.serves else _UNKNOWN)
        except LookupError:
            self.values.append(_UNKNOWN)

    def _key(self, at: int, row: Node) -> Any:
        if row.effect is not None:  # it writes or draws: told call by call, by its arguments
            return None
        text = f"{row.target}\0{row.args}\0{row.kwargs}"
        if '"str":"%' in text:  # a literal that looks like a reference
            return None
        operands = [self.values[at - int(distance)] for distance in _REFERENCE.findall(text)]
        if any(operand is _UNKNOWN for operand in operands):
            return None
        return _REFERENCE.sub("%", text), *operands


def _made(found: Described, mode: FakeTensorMode) -> Any:
    if found is None:
        return None
    if isinstance(found[0], type):
        return found[0](_made(part, mode) for part in found[1:])
    dtype, shape, stride, device = found
    return FakeTensor(mode, torch.empty_strided(shape, stride, dtype=dtype, device="meta"), device)
