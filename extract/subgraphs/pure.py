"""A graph whose in-place operators are written as ordinary ones wherever nobody can tell the difference.

`relu(x, inplace=True)` after a convolution overwrites memory that nothing reads again. Cut out as it stands, it would
be a subgraph that destroys its own input. In: a record. Out: the same rows, with such operators replaced by their
twins that make a new tensor. A write stays where its memory comes from outside the graph (a parameter, a running
mean), or where a later row reads that memory other than through the written result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from extract.subgraphs.wiring import Wiring, decoded, is_call, wire
from warehouse.graph import operators
from warehouse.graph.literals import dumps, loads
from warehouse.graph.record import GraphRecord, Node
from warehouse.graph.validate import Reference

#: In-place operators of Python on tensors -> the operator that makes a new one.
_PYTHON = {
    "operator.iadd": "operator.add", "operator.isub": "operator.sub", "operator.imul": "operator.mul",
    "operator.itruediv": "operator.truediv", "operator.ifloordiv": "operator.floordiv",
    "operator.imod": "operator.mod", "operator.ipow": "operator.pow", "operator.iand": "operator.and_",
    "operator.ior": "operator.or_", "operator.ixor": "operator.xor",
}  # fmt: skip


def purified(record: GraphRecord) -> GraphRecord:
    """`record` with every unobserved in-place operator replaced, order tokens renumbered. Nested graphs stay."""
    wiring = wire(record)
    foreign = {wiring.memory[i] for i, n in enumerate(record.nodes) if n.op in ("placeholder", "constant")}
    rows = list(record.nodes)
    for i, node in enumerate(record.nodes):
        if wiring.writes[i] and wiring.writes[i].isdisjoint(foreign) and not _observed(record, wiring, i):
            rows[i] = _twin(record, i, node) or node
    return renumbered(record.with_nodes(tuple(rows)))


def _observed(record: GraphRecord, wiring: Wiring, row: int) -> bool:
    """Whether any later row reads the memory that `row` writes other than through its result."""
    through = {row}
    for later in range(row + 1, len(record.nodes)):
        read = [r for r in wiring.refs[later] if wiring.memory[r] in wiring.writes[row]]
        if any(r not in through for r in read):
            return True
        if read and wiring.memory[later] in wiring.writes[row]:
            through.add(later)
    return False


def _twin(record: GraphRecord, row: int, node: Node) -> Node | None:
    """The row as an operator that writes nothing; None where none is known to give the same result."""
    args, kwargs = decoded(record, row)
    written = operators.mutated_operands(node.target, args, kwargs)
    if len(written) != 1 or written[0] in ("out", 1) or not _same_kind(record, row, args, kwargs):
        return None
    if node.target in operators._INPLACE:
        return _without_flag(node, operators._INPLACE[node.target])
    target = _PYTHON.get(node.target)
    if target is None and node.target.endswith("_") and not node.target.endswith("__"):
        target = node.target[:-1]
        target = operators.ALIASES.get(target, target)
    if target not in operators.LISTED or target in operators.MUTATING or target in operators.VIEWS:
        return None
    kind = operators.LISTED[target][0]
    if kind not in ("function", "method"):
        return None
    return replace(node, target=target, op="call_method" if kind == "method" else "call_function")


def _same_kind(record: GraphRecord, row: int, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether the written operand alone decides dtype and shape, so that a new tensor has those of the old one.

    In place, `half += float` stays half; the twin would promote. So every other tensor has the written one's dtype, or
    none at all, and numbers do not turn integers into floats.
    """
    first = args[0] if args else next(iter(kwargs.values()), None)
    if not isinstance(first, Reference):
        return False
    base, node = record.nodes[first.row], record.nodes[row]
    if base.value != "tensor" or (base.dtype, base.shape) != (node.dtype, node.shape):
        return False
    for value in [*args[1:], *kwargs.values()]:
        if isinstance(value, Reference):
            other = record.nodes[value.row]
            if other.value != "tensor" or other.dtype not in (base.dtype, "bool"):
                return False
        elif isinstance(value, float | complex) and base.dtype not in ("float32", "float16", "bfloat16", "float64"):
            return False
    return True


def _without_flag(node: Node, position: int) -> Node:
    args, kwargs = loads(node.args), loads(node.kwargs)
    if "inplace" in kwargs:
        kwargs["inplace"] = False
    if position < len(args):
        args[position] = False
    return replace(node, args=dumps(args), kwargs=dumps(kwargs))


def renumbered(record: GraphRecord) -> GraphRecord:
    """`record` with the order tokens that its calls are due."""
    rows, effects = [], 0
    for i, node in enumerate(record.nodes):
        token = None
        if is_call(node) and operators.is_effectful(node.target, *decoded(record, i)):
            token, effects = effects, effects + 1
        rows.append(node if node.effect == token else replace(node, effect=token))
    return record.with_nodes(tuple(rows))
