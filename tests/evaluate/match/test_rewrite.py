"""What is replaced, what is left alone, and that the rewritten graph computes the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluate.match import rewrite
from tests.evaluate.match.making import a_pass, dynamo, targets, traced

X, Y = torch.randn(4, 8), torch.randn(4, 8)


def fused(x: Any, y: Any) -> Any:
    return torch.relu(x + y)


def test_a_site_is_replaced_and_the_rest_stays():
    module = traced(lambda x, y: torch.relu(x * 2 + y).sum(1))
    found = rewrite(module, a_pass(lambda x, y: torch.relu(x + y), fused))
    assert targets(found.graph_module) == ["mul", "fused", "sum"]
    assert (found.coverage.ops, found.coverage.covered, found.coverage.work) == (4, 2, 2)
    torch.testing.assert_close(found.graph_module(X, Y), module(X, Y))
    assert targets(module) == ["mul", "add", "relu", "sum"]  # the given graph is as it was


def test_every_site_is_replaced_also_one_that_reads_another():
    module = traced(lambda x, y: torch.relu(torch.relu(x + y) + y) - torch.relu(y + x))
    found = rewrite(module, a_pass(lambda x, y: torch.relu(x + y), fused))
    assert targets(found.graph_module) == ["fused", "fused", "fused", "sub"]
    assert [s.covered for s in found.sites] == [("add", "relu"), ("add_1", "relu_1"), ("add_2", "relu_2")]
    assert found.sites[1].inputs == ("relu", "y")  # named as in the original graph
    torch.testing.assert_close(found.graph_module(X, Y), module(X, Y))


def test_several_outputs():
    def pattern(x: Any, y: Any) -> Any:
        a = x + y
        return a, a.relu()

    module = traced(lambda x, y: (x + y).relu() * (x + y).sum() if False else _two(x, y))
    found = rewrite(module, a_pass(pattern))
    assert targets(found.graph_module) == ["same", "getitem", "getitem", "mul", "sub"]
    torch.testing.assert_close(found.graph_module(X, Y), module(X, Y))


def _two(x: Any, y: Any) -> Any:
    a = x + y
    return a.relu() * 3 - a


def test_outputs_that_share_nothing_but_an_input():
    module = traced(lambda x, y: (x * 2, y, x.relu()))
    found = rewrite(module, a_pass(lambda x: (x.relu(), x * 2)))
    assert len(found.sites) == 1 and found.sites[0].outputs == ("relu", "mul")
    assert all(torch.equal(a, b) for a, b in zip(found.graph_module(X, Y), module(X, Y), strict=True))


def test_literals_are_arguments_when_the_pattern_asks():
    def scaled(x: Any, factor: float, route: str) -> Any:
        assert route == "route"
        return torch.relu(x) * factor

    rule = a_pass(lambda x, factor: torch.relu(x) * factor, scaled, lambda x, factor: (x, factor, "route"))
    module = traced(lambda x: torch.relu(x) * 0.5 + torch.relu(x) * 3)
    found = rewrite(module, rule)
    assert [s.arguments[1] for s in found.sites] == [0.5, 3]
    torch.testing.assert_close(found.graph_module(X), module(X))


def test_a_value_used_outside_is_not_swallowed():
    module = traced(lambda x, y: torch.relu(x + y) * (x + y) if False else _escaping(x, y))
    found = rewrite(module, a_pass(lambda x, y: torch.relu(x + y), fused))
    assert not found.sites
    assert "return it from the pattern as a further output" in str(found.misses[0])


def _escaping(x: Any, y: Any) -> Any:
    a = x + y
    return torch.relu(a) * a


def test_overlapping_sites_go_to_the_first_pass_and_the_first_node():
    module = traced(lambda x: x.relu().relu().relu())
    pair = a_pass(lambda x: x.relu().relu(), name="pair")
    one = a_pass(lambda x: x.relu(), name="one")
    assert [s.rule for s in rewrite(module, [pair, one]).sites] == ["pair", "one"]
    assert [s.rule for s in rewrite(module, [one, pair]).sites] == ["one", "one", "one"]
    assert rewrite(module, [pair, one]).sites[0].covered == ("relu", "relu_1")


@pytest.mark.parametrize("writer", [torch.Tensor.add_, torch.Tensor.mul_])
def test_a_read_is_not_moved_across_a_write(writer: Any):
    def between(x: Any, y: Any) -> Any:
        z = x.clone()
        a = z.exp()
        getattr(z, writer.__name__)(1)
        return a.relu() + y

    module = traced(between)
    found = rewrite(module, a_pass(lambda z: z.exp().relu()))
    assert not found.sites and "inputs that nobody writes meanwhile" in str(found.misses[0])


def test_a_write_that_somebody_sees_is_not_taken_away():
    def seen(x: Any, y: Any) -> Any:
        z = x * 2
        w = z.add_(y)
        return w.relu() + z

    assert not rewrite(traced(seen), a_pass(lambda z, y: (z + y).relu())).sites
    assert not rewrite(traced(lambda x, y: x.add_(y).relu()), a_pass(lambda z, y: (z + y).relu())).sites  # an input
    assert not rewrite(traced(lambda x, y: _through_a_view(x, y)), a_pass(lambda z, y: (z + y).relu())).sites


def _through_a_view(x: Any, y: Any) -> Any:
    z = x * 2
    v = z.view(-1)
    return z.add_(y).relu().sum() + v.sum()


def test_views_of_the_result_of_a_write_see_the_replacement():
    module = traced(lambda x, y: (x * 2).add_(y).view(-1).sum())
    found = rewrite(module, a_pass(lambda z, y: z + y))
    assert len(found.sites) == 1
    torch.testing.assert_close(found.graph_module(X, Y), module(X, Y))


def test_random_calls_are_left_alone():
    module = traced(lambda x: F.dropout(x.relu(), 0.5, True) + 1)
    found = rewrite(module, a_pass(lambda x: F.dropout(x.relu(), 0.5, True)))
    assert not found.sites and "draws random numbers" in str(found.misses[0])
    assert rewrite(
        traced(lambda x: F.dropout(x.relu(), 0.5, False) + 1), a_pass(lambda x: F.dropout(x.relu(), 0.5, False))
    ).sites


def test_a_pattern_around_something_else_has_no_place():
    def around(x: Any, y: Any) -> Any:
        a = x.relu()
        b = a.exp()  # outside: needs an output of the pattern and is needed by it
        return (b * 2).sigmoid(), a

    found = rewrite(traced(around), a_pass(lambda x, b: (x.relu(), (b * 2).sigmoid())))
    assert not found.sites and "split the pattern" in str(found.misses[0])


def test_a_trivial_match_is_no_match():
    module = traced(lambda x: F.softmax(x.view(2, -1).exp().sigmoid().tanh().relu().abs().neg().sin().cos(), -1))
    view = rewrite(module, a_pass(lambda x: x.view(2, -1)))
    assert len(view.sites) == 1 and "only view" in str(view.coverage.trivial())
    little = rewrite(module, a_pass(lambda x: x.exp()))
    assert little.coverage.trivial(0.2) == "1 of 10 operators covered, at least 20% must be"
    assert little.coverage.trivial(0.1) is None
    assert rewrite(module, a_pass(lambda x: x.log())).coverage.trivial() == "no site"


def test_graphs_of_dynamo_with_in_place_operators_match():
    def model(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x / 8.0
        z += y
        return F.relu(z, inplace=True) * 2

    module = dynamo(model, X, Y)
    found = rewrite(module, a_pass(lambda x, y: torch.relu(x / 8 + y)))
    assert len(found.sites) == 1 and found.coverage.covered == 3, found.misses
    torch.testing.assert_close(found.graph_module(X, Y)[0], model(X, Y))


_UNARY = [torch.relu, torch.sigmoid, torch.tanh, torch.neg]
_BINARY = [torch.add, torch.mul, torch.sub]


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=14))
def test_rewriting_random_graphs_never_changes_what_they_compute(steps: list[tuple[int, int, int]]):
    def model(x: Any, y: Any) -> Any:
        values = [x, y]
        for op, i, j in steps:
            a, b = values[i % len(values)], values[j % len(values)]
            values.append(_UNARY[op](a) if op < 4 else _BINARY[op - 4](a, b))
        return values[-1], values[len(values) // 2]

    module = traced(model)
    rules = [
        a_pass(lambda a, b: torch.relu(torch.add(a, b)), name="add_relu"),
        a_pass(lambda a, b: (torch.mul(a, b), torch.sigmoid(a)), name="two"),
        a_pass(lambda a: torch.tanh(torch.neg(a)), name="neg_tanh"),
        a_pass(lambda a: torch.sub(a, a), name="same"),
        a_pass(lambda a, b: torch.sub(a, b), name="sub"),
    ]
    x, y = torch.randn(3, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    found = rewrite(module, rules)
    for mine, theirs in zip(found.graph_module(x, y), module(x, y), strict=True):
        torch.testing.assert_close(mine, theirs)
    again = rewrite(module, rules)
    assert [s.covered for s in again.sites] == [s.covered for s in found.sites]
    covered = [name for site in found.sites for name in site.covered]
    assert len(covered) == len(set(covered)) == found.coverage.covered
