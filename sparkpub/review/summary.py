"""Statistics of campaigns: every cell, every comparison of environments, and repeats of whole campaigns.

Families. Looking at many differences finds some by chance, so p-values are corrected (Holm) over a family, per
campaign. Tests that answer a question of the study form the family `primary`. Metrics that restate another
(`derived_from`), that no direction makes better, that describe the machine's state, or that are further summaries of
a distribution (its median and P99 stay primary) form the family `secondary`: exploratory, uncorrected, and labelled so.
Trends and order effects are corrected over the primary metrics.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, TypeVar

from sparkpub.plan import coverage
from sparkpub.record.errors import CollectError, UsageError
from sparkpub.record.metrics import Metric
from sparkpub.record.record import Record, metric_of
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.review.statistics.compare import DETECTABLE_PERCENT, Comparison, adjust, compare, holm
from sparkpub.review.statistics.describe import ALPHA, MINIMUM_RUNS, RESAMPLES, SEED, Description, describe
from sparkpub.review.statistics.design import Declared
from sparkpub.review.statistics.design import Sample as Runs
from sparkpub.review.statistics.drift import OrderEffect, Trend, order_effect, trend
from sparkpub.review.statistics.outliers import far_from_median, grubbs

Family = Literal["primary", "secondary"]
Include = Literal["counted", "all"]
Key = tuple[str, str, str, str]
"""(model, environment, workload, metric)."""

MAX_CV_PERCENT, MIN_POWER, REPEAT_PERCENT = 5.0, 0.8, 5.0
"""The methodology's success criteria."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """What every row of the statistics is about."""

    campaign: str
    model: str
    workload: str
    metric: str
    unit: str
    family: Family


@dataclass(frozen=True, kw_only=True)
class CellStatistic(Description, Row):
    """One metric of one cell. `runs` (in order of time), `outliers` (Grubbs at 5 %, most extreme first) and
    `far_from_median` are run ids. Adjusted p-values are None in the secondary family."""

    environment: str
    runs: tuple[str, ...]
    outliers: tuple[str, ...]
    far_from_median: tuple[str, ...]
    trend: Trend
    trend_p_adjusted: float | None = None
    order_effect: OrderEffect | None = None
    order_effect_p_adjusted: float | None = None


@dataclass(frozen=True, kw_only=True)
class ComparisonRow(Comparison, Row):
    """One metric of one model and workload: environment `candidate` against environment `baseline`."""

    baseline: str
    candidate: str


@dataclass(frozen=True, kw_only=True)
class RepeatRow(Comparison, Row):
    """One metric of one cell in `campaign` against the same cell in campaign `against`; the margin is 5 %.

    `same_specification` is None where either campaign's records carry none.
    """

    against: str
    environment: str
    same_specification: bool | None


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
    campaigns: tuple[CampaignData, ...]
    cells: tuple[CellStatistic, ...]
    comparisons: tuple[ComparisonRow, ...]
    against: str | None = None
    repeats: tuple[RepeatRow, ...] = ()

    @cached_property
    def _cells(self) -> Mapping[tuple[str, ...], CellStatistic]:
        return {(row.campaign, row.model, row.environment, row.workload, row.metric): row for row in self.cells}

    def cell(self, campaign: str, model: str, environment: str, workload: str, metric: str) -> CellStatistic | None:
        """The statistics of one metric of one cell, None where it was not measured."""
        return self._cells.get((campaign, model, environment, workload, metric))

    @cached_property
    def criteria(self) -> tuple[Criterion, ...]:
        """The success criteria of the methodology, applied."""
        return tuple(_criteria(self))

    def document(self) -> dict[str, Any]:
        """As `sparkpub stats --json` prints it: JSON values, figures with 12 significant digits."""
        method = {
            "confidence": 1 - ALPHA,
            "minimum_runs": MINIMUM_RUNS,
            "bootstrap": {"resamples": RESAMPLES, "seed": SEED, "interval": "bootstrap-t"},
        }
        out = [{"run": run, "reason": reason} for run, reason in self.excluded.items()]
        return {"include": self.include, "excluded": out, "method": method} | {
            name: [row_document(row) for row in getattr(self, name)] for name in TABLES
        }


TABLES = ("cells", "comparisons", "repeats", "criteria")


def row_document(row: Any) -> dict[str, Any]:
    """A row as JSON values: what it is about first, then the figures, then verdict and why. Run ids stay out."""
    about = {item.name for item in fields(Row)} | {"environment", "baseline", "candidate", "against"}
    names = sorted((item.name for item in fields(row)), key=lambda name: name not in about)
    verdict = ("verdict", "why") if isinstance(row, Comparison) else ()
    return {name: _json(getattr(row, name)) for name in (*names, *verdict) if name != "runs"}


def _json(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.12g}") if math.isfinite(value) else None
    if isinstance(value, tuple):
        return [_json(item) for item in value]
    return row_document(value) if is_dataclass(value) else value


@dataclass(frozen=True)
class Sample:
    """One metric of one cell: its values in order of time, and the records they stand in."""

    metric: Metric
    family: Family
    records: list[Record] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    @cached_property
    def in_time(self) -> Runs:
        """The values with their rounds, repeats apart, and the times at which they started."""
        return runs_of(self.records, self.values)

    @property
    def interleaved(self) -> bool:
        """Whether the order of environments was reversed in every second iteration."""
        return all(record.plan.order == "interleaved" for record in self.records)


def statistics(
    dataset: Dataset,
    *,
    include: Include = "counted",
    excluded: Mapping[str, str] | None = None,
    campaign: str | None = None,
    against: str | None = None,
) -> Statistics:
    """Statistics of one campaign or all, without the runs in `excluded` (run id to reason) unless `include` is "all".

    `against` names a campaign that repeats `campaign`. Raises UsageError for a campaign that is not there, and where
    `against` leaves open what is compared.
    """
    for name in (campaign, against):
        if name is not None and name not in dataset.campaigns:
            raise UsageError(f"no campaign {name!r}", remedy=f"there are: {', '.join(dataset.campaigns) or 'none'}")
    chosen = tuple(
        data for name, data in dataset.campaigns.items() if (name != against if campaign is None else name == campaign)
    )
    if against is not None and (len(chosen) != 1 or campaign == against):
        raise UsageError("--against compares one campaign with another", remedy="name the first with --campaign")
    out = dict(excluded or {}) if include == "counted" else {}
    samples = [campaign_samples(data, out) for data in chosen]
    used = chosen if against is None else (*chosen, dataset.campaign(against))
    here = {stored.record.run_id for data in used for stored in data.runs}
    repeats: list[RepeatRow] = []
    if against is not None:
        repeats = _repeats(chosen[0], samples[0], against, campaign_samples(dataset.campaign(against), out))
    return Statistics(
        include,
        {run: reason for run, reason in out.items() if run in here},
        chosen,
        tuple(row for data, found in zip(chosen, samples, strict=True) for row in _cells(data, found)),
        tuple(row for data, found in zip(chosen, samples, strict=True) for row in _comparisons(data, found)),
        against,
        tuple(repeats),
    )


def campaign_samples(data: CampaignData, excluded: Collection[str] = ()) -> dict[Key, Sample]:
    """The values of every cell and metric that has any, cells in the order of the matrix."""
    present = {name for record in data.records for name in record.metrics}
    order = {} if data.matrix is None else {cell: rank for rank, cell in enumerate(data.matrix.cells())}
    found: dict[Key, Sample] = {}
    for record in sorted(data.records, key=lambda record: order.get(record.cell, len(order))):
        if record.run_id in excluded:
            continue
        for name, value in record.metrics.items():
            if value.value is not None:
                sample = found.get((*record.cell, name))
                if sample is None:
                    metric = metric_of(name, value)
                    sample = found[(*record.cell, name)] = Sample(metric, family_of(metric, present))
                sample.records.append(record)
                sample.values.append(value.value)
    return found


def family_of(metric: Metric, present: Collection[str] = ()) -> Family:
    """The family a metric's tests belong to (see Families above); `present` are the metrics of the campaign."""
    if metric.role == "derived":
        restates = any(name in present for name in metric.derived_from)
        return "secondary" if restates else "primary"
    return "primary" if metric.role == "primary" else "secondary"


def _about(campaign: str, key: Key, sample: Sample) -> dict[str, Any]:
    model, _, workload, metric = key
    return {"campaign": campaign, "model": model, "workload": workload, "metric": metric,
            "unit": sample.metric.unit, "family": sample.family}  # fmt: skip


def _cells(data: CampaignData, samples: Mapping[Key, Sample]) -> list[CellStatistic]:
    places = _places(data.records)
    rows = [_cell(data.name, key, sample, places) for key, sample in samples.items()]
    trends = holm([row.trend.p_value if row.family == "primary" else None for row in rows])
    effects = (row.order_effect if row.family == "primary" else None for row in rows)
    orders = holm([None if effect is None else effect.p_value for effect in effects])
    adjusted = zip(rows, trends, orders, strict=True)
    return [replace(row, trend_p_adjusted=p, order_effect_p_adjusted=q) for row, p, q in adjusted]


def _cell(campaign: str, key: Key, sample: Sample, places: Mapping[str, int]) -> CellStatistic:
    figures = vars(describe(sample.values))
    if sample.metric.unit == "°C":  # no true zero, so no relative spread
        figures = figures | {"cv_percent": None}
    runs = tuple(record.run_id for record in sample.records)
    return CellStatistic(
        **_about(campaign, key, sample),
        environment=key[1],
        runs=runs,
        outliers=tuple(runs[index] for index in grubbs(sample.values)),
        far_from_median=tuple(runs[index] for index in far_from_median(sample.values)),
        trend=trend(sample.values),
        order_effect=order_effect(sample.values, [places[run] for run in runs]) if sample.interleaved else None,
        **figures,
    )


def _places(records: Iterable[Record]) -> dict[str, int]:
    """Run id to the place (0 = first) of its environment in the round of its model, workload and iteration."""
    rounds: dict[tuple[str, str, int], list[str]] = defaultdict(list)
    places = {}
    for record in records:
        order = rounds[record.model, record.workload, record.iteration]
        if record.environment not in order:
            order.append(record.environment)
        places[record.run_id] = order.index(record.environment)
    return places


def runs_of(records: Sequence[Record], values: Sequence[float]) -> Runs:
    """Values with the rounds and times of their records. A round is one iteration of a model and workload."""
    rounds = [None if record.repeat_of else (record.model, record.workload, record.iteration) for record in records]
    times = [datetime.fromisoformat(record.started.value).timestamp() for record in records]
    return Runs(tuple(values), tuple(rounds), tuple(times))


def declared_order(records: Iterable[Record]) -> Declared:
    """The order that all of these records were planned in, `as-published` where they do not agree."""
    orders = {record.plan.order for record in records}
    return orders.pop() if len(orders) == 1 else "as-published"


def _compared(base: Sample, sample: Sample, margin: float) -> dict[str, Any]:
    order = declared_order([*base.records, *sample.records])
    metric = sample.metric
    found = compare(
        base.in_time, sample.in_time, order=order, margin_percent=margin, direction=metric.direction, unit=metric.unit
    )
    return vars(found)


def _repeated(base: Sample, sample: Sample) -> dict[str, Any]:
    """A cell against the same cell of an earlier campaign: time is what they differ in, so blocks are no fault."""
    metric = sample.metric
    found = compare(
        base.values,
        sample.values,
        order="as-published",
        margin_percent=REPEAT_PERCENT,
        direction=metric.direction,
        unit=metric.unit,
    )
    return vars(found)


def _comparisons(data: CampaignData, samples: Mapping[Key, Sample]) -> list[ComparisonRow]:
    baseline = data.baseline
    rows = []
    for key, sample in samples.items():
        model, environment, workload, metric = key
        base = samples.get((model, baseline, workload, metric))
        if base is not None and environment != baseline:
            figures = _about(data.name, key, sample) | _compared(base, sample, data.margin_percent)
            rows.append(ComparisonRow(baseline=baseline, candidate=environment, **figures))
    return _by_family(rows)


def _repeats(
    data: CampaignData, samples: Mapping[Key, Sample], against: str, others: Mapping[Key, Sample]
) -> list[RepeatRow]:
    rows = []
    for key in [key for key in samples if key in others]:
        sample, other = samples[key], others[key]
        specifications = {record.specification for record in (*sample.records, *other.records)}
        same = None if None in specifications else len(specifications) == 1
        figures = _about(data.name, key, sample) | _repeated(other, sample)
        rows.append(RepeatRow(against=against, environment=key[1], same_specification=same, **figures))
    return _by_family(rows)


R = TypeVar("R", ComparisonRow, RepeatRow)


def _by_family(rows: list[R]) -> list[R]:
    """The rows in their own order, the primary ones with Holm's correction; the others are exploratory."""
    primary = iter(adjust([row for row in rows if row.family == "primary"]))
    return [next(primary) if row.family == "primary" else row for row in rows]


def _criteria(found: Statistics) -> Iterator[Criterion]:
    """Variation, power and repeatability of every primary metric, and completeness of every campaign."""
    for row in (row for row in found.cells if row.family == "primary" and row.unit != "°C"):
        cell, cv = f"{row.model}/{row.environment}/{row.workload}", row.cv_percent
        met = None if cv is None else cv < MAX_CV_PERCENT
        why = f"coefficient of variation in percent, n = {row.n}"
        yield Criterion(row.campaign, "variation", cell, row.metric, cv, MAX_CV_PERCENT, met, why)
    for pair in (pair for pair in found.comparisons if pair.family == "primary"):
        cell, power = f"{pair.model}/{pair.candidate}/{pair.workload}", pair.power_10_percent
        met = None if power is None else power >= MIN_POWER
        why = f"power against {DETECTABLE_PERCENT:g} % at 5 %, n = {pair.n_baseline} and {pair.n_candidate}"
        yield Criterion(pair.campaign, "power", cell, pair.metric, power, MIN_POWER, met, why)
    for again in (again for again in found.repeats if again.family == "primary"):
        cell, value = f"{again.model}/{again.environment}/{again.workload}", again.difference_percent
        why = f"difference in percent from campaign {again.against}: {again.why}"
        met = _repeats_within(again)
        yield Criterion(again.campaign, "repeatability", cell, again.metric, value, REPEAT_PERCENT, met, why)
    if not found.repeats:
        why = f"no cell in common with {found.against}" if found.against else "no repeat was compared (--against)"
        for data in found.campaigns:
            yield Criterion(data.name, "repeatability", None, None, None, REPEAT_PERCENT, None, why)
    yield from map(_completeness, found.campaigns)


def _repeats_within(row: RepeatRow) -> bool | None:
    """True where the difference is shown to lie within the margin, False where its interval lies wholly beyond it."""
    if row.verdict == "equivalent":
        return True
    margin = REPEAT_PERCENT / 100 * abs(row.mean_baseline)
    beyond = row.ci95_difference is not None and (row.ci95_difference[0] > margin or row.ci95_difference[1] < -margin)
    return False if beyond and row.verdict != "undecided" else None


def _completeness(data: CampaignData) -> Criterion:
    done = planned = 0
    why = "no matrix says what was planned"
    if data.matrix is not None:
        try:
            counts = coverage.by_cell(data.matrix, data.records, data.quarantined)
            done, planned = sum(count.done for count in counts), sum(count.planned for count in counts)
            why = f"{done} of {planned} planned runs are done"
        except CollectError as error:
            why = error.what
    share, met = (100 * done / planned, done == planned) if planned else (None, None)
    return Criterion(data.name, "completeness", None, None, share, 100.0, met, why)
