"""A subgraph made ready without touching the device: rebuilt, its inputs drawn on the host, its bytes counted.

In goes a record, out comes a `Subject`. Drawing and counting take host time only, so they run beside somebody else's
measurement; `placed` is what moves values to the device later, under the lock.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from evaluate.measure import reference, values
from evaluate.measure.floor import Moved, bytes_moved
from warehouse.graph import operators
from warehouse.graph.devices import on_device
from warehouse.graph.record import GraphRecord
from warehouse.graph.to_fx import to_graph_module

#: Largest inputs of a subgraph, bytes: drawing them takes seconds, and float64 doubles them or more.
MAX_INPUT_BYTES = 2**31


class TooLarge(Exception):
    """Inputs above MAX_INPUT_BYTES."""


@dataclass(slots=True)
class Subject:
    """module: on the device it will run on. exact: its float64 form. drawn: distribution -> values on the host.
    moved: None where operators need real values to be counted. random: draws random numbers. mutates: writes to its
    inputs, perhaps."""

    record: GraphRecord
    module: fx.GraphModule
    exact: fx.GraphModule
    drawn: dict[str, list[Any]]
    moved: Moved | None
    random: bool
    mutates: bool

    def examples(self, device: str) -> list[Any]:
        """Values that stand for dtype, shape, strides and device alone: allocated, never written."""
        return [_alike(v, device) if isinstance(v, torch.Tensor) else v for v in self.drawn["recipe"]]


def make(record: GraphRecord, device: str, seed: int) -> Subject:
    """Raises RecordError for a record that is none, TooLarge, and what torch raises for constants that do not fit."""
    record = values.with_recipes(on_device(record, device))
    size = sum(math.prod(n.shape or ()) for _, n in record.placeholders())
    if size * 4 > MAX_INPUT_BYTES:
        raise TooLarge(f"inputs of {size} elements")
    module = to_graph_module(record)
    module.to(device).eval()
    drawn = {"recipe": values.inputs(record, "recipe", seed), "reseeded": values.inputs(record, "reseeded", seed)}
    chosen = values.varied(record)
    if any(chosen):
        for name in ("small", "large", "integers", "rows"):
            drawn[name] = values.changed(drawn["recipe"], chosen, name)
    nodes = [node for _, graph in record.walk() for node in graph.nodes if node.effect is not None]
    return Subject(
        record,
        module,
        reference.in_float64(module),
        drawn,
        _moved(module, drawn["recipe"], device),
        random=any(n.target in operators.RANDOM for n in nodes),
        mutates=any(n.target in operators.MUTATING for n in nodes),
    )


def placed(inputs: Sequence[Any], device: str) -> list[Any]:
    """Copies of host values on the device, strides kept, sharing nothing with the host's."""
    return [_placed(v, device) if isinstance(v, torch.Tensor) else v for v in inputs]


def copies(inputs: Sequence[Any]) -> list[Any]:
    """Copies on the same device, strides kept."""
    return [_placed(v, v.device.type) if isinstance(v, torch.Tensor) else v for v in inputs]


def _placed(value: torch.Tensor, device: str) -> torch.Tensor:
    if value.is_contiguous():
        return value.to(device, copy=True)
    flat = value.as_strided((_reach(value),), (1,), value.storage_offset())
    return flat.to(device, copy=True).as_strided(value.shape, value.stride())


def _alike(value: torch.Tensor, device: str) -> torch.Tensor:
    return torch.empty(_reach(value), dtype=value.dtype, device=device).as_strided(value.shape, value.stride())


def _reach(value: torch.Tensor) -> int:
    """Elements from the first to the last in memory."""
    if value.numel() == 0:
        return 0
    return 1 + sum((s - 1) * t for s, t in zip(value.shape, value.stride(), strict=True))


def _moved(module: fx.GraphModule, inputs: Sequence[Any], device: str) -> Moved | None:
    """Counted on fake tensors: no memory, no device. None for operators that need to see values."""
    with contextlib.suppress(Exception), FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fakes = [mode.from_tensor(_on(v, device)) if isinstance(v, torch.Tensor) else v for v in inputs]
        return bytes_moved(module, fakes)
    return None


def _on(value: torch.Tensor, device: str) -> torch.Tensor:
    """The same layout as a tensor on `device` without values: a meta tensor would change what operators decide."""
    return value if device == "cpu" else _alike(value, device)
