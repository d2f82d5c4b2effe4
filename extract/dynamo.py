"""How captures use Dynamo: its settings, what it is told about the device, and what its reports are read for.

Everything that depends on Dynamo's inner workings is in this file. Each entry says what it relies on; the tests of
`extract.capture` fail when a release of torch changes it.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import re
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

import torch
import torch._dynamo
import torch.cuda.amp.common
from torch._dynamo.output_graph import OutputGraph, SubgraphTracer
from torch._dynamo.utils import counters
from torch._dynamo.variables.builder import GraphArg, VariableBuilder, wrap_fx_proxy
from torch._guards import GuardsSet
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._mode_utils import no_dispatch
from torch.utils.weak import WeakIdKeyDictionary

from extract.failures import clean_text

#: Files whose frames, on the way to a compiled forward, do nothing but call it.
_TRANSPARENT = ("torch/_dynamo/eval_frame.py", "torch/nn/modules/module.py", "torch/utils/_contextlib.py")


class NodeBudgetExceeded(BaseException):
    """Raised through Dynamo, which handles every ordinary Exception itself, when a trace has grown too long."""


@contextlib.contextmanager
def tracing(node_budget: int, values: bool) -> Iterator[None]:
    """Dynamo from a clean state, with the settings every capture uses, and a bound on the nodes of all graphs.

    `values`: real tensors are at hand, so reading one may break the graph, as it does by default; a fake has none to
    read, so there `.item()` and `nonzero` become nodes with unknown results instead.
    """
    create, made = SubgraphTracer.create_node, 0

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal made
        made += 1
        if made > node_budget:
            raise NodeBudgetExceeded
        node = create(self, *args, **kwargs)
        node.meta.setdefault("stack_trace", "")  # else Dynamo formats source lines for every node
        return node

    torch._dynamo.reset()
    counters.clear()
    settings: dict[str, Any] = {
        "capture_scalar_outputs": not values,
        "capture_dynamic_output_shape_ops": not values,
        "recompile_limit": 512,  # every layer of a model with breaks keeps its own graphs
        "accumulated_recompile_limit": 4096,
        "allow_rnn": True,
        "trace_numpy": False,  # NumPy calls end a graph; its functions would hold no operator that a record can name
        "run_gc_after_compile": False,
        "specialize_float": True,  # eps and p stay literals in symbolic captures too
    }
    settings = {k: v for k, v in settings.items() if hasattr(torch._dynamo.config, k)}
    SubgraphTracer.create_node = counted  # type: ignore[method-assign]
    collecting = gc.isenabled()
    gc.disable()  # a trace makes millions of small objects and drops few: collecting costs a quarter of it
    try:
        with torch._dynamo.config.patch(**settings):
            yield
    finally:
        if collecting:
            gc.enable()
        SubgraphTracer.create_node = create  # type: ignore[method-assign]
        torch._dynamo.reset()


@contextlib.contextmanager
def unguarded() -> Iterator[None]:
    """Dynamo without guards, a quarter of its time: sound only while nothing compiled is ever called."""
    add = GuardsSet.add

    def nothing(self: GuardsSet, *args: Any, **kwargs: Any) -> None:
        return None

    GuardsSet.add = nothing  # type: ignore[method-assign]
    try:
        yield
    finally:
        GuardsSet.add = add  # type: ignore[method-assign]


@contextlib.contextmanager
def device_stands_by() -> Iterator[None]:
    """Let code that asks about the CUDA device trace as it would beside one; only fake tensors are ever on it.

    Operators that ask whether cuDNN would take a tensor fail without a driver, and autocast turns itself off, which
    would record other dtypes. bfloat16 is taken as supported, as it is since compute capability 8.0.
    """
    asked = [(torch.cuda.amp.common, "amp_definitely_not_available", False), (torch.cuda, "is_bf16_supported", True)]
    saved = [(owner, name, getattr(owner, name)) for owner, name, _ in asked]
    with torch.backends.cudnn.flags(enabled=False):
        try:
            for owner, name, answer in asked:
                setattr(owner, name, functools.partial(_answer, answer))
            yield
        finally:
            for owner, name, function in saved:
                setattr(owner, name, function)


def _answer(answer: bool, *args: Any, **kwargs: Any) -> bool:
    return answer


def outermost(caller: CodeType) -> bool:
    """Whether the frame that Dynamo is compiling is the model's whole forward, with no eager code around it.

    `caller` is the code object of the function that called the compiled module.
    """
    frame: FrameType | None = sys._getframe(1)
    files: list[str] = []
    while frame is not None and frame.f_code is not caller:
        files.append(frame.f_code.co_filename)
        frame = frame.f_back
    for file in reversed(files):
        if file.endswith("torch/_dynamo/convert_frame.py"):
            return True
        if not file.endswith(_TRANSPARENT):
            return False
    return False


def break_reason(text: str, stack: list[Any] | None = None) -> str:
    """`title: explanation [file.py:line in function]` of a Dynamo break report."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    title = lines[0] if lines else "unknown"
    explanation = next((line.removeprefix("Explanation:").strip() for line in lines if "Explanation:" in line), "")
    place = ""
    if stack:
        place = f" [{clean_text(stack[-1].filename)}:{stack[-1].lineno} in {stack[-1].name}]"
    return clean_text(f"{title}: {explanation}" if explanation else title) + place


@contextlib.contextmanager
def weights_wrapped_directly() -> Iterator[None]:
    """A short way for parameters and buffers of modules, without guards: sound where `unguarded` is.

    Their sizes are static, so the fake that Dynamo wants is a plain copy of ours, and all the graph needs is the
    input, its source, and one variable for whoever reaches the same tensor again.
    """
    wrap = VariableBuilder.wrap_tensor

    def directly(self: Any, value: torch.Tensor) -> Any:
        source, output = self.source, self.tx.output
        if not isinstance(value, FakeTensor) or value.fake_mode is self.tx.fake_mode:
            return wrap(self, value)
        if not source.guard_source.is_unspecialized_nn_module() or source in output.input_source_to_var:
            return wrap(self, value)
        fake = _copy(self.tx.fake_mode, value)
        name = re.sub(r"[^a-zA-Z0-9]+", "_", self.name)
        proxy = output.root_tracer.create_graph_input(name, type(value), fake, source=source)
        proxy.node.meta["grapharg"] = GraphArg(source, value, pass_arg_as_tensor=False, fake_tensor=fake)
        proxy.node.meta["tensor_dict"] = {}
        variable = wrap_fx_proxy(tx=self.tx, proxy=proxy, example_value=fake, source=source)
        output.side_effects.track_object_existing(value, variable)
        output.input_source_to_var[source] = variable
        return variable

    VariableBuilder.wrap_tensor = directly  # type: ignore[method-assign]
    try:
        yield
    finally:
        VariableBuilder.wrap_tensor = wrap  # type: ignore[method-assign]
        _copies.clear()


_copies: WeakIdKeyDictionary = WeakIdKeyDictionary()


def _copy(mode: FakeTensorMode, tensor: FakeTensor) -> FakeTensor:
    """The fake of `mode` with the same sizes, strides, dtype and device; one for each tensor."""
    made = _copies.get(tensor)
    if made is None or made.fake_mode is not mode:
        with no_dispatch():
            meta = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
            made = FakeTensor(mode, meta, tensor.device)
        if getattr(tensor, "_is_param", False):
            made._is_param = True
        made.requires_grad_(tensor.requires_grad)
        _copies[tensor] = made
    return made


@contextlib.contextmanager
def lean() -> Iterator[None]:
    """Dynamo without what it keeps for error reports and export, and with a short way for parameters.

    A parameter's sizes are always static, so its fake in Dynamo's own mode is a plain copy of ours; Dynamo would work
    out symbols, views and storage for each. Left out are the source lines of every node and the map of module names.
    """
    from_tensor, add_names = FakeTensorMode.from_tensor, getattr(OutputGraph, "add_fqn_info_for_inlined_modules", None)

    def parameter_or_other(self: FakeTensorMode, tensor: torch.Tensor, **given: Any) -> Any:
        ours = isinstance(tensor, FakeTensor) and getattr(tensor, "_is_param", False) and tensor.fake_mode is not self
        if not ours:
            return from_tensor(self, tensor, **given)
        return _copy(self, tensor)  # type: ignore[arg-type]

    def no_names(self: Any, module: Any, source: Any) -> None:
        return None

    FakeTensorMode.from_tensor = parameter_or_other  # type: ignore[method-assign, assignment]
    if add_names is not None:
        OutputGraph.add_fqn_info_for_inlined_modules = no_names  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        _copies.clear()
        FakeTensorMode.from_tensor = from_tensor  # type: ignore[method-assign]
        if add_names is not None:
            OutputGraph.add_fqn_info_for_inlined_modules = add_names  # type: ignore[method-assign]
