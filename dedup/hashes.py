"""The four hashes of a graph record: graph, structure, template, operators. docs/hashes.md says what each covers.

Each is xxh3-128 over an exact, name-free serialisation in canonical order: equal hashes mean graphs that are equal at
that level (up to a collision of 128 bits), never merely similar ones.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from functools import cache

import xxhash

from dedup.bodies import Bodies, Traits
from dedup.canonical import Wiring, cells, colours, numbering, wire
from dedup.symbols import nameless
from warehouse.graph.record import GraphRecord, Node

#: Part of every hash's input and stored with every graph. Raise it whenever a definition changes.
HASH_VERSION = 2
LEVELS = ("template", "structure", "graph")
_MARK = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Hashes:
    """The four hashes of one graph, 32 hex digits each."""

    graph_hash: str
    structure_hash: str
    template_hash: str
    op_hash: str


def hashes(record: GraphRecord, traits: Traits | None = None) -> Hashes:
    """Hash a record. `traits` defaults to those of the allow-list of operators."""
    template, structure, graph, operators = _hashed(record, _bodies(traits or _listed_traits()))
    return Hashes(graph.hex(), structure.hex(), template.hex(), operators.hex())


def canonical_order(record: GraphRecord, traits: Traits | None = None) -> list[int]:
    """Row numbers of `record` in the canonical order of its graph_hash: rows at one position do the same work."""
    return _Graph(record, _bodies(traits or _listed_traits())).orders()[2][0]


@cache
def _listed_traits() -> Traits:
    from warehouse.graph import operators  # imports torch: only where records are hashed with the default traits

    regions = frozenset(name for name, (kind, _) in operators.LISTED.items() if kind == "region")
    return Traits(operators.COMMUTATIVE, operators.VIEWS, regions, operators.mutated_operands)


@cache
def _bodies(traits: Traits) -> Bodies:
    return Bodies(traits)


def _hashed(record: GraphRecord, bodies: Bodies) -> tuple[bytes, ...]:
    """Digests of one graph: template, structure, graph, operators."""
    return _Graph(record, bodies).digests()


class _Graph:
    """One graph of a record while it is hashed. Its nested graphs are hashed first.

    nested: it is itself a nested graph. Values are then given to it by position, so the positions of its placeholders
    count; those of a whole graph do not, as they are wired by what reads them.
    """

    def __init__(self, record: GraphRecord, bodies: Bodies, nested: bool = False, symbolic: bool = False):
        self.nodes = record.nodes
        self.symbolic = symbolic or any(node.expr for node in record.nodes)
        self.nested = [_Graph(body, bodies, True, self.symbolic).digests() for body in record.bodies]
        self.inputs = (
            [(row, n.slot or 0) for row, n in enumerate(self.nodes) if n.op == "placeholder"] if nested else []
        )
        self.wiring = wire(record, bodies)
        self.results = [bodies.result(node, self.symbolic) for node in record.nodes]

    def orders(self) -> list[tuple[list[int], set[int]]]:
        """For each level the canonical order, and the rows whose operands it exchanges.

        Without ties one order serves all levels. With ties a finer level may tell apart what a coarser cannot, and a
        coarser one must not depend on it. Where a finer level splits no cell, the coarser order is its own.
        """
        colour, tied = colours(self.keys(0), self.wiring)
        if not tied:
            return [numbering(colour, self.wiring, None)] * len(LEVELS)
        found: list[tuple[list[int], set[int]]] = []
        stable: list[bytes] = []
        for level, name in enumerate(LEVELS):
            keys = self.keys(level)
            by_size = self.symbolic and name == "graph"
            if found and not by_size and len(set(stable)) == len(set(zip(stable, keys, strict=True))):
                found.append(found[-1])
                continue
            expressions = [node.expr for node in self.nodes] if by_size else []
            split = cells(colours(keys, self.wiring)[0], self.wiring, expressions)
            stable = split.colour[: len(keys)]
            found.append(numbering(split.colour, self.wiring, split))
        return found

    def digests(self) -> tuple[bytes, ...]:
        """Template, structure, graph, operators."""
        orders = self.orders()
        found: list[bytes] = []
        for level, name in enumerate(LEVELS):
            order, swapped = orders[level]
            keys = self.keys(level)
            if level == 0 or orders[level] is not orders[level - 1]:
                labels = _labels(order, swapped, self.wiring)
            said = [f"passnet {HASH_VERSION} {name}".encode(), b"".join([keys[row] for row in order]), labels]
            if name == "graph" and self.symbolic:
                said.append(self.sizes(order))
            found.append(xxhash.xxh3_128_digest(b"\0".join(said)))
        return (*found, self.operators(orders[0][0]))

    def keys(self, level: int) -> list[bytes]:
        """What each row says at a level: its body, its rank among effects, its region, the nested graph it holds."""
        bodies = self.wiring.bodies
        if level == 0:
            keys = [body.template for body in bodies]
        elif level == 1:
            keys = [body.structure for body in bodies]
        else:
            keys = [body.graph + result for body, result in zip(bodies, self.results, strict=True)]
        ties = [(row, b"effect%d" % rank) for rank, row in enumerate(self.wiring.effects)]
        ties += [(row, b"region%d" % region) for row, region in self.wiring.regions]
        ties += [(row, b"slot%d" % slot) for row, slot in self.inputs]
        for row, tie in ties:
            keys[row] = xxhash.xxh3_128_digest(keys[row] + tie)
        if self.nested:
            for row, node in enumerate(self.nodes):
                if node.op == "get_attr":
                    keys[row] = xxhash.xxh3_128_digest(b"body" + self.nested[_body(node)][level])
        return keys

    def operators(self, order: list[int]) -> bytes:
        """The calls in canonical order, nested graphs by their own operators."""
        said = [f"passnet {HASH_VERSION} operators".encode()]
        for row in order:
            node = self.nodes[row]
            if node.op in ("call_function", "call_method"):
                said.append(node.target.encode())
            elif node.op == "get_attr":
                said.append(self.nested[_body(node)][3])
        return xxhash.xxh3_128_digest(b"\n".join(said))

    def sizes(self, order: list[int]) -> bytes:
        """Symbolic sizes in canonical order, symbols renamed by first use."""
        rows = [(place, expr) for place, row in enumerate(order) if (expr := self.nodes[row].expr)]
        named = nameless([expr for _, expr in rows])
        return "\n".join(f"{place}:{text}" for (place, _), text in zip(rows, named, strict=True)).encode()


def _body(node: Node) -> int:
    return int(node.target.removeprefix("body_"))


def _labels(order: list[int], swapped: set[int], wiring: Wiring) -> bytes:
    """The wiring: for each row in canonical order, the canonical numbers of what it refers to.

    Behind a mark come, where there are any, the numbers of the writes that the references come after.
    """
    number = [0] * len(order)
    for position, row in enumerate(order):
        number[row] = position
    labels = array("I")
    for row in order:
        if row in swapped or wiring.after[row]:
            pairs = wiring.operands(row, row in swapped)
            labels.extend([number[ref] for ref, _ in pairs])
            if wiring.after[row]:
                labels.append(_MARK)
                labels.extend([number[w] if w >= 0 else _MARK for _, w in pairs])
        else:
            labels.extend([number[ref] for ref in wiring.refs[row]])
    if labels.itemsize != 4:
        raise RuntimeError("this platform's unsigned int is not 32 bits wide")
    return labels.tobytes()
