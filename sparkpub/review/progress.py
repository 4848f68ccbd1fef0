"""Whether a set-up became faster: what was measured of one model, format and load at different times.

    series(speeds)  ->  lines of points in order of time, each with its change from the one before

A change is told from noise by Welch's test on the runs of both points, counted as what they are worth, or, where a run
is a mean over repetitions, on these (B. L. Welch, Biometrika 34, 1947, 28-35). Fewer than `MINIMUM_RUNS` of them carry
no interval here either. Of several lines some change by chance: `beyond_noise` corrects for their number.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

from sparkpub.record.load import Load
from sparkpub.record.metrics import METRICS, Metric
from sparkpub.record.record import Record
from sparkpub.record.store import canonical_json
from sparkpub.record.text import (
    between,
    percent,
)
from sparkpub.review.differences import difference, told
from sparkpub.review.grouping import grouped
from sparkpub.review.models import ModelName
from sparkpub.review.speeds import GENERATION, Speed
from sparkpub.review.statistics.compare import holm
from sparkpub.review.statistics.describe import MINIMUM_RUNS
from sparkpub.review.statistics.estimate import ALPHA, Estimate, difference_of


@dataclass(frozen=True)
class MeasuredMean:
    """Mean, standard deviation (by n - 1) and number of what was measured; of what depends on each other, such as the
    runs of one server, the number that it is worth."""

    mean: float
    sd: float | None
    n: float

    @property
    def estimate(self) -> Estimate | None:
        """The mean with its standard error; None where nothing tells it, or too few values do."""
        if self.sd is None or self.n < MINIMUM_RUNS:
            return None
        return Estimate(self.mean, self.sd / sqrt(self.n), self.n - 1)


@dataclass(frozen=True)
class Change:
    """From one point to the next, in percent of the first. `low` and `high` are the 95 % interval, `p` is the two-sided
    p-value of the same test; None where a point has too few values to know its noise."""

    percent: float
    low: float | None
    high: float | None
    p: float | None = None

    @property
    def is_beyond_noise(self) -> bool | None:
        """Whether the interval leaves zero out; None where there is none."""
        if self.low is None or self.high is None:
            return None
        return self.low > 0 or self.high < 0

    @property
    def in_words(self) -> str:
        """`+1.0 %, +0.6 to +1.4`, `within noise: −1.5 %, −6.0 to +3.0`."""
        if self.low is None or self.high is None:
            return f"{percent(self.percent)}, noise not known"
        ends = between(self.low, self.high, 1, signed=True)
        bounds = f"{percent(self.percent)}, {ends}"
        if self.is_beyond_noise:
            return bounds
        return f"within noise: {bounds}"


@dataclass(frozen=True)
class VersionPoint:
    """What was measured once: a set-up, with the day of its first run."""

    speed: Speed
    sample: MeasuredMean
    change: Change | None = None
    """From the point before; None for the first."""

    @property
    def day(self) -> str:
        """`2026-08-16`."""
        return self.speed.records[0].started.value[:10]


@dataclass(frozen=True)
class VersionLine:
    """One model, format, machine, engine and load, measured more than once."""

    model: ModelName
    weights: str
    machine: str
    load: Load
    metric: Metric
    points: tuple[VersionPoint, ...]

    @property
    def differs(self) -> str:
        """What is told differently at the last point than at the first, and whether another machine of the kind ran it;
        empty where nothing is known to differ."""
        first, last = (self.points[place].speed.records for place in (0, -1))
        parts = [difference(told(first[0]), told(last[0]))]
        ids = [{record.machine.id for record in records} for records in (first, last)]
        if None not in ids[0] | ids[1] and ids[0] != ids[1]:
            parts.append("another machine")
        return ", ".join(filter(None, parts))

    @property
    def is_of_versions(self) -> bool:
        """Whether the first and the last point are of different versions of the engine."""
        return self.points[0].speed.engine != self.points[-1].speed.engine

    @property
    def total(self) -> Change:
        """From the first point to the last."""
        return change_between(self.points[0].sample, self.points[-1].sample)


def beyond_noise(lines: Sequence[VersionLine]) -> list[VersionLine]:
    """The lines whose change is beyond noise after Holm's correction for all that could be tested."""
    adjusted = holm([line.total.p for line in lines])
    pairs = zip(lines, adjusted, strict=True)
    return [line for line, p in pairs if p is not None and p < ALPHA]


def lines(speeds: Iterable[Speed], metric: str = GENERATION) -> list[VersionLine]:
    """Every line with at least two points, in the order met. What checks doubt is on none."""
    having = []
    for speed in speeds:
        is_closed = speed.load.request_rate is None
        if is_closed and metric in speed.figures and not speed.doubts:
            having.append(speed)
    found = []
    for members in grouped(having, _same).values():
        sessions = grouped(members, _session)
        if len(sessions) > 1:
            found.append(_line([mine[0] for mine in sessions.values()], metric))
    return found


def _same(speed: Speed) -> tuple[object, ...]:
    """What two points of a line have in common: all but version, image and time."""
    record = speed.records[0]
    options = dict(record.requested.environment)
    for name in ("image", "rootfs", "label"):
        options.pop(name, None)
    return (
        speed.model,
        speed.weights,
        speed.machine,
        speed.setup.engine,
        canonical_json(options),
        record.observed.speculative_decoding,
        speed.load,
    )


def _session(speed: Speed) -> tuple[object, ...]:
    """What parts the points of a line: campaign, version and day."""
    day = speed.records[0].started.value[:10]
    return (speed.campaign, speed.setup.engine_version, day)


def _line(speeds: list[Speed], metric: str) -> VersionLine:
    ordered = sorted(speeds, key=lambda speed: speed.records[0].started.value)
    points: list[VersionPoint] = []
    for speed in ordered:
        sample = sample_of(speed, metric)
        change = None
        if points:
            change = change_between(points[-1].sample, sample)
        points.append(VersionPoint(speed, sample, change))
    first = ordered[0]
    return VersionLine(
        first.model,
        first.weights,
        first.machine,
        first.load,
        METRICS[metric],
        tuple(points),
    )


def sample_of(speed: Speed, metric: str) -> MeasuredMean:
    """The runs of a cell; of a single run its repetitions, as far as they are known."""
    row = speed.figures[metric]
    if row.n > 1:
        return MeasuredMean(row.mean, row.sd, row.n_effective)
    return _repetitions(speed.records[0], metric) or MeasuredMean(row.mean, None, 1)


def _repetitions(record: Record, metric: str) -> MeasuredMean | None:
    """What a run says of its own repetitions."""
    value = record.value(metric)
    spread = record.spreads.get(metric)
    if value is None or spread is None:
        return None
    n = spread.repetitions
    if n is None or n < 2:
        return None
    sd = spread.deviation
    if spread.divisor != "n-1":  # where nothing says it, the larger of the two
        sd *= sqrt(n / (n - 1))
    return MeasuredMean(value, sd, n)


def change_between(before: MeasuredMean, after: MeasuredMean) -> Change:
    """The change of the mean in percent, with its interval."""
    percent = 100 * (after.mean / before.mean - 1)
    if before.estimate is None or after.estimate is None:
        return Change(percent, None, None)
    difference = difference_of(before.estimate, after.estimate)
    interval = difference.interval()
    if interval is None:
        return Change(percent, None, None)
    low, high = (100 * end / before.mean for end in interval)
    return Change(percent, low, high, float(difference.p_value))
