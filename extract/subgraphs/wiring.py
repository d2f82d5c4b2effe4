"""What depends on what in one graph: the order that any cutting and putting back must respect.

In: a record; nested graphs stay closed, their operator is one row. Out: a `Wiring`: who reads whom, which rows may
share memory, which rows write it, and for each row the rows that must run before it. Besides the values it reads, a
row that reads memory comes after the last write of it, a write comes after every earlier touch, and a row that
switches a mode (autocast, gradients, vmap) keeps its place among all others.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from warehouse.graph import operators
from warehouse.graph.literals import leaves
from warehouse.graph.literals import loads as parse
from warehouse.graph.record import GraphRecord, Node
from warehouse.graph.validate import Reference, above, decode_call

#: Views whose results may share memory with any of their arguments.
_OF_ANY = {"torch.meshgrid", "torch.broadcast_tensors"}
#: Where a mode is switched on and off: opening name -> closing name.
_FOREIGN = {
    "torch.autograd.grad_mode._enter_inference_mode": "torch.autograd.grad_mode._exit_inference_mode",
    "torch._functorch.predispatch._vmap_increment_nesting": "torch._functorch.predispatch._vmap_decrement_nesting",
}
#: Operators that read a tensor's values back to the host.
HOST_READS = {"item", "is_nonzero", "allclose", "equal", "_is_all_true", "_is_any_true", "tolist", "truth", "bool"}
_AUTOCAST = ("torch.amp.autocast_mode._enter_autocast", "torch.amp.autocast_mode._exit_autocast")


@dataclass(frozen=True)
class Wiring:
    """The dependences of a graph, one entry a row.

    refs       rows that the row reads, in argument order, repeats kept
    users      rows that read it, ascending, no repeats
    before     rows that must run before it: those it reads, and those that effects put there
    memory     number of its memory class; rows of one class may share memory
    writes     memory classes that the row writes
    era        how many rows above switch a mode
    foreign    whether the row runs under autocast, vmap or inference mode: outside of them it would compute otherwise
    scalar     whether the row yields no tensor but a size, a number or a fact about a tensor
    """

    refs: tuple[tuple[int, ...], ...]
    users: tuple[tuple[int, ...], ...]
    before: tuple[frozenset[int], ...]
    memory: tuple[int, ...]
    writes: tuple[frozenset[int], ...]
    era: tuple[int, ...]
    foreign: tuple[bool, ...]
    scalar: tuple[bool, ...]

    def convex(self, rows: frozenset[int]) -> bool:
        """Whether no path of dependences leaves `rows` and comes back; one through sizes alone does not count."""
        if not rows:
            return True
        left: set[int] = set()  # rows outside on a path that has left
        sizes: set[int] = set()  # scalars computed from rows inside: they are copied in where rows inside read them
        for row in range(min(rows), max(rows) + 1):
            before = self.before[row]
            hit = not left.isdisjoint(before)
            if row in rows:
                if hit:
                    return False
            elif hit:
                left.add(row)
            elif not rows.isdisjoint(before) or not sizes.isdisjoint(before):
                (sizes if self.scalar[row] else left).add(row)
        return True

    def components(self, rows: frozenset[int]) -> list[frozenset[int]]:
        """`rows` in pieces that reads connect, in order of their first row."""
        found: list[frozenset[int]] = []
        left = set(rows)
        for first in sorted(rows):
            if first not in left:
                continue
            piece, waiting = {first}, [first]
            left.discard(first)
            while waiting:
                here = waiting.pop()
                for near in (*self.refs[here], *self.users[here]):
                    if near in left:
                        left.discard(near)
                        piece.add(near)
                        waiting.append(near)
            found.append(frozenset(piece))
        return found


def is_call(node: Node) -> bool:
    return node.op in ("call_function", "call_method")


@functools.lru_cache(maxsize=65536)
def _decoded(node: Node) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of a row; a reference k rows up is Reference(-k), so that equal rows decode once."""
    return decode_call(node, lambda distance: Reference(-distance))


def wire(record: GraphRecord) -> Wiring:
    """The dependences of the outermost graph of `record`."""
    rows = record.nodes
    refs: list[tuple[int, ...]] = []
    written: list[tuple[int, ...]] = []
    shared: list[tuple[int, ...]] = []
    for i, node in enumerate(rows):
        args, kwargs = _decoded(node) if node.op != "constant" else ([], {})
        refs.append(tuple(i + leaf.row for leaf in leaves([args, kwargs]) if isinstance(leaf, Reference)))
        nested = any(rows[r].op == "get_attr" for r in refs[i])
        written.append(_written(record, i, args, kwargs, refs[i], nested))
        shared.append(_shared(i, node, args, refs[i], written[i], nested))
    memory = _classes(shared)
    writes = [frozenset(memory[r] for r in targets) for targets in written]
    switches = [is_call(n) and operators.LISTED.get(n.target, ("", ()))[0] == "region" for n in rows]
    users: list[list[int]] = [[] for _ in rows]
    for i, read in enumerate(refs):
        for r in dict.fromkeys(read):
            users[r].append(i)
    return Wiring(
        tuple(refs),
        tuple(tuple(u) for u in users),
        tuple(_before(rows, refs, memory, writes, switches)),
        tuple(memory),
        tuple(writes),
        tuple(_running(switches)),
        tuple(_foreign(rows)),
        tuple(_is_scalar(n) for n in rows),
    )


def reads_values(node: Node) -> bool:
    """Whether the row hands values of a tensor to the host."""
    return node.value != "tensor" and node.target.rpartition(".")[2] in HOST_READS


def _is_scalar(node: Node) -> bool:
    if not is_call(node) or node.value in ("tensor", "none") or reads_values(node):
        return False
    return node.value != "tuple" or all(e is None for e in parse(node.elements or "[]"))


def _written(
    record: GraphRecord, i: int, args: list[Any], kwargs: dict[str, Any], refs: tuple[int, ...], nested: bool
) -> tuple[int, ...]:
    """The rows whose memory row i may write. A nested graph with any effect may write all that it is given."""
    node = record.nodes[i]
    if not is_call(node):
        return ()
    if nested:
        bodies = [record.bodies[int(record.nodes[r].target.removeprefix("body_"))] for r in refs if _is_body(record, r)]
        touched = any(n.effect is not None for body in bodies for _, graph in body.walk() for n in graph.nodes)
        return tuple(r for r in refs if not _is_body(record, r)) if touched else ()
    if _is_scalar(node):  # `+=` on a size makes a new one
        return ()
    found: list[int] = []
    for where in operators.mutated_operands(node.target, args, kwargs):
        value = args[where] if isinstance(where, int) else kwargs.get(where)
        found.extend(i + leaf.row for leaf in leaves([value]) if isinstance(leaf, Reference))
    return tuple(found)


def _is_body(record: GraphRecord, row: int) -> bool:
    return record.nodes[row].op == "get_attr"


def _shared(
    i: int, node: Node, args: list[Any], refs: tuple[int, ...], written: tuple[int, ...], nested: bool
) -> tuple[int, ...]:
    """The rows whose memory the result of row i may share."""
    if not is_call(node):
        return ()
    if nested or node.target in _OF_ANY:
        return tuple(refs)
    if node.target not in operators.VIEWS:
        return written
    if node.target in operators.MUTATING and node.target not in operators.RANDOM and not written:
        return ()  # an activation that was not asked to work in place
    first = [i + leaf.row for leaf in leaves(args[:1]) if isinstance(leaf, Reference)]
    return (*written, *(first or refs))


def _classes(shared: list[tuple[int, ...]]) -> list[int]:
    """For each row the first row of those that may share memory with it."""
    parent = list(range(len(shared)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    for row, others in enumerate(shared):
        for other in others:
            one, two = sorted((root(row), root(other)))
            parent[two] = one
    return [root(row) for row in range(len(shared))]


def _before(
    rows: tuple[Node, ...],
    refs: list[tuple[int, ...]],
    memory: list[int],
    writes: list[frozenset[int]],
    switches: list[bool],
) -> list[frozenset[int]]:
    """For each row, the rows that must come before it."""
    changing = frozenset(m for w in writes for m in w)
    last_write: dict[int, int] = {}
    touched: dict[int, list[int]] = {}
    found: list[set[int]] = []
    last_effect = last_switch = -1
    for i, node in enumerate(rows):
        need = set(refs[i])
        if changing:
            read = {memory[r] for r in refs[i]} | writes[i]
            for m in read & changing:
                if m in last_write:
                    need.add(last_write[m])
                if m in writes[i]:
                    need.update(touched.pop(m, ()))
                    last_write[m] = i
                touched.setdefault(m, []).append(i)
        if node.effect is not None and not writes[i]:  # draws and checks keep their order
            if last_effect >= 0:
                need.add(last_effect)
            last_effect = i
        if switches[i]:
            need.update(range(max(last_switch, 0), i))
            last_switch = i
        elif last_switch >= 0 and is_call(node):
            need.add(last_switch)
        need.discard(i)
        found.append(need)
    return [frozenset(need) for need in found]


def _running(switches: list[bool]) -> list[int]:
    count, found = 0, []
    for switch in switches:
        count += switch
        found.append(count)
    return found


def _foreign(rows: tuple[Node, ...]) -> list[bool]:
    """Rows inside vmap, inference mode, or an autocast that is switched on."""
    opened: list[tuple[str, bool]] = []
    found = []
    for node in rows:
        if node.target in _FOREIGN:
            opened.append((_FOREIGN[node.target], True))
        elif node.target == _AUTOCAST[0]:
            args, kwargs = _decoded(node)
            enabled = kwargs.get("enabled", args[2] if len(args) > 2 else True)
            opened.append((_AUTOCAST[1], enabled is not False))
        elif opened and any(node.target == closing for closing, _ in opened):
            last = max(k for k, (closing, _) in enumerate(opened) if closing == node.target)
            del opened[last]
        found.append(_counts(opened))
    return found


def _counts(opened: list[tuple[str, bool]]) -> bool:
    autocast = [on for closing, on in opened if closing == _AUTOCAST[1]]
    return any(closing != _AUTOCAST[1] for closing, _ in opened) or any(autocast)


def decoded(record: GraphRecord, row: int) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of a call, references as `Reference(row)`."""
    return decode_call(record.nodes[row], above(row))
