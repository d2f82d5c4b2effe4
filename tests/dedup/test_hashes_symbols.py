"""What the hashes promise of symbolic sizes and of nested graphs."""

from dataclasses import replace

import pytest

from dedup.hashes import hashes
from dedup.symbols import nameless
from tests.dedup.graphs import Builder
from warehouse.graph.record import GraphRecord


def test_symbols_may_have_any_name():
    def graph(s, t, swap=False):
        build = Builder()
        a = build.add("placeholder", value="symint", expr=s, slot=0, role="symbol", dtype=None, shape=None)
        b = build.add("placeholder", value="symint", expr=t, slot=1, role="symbol", dtype=None, shape=None)
        x = build.input(shape=(4, 6), expr=f"[{s}, {t}]")
        size = [b, a] if swap else [a, b]
        return hashes(build.output(build.call("torch.Tensor.expand", x, *size, expr=f"[{s}, {t}]", shape=(4, 6))))

    assert graph("s0", "s1") == graph("s77", "s3")
    assert graph("s0", "s1").graph_hash != graph("s0", "s1", swap=True).graph_hash
    assert graph("s0", "s1").graph_hash != graph("s0", "s0").graph_hash


def test_example_values_of_symbolic_sizes_do_not_count():
    def graph(size):
        build = Builder()
        n = build.add("placeholder", value="symint", expr="s0", slot=0, role="symbol", dtype=None, shape=None)
        x = build.input(shape=(size, 3), expr="[s0, 3]")
        return hashes(build.output(build.call("torch.Tensor.view", x, n, 3, shape=(size, 3), expr="[s0, 3]")))

    assert graph(2) == graph(8)


def test_how_symbols_are_sorted_does_not_count():
    """sympy prints factors and terms by name, so other names change the order in which they are printed."""

    def graph(rows, columns, numel, total):
        build = Builder()
        x, y = build.input(shape=(4,), expr=f"[{rows}]"), build.input(shape=(6,), expr=f"[{columns}]")
        outer = build.call("torch.outer", x, y, shape=(4, 6), expr=f"[{rows}, {columns}]")
        flat = build.call("torch.Tensor.flatten", outer, shape=(24,), expr=f"[{numel}]")
        return hashes(build.output(flat, build.call("torch.cat", [x, y], shape=(10,), expr=f"[{total}]")))

    first = graph("s0", "s1", "s0*s1", "s0 + s1")
    assert first == graph("s1", "s0", "s0*s1", "s0 + s1") == graph("s7", "s3", "s3*s7", "s3 + s7")
    assert first.graph_hash != graph("s0", "s1", "s0*s0", "s0 + s1").graph_hash


@pytest.mark.parametrize(
    ("printed", "renamed"),
    [
        ("s0 - s1", "-s0 + s1"),
        ("2*s0 - 3*s1", "-3*s0 + 2*s1"),
        ("s0*s1/2 + s0", "s0*s1/2 + s1"),
        ("Max(2, s0, s1)", "Max(2, s0, s1)"),
        ("((s0 + s1)//2)", "((s0 + s1)//2)"),
        ("(s0//s1)", "(s1//s0)"),
        ("Mod(s0, s1) + 1", "Mod(s1, s0) + 1"),
        ("s0**2*s1", "s0*s1**2"),
        ("-(s0 - s1)", "-(-s0 + s1)"),
    ],
)
def test_an_expression_in_exchanged_symbols_says_the_same(printed, renamed):
    """`renamed` is `printed` with s0 and s1 exchanged, as sympy would print that."""
    assert nameless(["s0", "s1", printed]) == nameless(["s1", "s0", renamed])


@pytest.mark.parametrize("other", ["s1 - s0", "s0 + s1", "s0 - 2*s1", "s0", "s0*s1", "s0//s1", "s0/s1"])
def test_different_expressions_differ(other):
    assert nameless(["s0", "s1", "s0 - s1"]) != nameless(["s0", "s1", other])


@pytest.mark.parametrize(
    "text", ["", "s0 +", "(" * 5000 + "s0", "-" * 50_000 + "s0", "s0 \0 s1", "+".join(["s0"] * 9000)]
)
def test_text_that_is_no_expression_has_a_name_free_form_too(text):
    assert nameless([text]) == nameless([text.replace("s0", "s5")])


def test_equal_operands_are_told_apart_by_their_symbols():
    def graph(sizes):
        build = Builder()
        build.add("placeholder", value="symint", expr="s0", slot=0, role="symbol", dtype=None, shape=None)
        x, y = (build.input(shape=(4,), expr=size) for size in sizes)
        last = build.input(shape=(4,), expr="[s1]")
        total = build.call("operator.add", x, y, shape=(4,), expr="[s0]")
        return hashes(build.output(build.call("operator.sub", total, last, shape=(4,), expr="[s0]")))

    assert graph(["[s0]", "[2*s0]"]) == graph(["[2*s0]", "[s0]"])
    assert graph(["[s0]", "[s1]"]) == graph(["[s1]", "[s0]"])
    assert graph(["[s0]", "[s1]"]).graph_hash != graph(["[s0]", "[s0]"]).graph_hash


def test_symbols_inside_of_a_maximum_are_not_told_apart_by_how_they_are_sorted():
    def graph(one, two):
        build = Builder()
        x = build.input(shape=(4,), expr="[Max(2, s0, s1)]")
        y, z = build.input(shape=(4,), expr=f"[{one}]"), build.input(shape=(4,), expr=f"[{two}]")
        total = build.call("operator.add", y, z, shape=(4,), expr=f"[{one}]")
        return hashes(build.output(build.call("operator.sub", total, x, shape=(4,), expr="[Max(2, s0, s1)]"), y))

    assert graph("s0", "s1") == graph("s1", "s0")


def test_example_sizes_of_a_tuples_members_do_not_count_but_their_dtypes_do():
    def graph(size, dtype):
        build = Builder()
        x = build.input(shape=(size, 4), expr="[s0, 4]")
        elements = f'[["{dtype}",[{size},2]],["{dtype}",[{size},2]]]'
        return hashes(
            build.output(build.call("torch.split", x, 2, value="tuple", dtype=None, shape=None, elements=elements))
        )

    assert graph(2, "float32") == graph(8, "float32")
    assert graph(2, "float32").graph_hash != graph(2, "float16").graph_hash


def nested(first, second, swap):
    """cond with two bodies, listed in either order."""

    def body(target):
        build = Builder()
        return build.output(build.call(target, build.input()))

    build = Builder()
    x = build.input()
    one = build.add("get_attr", f"body_{1 if swap else 0}", value="other")
    two = build.add("get_attr", f"body_{0 if swap else 1}", value="other")
    out = build.call("torch.ops.higher_order.cond", x, one, two, [x])
    bodies = (body(first), body(second))
    return GraphRecord(build.output(out).nodes, bodies[::-1] if swap else bodies)


def test_nested_graphs_count_and_their_numbering_does_not():
    base = hashes(nested("torch.relu", "torch.sigmoid", False))
    assert hashes(nested("torch.relu", "torch.sigmoid", True)) == base
    assert hashes(nested("torch.sigmoid", "torch.relu", False)).graph_hash != base.graph_hash
    assert hashes(nested("torch.relu", "torch.relu", False)).op_hash != base.op_hash


def test_what_a_nested_graph_is_given_counts_by_position():
    def graph(exchanged):
        inner = Builder()
        a, b = inner.input(), inner.input()
        body = inner.output(inner.call("operator.sub", *((b, a) if exchanged else (a, b))))
        build = Builder()
        x = build.input()
        held = build.add("get_attr", "body_0", value="other")
        out = build.call("torch.ops.higher_order.wrap", held, x, build.call("torch.relu", x), effect=True)
        return GraphRecord(build.output(out).nodes, (body,))

    assert hashes(graph(False)).graph_hash != hashes(graph(True)).graph_hash
    renamed = graph(True).bodies[0]
    renamed = renamed.with_nodes(tuple(replace(n, name=n.name and f"other_{n.name}") for n in renamed.nodes))
    assert hashes(GraphRecord(graph(True).nodes, (renamed,))) == hashes(graph(True))
