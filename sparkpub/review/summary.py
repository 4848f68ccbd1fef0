"""Statistics of campaigns: every cell, every comparison of environments, and repeats of whole campaigns.

Families. Looking at many differences finds some by chance, so p-values are corrected (Holm) over a family, per
campaign. Tests that answer a question of the study form the family `primary`. Metrics that restate another
(`derived_from`), that no direction makes better, that describe the machine's state, or that are further summaries of
a distribution (its median and P99 stay primary) form the family `secondary`: exploratory, uncorrected, and labelled so.
Trends are corrected over the primary metrics. A matrix that names its `primary` metrics decides itself which they are.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal, TypeVar

from sparkpub.plan import coverage
from sparkpub.record.errors import CollectError, UsageError
from sparkpub.record.metrics import Metric
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.review.frame import Frame, Group, Series, machine_of
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
    holm,
)
from sparkpub.review.statistics.describe import (
    ALPHA,
    MINIMUM_RUNS,
    RESAMPLES,
    SEED,
    Bootstrap,
    Description,
    Interval,
)
from sparkpub.review.statistics.drift import Trend
from sparkpub.review.statistics.pooling import pooled

Include = Literal["counted", "all"]

MAX_CV_PERCENT, MIN_POWER, REPEAT_PERCENT = 5.0, 0.8, 5.0
"""The methodology's success criteria."""
MEMORY_UNIT = "GiB"
"""Of metrics whose differences are pooled as they are: what an environment takes does not grow with the model."""


@dataclass(frozen=True, kw_only=True)
class CellStatistic(Description, Row):
    """One metric of one cell. `runs` are run ids in order of time.

    Of a campaign that ran on several machines `machines` are the ids of those of the cell, and `n_by_machine` their
    runs. The mean of a cell with several machines is that over machines, and its interval holds for machines like
    these; the spread is that within machines.

    `trend` is None but for primary metrics and memory, `trend_p_adjusted` None outside of the primary family.
    """

    environment: str
    runs: tuple[str, ...]
    trend: Trend | None
    trend_p_adjusted: float | None = None
    machines: tuple[str, ...] = ()
    n_by_machine: tuple[int, ...] = ()

    @property
    def cell(self) -> tuple[str, str, str]:
        """(model, environment, workload)."""
        return self.model, self.environment, self.workload

    @property
    def n_in_words(self) -> str:
        """`10`; of several machines with the runs of each: `24 on 3 machines (8, 8, 8)`."""
        if len(self.machines) < 2:
            return str(self.n)
        each = ", ".join(map(str, self.n_by_machine))
        return f"{self.n} on {len(self.machines)} machines ({each})"


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
    parts = [_part(frame, include) for frame in chosen]
    used = list(chosen)
    measured = [part.measured for part in parts]
    repeats: list[RepeatRow] = []
    if against is not None:
        other = known[against]
        used.append(other)
        repeats = _repeats(chosen[0], other, include)
        measured = [[*parts[0].measured, *_part(other, include).measured]]
    excluded: dict[str, str] = {}
    if include != "all":
        for frame in used:
            excluded |= frame.excluded
    return Statistics(
        include=include,
        excluded=excluded,
        completeness=tuple(part.completeness for part in parts),
        cells=tuple(row for part in parts for row in part.cells),
        comparisons=tuple(row for part in parts for row in part.comparisons),
        pooled=tuple(row for part in parts for row in part.pooled),
        against=against,
        repeats=tuple(repeats),
        effects=tuple(chain.from_iterable(map(effects, measured))),
        replications=tuple(chain.from_iterable(map(replications, measured))),
        measured={
            frame.campaign.name: part.measured
            for frame, part in zip(chosen, parts, strict=True)
        },
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


def statistics_of(frame: Frame, include: Include = "counted") -> Statistics:
    """The statistics of one campaign, which this process does not hold on to: of many campaigns they are large."""
    part = _recalled(frame, include)
    excluded = {} if include == "all" else frame.excluded
    measured = part.measured
    return Statistics(
        include=include,
        excluded=excluded,
        completeness=(part.completeness,),
        cells=tuple(part.cells),
        comparisons=tuple(part.comparisons),
        pooled=tuple(part.pooled),
        effects=tuple(effects(measured)),
        replications=tuple(replications(measured)),
        measured={frame.campaign.name: measured},
    )


@dataclass(frozen=True)
class _Part:
    """The statistics of one campaign."""

    cells: list[CellStatistic]
    comparisons: list[ComparisonRow]
    pooled: list[PooledRow]
    completeness: Criterion
    by_machine: list[MachineRow]
    """The comparisons within each machine; empty where there is only one."""
    machines: tuple[str, ...]

    @property
    def measured(self) -> list[Measured]:
        """Every comparison as one machine measured it."""
        if len(self.machines) == 1:
            (machine,) = self.machines
            return [Measured(machine, row) for row in self.comparisons]
        return [Measured(row.machine, row) for row in self.by_machine]


def _part(frame: Frame, include: Include) -> _Part:
    """The statistics of one campaign, worked out or recalled once in this process."""
    what = ("statistics", include, *sorted(frame.out.items()))
    return frame.campaign.memory.once(what, lambda: _recalled(frame, include))


def _recalled(frame: Frame, include: Include) -> _Part:
    """The statistics of one campaign, from its memory where they are known."""
    memory = frame.campaign.memory
    what = ("statistics", include, *sorted(frame.out.items()))
    document = memory.document(what)
    if document is None:
        comparisons = _comparisons(frame, include)
        part = _Part(
            _cells(frame, include),
            comparisons,
            list(_pooled(comparisons)),
            _completeness(frame.campaign),
            _by_machine(frame, include),
            _machines(frame, include),
        )
        memory.keep(what, _written(part))
        return part
    texts: Texts = {}
    return _Part(
        [_read(CellStatistic, values, texts) for values in document["cells"]],
        [_read(ComparisonRow, values, texts) for values in document["comparisons"]],
        [_read(PooledRow, values, texts) for values in document["pooled"]],
        _read(Criterion, document["completeness"], texts),
        [_read(MachineRow, values, texts) for values in document["by_machine"]],
        tuple(document["machines"]),
    )


def _written(part: _Part) -> dict[str, Any]:
    """The rows as JSON lists of their values, in the order of their fields."""
    return {
        "cells": [_values(row) for row in part.cells],
        "comparisons": [_values(row) for row in part.comparisons],
        "pooled": [_values(row) for row in part.pooled],
        "completeness": _values(part.completeness),
        "by_machine": [_values(row) for row in part.by_machine],
        "machines": part.machines,
    }


def _values(row: Any) -> list[Any]:
    values = [getattr(row, item.name) for item in fields(row)]
    return [_values(value) if is_dataclass(value) else value for value in values]


Kind = TypeVar("Kind")


Texts = dict[object, Any]
"""Texts and lists of texts that were read before: names stand in every row, and run ids in each of a cell."""


def _read(kind: type[Kind], values: list[Any], texts: Texts) -> Kind:
    """A row from the values of its fields. Lists were tuples, but for a trend."""
    given: dict[str, Any] = {}
    for item, value in zip(fields(kind), values, strict=True):  # type: ignore[arg-type]
        if item.name == "trend" and value is not None:
            given[item.name] = _read(Trend, value, texts)
        elif item.name == "runs":
            runs = tuple(texts.setdefault(run, run) for run in value)
            given[item.name] = texts.setdefault(runs, runs)
        elif isinstance(value, list):
            given[item.name] = tuple(value)
        elif isinstance(value, str):
            given[item.name] = texts.setdefault(value, value)
        else:
            given[item.name] = value
    return kind(**given)


def family_of(metric: Metric, frame: Frame) -> Family:
    """The family a metric's tests belong to (see Families above)."""
    matrix = frame.campaign.matrix
    if matrix is not None and matrix.primary:
        answers = metric.name in matrix.primary
    elif metric.role == "derived":
        answers = not any(name in frame.metrics for name in metric.derived_from)
    else:
        answers = metric.role == "primary"
    if answers:
        return "primary"
    return "secondary"


def _measured(frame: Frame, include: Include) -> Iterator[tuple[Group, Series]]:
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


def _cells(frame: Frame, include: Include) -> list[CellStatistic]:
    bootstrap = Bootstrap()
    rows = []
    for group, series in _measured(frame, include):
        rows.append(_cell(group, series, bootstrap))
    adjusted = holm([_tested_trend(row) for row in rows])
    return [
        replace(row, trend_p_adjusted=p) for row, p in zip(rows, adjusted, strict=True)
    ]


def _tested_trend(row: CellStatistic) -> float | None:
    """The p-value of the trend of a primary metric."""
    if row.family != "primary" or row.trend is None:
        return None
    return row.trend.p_value


def _cell(group: Group, series: Series, bootstrap: Bootstrap) -> CellStatistic:
    figures = dict(vars(series.description))
    parts = series.by_machine
    if len(group.frame.machines) > 1:
        figures["machines"] = tuple(parts)
        figures["n_by_machine"] = tuple(len(part.values) for part in parts.values())
    if len(parts) == 1:
        figures["ci95_bootstrap"] = bootstrap.interval(series.values)
    about = _about(group, series)
    found = None
    if about["family"] == "primary" or series.metric.memory_of is not None:
        found = series.trend
    if series.metric.unit == "°C":  # no true zero, so no relative spread
        figures["cv_percent"] = None
    return CellStatistic(
        **about,
        environment=group.cells[0][1],
        runs=tuple(record.run_id for record in series.records),
        trend=found,
        **figures,
    )


def _comparisons(frame: Frame, include: Include) -> list[ComparisonRow]:
    margin = frame.campaign.margin_percent
    rows = []
    for base, group, series in _compared(frame, include):
        found = frame.compared(base, group, series.metric.name, margin)
        if found is not None:
            sides = _sides(base, group)
            rows.append(ComparisonRow(**sides, **_about(group, series), **vars(found)))
    return by_family(rows)


def _by_machine(frame: Frame, include: Include) -> list[MachineRow]:
    """The comparisons within each machine of a campaign that ran on several: each machine is a family of its own."""
    machines = _machines(frame, include)
    if len(machines) == 1:
        return []
    margin = frame.campaign.margin_percent
    rows: dict[str, list[MachineRow]] = {machine: [] for machine in machines}
    for base, group, series in _compared(frame, include):
        within = frame.within(base, group, series.metric.name, margin)
        for machine, found in within.items():
            sides = _sides(base, group)
            about = _about(group, series)
            rows[machine].append(
                MachineRow(machine=machine, **sides, **about, **vars(found))
            )
    return list(chain.from_iterable(map(by_family, rows.values())))


def _machines(frame: Frame, include: Include) -> tuple[str, ...]:
    """The machines of the runs that are asked for, the first one used first."""
    if include == "all":
        return tuple(dict.fromkeys(map(machine_of, frame.campaign.records)))
    return frame.machines


def _compared(frame: Frame, include: Include) -> Iterator[tuple[Group, Group, Series]]:
    """Every metric of every cell that is compared: the cell of the baseline, the cell, and its values."""
    baseline = frame.campaign.baseline
    for group, series in _measured(frame, include):
        ((model, environment, workload),) = group.cells
        if environment != baseline:
            yield Group(frame, ((model, baseline, workload),), include), group, series


def _sides(baseline: Group, candidate: Group) -> dict[str, Any]:
    return {"baseline": baseline.cells[0][1], "candidate": candidate.cells[0][1]}


def _repeats(frame: Frame, against: Frame, include: Include) -> list[RepeatRow]:
    """A cell against the same cell of an earlier campaign: time is what they differ in, so blocks are no fault."""
    rows = []
    for group, series in _measured(frame, include):
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
        met = row.cv_percent < MAX_CV_PERCENT
    return Criterion(
        row.campaign,
        "variation",
        f"{row.model}/{row.environment}/{row.workload}",
        row.metric,
        row.cv_percent,
        MAX_CV_PERCENT,
        met,
        f"coefficient of variation in percent, n = {row.n}",
    )


def _power(row: ComparisonRow) -> Criterion:
    """Whether a comparison would have shown a difference of ten percent."""
    met = None
    if row.power_10_percent is not None:
        met = row.power_10_percent >= MIN_POWER
    runs = f"n = {row.n_baseline} and {row.n_candidate}"
    return Criterion(
        row.campaign,
        "power",
        f"{row.model}/{row.candidate}/{row.workload}",
        row.metric,
        row.power_10_percent,
        MIN_POWER,
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
