"""Which rows of a graph can still be exchanged: a partition into cells, refined until it is stable.

In: a colour for each vertex and the labelled edges between them. Out: the same list of colours, kept up to date, where
two vertices share a colour only while nothing tells them apart: not what they are, not what they are made from, not
what they are used for. `single_out` makes the one arbitrary choice that such a pair allows and draws every conclusion
from it, so that later pairs are told apart by it. Names of cells are digests of how they came about, never of rows,
which keeps all of this independent of the order of rows.
"""

from __future__ import annotations

from collections import deque

import xxhash

Edge = tuple[int, int, int]


class Cells:
    """colour: the cell of each vertex, 8 bytes. members: the vertices of each cell. splits: how often one was split.

    Each split costs time proportional to the edges of what it tells apart.
    """

    def __init__(self, colour: list[bytes], edges: list[Edge]):
        """edges: (vertex, vertex, label), label >= 0 saying what the second is to the first; one a pair of vertices."""
        self.colour = list(colour)
        self.members: dict[bytes, set[int]] = {}
        for vertex, name in enumerate(self.colour):
            self.members.setdefault(name, set()).add(vertex)
        self.beside: list[list[tuple[int, int]]] = [[] for _ in self.colour]
        for one, other, label in edges:
            self.beside[one].append((other, 2 * label))
            self.beside[other].append((one, 2 * label + 1))
        self.splits = 0
        shared = [vertex for members in self.members.values() if len(members) > 1 for vertex in members]
        self._settle(sorted({self.colour[neighbour] for vertex in shared for neighbour, _ in self.beside[vertex]}))

    def single_out(self, vertex: int) -> None:
        """Give a vertex that shares its cell a cell of its own."""
        name = self._split(self.colour[vertex], b"one", [vertex])
        self._settle([name])

    def _split(self, cell: bytes, why: bytes, leaving: list[int]) -> bytes:
        self.splits += 1
        name = xxhash.xxh3_64_digest(b"%b%b%d" % (cell, why, self.splits))
        for vertex in leaving:
            self.members[cell].remove(vertex)
        self.members[name] = set(leaving)
        for vertex in leaving:
            self.colour[vertex] = name
        return name

    def _settle(self, cells: list[bytes]) -> None:
        """Split cells by how many edges, of which labels, their members have to each of `cells`; then by the new."""
        waiting, pending = deque(cells), set(cells)
        while waiting:
            splitter = waiting.popleft()
            pending.discard(splitter)
            met: dict[int, list[int]] = {}
            for vertex in self.members[splitter]:
                for neighbour, label in self.beside[vertex]:
                    if len(self.members[self.colour[neighbour]]) > 1:
                        met.setdefault(neighbour, []).append(label)
            groups: dict[bytes, dict[tuple[int, ...], list[int]]] = {}
            for vertex, labels in met.items():
                by_labels = groups.setdefault(self.colour[vertex], {})
                by_labels.setdefault(tuple(sorted(labels)), []).append(vertex)
            for cell in sorted(groups):
                parts = groups[cell]
                rest = len(self.members[cell]) - sum(map(len, parts.values()))
                if rest == 0 and len(parts) == 1:
                    continue
                staying = () if rest else max(parts, key=lambda labels: (len(parts[labels]), labels))
                fresh = [
                    self._split(cell, splitter + repr(labels).encode(), parts[labels])
                    for labels in sorted(parts)
                    if labels != staying
                ]
                # What is known of the whole cell and of all parts but one says everything about the last.
                sizes = [(len(self.members[name]), name) for name in (cell, *fresh)]
                spared = None if cell in pending else max(sizes)[1]
                added = [name for name in (cell, *fresh) if name != spared and name not in pending]
                waiting.extend(added)
                pending.update(added)
