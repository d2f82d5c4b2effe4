"""S_t and ES_t of a set of samples, by the direct and by the closed form.

    rho(s)  = s for s >= 1, else s^(p+1)
    S_t     = geometric mean of rho(s_i) when i is correct at t, else b
    ES_t    = S_t for t <= 0. For t >= 1 correctness is frozen at t = 1; what is not correct there counts 1 when its
              class is forgiven at t, else b. Correct only at a level above 1 is a failure of accuracy.

With lambda the correct share, alpha the geometric mean of correct speedups, eta the share of slow ones among the
correct, beta their geometric mean and pi_c the share of class c among the failures:

    S_t  = alpha^lambda beta^(lambda eta p) b^(1 - lambda)
    ES_t = alpha^lambda beta^(lambda eta p) gamma_t^(1 - lambda),   gamma_t = b^(sum_c pi_c [t < theta_c])

Source: GraphNet's report and PassNet (arXiv 2605.29357); the two forms agree, which the tests hold them to. All work is
done on logarithms, so no product of many cases under- or overflows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from evaluate.score.configuration import ScoreConfiguration
from evaluate.score.samples import Sample
from evaluate.verdict import ErrorClass

#: ES_t judges correctness at this level for every level above it.
FROZEN = 1


def log_s(sample: Sample, t: int, configuration: ScoreConfiguration) -> float:
    """Natural logarithm of what a sample counts in S_t."""
    if sample.correct_t is not None and sample.correct_t <= t:
        return _log_rho(sample, configuration)
    return math.log(configuration.b)


def log_es(sample: Sample, t: int, configuration: ScoreConfiguration) -> float:
    """Natural logarithm of what a sample counts in ES_t."""
    if t < FROZEN:
        return log_s(sample, t, configuration)
    error = frozen_error(sample)
    if error is None and sample.correct_t is not None and sample.correct_t <= FROZEN:
        return _log_rho(sample, configuration)
    forgiven = error is not None and t >= configuration.forgiven_from[error]
    return 0.0 if forgiven else math.log(configuration.b)


def frozen_error(sample: Sample) -> ErrorClass | None:
    """The class of a sample's failure at level 1; None when it is correct there or its failure has no class."""
    if sample.correct_t is not None:
        return ErrorClass.ACCURACY if sample.correct_t > FROZEN else None
    return sample.error


def direct_s(samples: Sequence[Sample], t: int, configuration: ScoreConfiguration) -> float:
    return _mean([log_s(s, t, configuration) for s in samples])


def direct_es(samples: Sequence[Sample], t: int, configuration: ScoreConfiguration) -> float:
    return _mean([log_es(s, t, configuration) for s in samples])


def closed_s(samples: Sequence[Sample], t: int, configuration: ScoreConfiguration) -> float:
    log_fast, share = _correct_part(samples, t, configuration)
    return math.exp(log_fast + (1 - share) * math.log(configuration.b))


def closed_es(samples: Sequence[Sample], t: int, configuration: ScoreConfiguration) -> float:
    if t < FROZEN:
        return closed_s(samples, t, configuration)
    log_fast, share = _correct_part(samples, FROZEN, configuration)
    failures = [s for s in samples if s.correct_t is None or s.correct_t > FROZEN]
    held: dict[ErrorClass | None, int] = {}
    for sample in failures:
        error = frozen_error(sample)
        held[error] = held.get(error, 0) + 1
    strict = sum(count / len(failures) for c, count in held.items() if c is None or t < configuration.forgiven_from[c])
    return math.exp(log_fast + (1 - share) * strict * math.log(configuration.b))


def _correct_part(samples: Sequence[Sample], t: int, configuration: ScoreConfiguration) -> tuple[float, float]:
    """(log of alpha^lambda beta^(lambda eta p), lambda)."""
    correct = [s.speedup for s in samples if s.correct_t is not None and s.correct_t <= t and s.speedup is not None]
    slow = [s for s in correct if s < 1]
    share = len(correct) / len(samples)
    eta = len(slow) / len(correct) if correct else 0.0
    log_alpha = math.fsum(map(math.log, correct)) / len(correct) if correct else 0.0
    log_beta = math.fsum(map(math.log, slow)) / len(slow) if slow else 0.0
    return share * log_alpha + share * eta * configuration.p * log_beta, share


def _log_rho(sample: Sample, configuration: ScoreConfiguration) -> float:
    assert sample.speedup is not None
    log = math.log(sample.speedup)
    return log if log >= 0 else log * (configuration.p + 1)


def _mean(logs: Sequence[float]) -> float:
    if not logs:
        raise ValueError("there is no score of no samples")
    return math.exp(math.fsum(logs) / len(logs))
