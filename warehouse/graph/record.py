"""The graph record: one captured computation graph as a table of nodes, with nothing executable in it.

`warehouse.graph.from_fx` makes a record, `warehouse.graph.to_fx` turns it back into a `torch.fx.GraphModule`,
`dedup.hashes` names it, and `warehouse.schema` stores its rows in the `nodes` table.

Reading order
    Nodes are numbered from 0 in *reading order*: the order of the FX graph, except that every placeholder stands
    directly before its first user (unused placeholders stand before `output`, in call order). `slot` keeps a
    placeholder's position in the call signature. Repeated blocks of a model then look alike row by row, which is
    what makes the table compress to a few bytes a node.

References
    Inside `args` and `kwargs` (compact JSON) another node is written as the string `"%k"`: the value of the node
    k rows above. Everything else is written as `encode_literal` says. A record therefore needs no node names.

Nested graphs (higher-order operators)
    `bodies[i]` is the i-th nested graph; the parent refers to it by a `get_attr` node whose target is `body_i`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

RECORD_VERSION = 1

#: The op kinds of torch.fx that a record may hold, plus `constant`: a small tensor stored by value.
OPS = ("placeholder", "call_function", "call_method", "get_attr", "constant", "output")
ROLES = ("parameter", "buffer", "input", "symbol")
VALUES = ("tensor", "tuple", "symint", "symfloat", "symbool", "none", "other")


class RecordError(ValueError):
    """A graph cannot be made into a record, or a record cannot be trusted. `kind` is a failure class."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Node:
    """One row of the `nodes` table. Fields not meant for a node's op kind are None.

    op        one of `OPS`
    target    call_function: public dotted name (`torch.nn.functional.linear`); call_method: `torch.Tensor.view`;
              attribute reads: `torch.Tensor.T` as call_function; get_attr: `body_0`; otherwise empty
    args      JSON array of positional arguments (see the module's docstring)
    kwargs    JSON object of keyword arguments, keys sorted
    value     what the node yields, one of `VALUES`
    dtype     `float32`, `int64`, ... of a tensor
    shape     sizes of a tensor; a symbolic size is given by its example value
    expr      symbolic sizes, as a string (`[s0, 3, s1//2]`), or the expression of a symint (`s0*2`); None if static
    stride    strides in elements, None when contiguous
    device    device type of a tensor (`cuda`, `cpu`)
    elements  JSON list of [dtype, shape] (or null) for a tuple's members
    effect    order token: 0, 1, 2 ... along the mutating, random or otherwise effectful nodes; None for pure nodes
    name      placeholder: where the value came from (`layers.0.weight`, `input_ids`); never part of any hash
    role      placeholder: one of `ROLES`
    slot      placeholder: position in the call signature, from 0
    recipe    placeholder: JSON value recipe (`warehouse.graph.inputs`)
    """

    op: str
    target: str = ""
    args: str = "[]"
    kwargs: str = "{}"
    value: str = "tensor"
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    expr: str | None = None
    stride: tuple[int, ...] | None = None
    device: str | None = None
    elements: str | None = None
    effect: int | None = None
    name: str | None = None
    role: str | None = None
    slot: int | None = None
    recipe: str | None = None


@dataclass(frozen=True, slots=True)
class GraphRecord:
    """A computation graph: its nodes in reading order and its nested graphs."""

    nodes: tuple[Node, ...]
    bodies: tuple[GraphRecord, ...] = ()

    def placeholders(self) -> list[tuple[int, Node]]:
        """(row index, node) of each placeholder, in call order."""
        found = [(i, n) for i, n in enumerate(self.nodes) if n.op == "placeholder"]
        return sorted(found, key=lambda item: item[1].slot if item[1].slot is not None else -1)

    def operators(self) -> list[str]:
        """Targets of the calls of this graph in reading order, nested graphs not included."""
        return [n.target for n in self.nodes if n.op in ("call_function", "call_method")]

    def walk(self, scope: str = "") -> Iterator[tuple[str, GraphRecord]]:
        """This graph and every nested one, as (scope, graph); the scope of the whole is the empty string."""
        yield scope, self
        for i, body in enumerate(self.bodies):
            yield from body.walk(f"{scope}.body_{i}" if scope else f"body_{i}")

    def num_nodes(self) -> int:
        """Rows in the `nodes` table, nested graphs included."""
        return sum(len(graph.nodes) for _, graph in self.walk())

    def with_nodes(self, nodes: tuple[Node, ...]) -> GraphRecord:
        return replace(self, nodes=nodes)
