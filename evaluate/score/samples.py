"""One judged case as the score sees it: from which level it is correct and how fast, or how it failed.

In go rows of `evaluations`, out come Samples; what is nobody's failure is left out and counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evaluate.score.configuration import ScoreConfiguration
from evaluate.verdict import LEFT_OUT, LEVELS, ErrorClass, Verdict


@dataclass(frozen=True, slots=True)
class Sample:
    """correct_t  strictest level at which it is correct; None when it ran at none, or did not run
    speedup      above 0 and finite; None exactly when correct_t is
    error        class of the failure when correct_t is None; None then means a failure that is never forgiven
    task         the task it belongs to
    """

    correct_t: int | None
    speedup: float | None = None
    error: ErrorClass | None = None
    task: str = ""

    def __post_init__(self) -> None:
        if (self.correct_t is None) != (self.speedup is None):
            raise ValueError("a sample has a correctness level and a speedup, or neither")
        if self.correct_t is not None and (self.correct_t not in LEVELS or self.error is not None):
            raise ValueError(f"a correct sample has a level from -10 to 5 and no error class: {self}")
        if self.speedup is not None and not (math.isfinite(self.speedup) and self.speedup > 0):
            raise ValueError(f"a speedup is finite and above 0, not {self.speedup}")


def sample_of(row: Mapping[str, Any], configuration: ScoreConfiguration) -> Sample | None:
    """The sample of one evaluation; None when it is left out (task_defect, harness_error).

    A case that ran counts from its own correctness level on, whether the judge called it clean or wrong. By the
    device's clock a case without a device time is a failure when eager has one: not being measurable is no way around
    a measurement. Where eager has none either, the case says nothing by that clock and is left out.
    """
    verdict = Verdict(row["verdict"])
    if verdict in LEFT_OUT:
        return None
    task = row["task"]
    if verdict not in (Verdict.CLEAN, Verdict.WRONG):
        return Sample(None, error=ErrorClass(row["error_class"]) if row["error_class"] else None, task=task)
    speedup = _speedup(row, configuration)
    if row["correct_t"] is not None and speedup is not None:
        return Sample(row["correct_t"], speedup, task=task)
    if row["error_class"]:
        return Sample(None, error=ErrorClass(row["error_class"]), task=task)
    return None if row["eager_device_us"] is None and configuration.clock == "device" else Sample(None, task=task)


def samples_of(
    rows: Iterable[Mapping[str, Any]], configuration: ScoreConfiguration
) -> tuple[list[Sample], list[Mapping[str, Any]]]:
    """(the samples that count, the rows that were left out)."""
    samples, left_out = [], []
    for row in rows:
        sample = sample_of(row, configuration)
        if sample is None:
            left_out.append(row)
        else:
            samples.append(sample)
    return samples, left_out


def _speedup(row: Mapping[str, Any], configuration: ScoreConfiguration) -> float | None:
    clock = configuration.clock
    if clock == "none":
        return 1.0
    over_eager = row[f"speedup_{clock}"]
    if configuration.against == "eager" or over_eager is None:
        return over_eager
    baseline = row[f"baseline_speedup_{clock}"]
    return None if baseline is None else over_eager / baseline
