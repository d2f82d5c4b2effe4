"""The timing protocol, by the host's clock of a CPU: its columns, and what a forged clock comes to. Nothing of it is
ever stored for a CPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict

import pytest

from evaluate.integrity.layers import Layers
from evaluate.judge import timed
from evaluate.judge.calls import Calls, Decided
from evaluate.judge.case import Case
from evaluate.judge.timed import Timer
from evaluate.judge.workers import Workers
from evaluate.measure.device import open_device
from evaluate.measure.floor import Copies
from evaluate.tasks import Member
from evaluate.verdict import Verdict
from tests.evaluate.judge.making import passes
from tests.evaluate.judge.test_judge import CORRECT, add_relu

FORGED = CORRECT.replace(
    "import torch\n", "import torch\nimport evaluate.worker.clocks\n\nevaluate.worker.clocks._clock = {clock}\n", 1
)


@contextlib.contextmanager
def prepared(workers: Workers, text: str, copies: Copies | None = None) -> Iterator[tuple[Timer, Calls, Member]]:
    """A pass that has run once, and a timer with eager for both baselines."""
    member = Member("0" * 32, add_relu())
    given = passes(text)
    with workers.life() as life, workers.life() as eager, workers.life() as other:
        case = Case(member.record, "cpu")
        message = {"task": "t", "rules": ["rule"], "sources": given.sources, "limits": asdict(given.limits)}
        assert "failed" not in life.ask("load", 30.0, **message)
        assert life.ask("graph", 30.0, record=case.as_json(), lowering="direct")["sites"]
        for baseline in (eager, other):
            baseline.ask("load", 30.0, baseline="eager")
        calls = Calls(life, case, Layers(audit=False, state=False), 30.0, baseline=False)
        calls.checked("check", "recipe")
        yield Timer(open_device("cpu"), copies, {"eager": eager, "inductor": other}, lambda name: other), calls, member


def test_both_baselines_and_the_pass_are_timed_in_turns(workers: Workers):
    with prepared(workers, CORRECT) as (timer, calls, member):
        found = timer.columns(calls, member)
    assert found["host_samples"] == timed.TRIALS and found["dropped_samples"] == 0
    assert found["speedup_host"] == pytest.approx(found["eager_host_us"] / found["pass_host_us"])
    assert found["baseline_speedup_host"] > 0 and found["no_device_time"]


def test_a_baseline_that_ended_costs_its_own_column_alone(workers: Workers):
    with prepared(workers, CORRECT) as (timer, calls, member):
        timer.baselines["inductor"].kill()
        found = timer.columns(calls, member)
    assert found["speedup_host"] > 0 and "baseline_speedup_host" not in found and found["baseline"] is None


def test_a_time_below_what_the_device_can_move_is_suspect(workers: Workers):
    slow = Copies(((1024, 1e9), (2**30, 2e9)))
    with prepared(workers, CORRECT, slow) as (timer, calls, member), pytest.raises(Decided) as found:
        timer.columns(calls, member)
    assert (found.value.verdict, found.value.exploit) == (Verdict.SUSPECT, "below_floor")


@pytest.mark.parametrize(
    "clock",
    [
        "lambda: 0.0",  # no time passes
        pytest.param("iter(range(10**9)).__next__", marks=pytest.mark.slow),  # a second a look, in whole numbers
        "(lambda t=__import__('time').monotonic: t() / 50)",  # fifty times too fast
    ],
)
def test_a_forged_clock_is_found_out(workers: Workers, clock: str):
    with prepared(workers, FORGED.replace("{clock}", clock)) as (timer, calls, member), pytest.raises(Decided) as found:
        timer.columns(calls, member)
    assert found.value.exploit == "forged_time"
