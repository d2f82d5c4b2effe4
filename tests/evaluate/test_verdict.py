"""A verdict and its figures agree, or the row is refused."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from evaluate.verdict import RULES, TIMING, Verdict, VerdictError, blank, checked
from tests.evaluate.rows import CPU, clean, failed
from warehouse.judged import EVALUATIONS


@pytest.mark.parametrize("device", ["NVIDIA H200", CPU])
@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_row_of_every_verdict_is_accepted_and_fits_the_table(verdict: Verdict, device: str):
    row = clean(device) if verdict is Verdict.CLEAN else failed(verdict, device)
    whole = checked(row)
    assert pa.Table.from_pylist([whole], schema=EVALUATIONS.schema).to_pylist()[0]["verdict"] == verdict


@pytest.mark.parametrize("verdict", list(Verdict))
def test_what_a_verdict_needs_cannot_be_missing_and_what_it_forbids_cannot_be_there(verdict: Verdict):
    row = clean() if verdict is Verdict.CLEAN else failed(verdict)
    rule = RULES[verdict]
    for name in rule.needs:
        with pytest.raises(VerdictError, match=f"{verdict} needs {name}"):
            checked({**row, name: None})
    for name in rule.forbids:
        value: Any = (
            1 if name in ("correct_t",) else "a name" if name in ("exploit", "stage", "detail", "miss") else 1.0
        )
        with pytest.raises(VerdictError, match=name):
            checked({**row, name: value})


@pytest.mark.parametrize(
    "row, said",
    [
        ({**clean(), "verdict": "splendid"}, "splendid"),
        ({**clean(), "verdict": None}, "verdict is missing"),
        ({**clean(), "layers": None}, "layers is missing"),
        ({**clean(), "error_class": "accuracy"}, "allowed: none"),
        (failed("wrong", error_class=None), "allowed: accuracy, nan, shape, type"),
        (failed("compile_error", error_class="runtime"), "allowed: compile"),
        ({**clean(), "correct_t": 6}, "not a level"),
        ({**clean(), "lowering": "sideways"}, "lowering"),
        ({**clean(), "speedup_host": 3.0}, "its times give 2.0"),
        ({**clean(), "speedup_host": math.nan}, "speedup_host is nan"),
        ({**clean(), "pass_host_us": 0.0}, "pass_host_us is 0.0"),
        ({**clean(), "pass_host_us": -1.0}, "pass_host_us is -1.0"),
        ({**clean(), "pass_device_us": math.inf}, "pass_device_us is inf"),
        ({**clean(), "speedup_device": None}, "speedup_device needs"),
        (clean(over_device=None, no_device_time=None), "either speedup_device or no_device_time"),
        ({**clean(), "no_device_time": "why"}, "either speedup_device or no_device_time"),
        (clean(CPU, speedup_host=2.0), "no claim about time"),
        ({**clean(), "shape": 1}, "there is no column shape"),
    ],
)
def test_rows_that_contradict_themselves_are_refused(row: dict[str, Any], said: str):
    with pytest.raises(VerdictError, match=said):
        checked(row)


def test_a_cpu_run_claims_nothing_about_time():
    for name in TIMING:
        with pytest.raises(VerdictError):
            checked(clean(CPU, **{name: 1.0}))


def test_a_misspelt_column_is_an_error_at_once():
    with pytest.raises(KeyError, match="verdicts"):
        blank(verdicts="clean")
