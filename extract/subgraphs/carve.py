"""Rows of a graph made into a graph of their own: the mechanics that every kind of subgraph shares.

In: a `Parent` (a graph made ready for cutting) and row numbers. Out: a `Subgraph`, whose record runs alone and never
writes its inputs. Small constants and questions about sizes are copied into it; sizes that come from elsewhere become
symbol placeholders; every other outside value becomes a placeholder with the dtype, shape, stride and role it has in
the parent, and a recipe for drawing it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from extract.subgraphs.pure import purified, renumbered
from extract.subgraphs.ranges import Range, ranges, within
from extract.subgraphs.wiring import Wiring, wire
from warehouse.graph.inputs import infer_recipes
from warehouse.graph.literals import dumps, loads
from warehouse.graph.record import GraphRecord, Node

KINDS = ("sole_op", "fusible", "typical")


class NotCuttable(ValueError):
    """These rows do not make a graph of their own; the message says which row is in the way, and why."""


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A piece of a parent graph.

    record    runs alone: one placeholder an input, one output an output
    kind      one of `KINDS`
    rows      rows of the parent that it covers, ascending (constants and sizes copied into it are not among them)
    inputs    parent row whose value goes into each placeholder, in slot order
    outputs   parent row whose value each output is, in order
    """

    record: GraphRecord
    kind: str
    rows: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class Parent:
    """A graph made ready for cutting: unobserved in-place operators replaced, dependences and value ranges known.

    live: rows that the output or an effect needs; the others are as good as absent.
    """

    record: GraphRecord
    wiring: Wiring
    ranges: list[Range]
    live: frozenset[int]

    @classmethod
    def of(cls, record: GraphRecord) -> Parent:
        record = purified(record)
        wiring = wire(record)
        return cls(record, wiring, ranges(record), _live(record, wiring))


def _live(record: GraphRecord, wiring: Wiring) -> frozenset[int]:
    found: set[int] = set()
    waiting = [r for r, n in enumerate(record.nodes) if n.op == "output" or n.effect is not None]
    while waiting:
        row = waiting.pop()
        if row not in found:
            found.add(row)
            waiting.extend(wiring.refs[row])
    return frozenset(found)


def carve(parent: Parent, rows: Iterable[int], kind: str) -> Subgraph:
    """The subgraph of `rows`, which must be calls.

    Raises NotCuttable where they are not convex, write memory that comes from outside, need a value that cannot be an
    input (a tuple, a nested graph), or yield nothing that the parent uses.
    """
    inside = frozenset(rows)
    if not parent.wiring.convex(inside):
        raise NotCuttable(f"rows {_brief(inside)} are not convex: a path leaves them and comes back")
    copied, inputs = _surroundings(parent, inside)
    _writes_stay_inside(parent, inside)
    outputs = tuple(r for r in sorted(inside) if _wanted(parent, r, inside))
    if not outputs:
        raise NotCuttable(f"rows {_brief(inside)} yield nothing that the graph uses")
    for r in outputs:
        if parent.record.nodes[r].value != "tensor":
            raise NotCuttable(f"row {r} would be an output, and is a {parent.record.nodes[r].value}")
    record, slots = _assembled(parent, inside | copied, inputs, outputs)
    return Subgraph(_with_recipes(parent, record, slots), kind, tuple(sorted(inside)), slots, outputs)


def _brief(rows: Iterable[int]) -> str:
    listed = sorted(rows)
    return ", ".join(map(str, listed[:8])) + (" ..." if len(listed) > 8 else "")


def _surroundings(parent: Parent, inside: frozenset[int]) -> tuple[set[int], set[int]]:
    """(rows to copy in, rows that become placeholders)."""
    nodes, wiring = parent.record.nodes, parent.wiring
    fed = _fed_by(parent, inside)
    copied: set[int] = set()
    inputs: set[int] = set()
    waiting = sorted(inside)
    while waiting:
        for r in wiring.refs[waiting.pop()]:
            if r in inside or r in copied or r in inputs:
                continue
            node = nodes[r]
            number = node.value in ("symint", "symfloat")
            if node.op == "constant":
                copied.add(r)
            elif wiring.scalar[r] and not (number and r not in fed):
                copied.add(r)
                waiting.append(r)
            elif number or node.value == "tensor":
                inputs.add(r)
            else:
                raise NotCuttable(f"row {r} would be an input, and is a {node.value}")
    return copied, inputs


def _fed_by(parent: Parent, inside: frozenset[int]) -> set[int]:
    """Scalar rows that are computed, through scalars alone, from rows inside."""
    found: set[int] = set()
    waiting = list(inside)
    while waiting:
        for user in parent.wiring.users[waiting.pop()]:
            if parent.wiring.scalar[user] and user not in found and user not in inside:
                found.add(user)
                waiting.append(user)
    return found


def _writes_stay_inside(parent: Parent, inside: frozenset[int]) -> None:
    wiring = parent.wiring
    written = {m for r in inside for m in wiring.writes[r]}
    for r in sorted(inside) if written else ():
        for read in wiring.refs[r]:
            if wiring.memory[read] in written and read not in inside:
                raise NotCuttable(f"row {r} reads memory from outside that these rows write")


def _wanted(parent: Parent, row: int, inside: frozenset[int]) -> bool:
    """Whether anything outside reads `row`: not counting sizes that only rows inside ask for."""
    for user in parent.wiring.users[row]:
        if user in inside or user not in parent.live:
            continue
        if not parent.wiring.scalar[user] or _wanted(parent, user, inside):
            return True
    return False


def _assembled(
    parent: Parent, kept: set[int] | frozenset[int], inputs: set[int], outputs: tuple[int, ...]
) -> tuple[GraphRecord, tuple[int, ...]]:
    """The rows as a record in reading order, and the parent row of each placeholder by slot."""
    nodes, wiring = parent.record.nodes, parent.wiring
    made: list[Node] = []
    place: dict[int, int] = {}
    slots: list[int] = []
    for row in sorted(kept):
        for r in wiring.refs[row]:
            if r in inputs and r not in place:
                place[r] = len(made)
                made.append(_placeholder(nodes[r], len(slots)))
                slots.append(r)
        place[row] = len(made)
        made.append(rewired(nodes[row], row, place[row], place))
    here = len(made)
    made.append(Node("output", value="none", args=dumps([{"tuple": [f"%{here - place[r]}" for r in outputs]}])))
    return renumbered(GraphRecord(tuple(made))), tuple(slots)


def _placeholder(node: Node, slot: int) -> Node:
    """A placeholder for the value of `node`."""
    fields: dict[str, Any] = {"op": "placeholder", "slot": slot, "target": "", "args": "[]", "kwargs": "{}"}
    if node.op == "placeholder":
        return replace(node, slot=slot)
    role = "input" if node.value == "tensor" else "symbol"
    return replace(node, **fields, effect=None, role=role, name=f"{role[0] if role == 'symbol' else 'x'}{slot}")


def _with_recipes(parent: Parent, record: GraphRecord, slots: tuple[int, ...]) -> GraphRecord:
    """A parent's placeholder keeps its recipe; another value gets one from its readers and its maker."""
    inferred = infer_recipes(record)
    rows = list(inferred.nodes)
    for (i, node), row in zip(inferred.placeholders(), slots, strict=True):
        before = parent.record.nodes[row]
        if before.op == "placeholder" and before.recipe is not None:
            rows[i] = replace(node, recipe=before.recipe)
        elif node.value == "tensor":
            rows[i] = replace(node, recipe=dumps(within(loads(node.recipe or "{}"), parent.ranges[row], node.dtype)))
    return inferred.with_nodes(tuple(rows))


def rewired(node: Node, old: int, new: int, place: Mapping[int, int]) -> Node:
    """`node`, which stood at row `old`, for row `new`, when the rows it refers to now stand where `place` says."""
    if '"%' not in node.args and '"%' not in node.kwargs:
        return node

    def moved(data: Any) -> Any:
        if isinstance(data, str):
            return f"%{new - place[old - int(data[1:])]}"
        if isinstance(data, list):
            return [moved(v) for v in data]
        if isinstance(data, dict):
            return {tag: body if isinstance(body, str) else moved(body) for tag, body in data.items()}
        return data

    kwargs = {k: moved(v) for k, v in loads(node.kwargs).items()}
    return replace(node, args=dumps(moved(loads(node.args))), kwargs=dumps(kwargs))
