"""Fusible candidates: what is left of a graph when the operators that Inductor hands to extern kernels are taken out.

In: a record. Out: subgraphs that a compiler could turn into one kernel each, found without compiling anything. How:

1. *Barriers* are taken out (`barriers`): extern operators, nested graphs, random draws, checks, mode switches and what
   runs under them, values read back to the host, complex numbers, sizes that depend on data, and writes to memory that
   comes from outside.
2. Every row gets a *level*: the most barriers on a path that ends in it. Rows of one level that reads connect form a
   component. It is convex: a path that leaves it for a barrier arrives at a higher level and never comes back.
3. A multi-output operator stays with its getitems, because a tuple cannot be an input or an output.
4. A component too small to be a task joins a neighbour if the two together are convex.
5. Views of inputs that nothing inside computes with are cut off; what then has two operators, one of which computes,
   and reads a tensor, is a candidate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from extract.subgraphs.carve import NotCuttable, Parent, Subgraph, carve
from extract.subgraphs.wiring import is_call, reads_values
from warehouse.graph import operators
from warehouse.graph.literals import DTYPES
from warehouse.graph.record import GraphRecord, Node

#: Copies, casts and new tensors: like views, no task by themselves.
_COPIES = {
    "clone", "contiguous", "getitem", "setitem", "copy_", "fill_", "zero_", "detach", "dropout", "dropout1d",
    "dropout2d", "dropout3d", "arange", "linspace", "zeros", "ones", "full", "empty", "eye", "zeros_like", "ones_like",
    "full_like", "empty_like", "scalar_tensor", "tensor", "new_zeros", "new_ones", "new_full", "new_empty", "repeat",
    "tile", "split_copy", "unbind_copy", "permute_copy", "transpose_copy", "squeeze_copy", "unsqueeze_copy",
    "expand_copy", "select_copy", "slice_copy", "narrow_copy", "detach_copy", "view_copy", "t_copy",
}  # fmt: skip
#: In-place operators that change the shape or nature of their argument rather than its values.
_RESHAPES = {"squeeze_", "unsqueeze_", "transpose_", "t_", "swapaxes_", "swapdims_", "as_strided_", "detach_"}
_UNKNOWN = re.compile(r"\bu\d+\b")


def computes(node: Node) -> bool:
    """Whether the row makes values that its inputs do not hold: no view, copy, cast or constant filling."""
    if not is_call(node) or node.value not in ("tensor", "tuple"):
        return False
    if node.target in operators.VIEWS and node.target not in operators.MUTATING:
        return False
    return node.target.rpartition(".")[2] not in _COPIES


def is_task(parent: Parent, rows: Iterable[int]) -> bool:
    """Whether rows are more than a lone operator or a chain of views: two operators, one of which computes."""
    calls = [r for r in rows if not _picks(parent, r)]
    return len(calls) >= 2 and any(computes(parent.record.nodes[r]) for r in calls)


def _picks(parent: Parent, row: int) -> bool:
    """Whether the row only takes a member out of a tuple."""
    node, refs = parent.record.nodes[row], parent.wiring.refs[row]
    return node.target == "operator.getitem" and bool(refs) and parent.record.nodes[refs[0]].value == "tuple"


def barriers(parent: Parent) -> set[int]:
    """Rows that no fusible candidate holds, because of what they are themselves."""
    nodes, wiring = parent.record.nodes, parent.wiring
    found: set[int] = set()
    for row, node in enumerate(nodes):
        if not is_call(node) or wiring.scalar[row]:
            continue
        near = [nodes[r] for r in wiring.refs[row]]
        if (
            node.target in operators.EXTERN
            or wiring.foreign[row]
            or (node.effect is not None and not wiring.writes[row])
            or (node.effect is not None and node.target in operators.RANDOM)
            or node.target.rpartition(".")[2] in _RESHAPES
            or reads_values(node)
            or node.value == "other"
            or any(n.op == "get_attr" for n in near)
            or any(_complex(n) or _unsized(n) for n in (node, *near))
        ):
            found.add(row)
    return found


def _complex(node: Node) -> bool:
    dtype = DTYPES.get(node.dtype or "")
    return dtype is not None and dtype.is_complex


def _unsized(node: Node) -> bool:
    if node.value != "tensor" or node.shape is None:
        return False
    return any(s < 0 for s in node.shape) or bool(node.expr and _UNKNOWN.search(node.expr))


def cut(record: GraphRecord) -> list[Subgraph]:
    """The fusible candidates of `record`, in reading order. Every computing row is in at most one of them."""
    return candidates(Parent.of(record))


def candidates(parent: Parent) -> list[Subgraph]:
    """As `cut`, of a graph already made ready."""
    blocked = barriers(parent)
    pieces = _pieces(parent, blocked)
    while True:  # each round finds writes that leave their piece, and cuts there too
        leaving = _leaving(parent, pieces)
        if not leaving:
            break
        blocked |= leaving
        pieces = _pieces(parent, blocked)
    found = []
    for rows in _joined(parent, pieces):
        for piece in parent.wiring.components(_trimmed(parent, rows)):
            if is_task(parent, piece):
                made = _carved(parent, piece, "fusible")
                if made is not None:
                    found.append(made)
    return sorted(found, key=lambda s: s.rows)


def _carved(parent: Parent, rows: frozenset[int], kind: str) -> Subgraph | None:
    """The subgraph, unless it reads no tensor: then it is a constant, and no task. None too for what nothing uses."""
    try:
        made = carve(parent, rows, kind)
    except NotCuttable:
        return None
    return made if any(parent.record.nodes[r].value == "tensor" for r in made.inputs) else None


def _pieces(parent: Parent, blocked: set[int]) -> list[frozenset[int]]:
    """Connected rows of one level, barriers left out. `blocked` grows by operators whose tuples would be cut off."""
    nodes, wiring = parent.record.nodes, parent.wiring
    while True:
        level = _levels(parent, blocked)
        light = {r for r in parent.live if is_call(nodes[r]) and r not in blocked and not wiring.scalar[r]}
        cut_off = {r for r in light if _tuple_cut(parent, r, light, level)}
        if not cut_off:
            break
        blocked |= cut_off
    by_level: dict[int, set[int]] = {}
    for r in light:
        by_level.setdefault(level[r], set()).add(r)
    return [piece for k in sorted(by_level) for piece in wiring.components(frozenset(by_level[k]))]


def _tuple_cut(parent: Parent, row: int, light: set[int], level: list[int]) -> bool:
    """Whether `row` makes or reads a tuple of tensors that is read or made elsewhere."""
    nodes, wiring = parent.record.nodes, parent.wiring

    def apart(other: int) -> bool:
        return not wiring.scalar[other] and (other not in light or level[other] != level[row])

    if nodes[row].value == "tuple" and any(apart(u) for u in wiring.users[row]):
        return True
    return any(nodes[r].value == "tuple" and apart(r) for r in wiring.refs[row])


def _levels(parent: Parent, blocked: set[int]) -> list[int]:
    level: list[int] = []
    for row, before in enumerate(parent.wiring.before):
        level.append(max((level[b] for b in before), default=0) + (row in blocked))
    return level


def _leaving(parent: Parent, pieces: list[frozenset[int]]) -> set[int]:
    """Rows that write memory which their piece reads from outside."""
    wiring = parent.wiring
    found: set[int] = set()
    for piece in pieces:
        writers = [r for r in piece if wiring.writes[r]]
        if writers:
            outside = {wiring.memory[x] for r in piece for x in wiring.refs[r] if x not in piece}
            found.update(r for r in writers if not wiring.writes[r].isdisjoint(outside))
    return found


def _joined(parent: Parent, pieces: list[frozenset[int]]) -> list[frozenset[int]]:
    """Pieces that are no task by themselves joined to a neighbour: to a reader if possible, else to what they read."""
    wiring = parent.wiring
    number = {r: k for k, piece in enumerate(pieces) for r in piece}
    members: dict[int, frozenset[int]] = dict(enumerate(pieces))
    for k, piece in enumerate(pieces):
        if k not in members or is_task(parent, piece) or members[k] != piece:
            continue
        readers = {number[u] for r in piece for u in wiring.users[r] if u in number} - {k}
        read = {number[x] for r in piece for x in wiring.refs[r] if x in number} - {k}
        for other in (*sorted(readers), *sorted(read - readers, reverse=True)):
            both = members[other] | piece
            if wiring.convex(both) and not _leaving(parent, [both]):
                members[other] = both
                del members[k]
                number.update(dict.fromkeys(piece, other))
                break
    return [members[k] for k in sorted(members)]


def _trimmed(parent: Parent, rows: frozenset[int]) -> frozenset[int]:
    """`rows` without views of inputs that nothing inside computes with; a tuple stays with its members."""
    nodes, wiring = parent.record.nodes, parent.wiring
    made = {r for r in rows if computes(nodes[r]) or nodes[r].effect is not None}
    for r in sorted(rows):  # what comes of a computing row
        if any(x in made for x in wiring.refs[r]):
            made.add(r)
    kept = set(made)
    waiting = list(made)
    while waiting:  # and what leads to one; with a tuple, everything taken out of it
        row = waiting.pop()
        near = [x for x in wiring.refs[row] if x in rows]
        if nodes[row].value == "tuple":
            near += [u for u in wiring.users[row] if u in rows]
        for r in near:
            if r not in kept:
                kept.add(r)
                waiting.append(r)
    return frozenset(kept)


def split(parent: Parent, subgraph: Subgraph, groups: Iterable[Iterable[int]]) -> list[Subgraph]:
    """`subgraph` cut along `groups` of its parent rows (those that a scheduler fused), each in convex connected parts.

    Rows in no group, or in several, stay with the first group that they connect to. Parts that are no task are left
    out. One group, or none, gives nothing new: the empty list.
    """
    wiring = parent.wiring
    own = frozenset(subgraph.rows)
    group_of: dict[int, int] = {}
    for k, group in enumerate(groups):
        for row in sorted(own.intersection(group)):
            group_of.setdefault(row, k)
    for row in [*sorted(own), *sorted(own, reverse=True)]:  # follow readers' and makers' groups
        if row not in group_of:
            near = [group_of[x] for x in (*wiring.users[row], *wiring.refs[row]) if x in group_of]
            if near:
                group_of[row] = near[0]
    for row in sorted(own):  # a tuple's members go where it goes
        if _picks(parent, row) and wiring.refs[row][0] in group_of:
            group_of[row] = group_of[wiring.refs[row][0]]
    if len(set(group_of.values())) < 2:
        return []
    found = []
    for k in sorted(set(group_of.values())):
        for piece in convex_parts(parent, frozenset(r for r in own if group_of.get(r) == k)):
            if is_task(parent, piece):
                made = _carved(parent, piece, subgraph.kind)
                if made is not None:
                    found.append(made)
    return sorted(found, key=lambda s: s.rows)


def convex_parts(parent: Parent, rows: frozenset[int]) -> list[frozenset[int]]:
    """`rows` in connected convex parts: by how often the longest path to a row has left `rows` on its way."""
    wiring = parent.wiring
    found = []
    for level in _by_departures(parent, rows, reads_only=False):
        for piece in wiring.components(level):
            if wiring.convex(piece):
                found.append(piece)
            else:  # an effect leads to another piece and back: then going along an effect counts as leaving too
                found += [q for part in _by_departures(parent, piece, reads_only=True) for q in wiring.components(part)]
    return found


def _by_departures(parent: Parent, rows: frozenset[int], reads_only: bool) -> list[frozenset[int]]:
    wiring = parent.wiring
    left: dict[int, int] = {}
    for row in range(min(rows, default=0), max(rows, default=-1) + 1):
        times = []
        for b in wiring.before[row]:
            if b in left:
                departs = b in rows and row not in rows and not wiring.scalar[row]
                times.append(left[b] + (departs or (reads_only and b not in wiring.refs[row])))
        if row in rows or times:
            left[row] = max(times, default=0)
    parts: dict[int, set[int]] = {}
    for row in rows:
        parts.setdefault(left[row], set()).add(row)
    return [frozenset(parts[k]) for k in sorted(parts)]


def sole_ops(record: GraphRecord) -> list[Subgraph]:
    """Each distinct computing operator of `record` alone, with the members taken from its tuple: once for each
    combination of arguments, dtypes and shapes. Extern operators count; random ones cannot be compared and do not."""
    return singles(Parent.of(record))


def singles(parent: Parent) -> list[Subgraph]:
    """As `sole_ops`, of a graph already made ready."""
    nodes, wiring = parent.record.nodes, parent.wiring
    seen: set[tuple[Node, ...]] = set()
    found = []
    for row, node in enumerate(nodes):
        if not computes(node) or wiring.foreign[row] or (node.effect is not None and not wiring.writes[row]):
            continue
        taken = [u for u in wiring.users[row] if _picks(parent, u)] if node.value == "tuple" else []
        made = _carved(parent, frozenset([row, *taken]), "sole_op")
        key = tuple(_anonymous(n) for n in made.record.nodes) if made else ()
        if made is not None and key not in seen:
            seen.add(key)
            found.append(made)
    return found


def _anonymous(node: Node) -> Node:
    return replace(node, name=None, recipe=None, role=None) if node.op == "placeholder" else node
