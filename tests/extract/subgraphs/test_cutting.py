"""Fusible candidates of random graphs: convex, closed, free of externs, disjoint, and exact."""

from __future__ import annotations

import copy

import torch
from hypothesis import HealthCheck, assume, given, settings

from extract.subgraphs.carve import Parent
from extract.subgraphs.fusible import barriers, candidates, computes, convex_parts, cut, is_task, sole_ops, split
from extract.subgraphs.splice import different_bits, runs_as_in_parent, splice
from tests.extract.subgraphs.dags import SHAPE, Graphs, graphs
from warehouse.graph import operators
from warehouse.graph.inputs import draw
from warehouse.graph.record import GraphRecord
from warehouse.graph.to_fx import to_graph_module
from warehouse.graph.validate import validate

relaxed = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def paths_that_return(parent: Parent, rows: set[int]) -> bool:
    """Convexity the slow way: whether anything outside both depends on `rows` and is depended on by them."""
    n = len(parent.record.nodes)
    above = [set(b) for b in parent.wiring.before]
    for row in range(n):
        for b in list(above[row]):
            above[row] |= above[b]
    return any(
        row not in rows and above[row] & rows and any(row in above[r] for r in rows) and not parent.wiring.scalar[row]
        for row in range(n)
    )


@relaxed
@given(graphs())
def test_candidates_are_convex_connected_and_disjoint(record):
    parent = Parent.of(record)
    covered: set[int] = set()
    for piece in candidates(parent):
        assert not paths_that_return(parent, set(piece.rows))
        assert parent.wiring.components(frozenset(piece.rows)) == [frozenset(piece.rows)]
        assert not covered & set(piece.rows)
        covered |= set(piece.rows)


@relaxed
@given(graphs())
def test_a_tuple_never_leaves_its_candidate(record):
    parent = Parent.of(record)
    nodes, wiring = parent.record.nodes, parent.wiring
    for piece in candidates(parent):
        inside = set(piece.rows)
        for row in piece.rows:
            if nodes[row].value == "tuple":
                assert set(wiring.users[row]) <= inside
            assert all(nodes[r].value != "tuple" or r in inside for r in wiring.refs[row])


@relaxed
@given(graphs())
def test_candidates_hold_no_extern_and_more_than_a_lone_operator_or_views(record):
    for piece in cut(record):
        calls = [n for n in piece.record.nodes if n.target]
        assert len(calls) >= 2 and any(computes(n) for n in calls)
        assert not {n.target for n in calls} & operators.EXTERN


@relaxed
@given(graphs())
def test_two_connected_computing_rows_are_always_covered(record):
    parent = Parent.of(record)
    covered = {r for piece in candidates(parent) for r in piece.rows}
    blocked = barriers(parent)
    nodes, wiring = parent.record.nodes, parent.wiring
    assume(not any(wiring.writes))
    alive = _reaching_the_output(parent)
    for row, node in enumerate(nodes):
        if computes(node) and row in alive and row not in blocked:
            near = [r for r in wiring.refs[row] if computes(nodes[r]) and r not in blocked]
            if near and not any(n.value == "tuple" for n in nodes):
                levels_equal = [r for r in near if wiring.convex(frozenset((r, row)))]
                assert row in covered or not levels_equal


def _reaching_the_output(parent: Parent) -> set[int]:
    found, waiting = set(), [len(parent.record.nodes) - 1]
    while waiting:
        row = waiting.pop()
        if row not in found:
            found.add(row)
            waiting.extend(parent.wiring.refs[row])
    return found


@relaxed
@given(graphs())
def test_every_subgraph_alone_gives_the_bits_it_gave_in_its_parent(record):
    pieces = cut(record) + sole_ops(record)
    for piece in pieces:
        validate(piece.record)
    assert not any(runs_as_in_parent(record, pieces, seed=3))


@relaxed
@given(graphs())
def test_putting_a_subgraph_back_gives_the_parents_outputs(record):
    values = draw(record, seed=5)
    expected = to_graph_module(record)(*copy.deepcopy(values))
    for piece in cut(record):
        whole = splice(record, piece)
        found = to_graph_module(whole)(*copy.deepcopy(values))
        assert not any(different_bits(a, b) for a, b in zip(expected, found, strict=True))


@relaxed
@given(graphs())
def test_a_candidate_split_along_any_groups_keeps_every_promise(record):
    parent = Parent.of(record)
    for piece in candidates(parent):
        halves = [piece.rows[::2], piece.rows[1::2]]
        parts = split(parent, piece, halves)
        rows = [r for part in parts for r in part.rows]
        assert len(rows) == len(set(rows)) and set(rows) <= set(piece.rows)
        assert not any(paths_that_return(parent, set(part.rows)) for part in parts)
        assert not any(runs_as_in_parent(record, parts))
        assert not split(parent, piece, [piece.rows])


@relaxed
@given(graphs())
def test_convex_parts_are_convex_and_lose_no_row(record):
    parent = Parent.of(record)
    rows = frozenset(r for r, n in enumerate(parent.record.nodes) if r % 3 and n.target)
    parts = convex_parts(parent, rows)
    assert sorted(r for part in parts for r in part) == sorted(rows)
    assert not any(paths_that_return(parent, set(part)) for part in parts)


def test_a_chain_that_leaves_through_an_extern_is_two_candidates():
    build = Graphs()
    x = build.input(shape=SHAPE)
    a = build.any_call("torch.relu", build.any_call("torch.sigmoid", x))
    b = build.any_call("torch.matmul", a, x)
    c = build.any_call("operator.add", build.any_call("torch.Tensor.exp", a), 1.0)
    d = build.any_call("operator.add", b, c)
    pieces = cut(build.output(d))
    assert [p.rows for p in pieces] == [(1, 2, 4, 5)]  # the last sum stands alone on its level, and joins nobody
    assert pieces[0].outputs == (2, 5)


def test_a_view_alone_joins_the_operator_that_reads_it():
    build = Graphs()
    x = build.input(shape=SHAPE)
    bias = build.any_call("torch.Tensor.t", build.input(shape=SHAPE))
    y = build.any_call("operator.add", build.any_call("torch.matmul", x, x), bias)
    (piece,) = cut(build.output(y))
    assert [piece.record.nodes[-2].target, piece.rows] == ["operator.add", (2, 4)]


def test_views_of_an_input_that_nothing_computes_with_are_cut_off():
    build = Graphs()
    x = build.input(shape=SHAPE)
    y = build.any_call("torch.matmul", x, x)
    one, two = build.halves(y)
    out = build.any_call("torch.relu", build.any_call("torch.Tensor.neg", y))
    (piece,) = cut(build.output(one, two, out))
    assert [n.target for n in piece.record.nodes if n.target] == ["torch.Tensor.neg", "torch.relu"]


def test_an_in_place_operator_that_nobody_can_see_loses_its_write():
    build = Graphs()
    x = build.input(shape=SHAPE)
    y = build.any_call("torch.matmul", x, x)
    z = build.any_call("torch.Tensor.relu_", y, effect=True)
    (piece,) = cut(build.output(build.any_call("operator.add", z, 1.0)))
    assert [n.target for n in piece.record.nodes if n.target] == ["torch.Tensor.relu", "operator.add"]
    assert all(n.effect is None for n in piece.record.nodes)


def test_a_write_that_a_later_reader_sees_is_never_moved_across_it():
    build = Graphs()
    x = build.input(shape=SHAPE)
    y = build.any_call("torch.matmul", x, x)
    before = build.any_call("torch.Tensor.exp", y)
    build.any_call("torch.Tensor.add_", y, 1.0, effect=True)
    after = build.any_call("torch.Tensor.neg", y)  # reads what add_ wrote, not through its result
    record = build.output(build.any_call("operator.add", before, before), build.any_call("torch.relu", after))
    pieces = cut(record)
    assert all(3 not in p.rows for p in pieces) and not any(runs_as_in_parent(record, pieces))
    assert all(not any(n.effect is not None for n in p.record.nodes) for p in pieces)


def test_a_write_to_a_parameter_stays_a_barrier():
    build = Graphs()
    x = build.input(shape=SHAPE)
    y = build.any_call("torch.Tensor.add_", x, 1.0, effect=True)
    z = build.any_call("torch.relu", build.any_call("torch.Tensor.neg", y))
    record = build.output(z)
    (piece,) = cut(record)
    assert piece.rows == (2, 3)


def test_memory_born_inside_may_be_written_inside():
    build = Graphs()
    x = build.input(shape=SHAPE)
    y = build.any_call("torch.Tensor.exp", build.any_call("torch.matmul", x, x))
    build.call("operator.setitem", y, 0, 0.0, effect=True, value="none", dtype=None, shape=None)
    record = build.output(build.any_call("torch.relu", y), y)
    (piece,) = cut(record)
    assert "operator.setitem" in [n.target for n in piece.record.nodes]
    assert not any(runs_as_in_parent(record, [piece]))


def test_rows_under_autocast_are_left_alone():
    build = Graphs()
    x = build.input(shape=SHAPE)
    enter = ["torch.amp.autocast_mode._enter_autocast", {"str": "cpu"}, {"dtype": "bfloat16"}, True, None]
    region = build.call(enter[0], *enter[1:], effect=True, value="other", dtype=None, shape=None)
    y = build.any_call("torch.relu", build.any_call("torch.Tensor.neg", x))
    exit_ = "torch.amp.autocast_mode._exit_autocast"
    build.call(exit_, region, effect=True, value="none", dtype=None, shape=None)
    record = build.output(build.any_call("torch.relu", build.any_call("torch.Tensor.neg", y)))
    (piece,) = cut(record)
    assert min(piece.rows) > 4


def test_a_constant_graph_is_no_task():
    build = Graphs()
    x = build.input(shape=SHAPE)
    zeros = build.call("torch.zeros", 4, 4, shape=SHAPE)
    mask = build.any_call("torch.Tensor.exp", build.any_call("torch.Tensor.neg", zeros))
    record: GraphRecord = build.output(build.any_call("torch.matmul", x, mask))
    assert cut(record) == []


def test_is_task_counts_neither_members_of_tuples_nor_views_as_work():
    build = Graphs()
    x = build.input(shape=SHAPE)
    one, two = build.halves(x)
    record = build.output(one, two)
    parent = Parent.of(record)
    assert not is_task(parent, range(1, 4))


def test_the_same_seed_gives_a_subgraph_the_same_inputs():
    build = Graphs()
    x = build.input(shape=SHAPE)
    (piece,) = cut(build.output(build.any_call("torch.relu", build.any_call("torch.Tensor.neg", x))))
    assert torch.equal(draw(piece.record, 1)[0], draw(piece.record, 1)[0])
