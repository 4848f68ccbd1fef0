"""Statistics of campaigns: every cell, every comparison of environments, and the methodology's success criteria.

Families. Looking at many differences finds some by chance, so p-values are corrected (Holm) over a family, per
campaign. Tests that answer a question of the study form the family `primary`. Metrics that restate another
(`derived_from`), that no direction makes better, that describe the machine's state, or that are further summaries of
a distribution (its median and P99 stay primary) form the family `secondary`, corrected among themselves: nothing goes
uncorrected, and they do not weaken the primary tests. Trends over run order are corrected over the primary metrics.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

from sparkpub import coverage
from sparkpub.analysis.compare import DETECTABLE_PERCENT, Comparison, adjust, compare, holm
from sparkpub.analysis.describe import Description, describe
from sparkpub.analysis.drift import Trend, trend
from sparkpub.analysis.outliers import grubbs
from sparkpub.dataset import CampaignData, Dataset
from sparkpub.errors import UsageError
from sparkpub.metrics import METRICS, Metric
from sparkpub.record import Record, metric_of

Family = Literal["primary", "secondary"]
Include = Literal["counted", "all"]
Key = tuple[str, str, str, str]
"""(model, environment, workload, metric)."""

MAX_CV_PERCENT, MIN_POWER, REPEAT_PERCENT = 5.0, 0.8, 5.0
"""Success criteria of the methodology: variation below 5 %, enough power against 10 %, repeats within 5 %."""
_MARGIN_PERCENT = 1.0
_STATE = ("gpu_temp_", "gpu_power_", "gpu_clock_", "gpu_utilization_", "device_used_before_")
_FURTHER_SUMMARIES = ("_mean_ms", "_min_ms", "_p90_ms", "_p95_ms", "_max_ms")


@dataclass(frozen=True, kw_only=True)
class CellStatistic(Description):
    """One metric of one cell. `runs` and `outliers` are run ids, in order of time and most extreme first."""

    campaign: str
    model: str
    environment: str
    workload: str
    metric: str
    unit: str
    family: Family
    runs: tuple[str, ...]
    outliers: tuple[str, ...]
    trend: Trend
    trend_p_adjusted: float | None = None


@dataclass(frozen=True, kw_only=True)
class ComparisonRow(Comparison):
    """One metric of one model and workload: environment `candidate` against environment `baseline`."""

    campaign: str
    model: str
    workload: str
    metric: str
    unit: str
    baseline: str
    candidate: str
    family: Family


@dataclass(frozen=True, kw_only=True)
class RepeatRow(Comparison):
    """One metric of one cell in `campaign` against the same cell in campaign `against`; the margin is 5 %.

    `same_specification` is None where either campaign's records carry none.
    """

    campaign: str
    against: str
    model: str
    environment: str
    workload: str
    metric: str
    unit: str
    family: Family
    same_specification: bool | None


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """One success criterion applied: `met` is None where the data do not decide. `cell` is `model/environment/workload`
    or, for power, `model/candidate/workload`."""

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
    cells: tuple[CellStatistic, ...]
    comparisons: tuple[ComparisonRow, ...]
    repeats: tuple[RepeatRow, ...] = ()
    criteria: tuple[Criterion, ...] = ()

    @cached_property
    def _cells(self) -> Mapping[tuple[str, ...], CellStatistic]:
        return {(row.campaign, row.model, row.environment, row.workload, row.metric): row for row in self.cells}

    def cell(self, campaign: str, model: str, environment: str, workload: str, metric: str) -> CellStatistic | None:
        """The statistics of one metric of one cell, None where it was not measured."""
        return self._cells.get((campaign, model, environment, workload, metric))

    def document(self) -> dict[str, Any]:
        """As `sparkpub stats --json` prints it: JSON values, figures with 12 significant digits."""
        out = [{"run": run, "reason": reason} for run, reason in self.excluded.items()]
        return {"include": self.include, "excluded": out} | {
            name: [row_document(row) for row in getattr(self, name)]
            for name in ("cells", "comparisons", "repeats", "criteria")
        }


def row_document(row: Any) -> dict[str, Any]:
    """A row as JSON values: its own identity first, then the figures it inherits, then verdict and why."""
    inherited = {item.name for base in type(row).__mro__[1:] if is_dataclass(base) for item in fields(base)}
    names = sorted((item.name for item in fields(row)), key=inherited.__contains__)
    verdict = ("verdict", "why") if isinstance(row, Comparison) else ()
    return {name: _plain(getattr(row, name)) for name in (*names, *verdict) if name != "runs"}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return row_document(value) if is_dataclass(value) else value


@dataclass(frozen=True)
class Sample:
    """One metric of one cell: its values in order of time, and the records they stand in."""

    metric: Metric
    family: Family
    records: list[Record] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


def statistics(
    dataset: Dataset,
    *,
    include: Include = "counted",
    excluded: Mapping[str, str] | None = None,
    campaign: str | None = None,
    against: str | None = None,
) -> Statistics:
    """Statistics of one campaign or all, without the runs in `excluded` (run id to reason) unless `include` is "all".

    `against` names a campaign that repeats `campaign`. Raises RecordError for a campaign that is not there and
    UsageError where `against` leaves open what is compared.
    """
    names = [campaign] if campaign is not None else [name for name in dataset.campaigns if name != against]
    chosen = [dataset.campaign(name) for name in names]
    if against is not None and (len(chosen) != 1 or against == campaign):
        raise UsageError("--against compares one campaign with another", remedy="name the first with --campaign")
    out = dict(excluded or {}) if include == "counted" else {}
    samples = {data.name: campaign_samples(data, out) for data in chosen}
    cells = [row for data in chosen for row in _cells(data, samples[data.name])]
    comparisons = [row for data in chosen for row in _comparisons(data, samples[data.name])]
    repeats = [
        row
        for data in chosen
        if against is not None
        for row in _repeats(data, samples[data.name], against, campaign_samples(dataset.campaign(against), out))
    ]
    here = {stored.record.run_id for data in chosen for stored in data.runs}
    return Statistics(
        include,
        {run: reason for run, reason in out.items() if run in here},
        tuple(cells),
        tuple(comparisons),
        tuple(repeats),
        tuple(_criteria(chosen, cells, comparisons, repeats)),
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
    further = metric.name in METRICS and metric.name.endswith(_FURTHER_SUMMARIES)
    restates = any(name in present for name in metric.derived_from)
    state = metric.name.startswith(_STATE)
    return "secondary" if further or restates or state or metric.direction == "neither" else "primary"


def _cells(data: CampaignData, samples: Mapping[Key, Sample]) -> list[CellStatistic]:
    rows = [_cell(data.name, key, sample) for key, sample in samples.items()]
    adjusted = holm([row.trend.p_value if row.family == "primary" else None for row in rows])
    return [replace(row, trend_p_adjusted=p) for row, p in zip(rows, adjusted, strict=True)]


def _cell(campaign: str, key: Key, sample: Sample) -> CellStatistic:
    figures = vars(describe(sample.values))
    if sample.metric.unit == "°C":  # no true zero, so no relative spread
        figures = figures | {"cv_percent": None}
    runs = tuple(record.run_id for record in sample.records)
    return CellStatistic(
        campaign=campaign,
        model=key[0],
        environment=key[1],
        workload=key[2],
        metric=key[3],
        unit=sample.metric.unit,
        family=sample.family,
        runs=runs,
        outliers=tuple(runs[index] for index in grubbs(sample.values)),
        trend=trend(sample.values),
        **figures,
    )


def _comparisons(data: CampaignData, samples: Mapping[Key, Sample]) -> list[ComparisonRow]:
    baseline = baseline_environment(data)
    margin = _MARGIN_PERCENT if data.matrix is None else data.matrix.equivalence_margin_percent
    rows = []
    for (model, environment, workload, metric), sample in samples.items():
        base = samples.get((model, baseline or "", workload, metric))
        if base is None or environment == baseline:
            continue
        found = _compared(base, sample, margin, _pairs(base, sample))
        rows.append(
            ComparisonRow(
                campaign=data.name,
                model=model,
                workload=workload,
                metric=metric,
                unit=sample.metric.unit,
                baseline=baseline or "",
                candidate=environment,
                family=sample.family,
                **vars(found),
            )
        )
    return _by_family(rows)


def baseline_environment(data: CampaignData) -> str | None:
    """The matrix's baseline; without a matrix `native`, or else the environment that ran first. None without runs."""
    if data.matrix is not None:
        return data.matrix.baseline_environment
    names = [record.environment for record in data.records]
    return "native" if "native" in names else next(iter(names), None)


def _compared(base: Sample, sample: Sample, margin: float, pairs: list[tuple[float, float]] | None) -> Comparison:
    metric = sample.metric
    return compare(
        base.values, sample.values, margin_percent=margin, direction=metric.direction, unit=metric.unit, pairs=pairs
    )


Row = TypeVar("Row", ComparisonRow, RepeatRow)


def _by_family(rows: list[Row]) -> list[Row]:
    """The rows with Holm's correction within each family, in their own order."""
    done: dict[int, Row] = {}
    for family in ("primary", "secondary"):
        places = [place for place, row in enumerate(rows) if row.family == family]
        done |= dict(zip(places, adjust([rows[place] for place in places]), strict=True))
    return [done[place] for place in range(len(rows))]


def _pairs(base: Sample, sample: Sample) -> list[tuple[float, float]] | None:
    """Values of the same iteration, where the order was interleaved and the iteration stands once on each side."""
    if any(record.plan.order != "interleaved" for record in (*base.records, *sample.records)):
        return None
    left, right = _by_iteration(base), _by_iteration(sample)
    return [(left[iteration], right[iteration]) for iteration in left if iteration in right]


def _by_iteration(sample: Sample) -> dict[int, float]:
    iterations = [record.iteration for record in sample.records if record.repeat_of is None]
    return {
        record.iteration: value
        for record, value in zip(sample.records, sample.values, strict=True)
        if record.repeat_of is None and iterations.count(record.iteration) == 1
    }


def _repeats(
    data: CampaignData, samples: Mapping[Key, Sample], against: str, others: Mapping[Key, Sample]
) -> list[RepeatRow]:
    rows = []
    for key, sample in samples.items():
        if key in others:
            model, environment, workload, metric = key
            both = {record.specification for record in (*sample.records, *others[key].records)}
            rows.append(
                RepeatRow(
                    campaign=data.name,
                    against=against,
                    model=model,
                    environment=environment,
                    workload=workload,
                    metric=metric,
                    unit=sample.metric.unit,
                    family=sample.family,
                    same_specification=None if None in both else len(both) == 1,
                    **vars(_compared(others[key], sample, REPEAT_PERCENT, None)),
                )
            )
    return _by_family(rows)


def _criteria(
    chosen: Iterable[CampaignData],
    cells: Iterable[CellStatistic],
    comparisons: Iterable[ComparisonRow],
    repeats: Iterable[RepeatRow],
) -> Iterator[Criterion]:
    for cell in cells:
        if cell.family == "primary" and (cell.cv_percent is not None or cell.n < 2):
            value = cell.cv_percent
            yield Criterion(
                campaign=cell.campaign,
                criterion="variation",
                cell=f"{cell.model}/{cell.environment}/{cell.workload}",
                metric=cell.metric,
                value=value,
                threshold=MAX_CV_PERCENT,
                met=None if value is None else value < MAX_CV_PERCENT,
                why=f"coefficient of variation over {cell.n} runs",
            )
    for row in comparisons:
        if row.family == "primary":
            power = row.power_10_percent
            yield Criterion(
                campaign=row.campaign,
                criterion="power",
                cell=f"{row.model}/{row.candidate}/{row.workload}",
                metric=row.metric,
                value=power,
                threshold=MIN_POWER,
                met=None if power is None else power >= MIN_POWER,
                why=f"power of Welch's t against a difference of {DETECTABLE_PERCENT:g} %",
            )
    for repeat in repeats:
        if repeat.family == "primary":
            yield Criterion(
                campaign=repeat.campaign,
                criterion="repeatability",
                cell=f"{repeat.model}/{repeat.environment}/{repeat.workload}",
                metric=repeat.metric,
                value=repeat.difference_percent,
                threshold=REPEAT_PERCENT,
                met={"equivalent": True, "undecided": None}.get(repeat.verdict, False),
                why=f"against campaign {repeat.against}: {repeat.why}",
            )
    for data in chosen:
        yield _completeness(data)


def _completeness(data: CampaignData) -> Criterion:
    planned = done = 0
    if data.matrix is not None:
        counts = coverage.by_cell(data.matrix, data.records, data.quarantined)
        planned, done = sum(count.planned for count in counts), sum(count.done for count in counts)
    return Criterion(
        campaign=data.name,
        criterion="completeness",
        cell=None,
        metric=None,
        value=100 * done / planned if planned else None,
        threshold=100.0,
        met=done == planned if planned else None,
        why=f"{done} of {planned} planned runs done" if planned else "no matrix says what was planned",
    )
