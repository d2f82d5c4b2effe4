"""Gates and correctness, with stand-ins for the compiled callable: what each is for, and what it lets through."""

from __future__ import annotations

import pytest
import torch

from curate.profile import subject
from curate.profile.judge import Refused, judged
from tests.curate.profile.graphs import record

F = torch.nn.functional


def made(call, *inputs, seed=0):
    return subject.make(record(call, *inputs), "cpu", seed)


def judge(given, compiled=None):
    with torch.no_grad():
        return judged(given, compiled or given.module, "cpu")


def test_eager_is_near_float64_and_a_right_answer_as_near():
    columns = judge(made(lambda x: F.softmax(x * 3, -1), torch.randn(4, 8)))
    assert columns["reference"] == "float64"
    assert columns["eager_t"] == columns["inductor_t"] <= -5
    assert columns["compared"] == ["recipe", "reseeded", "small", "large", "integers", "rows"]
    assert columns["inductor_problem"] is None


def test_a_wrong_answer_is_seen_even_where_only_one_distribution_shows_it():
    """Without its maximum a softmax overflows for large inputs only: a plain draw would call it correct."""
    given = made(lambda x: F.softmax(x, -1), torch.randn(4, 8))
    columns = judge(given, lambda x: (x.exp() / x.exp().sum(-1, keepdim=True),))
    assert columns["inductor_t"] is None
    assert columns["inductor_max_abs"] < 1e-6  # on the recipe's own values


@pytest.mark.parametrize(
    "wrong", [lambda x: (x.double().sin(),), lambda x: (x.sin()[:2],), lambda x: (x.sin(), x), lambda x: (3,)]
)
def test_another_dtype_shape_number_or_type_of_outputs_is_a_problem(wrong):
    columns = judge(made(torch.sin, torch.randn(4)), wrong)
    assert columns["inductor_problem"] is not None


def test_a_compiled_graph_that_does_not_run_has_a_class():
    def broken(x):
        raise RuntimeError("no such kernel\nat line 1")

    with pytest.raises(Refused, match="no such kernel") as caught:
        judge(made(torch.sin, torch.randn(4)), broken)
    assert caught.value.klass == "inductor_error" and "\n" not in str(caught.value)


def test_writes_to_inputs_are_compared_too():
    given = made(lambda x: x.mul_(2).sum(), torch.randn(4))
    assert given.mutates
    assert judge(given)["inductor_t"] <= -5
    assert judge(given, lambda x: ((x * 2).sum(),))["inductor_t"] > -5


def test_random_graphs_are_not_compared():
    given = made(lambda x: F.dropout(x, 0.5, True), torch.randn(64))
    columns = judge(given)
    assert given.random and columns["compared"] == [] and "eager_t" not in columns


def test_not_a_number_is_refused():
    with pytest.raises(Refused) as caught:
        judge(made(lambda x: torch.log(x - x - 1), torch.randn(4)))
    assert caught.value.klass == "non_finite"


def test_a_graph_whose_inputs_do_not_matter_is_refused():
    with pytest.raises(Refused) as caught:
        judge(made(lambda x: x * 0, torch.randn(4)))
    assert caught.value.klass == "degenerate"


def test_an_input_that_does_not_matter_is_named():
    assert judge(made(lambda x, y: x * 0 + y, torch.randn(4), torch.randn(4)))["insensitive"] == [0]


@pytest.mark.parametrize(
    ("call", "zero", "constant", "copy"),
    [
        (lambda x: x.sin(), False, False, False),
        (lambda x: x * 1e-9, True, True, False),
        (lambda x: x * 1e-6 + 5, False, True, False),
        (lambda x: x.reshape(2, 2).contiguous(), False, False, True),
        (lambda x: x.view(2, 2).t().contiguous(), False, False, False),
    ],
)
def test_trivial_answers_that_would_pass_are_named(call, zero, constant, copy):
    columns = judge(made(call, torch.randn(4)))
    assert (columns["zero_passes"], columns["constant_passes"], columns["copy_passes"]) == (zero, constant, copy)


def test_what_has_no_float64_form_is_compared_with_eager():
    columns = judge(made(lambda x: x.view(torch.int32) + 1, torch.randn(4)))
    assert columns["reference"] == "eager" and columns["inductor_t"] == -10


def test_inputs_above_the_limit_are_refused_before_anything_is_drawn(monkeypatch):
    given = record(torch.sin, torch.randn(64))
    monkeypatch.setattr(subject, "MAX_INPUT_BYTES", 64)
    with pytest.raises(subject.TooLarge):
        subject.make(given, "cpu", 0)


def test_the_same_seed_draws_the_same_inputs():
    one, two, other = (made(torch.sin, torch.randn(4), seed=s).drawn["recipe"][0] for s in (1, 1, 2))
    assert torch.equal(one, two) and not torch.equal(one, other)


def test_strides_reach_the_device():
    value = torch.arange(24.0).as_strided((3, 4), (1, 5), 2)
    (there,) = subject.placed([value], "cpu")
    assert there.stride() == (1, 5) and torch.equal(there, value)
    assert there.untyped_storage().data_ptr() != value.untyped_storage().data_ptr()
