"""From a torch.fx graph, as Dynamo hands it to a backend, to a GraphRecord; and the check that nothing was lost.

In: a `torch.fx.GraphModule` whose nodes carry `meta["example_value"]`. Out: a record (`warehouse.graph.record`) that
`warehouse.graph.to_fx` rebuilds into the same graph, which `difference` proves node by node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from warehouse.graph import constants, operators
from warehouse.graph.literals import DTYPE_NAMES, dumps, encode_literal
from warehouse.graph.record import GraphRecord, Node, RecordError

_SYMBOL = re.compile(r"\b([a-z]+)(\d+)\b")
#: Calls that only count how often an API is used: they take no tensors, give nothing, and are left out of records.
_IGNORED = (torch._C._log_api_usage_once,)
_SOURCE_KEY = re.compile(r"\['([^']*)'\]|\[(\d+)\]|\.(\w+)")


def from_graph_module(module: fx.GraphModule) -> GraphRecord:
    """The record of `module`.

    Raises RecordError with kind `operator_not_listed` (an operator off the allow-list) or `graph_not_serialisable`
    (a literal, constant or call that the format does not know).
    """
    return _Reader({}).read(module)


class _Reader:
    """Reads one graph and its nested graphs; all of them share one naming of the symbols."""

    def __init__(self, symbols: dict[str, str]):
        self.symbols = symbols

    def read(self, module: fx.GraphModule) -> GraphRecord:
        bodies: list[GraphRecord] = []
        body_of: dict[str, int] = {}
        rows: list[Node] = []
        row_of: dict[fx.Node, int] = {}
        effects = 0
        for node, slot in _reading_order(module.graph):
            row = self._row(module, node, slot, _distance(row_of, len(rows)))
            if row.op == "get_attr":
                path = str(node.target)
                if path not in body_of:
                    body_of[path] = len(bodies)
                    bodies.append(self.read(_attribute(module, path)))
                row = replace(row, target=f"body_{body_of[path]}")
            elif row.op.startswith("call_") and operators.is_effectful(row.target, list(node.args), node.kwargs):
                row = replace(row, effect=effects)
                effects += 1
            row_of[node] = len(rows)
            rows.append(row)
        return GraphRecord(tuple(rows), tuple(bodies))

    def _row(self, module: fx.GraphModule, node: fx.Node, slot: int, ref: Callable[[Any], int | None]) -> Node:
        value = node.meta.get("example_value")
        if node.op == "placeholder":
            return replace(self._value("placeholder", value), slot=slot, **_origin(node, value))
        if node.op == "output":
            return Node("output", value="none", args=dumps([encode_literal(node.args[0], ref)]))
        if node.op == "get_attr":
            held = _attribute(module, str(node.target))
            if isinstance(held, fx.GraphModule):
                return Node("get_attr", value="other")
            if isinstance(held, torch.Tensor):
                return replace(self._value("constant", held), args=constants.encode_tensor(held))
            raise RecordError("graph_not_serialisable", f"attribute {node.target} is a {type(held).__name__}")
        if node.op == "call_module":
            raise RecordError("graph_not_serialisable", f"call of submodule {node.target} was not inlined")
        return self._call(node, value, ref)

    def _call(self, node: fx.Node, value: Any, ref: Callable[[Any], int | None]) -> Node:
        name, args = _called(node)
        kind = node.op
        if name is None:
            spelled = _spelled(node.target, kind)
            operators.lookup(spelled)  # raises, naming the nearest listed operator
            raise RecordError("operator_not_listed", f"operator {spelled} is not on the allow-list")
        encoded = [encode_literal(a, ref) for a in args]
        kwargs = {k: encode_literal(node.kwargs[k], ref) for k in sorted(node.kwargs)}
        return replace(self._value(kind, value), target=name, args=dumps(encoded), kwargs=dumps(kwargs))

    def _value(self, op: str, value: Any) -> Node:
        """A row of kind `op` that describes the value a node yields."""
        if isinstance(value, torch.Tensor):
            shape = tuple(_size(s) for s in value.shape)
            dtype = DTYPE_NAMES.get(value.dtype, str(value.dtype))
            symbolic = any(isinstance(s, torch.SymInt) for s in value.shape)
            expr = "[" + ", ".join(self._expr(s) for s in value.shape) + "]" if symbolic else None
            return Node(op, dtype=dtype, shape=shape, expr=expr, stride=_stride(value), device=value.device.type)
        if isinstance(value, torch.SymInt):
            return Node(op, value="symint", expr=self._expr(value))
        if isinstance(value, torch.SymFloat):
            return Node(op, value="symfloat", expr=self._expr(value))
        if isinstance(value, torch.SymBool):
            return Node(op, value="symbool", expr=self._expr(value))
        if isinstance(value, list | tuple):
            return Node(op, value="tuple", elements=dumps([_element(v) for v in value]))
        if value is None:
            return Node(op, value="none")
        return Node(op, value="symint" if isinstance(value, int) and not isinstance(value, bool) else "other")

    def _expr(self, size: Any) -> str:
        """The expression of a size, its symbols renamed s0, s1 ... in the order in which they are met."""
        if not hasattr(size, "node"):
            return str(size)

        def rename(match: re.Match[str]) -> str:
            letter = "u" if match.group(1).startswith("u") else "s"
            return self.symbols.setdefault(match.group(0), f"{letter}{len(self.symbols)}")

        return _SYMBOL.sub(rename, str(size.node.expr))


def difference(a: fx.GraphModule, b: fx.GraphModule) -> str | None:
    """None when the two graphs are the same node by node (names aside), else where they first differ."""
    left, right = list(_call_order(a.graph)), list(_call_order(b.graph))
    if len(left) != len(right):
        return f"{len(left)} nodes against {len(right)}"
    number = {n: i for i, n in enumerate(left)} | {n: i for i, n in enumerate(right)}
    for i, (x, y) in enumerate(zip(left, right, strict=True)):
        if x.op != y.op:
            return f"node {i}: {x.op} against {y.op}"
        if x.op == "get_attr":
            held, other = _attribute(a, str(x.target)), _attribute(b, str(y.target))
            if isinstance(held, fx.GraphModule) and isinstance(other, fx.GraphModule):
                inner = difference(held, other)
                if inner:
                    return f"node {i}, nested graph: {inner}"
            elif constants.encode_tensor(held) != constants.encode_tensor(other):
                return f"node {i}: constants differ"
        elif x.op.startswith("call_") and _called(x)[0] != _called(y)[0]:
            return f"node {i}: {x.target} against {y.target}"
        if x.op != "placeholder" and _numbered(x, number) != _numbered(y, number):
            return f"node {i} ({x.target}): arguments {_numbered(x, number)} against {_numbered(y, number)}"
    return None


def _called(node: fx.Node) -> tuple[str | None, tuple[Any, ...]]:
    """(stored name, arguments) of a call; reading an attribute has one name, however the graph spells it."""
    if node.target is getattr and len(node.args) == 2 and isinstance(node.args[1], str):
        return operators.attribute_name(node.args[1]), node.args[:1]
    return operators.name_of(node.target, node.op), node.args


def _numbered(node: fx.Node, number: dict[fx.Node, int]) -> str:
    """The arguments as text, nodes replaced by their numbers, containers by their record form."""

    def ref(value: Any) -> int | None:
        return number[value] + 1 if isinstance(value, fx.Node) else None

    args = [encode_literal(a, ref) for a in _called(node)[1]]
    return dumps([args, {k: encode_literal(v, ref) for k, v in sorted(node.kwargs.items())}])


def _call_order(graph: fx.Graph) -> Iterator[fx.Node]:
    """Placeholders first, then every other node: what execution sees."""
    yield from (n for n in graph.nodes if n.op == "placeholder")
    yield from (n for n in graph.nodes if n.op != "placeholder" and n.target not in _IGNORED)


def _reading_order(graph: fx.Graph) -> Iterator[tuple[fx.Node, int]]:
    """(node, slot) with each placeholder directly before its first user; slot is -1 for other nodes."""
    waiting = {n: i for i, n in enumerate(n for n in graph.nodes if n.op == "placeholder")}
    for node in graph.nodes:
        if node.op == "placeholder" or node.target in _IGNORED:
            continue
        wanted = waiting if node.op == "output" else [n for n in node.all_input_nodes if n in waiting]
        for placeholder in sorted(wanted, key=lambda n: waiting[n]):
            yield placeholder, waiting[placeholder]
        for placeholder in list(wanted):
            del waiting[placeholder]
        yield node, -1


def _distance(row_of: dict[fx.Node, int], here: int) -> Callable[[Any], int | None]:
    def ref(value: Any) -> int | None:
        return here - row_of[value] if isinstance(value, fx.Node) else None

    return ref


def _origin(node: fx.Node, value: Any) -> dict[str, Any]:
    """Name and role of a placeholder, read from the Dynamo source it stands for."""
    grapharg = node.meta.get("grapharg")
    source = getattr(grapharg, "source", None) or getattr(node, "_dynamo_source", None)
    text = source.name if source is not None else node.name
    text = text() if callable(text) else str(text)
    if isinstance(value, torch.SymInt | torch.SymFloat | int) and not isinstance(value, torch.Tensor):
        role = "symbol"
    elif "_parameters[" in text:
        role = "parameter"
    elif "_buffers[" in text:
        role = "buffer"
    else:
        role = "input"
    keys = [next(g for g in m.groups() if g is not None) for m in _SOURCE_KEY.finditer(text)]
    keys = [k for k in keys if k not in ("_modules", "_parameters", "_buffers", "self")]
    if len(keys) > 1 and keys[0] == "kwargs":  # a wrapper's own name for what the caller passed by name
        keys = keys[1:]
    return {"role": role, "name": ".".join(keys) or node.name}


def _attribute(module: fx.GraphModule, path: str) -> Any:
    """The attribute that a get_attr node of a live (never a stored) graph refers to."""
    held: Any = module
    for part in path.split("."):
        held = getattr(held, part)
    return held


def _spelled(target: Any, kind: str) -> str:
    if kind == "call_method":
        return f"torch.Tensor.{target}"
    if isinstance(target, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return f"torch.ops.{target}"
    if hasattr(target, "__module__") and hasattr(target, "__qualname__"):
        return f"{target.__module__}.{target.__qualname__}"
    return str(target)


def _size(size: Any) -> int:
    """A size as an int: its example value when symbolic, -1 when it depends on data."""
    if isinstance(size, torch.SymInt):
        hint = size.node.hint if size.node.has_hint() else None
        return int(hint) if hint is not None else -1
    return int(size)


def _stride(value: torch.Tensor) -> tuple[int, ...] | None:
    """Strides, or None when they are those of a contiguous tensor (or the layout has none)."""
    if value.layout != torch.strided:
        return None
    expected = 1
    strides = [_size(s) for s in value.stride()]
    contiguous = True
    for size, stride in zip(reversed([_size(s) for s in value.shape]), reversed(strides), strict=True):
        if size not in (0, 1) and stride != expected:
            contiguous = False
        expected *= max(size, 1)
    return None if contiguous else tuple(strides)


def _element(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return [DTYPE_NAMES.get(value.dtype, str(value.dtype)), [_size(s) for s in value.shape]]
    return None
