"""A run's telemetry cut down to what a chart can show without losing its peaks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.record.telemetry import COLUMNS, Telemetry, parse

POINTS = 160
BINS = 48

SIGNALS = (
    ("gpu_utilization_percent", "GPU utilisation"),
    ("gpu_temp_celsius", "GPU temperature"),
    ("gpu_power_watt", "GPU power"),
    ("gpu_clock_sm_mhz", "SM clock"),
    ("gpu_memory_used_gib", "GPU memory"),
    ("mem_available_gib", "Available memory"),
    ("cgroup_current_gib", "cgroup memory"),
    ("processes_pss_gib", "Process memory"),
    ("cpu_percent", "CPU"),
)
"""Columns with a panel of their own, in this order, where a run has values for them."""


@dataclass(frozen=True)
class Trace:
    """A run over time. `signals` are (label, unit) of the panels; rows as in `charts.telemetry.panels`."""

    signals: tuple[tuple[str, str], ...]
    samples: list[dict[str, Any]]
    phases: list[dict[str, Any]]
    notes: dict[str, str]


def trace(stored: Stored) -> Trace | None:
    """The run's telemetry, or None where there is none. Each signal keeps at most `POINTS` points."""
    telemetry = _read(stored)
    if telemetry is None:
        return None
    signals, samples = [], []
    for column, label in SIGNALS:
        points = _points(telemetry, column)
        if len(points) > 1:
            signals.append((label, COLUMNS[column]))
            samples += [{"signal": label, "t": round(t, 2), "value": round(v, 2)} for t, v in thinned(points, POINTS)]
    return Trace(tuple(signals), samples, phases(stored.record), dict(telemetry.notes)) if signals else None


def phases(record: Record) -> list[dict[str, Any]]:
    """The named stretches of a run, in seconds since launch."""
    return [
        {"name": phase.name, "start": round(phase.start_seconds, 2), "end": round(phase.end_seconds, 2)}
        for phase in record.phases
    ]


def thinned(points: Sequence[tuple[float, float]], most: int) -> list[tuple[float, float]]:
    """At most `most` of the points: of each stretch the lowest and the highest, so that no peak is lost."""
    if len(points) <= most:
        return list(points)
    size = len(points) / (most // 2)
    kept = []
    for index in range(most // 2):
        stretch = points[int(index * size) : int((index + 1) * size)]
        low, high = min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])
        kept += sorted({low, high})
    return kept


def utilisation(stored: Stored) -> Iterator[tuple[float, float, float]]:
    """(start, end, mean GPU utilisation in %) of equal stretches of a run, in seconds since launch."""
    telemetry = _read(stored)
    if telemetry is None:
        return
    points = _points(telemetry, "gpu_utilization_percent")
    if len(points) < 2 or points[-1][0] <= points[0][0]:
        return
    begin, width = points[0][0], (points[-1][0] - points[0][0]) / BINS
    bins: dict[int, list[float]] = {}
    for time, value in points:
        bins.setdefault(min(BINS - 1, int((time - begin) / width)), []).append(value)
    for index, values in sorted(bins.items()):
        start = begin + index * width
        yield round(start, 1), round(start + width, 1), round(sum(values) / len(values), 1)


def _points(telemetry: Telemetry, column: str) -> list[tuple[float, float]]:
    pairs = zip(telemetry.numbers("elapsed_seconds"), telemetry.numbers(column), strict=False)
    return [(time, value) for time, value in pairs if time is not None and value is not None]


def _read(stored: Stored) -> Telemetry | None:
    item = stored.record.file("telemetry")
    path = None if item is None else stored.evidence_path(item)
    if path is None or not path.is_file():
        return None
    return parse(path.read_text(encoding="utf-8", errors="replace"))
