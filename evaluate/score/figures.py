"""All figures of one set of samples, each with a bootstrap interval.

Everything is a mean over units, so one estimator serves the value and its resamples. Units are tasks (whole and strata)
or cases (one task): cases of a task share a pattern and a kernel, so resampling single cases of many tasks would claim
more certainty than there is. `pool` says what each unit counts: `tasks`, the same each (geometric mean of the tasks'
scores); `subgraphs`, as many as it has cases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluate.score.configuration import ScoreConfiguration
from evaluate.score.forms import log_es, log_s
from evaluate.score.samples import Sample

POOLS = ("tasks", "subgraphs")
_Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure and the ends of its percentile bootstrap interval; no ends where there is one unit or no value."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """s, es, share: by level t (share: of correct cases). fast: by p. `aggregate` is AS."""

    samples: int
    tasks: int
    aggregate: Interval
    gmean: Interval
    correct: Interval
    fast: dict[float, Interval]
    s: dict[int, float]
    es: dict[int, Interval]
    share: dict[int, float]


@dataclass(frozen=True, slots=True)
class _Estimate:
    """The estimator's values for one row of multiplicities each: arrays of shape [B, ...]."""

    s: _Array
    es: _Array
    share: _Array
    correct: _Array
    gmean: _Array  # NaN where nothing is correct
    fast: _Array
    aggregate: _Array | None


def figures(
    samples: Sequence[Sample], configuration: ScoreConfiguration, pool: str = "subgraphs", by_task: bool = True
) -> Figures:
    """The figures of `samples`. by_task: resample whole tasks; else single cases (for the cases of one task).

    Raises ValueError for no samples: there is no score of nothing.
    """
    if pool not in POOLS:
        raise ValueError(f"pool is {pool!r}: give one of {', '.join(POOLS)}")
    if not samples:
        raise ValueError("there is no score of no samples")
    features = _features(samples, configuration)
    names = [s.task for s in samples] if by_task else list(range(len(samples)))
    _, of_unit = np.unique(np.array(names), return_inverse=True)
    units = int(of_unit.max()) + 1
    counts = np.bincount(of_unit, minlength=units).astype(float)
    sums = np.zeros((units, features.shape[1]))
    np.add.at(sums, of_unit, features)
    value = _estimate(np.ones((1, units)), sums, counts, configuration, pool)
    drawn = None
    if units > 1 and configuration.resamples:
        drawn = _estimate(_resamples(units, configuration), sums, counts, configuration, pool)
    low, high = (1 - configuration.confidence) / 2, (1 + configuration.confidence) / 2

    def interval(pick: str, column: int | None = None) -> Interval:
        def of(estimate: _Estimate) -> _Array | None:
            array: _Array | None = getattr(estimate, pick)
            return array if array is None or column is None else array[:, column]

        here = of(value)
        if here is None or not np.isfinite(here[0]):
            return Interval(None)
        if drawn is None:
            return Interval(float(here[0]))
        spread = of(drawn)
        assert spread is not None
        spread = spread[np.isfinite(spread)]
        if not len(spread):
            return Interval(float(here[0]))
        ends = np.quantile(spread, [low, high])
        return Interval(float(here[0]), float(ends[0]), float(ends[1]))

    curve = configuration.curve
    return Figures(
        samples=len(samples),
        tasks=len({s.task for s in samples}),
        aggregate=interval("aggregate"),
        gmean=interval("gmean"),
        correct=interval("correct"),
        fast={p: interval("fast", i) for i, p in enumerate(configuration.fast)},
        s={t: float(value.s[0, i]) for i, t in enumerate(curve)},
        es={t: interval("es", i) for i, t in enumerate(curve)},
        share={t: float(value.share[0, i]) for i, t in enumerate(curve)},
    )


def _features(samples: Sequence[Sample], configuration: ScoreConfiguration) -> _Array:
    """[N, 3 T + 2 + P]: log S_t, log ES_t and correctness at every level, then correct, log speedup, fast at each p."""
    curve, at = configuration.curve, configuration.correct_at
    rows = []
    for sample in samples:
        speedup = sample.speedup
        correct = sample.correct_t is not None and sample.correct_t <= at and speedup is not None
        rows.append(
            [
                *(log_s(sample, t, configuration) for t in curve),
                *(log_es(sample, t, configuration) for t in curve),
                *(float(sample.correct_t is not None and sample.correct_t <= t) for t in curve),
                float(correct),
                math.log(speedup) if correct and speedup is not None else 0.0,
                *(float(correct and speedup is not None and speedup > p) for p in configuration.fast),
            ]
        )
    return np.array(rows, dtype=float)


def _estimate(
    multiplicity: _Array, sums: _Array, counts: _Array, configuration: ScoreConfiguration, pool: str
) -> _Estimate:
    """multiplicity: [B, U], how often each unit was drawn."""
    levels = len(configuration.curve)
    if pool == "subgraphs":
        means = (multiplicity @ sums) / (multiplicity @ counts)[:, None]
        correct, logs = means[:, 3 * levels], means[:, 3 * levels + 1]
    else:
        each = sums / counts[:, None]
        means = (multiplicity @ each) / multiplicity.sum(axis=1, keepdims=True)
        # A task in which nothing is correct has no mean speedup, so it is left out of the mean of those means.
        share = each[:, 3 * levels]
        some = share > 0
        correct = multiplicity @ some.astype(float)
        logs = multiplicity @ np.divide(each[:, 3 * levels + 1], share, out=np.zeros_like(share), where=some)
    gmean = np.exp(np.divide(logs, correct, out=np.full_like(logs, np.nan), where=correct > 0))
    shares = configuration.shares
    log_es_t = means[:, levels : 2 * levels]
    return _Estimate(
        s=np.exp(means[:, :levels]),
        es=np.exp(log_es_t),
        share=means[:, 2 * levels : 3 * levels],
        correct=means[:, 3 * levels],
        gmean=gmean,
        fast=means[:, 3 * levels + 2 :],
        aggregate=None if shares is None else np.exp(log_es_t @ np.array([shares[t] for t in configuration.curve])),
    )


def _resamples(units: int, configuration: ScoreConfiguration) -> _Array:
    """[B, U]. RandomState, because its stream is the one that numpy promises never to change."""
    drawn = np.random.RandomState(configuration.seed).randint(0, units, size=(configuration.resamples, units))
    counted = np.zeros((configuration.resamples, units))
    np.add.at(counted, (np.arange(configuration.resamples)[:, None], drawn), 1.0)
    return counted
