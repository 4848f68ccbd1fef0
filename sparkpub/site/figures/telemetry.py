"""What the sensors saw of one run: a panel per signal on one time axis; several GPUs are one, see `over_gpus`."""

from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import NamedTuple

from sparkpub.record import outside
from sparkpub.record.store import Stored
from sparkpub.record.telemetry import COLUMNS, Telemetry, parse
from sparkpub.record.text import listed
from sparkpub.site.content import block_key
from sparkpub.site.figures import shapes
from sparkpub.site.figures.draw import Chart
from sparkpub.site.figures.figure import Figure, TableLine
from sparkpub.site.figures.theme import axis_title
from sparkpub.site.publication import run_file

TimedValue = tuple[float, float]
"""Seconds since launch, and a value."""
POINTS = 160
"""At most so many of a signal are drawn."""
SIGNALS = {
    "gpu_utilization_percent": "GPU utilisation",
    "gpu_temp_celsius": "GPU temperature",
    "gpu_power_watt": "GPU power",
    "gpu_clock_sm_mhz": "SM clock",
    "gpu_memory_used_gib": "GPU memory",
    "mem_available_gib": "Available memory",
    "cgroup_current_gib": "cgroup memory",
    "processes_pss_gib": "Process memory",
    "cpu_percent": "CPU",
}
"""Columns with a panel of their own, in this order, where a run has values for them."""


class Trace(NamedTuple):
    """A run over time: `lines` maps a signal with its unit to seconds since launch with values, at most `POINTS`."""

    lines: dict[str, list[TimedValue]]

    @property
    def key(self) -> str:
        """Names the drawing without samples, which all runs with these signals share."""
        return f"signals-{block_key(repr(list(self.lines)))}"

    @property
    def chart(self) -> Chart:
        """The axes."""
        rows = [{"panel": panel, "x": 0, "value": 0} for panel in self.lines]
        return Chart(partial(shapes.signals), rows)


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


def trace(stored: Stored) -> Trace | None:
    """The run's telemetry, or None where there is none."""
    telemetry = read(stored)
    if telemetry is None:
        return None
    seen = {
        axis_title(label, COLUMNS[column]): telemetry.timed(column)
        for column, label in SIGNALS.items()
    }
    lines = {
        panel: thinned(points) for panel, points in seen.items() if len(points) > 1
    }
    return Trace(lines) if lines else None


def thinned(points: Sequence[TimedValue]) -> list[TimedValue]:
    """At most `POINTS` of the points: of each stretch the lowest and the highest, so that no peak is lost."""
    if len(points) <= POINTS:
        return list(points)
    size = 2 * len(points) / POINTS
    kept: list[TimedValue] = []
    for index in range(POINTS // 2):
        stretch = points[int(index * size) : int((index + 1) * size)]
        kept += sorted({end(stretch, key=itemgetter(1)) for end in (min, max)})
    return kept


def figure(stored: Stored, found: Trace) -> Figure:
    """The run's telemetry as a figure; the browser puts the samples in."""
    last = max(time for points in found.lines.values() for time, _ in points)
    says = f"{round(last, 2):.3g} seconds from launch"
    if stored.record.phases:
        says += f"; shaded: {listed(phase.name for phase in stored.record.phases)}"
    table: list[TableLine] = []
    for panel, points in found.lines.items():
        values = [value for _, value in points]
        least, most = f"{min(values):.1f}", f"{max(values):.1f}"
        table.append({"Signal": panel, "Least": least, "Most": most})
    return Figure(
        key=f"telemetry-{stored.record.run_id}",
        title="Telemetry",
        says=f"{says}.",
        sample="Thinned: the file of telemetry has every sample.",
        chart=found.chart,
        table=table,
        rows_at=f"{run_file(stored)}#rows",
        drawn_as=found.key,
    )
