"""A layered layout of a directed acyclic graph: pure geometry, no drawing.

In go the widths of boxes and the edges between them (each from an earlier box to a later one), out come a layer and a
horizontal centre for every box and, for every edge, the points it passes through. Layers are longest paths from the
top; edges over several layers get a narrow place in each, so that lines run beside boxes and not behind them; boxes
are ordered by the mean position of their neighbours and then moved as close to it as their widths allow.
"""

from __future__ import annotations

from dataclasses import dataclass

GAP = 22.0
LINE_GAP = 9.0
SWEEPS = 8
_LINE_WIDTH = 1.0


@dataclass(frozen=True, slots=True)
class Layout:
    """layer[i] and centre[i] of box i; routes[e] lists (layer, x) of the places between the ends of edge e."""

    layer: list[int]
    centre: list[float]
    routes: list[list[tuple[int, float]]]


def layers(count: int, edges: list[tuple[int, int]]) -> list[int]:
    """The layer of each box: one below the lowest of the boxes that point to it. Sources sink to their use."""
    into: list[list[int]] = [[] for _ in range(count)]
    out: list[list[int]] = [[] for _ in range(count)]
    for u, v in edges:
        into[v].append(u)
        out[u].append(v)
    layer = [0] * count
    for v in range(count):
        layer[v] = max((layer[u] + 1 for u in into[v]), default=0)
    for u in reversed(range(count)):
        if not into[u] and out[u]:
            layer[u] = max(0, min(layer[v] for v in out[u]) - 1)
    return layer


def lay_out(widths: list[float], edges: list[tuple[int, int]], layer: list[int]) -> Layout:
    """Positions for boxes of the given widths. `edges` lead to higher box numbers; `layer` as from `layers`."""
    widths, level = list(widths), list(layer)
    chains: list[list[int]] = []
    for u, v in edges:
        places = list(range(len(widths), len(widths) + layer[v] - layer[u] - 1))
        widths += [_LINE_WIDTH] * len(places)
        level += range(layer[u] + 1, layer[v])
        chains.append([u, *places, v])
    above: list[list[int]] = [[] for _ in widths]
    below: list[list[int]] = [[] for _ in widths]
    for chain in chains:
        for a, b in zip(chain, chain[1:], strict=False):
            above[b].append(a)
            below[a].append(b)
    rows: list[list[int]] = [[] for _ in range(max(level, default=0) + 1)]
    for i, at in enumerate(level):
        rows[at].append(i)

    centre = [0.0] * len(widths)
    for row in rows:
        _spread(row, widths, centre, {i: float(k) for k, i in enumerate(row)})
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            wanted = {}
            for i in row:
                near = above[i] if down else below[i]
                wanted[i] = sum(centre[j] for j in near) / len(near) if near else centre[i]
            row.sort(key=lambda i: (wanted[i], i))
            _spread(row, widths, centre, wanted)
    count = len(layer)
    routes = [[(level[i], centre[i]) for i in chain[1:-1]] for chain in chains]
    return Layout(layer, centre[:count], routes)


def _spread(row: list[int], widths: list[float], centre: list[float], wanted: dict[int, float]) -> None:
    """Centres for a row in its order: as near to `wanted` as boxes that must not overlap can be (least squares)."""
    blocks: list[tuple[float, int]] = []  # (mean of the wished-for left shifts, boxes); neighbours merge on conflict
    offset = 0.0
    offsets = []
    for k, i in enumerate(row):
        if k:
            before = widths[row[k - 1]]
            gap = LINE_GAP if _LINE_WIDTH in (before, widths[i]) else GAP
            offset += before / 2 + gap + widths[i] / 2
        offsets.append(offset)
        mean, size = wanted[i] - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, others = blocks.pop()
            mean, size = (mean * size + other * others) / (size + others), size + others
        blocks.append((mean, size))
    shifts = [mean for mean, size in blocks for _ in range(size)]
    for i, shift, start in zip(row, shifts, offsets, strict=True):
        centre[i] = shift + start
