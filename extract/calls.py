"""One module call of a trace: what goes into it, the nodes that it made, and the same nodes for another such call.

`Given.of` says what decides how Dynamo traces a call, or raises `NotCopied` when that cannot be told. A `Call` keeps
what tracing has made of it; `Call.copied` makes it again for other arguments and weights. `extract.repeats` decides
when. References in the copied nodes are mapped: arguments to arguments, weights to the weights at the same place of
the other module, results to results.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any

import torch
from torch import fx
from torch._dynamo.variables.base import AttributeMutationNew, ValueMutationNew, VariableTracker
from torch._dynamo.variables.builder import VariableBuilder, wrap_fx_proxy
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.lazy import LazyVariableTracker
from torch._dynamo.variables.lists import ListVariable, TupleVariable
from torch._dynamo.variables.tensor import TensorVariable
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree
from torch.utils._mode_utils import no_dispatch

from extract.fingerprints import Fingerprints


class NotCopied(Exception):
    """This call has something that copying would not reproduce."""


@dataclasses.dataclass
class Given:
    """What goes into one call: its key, the tensor arguments as variables, and the module's own tensors."""

    key: Hashable
    variables: list[TensorVariable]
    tensors: tuple[torch.Tensor, ...]
    lists: list[ListVariable]

    @classmethod
    def of(cls, fingerprints: Fingerprints, module: Any, tx: Any, args: list[Any], kwargs: dict[str, Any]) -> Given:
        if tx.output.current_tracer is not tx.output.root_tracer or module.source is None:
            raise NotCopied
        number = fingerprints.of(module.value)
        if number is None:
            raise NotCopied
        given = cls(None, [], fingerprints.tensors(module.value), [])
        kinds = [given._kind(a) for a in args] + [(name, given._kind(a)) for name, a in kwargs.items()]
        values = [v.proxy.node.meta["example_value"] for v in given.variables]
        nodes = [v.proxy.node for v in given.variables]
        same = tuple((_first(nodes, n), _first(values, v)) for n, v in zip(nodes, values, strict=True))
        given.key = (number, tuple(kinds), same, _surroundings())
        return given

    def _kind(self, variable: Any) -> Hashable:
        if isinstance(variable, LazyVariableTracker):
            if not variable.is_realized():
                try:
                    value = variable.peek_value()
                except AttributeError:  # a constant computed from others, not yet known to be one
                    raise NotCopied from None
                return _constant(value)
            variable = variable.realize()
        kind = type(variable)
        if kind is ConstantVariable:
            return _constant(variable.value)
        if kind is TensorVariable:
            value = variable.proxy.node.meta.get("example_value")
            self.variables.append(variable)
            return _tensor_kind(value)
        if kind in (TupleVariable, ListVariable):
            if kind is ListVariable:
                self.lists.append(variable)
            return (kind, tuple(self._kind(item) for item in variable.items))
        raise NotCopied


@dataclasses.dataclass
class Call:
    """One traced call: the nodes it made, and what it returned."""

    source: Any
    given: Given
    last: fx.Node
    nodes: list[fx.Node] = dataclasses.field(default_factory=list)
    result: Any = None
    placeholders: list[fx.Node] = dataclasses.field(default_factory=list)
    before: tuple[Any, ...] = ()
    escaping: set[int] = dataclasses.field(default_factory=set)

    @classmethod
    def begin(cls, tx: Any, module: Any, given: Given) -> Call:
        tracer = tx.output.root_tracer
        call = cls(module.source, given, tracer.graph._root._prev)
        call.before = (len(tracer.input_name_to_proxy), *_state(tx, given))
        return call

    def end(self, tx: Any, result: VariableTracker) -> bool:
        """Take in what tracing has made; False when it cannot be copied."""
        tracer = tx.output.root_tracer
        if _state(tx, self.given) != self.before[1:]:
            return False
        inputs = list(tracer.input_name_to_proxy.values())[self.before[0] :]
        self.placeholders = [proxy.node for proxy in inputs]
        node = self.last._next
        while node is not tracer.graph._root:
            if node.op == "placeholder":  # the first inputs of a graph are put after the call began
                node = node._next
                continue
            if node.op not in ("call_function", "call_method") or not _plain(node.meta.get("example_value")):
                return False
            self.nodes.append(node)
            node = node._next
        self.result = result
        try:
            self._escapes(result)
        except NotCopied:
            return False
        return True

    def _escapes(self, result: Any) -> None:
        kind = type(result)
        if kind in (TupleVariable, ListVariable):
            for item in result.items:
                self._escapes(item)
        elif kind is TensorVariable:
            value = result.proxy.node.meta["example_value"]
            if value.requires_grad and result.proxy.node.op != "placeholder":
                raise NotCopied
            self.escaping.add(id(value))
        elif kind is not ConstantVariable:
            raise NotCopied

    def copied(self, module: Any, tx: Any, given: Given) -> VariableTracker:
        """The same call with other arguments and weights: its nodes again, and the variable it returns."""
        tracer = tx.output.root_tracer
        nodes: dict[fx.Node, fx.Node] = {}
        fakes: dict[int, Any] = {}
        variables: dict[fx.Node, Any] = {}
        for old, new in zip(self.given.variables, given.variables, strict=True):
            if old.source is not None and self._position(old.proxy.node) is not None:
                raise NotCopied  # a weight that is also an argument
            nodes[old.proxy.node] = new.proxy.node
            fakes[id(old.proxy.node.meta["example_value"])] = new.proxy.node.meta["example_value"]
            variables[old.proxy.node] = new
        own = self._own_inputs(nodes)
        sources = [self._rebased(node, module.source) for node in own]  # all of them, before anything is made
        positions = [self._position(node) for node in own]
        for node, source, position in zip(own, sources, positions, strict=True):
            if position is None:  # the same tensor whichever module asks
                continue
            variable = VariableBuilder(tx, source)(given.tensors[position])
            variable = variable.realize() if isinstance(variable, LazyVariableTracker) else variable
            if type(variable) is not TensorVariable:
                raise NotCopied
            nodes[node], variables[node] = variable.proxy.node, variable
            fakes[id(node.meta["example_value"])] = variable.proxy.node.meta["example_value"]
        for old_node in self.nodes:
            args, kwargs = fx.node.map_arg((old_node.args, old_node.kwargs), lambda n: nodes.get(n, n))
            made = tracer.create_node(old_node.op, old_node.target, args, kwargs)
            made.meta = dict(old_node.meta)
            value = old_node.meta.get("example_value")
            made.meta["example_value"] = self._fake(value, tx.fake_mode, fakes)
            nodes[old_node] = made
        return self._returned(self.result, tx, nodes, variables)

    def _own_inputs(self, arguments: dict[fx.Node, fx.Node]) -> list[fx.Node]:
        """Placeholders that the nodes refer to besides the arguments, in the order in which tracing met them."""
        used = {n: None for node in self.nodes for n in node.all_input_nodes}
        mine, known = set(self.nodes), set(self.placeholders)
        outside = [n for n in used if n not in mine and n not in arguments and n not in known]
        if any(n.op != "placeholder" for n in outside):
            raise NotCopied
        return outside + self.placeholders

    def _position(self, node: fx.Node) -> int | None:
        """Which of the module's tensors a placeholder stands for."""
        if node.op != "placeholder":
            return None
        grapharg = node.meta.get("grapharg")
        example = grapharg.example if grapharg is not None else None
        return next((i for i, t in enumerate(self.given.tensors) if t is example), None)

    def _rebased(self, node: fx.Node, module_source: Any) -> Any:
        """Where the other module keeps the tensor of this placeholder."""
        if self._position(node) is None:
            if node in self.placeholders:
                raise NotCopied  # made by the first call, from something outside its module
            return None
        return _rebase(node.meta["grapharg"].source, self.source, module_source)

    def _fake(self, value: Any, mode: Any, fakes: dict[int, Any]) -> Any:
        """What stands for a fake of the first call: its counterpart, where one can be told from another."""
        if not isinstance(value, FakeTensor):
            return pytree.tree_map_only(FakeTensor, lambda v: self._fake(v, mode, fakes), value)
        if id(value) in fakes:
            return fakes[id(value)]
        if id(value) not in self.escaping:
            return value
        with no_dispatch():
            meta = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
            fakes[id(value)] = FakeTensor(mode, meta, value.device)
        return fakes[id(value)]

    def _returned(self, result: Any, tx: Any, nodes: dict[fx.Node, fx.Node], variables: dict[fx.Node, Any]) -> Any:
        kind = type(result)
        if kind is ConstantVariable:
            return result
        if kind is TupleVariable:
            return TupleVariable([self._returned(item, tx, nodes, variables) for item in result.items])
        if kind is ListVariable:
            items = [self._returned(item, tx, nodes, variables) for item in result.items]
            return ListVariable(items, mutation_type=ValueMutationNew())
        node = result.proxy.node
        if node not in variables:
            made = nodes[node]
            value = made.meta.pop("example_value")
            variable = wrap_fx_proxy(tx, fx.Proxy(made, tx.output.root_tracer), example_value=value)
            tx.output.side_effects._track_obj(variable.proxy, variable, mutation_type_cls=AttributeMutationNew)  # type: ignore[attr-defined]
            variables[node] = variable
        return variables[node]


def _state(tx: Any, given: Given) -> tuple[Any, ...]:
    """What a call may change besides nodes: random draws that it makes, and lists that it was given."""
    items = tuple(tuple(id(item) for item in variable.items) for variable in given.lists)
    return (len(tx.output.random_calls), items)


def _surroundings() -> Hashable:
    """Global state that decides what operators give."""
    autocast = tuple((torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in ("cuda", "cpu"))
    modes = torch._C._len_torch_function_stack()
    return (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype(), autocast, modes)


def _plain(value: Any) -> bool:
    """Whether a node's value is made of fakes alone, without symbolic numbers."""
    return isinstance(value, FakeTensor) or all(
        v is None or isinstance(v, FakeTensor) for v in pytree.tree_leaves(value)
    )


def _constant(value: Any) -> Hashable:
    if type(value) not in (bool, int, float, str, type(None), torch.dtype, torch.device):
        raise NotCopied
    return (type(value), repr(value))


def _tensor_kind(value: Any) -> Hashable:
    if not isinstance(value, FakeTensor) or any(type(s) is not int for s in (*value.shape, *value.stride())):
        raise NotCopied
    parameter = getattr(value, "_is_param", False)
    return ("tensor", tuple(value.shape), value.stride(), value.dtype, value.device, value.requires_grad, parameter)


def _first(items: list[Any], item: Any) -> int:
    return next(i for i, other in enumerate(items) if other is item)


def _rebase(source: Any, old: Any, new: Any) -> Any:
    """`source` with `new` in the place of `old`, which must be at its base."""
    if source == old:
        return new
    base = getattr(source, "base", None)
    if base is None:
        raise NotCopied
    return dataclasses.replace(source, base=_rebase(base, old, new))
