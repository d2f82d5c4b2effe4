"""What can become of one case of a submission, and which columns of `evaluations` each verdict needs and forbids.

In go rows of `warehouse.judged.EVALUATIONS`, out come the same rows or a VerdictError: nothing is stored whose verdict
and figures disagree. The judge alone gives verdicts; a worker's word is never one.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from warehouse.judged import EVALUATIONS


class Verdict(enum.StrEnum):
    """`clean` and `wrong` are scored by their correctness level and speedup; `task_defect` and `harness_error` are
    nobody's failure and are left out of scores; everything else is a failure."""

    CLEAN = "clean"  # correct, measured, nothing suspicious
    SUSPECT = "suspect"  # implausible: the score is withheld until somebody has looked
    HACK = "hack"  # a named exploit
    WRONG = "wrong"  # it ran, and its outputs are not right
    NO_MATCH = "no_match"  # nothing was rewritten, or too little to count
    COMPILE_ERROR = "compile_error"  # the submission or the rewritten graph does not load, lower or compile
    RUNTIME_ERROR = "runtime_error"  # it compiled and does not run
    TIMEOUT = "timeout"  # a deadline passed
    TASK_DEFECT = "task_defect"  # the task cannot be judged: eager fails, or zeros would pass
    HARNESS_ERROR = "harness_error"  # our own fault, or the device's


class ErrorClass(enum.StrEnum):
    """The classes of failure that ES_t may forgive at its levels t >= 1. Without a class: never forgiven."""

    ACCURACY = "accuracy"
    NAN = "nan"
    TYPE = "type"
    SHAPE = "shape"
    RUNTIME = "runtime"
    COMPILE = "compile"


class VerdictError(ValueError):
    """A row whose columns do not fit its verdict. The text is one line that names the row, the column and the rule."""


#: Left out of scores: not the submission's doing.
LEFT_OUT = frozenset({Verdict.TASK_DEFECT, Verdict.HARNESS_ERROR})

CLOCK_COLUMNS = tuple(
    f"{who}_{clock}_{what}"
    for who in ("eager", "baseline", "pass")
    for clock in ("host", "device")
    for what in ("us", "spread")
)
SPEEDUPS = ("speedup_host", "speedup_device", "baseline_speedup_host", "baseline_speedup_device")
#: Columns of an evaluation that claim something about time. A CPU run in the interpreter claims nothing.
TIMING = (*CLOCK_COLUMNS, *SPEEDUPS, "host_samples", "device_samples", "time_covered", "floor_us")
#: Every row says what it is about and where it was made.
ALWAYS = (
    *("submission", "submission_name", "run", "bench", "device", "lowering", "task", "stratum", "subgraph_hash"),
    *("case", "verdict", "layers", "torch", "python", "seed"),
)
LOWERINGS = ("direct", "dynamo", "inductor")
LEVELS = range(-10, 6)


@dataclass(frozen=True, slots=True)
class Rule:
    """The columns that a verdict needs, those it forbids, and the error classes it may have (None: no class)."""

    needs: tuple[str, ...] = ("stage", "detail")
    forbids: tuple[str, ...] = ("exploit",)
    classes: frozenset[ErrorClass | None] = frozenset({None})


_PASS_TIMES = ("pass_host_us", "pass_device_us", "speedup_host", "speedup_device")
_NOT_RUN = (*_PASS_TIMES, "correct_t", "max_abs", "max_rel")
_C = ErrorClass
RULES: dict[Verdict, Rule] = {
    Verdict.CLEAN: Rule(("correct_t",), ("exploit", "stage", "detail", "miss")),
    Verdict.SUSPECT: Rule(forbids=()),
    Verdict.HACK: Rule(("exploit", "stage", "detail"), ()),
    Verdict.WRONG: Rule(classes=frozenset({_C.ACCURACY, _C.NAN, _C.TYPE, _C.SHAPE})),
    Verdict.NO_MATCH: Rule(forbids=("exploit", *_NOT_RUN)),
    Verdict.COMPILE_ERROR: Rule(forbids=("exploit", *_NOT_RUN), classes=frozenset({_C.COMPILE})),
    Verdict.RUNTIME_ERROR: Rule(forbids=("exploit", *_PASS_TIMES), classes=frozenset({_C.RUNTIME})),
    Verdict.TIMEOUT: Rule(forbids=("exploit", *_PASS_TIMES), classes=frozenset({_C.RUNTIME, _C.COMPILE})),
    Verdict.TASK_DEFECT: Rule(forbids=("exploit", *_NOT_RUN)),
    Verdict.HARNESS_ERROR: Rule(forbids=("exploit", *_PASS_TIMES)),
}
_COLUMNS = tuple(name for name, _, _ in EVALUATIONS.columns)


def blank(**known: Any) -> dict[str, Any]:
    """A row with every column: those of `known`, and null. KeyError for a name that is no column."""
    unknown = sorted(set(known) - set(_COLUMNS))
    if unknown:
        raise KeyError(f"evaluations has no column {unknown[0]}")
    return {**dict.fromkeys(_COLUMNS), **known}


def checked(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with every column, missing ones null. Raises VerdictError when its columns do not fit its verdict."""
    where = "/".join(str(row.get(k)) for k in ("submission_name", "task", "subgraph_hash", "case"))

    def refuse(problem: str) -> VerdictError:
        return VerdictError(f"evaluation {where}: {problem}"[:500])

    unknown = sorted(set(row) - set(_COLUMNS))
    if unknown:
        raise refuse(f"there is no column {unknown[0]}")
    full = {**dict.fromkeys(_COLUMNS), **row}
    for name in ALWAYS:
        if full[name] is None:
            raise refuse(f"{name} is missing")
    try:
        verdict = Verdict(full["verdict"])
        klass = None if full["error_class"] is None else ErrorClass(full["error_class"])
    except ValueError as error:
        raise refuse(str(error)) from None
    rule = RULES[verdict]
    if missing := next((n for n in rule.needs if full[n] in (None, "")), None):
        raise refuse(f"{verdict} needs {missing}")
    if extra := next((n for n in rule.forbids if full[n] is not None), None):
        raise refuse(f"{verdict} forbids {extra}")
    if klass not in rule.classes:
        allowed = ", ".join(sorted(str(c) for c in rule.classes if c)) or "none"
        raise refuse(f"{verdict} has error class {klass}; allowed: {allowed}")
    if full["lowering"] not in LOWERINGS:
        raise refuse(f"lowering is {full['lowering']!r}; known: {', '.join(LOWERINGS)}")
    if full["correct_t"] is not None and full["correct_t"] not in LEVELS:
        raise refuse(f"correct_t is {full['correct_t']!r}, not a level from -10 to 5")
    problem = _timing(full, verdict)
    if problem:
        raise refuse(problem)
    return full


def _timing(row: Mapping[str, Any], verdict: Verdict) -> str | None:
    """What is wrong with the clock columns, or None."""
    if row["device"] == "cpu":
        claimed = next((n for n in TIMING if row[n] is not None), None)
        return f"a CPU run makes no claim about time, and has {claimed}" if claimed else None
    for name in TIMING:
        value = row[name]
        if value is None:
            continue
        if not math.isfinite(value) or value < 0 or (value == 0 and (name.endswith("_us") or name in SPEEDUPS)):
            return f"{name} is {value!r}"
    for clock in ("host", "device"):
        for faster, name in (("pass", f"speedup_{clock}"), ("baseline", f"baseline_speedup_{clock}")):
            slow, fast, ratio = row[f"eager_{clock}_us"], row[f"{faster}_{clock}_us"], row[name]
            whole = slow is not None and fast is not None
            if whole != (ratio is not None):
                return f"{name} needs eager_{clock}_us and {faster}_{clock}_us, and they need it"
            if whole and not math.isclose(ratio, slow / fast, rel_tol=1e-6):
                return f"{name} is {ratio!r}, its times give {slow / fast!r}"
    if verdict is Verdict.CLEAN:
        if row["speedup_host"] is None:
            return "clean on a GPU needs speedup_host"
        if (row["speedup_device"] is None) == (row["no_device_time"] is None):
            return "clean on a GPU needs either speedup_device or no_device_time"
    return None
