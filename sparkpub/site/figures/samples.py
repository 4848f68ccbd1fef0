"""A run's telemetry as charts read it: points over time, cut down without losing a peak."""

from collections.abc import Sequence
from operator import itemgetter

from sparkpub.record import outside
from sparkpub.record.store import Stored
from sparkpub.record.telemetry import Telemetry, parse

TimedValue = tuple[float, float]
"""Seconds since launch, and a value."""


def read(stored: Stored) -> Telemetry | None:
    """The telemetry of a run, or None where it has none."""
    item = stored.record.file("telemetry")
    if item is None:
        return None
    try:
        data = outside.content(stored.evidence_path(item))
    except (OSError, outside.UnfitError):
        return None
    return parse(data.decode("utf-8", errors="replace"))


def thinned(points: Sequence[TimedValue], most: int) -> list[TimedValue]:
    """At most `most` of the points: of each stretch the lowest and the highest, so that no peak is lost."""
    if len(points) <= most:
        return list(points)
    size = 2 * len(points) / most
    kept: list[TimedValue] = []
    for index in range(most // 2):
        stretch = points[int(index * size) : int((index + 1) * size)]
        kept += sorted({end(stretch, key=itemgetter(1)) for end in (min, max)})
    return kept
