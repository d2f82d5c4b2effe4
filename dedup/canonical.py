"""The canonical order of a graph: one numbering that renaming, relabelling and reordering cannot change.

Values are coloured by what they are made from (a Merkle colour). From the outputs a depth-first walk numbers every
row, arguments in order; the operands of a commutative operator are walked by colour. Effectful rows are further
starting points, in the order of their tokens; rows that nothing uses come last, by colour. Where colours leave open
which of two rows comes first, they are refined by what values are used for (`dedup.cells`). Two rows that nothing tells
apart can be exchanged: either may go first, and that choice is carried into the colours before the walk goes on.

A written value is a new version: whoever reads it later (or anything that may share its memory) also refers to the
row that wrote it, so a read cannot cross a write (`dedup.writes`).
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass

import xxhash

from dedup.bodies import Bodies, Body
from dedup.cells import Cells, Edge
from dedup.symbols import mentions
from dedup.writes import writes_before
from warehouse.graph.record import GraphRecord

_digest = xxhash.xxh3_64_digest
_UNWRITTEN = bytes(8)


@dataclass(slots=True)
class Wiring:
    """The edges of a graph, and what else ties a row to its place.

    refs: rows referred to. after: the write each reference comes after (-1: none), empty for most rows. effects:
    effectful rows in order. unused: rows that nothing uses. regions: (row, how many mode switches come before it), for
    calls behind the first switch.
    """

    bodies: list[Body]
    refs: list[list[int]]
    after: list[list[int]]
    effects: list[int]
    unused: list[int]
    regions: list[tuple[int, int]]

    def operands(self, row: int, swapped: bool) -> list[tuple[int, int]]:
        """(row referred to, write it comes after) of each reference, the first two exchanged if `swapped`."""
        refs = self.refs[row]
        pairs = list(zip(refs, self.after[row] or [-1] * len(refs), strict=True))
        return [pairs[1], pairs[0], *pairs[2:]] if swapped else pairs


def wire(record: GraphRecord, bodies: Bodies) -> Wiring:
    """Read the rows of one graph (not its nested ones)."""
    nodes = record.nodes
    found = [bodies.of(node) for node in nodes]
    refs = [[row - d for d in body.refs] for row, body in enumerate(found)]
    tokens = [(n.effect, row) for row, n in enumerate(nodes) if n.effect is not None]
    if record.bodies and (quiet := _calls_with_effects(record, refs)):
        # A nested graph that draws or writes has no token of its own where its operator is not an effect by itself.
        # Tokens run along the rows, so it takes its place among them by row.
        effects = sorted({row for _, row in tokens}.union(quiet))
    else:
        effects = [row for _, row in sorted(tokens)]
    used = {ref for row in refs for ref in row}.union(effects)
    unused = [row for row in range(len(found) - 1) if row not in used]
    switches = [row for row in effects if nodes[row].target in bodies.traits.regions]
    regions: list[tuple[int, int]] = []
    if switches:
        behind = (row for row in range(switches[0], len(found)) if nodes[row].op.startswith("call_"))
        regions = [(row, bisect.bisect_left(switches, row)) for row in behind]
    return Wiring(found, refs, writes_before(record, refs, effects, bodies), effects, unused, regions)


def _calls_with_effects(record: GraphRecord, refs: list[list[int]]) -> list[int]:
    """Rows that refer to a nested graph with effects."""
    loud = {i for i, b in enumerate(record.bodies) if any(n.effect is not None for _, g in b.walk() for n in g.nodes)}
    held = {
        row
        for row, node in enumerate(record.nodes)
        if node.op == "get_attr" and int(node.target.removeprefix("body_")) in loud
    }
    return [row for row, wanted in enumerate(refs) if not held.isdisjoint(wanted)] if held else []


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
        if after:
            parts = [part + (found[w] if w >= 0 else _UNWRITTEN) for part, w in zip(parts, after, strict=True)]
        if body.commutes and parts[0] >= parts[1]:
            tied = tied or (parts[0] == parts[1] and refs[0] != refs[1])
            parts[0], parts[1] = parts[1], parts[0]
        found.append(_digest(key + b"".join(parts)))
    tied = tied or len({found[row] for row in wiring.unused}) < len(wiring.unused)
    return found, tied


def cells(colour: list[bytes], wiring: Wiring, expressions: list[str | None]) -> Cells:
    """The rows in cells; also the symbols that `expressions` mention, behind the rows, for a symbol ties rows too.

    A pass from the last row to the first, adding to each colour what its row is used for, settles nearly everything.
    """
    edges: list[Edge] = []
    used_for: list[list[bytes]] = [[] for _ in colour]
    fine = list(colour)
    for row in range(len(colour) - 1, -1, -1):
        if used_for[row]:
            fine[row] = _digest(colour[row] + b"".join(sorted(used_for[row])))
        commutes = wiring.bodies[row].commutes
        found = [(ref, 3 * _place(i, commutes)) for i, ref in enumerate(wiring.refs[row])]
        found += [(w, 3 * _place(i, commutes) + 1) for i, w in enumerate(wiring.after[row]) if w >= 0]
        for other, label in _one_each(found):
            edges.append((row, other, label))
            used_for[other].append(b"%b%d" % (fine[row], label))
    vertex: dict[str, int] = {}
    for row, expression in enumerate(expressions):
        if expression:
            places = [(vertex.setdefault(s, len(colour) + len(vertex)), 3 * i + 2) for s, i in mentions(expression)]
            edges += [(row, symbol, label) for symbol, label in _one_each(places)]
    return Cells(fine + [_digest(b"symbol")] * len(vertex), edges)


def _place(position: int, commutes: bool) -> int:
    """A label for an argument's position, the same for the two operands that may change places."""
    return 1 if commutes and position < 2 else position + 1


def _one_each(labelled: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """One edge to each vertex, its label all of theirs: add(x, x) and add(x, y) differ even while x and y do not."""
    if len({other for other, _ in labelled}) == len(labelled):
        return labelled
    joined: dict[int, int] = {}
    for other, label in sorted(labelled):
        joined[other] = joined.get(other, 0) << 32 | label
    return list(joined.items())


def numbering(colour: list[bytes], wiring: Wiring, tied: Cells | None) -> tuple[list[int], set[int]]:
    """(rows in canonical order, the commutative rows whose first two operands are exchanged in it).

    `tied` is None where the colours alone put everything in order; otherwise its colours must be `colour`.
    """
    seen = bytearray(len(colour))  # 1: met, 2: numbered
    order: list[int] = []
    swapped: set[int] = set()
    open_rows: list[int] = []
    for start in _starts(colour, wiring, tied):
        open_rows.append(start)
        while open_rows:
            row = open_rows[-1]
            if seen[row]:
                open_rows.pop()
                if seen[row] == 1:
                    seen[row] = 2
                    order.append(row)
                continue
            seen[row] = 1  # what it refers to comes before it
            wanted = wiring.refs[row]
            if wiring.bodies[row].commutes and _second_first(row, colour, wiring, tied):
                swapped.add(row)
                wanted = [wanted[1], wanted[0], *wanted[2:]]
            if wiring.after[row]:
                wanted = wanted + [w for _, w in wiring.operands(row, row in swapped) if w >= 0]
            for child in reversed(wanted):
                if not seen[child]:
                    open_rows.append(child)
    return order, swapped


def _second_first(row: int, colour: list[bytes], wiring: Wiring, tied: Cells | None) -> bool:
    """Whether the second operand of a commutative row comes before the first."""
    one, two = wiring.refs[row][:2]
    if colour[one] != colour[two]:
        return colour[two] < colour[one]
    if one == two:
        return False
    writes = [colour[w] if w >= 0 else _UNWRITTEN for _, w in wiring.operands(row, False)[:2]]
    if writes[0] == writes[1] and tied is not None:
        tied.single_out(one)
        return colour[two] < colour[one]
    return writes[1] < writes[0]


def _starts(colour: list[bytes], wiring: Wiring, tied: Cells | None) -> Iterator[int]:
    """Where the walk starts: the output, effects in order, then unused rows by colour."""
    yield len(wiring.refs) - 1
    yield from wiring.effects
    groups: dict[bytes, list[int]] = {}
    for row in wiring.unused:
        groups.setdefault(colour[row], []).append(row)
    for name in sorted(groups):  # choices made on the way may tell members of a group apart, but never move a group
        waiting, known = groups[name], -1
        while len(waiting) > 1 and tied is not None:
            if tied.splits != known:
                waiting.sort(key=lambda row: (colour[row], row), reverse=True)
                known = tied.splits
            row = waiting.pop()
            if len(tied.members[colour[row]]) > 1:
                tied.single_out(row)
                known += 1  # no need to sort again if that was the only split
            yield row
        yield from waiting
