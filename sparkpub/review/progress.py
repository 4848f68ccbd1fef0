"""Whether a set-up became faster: what was measured of one model, format and load at different times.

    lines(speeds)  ->  lines of points in order of time

A change is told from noise by Welch's test on the runs of both points, counted as what they are worth (B. L. Welch,
Biometrika 34, 1947, 28-35). Fewer than `MINIMUM_RUNS` of them carry no interval here either. Of several lines some
change by chance: `beyond_noise` corrects for their number.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import nan

from sparkpub.record.store import canonical_json
from sparkpub.record.text import between, percent
from sparkpub.review.differences import difference, told
from sparkpub.review.grouping import grouped
from sparkpub.review.speeds import GENERATION, Speed
from sparkpub.review.statistics.estimate import (
    ALPHA,
    MINIMUM_RUNS,
    Estimate,
    difference_of,
    holm,
)


@dataclass(frozen=True)
class VersionLine:
    """One model, format, machine, engine and load, measured more than once: what `first` has, all points have."""

    points: tuple[Speed, ...]
    """The set-ups in order of time."""

    @property
    def first(self) -> Speed:
        """The earliest set-up."""
        return self.points[0]

    @property
    def differs(self) -> str:
        """What is told differently at the last point than at the first, and whether another machine of the kind ran it;
        empty where nothing is known to differ."""
        ends = self.first.records, self.points[-1].records
        said = difference(*(told(records[0]) for records in ends))
        before, after = ({record.machine.id for record in records} for records in ends)
        is_another = before != after and None not in before | after
        return ", ".join(filter(None, [said, "another machine" if is_another else ""]))

    @property
    def total(self) -> Estimate:
        """The change from the first point to the last in percent; its error is NaN where one of them has none."""
        before, after = mean_of(self.first), mean_of(self.points[-1])
        share, found = 100 / before.value, difference_of(before, after)
        return Estimate(share * found.value, share * found.error, found.df)


def is_beyond_noise(change: Estimate) -> bool:
    """Whether the interval of a change is known and leaves zero out."""
    low, high = change.ends()
    return bool(low > 0 or high < 0)


def in_words(change: Estimate) -> str:
    """`+1.0 %, +0.6 to +1.4`, `within noise: −1.5 %, −6.0 to +3.0`."""
    ends = change.interval()
    if ends is None:
        return f"{percent(change.value)}, noise not known"
    bounds = f"{percent(change.value)}, {between(*ends, 1, signed=True)}"
    return bounds if is_beyond_noise(change) else f"within noise: {bounds}"


def beyond_noise(lines: Sequence[VersionLine]) -> list[VersionLine]:
    """The lines whose change is beyond noise after Holm's correction for all that could be tested."""
    adjusted = holm([line.total.p_value for line in lines])
    pairs = zip(lines, adjusted, strict=True)
    return [line for line, p in pairs if p is not None and p < ALPHA]


def lines(speeds: Iterable[Speed]) -> list[VersionLine]:
    """Every line with at least two points, in the order met. What checks doubt is on none."""
    having = [
        speed
        for speed in speeds
        if speed.load.request_rate is None
        and GENERATION in speed.figures
        and not speed.doubts
    ]
    found = []
    for members in grouped(having, _same).values():
        sessions = grouped(
            members,
            lambda each: (
                each.campaign,
                each.setup.engine_version,
                day(each),
            ),
        )
        if len(sessions) > 1:
            points = [mine[0] for mine in sessions.values()]
            found.append(VersionLine(tuple(sorted(points, key=_started))))
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


def _started(speed: Speed) -> str:
    return speed.records[0].started.value


def day(speed: Speed) -> str:
    """`2026-08-16`, the day of its first run."""
    return _started(speed)[:10]


def mean_of(speed: Speed) -> Estimate:
    """The mean of a cell over its runs; without an error where they are too few to tell their noise."""
    row = speed.figures[GENERATION]
    is_known = row.n_effective >= MINIMUM_RUNS
    return Estimate(row.mean, row.error if is_known else nan, row.df)
