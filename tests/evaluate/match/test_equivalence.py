"""Each site is run against what it replaced; what is wrong there is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from evaluate.match import check_sites, rewrite
from tests.evaluate.match.making import a_pass, traced

X, Y = torch.randn(4, 8), torch.randn(4, 8)


def model(x: Any, y: Any) -> Any:
    z = torch.relu(x.t() + y.t()) * 2
    return z.add_(1).sum(0) + torch.relu(x + y).sum()


def pattern(a: Any, b: Any) -> Any:
    return torch.relu(a + b)


def test_honest_sites_are_right_at_the_strictest_level():
    module = traced(model)
    checks = check_sites(module, rewrite(module, a_pass(pattern)), (X, Y))
    assert [(c.problem, c.agreement.t if c.agreement else None) for c in checks] == [(None, -10)] * 2
    assert all(c.correct_at(-5) for c in checks)


def contiguous_only(a: Any, b: Any) -> Any:
    return torch.relu(a + b) if a.is_contiguous() else torch.relu(a)


def writes(a: Any, b: Any) -> Any:
    return a.add_(b).relu_()


@pytest.mark.parametrize(
    "replacement, said",
    [
        (writes, "writes its input"),
        (lambda a, b: torch.relu(a + b).double(), "output 0 is a float64 tensor"),
        (lambda a, b: torch.relu(a + b)[:1], "of shape [1,"),
        (lambda a, b: (torch.relu(a + b),), "output 0 is tuple of 1"),
        (lambda a, b: None, "output 0 is NoneType"),
        (lambda a, b: 1 // 0, "the replacement failed (ZeroDivisionError"),
    ],
)
def test_what_is_wrong_whatever_the_values(replacement: Callable[..., Any], said: str):
    module = traced(model)
    for check in check_sites(module, rewrite(module, a_pass(pattern, replacement)), (X, Y)):
        assert said in str(check.problem) and not check.correct_at(5)


def test_a_replacement_that_is_right_at_one_site_only_fails_at_the_other():
    module = traced(model)
    wide, fine = check_sites(module, rewrite(module, a_pass(pattern, contiguous_only)), (X, Y))
    assert fine.correct_at(-10) and not wide.correct_at(-2)


def test_inputs_are_neither_written_nor_needed_dense():
    module = traced(lambda x, y: torch.relu(x + y) * 2)
    x, y = torch.randn(1, 8).expand(4, 8), torch.randn(8, 4).t()
    before = x.clone(), y.clone()
    (check,) = check_sites(module, rewrite(module, a_pass(pattern)), (x, y))
    assert check.correct_at(-10)
    assert torch.equal(x, before[0]) and torch.equal(y, before[1])


def test_a_site_is_given_what_it_reads_when_it_reads_it():
    def later_written(x: Any) -> Any:
        a = x * 2
        a.add_(1)
        b = torch.relu(a + 3)
        return b * 1 + a.sum()

    module = traced(later_written)
    (check,) = check_sites(module, rewrite(module, a_pass(lambda a: torch.relu(a + 3))), (X,))
    assert check.correct_at(-10)


def test_several_outputs_are_compared_one_by_one():
    module = traced(lambda x, y: torch.relu(x + y) * (x - y))
    both = a_pass(lambda x, y: (x + y, x - y), lambda x, y: (x + y, x - y - 1))
    (check,) = check_sites(module, rewrite(module, both), (X, Y))
    assert check.agreement is not None and not check.correct_at(-5)
