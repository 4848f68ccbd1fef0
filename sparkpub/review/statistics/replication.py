"""One effect on several machines, or in several sessions: what holds beyond each of them.

A difference is formed within each machine first, and the machines' differences are combined: see `estimate.over`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sparkpub.record.metrics import Direction
from sparkpub.record.text import (
    counted,
    number,
    outward,
    p_text,
)
from sparkpub.review.statistics.compare import (
    Comparison,
    ComparisonVerdict,
    better_of,
    overhead,
    tests,
)
from sparkpub.review.statistics.describe import (
    Description,
    describe,
    is_significant,
    or_none,
)
from sparkpub.review.statistics.design import order_over_machines
from sparkpub.review.statistics.estimate import (
    ALPHA,
    Combined,
    Estimate,
    Floats,
    Interval,
    over,
    t_quantile,
)

Replication = Literal["replicates", "does not replicate", "undecided"]


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
    return over(known)


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
        effect = together.value
        narrow = together.interval(1 - 2 * ALPHA)
        wide = together.interval(1 - ALPHA)
    ratio = 1 + effect / 100 if scale.relative else None
    base = np.array([100.0 if scale.relative else np.nan])
    tested = tests(together, base, first.equivalence_margin_percent)
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
        equivalence_margin_percent=first.equivalence_margin_percent,
        margin_declared=first.margin_declared,
        better=better_of(scale.base, scale.base + difference, direction),
        **{name: or_none(column.item()) for name, column in tested.items()},
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
        machines = over(estimates)
        mean, ci95 = machines.value, machines.interval()
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
