"""From a GraphRecord back to a `torch.fx.GraphModule` that computes the same outputs.

In: a record, perhaps from a stranger's file; `warehouse.graph.validate` checks it first. Out: a module whose
placeholders are the record's in call order. torch.fx turns a graph into Python text and runs that text, so what can
reach the text is fixed here: names are made of letters, digits and underscores, callables are those of the allow-list,
and literals are the plain values of `warehouse.graph.literals`, which torch.fx writes by `repr`.
"""

from __future__ import annotations

import re
from typing import Any

from torch import fx

from warehouse.graph import operators
from warehouse.graph.constants import decode_tensor
from warehouse.graph.record import GraphRecord, Node, RecordError
from warehouse.graph.validate import decode_call, validate

_ILLEGAL = re.compile(r"[^0-9A-Za-z]+")
_PREFIX = {"parameter": "p_", "buffer": "b_", "input": "x_", "symbol": "s_"}


class _Unprinted(fx.GraphModule):
    """A module whose graph is only looked at: printing and compiling its forward would cost as much as all the rest."""

    def recompile(self) -> Any:
        return None


def to_graph_module(record: GraphRecord, callable_: bool = True) -> fx.GraphModule:
    """The module of `record`: call it with one value for each placeholder, in slot order; it returns the outputs.

    Nested graphs are its submodules `body_i`, constants its buffers `constant_i` (on the CPU: move them with `.to`).
    Without `callable_` the graph is there, to be compared or interpreted, and forward is not.
    Raises RecordError(`record_invalid` or `operator_not_listed`), naming the row.
    """
    validate(record)
    return _build(record, fx.GraphModule if callable_ else _Unprinted)


def _build(record: GraphRecord, kind: type[fx.GraphModule]) -> fx.GraphModule:
    graph = fx.Graph()
    root: dict[str, Any] = {f"body_{i}": _build(body, kind) for i, body in enumerate(record.bodies)}
    made: dict[int, fx.Node] = {}
    for row, node in record.placeholders():
        made[row] = _placeholder(graph, node)
        if node.shape is not None:
            made[row].meta["shape"] = node.shape
    constants = 0
    for row, node in enumerate(record.nodes):
        if node.op == "placeholder":
            continue
        if node.op == "get_attr":
            made[row] = graph.create_node("get_attr", node.target)
        elif node.op == "constant":
            root[f"constant_{constants}"] = decode_tensor(node.args)
            made[row] = graph.create_node("get_attr", f"constant_{constants}")
            constants += 1
        else:
            made[row] = _call_or_output(graph, row, node, made)
        if node.shape is not None:
            made[row].meta["shape"] = node.shape
    try:
        return kind(root, graph, class_name="StoredGraph")
    except (SyntaxError, ValueError, TypeError, IndexError, RuntimeError) as error:
        raise RecordError("record_invalid", f"torch.fx cannot print this graph: {error}") from error


def _placeholder(graph: fx.Graph, node: Node) -> fx.Node:
    """A placeholder whose name, made from where the value came from, is unique and safe to print."""
    words = _ILLEGAL.sub("_", node.name or "").strip("_")[-80:]
    made = graph.create_node("placeholder", "value", name=f"{_PREFIX[str(node.role)]}{words}")
    made.target = made.name  # torch.fx prints the target as the parameter's name, and makes only the name unique
    return made


def _call_or_output(graph: fx.Graph, row: int, node: Node, made: dict[int, fx.Node]) -> fx.Node:
    args, kwargs = decode_call(node, lambda distance: made[row - distance])
    if node.op == "output":
        return graph.create_node("output", "output", (args[0],))
    operator = operators.lookup(node.target)
    if operator.kind == "attribute":
        return graph.create_node("call_function", getattr, (args[0], str(operator.fn)))
    return graph.create_node(node.op, operator.fn, tuple(args), kwargs)  # type: ignore[arg-type]
