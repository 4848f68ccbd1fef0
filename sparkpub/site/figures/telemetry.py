"""What the sensors saw of one run: a panel per signal on one time axis; several GPUs are one, see `over_gpus`."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from sparkpub.record.store import Stored
from sparkpub.record.telemetry import COLUMNS
from sparkpub.record.text import listed
from sparkpub.site.content import block_key
from sparkpub.site.figures import samples, shapes
from sparkpub.site.figures.draw import Chart
from sparkpub.site.figures.figure import Figure, Table
from sparkpub.site.figures.samples import TimedValue
from sparkpub.site.publication import run_file

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


class SignalForm(NamedTuple):
    """What decides how a run is drawn: (label, unit) of the panels."""

    signals: tuple[tuple[str, str], ...]

    @property
    def key(self) -> str:
        """Names the drawing without rows, which all runs of a form share."""
        return f"signals-{block_key(repr(self))}"

    @property
    def chart(self) -> Chart:
        """The empty axes."""
        return Chart(partial(shapes.signals, panels=self.signals), ())


@dataclass(frozen=True)
class Trace:
    """A run over time. `lines` maps a signal to seconds since launch with values, at most `POINTS`."""

    form: SignalForm
    lines: dict[str, list[TimedValue]]


def trace(stored: Stored) -> Trace | None:
    """The run's telemetry, or None where there is none."""
    telemetry = samples.read(stored)
    if telemetry is None:
        return None
    lines: dict[str, list[TimedValue]] = {}
    signals = []
    for column, label in SIGNALS.items():
        points = telemetry.timed(column)
        if len(points) > 1:
            lines[label] = samples.thinned(points, POINTS)
            signals.append((label, COLUMNS[column]))
    return Trace(SignalForm(tuple(signals)), lines) if lines else None


def figure(stored: Stored, found: Trace) -> Figure:
    """The run's telemetry as a figure; the browser puts the samples in."""
    last = max(time for points in found.lines.values() for time, _ in points)
    says = f"{round(last, 2):.3g} seconds from launch"
    if stored.record.phases:
        says += f"; shaded: {listed(phase.name for phase in stored.record.phases)}"
    body = []
    for label, unit in found.form.signals:
        values = [value for _, value in found.lines[label]]
        body.append([label, unit, f"{min(values):.1f}", f"{max(values):.1f}"])
    return Figure(
        key=f"telemetry-{stored.record.run_id}",
        title="Telemetry",
        says=f"{says}.",
        sample="Thinned: the file of telemetry has every sample.",
        chart=found.form.chart,
        table=Table(("Signal", "Unit", "Least", "Most"), body),
        rows_at=f"{run_file(stored)}#rows",
        drawn_as=found.form.key,
    )
