"""What the sensors saw of one run: a panel per signal on one time axis, a line for each GPU that it used."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.record.telemetry import COLUMNS, GPU_COLUMNS, Telemetry, of_gpu
from sparkpub.record.text import listed
from sparkpub.site.figures import marks, samples, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import NARROW, WIDE, Chart, Job
from sparkpub.site.figures.figure import Figure, Table, without_rows
from sparkpub.site.figures.rows import Row
from sparkpub.site.figures.samples import TimedValue
from sparkpub.site.publication import run_file

KEY = "telemetry-"
"""With which the keys of these figures begin; the id of the run follows."""
POINTS = 160
"""At most so many of a signal are drawn."""
MARGIN = 52
"""Room for the axis beside each panel, in pixels."""
PANEL = 40
"""Height of a panel, in pixels."""
TITLE = 26
"""Between two panels: room for the name of the lower one."""
NUMBERS = 18
"""Room for the numbers below the last panel."""
TICKS = 2
"""About so many numbers beside a panel, whose axis ends at the outer ones: no line runs along its edge."""
OF_GPU = ", GPU "
"""Between a signal and the number of the GPU that it is of, where a run used several: `GPU power, GPU 1`."""
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
    """What decides how a run is drawn: (label, unit) of the panels, and the GPUs with lines of their own."""

    signals: tuple[tuple[str, str], ...]
    gpus: tuple[str, ...]


FORMS = TypeAdapter(tuple[SignalForm, ...])


@dataclass(frozen=True)
class Trace:
    """A run over time. `signals` are (label, unit) of the panels; rows as `draw` reads them."""

    signals: tuple[tuple[str, str], ...]
    samples: list[Row]
    phases: list[Row]

    def values(self, signal: str) -> list[TimedValue]:
        """The points of one signal, of all GPUs where there are several."""
        return [
            (row["t"], row["value"])
            for row in self.samples
            if row["signal"].partition(OF_GPU)[0] == signal
        ]

    @property
    def form(self) -> SignalForm:
        """How it is drawn."""
        return SignalForm(self.signals, self.gpus)

    @property
    def gpus(self) -> tuple[str, ...]:
        """`GPU 0`, `GPU 1`: those with lines of their own."""
        found = [row["signal"].partition(", ")[2] for row in self.samples]
        return tuple(dict.fromkeys(name for name in found if name))


def trace(stored: Stored) -> Trace | None:
    """The run's telemetry, or None where there is none. Each signal keeps at most `POINTS` points."""
    telemetry = samples.read(stored)
    if telemetry is None:
        return None
    signals: list[tuple[str, str]] = []
    rows: list[Row] = []
    for column, label in SIGNALS.items():
        of_signal = []
        for name, source in _sources(telemetry, column, label).items():
            points = telemetry.timed(source)
            if len(points) < 2:
                continue
            for time, value in samples.thinned(points, POINTS):
                row = {"signal": name, "t": round(time, 2), "value": round(value, 2)}
                of_signal.append(row)
        if of_signal:
            signals.append((label, COLUMNS[column]))
            rows += of_signal
    if not signals:
        return None
    return Trace(tuple(signals), rows, _phases(stored.record))


def _sources(telemetry: Telemetry, column: str, label: str) -> dict[str, str]:
    """Name of each line of a signal to its column: one for each GPU where the run used several."""
    used = telemetry.used or ()
    if column in GPU_COLUMNS and len(used) > 1:
        return {f"{label}{OF_GPU}{index}": of_gpu(index, column) for index in used}
    return {label: column}


def _phases(record: Record) -> list[Row]:
    """The named stretches of a run, in seconds since launch."""
    rows = []
    for phase in record.phases:
        start, end = round(phase.start_seconds, 2), round(phase.end_seconds, 2)
        rows.append({"name": phase.name, "start": start, "end": end})
    return rows


def figure(stored: Stored) -> Figure | None:
    """The run's telemetry as a figure, or None where it has none; the browser puts the samples in."""
    found = trace(stored)
    if found is None:
        return None
    last = max(row["t"] for row in found.samples)
    says = f"{last:.3g} seconds from launch"
    if found.phases:
        says += f"; shaded: {listed(phase['name'] for phase in found.phases)}"
    rows = {"samples": found.samples, "phases": found.phases}
    file = run_file(stored)
    return Figure(
        key=f"{KEY}{stored.record.run_id}",
        title="Telemetry",
        says=f"{says}.",
        sample="Thinned: the file of telemetry has every sample.",
        chart=_chart(found.form),
        data=rows,
        table=_table(found),
        shared={name: f"{file}#{name}" for name in rows},
        drawn=False,
    )


def empty(form: SignalForm) -> Job:
    """The drawing without rows, which all runs of a form share."""
    return without_rows(_chart(form), ("samples", "phases"))


def _chart(form: SignalForm) -> Chart:
    return Chart(draw, tuple(form), phone=(NARROW,))


def _table(found: Trace) -> Table:
    body = []
    for label, unit in found.signals:
        values = [value for _, value in found.values(label)]
        body.append([label, unit, f"{min(values):.1f}", f"{max(values):.1f}"])
    return Table(("Signal", "Unit", "Least", "Most"), body)


def draw(
    signals: tuple[tuple[str, str], ...],
    gpus: tuple[str, ...] = (),
    total: int = WIDE,
) -> dict[str, Any]:
    """One panel for each signal (label, unit), the phases shaded; `gpus` are those with lines of their own, `total` is
    the width in pixels.

    Rows `samples`: `signal, t, value` with t in seconds since launch, and `phases`: `name, start, end`.
    """
    panels = []
    for place, (label, unit) in enumerate(signals, 1):
        seconds = None
        if place == len(signals):
            seconds = alt.Axis(
                title="Seconds since launch", grid=False, minExtent=NUMBERS
            )
        layers = [_shade(seconds)]
        first = place == 1
        if first:
            layers.append(_phase_names(seconds))
        layers.append(_line(label, unit, gpus, seconds, first=first))
        panels.append(theme.layered(layers, width=total - MARGIN, height=PANEL))
    # The build draws the panels without rows: where they stand must not depend on the numbers beside them.
    stack = theme.stacked(panels, spacing=TITLE, shared_x=True)
    return theme.finish({**stack, "bounds": "flush"})


def _shade(seconds: "alt.Axis | None") -> "alt.Chart":
    shade: alt.Chart = (
        marks.every("phases")
        .mark_rect(opacity=0.12, color=theme.SERIES[0], stroke=theme.BACKGROUND)
        .encode(
            x=alt.X("start:Q", axis=seconds),
            x2=alt.X2("end:Q"),
            tooltip=alt.Tooltip("name:N"),
        )
    )
    return shade


def _phase_names(seconds: "alt.Axis | None") -> "alt.Chart":
    names: alt.Chart = (
        marks.every("phases")
        .mark_text(
            align="left", baseline="bottom", fontSize=11, dy=-3, color=theme.FAINT
        )
        .encode(
            x=alt.X("start:Q", axis=seconds), y=alt.YValue(0), text=alt.Text("name:N")
        )
    )
    return names


def _line(
    label: str,
    unit: str,
    gpus: tuple[str, ...],
    seconds: "alt.Axis | None",
    *,
    first: bool,
) -> "alt.Chart":
    """A signal as steps, one line for each GPU that has its own. Its name stands above the axis; in the first panel
    above the names of the phases."""
    above = -8
    if first:
        above = -22
    axis = alt.Axis(
        title=theme.axis_title(label, unit),
        titleAngle=0,
        titleAlign="left",
        titleX=-40,
        titleY=above,
        tickCount=TICKS,
    )
    # Without a name of its own a line is of the machine, or of its only GPU.
    series = theme.Series("gpu", (*gpus, ""))
    if gpus:
        series = theme.Series("gpu", (*gpus, ""), "GPU", listed=gpus)
    shown = marks.among("signal", [label, *(f"{label}, {gpu}" for gpu in gpus)])
    line: alt.Chart = (
        marks.every("samples")
        .transform_filter(shown)
        .transform_calculate(gpu="split(datum.signal, ', ')[1] || ''")
        .mark_line(interpolate="step-after", clip=True)
        .encode(
            color=series.colour,
            strokeDash=series.dash,
            x=alt.X("t:Q", axis=seconds, scale=alt.Scale(nice=False, zero=False)),
            y=alt.Y(
                "value:Q", scale=alt.Scale(zero=unit == "%", nice=TICKS), axis=axis
            ),
            tooltip=[
                alt.Tooltip("t:Q", title="seconds"),
                alt.Tooltip("value:Q", title=label),
            ],
        )
    )
    return line
