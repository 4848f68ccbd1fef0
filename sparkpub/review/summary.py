"""Statistics of campaigns: the tables of cells and comparisons, and what follows from them.

Cells pooled, campaigns against each other and over machines, and the success criteria of the methodology.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal

from sparkpub.plan import coverage
from sparkpub.record.errors import CollectError, UsageError
from sparkpub.review.capacity import Capacity, capacities
from sparkpub.review.checks.spread import HIGH_VARIATION_PERCENT, POWER
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.review.frame import Frame, Group, Series
from sparkpub.review.grouping import grouped
from sparkpub.review.replications import (
    EffectRow,
    Measured,
    ReplicationRow,
    effects,
    replications,
)
from sparkpub.review.rows import (
    ComparisonRow,
    Family,
    MachineRow,
    RepeatRow,
    Row,
    by_family,
)
from sparkpub.review.statistics.compare import (
    DETECTABLE_PERCENT,
    Comparison,
    compare,
)
from sparkpub.review.statistics.describe import (
    ALPHA,
    MINIMUM_RUNS,
    RESAMPLES,
    SEED,
    Interval,
)
from sparkpub.review.statistics.pooling import pooled
from sparkpub.review.tables.cells import (
    CellStatistic,
    Include,
    cell_rows,
    cells,
    family_of,
)
from sparkpub.review.tables.comparisons import (
    comparison_rows,
    comparisons,
    machines_of,
)
from sparkpub.review.tables.runs import runs

REPEAT_PERCENT = 5.0
"""The methodology's margin for a repeated campaign; its other criteria are thresholds of the checks."""
MEMORY_UNIT = "GiB"
"""Of metrics whose differences are pooled as they are: what an environment takes does not grow with the model."""


@dataclass(frozen=True, kw_only=True)
class PooledRow:
    """One metric over all cells of a campaign that compare the same two environments.

    `effect` is the difference, in the metric's unit for memory and in percent of each cell's baseline otherwise
    (`unit`), each cell weighted by its precision; see `statistics.pooling`. `left_out` counts the cells whose runs are
    worth too few. Exploratory: its p is not corrected.
    """

    campaign: str
    metric: str
    unit: str
    family: Family
    baseline: str
    candidate: str
    cells: int
    left_out: int
    effect: float
    ci95_effect: Interval
    error: float
    df: float
    t: float
    p_value: float
    q: float
    heterogeneity_p: float


@dataclass(frozen=True)
class Criterion:
    """One success criterion of the methodology applied to one primary metric of a cell (`model/environment/workload`,
    for power the candidate's), or to a whole campaign. `met` is None where the data do not decide."""

    campaign: str
    criterion: Literal["variation", "power", "repeatability", "completeness"]
    cell: str | None
    metric: str | None
    value: float | None
    threshold: float
    met: bool | None
    why: str


@dataclass(frozen=True)
class Statistics:
    """What `sparkpub stats` says. `excluded` maps runs left out to the reason; empty where all were included."""

    include: Include
    excluded: Mapping[str, str]
    completeness: tuple["Criterion", ...]
    cells: tuple[CellStatistic, ...]
    comparisons: tuple[ComparisonRow, ...]
    pooled: tuple[PooledRow, ...]
    """What the cells of each campaign show together."""
    against: str | None = None
    repeats: tuple[RepeatRow, ...] = ()
    effects: tuple[EffectRow, ...] = ()
    replications: tuple[ReplicationRow, ...] = ()
    measured: Mapping[str, Sequence[Measured]] = field(default_factory=dict)
    """Campaign to its comparisons as its machines measured them."""
    capacities: tuple[Capacity, ...] = ()
    """The highest arrival rate of every sweep at each limit of the time to first token."""

    def over(
        self, campaigns: Sequence[str]
    ) -> tuple[list[EffectRow], list[ReplicationRow]]:
        """What every machine of these campaigns found, and what all of them show together."""
        measured = [self.measured.get(name, ()) for name in campaigns]
        together = list(chain.from_iterable(measured))
        return effects(together), replications(together)

    @cached_property
    def _cells(self) -> Mapping[tuple[str, ...], CellStatistic]:
        return {(row.campaign, *row.cell, row.metric): row for row in self.cells}

    def cell(
        self, campaign: str, model: str, environment: str, workload: str, metric: str
    ) -> CellStatistic | None:
        """The statistics of one metric of one cell, None where it was not measured."""
        return self._cells.get((campaign, model, environment, workload, metric))

    @cached_property
    def criteria(self) -> tuple[Criterion, ...]:
        """The success criteria of the methodology, applied."""
        return tuple(chain.from_iterable(self.criteria_by_kind))

    @property
    def criteria_by_kind(self) -> tuple[list[Criterion], ...]:
        """The same in the order of `criteria`: variation, power, repeatability and completeness."""
        return (
            [
                _variation(row)
                for row in self.cells
                if row.family == "primary" and row.unit != "°C"
            ],
            [_power(pair) for pair in self.comparisons if pair.family == "primary"],
            _repeatabilities(self),
            list(self.completeness),
        )

    def document(self) -> dict[str, Any]:
        """As `sparkpub stats --json` prints it: JSON values, figures with 12 significant digits."""
        return heading(self.include, self.excluded) | {
            name: [row_document(row) for row in getattr(self, name)] for name in TABLES
        }


TABLES = (
    "cells",
    "comparisons",
    "pooled",
    "repeats",
    "effects",
    "replications",
    "capacities",
    "criteria",
)


def heading(include: Include, excluded: Mapping[str, str]) -> dict[str, Any]:
    """What stands before the tables of `sparkpub stats --json`."""
    out = [{"run": run, "reason": reason} for run, reason in excluded.items()]
    bootstrap = {"resamples": RESAMPLES, "seed": SEED, "interval": "bootstrap-t"}
    method = {
        "confidence": 1 - ALPHA,
        "minimum_runs": MINIMUM_RUNS,
        "bootstrap": bootstrap,
    }
    return {"include": include, "excluded": out, "method": method}


def row_document(row: Any) -> dict[str, Any]:
    """A row as JSON values: what it is about first, then the figures, then verdict and why. Run ids stay out."""
    about = {item.name for item in fields(Row)} | {
        "environment",
        "baseline",
        "candidate",
        "against",
    }
    names = sorted(
        (item.name for item in fields(row)), key=lambda name: name not in about
    )
    verdict = ("verdict", "why") if isinstance(row, Comparison) else ()
    return {
        name: _json(getattr(row, name)) for name in (*names, *verdict) if name != "runs"
    }


def _json(value: Any) -> Any:
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return float(f"{value:.12g}")
    if isinstance(value, tuple):
        return [_json(item) for item in value]
    if is_dataclass(value):
        return row_document(value)
    return value


def statistics(
    dataset: Dataset,
    frames: Mapping[str, Frame] | None = None,
    *,
    include: Include = "counted",
    campaign: str | None = None,
    against: str | None = None,
) -> Statistics:
    """Statistics of one campaign or all, over the runs that count in `frames` (those of a review, by campaign) or, with
    `include` "all", over every recorded run.

    `against` names a campaign that repeats `campaign`. Raises UsageError for a campaign that is not there, and where
    `against` leaves open what is compared.
    """
    known = frames or {name: Frame(data) for name, data in dataset.campaigns.items()}
    chosen = chosen_frames(dataset, known, campaign, against)
    asked = {frame.campaign.name: frame for frame in chosen}
    everything = dict(asked)
    if against is not None:
        everything[against] = known[against]
    rows = list(comparison_rows(comparisons(everything, include)))
    measured = _measured(rows, everything.values(), include)
    groups = list(measured.values())
    repeats: list[RepeatRow] = []
    if against is not None:
        groups = [list(chain.from_iterable(groups))]
        repeats = _repeats(chosen[0], known[against], include)
    excluded: dict[str, str] = {}
    if include != "all":
        for frame in everything.values():
            excluded |= frame.excluded
    overall = [
        row for row in rows if row.campaign in asked and not isinstance(row, MachineRow)
    ]
    rows_of_cells = tuple(cell_rows(cells(runs(asked), asked, include)))
    return Statistics(
        include=include,
        excluded=excluded,
        completeness=tuple(_completeness(frame.campaign) for frame in chosen),
        cells=rows_of_cells,
        capacities=capacities(asked, rows_of_cells),
        comparisons=tuple(overall),
        pooled=tuple(_pooled(overall)),
        against=against,
        repeats=tuple(repeats),
        effects=tuple(chain.from_iterable(map(effects, groups))),
        replications=tuple(chain.from_iterable(map(replications, groups))),
        measured={name: measured[name] for name in asked},
    )


def chosen_frames(
    dataset: Dataset,
    frames: Mapping[str, Frame],
    campaign: str | None,
    against: str | None,
) -> list[Frame]:
    """The campaigns that are asked for, that of `against` apart. Raises UsageError as `statistics` does."""
    for name in (campaign, against):
        if name is not None and name not in dataset.campaigns:
            raise UsageError(
                f"no campaign {name!r}",
                remedy=f"there are: {', '.join(dataset.campaigns) or 'none'}",
            )
    wanted = [campaign] if campaign else [name for name in frames if name != against]
    if against is not None and (len(wanted) != 1 or campaign == against):
        raise UsageError(
            "--against compares one campaign with another",
            remedy="name the first with --campaign",
        )
    return [frames[name] for name in wanted]


def _measured(
    rows: Sequence[ComparisonRow], frames: Iterable[Frame], include: Include
) -> dict[str, list[Measured]]:
    """Campaign to every comparison as one machine measured it."""
    found: dict[str, list[Measured]] = {}
    for frame in frames:
        name = frame.campaign.name
        mine = [row for row in rows if row.campaign == name]
        machines = machines_of(frame, include)
        if len(machines) == 1:
            found[name] = [Measured(machines[0], row) for row in mine]
            continue
        found[name] = [
            Measured(row.machine, row) for row in mine if isinstance(row, MachineRow)
        ]
    return found


def _series(frame: Frame, include: Include) -> Iterator[tuple[Group, Series]]:
    """Every metric of every cell that has values, cells in the order of the matrix."""
    for cell in frame.recorded:
        group = Group(frame, (cell,), include)
        for metric in group.metrics:
            series = group.series(metric)
            if series is not None and series.values:
                yield group, series


def _about(group: Group, series: Series) -> dict[str, Any]:
    ((model, _, workload),) = group.cells
    return {
        "campaign": group.frame.campaign.name,
        "model": model,
        "workload": workload,
        "metric": series.metric.name,
        "unit": series.metric.unit,
        "family": family_of(series.metric, group.frame),
    }


def _repeats(frame: Frame, against: Frame, include: Include) -> list[RepeatRow]:
    """A cell against the same cell of an earlier campaign: time is what they differ in, so blocks are no fault."""
    rows = []
    for group, series in _series(frame, include):
        other = against.series(group.cells, series.metric.name, include)
        if other is None or not other.values:
            continue
        specifications = {
            record.specification for record in (*series.records, *other.records)
        }
        found = compare(
            other.values,
            series.values,
            order="as-published",
            margin_percent=REPEAT_PERCENT,
            direction=series.metric.direction,
            unit=series.metric.unit,
        )
        same: bool | None = len(specifications) == 1
        if None in specifications:
            same = None
        rows.append(
            RepeatRow(
                against=against.campaign.name,
                environment=group.cells[0][1],
                same_specification=same,
                **_about(group, series),
                **vars(found),
            )
        )
    return by_family(rows)


def _pooled(rows: Sequence[ComparisonRow]) -> Iterator[PooledRow]:
    """Every metric over the cells of a campaign, where there are several cells to pool."""
    groups = grouped(
        rows, lambda row: (row.campaign, row.metric, row.baseline, row.candidate)
    )
    for group in groups.values():
        first = group[0]
        absolute = first.unit == MEMORY_UNIT
        effects = [row.estimate if absolute else row.estimate_percent for row in group]
        known = [effect for effect in effects if effect is not None]
        together = pooled(known)
        if together is None:
            continue
        yield PooledRow(
            campaign=first.campaign,
            metric=first.metric,
            unit=first.unit if absolute else "%",
            family=first.family,
            baseline=first.baseline,
            candidate=first.candidate,
            cells=together.cells,
            left_out=len(group) - together.cells,
            effect=together.difference,
            ci95_effect=together.ci95,
            error=together.error,
            df=together.df,
            t=together.t,
            p_value=together.p_value,
            q=together.q,
            heterogeneity_p=together.heterogeneity_p,
        )


def _repeatabilities(found: Statistics) -> list[Criterion]:
    """Whether the primary metrics were the same in another campaign, or for each campaign why nobody knows."""
    if found.repeats:
        primary = [row for row in found.repeats if row.family == "primary"]
        return [_repeatability(row) for row in primary]
    why = "no repeat was compared (--against)"
    if found.against:
        why = f"no cell in common with {found.against}"
    return [
        replace(
            complete,
            criterion="repeatability",
            value=None,
            threshold=REPEAT_PERCENT,
            met=None,
            why=why,
        )
        for complete in found.completeness
    ]


def _variation(row: CellStatistic) -> Criterion:
    """Whether the runs of a cell vary by less than the methodology allows."""
    met = None
    if row.cv_percent is not None:
        met = row.cv_percent < HIGH_VARIATION_PERCENT
    return Criterion(
        row.campaign,
        "variation",
        f"{row.model}/{row.environment}/{row.workload}",
        row.metric,
        row.cv_percent,
        HIGH_VARIATION_PERCENT,
        met,
        f"coefficient of variation in percent, n = {row.n}",
    )


def _power(row: ComparisonRow) -> Criterion:
    """Whether a comparison would have shown a difference of ten percent."""
    met = None
    if row.power_10_percent is not None:
        met = row.power_10_percent >= POWER
    runs = f"n = {row.n_baseline} and {row.n_candidate}"
    return Criterion(
        row.campaign,
        "power",
        f"{row.model}/{row.candidate}/{row.workload}",
        row.metric,
        row.power_10_percent,
        POWER,
        met,
        f"power against {DETECTABLE_PERCENT:g} % at 5 %, {runs}",
    )


def _repeatability(row: RepeatRow) -> Criterion:
    """Whether a cell was the same in another campaign."""
    return Criterion(
        row.campaign,
        "repeatability",
        f"{row.model}/{row.environment}/{row.workload}",
        row.metric,
        row.difference_percent,
        REPEAT_PERCENT,
        _repeats_within(row),
        f"difference in percent from campaign {row.against}: {row.why}",
    )


def _repeats_within(row: RepeatRow) -> bool | None:
    """True where the difference is shown to lie within the margin, False where its interval lies wholly beyond it."""
    if row.verdict == "equivalent":
        return True
    margin = REPEAT_PERCENT / 100 * abs(row.mean_baseline)
    beyond = row.ci95_difference is not None and (
        row.ci95_difference[0] > margin or row.ci95_difference[1] < -margin
    )
    return False if beyond and row.verdict != "undecided" else None


def _completeness(data: CampaignData) -> Criterion:
    """How much of what was planned is done."""
    share: float | None = None
    met: bool | None = None
    why = "no matrix says what was planned"
    if data.matrix is not None:
        try:
            counts = coverage.by_cell(data.matrix, data.records, data.quarantined)
        except CollectError as error:
            counts = []
            why = error.what
        done = sum(count.done for count in counts)
        planned = sum(count.planned for count in counts)
        if planned:
            share = 100 * done / planned
            met = done == planned
            why = f"{done} of {planned} planned runs are done"
    return Criterion(data.name, "completeness", None, None, share, 100.0, met, why)
