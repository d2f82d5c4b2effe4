"""Correctness by level: the tolerance table of the error-aware score, and what no tolerance forgives."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evaluate.measure.compare import LEVELS, Agreement, agreement, leaves, tolerance, worst

REAL = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def test_level_minus_five_is_assert_close_with_an_atol_of_1e_minus_5():
    assert tolerance(torch.float16, -5) == pytest.approx((1e-5, 1e-3))
    assert tolerance(torch.bfloat16, -5) == pytest.approx((1e-5, 1.6e-2), rel=1e-3)
    assert tolerance(torch.float32, -5) == pytest.approx((1e-5, 1.3e-6), rel=1e-3)
    assert tolerance(torch.float64, -5) == pytest.approx((1e-7, 1e-7))
    assert tolerance(torch.int64, 5) == (0, 0)


@given(st.sampled_from(LEVELS), st.floats(-100, 100), st.sampled_from([torch.float64, torch.float32]))
def test_an_error_inside_the_tolerance_passes_and_one_outside_does_not(t, value, dtype):
    """Judged in float64 on both sides, so that the edge itself is what is tested."""
    atol, rtol = tolerance(torch.float64, t)
    allowed = atol + rtol * abs(value)
    expected = torch.tensor([value, 0.0], dtype=torch.float64)
    outside = agreement([expected + torch.tensor([allowed * 1.01 + 1e-13, 0.0])], [expected])
    assert outside.t is None or outside.t > t
    if allowed > abs(value) * 1e-13 + 1e-13:
        inside = agreement([expected + torch.tensor([allowed * 0.99, 0.0])], [expected])
        assert inside.t is not None and inside.t <= t


@given(st.sampled_from(REAL), st.floats(-4, 4), st.floats(0, 1e-1))
def test_levels_are_nested(dtype, value, error):
    """Whatever is correct at a level is correct at every laxer one: the first level says it all."""
    actual = torch.tensor([value + error], dtype=dtype)
    expected = torch.tensor([value], dtype=torch.float64)
    found = agreement([actual], [expected]).t
    for t in LEVELS:
        atol, rtol = tolerance(dtype, t)
        correct = abs(float(actual.double()) - value) <= atol + rtol * abs(value)
        assert correct == (found is not None and t >= found)


def test_shapes_never_broadcast():
    assert agreement([torch.ones(1)], [torch.ones(4, dtype=torch.float64)]).problem is not None
    assert agreement([torch.ones(1, 4)], [torch.ones(4, dtype=torch.float64)]).t is None


def test_a_missing_output_is_seen():
    found = agreement([torch.ones(2)], [torch.ones(2).double(), torch.ones(2).double()])
    assert found.t is None and found.problem == "1 outputs instead of 2"


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_where_the_reference_is_fails_at_every_level(wrong):
    expected = torch.tensor([1.0, 2.0], dtype=torch.float64)
    found = agreement([torch.tensor([1.0, wrong])], [expected])
    assert found.t is None and found.problem is not None


def test_equal_infinities_and_nans_agree_and_opposite_ones_do_not():
    expected = torch.tensor([math.inf, math.nan, 3.0], dtype=torch.float64)
    assert agreement([expected.float()], [expected]).t == LEVELS[0]
    assert agreement([torch.tensor([-math.inf, math.nan, 3.0])], [expected]).t is None


def test_whole_numbers_and_booleans_must_be_equal():
    assert agreement([torch.tensor([1, 2])], [torch.tensor([1, 2])]).t == LEVELS[0]
    assert agreement([torch.tensor([1, 3])], [torch.tensor([1, 2])]).t is None
    assert agreement([torch.tensor([True])], [torch.tensor([False])]).t is None


def test_a_real_output_where_the_reference_has_whole_numbers_is_a_problem():
    assert agreement([torch.tensor([1.0])], [torch.tensor([1])]).problem is not None


def test_complex_outputs_are_compared_by_parts():
    expected = torch.tensor([1 + 2j], dtype=torch.complex128)
    assert agreement([expected.to(torch.complex64)], [expected]).t == LEVELS[0]
    assert agreement([expected.to(torch.complex64) + 1e-3j], [expected]).t > -5


def test_plain_values_and_nested_outputs():
    assert leaves((1, [2, {"b": 4, "a": 3}])) == [1, 2, 3, 4]
    assert agreement([3], [3]).t == LEVELS[0]
    assert agreement([3], [4]).t is None
    assert agreement([3], [torch.ones(1)]).problem is not None


def test_empty_outputs_agree():
    assert agreement([torch.ones(0)], [torch.ones(0, dtype=torch.float64)]).t == LEVELS[0]


def test_one_bad_case_makes_all_bad():
    good, lax, bad = Agreement(-8, 1e-9, 1e-9), Agreement(-3, 1e-3, 1e-3), Agreement(None, 9.0, 9.0)
    assert worst([good, lax]) == Agreement(-3, 1e-3, 1e-3)
    assert worst([good, bad, lax]).t is None
    assert worst([]) is None
