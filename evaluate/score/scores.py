"""The rows of `scores` that follow from the evaluations of one run, and which of them may be compared.

In go the evaluations of one submission, run, bench, device and lowering, out come rows for the whole, each stratum and
each task, the whole and the strata pooled both ways.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from evaluate.score.configuration import ConfigurationError, ScoreConfiguration
from evaluate.score.figures import Figures, figures
from evaluate.score.samples import samples_of
from evaluate.verdict import Verdict

ORIGIN = ("submission", "submission_name", "run", "bench", "device", "lowering")
#: Scores that differ in one of these are not comparable. (The configuration's id covers clock, p, b, classes, weights.)
SAME = ("bench", "device", "configuration", "clock", "pool", "level", "name", "cases")

Row = Mapping[str, Any]


def configurations(device: str, configuration: ScoreConfiguration | None = None) -> list[ScoreConfiguration]:
    """The configurations that a run on `device` is scored by: one for each clock that it has."""
    from dataclasses import replace

    clocks = ("none",) if device == "cpu" else ("host", "device")
    return [replace(configuration or ScoreConfiguration(), clock=clock) for clock in clocks]


def scores(
    evaluations: Sequence[Row], configuration: ScoreConfiguration, at: datetime | None = None
) -> list[dict[str, Any]]:
    """Rows of `scores`. `at` is when they are computed: now, if left out.

    Raises ConfigurationError when the evaluations are of several runs, when a case occurs twice, or when a run without
    a claim about time is to be scored by a clock. Levels without a single case that counts have no row.
    """
    origin = _origin(evaluations)
    if origin["device"] == "cpu" and configuration.clock != "none":
        raise ConfigurationError("a CPU run has no times: score it with clock none, which counts correctness alone")
    shared = {
        **origin,
        "clock": configuration.clock,
        "configuration": configuration.id,
        "configuration_json": configuration.json(),
        "layers": sorted(set.intersection(*(set(row["layers"]) for row in evaluations))),
        "scored_at": at or datetime.now(UTC),
    }
    found = []
    for level, name, rows in _levels(evaluations):
        samples, left_out = samples_of(rows, configuration)
        for pool in ("subgraphs",) if level == "task" else ("tasks", "subgraphs"):
            if not samples:
                continue
            held = figures(samples, configuration, pool, by_task=level != "task")
            found.append(
                {
                    **shared,
                    "level": level,
                    "name": name,
                    "pool": pool,
                    "cases": _cases(rows),
                    "left_out": len(left_out),
                    "complete": not any(r["verdict"] == Verdict.HARNESS_ERROR for r in rows),
                    "verdicts": json.dumps(dict(sorted(Counter(str(r["verdict"]) for r in rows).items()))),
                    **_columns(held),
                }
            )
    return found


def comparable(first: Row, second: Row) -> None:
    """Raise ConfigurationError, naming what differs, unless two rows of `scores` may be compared."""
    for name in SAME:
        if first[name] != second[name]:
            raise ConfigurationError(
                f"these scores are not comparable: {name} is {_short(first[name])} in one and {_short(second[name])} "
                f"in the other ({_short(first['submission_name'])}, {_short(second['submission_name'])})"
            )


def ranked(rows: Iterable[Row]) -> list[Row]:
    """Rows of `scores` from the best AS to the worst. Raises ConfigurationError when two are not comparable."""
    listed = list(rows)
    for row in listed[1:]:
        comparable(listed[0], row)
    return sorted(
        listed, key=lambda r: (-(r["aggregate"] if r["aggregate"] is not None else -1.0), r["submission_name"])
    )


def _origin(evaluations: Sequence[Row]) -> dict[str, Any]:
    if not evaluations:
        raise ConfigurationError("there is no score of no evaluations")
    origins = {tuple(row[k] for k in ORIGIN) for row in evaluations}
    if len(origins) > 1:
        differing = [k for i, k in enumerate(ORIGIN) if len({o[i] for o in origins}) > 1]
        raise ConfigurationError(
            f"evaluations of one score must agree in {', '.join(ORIGIN)}; several: {', '.join(differing)}"
        )
    keys = Counter((row["task"], row["subgraph_hash"], row["case"]) for row in evaluations)
    key, times = keys.most_common(1)[0]
    if times > 1:
        raise ConfigurationError(f"case {'/'.join(map(str, key))} was judged {times} times in one run")
    return dict(zip(ORIGIN, next(iter(origins)), strict=True))


def _levels(evaluations: Sequence[Row]) -> list[tuple[str, str, list[Row]]]:
    """(level, name, its rows), in an order that depends on nothing but names."""
    ordered = sorted(evaluations, key=lambda r: (r["task"], r["subgraph_hash"], r["case"]))
    found: list[tuple[str, str, list[Row]]] = [("whole", "", ordered)]
    for level, column in (("stratum", "stratum"), ("task", "task")):
        groups: dict[str, list[Row]] = {}
        for row in ordered:
            groups.setdefault(row[column], []).append(row)
        found += [(level, name, groups[name]) for name in sorted(groups)]
    return found


def _cases(rows: Sequence[Row]) -> str:
    text = json.dumps(sorted([r["task"], r["subgraph_hash"], r["case"]] for r in rows))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _columns(held: Figures) -> dict[str, Any]:
    row: dict[str, Any] = {"samples": held.samples, "tasks": held.tasks}
    for name, interval in (("aggregate", held.aggregate), ("gmean", held.gmean), ("correct", held.correct)):
        row |= {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}
    row["fast"] = json.dumps({f"{p:g}": [i.value, i.low, i.high] for p, i in held.fast.items()})
    row["curve"] = json.dumps(
        [
            {"t": t, "S": held.s[t], "ES": i.value, "low": i.low, "high": i.high, "correct": held.share[t]}
            for t, i in held.es.items()
        ]
    )
    return row


def _short(value: Any) -> str:
    return repr(value)[:60]
