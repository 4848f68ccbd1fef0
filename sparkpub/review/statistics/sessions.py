"""From sessions to a statement about the world.

Runs of one session share a machine, a day and whatever else nobody varied. Their interval says how well that session
knows its own figure. What another machine or another day would give shows only between sessions (Kalibera and Jones
2013, Rigorous Benchmarking in Reasonable Time): there the estimate of a session is one observation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from sparkpub.review.statistics.compare import Verdict
from sparkpub.review.statistics.describe import Estimate, Interval, around

HERE = "on this machine, this day"
"""What a statement from one session is about."""

Replication = Literal["replicates", "does not replicate", "undecided"]


@dataclass(frozen=True, kw_only=True)
class AcrossSessions:
    """What several sessions say together, in the unit of their estimates.

    `within_sd` is the standard error that sessions have by themselves, `between_sd` the spread of their estimates
    beyond it, `error` the standard error of the mean over sessions. `ci95` holds for the mean over machines and days
    like these. With one session there is neither: it speaks of its own machine and day.
    """

    sessions: int
    estimate: float
    error: float | None
    ci95: Interval | None
    within_sd: float
    between_sd: float | None

    @property
    def says(self) -> str:
        """Where the estimate holds, in words."""
        return HERE if self.sessions == 1 else f"over {self.sessions} sessions"

    def equivalence_p(self, margin: float) -> float | None:
        """p of TOST that the mean over sessions lies within ± `margin`; None for one session."""
        if self.error is None:
            return None
        if self.error == 0:
            return float(abs(self.estimate) >= margin)
        t = (margin - abs(self.estimate)) / self.error
        return float(scipy.special.stdtr(self.sessions - 1, -t))


def across_sessions(sessions: Sequence[Estimate]) -> AcrossSessions:
    """Combine what sessions found that measured the same, in one unit. Raises ValueError where there is none.

    Each session counts once, whatever its number of runs, with Student's t on sessions - 1 degrees of freedom. The
    spread between sessions is taken as no smaller than their errors within make it: two sessions that agree by luck
    claim no more than their runs carry.
    """
    if not sessions:
        raise ValueError("a statement about the world needs at least one session")
    estimates = np.array([session.value for session in sessions])
    within = float(np.mean([session.error**2 for session in sessions]))
    mean = float(estimates.mean())
    k = len(sessions)
    if k == 1:
        return AcrossSessions(
            sessions=1,
            estimate=mean,
            error=None,
            ci95=None,
            within_sd=math.sqrt(within),
            between_sd=None,
        )
    spread = float(estimates.var(ddof=1))
    error = math.sqrt(max(spread, within) / k)
    return AcrossSessions(
        sessions=k,
        estimate=mean,
        error=error,
        ci95=around(mean, error, k - 1),
        within_sd=math.sqrt(within),
        between_sd=math.sqrt(max(0.0, spread - within)),
    )


def replication(verdicts: Sequence[Verdict]) -> Replication:
    """Whether sessions came to one verdict. Where one of them has none, that is open."""
    if len(verdicts) < 2 or {"undecided", "confounded"} & set(verdicts):
        return "undecided"
    return "replicates" if len(set(verdicts)) == 1 else "does not replicate"
