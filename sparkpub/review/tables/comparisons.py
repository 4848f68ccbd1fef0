"""The table of comparisons: one row per metric of each cell whose environment is compared with the baseline.

Looking at many differences finds some by chance, so p-values are corrected (Holm) over a family: the primary metrics of
a campaign, and of each machine of a campaign that ran on several; secondary ones, exploratory, are a family apart.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from sparkpub.review.measured import (
    Margin,
    Measured,
    compared,
    machine_of,
    within_machines,
)
from sparkpub.review.reviewed import Cell, Include, ReviewedCampaign
from sparkpub.review.statistics.compare import (
    INTERVALS,
    Comparison,
    Design,
    adjust,
    compare_many,
    comparison_of,
    deciding_level,
    design_of,
)
from sparkpub.review.statistics.describe import ALPHA, resolution_of
from sparkpub.review.statistics.design import declared_order
from sparkpub.review.tables.cells import family_of
from sparkpub.review.tables.column import Column, Columns, TableRow, table_of

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
    "mean_baseline": Column("number", "Mean of the baseline over the runs compared"),
    "mean_candidate": Column("number", "Mean of the candidate over the runs compared"),
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
    "effect_size": Column("number", "Hedges' g"),
    "p_value": Column("number", "p of no difference"),
    "p_adjusted": Column("number", "The same, corrected over the family"),
    "equivalence_margin_percent": Column("number", "Margin within which a difference does not matter"),
    "margin_declared": Column("boolean", "Whether the margin was declared before the first run"),
    "equivalence_p": Column("number", "p of a difference beyond the margin"),
    "equivalence_p_adjusted": Column("number", "The same, corrected over the family"),
    "power": Column("number", "Power to show equivalence where there is no difference"),
    "runs_required": Column("count", "Runs a side, or rounds, that would show it with a power of 0.8"),
    "power_10_percent": Column("number", "Power to detect a difference of 10 %"),
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
Found = tuple[Mapping[str, Any], Comparison]
"""What a comparison is about, by column, and what it found."""


def comparisons(
    campaigns: Mapping[str, ReviewedCampaign], include: Include = "counted"
) -> pd.DataFrame:
    """Every comparison of the campaigns, cells in the order of the matrix.

    Behind those of a campaign that ran on several machines stand the comparisons within each machine."""
    found: list[Found] = []
    for reviewed in campaigns.values():
        asked = list(_asked(reviewed, include))
        found += adjusted(_over_all(asked, reviewed))
        machines = machines_of(reviewed, include)
        if len(machines) < 2:
            continue
        within = _within(asked, reviewed)
        for machine in machines:
            found += adjusted(within.get(machine, []))
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
    return table_of(columns, [{**about, **_figures(one)} for about, one in found])


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
class _Asked:
    """A metric of a cell that is to be compared with the baseline's."""

    cell: Cell
    baseline: Measured
    candidate: Measured

    @property
    def machines(self) -> set[str]:
        """The machines of both sides."""
        return {*self.baseline.machines, *self.candidate.machines}

    def about(
        self, reviewed: ReviewedCampaign, machine: str | None = None
    ) -> dict[str, Any]:
        """What a row of this comparison is about."""
        model, environment, workload = self.cell
        metric = self.candidate.metric
        return {
            "campaign": reviewed.campaign.name,
            "model": model,
            "workload": workload,
            "metric": metric.name,
            "unit": metric.unit,
            "family": family_of(metric, reviewed),
            "baseline": reviewed.campaign.baseline,
            "candidate": environment,
            "machine": machine,
        }


def _asked(reviewed: ReviewedCampaign, include: Include) -> Iterator[_Asked]:
    """Every metric of every cell that has values on both sides."""
    against = reviewed.campaign.baseline
    for cell, candidate in reviewed.measurements(include):
        model, environment, workload = cell
        if environment == against:
            continue
        other = (model, against, workload)
        baseline = reviewed.series((other,), candidate.metric.name, include)
        if baseline is not None and baseline.values:
            yield _Asked(cell, baseline, candidate)


def _margin(reviewed: ReviewedCampaign) -> Margin:
    """The campaign's own margin."""
    return Margin(reviewed.campaign.margin_percent, reviewed.campaign.margin_declared)


def _over_all(asked: Sequence[_Asked], reviewed: ReviewedCampaign) -> list[Found]:
    """Each comparison over all machines, p-values uncorrected."""
    together = _together([item for item in asked if len(item.machines) == 1], reviewed)
    rows: list[Found] = []
    for item in asked:
        found = together.get(id(item))
        if found is None:
            found = compared(item.baseline, item.candidate, _margin(reviewed))
        assert found is not None, "both sides have values"
        rows.append((item.about(reviewed), found))
    return rows


def _together(
    asked: Sequence[_Asked], reviewed: ReviewedCampaign
) -> dict[int, Comparison]:
    """Comparisons of runs of one machine, those of one design worked out at once; by the identity of what was asked."""
    designs: dict[tuple[str, ...], Design] = {}
    parts: dict[Design, list[_Asked]] = {}
    for item in asked:
        runs = [*item.baseline.records, *item.candidate.records]
        # The rounds and times of runs are those of every metric that has values in the same runs.
        key = (
            item.baseline.records[0].environment,
            *(record.run_id for record in runs),
        )
        if key not in designs:
            order = declared_order(runs)
            designs[key] = design_of(item.baseline.sample, item.candidate.sample, order)
        parts.setdefault(designs[key], []).append(item)
    found: dict[int, Comparison] = {}
    for design, items in parts.items():
        for item, comparison in zip(
            items, _of_design(items, design, reviewed), strict=True
        ):
            found[id(item)] = comparison
    return found


def _of_design(
    items: Sequence[_Asked], design: Design, reviewed: ReviewedCampaign
) -> Iterator[Comparison]:
    """Comparisons of one design, in the order given."""
    columns = compare_many(
        np.array([item.baseline.values for item in items]),
        np.array([item.candidate.values for item in items]),
        design,
        margin_percent=reviewed.campaign.margin_percent,
        directions=[item.candidate.metric.direction for item in items],
        units=[item.candidate.metric.unit for item in items],
        resolutions=np.array(
            [
                resolution_of([*item.baseline.values, *item.candidate.values])
                for item in items
            ]
        ),
    )
    for place in range(len(items)):
        figures = {name: column[place] for name, column in columns.items()}
        yield comparison_of(figures, margin_declared=reviewed.campaign.margin_declared)


def machines_of(reviewed: ReviewedCampaign, include: Include) -> tuple[str, ...]:
    """The machines of the runs that are asked for, the first one used first."""
    if include == "all":
        return tuple(dict.fromkeys(map(machine_of, reviewed.campaign.records)))
    return reviewed.machines


def _within(
    asked: Sequence[_Asked], reviewed: ReviewedCampaign
) -> dict[str, list[Found]]:
    """The comparisons within each machine, p-values uncorrected, by machine."""
    found: dict[str, list[Found]] = {}
    for item in asked:
        within = within_machines(item.baseline, item.candidate, _margin(reviewed))
        for machine, one in within.items():
            found.setdefault(machine, []).append((item.about(reviewed, machine), one))
    return found
