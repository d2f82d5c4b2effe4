"""The canonical order of a graph: one numbering that renaming, relabelling and reordering cannot change.

Values are coloured by what they are made from (a Merkle colour). From the outputs a depth-first walk numbers every
row, arguments in order; the operands of a commutative operator are walked by colour. Effectful rows are further
starting points, in the order of their tokens; rows that nothing uses come last, by colour. Where two different
operands share a colour, colours are refined by what the values are used for until nothing changes, and an operand
already numbered goes first. What is still equal then can be exchanged without changing the graph.

A written value is a new version: whoever reads it later (or anything that may share its memory) also refers to the
row that wrote it, so a read cannot cross a write.
"""

from __future__ import annotations

import bisect
import json
from dataclasses import dataclass
from typing import Any

import xxhash

from dedup.bodies import Bodies, Body, Traits
from warehouse.graph.record import GraphRecord, Node

_digest = xxhash.xxh3_64_digest


@dataclass(slots=True)
class Wiring:
    """The edges of a graph, and what else ties a row to its place.

    refs: rows referred to. after: the writes each reference comes after. effects: effectful rows in order. unused: rows
    that nothing uses. regions: (row, how many mode switches come before it), for pure calls behind the first switch.
    """

    bodies: list[Body]
    refs: list[list[int]]
    after: list[list[int]]
    effects: list[int]
    unused: list[int]
    regions: list[tuple[int, int]]


def wire(record: GraphRecord, bodies: Bodies) -> Wiring:
    """Read the rows of one graph (not its nested ones)."""
    found = [bodies.of(node) for node in record.nodes]
    refs = [[row - d for d in body.refs] for row, body in enumerate(found)]
    tokens = sorted((n.effect, row) for row, n in enumerate(record.nodes) if n.effect is not None)
    effects = [row for _, row in tokens]
    used = {ref for row in refs for ref in row}.union(effects)
    switches = [row for row in effects if record.nodes[row].target in bodies.traits.regions]
    regions = (
        [
            (row, bisect.bisect_left(switches, row))
            for row in range(switches[0], len(found))
            if record.nodes[row].op in ("call_function", "call_method")
        ]
        if switches
        else []
    )
    unused = [row for row in range(len(found) - 1) if row not in used]
    return Wiring(
        found, refs, _writes_before(record.nodes, refs, bodies.traits, set(effects)), effects, unused, regions
    )


def _writes_before(
    nodes: tuple[Node, ...], refs: list[list[int]], traits: Traits, effects: set[int]
) -> list[list[int]]:
    """For each row, one entry a reference: the last row that wrote what the reference may share memory with, or -1.

    Empty lists in a graph that writes nothing.
    """
    after: list[list[int]] = [[] for _ in nodes]
    writers = {row: _written_refs(nodes[row], traits) for row in effects}
    if not any(writers.values()):
        return after
    parent = list(range(len(nodes)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    last: dict[int, int] = {}

    def join(a: int, b: int) -> None:
        a, b = root(a), root(b)
        if a != b:
            parent[b] = a
            if b in last:
                last[a] = max(last.get(a, -1), last.pop(b))

    for row, node in enumerate(nodes):
        after[row] = [last.get(root(ref), -1) for ref in refs[row]]
        written = [refs[row][position] for position in writers.get(row, ())]
        for ref in written:
            join(ref, row)  # an in-place operator returns what it wrote
            last[root(ref)] = row
        if refs[row] and (node.target in traits.views or node.op == "output"):
            join(refs[row][0], row)
    return after


def _written_refs(node: Node, traits: Traits) -> list[int]:
    """Positions, in the row's list of references, of those it writes."""
    args, kwargs = json.loads(node.args), json.loads(node.kwargs)
    opaque = object()

    def seen(data: Any) -> Any:
        return opaque if isinstance(data, str | list | dict) else data

    wanted = traits.written(node.target, [seen(a) for a in args], {k: seen(v) for k, v in kwargs.items()})
    found: list[int] = []
    position = 0
    for name, value in [*enumerate(args), *sorted(kwargs.items())]:
        count = _count_refs(value)
        if name in wanted:
            found.extend(range(position, position + count))
        position += count
    return found


def _count_refs(data: Any) -> int:
    if isinstance(data, str):
        return 1
    if isinstance(data, list):
        return sum(_count_refs(v) for v in data)
    if isinstance(data, dict):
        return sum(_count_refs(v) for k, v in data.items() if k in ("tuple", "size", "slice", "dict"))
    return 0


def colours(keys: list[bytes], wiring: Wiring) -> tuple[list[bytes], bool]:
    """(Merkle colour of each row, whether two rows that only colours put in order share one).

    Those are the operands of a commutative operator, and the rows that nothing uses.
    """
    found: list[bytes] = []
    tied = False
    for key, refs, after, body in zip(keys, wiring.refs, wiring.after, wiring.bodies, strict=True):
        if not refs:
            found.append(_digest(key))
            continue
        parts = [found[r] for r in refs]
        if body.commutes and parts[0] >= parts[1]:
            tied = tied or (parts[0] == parts[1] and refs[0] != refs[1])
            parts[0], parts[1] = parts[1], parts[0]
        parts.extend(found[w] if w >= 0 else b"-" for w in after)
        found.append(_digest(key + b"".join(parts)))
    tied = tied or len({found[row] for row in wiring.unused}) < len(wiring.unused)
    return found, tied


def refined(keys: list[bytes], wiring: Wiring) -> list[bytes]:
    """Colours that also say what a value is used for: forward and backward passes until no class splits."""
    found, _ = colours(keys, wiring)
    classes = len(set(found))
    while True:
        users: list[list[bytes]] = [[] for _ in keys]
        backward: list[bytes] = [b""] * len(keys)
        for row in range(len(keys) - 1, -1, -1):
            backward[row] = mine = _digest(found[row] + b"".join(sorted(users[row])))
            commutes = wiring.bodies[row].commutes
            for position, ref in enumerate(wiring.refs[row]):
                place = 0 if commutes and position < 2 else position
                users[ref].append(mine + place.to_bytes(4, "little"))
            for position, writer in enumerate(wiring.after[row]):
                if writer >= 0:
                    users[writer].append(mine + (1 << 30 | position).to_bytes(4, "little"))
        found, _ = colours([k + b for k, b in zip(keys, backward, strict=True)], wiring)
        if len(set(found)) == classes:
            return found
        classes = len(set(found))


def numbering(colour: list[bytes], wiring: Wiring, tied: bool) -> tuple[list[int], list[list[int]]]:
    """(rows in canonical order, the references of each row in canonical order).

    The order is that of a depth-first walk from the output, the effects, then what nothing uses. Without ties colours
    alone put operands in order; with ties, an operand that the walk has already numbered goes first.
    """
    operands = [
        [refs[1], refs[0], *refs[2:]] if body.commutes and colour[refs[1]] < colour[refs[0]] else refs
        for refs, body in zip(wiring.refs, wiring.bodies, strict=True)
    ]
    number = [-1] * len(colour)
    order: list[int] = []
    open_rows: list[int] = []
    starts = [len(colour) - 1, *wiring.effects, *(row for _, row in sorted((colour[r], r) for r in wiring.unused))]
    after = wiring.after
    for start in starts:
        if number[start] == -1:
            open_rows.append(start)
        while open_rows:
            row = open_rows[-1]
            if number[row] == -1:  # met for the first time: what it refers to comes before it
                number[row] = -2
                if tied and wiring.bodies[row].commutes:
                    operands[row] = _settled(operands[row], colour, number)
                wanted = operands[row] + [w for w in after[row] if w >= 0] if after[row] else operands[row]
                open_rows.extend([child for child in reversed(wanted) if number[child] == -1])
            else:
                open_rows.pop()
                if number[row] == -2:
                    number[row] = len(order)
                    order.append(row)
    if tied:
        for row, body in enumerate(wiring.bodies):
            if body.commutes:
                operands[row] = _settled(operands[row], colour, number)
    return order, operands


def _settled(refs: list[int], colour: list[bytes], number: list[int]) -> list[int]:
    """Two operands of one colour: those already numbered first, by number; then by row."""
    a, b = refs[0], refs[1]
    if colour[a] != colour[b]:
        return refs
    places = [(0, number[r]) if number[r] >= 0 else (1, r) for r in (a, b)]
    return [b, a, *refs[2:]] if places[1] < places[0] else refs
