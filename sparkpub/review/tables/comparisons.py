"""The table of comparisons: one row per metric of each cell whose environment is compared with the baseline.

Looking at many differences finds some by chance, so p-values are corrected (Holm) over a family: the primary metrics of
a campaign, and of each machine of a campaign that ran on several; secondary ones, exploratory, are a family apart.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Include, ReviewedCampaign, machine_of
from sparkpub.review.statistics.compare import (
    INTERVALS,
    Comparison,
    Design,
    adjust,
    compare,
    compare_many,
    comparison_of,
    deciding_level,
    design_of,
)
from sparkpub.review.statistics.describe import resolution_of
from sparkpub.review.statistics.design import Sample
from sparkpub.review.statistics.estimate import ALPHA
from sparkpub.review.statistics.replication import over_machines
from sparkpub.review.tables.column import Column, Columns, TableRow, table_of
from sparkpub.review.tables.values import Values, rows_with_values

FIGURES: Columns = {
    "order": Column("text", "The order in which the runs were really made"),
    "analysis": Column("text", "paired, welch, description, or machines for within each and then over them"),
    "machines": Column("integer", "Machines within which both are compared"),
    "servers": Column("count", "Servers a side that the errors rest on; empty where no two runs shared one"),
    "n_baseline": Column("integer", "Runs of the baseline, or complete rounds"),
    "n_candidate": Column("integer", "Runs of the candidate, or complete rounds"),
    "left_out": Column("integer", "Runs outside of complete rounds"),
    "n_effective": Column("number", "What the runs are worth if neighbours are alike"),
    "df": Column("number", "Degrees of freedom of the difference"),
    "mean_baseline": Column(
        "number",
        "Mean of the baseline over the runs compared; over several machines the mean of their means",
    ),
    "mean_candidate": Column(
        "number",
        "Mean of the candidate over the runs compared; over several machines that of the baseline and the difference",
    ),
    "difference": Column("number", "Candidate minus baseline"),
    "difference_percent": Column("number", "The same in percent of the baseline"),
    "ci95_difference_low": Column("number", "Lower end of the 95 % interval of the difference"),
    "ci95_difference_high": Column("number", "Upper end of it"),
    "ci90_difference_low": Column("number", "Lower end of the 90 % interval of the difference"),
    "ci90_difference_high": Column("number", "Upper end of it"),
    "ratio": Column("number", "Candidate by baseline"),
    "inverse_ratio": Column("number", "Baseline by candidate"),
    "ci95_ratio_low": Column("number", "Lower end of the 95 % interval of the ratio"),
    "ci95_ratio_high": Column("number", "Upper end of it"),
    "ci90_ratio_low": Column("number", "Lower end of the 90 % interval of the ratio"),
    "ci90_ratio_high": Column("number", "Upper end of it"),
    "overhead_percent": Column("number", "Increase of execution time in percent"),
    "p_value": Column("number", "p of no difference"),
    "p_adjusted": Column("number", "The same, corrected over the family"),
    "equivalence_margin_percent": Column("number", "Margin within which a difference does not matter"),
    "margin_declared": Column("boolean", "Whether the margin was declared before the first run"),
    "equivalence_p": Column("number", "p of a difference beyond the margin"),
    "equivalence_p_adjusted": Column("number", "The same, corrected over the family"),
    "power_10_percent": Column("number", "Power to detect a difference of 10 %"),
    "detectable_percent": Column("number", "Difference in percent that is detected with a power of 0.8"),
    "better": Column("text", "The side with the better mean; empty where no direction is better"),
    "verdict": Column("text", "higher, lower, equivalent, undecided or confounded"),
    "why": Column("text", "What the verdict rests on"),
}  # fmt: skip
"""What a comparison found."""
COLUMNS: Columns = {
    "campaign": Column("text", "The campaign"),
    "model": Column("text", "Key of the model"),
    "workload": Column("text", "Key of the workload"),
    "metric": Column("text", "Name of the metric"),
    "unit": Column("text", "Unit of means and differences"),
    "family": Column("text", "primary, or secondary for exploratory metrics"),
    "baseline": Column("text", "The environment that is compared with"),
    "candidate": Column("text", "The environment that is compared"),
    "machine": Column("text", "The machine within which both are compared; empty over all of them"),
    **FIGURES,
}  # fmt: skip


@dataclass(frozen=True)
class Margin:
    """Within how many percent a difference does not matter, and whether that was declared before the first run."""

    percent: float
    declared: bool

    @classmethod
    def of(cls, campaign: CampaignData) -> Self:
        """The margin that a campaign declares."""
        return cls(campaign.margin_percent, campaign.margin_declared)


Found = tuple[Mapping[str, Any], Comparison]
"""What a comparison is about, by column, and what it found."""
Pair = tuple[int, int]
"""Baseline and candidate: two numbers of a `Values`."""


def comparisons(
    runs: pd.DataFrame,
    campaigns: Mapping[str, ReviewedCampaign],
    include: Include = "counted",
) -> pd.DataFrame:
    """Every comparison of the campaigns of a table of runs, cells in the order of the matrix.

    Behind those of a campaign that ran on several machines stand the comparisons within each machine."""
    rows = rows_with_values(runs, include)
    values = Values.of_cells(rows, campaigns, by_machine=True)
    margins = {
        name: Margin.of(reviewed.campaign) for name, reviewed in campaigns.items()
    }
    compared = compare_sides(values, against_baselines(values), margins)
    by_campaign = grouped(compared, lambda one: one.sides.campaign)
    found: list[Found] = []
    for name, reviewed in campaigns.items():
        mine = by_campaign.get(name, [])
        found += adjusted([(_about(one.sides, values), one.overall) for one in mine])
        machines = machines_of(reviewed, include)
        if len(machines) < 2:
            continue
        for machine in machines:
            here = [one for one in mine if machine in one.within]
            found += adjusted(
                [
                    (_about(one.sides, values, machine), one.within[machine])
                    for one in here
                ]
            )
    return compared_table(COLUMNS, found)


def over_all_machines(comparisons: pd.DataFrame) -> pd.DataFrame:
    """The comparisons without those within a single machine of several."""
    return comparisons[comparisons["machine"].isna()]


def adjusted(found: Sequence[Found]) -> list[Found]:
    """The comparisons in their own order, each with Holm's correction within its family: exploratory ones are many, and
    by chance some of them would always differ."""
    families = {str(about["family"]) for about, _ in found}
    corrected = {
        family: iter(adjust([one for about, one in found if about["family"] == family]))
        for family in families
    }
    return [(about, next(corrected[about["family"]])) for about, _ in found]


def compared_table(columns: Columns, found: Iterable[Found]) -> pd.DataFrame:
    """A table of comparisons, with what they found as columns."""
    return table_of(columns, ({**about, **_figures(one)} for about, one in found))


def found_in(row: TableRow) -> Comparison:
    """What a row of such a table found."""
    return Comparison(
        **{item.name: getattr(row, item.name) for item in fields(Comparison)}
    )


def deciding_difference(row: TableRow) -> tuple[float, float] | None:
    """The interval of the difference that decides: what every sentence with a bound rests on."""
    interval: tuple[float, float] | None = row.ci95_difference
    if deciding_level(row.verdict, row.equivalence_p) < 1 - ALPHA:
        interval = row.ci90_difference
    return interval


def _figures(found: Comparison) -> dict[str, Any]:
    """What a comparison found, by column; the ends of an interval are columns of their own."""
    figures = {**vars(found), "verdict": found.verdict, "why": found.why}
    for name in INTERVALS:
        low, high = figures[name] or (None, None)
        figures |= {f"{name}_low": low, f"{name}_high": high}
    return figures


@dataclass(frozen=True)
class Sides:
    """What is compared in a campaign, of either side: machine to the number of its values, the first one used first."""

    campaign: str
    baseline: Mapping[str, int]
    candidate: Mapping[str, int]

    @property
    def first_baseline(self) -> int:
        """The number of the baseline on its first machine."""
        return next(iter(self.baseline.values()))

    @property
    def first_candidate(self) -> int:
        """The number of the candidate on its first machine."""
        return next(iter(self.candidate.values()))

    @cached_property
    def pairs(self) -> dict[str, Pair]:
        """Both sides within each machine that ran both."""
        return {
            machine: (number, self.candidate[machine])
            for machine, number in self.baseline.items()
            if machine in self.candidate
        }


@dataclass(frozen=True)
class Compared:
    """What two sides show, p-values uncorrected: within each machine that ran both, and over all machines of either."""

    sides: Sides
    within: Mapping[str, Comparison]
    overall: Comparison


def against_baselines(values: Values) -> list[Sides]:
    """Every metric of every cell that has values, and of its baseline where that has some, too. The values are numbered
    by cell and machine."""
    about = values.about
    names = ("campaign", "model", "environment", "workload", "metric", "machine")
    known: dict[tuple[str, ...], dict[str, int]] = {}
    for number, (*key, machine) in enumerate(zip(*map(about.get, names), strict=True)):
        known.setdefault(tuple(key), {})[machine] = number
    found = []
    for (campaign, model, environment, workload, metric), candidate in known.items():
        against = values.campaigns[campaign].campaign.baseline
        baseline = known.get((campaign, model, against, workload, metric))
        if environment != against and baseline is not None:
            found.append(Sides(campaign, baseline, candidate))
    return found


def compare_groups(
    baseline: pd.DataFrame,
    candidate: pd.DataFrame,
    reviewed: ReviewedCampaign,
    margin: Margin,
) -> Comparison | None:
    """Some rows of a campaign's table of runs against others, p-values uncorrected. They have values of one metric;
    None where one side has none."""
    if baseline.empty or candidate.empty:
        return None
    name = reviewed.campaign.name
    both = pd.concat([baseline.assign(side=0), candidate.assign(side=1)])
    values = Values.of(both, {name: reviewed}, ["side", "machine"])
    sides: tuple[dict[str, int], dict[str, int]] = ({}, {})
    machines = values.first("machine")
    for number, side in enumerate(values.rows["side"].iloc[values.starts]):
        sides[side][machines[number]] = number
    (found,) = compare_sides(values, [Sides(name, *sides)], {name: margin})
    return found.overall


def compare_sides(
    values: Values, sides: Sequence[Sides], margins: Mapping[str, Margin]
) -> list[Compared]:
    """Each candidate against its baseline, within the margin of the campaign."""
    pairs = [pair for both in sides for pair in both.pairs.values()]
    within = dict(zip(pairs, compare_pairs(values, pairs, margins), strict=True))
    found = []
    for both in sides:
        by_machine = {machine: within[pair] for machine, pair in both.pairs.items()}
        overall = _overall(values, both, by_machine, margins[both.campaign])
        found.append(Compared(both, by_machine, overall))
    return found


def _overall(
    values: Values, both: Sides, within: Mapping[str, Comparison], margin: Margin
) -> Comparison:
    """The comparison over all machines of both sides. Where none of them ran both, all runs are described as blocks: a
    difference between machines cannot be told from one between the sides."""
    machines = {*both.baseline, *both.candidate}
    if len(machines) == 1:
        return within[machines.pop()]
    one, other = list(both.baseline.values()), list(both.candidate.values())
    metric = values.metrics[other[0]]
    parts = list(within.values())
    if not parts:
        apart = compare(
            _sample(values, one),
            _sample(values, other),
            order="blocked",
            margin_percent=margin.percent,
            margin_declared=margin.declared,
            direction=metric.direction,
            unit=metric.unit,
        )
        return replace(apart, machines=len(machines))
    found = parts[0]
    if len(parts) > 1:
        found = over_machines(parts, direction=metric.direction, unit=metric.unit)
    runs = int(values.sizes[one + other].sum())
    return replace(found, left_out=runs - found.n_baseline - found.n_candidate)


def _about(both: Sides, values: Values, machine: str | None = None) -> dict[str, Any]:
    """What a row of a comparison is about."""
    baseline, candidate = both.first_baseline, both.first_candidate
    shared = ("campaign", "model", "workload", "metric", "unit", "family")
    return {
        **{name: values.about[name][candidate] for name in shared},
        "baseline": values.about["environment"][baseline],
        "candidate": values.about["environment"][candidate],
        "machine": machine,
    }


def compare_pairs(
    values: Values,
    pairs: Sequence[Pair],
    margins: Mapping[str, Margin],
    *,
    in_rounds: bool = True,
) -> list[Comparison]:
    """Each baseline against its candidate within the margin of the candidate's campaign, p-values uncorrected. Pairs of
    one design are worked out at once.

    Without `in_rounds` neither rounds nor times are looked at: the sides are of different campaigns.
    """
    by_runs: dict[tuple[bytes, bytes], Design] = {}
    of_design: dict[Design, list[int]] = {}
    for place, pair in enumerate(pairs):
        # The rounds and times of runs are those of every metric that has values in the same runs.
        one, other = (values.runs[values.part(number)].tobytes() for number in pair)
        if (one, other) not in by_runs:
            by_runs[one, other] = _design(values, pair, in_rounds=in_rounds)
        of_design.setdefault(by_runs[one, other], []).append(place)
    found: dict[int, Comparison] = {}
    for design, places in of_design.items():
        same = [pairs[place] for place in places]
        found |= zip(places, _of_design(values, design, same, margins), strict=True)
    return [found[place] for place in range(len(pairs))]


def _design(values: Values, pair: Pair, *, in_rounds: bool) -> Design:
    """How two numbers are compared, as the order of their runs allows."""
    if not in_rounds:
        one, other = (
            replace(_sample(values, [number]), rounds=(), times=()) for number in pair
        )
        return design_of(one, other, "as-published")
    one, other = (_sample(values, [number]) for number in pair)
    column = values.column("order")
    orders = {order for number in pair for order in column[values.part(number)]}
    return design_of(one, other, orders.pop() if len(orders) == 1 else "as-published")


def _sample(values: Values, numbers: Sequence[int]) -> Sample:
    """The values of numbers together, in order of time, with their rounds, times and servers. A repeat stands outside
    of the rounds."""
    places = np.concatenate([np.r_[values.part(number)] for number in numbers])
    places = places[np.argsort(values.rows.index[places])]
    return Sample(
        values=tuple(values.figures[places].tolist()),
        rounds=tuple(values.rounds[places]),
        times=tuple(values.times[places].tolist()),
        servers=tuple(values.column("server")[places]),
    )


def _of_design(
    values: Values,
    design: Design,
    pairs: Sequence[Pair],
    margins: Mapping[str, Margin],
) -> Iterator[Comparison]:
    """Comparisons of one design, in the order given."""
    one, other = (values.block(np.array(side)) for side in zip(*pairs, strict=True))
    candidates = [candidate for _, candidate in pairs]
    metrics = [values.metrics[number] for number in candidates]
    margin = [margins[name] for name in values.first("campaign")[candidates]]
    columns = compare_many(
        one,
        other,
        design,
        margin_percent=np.array([each.percent for each in margin]),
        directions=[metric.direction for metric in metrics],
        units=[metric.unit for metric in metrics],
        resolutions=np.array([resolution_of(row) for row in np.hstack([one, other])]),
    )
    figures = zip(*(column.tolist() for column in columns.values()), strict=True)
    for each, row in zip(margin, figures, strict=True):
        found = dict(zip(columns, row, strict=True))
        yield comparison_of(found, margin_declared=each.declared)


def machines_of(reviewed: ReviewedCampaign, include: Include) -> tuple[str, ...]:
    """The machines of the runs that are asked for, the first one used first."""
    if include == "all":
        return tuple(dict.fromkeys(map(machine_of, reviewed.campaign.records)))
    return reviewed.machines
