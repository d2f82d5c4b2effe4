"""Typical subgraphs: operator sequences that models share or repeat, mined over many graphs at once.

In: records. Out: frequent sequences of operators, and their occurrences cut out as subgraphs that run alone. Unlike a
fusible candidate, a typical one may hold convolutions and matrix products. Each distinct sequence of a whole graph
counts once, or once a template where hashes are given, so that a large family does not drown the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from extract.subgraphs.carve import NotCuttable, Parent, Subgraph, carve
from extract.subgraphs.fusible import is_task
from extract.subgraphs.phrases import phrases
from extract.subgraphs.wiring import is_call, reads_values
from warehouse.graph.record import GraphRecord


@dataclass(frozen=True, slots=True)
class Typical:
    """A frequent sequence.

    operators    targets in reading order
    found        (index of the record, subgraph) of every occurrence that could be cut
    skipped      occurrences that could not: not connected, cut across a tuple, writing what comes from outside
    """

    operators: tuple[str, ...]
    found: tuple[tuple[int, Subgraph], ...]
    skipped: int


def typical(
    records: Sequence[GraphRecord], least: int = 4, most: int = 64, templates: Sequence[str] | None = None
) -> list[Typical]:
    """Sequences of `least` to `most` operators that repeat within or between distinct graphs, most occurrences first.

    templates: template_hash of each record. Occurrences never overlap, within one sequence or between two.
    """
    parents = [Parent.of(r) for r in records]
    found = []
    for operators, places in mined([sequence(p) for p in parents], least, most, templates).items():
        made = [(k, carved(parents[k], rows)) for k, rows in places]
        cut = [(k, subgraph) for k, subgraph in made if subgraph is not None]
        ordered = tuple(sorted(cut, key=lambda c: (c[0], c[1].rows)))
        found.append(Typical(operators, ordered, len(made) - len(cut)))
    return sorted(found, key=lambda t: (-len(t.found), t.operators))


def mined(
    spoken: Sequence[tuple[Sequence[str | None], Sequence[int]]],
    least: int = 4,
    most: int = 64,
    templates: Sequence[str] | None = None,
) -> dict[tuple[str, ...], list[tuple[int, list[int]]]]:
    """Frequent sequences -> (index of the graph, its rows) of each occurrence.

    spoken: what `sequence` says of each graph. templates: template_hash of each.
    """
    members: dict[tuple[str | None, ...], list[int]] = {}
    for k, (words, _) in enumerate(spoken):
        members.setdefault(tuple(words), []).append(k)
    distinct = list(members)
    weights = [float(len({templates[k] for k in members[s]})) if templates else 1.0 for s in distinct]
    return {
        operators: [
            (k, list(spoken[k][1][first : first + len(operators)]))
            for number, first in places
            for k in members[distinct[number]]
        ]
        for operators, places in phrases(distinct, least, most, weights).items()
    }


def sequence(parent: Parent) -> tuple[tuple[str | None, ...], list[int]]:
    """Targets of the live calls in reading order (None where nothing may be cut across), and their rows."""
    words: list[str | None] = []
    rows: list[int] = []
    nodes, wiring = parent.record.nodes, parent.wiring
    for row, node in enumerate(nodes):
        if not is_call(node) or wiring.scalar[row] or row not in parent.live:
            continue
        apart = (
            wiring.foreign[row]
            or node.value == "other"
            or reads_values(node)
            or (node.effect is not None and not wiring.writes[row])
            or any(nodes[r].op == "get_attr" for r in wiring.refs[row])
        )
        words.append(None if apart else node.target)
        rows.append(row)
    return tuple(words), rows


def carved(parent: Parent, rows: Sequence[int]) -> Subgraph | None:
    """The subgraph of the rows of one occurrence; None where it cannot be cut or is no task."""
    if not is_task(parent, rows) or not _connected(parent, frozenset(rows)):
        return None
    try:
        return carve(parent, rows, "typical")
    except NotCuttable:
        return None


def _connected(parent: Parent, rows: frozenset[int]) -> bool:
    """Whether reads connect the rows; a value that two of them read (queries and keys of one x) connects them too."""
    nodes, wiring = parent.record.nodes, parent.wiring
    read = {x for r in rows for x in wiring.refs[r]}
    shared = {x for x in read if nodes[x].value == "tensor" and nodes[x].role in (None, "input")}
    return sum(not c.isdisjoint(rows) for c in wiring.components(rows | shared)) == 1
