"""What a score depends on besides the measurements: one frozen value, stored with every score.

Two scores are comparable only when the ids of their configurations are equal; the id is a hash of the canonical JSON.
Defaults are those of the published runs of PassNet (arXiv 2605.29357): b = 0.1, p = 0, levels -10 to 4, accuracy
forgiven from level 1 and everything else from level 3, speedups over eager by the host's clock.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from typing import Any

from evaluate.verdict import LEVELS, ErrorClass

CLOCKS = ("host", "device", "none")
AGAINST = ("eager", "baseline")

#: Weight of each level in AS, raw; they are normalised to a sum of 1.
PUBLISHED_WEIGHTS: dict[int, float] = {
    **dict.fromkeys(range(-10, -5), 0.001),
    **dict.fromkeys(range(-5, -2), 1.0),
    **{t: 0.8 ** (t + 3) for t in range(-2, 4)},
    4: 0.001,
}
#: The level from which a failure of a class counts as 1 instead of b.
FORGIVEN = {
    "default": {c: 1 if c is ErrorClass.ACCURACY else 3 for c in ErrorClass},
    "mismatch_extended": {
        ErrorClass.ACCURACY: 1,
        ErrorClass.NAN: 2,
        ErrorClass.TYPE: 2,
        ErrorClass.SHAPE: 2,
        ErrorClass.RUNTIME: 3,
        ErrorClass.COMPILE: 4,
    },
}
#: The strictest and the loosest level of each interpretation.
SPANS = {"default": (-10, 4), "mismatch_extended": (-10, 5)}


class ConfigurationError(ValueError):
    """A score configuration that makes no sense, or scores that may not be compared. One line."""


@dataclass(frozen=True, slots=True)
class ScoreConfiguration:
    """p           power of the slowdown penalty: a speedup s below 1 counts as s^(p+1)
    b              what a failure counts as, in (0, 1]
    classes        (error class, level from which it is forgiven), in the order of ErrorClass
    weights        (level t, raw weight) of AS; where a level of the curve has none, there is no AS
    levels         strictest and loosest level of the curve
    clock          host, device, or none: every correct case then has speedup 1 (runs without a claim about time)
    against        what speedups are over: eager (the published protocol) or baseline (Inductor)
    correct_at     the level at which "correct" is meant in G-mean, correctness and fast_p
    fast           the p of fast_p: share of cases both correct and faster than p
    resamples      bootstrap resamples; confidence: of the percentile interval; seed: of the resampling
    """

    p: float = 0.0
    b: float = 0.1
    classes: tuple[tuple[str, int], ...] = tuple((str(c), t) for c, t in FORGIVEN["default"].items())
    weights: tuple[tuple[int, float], ...] = tuple(PUBLISHED_WEIGHTS.items())
    levels: tuple[int, int] = SPANS["default"]
    clock: str = "host"
    against: str = "eager"
    correct_at: int = -5
    fast: tuple[float, ...] = (0.0, 1.0, 1.2, 1.5, 2.0)
    resamples: int = 1000
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        first, last = self.levels
        for fine, problem in (
            (math.isfinite(self.p) and self.p >= 0, f"p is {self.p}: give a number of at least 0"),
            (math.isfinite(self.b) and 0 < self.b <= 1, f"b is {self.b}: give a number above 0 and at most 1"),
            (self.clock in CLOCKS, f"clock is {self.clock!r}: give one of {', '.join(CLOCKS)}"),
            (self.against in AGAINST, f"against is {self.against!r}: give one of {', '.join(AGAINST)}"),
            (first in LEVELS and last in LEVELS and first <= 1 <= last, f"levels {self.levels} must span 1 in -10..5"),
            (self.correct_at in LEVELS, f"correct_at is {self.correct_at}, not a level from -10 to 5"),
            (0 < self.confidence < 1, f"confidence is {self.confidence}: give a number between 0 and 1"),
            (0 <= self.resamples <= 1_000_000, f"resamples is {self.resamples}: give 0 to 1,000,000"),
            (0 <= self.seed < 2**32, f"seed is {self.seed}: give 0 to 2^32 - 1"),
            ({c for c, _ in self.classes} == set(ErrorClass), "classes must name every error class once"),
            (len(self.classes) == len(ErrorClass), "classes must name every error class once"),
            (all(1 <= t <= 6 for _, t in self.classes), "a class is forgiven from a level between 1 and 6 (never)"),
            (all(math.isfinite(w) and w >= 0 for _, w in self.weights), "weights must be finite and not negative"),
            (sum(w for _, w in self.weights) > 0, "some weight must be above 0"),
            (len({t for t, _ in self.weights}) == len(self.weights), "a level has two weights"),
            (all(math.isfinite(f) and f >= 0 for f in self.fast), "the p of fast_p must be finite and not negative"),
        ):
            if not fine:
                raise ConfigurationError(f"score configuration: {problem}")

    @property
    def curve(self) -> tuple[int, ...]:
        """The levels t of the curve, strictest first."""
        return tuple(range(self.levels[0], self.levels[1] + 1))

    @property
    def forgiven_from(self) -> dict[str, int]:
        return dict(self.classes)

    @property
    def shares(self) -> dict[int, float] | None:
        """Weight of each level of the curve, adding up to 1; None where a level of the curve has no weight."""
        raw = dict(self.weights)
        if any(t not in raw for t in self.curve):
            return None
        total = math.fsum(raw[t] for t in self.curve)
        return {t: raw[t] / total for t in self.curve} if total > 0 else None

    def json(self) -> str:
        """Canonical JSON: equal configurations have equal text."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @property
    def id(self) -> str:
        return hashlib.blake2b(self.json().encode(), digest_size=8).hexdigest()

    @classmethod
    def of(cls, interpretation: str, **more: Any) -> ScoreConfiguration:
        """The published interpretation called `default` or `mismatch_extended`, with other fields as given."""
        if interpretation not in FORGIVEN:
            raise ConfigurationError(f"interpretation {interpretation!r}: give one of {', '.join(FORGIVEN)}")
        classes = tuple((str(c), t) for c, t in FORGIVEN[interpretation].items())
        return cls(**{"classes": classes, "levels": SPANS[interpretation], **more})

    @classmethod
    def from_json(cls, text: str) -> ScoreConfiguration:
        """The inverse of `json`. Raises ConfigurationError for anything else."""
        try:
            held = json.loads(text)
            return cls(**{k: _frozen(v) for k, v in held.items()})
        except (ValueError, TypeError, AttributeError) as error:
            raise ConfigurationError(f"not a score configuration: {error}") from None


def _frozen(value: Any) -> Any:
    return tuple(_frozen(v) for v in value) if isinstance(value, list) else value
