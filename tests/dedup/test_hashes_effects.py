"""What the hashes promise of graphs that write, draw or switch modes: order counts exactly where it can be seen."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dedup.hashes import hashes
from tests.dedup.graphs import Builder, reordered, rewritten, tangles
from warehouse.graph.record import GraphRecord

FUNCTIONS = [
    "tanh",
    "exp",
    "sin",
    "cos",
    "abs",
    "neg",
    "sqrt",
    "log",
    "erf",
    "ceil",
    "floor",
    "round",
    "sign",
    "square",
]
MANY = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@MANY
@given(tangles(effects=True), st.randoms(use_true_random=False))
def test_reordering_what_no_effect_separates_changes_nothing(record, random):
    assert hashes(rewritten(record, random)) == hashes(record)


def test_only_the_order_of_tokens_counts():
    build = Builder()
    x = build.input()
    build.call("torch.Tensor.add_", x, 1, effect=True)
    build.call("torch.Tensor.mul_", x, 2, effect=True)
    record = build.output(x)
    later = tuple(replace(n, effect=n.effect if n.effect is None else 3 + 2 * n.effect) for n in record.nodes)
    assert hashes(record.with_nodes(later)) == hashes(record)


def mutation(order):
    """x.add_(1); x.mul_(2) in either order."""
    build = Builder()
    x = build.call("torch.relu", build.input())
    for target in order:
        build.call(target, x, 2, effect=True)
    return hashes(build.output(x)).graph_hash


def test_two_mutations_keep_their_order():
    assert mutation(["torch.Tensor.add_", "torch.Tensor.mul_"]) != mutation(["torch.Tensor.mul_", "torch.Tensor.add_"])


def test_random_operators_keep_their_order():
    def graph(order):
        build = Builder()
        drawn = {t: build.call(t, [2, 3], effect=True) for t in order}
        return hashes(build.output(drawn["torch.rand"], drawn["torch.randn"])).graph_hash

    assert graph(["torch.rand", "torch.randn"]) != graph(["torch.randn", "torch.rand"])


@pytest.mark.parametrize("view", [False, True])
def test_a_read_does_not_cross_a_write_even_through_a_view(view):
    def graph(read_first):
        build = Builder()
        x = build.call("torch.relu", build.input())
        seen = build.call("torch.Tensor.view", x, -1) if view else x
        if read_first:
            read = build.call("torch.sigmoid", seen)
            build.call("torch.Tensor.add_", x, 1, effect=True)
        else:
            build.call("torch.Tensor.add_", x, 1, effect=True)
            read = build.call("torch.sigmoid", seen)
        return hashes(build.output(read)).graph_hash

    assert graph(True) != graph(False)


def test_a_pure_operator_does_not_leave_its_region():
    def graph(inside):
        build = Builder()
        x = build.input()
        enter = build.call(
            "torch.amp.autocast_mode._enter_autocast", effect=True, value="other", dtype=None, shape=None
        )
        if inside:
            y = build.call("torch.matmul", x, x)
        build.call("torch.amp.autocast_mode._exit_autocast", enter, effect=True, value="none", dtype=None, shape=None)
        if not inside:
            y = build.call("torch.matmul", x, x)
        return hashes(build.output(y))

    assert graph(True).template_hash != graph(False).template_hash


def test_a_read_of_something_else_may_cross_a_write():
    build = Builder()
    a, b = build.input(), build.input(shape=(3,))
    x, y = build.call("torch.relu", a), build.call("torch.relu", b)
    write = build.call("torch.Tensor.add_", x, 1, effect=True)
    read = build.call("torch.sigmoid", y)
    record = build.output(x, read)
    order = [a.row, b.row, y.row, read.row, x.row, write.row, len(record.nodes) - 1]
    assert hashes(reordered(record, order)) == hashes(record)


def test_operands_commute_after_a_write_too():
    def graph(written_first):
        build = Builder()
        x = build.input()
        written, other = build.call("torch.relu", x), build.call("torch.sigmoid", x)
        build.call("torch.Tensor.add_", written, 1, effect=True)
        total = build.call("operator.add", *((written, other) if written_first else (other, written)))
        # Each of these is put in order by the colour of `total`.
        sums = [build.call("operator.add", total, build.call(f"torch.{f}", x)) for f in FUNCTIONS]
        return hashes(build.output(*sums))

    assert graph(True) == graph(False)


@pytest.mark.parametrize("target", ["torch.meshgrid", "torch.broadcast_tensors"])
@pytest.mark.parametrize("which", [0, 1])
def test_a_read_does_not_cross_a_write_through_any_of_several_views(target, which):
    def graph(read_first):
        build = Builder()
        x = build.input()
        both = [build.call("torch.relu", x), build.call("torch.sigmoid", x)]
        views = build.call(target, *both, value="tuple", dtype=None, shape=None)
        seen = build.call("operator.getitem", views, which)
        read = build.call("torch.exp", seen) if read_first else None
        build.call("torch.Tensor.add_", both[which], 1, effect=True)
        return hashes(build.output(read or build.call("torch.exp", seen))).graph_hash

    assert graph(True) != graph(False)


@pytest.mark.parametrize("writes", [False, True])
def test_a_read_crosses_a_nested_graph_only_if_that_writes_nothing(writes):
    inner = Builder()
    given_value = inner.input()
    inner.call("torch.Tensor.add_" if writes else "torch.rand_like", given_value, effect=True)
    body = inner.output(given_value)
    build = Builder()
    x = build.call("torch.relu", build.input())
    read = build.call("torch.sigmoid", x)
    held = build.add("get_attr", "body_0", value="other")
    build.call("torch.ops.higher_order.wrap", held, x, effect=True, value="tuple", dtype=None, shape=None)
    record = GraphRecord(build.output(read).nodes, (body,))
    moved = reordered(record, [0, 1, 3, 4, 2, 5])
    assert (hashes(moved).graph_hash != hashes(record).graph_hash) == writes


def test_a_nested_graph_that_draws_keeps_its_place_whatever_calls_it():
    def graph(scan_first):
        inner = Builder()
        given_value = inner.input()
        body = inner.output(inner.call("torch.rand_like", given_value, effect=True))
        build = Builder()
        x = build.input()
        held = build.add("get_attr", "body_0", value="other")
        calls = {
            "scan": lambda: build.call("torch.ops.higher_order.scan", held, [x], [x]),
            "rand": lambda: build.call("torch.rand_like", x, effect=True),
        }
        made = {name: calls[name]() for name in sorted(calls, reverse=scan_first)}
        return hashes(GraphRecord(build.output(made["scan"], made["rand"]).nodes, (body,))).graph_hash

    assert graph(True) != graph(False)
