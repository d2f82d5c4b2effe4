"""From evaluations to rows of `scores`: what counts, what is left out, what may be compared."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from evaluate.score import ConfigurationError, ScoreConfiguration
from evaluate.score.samples import Sample, sample_of
from evaluate.score.scores import comparable, configurations, ranked, scores
from evaluate.verdict import ErrorClass, checked
from tests.evaluate.rows import CPU, clean, failed
from warehouse.judged import SCORES

HOST, DEVICE, NONE = (ScoreConfiguration(clock=c) for c in ("host", "device", "none"))


def run(**more: Any) -> list[dict[str, Any]]:
    """Two tasks of one stratum and one of another, every kind of verdict among them."""
    rows = [
        clean(task="t1", subgraph_hash="0" * 32, host=2.0),
        clean(task="t1", subgraph_hash="1" * 32, host=0.5),
        failed("compile_error", task="t1", subgraph_hash="2" * 32),
        clean(task="t2", subgraph_hash="3" * 32, host=3.0),
        failed("hack", task="t2", subgraph_hash="4" * 32),
        failed("task_defect", task="t2", subgraph_hash="5" * 32),
        failed("harness_error", task="t3", stratum="typical", subgraph_hash="6" * 32),
        failed("no_match", task="t3", stratum="typical", subgraph_hash="7" * 32),
    ]
    return [checked({**row, **more}) for row in rows]


def test_rows_fit_the_table_and_cover_every_level():
    found = scores(run(), HOST)
    assert pa.Table.from_pylist(found, schema=SCORES.schema).num_rows == len(found)
    assert {(r["level"], r["name"], r["pool"]) for r in found} == {
        ("whole", "", "tasks"), ("whole", "", "subgraphs"),
        ("stratum", "fusible", "tasks"), ("stratum", "fusible", "subgraphs"),
        ("stratum", "typical", "tasks"), ("stratum", "typical", "subgraphs"),
        ("task", "t1", "subgraphs"), ("task", "t2", "subgraphs"), ("task", "t3", "subgraphs"),
    }  # fmt: skip
    whole = next(r for r in found if r["level"] == "whole" and r["pool"] == "subgraphs")
    assert (whole["samples"], whole["tasks"], whole["left_out"], whole["complete"]) == (6, 3, 2, False)
    assert json.loads(whole["verdicts"])["clean"] == 3 and whole["correct"] == pytest.approx(3 / 6)
    curve = {point["t"]: point for point in json.loads(whole["curve"])}
    assert curve[-5]["ES"] == pytest.approx((2.0 * 0.5 * 3.0 * 0.1**3) ** (1 / 6))
    assert curve[4]["ES"] == pytest.approx(
        (2.0 * 0.5 * 3.0 * 1.0 * 0.1**2) ** (1 / 6)
    )  # hack, no_match: never forgiven


def test_the_tasks_count_the_same_in_one_pool_and_by_their_cases_in_the_other():
    found = {(r["level"], r["name"], r["pool"]): r["aggregate"] for r in scores(run(), HOST)}
    each = [found["task", t, "subgraphs"] for t in ("t1", "t2", "t3")]
    assert found["whole", "", "tasks"] == pytest.approx((each[0] * each[1] * each[2]) ** (1 / 3))
    assert found["whole", "", "subgraphs"] == pytest.approx((each[0] ** 3 * each[1] ** 2 * each[2]) ** (1 / 6))


@pytest.mark.parametrize(
    "row, host, device",
    [
        (clean(host=2.0, over_device=4.0), Sample(-5, 2.0, task="t1"), Sample(-5, 4.0, task="t1")),
        (failed("wrong"), Sample(None, error=ErrorClass.ACCURACY, task="t1"), ...),
        (failed("wrong", error_class="nan"), Sample(None, error=ErrorClass.NAN, task="t1"), ...),
        (failed("timeout", error_class="compile"), Sample(None, error=ErrorClass.COMPILE, task="t1"), ...),
        (failed("suspect", correct_t=-10), Sample(None, task="t1"), ...),
        (failed("hack", correct_t=-10), Sample(None, task="t1"), ...),
        (failed("no_match"), Sample(None, task="t1"), ...),
        (failed("task_defect"), None, ...),
        (failed("harness_error"), None, ...),
    ],
)
def test_what_a_verdict_counts_as(row: dict[str, Any], host: Sample | None, device: Any):
    assert sample_of(row, HOST) == host
    assert sample_of(row, DEVICE) == (host if device is ... else device)


def test_a_wrong_case_counts_from_the_level_at_which_it_is_right():
    row = {
        **clean(host=2.0),
        "verdict": "wrong",
        "error_class": "accuracy",
        "correct_t": 0,
        "stage": "check",
        "detail": "d",
    }
    assert sample_of(checked(row), HOST) == Sample(0, 2.0, task="t1")


def test_not_being_measurable_is_no_way_around_a_measurement():
    unmeasured = clean(host=2.0, over_device=None)
    assert sample_of(checked(unmeasured), DEVICE) is None  # eager has no device time either
    assert sample_of(checked({**unmeasured, "eager_device_us": 12.0}), DEVICE) == Sample(None, task="t1")
    assert sample_of(unmeasured, HOST) == Sample(-5, 2.0, task="t1")


def test_speedups_may_be_over_the_baseline():
    row = clean(host=3.0, over_device=6.0)
    assert sample_of(row, ScoreConfiguration(against="baseline")).speedup == pytest.approx(2.0)
    assert sample_of(row, ScoreConfiguration(against="baseline", clock="device")).speedup == pytest.approx(4.0)


def test_a_cpu_run_is_scored_by_correctness_alone():
    rows = [clean(CPU, subgraph_hash=f"{k}" * 32, correct_t=-7) for k in range(4)]
    with pytest.raises(ConfigurationError, match="no times"):
        scores(rows, HOST)
    assert [c.clock for c in configurations(CPU)] == ["none"]
    assert [c.clock for c in configurations("NVIDIA H200")] == ["host", "device"]
    found = scores(rows, NONE)[0]
    assert json.loads(found["curve"])[-1]["ES"] == pytest.approx(1.0) and found["clock"] == "none"


@pytest.mark.parametrize("name", ["bench", "device", "cases"])
def test_scores_of_other_devices_benches_and_cases_are_not_compared(name: str):
    mine = scores(run(), HOST)[0]
    with pytest.raises(ConfigurationError, match=f"not comparable: {name} is"):
        comparable(mine, {**mine, name: "another"})
    comparable(mine, {**mine, "submission": "b" * 32, "run": "r2", "lowering": "inductor"})


def test_scores_of_other_configurations_are_not_compared():
    mine = scores(run(), HOST)[0]
    for other in (
        DEVICE,
        ScoreConfiguration(b=0.2),
        ScoreConfiguration(p=1.0),
        ScoreConfiguration.of("mismatch_extended"),
    ):
        with pytest.raises(ConfigurationError, match="configuration is"):
            comparable(mine, scores(run(), other)[0])
        with pytest.raises(ConfigurationError, match="not comparable"):
            ranked([mine, scores(run(), other)[0]])


def test_fewer_cases_are_another_set_of_cases():
    with pytest.raises(ConfigurationError, match="not comparable: cases"):
        comparable(scores(run(), HOST)[0], scores(run()[:-1], HOST)[0])


def test_ranking_is_by_aggregate_with_unscored_ones_last():
    one = scores(run(), HOST)[0]
    rows = [{**one, "submission_name": n, "aggregate": a} for n, a in (("c", None), ("b", 0.2), ("a", 0.9))]
    assert [r["submission_name"] for r in ranked(rows)] == ["a", "b", "c"]


def test_evaluations_of_two_runs_or_twice_the_same_case_are_no_score():
    with pytest.raises(ConfigurationError, match="several: run"):
        scores([*run(), *run(run="r2")], HOST)
    with pytest.raises(ConfigurationError, match="judged 2 times"):
        scores([*run(), run()[0]], HOST)
    with pytest.raises(ConfigurationError, match="no evaluations"):
        scores([], HOST)


def test_levels_without_a_case_that_counts_have_no_row():
    rows = [failed("task_defect"), clean(task="t2", subgraph_hash="1" * 32)]
    assert "t1" not in {r["name"] for r in scores(rows, HOST)}


def test_the_layers_of_a_score_are_those_of_every_case():
    rows = [clean(layers=["network", "process"]), clean(subgraph_hash="1" * 32, layers=["process"])]
    assert scores(rows, HOST)[0]["layers"] == ["process"]


def test_scoring_needs_no_torch():
    code = "import sys, evaluate.score.scores, evaluate.score.cases; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
