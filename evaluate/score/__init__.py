"""Scores of submissions from what the judge found: S_t, ES_t, AS, G-mean, correctness, fast_p, each with an interval.

In go rows of `evaluations` and one ScoreConfiguration, out come rows of `scores`. docs/scores.md has
the formulas. Nothing here needs torch.
"""

from evaluate.score.configuration import ConfigurationError, ScoreConfiguration
from evaluate.score.figures import Figures, Interval, figures
from evaluate.score.samples import Sample

__all__ = ["ConfigurationError", "Figures", "Interval", "Sample", "ScoreConfiguration", "figures"]
