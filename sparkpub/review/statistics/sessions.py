"""From sessions to a statement about the world.

Runs of one session share a machine, a day and whatever else nobody varied. Their interval says how well that session
knows its own difference. What another machine or another day would give shows only between sessions (Kalibera and
Jones 2013, Rigorous Benchmarking in Reasonable Time): there the mean of a session is one observation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from sparkpub.review.statistics.compare import Comparison
from sparkpub.review.statistics.describe import ALPHA, Interval, around

HERE = "on this machine, this day"
"""What a statement from one session is about."""


@dataclass(frozen=True)
class Session:
    """The difference that one session found, in percent of the baseline, and its standard error within the session."""

    difference_percent: float
    error_percent: float

    @classmethod
    def of(cls, comparison: Comparison) -> "Session | None":
        """From a comparison that carries a verdict; None where it has no percentages or is confounded."""
        interval = comparison.ci95_difference
        percent = comparison.difference_percent
        if (
            interval is None
            or percent is None
            or comparison.df is None
            or comparison.p_value is None
        ):
            return None
        half = (interval[1] - interval[0]) / 2
        error = half / float(scipy.special.stdtrit(comparison.df, 1 - ALPHA / 2))
        return cls(percent, 100 * error / abs(comparison.mean_baseline))


@dataclass(frozen=True, kw_only=True)
class AcrossSessions:
    """What several sessions say together, in percent of the baseline.

    `within_sd` is the standard error that sessions have by themselves, `between_sd` the spread of their differences
    beyond it. `ci95_percent` holds for the mean over machines and days like these, and with one session there is none:
    `reach` is then `here`, and a sentence must say "on this machine, this day".
    """

    sessions: int
    difference_percent: float
    ci95_percent: Interval | None
    within_sd: float
    between_sd: float | None
    reach: Literal["here", "world"]

    @property
    def says(self) -> str:
        """Where the difference holds, in words."""
        if self.reach == "here":
            return HERE
        return f"over {self.sessions} sessions"


def across_sessions(sessions: Sequence[Session]) -> AcrossSessions:
    """Combine sessions that compared the same. Raises ValueError where there is none.

    Each session counts once, whatever its number of runs, with Student's t on sessions - 1 degrees of freedom. The
    spread between sessions is taken as no smaller than their errors within make it: two sessions that agree by luck
    claim no more than their runs carry.
    """
    if not sessions:
        raise ValueError("a statement about the world needs at least one session")
    differences = np.array([session.difference_percent for session in sessions])
    k = len(sessions)
    within = float(np.mean([session.error_percent**2 for session in sessions]))
    mean = float(differences.mean())
    if k == 1:
        return AcrossSessions(
            sessions=1,
            difference_percent=mean,
            ci95_percent=None,
            within_sd=math.sqrt(within),
            between_sd=None,
            reach="here",
        )
    spread = float(differences.var(ddof=1))
    error = math.sqrt(max(spread, within) / k)
    return AcrossSessions(
        sessions=k,
        difference_percent=mean,
        ci95_percent=around(mean, error, k - 1),
        within_sd=math.sqrt(within),
        between_sd=math.sqrt(max(0.0, spread - within)),
        reach="world",
    )
