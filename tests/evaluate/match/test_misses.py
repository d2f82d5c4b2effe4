"""A mismatch says how near it came: which node, what was expected, what was found, and what to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from evaluate.match import PassError, make_pass, rewrite
from tests.evaluate.match.making import a_pass, traced


def graph(x: Any, y: Any) -> Any:
    return F.softmax((x + y) / 8.0, dim=-1)


@pytest.mark.parametrize(
    "pattern, matched, parts",
    [
        (
            lambda x, y: F.softmax((x + y) / 7.0, dim=-1),
            3,
            ["other=7.0", "other=8.0", "write 8.0, or make it an argument"],
        ),
        (lambda x, y: F.softmax((x + y) / 8.0, dim=1), 3, ["dim=1", "dim=-1"]),
        (lambda x, y: F.softmax((x - y) / 8.0, dim=-1), 2, ["operator.sub(x, y)", "operator.add(x, y)", "write add"]),
        (lambda x, y: F.softmax((x.exp() + y) / 8.0, dim=-1), 3, ["x.exp()", "make it an argument"]),
        (lambda x: F.softmax((x + x) / 8.0, dim=-1), 3, ["other=x", "other=y", "another argument than x"]),
        (lambda x, y: torch.log_softmax(x + y, -1), 0, ["no such operator", "the graph has: add, div, softmax"]),
    ],
)
def test_the_nearest_miss_names_both_sides_and_the_change(pattern: Callable[..., Any], matched: int, parts: list[str]):
    found = rewrite(traced(graph), a_pass(pattern, name="mine"))
    (miss,) = found.misses
    assert miss.rule == "mine" and miss.matched == matched, miss
    for part in parts:
        assert part in str(miss)


def test_of_several_misses_the_nearest_is_told():
    module = traced(lambda x, y: (x + y).sigmoid() * (x * y).relu().sigmoid())
    found = rewrite(module, a_pass(lambda x, y: (x - y).relu().sigmoid()))
    assert found.misses[0].matched == 2 and found.misses[0].node == "mul"


def test_a_matching_pass_has_no_miss():
    assert not rewrite(traced(graph), a_pass(graph)).misses


def test_huge_symmetric_patterns_are_given_up_rather_than_searched_for_ever():
    def total(*values: Any) -> Any:
        result = values[0] * 1
        for value in values[1:]:
            result = result + value * 1
        return result

    def sixteen(a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q):
        return total(a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q)

    def other(a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q):
        return total(a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q - 1)

    assert not rewrite(traced(other), a_pass(lambda a, b: sixteen(*[a, b] * 8))).sites


def _returns(value: Any) -> Callable[..., Any]:
    return lambda *args: value


def pure(x: Any) -> Any:
    return x.relu()


@pytest.mark.parametrize(
    "pattern, args, func, said",
    [
        (3, _returns(()), _returns(pure), "pattern is no function"),
        (lambda *x: x[0].relu(), _returns(()), _returns(pure), "name its arguments one by one"),
        (lambda x: x.relu() if x.sum() > 0 else x, _returns(()), _returns(pure), "cannot be traced"),
        (lambda x: x, lambda x: (x,), _returns(pure), "must return the result of an operator"),
        (lambda x: None, lambda x: (x,), _returns(pure), "must return the result of an operator"),
        (lambda x: [x.relu(), 1], lambda x: (x,), _returns(pure), "must return the result of an operator"),
        (lambda x, y: x.relu(), lambda x, y: (x,), _returns(pure), "does not use its argument y"),
        (lambda x: (x.exp(), x.relu())[1], lambda x: (x,), _returns(pure), "leads to no output"),
        (pure, 3, _returns(pure), "replacement_args is no function"),
        (pure, lambda: (), _returns(pure), "replacement_args failed"),
        (pure, lambda x: (x.relu(),), _returns(pure), "work belongs into the replacement"),
        (pure, lambda x: (x * 2,), _returns(pure), "work belongs into the replacement"),
        (pure, lambda x: (x if x else 1,), _returns(pure), "may not test x"),
        (pure, lambda x: x, _returns(pure), "must return a tuple"),
        (pure, lambda x: (x, torch.ones(2)), _returns(pure), "returns a Tensor"),
        (pure, lambda x: (x, pure), _returns(pure), "returns a function"),
        (pure, lambda x: (x,), 3, "replacement_func is no function"),
        (pure, lambda x: (x,), _returns(3), "the same module-level function"),
        (pure, lambda x: (x,), lambda: lambda x: x, "the same module-level function"),
        (pure, lambda x: (x,), _returns(torch.relu), "a function of the pass file"),
        (pure, lambda x: (x,), lambda: 1 // 0, "replacement_func failed (ZeroDivisionError"),
    ],
)
def test_a_pass_that_cannot_be_used_says_what_to_change(pattern: Any, args: Any, func: Any, said: str):
    with pytest.raises(PassError) as error:
        make_pass("mine", pattern, args, func)
    assert said in str(error.value) and str(error.value).startswith("mine: ") and "\n" not in str(error.value)
