"""The proof that stored graphs compute what the module computes: run both, on the same weights and inputs.

Every stored graph is compared with its source node by node when it is captured (`extract.capture`). For a sampled
share, and throughout the tests, this file also builds the module with real weights on the CPU, lets Dynamo call the
graphs rebuilt from the *stored* records, and wants the module's own outputs back, bit for bit.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch._dynamo
from torch import fx
from torch.utils import _pytree as pytree

from dedup.hashes import hashes
from extract import build
from extract.dynamo import tracing
from extract.model import Capture
from extract.sources.registry import Source
from warehouse.graph.devices import on_device
from warehouse.graph.from_fx import from_graph_module
from warehouse.graph.inputs import infer_recipes
from warehouse.graph.literals import DTYPES
from warehouse.graph.record import RecordError
from warehouse.graph.to_fx import to_graph_module

#: One capture in this many is verified by running it.
SHARE = 24
#: Scalar parameters up to which a capture is run.
LARGEST = 60_000_000


def sampled(capture: Capture) -> bool:
    """Whether this capture belongs to the share that is run: decided by its config_hash, so always the same ones."""
    chosen = int(capture.ref.config_hash[:8], 16) % SHARE == 0
    return (
        chosen and capture.failure is None and 0 < capture.parameters <= LARGEST and capture.variant.shapes == "static"
    )


def outputs_equal(source: Source, capture: Capture) -> bool:
    """Run the module and its stored graphs on equal weights and inputs.

    True: the module's outputs came back bit for bit. False: the CPU trace gave other graphs than the stored ones
    (the graph depends on the device or on values), so running proves nothing about them.
    Raises RecordError("round_trip_mismatch") when the same graphs gave other outputs.
    """
    dtype = DTYPES[capture.variant.dtype]
    build.seed()
    with build.building("real", dtype):
        module = source.build(capture.ref)
    module.train(capture.variant.mode == "train").to(dtype)
    build.seed()
    inputs = source.inputs(capture.ref, module)
    args, kwargs = build.cast((inputs.args, inputs.kwargs), dtype)
    twin, (twin_args, twin_kwargs) = copy.deepcopy((module, (args, kwargs)))
    stand_in = _StoredGraphs(capture)
    training = capture.variant.mode == "train"
    with torch.set_grad_enabled(training), tracing(1_000_000, values=capture.build == "real"):
        build.seed()
        expected = module(*args, **kwargs)
        build.seed()
        found = torch.compile(twin, backend=stand_in, dynamic=False)(*twin_args, **twin_kwargs)
    if not stand_in.same:
        return False
    where = _differs(expected, found) or _differs(dict(module.named_buffers()), dict(twin.named_buffers()))
    if where:
        raise RecordError("round_trip_mismatch", f"stored graphs of {capture.ref.key} give other outputs: {where}")
    return True


class _StoredGraphs:
    """A Dynamo backend that answers with the stored graph of the same position, moved to the CPU."""

    def __init__(self, capture: Capture):
        self.stored = list(capture.graphs)
        self.same = True
        self.met = 0

    def __call__(self, module: fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        position, self.met = self.met, self.met + 1
        if position >= len(self.stored):
            self.same = False
            return module.forward  # type: ignore[no-any-return]
        stored = self.stored[position]
        traced = on_device(infer_recipes(from_graph_module(module), {}), "cpu")
        moved = on_device(stored.record, "cpu")
        if hashes(traced).graph_hash != hashes(moved).graph_hash:
            self.same = False
            return module.forward  # type: ignore[no-any-return]
        if [n.name for _, n in traced.placeholders()] != [n.name for _, n in moved.placeholders()]:
            self.same = False  # equal up to the order of inputs: Dynamo's arguments would be mixed up
            return module.forward  # type: ignore[no-any-return]
        return to_graph_module(moved).forward  # type: ignore[no-any-return]


def _differs(expected: Any, found: Any) -> str | None:
    """Where two structures differ, None when equal bit for bit (NaN equals NaN)."""
    left, right = pytree.tree_flatten(expected), pytree.tree_flatten(found)
    if str(left[1]) != str(right[1]):
        return "different structure"
    for i, (x, y) in enumerate(zip(left[0], right[0], strict=True)):
        if isinstance(x, torch.Tensor):
            if not isinstance(y, torch.Tensor) or x.dtype != y.dtype or x.shape != y.shape:
                return f"output {i} has another type, dtype or shape"
            if not torch.equal(torch.nan_to_num(x), torch.nan_to_num(y)) or not torch.equal(x.isnan(), y.isnan()):
                return f"output {i} differs by up to {(x.double() - y.double()).abs().max().item():.3g}"
        elif isinstance(x, int | float | str | bool) and x != y:
            return f"output {i}: {x!r} against {y!r}"
    return None
