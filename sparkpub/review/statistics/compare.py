"""Two environments, one metric: how far apart, how sure, and whether the order of the runs allows a verdict.

The analysis follows the order as it was really run:

- interleaved: differences within complete rounds (paired t, TOST);
- random, or mixed without a declaration: two independent samples (Welch, TOST);
- blocked: a description only. Time and environment cannot be told apart, so there is no p, and the verdict is
  `confounded` whatever the figures.

Standard errors and degrees of freedom use the effective n; below four the verdict is `undecided`. Where runs shared a
server, means are still those of the runs, and errors come from the means of servers.

Holm and TOST are ours, and the tests hold them against statsmodels, which has no TOST with the effective n and the
rounding of the instrument.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np

from sparkpub.record.metrics import Direction
from sparkpub.review.statistics import reasons
from sparkpub.review.statistics.describe import (
    MINIMUM_RUNS,
    is_significant,
    or_none,
    resolution_of,
)
from sparkpub.review.statistics.design import (
    DeclaredOrder,
    OrderAsRun,
    Sample,
    ServerBlocks,
    complete_rounds,
    order_as_run,
    server_blocks,
    server_rounds,
)
from sparkpub.review.statistics.estimate import (
    ALPHA,
    Estimate,
    Floats,
    Interval,
    t_quantile,
)
from sparkpub.review.statistics.means import (
    TwoMeans,
    of_independent,
    of_rounds,
    of_servers,
)

ComparisonVerdict = Literal["higher", "lower", "equivalent", "undecided", "confounded"]
AnalysisKind = Literal["paired", "welch", "description", "machines"]
"""`machines`: within each of several machines, and then over them (see `estimate.over`)."""

DETECTABLE_PERCENT = 10.0
"""The difference that a sample should be able to detect: success criterion 2 of the methodology."""


def deciding_level(verdict: str, equivalence_p: float | None) -> float:
    """Confidence of the interval that decides: 0.90 where TOST decides or was left open, else 0.95.

    "At most" speaks of one side. An end of the 90 % interval bounds its side with 95 % confidence, and it is the end
    that TOST compares with the margin: so a bound never contradicts the verdict beside it.
    """
    if equivalence_p is not None and verdict in ("equivalent", "undecided"):
        return 1 - 2 * ALPHA
    return 1 - ALPHA


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Candidate against baseline. None where n, the scale or a zero baseline does not carry a figure.

    Means, difference and ratio are of the runs compared: those of complete rounds where the order was interleaved
    (`n_baseline` = `n_candidate` = rounds; `left_out` counts the rest), else all. `n_effective` is what they are
    worth (of the differences, or of the smaller side), `df` the degrees of freedom of the difference. Over several
    machines each of them counts once: `df` is one less than their number, and `n_effective` that of the machine with
    the fewest.

    A confounded comparison is a description: its p-values and powers are None. Its interval shows the spread of these
    runs and not what the environments differ by. `power_10_percent` is that of finding a difference of a tenth, and
    `detectable_percent` the difference that so many runs find in four of five campaigns, in percent of the baseline.
    `margin_declared` is False where the margin was chosen after the runs were seen.

    `overhead_percent` is the source's formula on execution times: 100 (T_candidate - T_baseline) / T_baseline
    with T the inverse of a rate; for times and memory it is their own relative increase.
    `p_adjusted` and `equivalence_p_adjusted` are Holm's where `adjust` has seen the family, else the plain p.
    Percentages and ratios are None on a scale without a true zero (°C).
    """

    order: OrderAsRun
    analysis: AnalysisKind
    n_baseline: int
    n_candidate: int
    left_out: int
    n_effective: float
    df: float | None
    mean_baseline: float
    mean_candidate: float
    difference: float
    difference_percent: float | None
    ratio: float | None
    inverse_ratio: float | None
    ci95_ratio: Interval | None
    ci90_ratio: Interval | None
    overhead_percent: float | None
    ci95_difference: Interval | None
    ci90_difference: Interval | None
    p_value: float | None
    p_adjusted: float | None
    equivalence_margin_percent: float
    margin_declared: bool
    equivalence_p: float | None
    equivalence_p_adjusted: float | None
    power_10_percent: float | None
    detectable_percent: float | None
    better: Literal["baseline", "candidate"] | None
    machines: int = 1
    """On how many machines the runs ran that were compared within each of them."""
    servers: int | None = None
    """How many servers a side the errors rest on; None where no two of the runs shared one, or no record tells."""

    @property
    def verdict(self) -> ComparisonVerdict:
        """In a word, with the corrected p-values."""
        return verdict_of(
            self.n_effective,
            self.difference,
            self.p_adjusted,
            self.equivalence_p_adjusted,
            confounded=self.order == "blocked",
        )

    @property
    def deciding_level(self) -> float:
        """Confidence of the interval that decides: 0.90 where TOST decides or was left open, else 0.95."""
        return deciding_level(self.verdict, self.equivalence_p)

    @property
    def deciding_difference(self) -> Interval | None:
        """The interval of the difference that decides."""
        if self.deciding_level < 1 - ALPHA:
            return self.ci90_difference
        return self.ci95_difference

    @property
    def deciding_ratio(self) -> Interval | None:
        """The interval of the ratio at the same level."""
        if self.deciding_level < 1 - ALPHA:
            return self.ci90_ratio
        return self.ci95_ratio

    @property
    def estimate(self) -> Estimate | None:
        """The difference with its standard error; None where the runs are only described."""
        if self.ci95_difference is None or self.df is None or self.p_value is None:
            return None
        low, high = self.ci95_difference
        reach = t_quantile(1 - ALPHA / 2, self.df)
        return Estimate(self.difference, (high - low) / 2 / reach, self.df)

    @property
    def estimate_percent(self) -> Estimate | None:
        """The same in percent of the baseline's mean; None on a scale without a true zero, too."""
        if self.estimate is None or self.difference_percent is None:
            return None
        error = 100 * self.estimate.error / abs(self.mean_baseline)
        return Estimate(self.difference_percent, error, self.estimate.df)

    @property
    def why(self) -> str:
        """What the verdict rests on, in one sentence or two."""
        return reasons.why(self)


def verdict_of(
    n_effective: float,
    difference: float,
    p_value: float | None,
    equivalence_p: float | None,
    *,
    confounded: bool,
) -> ComparisonVerdict:
    """The rule. Equivalence within the declared margin comes first: what is negligible is not a difference."""
    if confounded:
        return "confounded"
    if n_effective < MINIMUM_RUNS:
        return "undecided"
    if is_significant(equivalence_p):
        return "equivalent"
    if is_significant(p_value):
        return "higher" if difference > 0 else "lower"
    return "undecided"


def compare(
    baseline: Sample | Sequence[float],
    candidate: Sample | Sequence[float],
    *,
    order: DeclaredOrder,
    margin_percent: float,
    direction: Direction = "neither",
    unit: str = "",
    resolution: float | None = None,
    margin_declared: bool = True,
) -> Comparison:
    """Compare two samples of one metric. Raises ValueError where one is empty or not finite.

    `order` is the one declared; times in the samples show whether it was kept. `margin_percent` is the equivalence
    margin in percent of the baseline's mean, `margin_declared` whether it was fixed before the first run. `direction`
    says which way is better, `unit` whether values are a rate (ends in /s) or lack a true zero (°C). `resolution` is
    the step to which the instrument rounds, read off the values where it is not given.
    """
    one, other = _sample(baseline), _sample(candidate)
    design = design_of(one, other, order)
    if resolution is None:
        resolution = resolution_of([*one.values, *other.values])
    columns = compare_many(
        one.array[np.newaxis],
        other.array[np.newaxis],
        design,
        margin_percent=margin_percent,
        directions=[direction],
        units=[unit],
        resolutions=np.array([resolution]),
    )
    figures = {name: column[0] for name, column in columns.items()}
    return comparison_of(figures, margin_declared=margin_declared)


@dataclass(frozen=True)
class Design:
    """How two samples are compared: the order as it was run, the analysis that it allows, and which of the values are
    compared, by their places on each side.

    `servers` are the blocks of compared values that errors rest on, for each side; both are empty where every run had
    a server of its own.
    """

    order: OrderAsRun
    analysis: AnalysisKind
    baseline: tuple[int, ...]
    candidate: tuple[int, ...]
    left_out: int
    servers: tuple[ServerBlocks, ServerBlocks] = ((), ())

    @property
    def fewest_servers(self) -> int | None:
        """How many servers the side with fewer of them has; None where every run had its own."""
        if not any(self.servers):
            return None
        return min(map(len, self.servers))


def design_of(baseline: Sample, candidate: Sample, declared: DeclaredOrder) -> Design:
    """The design of a comparison, from the rounds and times of its runs."""
    order = order_as_run(declared, baseline, candidate)
    everything = tuple(range(len(baseline.values))), tuple(range(len(candidate.values)))
    if order != "interleaved":
        analysis: AnalysisKind = "description" if order == "blocked" else "welch"
        return Design(order, analysis, *everything, 0, _of_each(baseline, candidate))
    rounds = complete_rounds(baseline, candidate)
    if not rounds:
        return Design(order, "description", *everything, 0)
    one, other = zip(*rounds, strict=True)
    given = len(baseline.values) + len(candidate.values)
    servers = server_rounds(baseline, candidate, rounds)
    return Design(order, "paired", one, other, given - 2 * len(rounds), servers)


def _of_each(baseline: Sample, candidate: Sample) -> tuple[ServerBlocks, ServerBlocks]:
    """The blocks of runs that shared a server, on each side by itself; empty where no run did on either side."""
    one, other = server_blocks(baseline.servers), server_blocks(candidate.servers)
    if not one and not other:
        return (), ()
    return one or _alone(baseline), other or _alone(candidate)


def _alone(sample: Sample) -> ServerBlocks:
    """Every run a block."""
    return tuple((place,) for place in range(len(sample.values)))


def compare_many(
    baseline: Floats,
    candidate: Floats,
    design: Design,
    *,
    margin_percent: Any,
    directions: Sequence[Direction],
    units: Sequence[str],
    resolutions: Floats,
) -> dict[str, Any]:
    """The fields of `Comparison` for many comparisons of one design, each a row of `baseline` and `candidate`.

    A column for each field, NaN where a comparison does not carry the figure; intervals as `..._low` and `..._high`.
    `margin_percent` is one for all, or one for each.
    """
    a = np.ascontiguousarray(baseline[:, list(design.baseline)])
    b = np.ascontiguousarray(candidate[:, list(design.candidate)])
    rows = len(a)
    means = _means(a, b, design, resolutions)
    mean_a, mean_b = a.mean(axis=-1), b.mean(axis=-1)
    scaled = np.array([unit != "°C" for unit in units]) & (mean_a > 0)
    base = np.where(scaled, mean_a, np.nan)
    ratio = mean_b / base
    overheads = map(overhead, ratio.tolist(), directions, units)
    better = map(better_of, mean_a.tolist(), mean_b.tolist(), directions)
    columns: dict[str, Any] = {
        "order": np.full(rows, design.order, dtype=object),
        "analysis": np.full(rows, design.analysis, dtype=object),
        "n_baseline": np.full(rows, a.shape[-1]),
        "n_candidate": np.full(rows, b.shape[-1]),
        "left_out": np.full(rows, design.left_out),
        "n_effective": _worth(means, a, b, design),
        "df": _none(rows) if means is None else means.df,
        "mean_baseline": mean_a,
        "mean_candidate": mean_b,
        "difference": mean_b - mean_a,
        "difference_percent": 100 * (mean_b - mean_a) / base,
        "ratio": ratio,
        "inverse_ratio": np.divide(1, ratio, out=_none(rows), where=ratio != 0),
        "overhead_percent": np.array([*overheads], dtype=np.float64),
        "equivalence_margin_percent": np.full(rows, margin_percent, dtype=np.float64),
        "better": np.array([*better], dtype=object),
        "machines": np.full(rows, 1),
        "servers": np.full(rows, design.fewest_servers, dtype=object),
    }
    columns |= _intervals(means, rows, scaled)
    tested = None if design.analysis == "description" else means
    return columns | tests(tested, base, margin_percent)


def comparison_of(figures: Mapping[str, Any], *, margin_declared: bool) -> Comparison:
    """One comparison from its figures by name, as `compare_many` names them."""
    found = {name: or_none(value) for name, value in figures.items()}
    for name in INTERVALS:
        low, high = found.pop(f"{name}_low"), found.pop(f"{name}_high")
        found[name] = None if low is None else (low, high)
    return Comparison(margin_declared=margin_declared, **found)


def _none(rows: int) -> Floats:
    """A column without figures."""
    return np.full(rows, np.nan)


def _means(
    a: Floats, b: Floats, design: Design, resolutions: Floats
) -> TwoMeans | None:
    """The means of each row, where each side has two values or more and the design lets them be compared."""
    if min(a.shape[-1], b.shape[-1]) < 2:
        return None
    if design.order == "interleaved" and design.analysis != "paired":
        return None  # no complete round
    by_order = of_rounds if design.analysis == "paired" else of_independent
    if design.fewest_servers is None:
        return by_order(a, b, resolutions)
    if design.fewest_servers < 2:
        return None
    return of_servers(a, b, *design.servers, resolutions, by_order)


def _worth(means: TwoMeans | None, a: Floats, b: Floats, design: Design) -> Any:
    """`n_effective` of each row."""
    if means is not None:
        return means.n_effective
    worth = float(min(a.shape[-1], b.shape[-1]))
    if design.fewest_servers is not None:
        worth = float(design.fewest_servers)
    if design.order == "interleaved" and design.analysis == "description":
        worth = 0.0
    return np.full(len(a), worth)


INTERVALS = ("ci95_difference", "ci90_difference", "ci95_ratio", "ci90_ratio")
"""Fields that are intervals."""


def _intervals(means: TwoMeans | None, rows: int, scaled: Any) -> dict[str, Floats]:
    """The ends of the intervals of difference and ratio, at both levels."""
    found = {}
    for name in INTERVALS:
        low, high = _none(rows), _none(rows)
        level = 1 - ALPHA if name.startswith("ci95") else 1 - 2 * ALPHA
        if means is not None and name.endswith("difference"):
            low, high = means.ends(level)
        elif means is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                ends = means.ratio_ends(level)
            low, high = (np.where(scaled, end, np.nan) for end in ends)
        found[f"{name}_low"], found[f"{name}_high"] = low, high
    return found


def tests(
    estimate: Estimate | None, base: Floats, margin_percent: Any
) -> dict[str, Floats]:
    """What the tests of differences say, a column each: all NaN where runs are only described, of equivalence and power
    where `base`, what a percentage is of, is NaN."""
    if estimate is None:
        return {name: np.full(len(base), np.nan) for name in TESTS}
    p_value = estimate.p_value
    equivalence_p = estimate.equivalence_p(margin_percent / 100 * base)
    power = estimate.detection_power(DETECTABLE_PERCENT / 100 * base)
    return {
        "p_value": p_value,
        "p_adjusted": p_value,
        "equivalence_p": equivalence_p,
        "equivalence_p_adjusted": equivalence_p,
        "power_10_percent": np.where(np.isnan(base), np.nan, power),
        "detectable_percent": 100 * estimate.detectable() / base,
    }


TESTS = (
    "p_value",
    "p_adjusted",
    "equivalence_p",
    "equivalence_p_adjusted",
    "power_10_percent",
    "detectable_percent",
)
"""Fields that say what tests found."""


def _sample(side: Sample | Sequence[float]) -> Sample:
    if isinstance(side, Sample):
        return side
    return Sample(tuple(side))


def overhead(ratio: float, direction: Direction, unit: str) -> float | None:
    """The increase of execution time in percent that a ratio of means stands for; None where it stands for none."""
    if ratio == 0:
        return None
    if unit.endswith("/s"):
        return 100 * (1 / ratio - 1)
    return 100 * (ratio - 1) if direction == "lower" else None


def better_of(
    mean_a: float, mean_b: float, direction: Direction
) -> Literal["baseline", "candidate"] | None:
    """Which side has the better mean; None where no direction is better."""
    if direction == "neither" or mean_a == mean_b:
        return None
    return "candidate" if (mean_b > mean_a) == (direction == "higher") else "baseline"


def equivalence(
    baseline: Sequence[float], candidate: Sequence[float], margin_percent: float
) -> float | None:
    """p of TOST that two means differ by less than `margin_percent` of the baseline's; None where n < 2.

    For samples that no order joins, such as those of two models; every run counts in full.
    """
    a, b = np.array(baseline, dtype=np.float64), np.array(candidate, dtype=np.float64)
    if min(len(a), len(b)) < 2:
        return None
    means = of_independent(a, b, resolution_of([*baseline, *candidate]), serial=False)
    return float(means.equivalence_p(margin_percent / 100 * abs(means.baseline)))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's (1979) step-down adjusted p in the order given; None stays None and does not count as a test."""
    order = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, index) in enumerate(order):
        largest = max(largest, min(1.0, p * (len(order) - rank)))
        adjusted[index] = largest
    return adjusted


C = TypeVar("C", bound=Comparison)


def adjust(family: Sequence[C]) -> list[C]:
    """The comparisons of one family with Holm's correction of their tests of difference and, apart, of equivalence.

    A family is the primary comparisons of a campaign, or its exploratory ones.
    """
    different = holm([item.p_value for item in family])
    equal = holm([item.equivalence_p for item in family])
    return [
        replace(item, p_adjusted=p, equivalence_p_adjusted=q)
        for item, p, q in zip(family, different, equal, strict=True)
    ]
