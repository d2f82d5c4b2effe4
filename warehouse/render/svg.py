"""A GraphRecord as a drawing: boxes in layers from inputs to output, coloured by family of operator, as SVG text.

What would hide the shape of the graph is folded into the boxes it belongs to, and the head of the drawing says so:
parameters, buffers and nested graphs go into their consumer; above `MOST_BOXES` boxes, straight runs of operators
become one box; an edge over more than `LONGEST_EDGE` layers is a mark at both ends instead of a line. Every text from
the record is escaped; the drawing holds no script, link or outside reference.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from warehouse.families import OTHER, family_of
from warehouse.graph.record import GraphRecord
from warehouse.render.code import arguments, names, yields
from warehouse.render.layout import Layout, lay_out, layers

MOST_BOXES = 400
MOST_DRAWN = 1500
LONGEST_EDGE = 24
COLOURS = {
    "matmul": "#f4b6a6", "convolution": "#f6c99a", "attention": "#ef9fb8", "softmax": "#f3c0dd",
    "normalisation": "#c9b8ec", "pointwise": "#bfe3c0", "reduction": "#a8dcd3", "pooling": "#9fd4e8",
    "layout": "#e3e7ec", "indexing": "#b9cdf3", "creation": "#efe6b3", "conversion": "#dfd7c8",
    "metadata": "#eeeeee", OTHER: "#ffffff", "input": "#fff3c4", "output": "#2f3b4a",
}  # fmt: skip
_REFERENCE = re.compile(r'"%([1-9]\d{0,8})"')
_STRING = re.compile(r'\{"str":"(?:[^"\\]|\\.)*"\}')
_CHARACTER = 6.7  # width of a character of the 11 px monospace font
_BOX_HEIGHT, _LAYER_HEIGHT = 34.0, 58.0


@dataclass
class _Box:
    """One rectangle. `lines` are its texts, `title` its tooltip, `members` the operators in it."""

    family: str
    lines: list[str]
    title: str
    members: int = 1
    marks: list[str] = field(default_factory=list)

    @property
    def width(self) -> float:
        return max(40.0, max(len(line) for line in self.lines) * _CHARACTER + 18)


def svg(record: GraphRecord, name: str = "") -> str:
    """The drawing as a complete SVG document. `name` (a graph_hash, as a rule) is shown in its head."""
    boxes, edges, folded = _boxes(record)
    notes = [f"{record.num_nodes()} nodes", *folded]
    if len(boxes) > MOST_BOXES:
        before = len(boxes)
        boxes, edges = _fold_runs(boxes, edges)
        notes.append(f"straight runs of operators drawn as one box ({before} boxes became {len(boxes)})")
    if len(boxes) > MOST_DRAWN:
        notes.append(f"the last {len(boxes) - MOST_DRAWN} boxes left out")
        boxes, edges = boxes[:MOST_DRAWN], [(u, v) for u, v in edges if v < MOST_DRAWN]
    layer = layers(len(boxes), edges)
    lines = [(u, v) for u, v in edges if layer[v] - layer[u] <= LONGEST_EDGE]
    far = [(u, v) for u, v in edges if layer[v] - layer[u] > LONGEST_EDGE]
    for number, u in enumerate(sorted({u for u, _ in far}), 1):
        boxes[u].marks.append(f"▸{number}")
        for _, v in (edge for edge in far if edge[0] == u):
            boxes[v].marks.append(f"◂{number}")
    if far:
        notes.append(f"{len(far)} long edges shown as ▸n … ◂n")
    return _document(boxes, lines, lay_out([box.width for box in boxes], lines, layer), name, notes)


def _boxes(record: GraphRecord) -> tuple[list[_Box], list[tuple[int, int]], list[str]]:
    """Boxes in reading order, edges between them, and what was folded into them."""
    name_of = names(record)
    box_of: dict[int, int] = {}
    held: dict[int, str] = {}
    boxes: list[_Box] = []
    edges: dict[tuple[int, int], None] = {}
    constants = 0
    for idx, node in enumerate(record.nodes):
        if node.op == "placeholder" and node.role in ("parameter", "buffer"):
            held[idx] = f"{_tail(node.name or name_of[idx])} {yields(node)}"
            continue
        if node.op in ("get_attr", "constant"):
            constants += node.op == "constant"
            held[idx] = f"{node.target or 'constant'} {'' if node.op == 'get_attr' else yields(node)}".strip()
            continue
        sources = [idx - int(k) for k in _REFERENCE.findall(_STRING.sub("", node.args + node.kwargs)) if int(k) <= idx]
        if node.op == "placeholder":
            box = _Box(
                "input", [_short(node.name or name_of[idx]), yields(node)], f"{node.role or 'input'} {node.name}"
            )
        elif node.op == "output":
            box = _Box("output", ["output"], "output")
        else:
            args, kwargs = arguments(node, idx, name_of)
            title = f"{name_of[idx]} = {node.target}({', '.join([*args, *(f'{k}={v}' for k, v in kwargs.items())])})"
            box = _Box(family_of(node.target), [_short(node.target.rsplit(".", 1)[-1]), _short(yields(node))], title)
            box.title += f"\n{yields(node)}"
        inside = [held[s] for s in dict.fromkeys(sources) if s in held]
        if inside:
            box.title += "\nwith " + ", ".join(inside)
            box.lines[0] = _short(f"{box.lines[0]} + {', '.join(text.split(' ')[0] for text in inside)}")
        if node.effect is not None:
            box.title += f"\neffect {node.effect}"
        box_of[idx] = len(boxes)
        for source in sources:
            if source in box_of:
                edges[box_of[source], len(boxes)] = None
        boxes.append(box)
    stored = sum(node.role in ("parameter", "buffer") for node in record.nodes)
    folded = [f"{stored} parameters and buffers shown in their consumers"] if stored else []
    folded += [f"{constants} constants shown in their consumers"] if constants else []
    if record.bodies:
        inner = sum(body.num_nodes() for body in record.bodies)
        folded.append(f"{len(record.bodies)} nested graphs ({inner} nodes) shown by name in their consumers")
    return boxes, list(edges), folded


def _fold_runs(boxes: list[_Box], edges: list[tuple[int, int]]) -> tuple[list[_Box], list[tuple[int, int]]]:
    """Join every operator to the one before it where that is its only source and it that one's only user."""
    into: list[list[int]] = [[] for _ in boxes]
    out: list[list[int]] = [[] for _ in boxes]
    for u, v in edges:
        into[v].append(u)
        out[u].append(v)
    head: list[int] = list(range(len(boxes)))
    for v, box in enumerate(boxes):
        if len(into[v]) == 1 and box.family not in ("input", "output"):
            u = into[v][0]
            if len(out[u]) == 1 and boxes[u].family != "input":
                head[v] = head[u]
    runs: dict[int, list[int]] = {}
    for v, first in enumerate(head):
        runs.setdefault(first, []).append(v)
    # In the order of their last members: an edge leaves a run from its end only, so it still points forward.
    order = sorted(runs, key=lambda first: runs[first][-1])
    number = {first: k for k, first in enumerate(order)}
    joined = []
    for first in order:
        members = [boxes[v] for v in runs[first]]
        if len(members) == 1:
            joined.append(members[0])
            continue
        words = [member.lines[0].split(" ")[0] for member in members]
        text = " → ".join(words[:4] if len(words) <= 4 else [*words[:2], "…", words[-1]])
        main = next(
            (m.family for m in members if m.family in ("matmul", "convolution", "attention")), members[-1].family
        )
        tip = "\n".join(member.title for member in members)
        joined.append(_Box(main, [text, f"{len(members)} operators, {members[-1].lines[-1]}"], tip, len(members)))
    kept = dict.fromkeys((number[head[u]], number[head[v]]) for u, v in edges if head[u] != head[v])
    return joined, sorted(kept)


def _document(boxes: list[_Box], edges: list[tuple[int, int]], at: Layout, name: str, notes: list[str]) -> str:
    left = min((x - box.width / 2 for x, box in zip(at.centre, boxes, strict=True)), default=0.0)
    left = min([left, *(x for route in at.routes for _, x in route)]) - 24
    right = max((x + box.width / 2 for x, box in zip(at.centre, boxes, strict=True)), default=0.0)
    right = max([right, *(x for route in at.routes for _, x in route)]) + 24
    families = [family for family in COLOURS if any(box.family == family for box in boxes)]
    head = [text for text in (name, "; ".join(notes)) if text]
    width = max(right - left, max(len(text) for text in head) * _CHARACTER + 48, 360.0)
    per_line = max(1, int((width - 40) // 118))
    top = 30 + 18 * len(head) + 22 * -(-len(families) // per_line)
    height = top + (max(at.layer, default=0) + 1) * _LAYER_HEIGHT + 20
    shift = (width - (right - left)) / 2 - left

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="ui-monospace, DejaVu Sans Mono, Menlo, monospace" '
        'font-size="11">',
        '<rect width="100%" height="100%" fill="#fdfdfc"/>',
    ]
    for i, text in enumerate(head):
        weight = ' font-weight="bold"' if i == 0 and name else ""
        out.append(f'<text x="20" y="{24 + 18 * i}"{weight} fill="#2f3b4a">{_text(text)}</text>')
    for i, family in enumerate(families):
        left_of, y = 20 + 118 * (i % per_line), 18 + 18 * len(head) + 22 * (i // per_line)
        out.append(
            f'<rect x="{left_of}" y="{y}" width="12" height="12" rx="3" fill="{COLOURS[family]}" stroke="#8b95a1"/>'
        )
        out.append(f'<text x="{left_of + 17}" y="{y + 10}" fill="#4a5563">{_text(family)}</text>')

    def y_of(layer: int) -> float:
        return top + layer * _LAYER_HEIGHT + 8

    out.append('<g fill="none" stroke="#7d8894" stroke-width="1.2">')
    for (u, v), route in zip(edges, at.routes, strict=True):
        points = [(at.centre[u] + shift, y_of(at.layer[u]) + _BOX_HEIGHT)]
        for layer, x in route:
            points += [(x + shift, y_of(layer)), (x + shift, y_of(layer) + _BOX_HEIGHT)]
        points.append((at.centre[v] + shift, y_of(at.layer[v])))
        out.append(f'<path d="{_curve(points)}"/>')
    out.append("</g>")
    for i, box in enumerate(boxes):
        out += _rectangle(box, at.centre[i] + shift, y_of(at.layer[i]))
    return "\n".join([*out, "</svg>"]) + "\n"


def _rectangle(box: _Box, x: float, y: float) -> list[str]:
    dark = box.family == "output"
    edge = ' stroke-width="2"' if box.members > 1 else ""
    out = [
        f'<g text-anchor="middle" fill="{"#ffffff" if dark else "#1f2933"}"><title>{_text(box.title[:2000])}</title>',
        f'<rect x="{x - box.width / 2:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{_BOX_HEIGHT:.0f}" rx="6" '
        f'fill={quoteattr(COLOURS[box.family])} stroke="#6b7683"{edge}/>',
    ]
    rows = [y + 21] if len(box.lines) == 1 else [y + 14.5, y + 27.5]
    for line, at, size in zip(box.lines, rows, (11, 9.5), strict=False):
        out.append(f'<text x="{x:.1f}" y="{at:.1f}" font-size="{size}">{_text(line)}</text>')
    if box.marks:
        texts = " ".join(box.marks[:6]) + (" …" if len(box.marks) > 6 else "")
        out.append(
            f'<text x="{x + box.width / 2:.1f}" y="{y - 3:.1f}" font-size="9" text-anchor="end" fill="#b0413e">'
            f"{_text(texts)}</text>"
        )
    return [*out, "</g>"]


def _curve(points: list[tuple[float, float]]) -> str:
    """Straight beside boxes, bent between layers."""
    x, y = points[0]
    path = [f"M{x:.1f} {y:.1f}"]
    for i in range(1, len(points)):
        (x0, y0), (x1, y1) = points[i - 1], points[i]
        middle = (y0 + y1) / 2
        straight = abs(x1 - x0) < 0.5
        path.append(f"V{y1:.1f}" if straight else f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}")
    return "".join(path)


def _tail(path: str) -> str:
    return _short(path.rsplit(".", 1)[-1], 24)


def _short(text: str, most: int = 44) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _text(text: str) -> str:
    """Escaped, and without the characters that XML cannot hold."""
    return escape(re.sub(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text))
