"""One submission, one task, end to end: the honest is clean, the rest has one clear verdict each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from evaluate.judge.workers import Life, Workers, _below
from tests.evaluate.judge.making import judge, passes, record, task
from tests.evaluate.passes.making import HONEST

STORED = "tl.maximum((x + y).to(x.dtype), 0)"
CORRECT = HONEST.replace(STORED, "tl.maximum(x + y, 0, propagate_nan=tl.PropagateNan.ALL)").replace(
    "mask=mask)\n    y", "mask=mask).to(tl.float32)\n    y"
)


def add_relu(dtype: torch.dtype = torch.float32):
    return record(lambda x, y: torch.relu(x + y), torch.randn(8, 40, dtype=dtype), torch.randn(8, 40, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_an_honest_pass_is_clean_and_makes_no_claim_about_time_on_a_cpu(workers: Workers, dtype: torch.dtype):
    (row,) = judge(workers).task(passes(CORRECT), task(add_relu(dtype)))
    assert row["verdict"] == "clean", row
    assert row["correct_t"] <= -4 and row["sites"] == 1 and row["checked_calls"] >= 9
    assert row["compared"] == ["recipe", "small", "large", "integers", "rows", "carriers"]
    assert row["pass_host_us"] is None and row["device"] == "cpu"


def test_all_subgraphs_of_a_task_share_one_worker(workers: Workers):
    rows = judge(workers).task(passes(CORRECT), task(add_relu(), add_relu(torch.float16)))
    assert [r["verdict"] for r in rows] == ["clean", "clean"]


@pytest.mark.parametrize(
    ("text", "verdict", "stage"),
    [
        (CORRECT.replace("tl.maximum(x + y, 0, ", "tl.maximum(x + y, 0.25, "), "wrong", "check"),
        (CORRECT.replace("torch.relu(x + y)", "torch.relu(x - y)"), "no_match", "match"),
        (CORRECT.replace("import torch\n", "import torch\n)\n", 1), "compile_error", "screen"),
        (CORRECT.replace("torch.relu(x + y)", "torch.relu(x + z)"), "compile_error", "load"),
        (CORRECT.replace("def replacement_func", "def replacement"), "compile_error", "screen"),
        (CORRECT.replace("    out = torch", "    assert False\n    out = torch"), "runtime_error", "check"),
        (CORRECT.replace("    return out\n", "    return {1: out}\n"), "wrong", "check"),
        (CORRECT.replace("    return out\n", "    return out[None]\n"), "wrong", "check"),
        (CORRECT.replace("    out = torch", "    while True: pass\n    out = torch"), "timeout", "check"),
        (CORRECT.replace("    out = torch", "    torch.zeros(2**36)\n    out = torch"), "runtime_error", "check"),
        (CORRECT.replace("    out = torch", "    print('x' * 2**22)\n    out = torch"), "runtime_error", "check"),
    ],
)
def test_what_is_not_right_has_one_verdict_and_a_line_that_says_why(
    workers: Workers, text: str, verdict: str, stage: str
):
    (row,) = judge(workers, call_s=3.0).task(passes(text), task(add_relu()))
    assert (row["verdict"], row["stage"]) == (verdict, stage), row
    assert row["detail"]


@pytest.mark.parametrize("name", ["eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_baselines_are_judged_like_submissions(workers: Workers, name: str):
    (row,) = judge(workers).task(name, task(add_relu()))
    assert row["verdict"] == "clean", row


@pytest.mark.parametrize("lowering", ["dynamo", pytest.param("inductor", marks=pytest.mark.slow)])
def test_a_rewritten_graph_runs_through_other_lowerings(workers: Workers, lowering: str):
    judging = judge(workers)
    judging.run = replace(judging.run, lowering=lowering)
    (row,) = judging.task(passes(CORRECT), task(add_relu()))
    assert (row["verdict"], row["lowering"]) == ("clean", lowering), row


@pytest.mark.parametrize(
    "forged",
    [
        {"sites": 3, "coverage": [1, 1, 1]},
        {"sites": [3], "coverage": [1, 1, 1]},
        {"sites": [{}], "coverage": ["x", {}, []]},
        {"outputs": "x"},
        {"outputs": [{"dtype": "float32", "shape": [2**40], "stride": [1], "at": 0}]},
        {"outputs": [{"dtype": "float32", "shape": [-1], "stride": [1], "at": 0}]},
        {"aliases": 5},
        {"types": {"a": 1}},
        {"events": [[1, 2]]},
        {"launches": None, "computed": 5, "idle": "no"},
    ],
)
def test_an_answer_that_makes_no_sense_is_never_clean_and_never_the_end_of_a_run(
    workers: Workers, forged: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    ask = Life.ask
    monkeypatch.setattr(Life, "ask", lambda life, *args, **more: {**ask(life, *args, **more), **forged})
    found = judge(workers).task(passes(CORRECT), task(add_relu(), add_relu()))
    assert len(found) == 2 and {r["verdict"] for r in found} <= {"hack", "suspect", "wrong", "clean"}
    harmless = "types" in forged or "launches" in forged
    assert harmless or "clean" not in {r["verdict"] for r in found}


def test_a_worker_and_all_that_it_started_are_gone_afterwards(workers: Workers):
    judge(workers).task(passes(CORRECT), task(add_relu()))
    assert _below(workers._process.pid) == []


def test_every_result_names_the_containment_that_was_active(workers: Workers):
    (row,) = judge(workers).task(passes(CORRECT), task(add_relu()))
    with workers.life() as life:
        assert {f"contained: {name}" for name in life.layers} <= set(row["layers"])
        assert "limits" in life.layers
