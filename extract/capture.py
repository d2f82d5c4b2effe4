"""Tracing one model with Dynamo: ModelRef and Variant in, Capture out. Never raises for what a model does.

A model is built without weights (`extract.build`), its tensors become fakes on the device traced for, and
`torch.compile` hands every graph to a backend that records it. No kernel runs: between graphs the recorded fake
outputs are passed on. Where a forward depends on values and the model is small, real CPU tensors are used instead.
"""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import torch._dynamo
from torch import fx, nn
from torch._dynamo.utils import counters
from torch.utils import _pytree as pytree

from dedup.hashes import hashes
from extract import build
from extract.dynamo import (
    NodeBudgetExceeded,
    break_reason,
    device_stands_by,
    lean,
    outermost,
    tracing,
    unguarded,
    weights_wrapped_directly,
)
from extract.failures import classify
from extract.model import Capture, CapturedGraph, ExampleInputs, Failure, ModelRef, Variant
from extract.repeats import repeats_copied
from extract.sources.registry import Source
from warehouse.graph.from_fx import difference, from_graph_module
from warehouse.graph.inputs import infer_recipes
from warehouse.graph.literals import DTYPES
from warehouse.graph.record import RecordError
from warehouse.graph.to_fx import to_graph_module

#: Failures of an attempt without values that real tensors may cure.
_CURED_BY_VALUES = {"data_dependent", "fake_unsupported"}
#: Failures of the `empty` build that the `meta` build may cure.
_CURED_BY_META = {"out_of_memory"}


class _WholeModel(BaseException):
    """The one graph that makes up a whole forward was recorded: guards and the call itself are not needed."""


class _HasBreaks(BaseException):
    """The forward has graph breaks, so it must really run, with guards, to show all of its graphs."""


@dataclass
class _Attempt:
    """What one build mode gave."""

    mode: str
    graphs: list[CapturedGraph] = field(default_factory=list)
    breaks: tuple[str, ...] = ()
    failure: Failure | None = None
    parameters: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)


def capture(source: Source, ref: ModelRef, variant: Variant, node_budget: int = 20_000) -> Capture:
    """Trace `ref` as `variant` says.

    Build modes are tried in the order of `extract.build.MODES`; the first complete attempt is kept, else the first
    attempt with the most graphs, whose failure says why. `node_budget` bounds the nodes of all graphs together.
    """
    attempts: list[_Attempt] = []
    for mode in build.MODES:
        if attempts and not _worth_trying(mode, attempts):
            continue
        attempt = _Attempt(mode)
        attempts.append(attempt)
        _run(source, ref, variant, node_budget, attempt)
        if attempt.failure is None:
            break
    best = next((a for a in attempts if a.failure is None), None) or max(attempts, key=lambda a: len(a.graphs))
    seconds: dict[str, float] = {}
    for attempt in attempts:
        for stage, spent in attempt.seconds.items():
            seconds[stage] = seconds.get(stage, 0.0) + spent
    built = best.mode if "trace" in best.seconds or best.failure is None else ""
    size = best.parameters or 0
    return Capture(ref, variant, built, tuple(best.graphs), best.breaks, best.failure, size, seconds, peak_mb=0.0)


def _worth_trying(mode: str, attempts: list[_Attempt]) -> bool:
    last = attempts[-1]
    if last.failure is None or last.failure.kind in ("missing_dependency", "needs_download", "node_budget"):
        return False
    stage = last.failure.stage
    if mode == "meta":
        return stage == "build" or last.failure.kind in _CURED_BY_META
    sizes = [a.parameters for a in attempts if a.parameters is not None]
    if stage == "build":  # nothing is known of its size: the worker's memory cap decides
        return not sizes or max(sizes) <= build.SMALL
    return stage == "trace" and last.failure.kind in _CURED_BY_VALUES and max(sizes) <= build.SMALL


def _run(source: Source, ref: ModelRef, variant: Variant, node_budget: int, attempt: _Attempt) -> None:
    dtype = DTYPES[variant.dtype]
    stage = "build"
    try:
        with _clock(attempt, "build"), build.building(attempt.mode, dtype):
            torch.manual_seed(0)  # real weights must not differ from run to run
            module = source.build(ref)
        module.train(variant.mode == "train")
        attempt.parameters = build.parameter_count(module)
        stage = "inputs"
        with _clock(attempt, "inputs"):
            torch.manual_seed(0)
            inputs = source.inputs(ref, module)
        stage = "trace"
        _trace(module, inputs, variant, node_budget, attempt)
    except RecordError as error:
        attempt.failure = classify(error, "record")
    except NodeBudgetExceeded:
        message = f"more than {node_budget} nodes"
        attempt.failure = Failure("node_budget", "trace", "NodeBudgetExceeded", message, "")
    except Exception as error:  # whatever a model raises becomes a classed row
        attempt.failure = classify(error, stage)


def _trace(module: nn.Module, inputs: ExampleInputs, variant: Variant, budget: int, attempt: _Attempt) -> None:
    known = _observations(module, inputs)
    dtype = DTYPES[variant.dtype]
    with contextlib.ExitStack() as stack:
        if attempt.mode == "real":
            module.to(dtype)
            args, kwargs = build.cast((inputs.args, inputs.kwargs), dtype)
        else:
            world = build.FakeWorld(variant.device, dtype)
            world.enter(module)
            args, kwargs = world.inputs((inputs.args, inputs.kwargs))
            stack.enter_context(world.mode)
        stack.enter_context(torch.set_grad_enabled(variant.mode == "train"))
        stack.enter_context(device_stands_by())
        stack.enter_context(lean())
        stack.enter_context(tracing(budget, values=attempt.mode == "real"))
        backend = _Recorder(attempt, known, execute=attempt.mode == "real")
        compiled = torch.compile(module, backend=backend, dynamic=variant.shapes == "symbolic")
        with _clock(attempt, "trace"):
            try:
                copying = variant.mode == "eval" and variant.shapes == "static"
                if not _in_one_graph(compiled, args, kwargs, copying):
                    torch._dynamo.reset()
                    backend.start_over()
                    compiled(*args, **kwargs)
            finally:
                attempt.breaks = backend.breaks()
        attempt.seconds["trace"] -= attempt.seconds.get("record", 0.0)  # the backend runs inside the trace
    if not attempt.graphs:
        attempt.failure = Failure("no_graph", "trace", "", "the forward ran without one compiled graph", "")


def _in_one_graph(compiled: Callable[..., Any], args: Any, kwargs: Any, copying: bool) -> bool:
    """Try without guards, which works when the whole forward is one graph. False: do it again, with guards.

    `copying`: copy the graph of a repeated block, which needs static sizes and no gradients.
    """
    try:
        with unguarded(), weights_wrapped_directly(), repeats_copied() if copying else contextlib.nullcontext():
            compiled(*args, **kwargs)
    except _WholeModel:
        return True
    except _HasBreaks:
        return False
    except Exception:
        # A frame without operators is compiled and run without asking the backend, and unguarded it may be run again
        # where it does not fit. If the first frame failed, though, guards would not have helped.
        if counters["frames"]["total"] > 1:
            return False
        raise
    return False


class _Recorder:
    """The Dynamo backend: records, verifies and hashes each graph, then passes fake (or real) outputs on."""

    def __init__(self, attempt: _Attempt, known: dict[str, dict[str, Any]], execute: bool):
        self.attempt, self.known, self.execute = attempt, known, execute
        self._reasons: list[str] = []
        self._first_try = True

    def start_over(self) -> None:
        """Forget what the first try, which stops at the first graph, has recorded."""
        self._first_try = False
        self._reasons.clear()
        self.attempt.graphs.clear()
        counters.clear()

    def breaks(self) -> tuple[str, ...]:
        """Why each graph but the last of a frame ended, and why whole frames were left to eager, in order."""
        skipped = [break_reason(text) for text, count in counters["unimplemented"].items() for _ in range(count)]
        return tuple(self._reasons + skipped)

    def __call__(self, module: fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        why = getattr(module, "compile_subgraph_reason", None)
        broken = bool(why and why.graph_break)
        if self._first_try and (broken or not outermost(_in_one_graph.__code__)):
            raise _HasBreaks
        if why is not None and broken:
            self._reasons.append(break_reason(why.reason, why.user_stack))
        with _clock(self.attempt, "record"):
            self._record(module)
        if self._first_try:
            raise _WholeModel
        output = next(n for n in reversed(module.graph.nodes) if n.op == "output")
        values = fx.node.map_arg(output.args[0], lambda n: n.meta.get("example_value", _UNKNOWN))
        leaves = pytree.tree_leaves(values)
        if self.execute or any(v is _UNKNOWN or isinstance(v, torch.SymInt | torch.SymFloat) for v in leaves):
            return module.forward  # type: ignore[no-any-return]
        return lambda *args: values

    def _record(self, module: fx.GraphModule) -> None:
        record = from_graph_module(module)
        observed = {n.slot: self.known[n.name] for _, n in record.placeholders() if n.name in self.known}
        record = infer_recipes(record, observed)  # type: ignore[arg-type]
        rebuilt = to_graph_module(record)
        where = difference(module, rebuilt)
        if where is not None:
            raise RecordError("round_trip_mismatch", where)
        h = hashes(record)
        graph = CapturedGraph(
            len(self.attempt.graphs), record, h.graph_hash, h.structure_hash, h.template_hash, h.op_hash
        )
        self.attempt.graphs.append(graph)


_UNKNOWN = object()


@contextlib.contextmanager
def _clock(attempt: _Attempt, stage: str) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    finally:
        attempt.seconds[stage] = attempt.seconds.get(stage, 0.0) + time.perf_counter() - start


def _observations(module: nn.Module, inputs: ExampleInputs) -> dict[str, dict[str, Any]]:
    """Statistics of the real buffers and inputs, by the name that their placeholder will have."""
    named: dict[str, Any] = dict(module.named_buffers(remove_duplicate=False))
    try:
        bound = inspect.signature(module.forward).bind(*inputs.args, **inputs.kwargs)
        arguments: dict[str, Any] = dict(bound.arguments)
    except (TypeError, ValueError):
        arguments = dict(inputs.kwargs)
    for name, value in arguments.items():
        for path, leaf in pytree.tree_leaves_with_path(value):
            parts = [str(getattr(p, "key", getattr(p, "idx", getattr(p, "name", "")))) for p in path]
            named[".".join([name, *parts])] = leaf
    found = {}
    for name, tensor in named.items():
        stats = build.observed(tensor) if isinstance(tensor, torch.Tensor) else None
        if stats is not None:
            found[name] = stats
    return found
