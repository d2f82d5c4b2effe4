"""Cases with known scores, as a file: samples in, S_t, ES_t and AS out.

The file holds {"cases": [{"name", "p", "b", "interpretation", "samples": [{"status", "speedup", "correct_from_t"}]}]}
and perhaps "weights" by level: the form of the reference cases that the implementation is held to.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evaluate.score.configuration import ConfigurationError, ScoreConfiguration
from evaluate.score.figures import figures
from evaluate.score.forms import closed_es, closed_s
from evaluate.score.samples import Sample
from evaluate.verdict import ErrorClass

#: Status of a sample that is not correct -> its class; None: never forgiven.
STATUSES: dict[str, ErrorClass | None] = {
    "accuracy_mismatch": ErrorClass.ACCURACY,
    "nan_mismatch": ErrorClass.NAN,
    "type_mismatch": ErrorClass.TYPE,
    "shape_mismatch": ErrorClass.SHAPE,
    "runtime_fail": ErrorClass.RUNTIME,
    "compile_fail": ErrorClass.COMPILE,
    "eager_fail": None,
}


class CaseError(ValueError):
    """A file of cases that cannot be read. One line: what is wrong, and in which case."""


def scored(text: str) -> list[dict[str, Any]]:
    """For each case its name, configuration, S_t and ES_t by both forms and AS (null without a weight for a level).

    Raises CaseError.
    """
    try:
        held = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CaseError(f"not JSON: {error}") from None
    cases = held.get("cases") if isinstance(held, dict) else held
    if not isinstance(cases, list) or not cases:
        raise CaseError('there are no cases: the file must hold {"cases": [...]} with at least one')
    weights = held.get("weights") if isinstance(held, dict) else None
    return [_case(i, case, weights) for i, case in enumerate(cases)]


def _case(index: int, case: Any, weights: Any) -> dict[str, Any]:
    name = case.get("name") if isinstance(case, dict) else None
    where = f"case {index} ({str(name)[:60]})" if name else f"case {index}"
    if not isinstance(case, dict):
        raise CaseError(f"{where}: not an object")
    given: dict[str, Any] = {
        "p": _number(case.get("p", 0.0), f"{where}: p"),
        "b": _number(case.get("b", 0.1), f"{where}: b"),
    }
    try:
        if weights is not None:
            given["weights"] = tuple((int(t), _number(w, "a weight")) for t, w in weights.items())
        configuration = ScoreConfiguration.of(str(case.get("interpretation", "default")), resamples=0, **given)
    except (ConfigurationError, ValueError, AttributeError) as error:
        raise CaseError(f"{where}: {error}") from None
    listed = case.get("samples")
    if not isinstance(listed, list) or not listed:
        raise CaseError(f"{where}: there are no samples")
    samples = [_sample(s, f"{where}, sample {i}") for i, s in enumerate(listed)]
    found = figures(samples, configuration)
    curve = configuration.curve
    return {
        "name": name,
        "configuration": configuration.id,
        "p": configuration.p,
        "b": configuration.b,
        "interpretation": case.get("interpretation", "default"),
        "samples": len(samples),
        "S_t": {str(t): found.s[t] for t in curve},
        "ES_t": {str(t): found.es[t].value for t in curve},
        "S_t_closed": {str(t): closed_s(samples, t, configuration) for t in curve},
        "ES_t_closed": {str(t): closed_es(samples, t, configuration) for t in curve},
        "AS": found.aggregate.value,
    }


def _sample(held: Any, where: str) -> Sample:
    if not isinstance(held, Mapping):
        raise CaseError(f"{where}: not an object")
    status = held.get("status")
    try:
        if status == "correct":
            level = held.get("correct_from_t")
            if not isinstance(level, int) or isinstance(level, bool):
                raise CaseError(f"{where}: correct_from_t is {level!r}, not a whole number")
            return Sample(level, _number(held.get("speedup"), f"{where}: speedup"))
        if status not in STATUSES:
            raise CaseError(f"{where}: status {status!r}; known: correct, {', '.join(STATUSES)}")
        return Sample(None, error=STATUSES[status])
    except TypeError:
        raise CaseError(f"{where}: status is not a text") from None
    except CaseError:
        raise
    except ValueError as error:
        raise CaseError(f"{where}: {error}") from None


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise CaseError(f"{what} is {str(value)[:40]!r}, not a number")
    return float(value)
