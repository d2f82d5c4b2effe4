"""Drawings and code show a record as it is, stay small, and let nothing in it break out."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.warehouse import tiny
from tests.warehouse.test_rows import records
from warehouse.graph.record import GraphRecord
from warehouse.render import code, svg
from warehouse.render.layout import LINE_GAP, lay_out, layers

SPACE = "{http://www.w3.org/2000/svg}"


def texts(drawing: str) -> list[str]:
    return ["".join(element.itertext()) for element in ElementTree.fromstring(drawing).iter(f"{SPACE}text")]


def boxes(drawing: str) -> list[tuple[float, float, float]]:
    """(left, right, top) of each box of the graph."""
    found = []
    for group in ElementTree.fromstring(drawing).iter(f"{SPACE}g"):
        if group.find(f"{SPACE}title") is not None:
            rect = group.find(f"{SPACE}rect")
            assert rect is not None
            x, y, width = (float(rect.get(key, "")) for key in ("x", "y", "width"))
            found.append((x, x + width, y))
    return found


def chain(length: int) -> GraphRecord:
    """A deep stack of linear, gelu, residual add: three operators and a parameter a block."""
    nodes = [tiny.placeholder("x", "input", 0, 4, 4)]
    for i in range(length):
        nodes += [
            tiny.placeholder(f"blocks.{i}.weight", "parameter", i + 1, 4, 4),
            tiny.call(tiny.F + "linear", "%2", "%1", shape=(4, 4)),
            tiny.call(tiny.F + "gelu", "%1", shape=(4, 4)),
            tiny.call("operator.add", "%1", "%4", shape=(4, 4)),
        ]
    return GraphRecord((*nodes, tiny.output("%1")))


def test_code_reads_like_python_with_sizes_behind_each_line() -> None:
    text = code(tiny.RECORDS["a" * 32], "mlp")
    ast.parse(text)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0] == "def mlp("
    assert "fc1_weight, # float32[8, 8], parameter, fc1.weight" in lines
    assert "layer_norm = F.layer_norm(linear, (8,), norm_weight, None, 1e-05) # float32[4, 8]" in lines
    assert "gelu = F.gelu(layer_norm, approximate='none') # float32[4, 8]" in lines
    assert lines[-1] == "return (linear_1,)"


def test_code_shows_effects_infix_operators_and_nested_graphs() -> None:
    text = " ".join(code(tiny.RECORDS["d" * 32]).split())
    assert "add = matmul + 1.0 #" in text and "relu = mul.relu_() # float32[4, 4], effect 0" in text
    nested = code(tiny.RECORDS["f" * 32])
    assert "    def body_0(\n" in nested and "        return (add,)" in nested


@settings(max_examples=40, deadline=None)
@given(records)
def test_any_record_even_a_malformed_one_can_be_shown(record: GraphRecord) -> None:
    ElementTree.fromstring(svg(record))
    for line in code(record).splitlines():
        assert line.isprintable()


@pytest.mark.parametrize("record", tiny.RECORDS.values(), ids=lambda r: r.nodes[0].name)
def test_hand_made_records_render_as_python_syntax_and_as_xml(record: GraphRecord) -> None:
    ast.parse(code(record))
    ElementTree.fromstring(svg(record, tiny.HOSTILE))


HOSTILE = "</title></svg><script>alert(1)</script>\n\"'&#0;\x00\x1b[2J]]>\nimport os"


def test_hostile_names_stay_text() -> None:
    record = tiny.RECORDS["a" * 32]
    nodes = [
        replace(node, name=HOSTILE) if node.op == "placeholder" else replace(node, target=HOSTILE)
        for node in record.nodes
    ]
    hostile = GraphRecord(tuple(replace(node, dtype=HOSTILE) for node in nodes))
    drawing = svg(hostile, HOSTILE)
    tags = {element.tag.removeprefix(SPACE) for element in ElementTree.fromstring(drawing).iter()}
    assert tags <= {"svg", "rect", "text", "g", "path", "title"}
    assert "http" not in drawing.replace("http://www.w3.org/2000/svg", "")
    tree = ast.parse(code(hostile, HOSTILE))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import)]


def test_a_drawing_says_what_was_folded_into_the_boxes() -> None:
    drawing = svg(tiny.RECORDS["a" * 32], "hash")
    shown = texts(drawing)
    assert shown[0] == "hash" and "10 nodes; 4 parameters and buffers shown in their consumers" in shown
    assert "linear + weight, bias" in shown and "layer_norm + weight" in shown
    assert len(boxes(drawing)) == 6  # x, linear, layer_norm, gelu, linear, output
    assert drawing.count("<path") == 5
    nested = texts(svg(tiny.RECORDS["f" * 32]))
    assert any("1 nested graphs (4 nodes)" in text for text in nested)


@pytest.mark.parametrize("blocks", [3, 70, 100])
def test_boxes_never_overlap_and_stay_inside(blocks: int) -> None:
    drawing = svg(chain(blocks))
    size = ElementTree.fromstring(drawing)
    rows: dict[float, list[tuple[float, float]]] = {}
    for left, right, top in boxes(drawing):
        assert left >= 0 and right <= float(size.get("width", "")) and top < float(size.get("height", ""))
        rows.setdefault(top, []).append((left, right))
    for row in rows.values():
        row.sort()
        assert all(a[1] <= b[0] for a, b in zip(row, row[1:], strict=False))


def test_a_graph_of_five_thousand_nodes_is_folded_and_says_so() -> None:
    record = chain(1300)
    assert record.num_nodes() > 5000
    drawing = svg(record)
    assert len(drawing) < 2_000_000 and len(boxes(drawing)) <= 1500
    head = " ".join(texts(drawing)[:1])
    assert "straight runs" in head and "left out" in head


def test_an_edge_over_many_layers_becomes_a_mark_at_both_ends() -> None:
    nodes = [tiny.placeholder("x", "input", 0, 4), *(tiny.call("torch.relu", "%1", shape=(4,)) for _ in range(40))]
    nodes.append(tiny.call("operator.add", "%1", "%41", shape=(4,)))
    shown = texts(svg(GraphRecord((*nodes, tiny.output("%1")))))
    assert shown.count("▸1") == 1 and shown.count("◂1") == 1
    assert any("1 long edges" in text for text in shown)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_layouts_keep_order_and_distance(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 25))
    edges = sorted(
        {tuple(sorted(pair)) for pair in data.draw(st.lists(st.tuples(*[st.integers(0, count - 1)] * 2), max_size=40))}
    )
    forward = [(u, v) for u, v in edges if u < v]
    layer = layers(count, forward)
    assert all(layer[u] < layer[v] for u, v in forward)
    widths = [40.0 + 10 * (i % 5) for i in range(count)]
    at = lay_out(widths, forward, layer)
    for i in range(count):
        for j in range(i):
            if layer[i] == layer[j]:
                assert abs(at.centre[i] - at.centre[j]) >= (widths[i] + widths[j]) / 2 + LINE_GAP
    for (u, v), route in zip(forward, at.routes, strict=True):
        assert [level for level, _ in route] == list(range(layer[u] + 1, layer[v]))


def test_no_control_characters_reach_a_terminal() -> None:
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", code(tiny.RECORDS["f" * 32]))
