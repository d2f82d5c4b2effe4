"""The four hashes of a graph record: graph, structure, template, operators. docs/hashes.md says what each covers.

Each is xxh3-128 over an exact, name-free serialisation in canonical order: equal hashes mean graphs that are equal at
that level (up to a collision of 128 bits), never merely similar ones.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import xxhash

from dedup.bodies import Bodies, Traits
from dedup.canonical import Wiring, colours, numbering, refined, wire
from warehouse.graph.record import GraphRecord, Node

#: Part of every hash's input and stored with every graph. Raise it whenever a definition changes.
HASH_VERSION = 1
LEVELS = ("template", "structure", "graph")
_SYMBOL = re.compile(r"\b[a-z]+\d+\b")


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
    """Row numbers of `record` in canonical order (template level, as op_hash uses)."""
    bodies = _bodies(traits or _listed_traits())
    nested = [_hashed(body, bodies) for body in record.bodies]
    wiring = wire(record, bodies)
    keys = _keys(record, wiring, nested, 0)
    found, tied = colours(keys, wiring)
    return numbering(refined(keys, wiring) if tied else found, wiring, tied)[0]


@cache
def _listed_traits() -> Traits:
    from warehouse.graph import operators  # imports torch: only where records are hashed with the default traits

    regions = frozenset(name for name, (kind, _) in operators.LISTED.items() if kind == "region")
    return Traits(operators.COMMUTATIVE, operators.VIEWS, regions, operators.mutated_operands)


@cache
def _bodies(traits: Traits) -> Bodies:
    return Bodies(traits)


def _hashed(record: GraphRecord, bodies: Bodies) -> tuple[bytes, bytes, bytes, bytes]:
    """Digests of one graph: template, structure, graph, operators. Nested graphs are hashed first."""
    nested = [_hashed(body, bodies) for body in record.bodies]
    wiring = wire(record, bodies)
    digests: list[bytes] = []
    keys = _keys(record, wiring, nested, 0)
    colour, tied = colours(keys, wiring)
    if tied:
        colour = refined(keys, wiring)
    order, operands = numbering(colour, wiring, tied)
    operators = _operators(record.nodes, order, nested)
    labels = _labels(order, operands, wiring)
    for level, name in enumerate(LEVELS):
        if level:
            keys = _keys(record, wiring, nested, level)
            if tied:  # a finer level may tell apart what the coarser could not, and must not depend on its choice
                colour = refined(keys, wiring)
                order, operands = numbering(colour, wiring, tied)
                labels = _labels(order, operands, wiring)
        said = [f"passnet {HASH_VERSION} {name}".encode(), b"".join([keys[row] for row in order]), labels]
        if name == "graph":
            said.append(_symbols(record.nodes, order))
        digests.append(xxhash.xxh3_128_digest(b"\0".join(said)))
    return digests[0], digests[1], digests[2], operators


def _keys(record: GraphRecord, wiring: Wiring, nested: Sequence[tuple[bytes, ...]], level: int) -> list[bytes]:
    """What each row says at a level: its body, its rank among effects, its region, the nested graph it holds."""
    if level == 0:
        keys = [body.template for body in wiring.bodies]
    elif level == 1:
        keys = [body.structure for body in wiring.bodies]
    else:
        keys = [body.graph for body in wiring.bodies]
    for rank, row in enumerate(wiring.effects):
        keys[row] = xxhash.xxh3_128_digest(keys[row] + b"effect" + rank.to_bytes(4, "little"))
    for row, region in wiring.regions:
        keys[row] = xxhash.xxh3_128_digest(keys[row] + b"region" + region.to_bytes(4, "little"))
    if nested:
        for row, node in enumerate(record.nodes):
            if node.op == "get_attr":
                keys[row] = xxhash.xxh3_128_digest(b"body" + nested[int(node.target.removeprefix("body_"))][level])
    return keys


def _labels(order: list[int], operands: list[list[int]], wiring: Wiring) -> bytes:
    """The wiring: for each row in canonical order, the canonical numbers of what it refers to."""
    number = [0] * len(order)
    for position, row in enumerate(order):
        number[row] = position
    labels = array("I")
    for row in order:
        labels.extend([number[ref] for ref in operands[row]])
        writes = wiring.after[row]
        if writes:
            if operands[row][:1] != wiring.refs[row][:1]:  # the writes follow their operands
                writes = [writes[1], writes[0], *writes[2:]]
            labels.extend([number[w] + 1 if w >= 0 else 0 for w in writes])
    if labels.itemsize != 4:
        raise RuntimeError("this platform's unsigned int is not 32 bits wide")
    return labels.tobytes()


def _operators(nodes: tuple[Node, ...], order: list[int], nested: Sequence[tuple[bytes, ...]]) -> bytes:
    said = [f"passnet {HASH_VERSION} operators".encode()]
    for row in order:
        node = nodes[row]
        if node.op in ("call_function", "call_method"):
            said.append(node.target.encode())
        elif node.op == "get_attr":
            said.append(nested[int(node.target.removeprefix("body_"))][3])
    return xxhash.xxh3_128_digest(b"\n".join(said))


def _symbols(nodes: tuple[Node, ...], order: list[int]) -> bytes:
    """Symbolic sizes in canonical order, symbols renamed by first use; empty for a static graph."""
    names: dict[str, str] = {}

    def renamed(match: re.Match[str]) -> str:
        return names.setdefault(match.group(0), f"s{len(names)}")

    said = [
        f"{position}:{_SYMBOL.sub(renamed, expr)}" for position, row in enumerate(order) if (expr := nodes[row].expr)
    ]
    return "\n".join(said).encode()
