"""One subgraph as the judge holds it: its module, its float64 form, values drawn from a nonce, and what eager says.

Nothing of this ever enters a worker's process: only the drawn inputs do, when a call is made.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from evaluate.measure import reference, values
from evaluate.measure.compare import agreement, leaves
from evaluate.measure.floor import Moved, bytes_moved
from evaluate.worker.tensors import reach
from warehouse.graph import operators
from warehouse.graph.devices import on_device
from warehouse.graph.record import GraphRecord
from warehouse.graph.to_fx import to_graph_module

#: Inputs above this many elements are not judged: drawing and float64 would take minutes.
MAX_ELEMENTS = 2**29
DISTRIBUTIONS = ("small", "large", "integers", "rows", "carriers")


class Defect(Exception):
    """The task cannot be judged: eager fails, or there is nothing to judge. One line."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Flat outputs of eager, of float64 (`kind` says when it is eager's own), inputs after the call, and aliases."""

    inputs: list[Any]
    eager: list[Any]
    exact: list[Any]
    after: list[Any]
    aliases: list[list[int]]
    kind: str


class Case:
    """Raises Defect, RecordError, and what torch raises for constants that do not fit."""

    def __init__(self, record: GraphRecord, device: str):
        self.record = values.with_recipes(on_device(record, device))
        self.device = device
        if sum(math.prod(n.shape or ()) for _, n in self.record.placeholders()) > MAX_ELEMENTS:
            raise Defect(f"inputs of more than {MAX_ELEMENTS} elements")
        self.module: fx.GraphModule = to_graph_module(self.record).to(device).eval()
        self.exact = reference.in_float64(self.module)
        self.varied = values.varied(self.record)
        nodes = [node for _, graph in self.record.walk() for node in graph.nodes if node.effect is not None]
        self.random = any(n.target in operators.RANDOM for n in nodes)
        self.mutates = any(n.target in operators.MUTATING for n in nodes)

    def as_json(self) -> dict[str, Any]:
        return _as_json(self.record)

    def moved(self) -> Moved | None:
        """Bytes that must move, counted on fake tensors; None where operators need real values."""
        with contextlib.suppress(Exception), FakeTensorMode(allow_non_fake_inputs=True) as mode:
            drawn = values.inputs(self.record, "recipe", 0)
            fakes = [mode.from_tensor(_copied(v, self.device)) if isinstance(v, torch.Tensor) else v for v in drawn]
            return bytes_moved(self.module, fakes)
        return None

    def draw(self, seed: int, distribution: str = "recipe") -> list[Any]:
        """Inputs on the host."""
        drawn = values.inputs(self.record, "recipe", seed)
        if distribution == "carriers":
            return [_carrying(v, seed) if c else v for v, c in zip(drawn, self.varied, strict=True)]
        return values.changed(drawn, self.varied, distribution)

    def answer(self, inputs: Sequence[Any]) -> Answer:
        """What is right for these inputs. Raises Defect when eager itself fails."""
        given = [_copied(v, self.device) for v in inputs]
        try:
            with torch.no_grad():
                outputs = leaves(self.module(*given))
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # an operator refuses its own recipe's values
            raise Defect(f"eager fails: {type(error).__name__}: {str(error).splitlines()[:1]}"[:300]) from error
        aliases = _aliases(outputs, given)
        eager = [_host(v) for v in outputs]
        exact, kind = self._exact(inputs, eager)
        return Answer(list(inputs), eager, exact, [_host(v) for v in given], aliases, kind)

    def _exact(self, inputs: Sequence[Any], eager: list[Any]) -> tuple[list[Any], str]:
        try:
            with torch.no_grad():
                given = [reference.widened(_copied(v, self.device)) for v in inputs]
                outputs = [_host(v) for v in leaves(self.exact(*given))]
            found = agreement(eager, outputs)
            if found.problem is None or ("instead of" not in found.problem and "dtype" not in found.problem):
                return outputs, "float64"
        except torch.OutOfMemoryError:
            pass
        except Exception:  # no float64 form: an operator that refuses doubles, or reads bits
            pass
        return [reference.widened(v) for v in eager], "eager"


def finite(outputs: Sequence[Any]) -> bool:
    real = [v for v in outputs if isinstance(v, torch.Tensor) and (v.is_floating_point() or v.is_complex())]
    return all(bool(v.isfinite().all()) for v in real)


def _carrying(value: torch.Tensor, seed: int) -> torch.Tensor:
    """A copy with a NaN and both infinities at drawn places."""
    if not value.is_floating_point() or value.numel() < 8 or 0 in value.stride():
        return value
    made = _copied(value, "cpu")
    generator = torch.Generator().manual_seed(seed % 2**63)
    places = torch.randperm(value.numel(), generator=generator)[:3].tolist()
    for place, carried in zip(places, (float("nan"), float("inf"), float("-inf")), strict=True):
        index = []
        for size in reversed(value.shape):
            index.append(place % size)
            place //= size
        made[tuple(reversed(index))] = carried
    return made


def _copied(value: Any, device: str) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    flat = value.as_strided((reach(value.shape, value.stride()),), (1,), value.storage_offset())
    return flat.to(device, copy=True).as_strided(value.shape, value.stride())


def _host(value: Any) -> Any:
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def _aliases(outputs: list[Any], inputs: list[Any]) -> list[list[int]]:
    places: dict[int, int] = {}
    for i, v in enumerate(inputs):
        if isinstance(v, torch.Tensor) and v.numel():
            places.setdefault(v.untyped_storage().data_ptr(), i)
    pairs = []
    for o, v in enumerate(outputs):
        if isinstance(v, torch.Tensor) and v.numel() and v.untyped_storage().data_ptr() in places:
            pairs.append([o, places[v.untyped_storage().data_ptr()]])
    return pairs


def _as_json(record: GraphRecord) -> dict[str, Any]:
    return {"nodes": [asdict(n) for n in record.nodes], "bodies": [_as_json(b) for b in record.bodies]}
