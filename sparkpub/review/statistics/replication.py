"""One effect on several machines, or in several sessions: what holds beyond each of them.

Runs of one session share a machine, a day and whatever else nobody varied. Their interval says how well that session
knows its own figure. What another machine or another day would give shows only between sessions (Kalibera and Jones
2013, Rigorous Benchmarking in Reasonable Time). So a difference is formed within each machine first, and the machines'
differences are combined with a random-effects model:

- the variance between machines, τ², by Paule and Mandel (1982, Journal of Research of the National Bureau of Standards
  87, 377-385), recommended by Veroniki et al. (2016, Research Synthesis Methods 7, 55-79);
- the interval of the mean with Student's t on k - 1 degrees of freedom (Hartung and Knapp 2001, Statistics in Medicine
  20, 3875-3889; Sidik and Jonkman 2002). Their factor √(Q(τ²) / (k - 1)) is 1 at Paule and Mandel's τ², and is not
  taken below 1 where τ² is zero (Röver, Knapp and Friede 2015, BMC Medical Research Methodology 15:99);
- Cochran's Q (1954, Biometrics 10, 101-129) with its chi-squared p, I² (Higgins and Thompson 2002) and, from three
  machines on, the interval in which the effect on another machine is expected (Higgins, Thompson and Spiegelhalter
  2009, with t on k - 2 degrees of freedom).

The effects of several cells are combined in the same way (`tables.pooled`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy

from sparkpub.record.metrics import Direction
from sparkpub.record.text import (
    counted,
    number,
    outward,
    p_text,
)
from sparkpub.review.statistics.compare import (
    DETECTABLE_PERCENT,
    Comparison,
    ComparisonVerdict,
    Tests,
    better_of,
    overhead,
)
from sparkpub.review.statistics.describe import (
    ALPHA,
    WANTED_POWER,
    Description,
    Estimate,
    Floats,
    Interval,
    around,
    describe,
    is_significant,
    t_quantile,
)
from sparkpub.review.statistics.design import order_over_machines
from sparkpub.review.statistics.means import detectable_shift, detection_power

_STEPS = 100
"""More than Newton's method needs: it doubles the correct digits with every step."""
_CLOSE = 1e-12

Replication = Literal["replicates", "does not replicate", "undecided"]


@dataclass(frozen=True, kw_only=True)
class Combined:
    """What several machines, or cells, say together, in the unit of their estimates; `count` of them.

    `error` is the standard error of `estimate`, the mean over machines like these, and `ci95` its interval.
    `between_sd` is τ, the spread of the true effects between machines; `i2_percent` the share of the spread of the
    estimates that is due to it. `q` is Cochran's, with its p-value. `prediction95` is where the effect on one more
    machine is expected; None for two machines.
    """

    count: int
    estimate: float
    error: float
    ci95: Interval | None
    prediction95: Interval | None
    between_sd: float
    i2_percent: float
    q: float
    heterogeneity_p: float

    @property
    def df(self) -> int:
        """Degrees of freedom between machines."""
        return self.count - 1

    @property
    def p_value(self) -> float:
        """Two-sided p that the mean over machines is zero."""
        return float(2 * scipy.special.stdtr(self.df, -abs(self.estimate) / self.error))

    def equivalence_p(self, margin: float) -> float:
        """p of TOST that the mean over machines lies within ± `margin`."""
        t = (margin - abs(self.estimate)) / self.error
        return float(scipy.special.stdtr(self.df, -t))

    def interval(self, level: float) -> Interval | None:
        """The interval of the mean over machines at a level of confidence."""
        return around(self.estimate, self.error, self.df, level)


def combined(effects: Sequence[Estimate]) -> Combined:
    """Combine what machines found that measured the same, or the effects of cells, in one unit.

    Raises ValueError for fewer than two, and for one without an error: a measured value always has one.
    """
    if len(effects) < 2:
        raise ValueError("to combine machines takes two of them at least")
    if not all(effect.error > 0 for effect in effects):
        raise ValueError("an estimate needs an error above zero")
    values = np.array([effect.value for effect in effects])
    variances = np.array([effect.error**2 for effect in effects])
    df = len(effects) - 1
    q, _ = _q(values, variances)
    between = between_variance(values, variances)
    weights = 1 / (variances + between)
    mean = float(weights @ values / weights.sum())
    error = math.sqrt(1 / float(weights.sum()))
    return Combined(
        count=len(effects),
        estimate=mean,
        error=error,
        ci95=around(mean, error, df),
        # Two machines leave no degree of freedom for it, and so no interval.
        prediction95=around(mean, math.sqrt(between + error**2), df - 1),
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


@dataclass(frozen=True)
class _Scale:
    """In what machines are combined: percent of their own baselines, so that a faster machine counts no more than a
    slow one, or the metric's unit where there is no true zero. `base` is the mean of the baselines."""

    relative: bool
    base: float

    @classmethod
    def of(cls, within: Sequence[Comparison]) -> "_Scale":
        """The scale that all of these comparisons have."""
        shares = [part.difference_percent for part in within]
        base = float(np.mean([part.mean_baseline for part in within]))
        return cls(relative=None not in shares, base=base)

    def effect(self, part: Comparison) -> Estimate | None:
        """The difference that a machine found, with its error."""
        if self.relative:
            return part.estimate_percent
        return part.estimate

    def difference(self, part: Comparison) -> float:
        """The same of a machine whose runs carry no error."""
        if part.difference_percent is not None and self.relative:
            return part.difference_percent
        return part.difference

    def in_unit(self, effect: float) -> float:
        """An effect in the metric's unit, for a machine with the mean baseline."""
        if self.relative:
            return effect * self.base / 100
        return effect

    def interval_in_unit(self, found: Interval | None) -> Interval | None:
        """An interval of the effect in the metric's unit."""
        if found is None:
            return None
        return self.in_unit(found[0]), self.in_unit(found[1])

    def ratio_interval(self, found: Interval | None) -> Interval | None:
        """An interval of the effect as one of the ratio; None on a scale without one."""
        if found is None or not self.relative:
            return None
        return 1 + found[0] / 100, 1 + found[1] / 100


def between(within: Sequence[Comparison]) -> Combined | None:
    """What several machines say together, in percent of their baselines, or in the metric's unit without a true zero.

    None where a machine ran its environments in blocks, or fewer than two have an effect with an error.
    """
    scale = _Scale.of(within)
    effects = [scale.effect(part) for part in within]
    known = [effect for effect in effects if effect is not None]
    blocked = any(part.order == "blocked" for part in within)
    if blocked or len(known) < 2:
        return None
    return combined(known)


def over_machines(
    within: Sequence[Comparison], *, direction: Direction, unit: str
) -> Comparison:
    """One comparison over several machines, from those within each of two or more.

    Means and difference are those of a machine with the mean baseline. Where one machine ran its environments in
    blocks the whole is confounded; where one has too few runs it is undecided.
    """
    first = within[0]
    scale = _Scale.of(within)
    together = between(within)
    if together is None:
        effect = float(np.mean([scale.difference(part) for part in within]))
        narrow = wide = None
    else:
        effect = together.estimate
        narrow = together.interval(1 - 2 * ALPHA)
        wide = together.interval(1 - ALPHA)
    ratio = 1 + effect / 100 if scale.relative else None
    tests = _tests(together, first.equivalence_margin_percent, scale)
    difference = scale.in_unit(effect)
    return Comparison(
        order=order_over_machines(part.order for part in within),
        analysis="machines",
        machines=len(within),
        n_baseline=sum(part.n_baseline for part in within),
        n_candidate=sum(part.n_candidate for part in within),
        left_out=sum(part.left_out for part in within),
        n_effective=min(part.n_effective for part in within),
        df=None if together is None else together.df,
        mean_baseline=scale.base,
        mean_candidate=scale.base + difference,
        difference=difference,
        difference_percent=effect if scale.relative else None,
        ratio=ratio,
        inverse_ratio=1 / ratio if ratio else None,
        ci95_ratio=scale.ratio_interval(wide),
        ci90_ratio=scale.ratio_interval(narrow),
        overhead_percent=None if ratio is None else overhead(ratio, direction, unit),
        ci95_difference=scale.interval_in_unit(wide),
        ci90_difference=scale.interval_in_unit(narrow),
        p_value=tests.p_value,
        p_adjusted=tests.p_value,
        equivalence_margin_percent=first.equivalence_margin_percent,
        margin_declared=first.margin_declared,
        equivalence_p=tests.equivalence_p,
        equivalence_p_adjusted=tests.equivalence_p,
        power_10_percent=tests.power_10_percent,
        detectable_percent=tests.detectable_percent,
        better=better_of(scale.base, scale.base + difference, direction),
    )


def describe_machines(within: Sequence[Sequence[float]]) -> Description:
    """Describe the values of a cell that ran on several machines; `within` are those of each, in run order.

    The mean is that over machines, where each counts with its own error, and its interval holds for machines like
    these; None where fewer than two have an interval. The spread is that within machines, the rest of all values.
    """
    parts = [describe(values) for values in within]
    together = describe([value for values in within for value in values])
    estimates = [part.estimate for part in parts if part.estimate is not None]
    mean, ci95 = together.mean, None
    if len(estimates) == len(parts):
        over = combined(estimates)
        mean, ci95 = over.estimate, over.ci95
    sd = _sd_within(parts)
    cv = 100 * sd / abs(mean) if sd is not None and mean != 0 else None
    return replace(
        together,
        mean=mean,
        sd=sd,
        cv_percent=cv,
        ci95=ci95,
        autocorrelation=None,
        n_effective=sum(part.n_effective for part in parts),
    )


def levelled(values: Floats, machines: Sequence[str]) -> Floats:
    """Values with the machines brought to one level: from each the distance of its machine's mean from the mean of all
    is taken. What is left is what varies within machines."""
    found = values.copy()
    names = np.asarray(machines, dtype=object)
    for machine in dict.fromkeys(machines):
        mine = names == machine
        found[mine] += values.mean() - values[mine].mean()
    return found


def _sd_within(parts: Sequence[Description]) -> float | None:
    """The standard deviation within machines, pooled; None where none of them has two values."""
    squares = sum((part.n - 1) * part.sd**2 for part in parts if part.sd is not None)
    df = sum(part.n - 1 for part in parts)
    if df == 0:
        return None
    return math.sqrt(squares / df)


def _tests(together: Combined | None, margin_percent: float, scale: _Scale) -> Tests:
    if together is None:
        return Tests()
    if not scale.relative:
        return Tests(together.p_value)
    return Tests(
        p_value=together.p_value,
        equivalence_p=together.equivalence_p(margin_percent),
        power_10_percent=detection_power(
            DETECTABLE_PERCENT / together.error, together.df
        ),
        detectable_percent=detectable_shift(together.df, WANTED_POWER) * together.error,
    )


def replication(
    overall: ComparisonVerdict,
    verdicts: Sequence[ComparisonVerdict],
    together: Combined | None,
) -> Replication:
    """Whether machines show one thing: `overall` is the verdict on their mean, `verdicts` are their own.

    It replicates where the mean over machines decides and no machine decides otherwise. It does not where two machines
    decide differently and Q shows that they differ. All else is open.
    """
    if together is None:
        return "undecided"
    decided = {verdict for verdict in verdicts if verdict != "undecided"}
    if len(decided) > 1 and is_significant(together.heterogeneity_p):
        return "does not replicate"
    if overall != "undecided" and decided <= {overall}:
        return "replicates"
    return "undecided"


def why(
    overall: ComparisonVerdict,
    verdicts: Sequence[ComparisonVerdict],
    together: Combined | None,
    what: str = "machine",
) -> str:
    """What a replication rests on, in a sentence. `what` is what differs: machines, or sessions of one."""
    if overall == "confounded":
        return f"In one {what} the environments ran in separate blocks of time."
    if together is None:
        return f"Fewer than two {what}s have runs enough for an interval."
    machines = counted(together.count, what)
    spread = f"Q = {together.q:.1f}, {p_text(together.heterogeneity_p)}"
    found = replication(overall, verdicts, together)
    if found == "replicates":
        agreed = f"The mean over {machines} is decided, and none of them decides otherwise ({spread})."
        return agreed + _size(overall, together, what)
    if found == "does not replicate":
        return f"The {what}s decide differently, and differ by more than their errors explain ({spread})."
    if len(set(verdicts) - {"undecided"}) > 1:
        return f"The {what}s decide differently, but differ by no more than their errors explain ({spread})."
    if overall != "undecided":
        return f"The mean over {machines} is decided, but one of them decides otherwise ({spread})."
    return f"The mean over {machines} is not decided: {_few(together, what)}"


def _size(overall: ComparisonVerdict, together: Combined, what: str) -> str:
    """Whether what replicates in its direction does so in its size: the prediction interval decides. Empty where two
    sessions leave none."""
    if together.prediction95 is None:
        return ""
    low, high = outward(*together.prediction95)
    ends = f"{number(low, 1, signed=True)} and {number(high, 1, signed=True)} %"
    where = f"one more {what} is expected between {ends}"
    if overall == "equivalent" or low > 0 or high < 0:
        return f" By size, {where}."
    return f" Only the direction replicates: {where}."


def _few(together: Combined, what: str) -> str:
    """Why a mean over so few is known badly: its interval in standard errors."""
    reach = t_quantile(1 - ALPHA / 2, together.df)
    degrees = counted(together.df, "degree")
    return (
        f"{together.count} {what}s leave {degrees} of freedom, so that its interval reaches {reach:.1f} standard "
        f"errors to either side. More {what}s would narrow it, more runs hardly."
    )
