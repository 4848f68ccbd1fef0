"""Everything that runs show is an estimate: a value, its standard error, and the degrees of freedom behind the error.

A mean is one, and so is the difference of two means, or what several machines or cells say together. What an estimate
shows is asked of it in one way: its interval, its tests, and what they can detect. Value, error and degrees of freedom
are numbers, or arrays of many.

Several estimates of one effect are combined (`over`). Runs of one session share a machine, a day and whatever else
nobody varied: their interval says how well that session knows its own figure. What another machine or another day would
give shows only between sessions (Kalibera and Jones 2013, Rigorous Benchmarking in Reasonable Time):

- the variance between machines, τ², by Paule and Mandel (1982, Journal of Research of the National Bureau of Standards
  87, 377-385), recommended by Veroniki et al. (2016, Research Synthesis Methods 7, 55-79);
- the interval of the mean with Student's t on k - 1 degrees of freedom (Hartung and Knapp 2001, Statistics in Medicine
  20, 3875-3889; Sidik and Jonkman 2002). Their factor √(Q(τ²) / (k - 1)) is 1 at Paule and Mandel's τ², and is not
  taken below 1 where τ² is zero (Röver, Knapp and Friede 2015, BMC Medical Research Methodology 15:99);
- Cochran's Q (1954, Biometrics 10, 101-129) with its chi-squared p, I² (Higgins and Thompson 2002) and, from three
  machines on, the interval in which the effect on another machine is expected (Higgins, Thompson and Spiegelhalter
  2009, with t on k - 2 degrees of freedom).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Interval = tuple[float, float]

ALPHA = 0.05
WANTED_POWER = 0.8
"""The power that a test should have (Cohen 1988)."""
_LEAST_DF = 0.5
"""Fewest degrees of freedom that carry an interval; Student's 97.5 % quantile is 165 there."""
_CERTAIN, _NO_LOWER_TAIL = 1e3, 5.0
"""Shifts in standard errors beyond which the noncentral t's tails are 1 and 0 and cannot be evaluated."""
_STEPS = 100
"""More than Newton's method needs: it doubles the correct digits with every step."""
_CLOSE = 1e-12


@dataclass(frozen=True)
class Estimate:
    """A figure with its standard error, in the same unit, and the degrees of freedom behind the error."""

    value: Any
    error: Any
    df: Any = math.inf

    def ends(self, level: float = 1 - ALPHA) -> tuple[Any, Any]:
        """The ends of Student's interval; NaN with too few degrees of freedom."""
        enough = np.asarray(self.df) >= _LEAST_DF
        df = np.where(enough, self.df, 1.0)
        half = scipy.special.stdtrit(df, (1 + level) / 2) * self.error
        half = np.where(enough, half, np.nan)
        return self.value - half, self.value + half

    def interval(self, level: float = 1 - ALPHA) -> Interval | None:
        """The interval of a single estimate; None with too few degrees of freedom."""
        low, high = self.ends(level)
        return None if np.isnan(low) else (float(low), float(high))

    @property
    def p_value(self) -> Any:
        """Two-sided p that the true value is zero: Student's t."""
        return 2 * scipy.special.stdtr(self.df, -np.abs(self.value) / self.error)

    def equivalence_p(self, margin: Any) -> Any:
        """p of two one-sided tests that the true value lies within ± `margin` (Schuirmann 1987), in its unit."""
        return scipy.special.stdtr(self.df, (np.abs(self.value) - margin) / self.error)

    def detection_power(self, difference: Any) -> Any:
        """Probability that the test rejects zero at 5 % when the true value is `difference`.

        Noncentral t (Cohen, Statistical Power Analysis, 1988); the error is that observed.
        """
        critical = scipy.special.stdtrit(self.df, 1 - ALPHA / 2)
        shift = np.abs(difference / self.error)
        # Beyond these shifts the tails cannot be evaluated, and are 1 and 0. Some that are nearly 0 come as NaN before.
        missed = scipy.special.nctdtr(self.df, np.minimum(shift, _CERTAIN), critical)
        known = (shift <= _CERTAIN) & ~(np.isnan(missed) & np.isfinite(shift))
        above = np.where(known, 1 - missed, 1.0)
        low = np.minimum(shift, _NO_LOWER_TAIL)
        below = scipy.special.nctdtr(self.df, low, -critical)
        below = np.where(shift < _NO_LOWER_TAIL, below, 0.0)
        return np.minimum(1.0, above + below)

    def detectable(self, power: float = WANTED_POWER) -> Any:
        """The true value that the test finds with that probability: the noncentral t's shift."""
        critical = scipy.special.stdtrit(self.df, 1 - ALPHA / 2)
        return scipy.special.nctdtrinc(self.df, 1 - power, critical) * self.error


def difference_of(baseline: Estimate, candidate: Estimate) -> Estimate:
    """Candidate minus baseline, of which nothing is known but their errors: Welch's degrees of freedom."""
    variances = baseline.error**2, candidate.error**2
    df = float(satterthwaite(variances, (baseline.df, candidate.df)))
    return Estimate(candidate.value - baseline.value, math.sqrt(sum(variances)), df)


def satterthwaite(
    variances: Sequence[Any] | Floats, dfs: Sequence[Any] | Floats
) -> Any:
    """Degrees of freedom of a sum of independent variances (Satterthwaite 1946, doi 10.2307/3002019), of two means also
    Welch's (1947); inf where all are known, NaN where all are zero."""
    doubt = sum(variance**2 / df for variance, df in zip(variances, dfs, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.divide(sum(variances) ** 2, doubt)


def t_quantile(q: float, df: float) -> float:
    """The q quantile of Student's t."""
    return float(scipy.special.stdtrit(df, q))


@dataclass(frozen=True, kw_only=True)
class Combined(Estimate):
    """What several machines, or cells, say together: the mean over machines like these; `count` of them.

    `between_sd` is τ, the spread of the true effects between machines; `i2_percent` the share of the spread of the
    estimates that is due to it. `q` is Cochran's, with its p-value.
    """

    count: int
    between_sd: float
    i2_percent: float
    q: float
    heterogeneity_p: float

    @property
    def prediction95(self) -> Interval | None:
        """Where the effect on one more machine is expected; None for two, which leave no degree of freedom for it."""
        error = math.sqrt(self.between_sd**2 + self.error**2)
        return Estimate(self.value, error, self.df - 1).interval()


def over(estimates: Sequence[Estimate]) -> Combined:
    """Several estimates of one effect together, in one unit.

    Raises ValueError for fewer than two, and for one without an error: a measured value always has one.
    """
    if len(estimates) < 2:
        raise ValueError("to combine machines takes two of them at least")
    if not all(each.error > 0 for each in estimates):
        raise ValueError("an estimate needs an error above zero")
    values = np.array([each.value for each in estimates])
    variances = np.array([each.error**2 for each in estimates])
    df = len(estimates) - 1
    q, _ = _q(values, variances)
    between = between_variance(values, variances)
    weights = 1 / (variances + between)
    total = float(weights.sum())
    return Combined(
        float(weights @ values) / total,
        math.sqrt(1 / total),
        df,
        count=len(estimates),
        between_sd=math.sqrt(between),
        i2_percent=100 * max(0.0, q - df) / max(q, df),
        q=q,
        heterogeneity_p=float(scipy.special.chdtrc(df, q)),
    )


def between_variance(values: Floats, variances: Floats) -> float:
    """Paule and Mandel's τ²: with it, the squared distances from the weighted mean are what they are expected to be.

    By Newton's method from zero, which never overshoots, since Q(τ²) is convex and falls (DerSimonian and Kacker 2007,
    Contemporary Clinical Trials 28, 105-114). Zero where the values differ by no more than their errors.
    """
    df = len(values) - 1
    between = 0.0
    for _ in range(_STEPS):
        q, slope = _q(values, variances + between)
        if q <= df * (1 + _CLOSE):
            break
        between += (q - df) / slope
    return between


def _q(values: Floats, variances: Floats) -> tuple[float, float]:
    """The weighted squared distances from the weighted mean, and how fast they fall as every variance grows."""
    weights = 1 / variances
    apart = values - weights @ values / weights.sum()
    return float(weights @ apart**2), float(weights**2 @ apart**2)
