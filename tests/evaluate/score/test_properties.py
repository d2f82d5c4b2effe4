"""Properties that hold for any samples: the forms agree, better is never worse, units of time do not matter."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluate.score import ConfigurationError, Sample, ScoreConfiguration, figures
from evaluate.score.configuration import SPANS
from evaluate.score.forms import closed_es, closed_s, direct_es, direct_s
from evaluate.verdict import ErrorClass

speedups = st.floats(1e-6, 1e6)
levels = st.integers(-10, 5)
correct = st.builds(lambda t, s, k: Sample(t, s, task=k), levels, speedups, st.sampled_from("abc"))
failures = st.builds(
    lambda e, k: Sample(None, error=e, task=k), st.sampled_from([*ErrorClass, None]), st.sampled_from("abc")
)
samples = st.lists(correct | failures, min_size=1, max_size=12)
settings_of_a_score = st.builds(
    lambda i, p, b: ScoreConfiguration.of(i, p=p, b=b, resamples=0),
    st.sampled_from(sorted(SPANS)), st.floats(0, 3), st.floats(1e-3, 1.0),
)  # fmt: skip


@given(samples, settings_of_a_score)
def test_the_closed_form_is_the_direct_form(given_samples: list[Sample], c: ScoreConfiguration):
    found = figures(given_samples, c)
    for t in c.curve:
        es, s = direct_es(given_samples, t, c), direct_s(given_samples, t, c)
        assert math.isclose(es, closed_es(given_samples, t, c), rel_tol=1e-9)
        assert math.isclose(s, closed_s(given_samples, t, c), rel_tol=1e-9)
        assert math.isclose(found.es[t].value or 0, es, rel_tol=1e-9)
        assert math.isclose(found.s[t], s, rel_tol=1e-9)


@given(samples, settings_of_a_score, st.sampled_from(["tasks", "subgraphs"]), st.data())
def test_a_faster_or_more_correct_case_never_lowers_a_score(samples_, c, pool: str, data: st.DataObject):
    i = data.draw(st.integers(0, len(samples_) - 1))
    old = samples_[i]
    if old.correct_t is None:
        # A forgiven failure counts 1, so only a case that is no slower than eager is surely better than it.
        better = Sample(data.draw(st.integers(-10, 1)), data.draw(st.floats(1.0, 1e6)), task=old.task)
    else:
        faster = old.speedup * data.draw(st.floats(1.0, 10.0))
        level = data.draw(st.integers(-10, old.correct_t))
        if level < old.correct_t:  # a case that is so slow that it counts less than b had better stay wrong
            faster = max(faster, 1.0)
        better = replace(old, speedup=faster, correct_t=level)
    before, after = figures(samples_, c, pool), figures([*samples_[:i], better, *samples_[i + 1 :]], c, pool)
    for t in c.curve:
        assert after.es[t].value >= before.es[t].value * (1 - 1e-9)
        assert after.s[t] >= before.s[t] * (1 - 1e-9)
    if before.aggregate.value is not None:
        assert after.aggregate.value >= before.aggregate.value * (1 - 1e-9)


@given(st.lists(st.tuples(levels, st.floats(1.0, 1e3)), min_size=1, max_size=8), st.floats(1.0, 100.0))
def test_scaling_every_speedup_scales_a_score_of_correct_cases(cases: list[tuple[int, float]], factor: float):
    c = ScoreConfiguration(resamples=0)
    held = [Sample(min(t, -10), s) for t, s in cases]
    scaled = [replace(s, speedup=s.speedup * factor) for s in held]
    before, after = figures(held, c), figures(scaled, c)
    assert math.isclose(after.aggregate.value, before.aggregate.value * factor, rel_tol=1e-9)
    assert math.isclose(after.gmean.value, before.gmean.value * factor, rel_tol=1e-9)


@given(samples, settings_of_a_score, st.randoms(use_true_random=False))
def test_neither_order_nor_repetition_of_all_cases_matters(samples_: list[Sample], c: ScoreConfiguration, random):
    shuffled = [*samples_, *samples_]
    random.shuffle(shuffled)
    for pool in ("tasks", "subgraphs"):
        one, two = figures(samples_, c, pool), figures(shuffled, c, pool)
        assert all(math.isclose(one.es[t].value, two.es[t].value, rel_tol=1e-9) for t in c.curve)
        assert one.correct.value == pytest.approx(two.correct.value)


@given(samples, settings_of_a_score)
def test_pooled_over_tasks_is_the_geometric_mean_of_the_tasks_scores(samples_: list[Sample], c: ScoreConfiguration):
    each = [figures([s for s in samples_ if s.task == k], c) for k in sorted({s.task for s in samples_})]
    pooled = figures(samples_, c, "tasks")
    for t in c.curve:
        assert math.isclose(pooled.es[t].value, math.prod(f.es[t].value for f in each) ** (1 / len(each)), rel_tol=1e-9)
    if c.shares is not None:
        expected = math.prod(f.aggregate.value for f in each) ** (1 / len(each))
        assert math.isclose(pooled.aggregate.value, expected, rel_tol=1e-9)


@settings(max_examples=25)
@given(samples, st.integers(0, 1000))
def test_the_bootstrap_is_decided_by_its_seed_and_holds_the_value(samples_: list[Sample], seed: int):
    c = ScoreConfiguration(seed=seed, resamples=200)
    one, two = figures(samples_, c), figures(samples_, c)
    assert one == two
    if len({s.task for s in samples_}) == 1:
        assert one.aggregate.low is None and one.aggregate.high is None
    else:
        assert one.aggregate.low <= one.aggregate.high


def test_another_seed_resamples_otherwise():
    held = [Sample(-10, 1.0 + k / 7, task=str(k)) for k in range(20)]
    found = [figures(held, ScoreConfiguration(seed=seed)).aggregate for seed in (0, 1)]
    assert found[0].value == found[1].value and found[0] != found[1]
    assert all(i.low < i.value < i.high for i in found)


def test_cases_of_one_task_are_not_taken_for_independent():
    """Twenty copies of each case in each task must not shrink the interval."""
    held = [Sample(-10, 1.0 + k / 3, task=str(k)) for k in range(10)]
    once, often = (figures(held * n, ScoreConfiguration()).aggregate for n in (1, 20))
    assert (once.low, once.high) == pytest.approx((often.low, often.high))


def test_thousands_of_failures_do_not_underflow():
    held = [Sample(None) for _ in range(5000)]
    assert figures(held, ScoreConfiguration(b=1e-3)).aggregate.value == pytest.approx(1e-3)
    assert figures([Sample(-10, 1e-300)] * 5000, ScoreConfiguration(p=0)).aggregate.value == pytest.approx(1e-300)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_an_impossible_speedup_is_refused_rather_than_ranked_first(bad: float):
    with pytest.raises(ValueError, match="speedup"):
        Sample(-5, bad)


@given(settings_of_a_score)
def test_a_configuration_survives_its_json_and_has_one_id(c: ScoreConfiguration):
    assert ScoreConfiguration.from_json(c.json()) == c
    assert ScoreConfiguration.from_json(c.json()).id == c.id
    assert replace(c, correct_at=-4).id != c.id


@pytest.mark.parametrize(
    "more",
    [
        {"p": -1.0}, {"p": math.nan}, {"b": 0.0}, {"b": 1.5}, {"clock": "wall"}, {"against": "me"},
        {"levels": (-11, 4)}, {"correct_at": 9}, {"confidence": 1.0}, {"resamples": -1}, {"classes": ()}, {"seed": -1},
        {"weights": ((0, -1.0),)}, {"weights": ((0, 0.0),)}, {"weights": ((0, 1.0), (0, 1.0))}, {"fast": (math.nan,)},
        {"levels": (-10, 0)},
    ],
)  # fmt: skip
def test_a_senseless_configuration_is_refused(more: dict):
    with pytest.raises(ConfigurationError):
        ScoreConfiguration(**more)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"q": 1}', '{"p": "x"}', '{"classes": 3}'])
def test_foreign_json_is_no_configuration(text: str):
    with pytest.raises(ConfigurationError):
        ScoreConfiguration.from_json(text)
