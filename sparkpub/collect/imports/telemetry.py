"""Telemetry that lay beside a report, in our own columns: of our sampler, of `nvidia-smi --query-gpu`, or in columns
that a layout describes.

`nvidia-smi --query-gpu=timestamp,power.draw,… --format=csv -l 1` is what most people leave running. Its times are the
machine's local clock, as those of the reports are. Seconds since somebody's own start do not say
when the report began: such telemetry is taken to end with the measurement.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sparkpub.collect.imports.facts import TelemetryColumn
from sparkpub.record.metrics import factor, unit_of
from sparkpub.record.telemetry import COLUMNS, TEXT_COLUMNS
from sparkpub.tools import forms, reading
from sparkpub.tools.forms import FileError

_OURS = "elapsed_seconds"
_NVIDIA_SMI: Mapping[str, TelemetryColumn] = {
    name: TelemetryColumn.model_validate(place)
    for name, place in {
        "gpu_utilization_percent": "utilization.gpu",
        "gpu_memory_utilization_percent": "utilization.memory",
        "gpu_memory_used_gib": {"at": "memory.used", "unit": "MiB"},
        "gpu_temp_celsius": "temperature.gpu",
        "gpu_power_watt": "power.draw.instant|power.draw",
        "gpu_clock_sm_mhz": "clocks.current.sm|clocks.sm",
        "gpu_clock_mem_mhz": "clocks.current.memory|clocks.mem",
        "gpu_performance_state": "pstate",
        "gpu_throttle_reasons": "clocks_event_reasons.active|clocks_throttle_reasons.active",
    }.items()
}
"""Our column, and what nvidia-smi calls the sensor (`nvidia-smi --help-query-gpu`)."""
_GPU = ("index", "uuid", "pci.bus_id", "gpu_uuid", "gpu_bus_id")
"""Columns that tell GPUs apart."""
_UNIT = re.compile(r"\s*\[[^\]]*\]$")


@dataclass(frozen=True)
class TelemetryBeside:
    """Telemetry as CSV in our columns; without content `problem` says why what lay there is not used. A CSV of another
    kind, such as a table of results, is no telemetry and no problem."""

    content: bytes = b""
    problem: str | None = None


def samples(
    content: bytes,
    started: datetime | None,
    columns: Mapping[str, TelemetryColumn] | None = None,
    seconds: float | None = None,
) -> TelemetryBeside:
    """Telemetry from CSV. `started` is when the run began, on the machine's clock, which nvidia-smi's times need.
    `columns` are those of a layout, and `seconds` is how long was measured."""
    text = reading.text(content)
    if text.lstrip("#\n").startswith(_OURS) or f"\n{_OURS}," in text:
        return TelemetryBeside(content)
    try:
        rows = forms.of_csv(text)
    except FileError:
        return TelemetryBeside()
    table = [
        {_UNIT.sub("", name): cell or "" for name, cell in row.items()} for row in rows
    ]
    header = table[0] if table else {}
    if header and not [*table[-1].values()][-1]:
        table.pop()  # a sampler that was ended within a row
    theirs = (columns or {}).get(_OURS)
    if columns and theirs is not None and theirs.at in header:
        elapsed = _counted([row[str(theirs.at)] for row in table], seconds)
        return TelemetryBeside(_written(table, columns, elapsed))
    if "timestamp" not in header:
        return TelemetryBeside()
    if started is None:
        problem = "the telemetry beside it has times of day, and the report has none"
        return TelemetryBeside(problem=problem)
    for name in _GPU:
        if len({row.get(name) for row in table}) > 1:
            return TelemetryBeside(problem="the telemetry beside it is of several GPUs")
    elapsed = [_since(started, row["timestamp"]) for row in table]
    return TelemetryBeside(_written(table, _NVIDIA_SMI, elapsed))


def _counted(said: Sequence[str], seconds: float | None) -> list[float | None]:
    """Seconds counted from the start of the measurement, which ends with the rows."""
    times = [reading.number(text) for text in said]
    known = [time for time in times if time is not None]
    begin = 0.0
    if seconds is not None and known:
        begin = max(0.0, known[-1] - seconds)
    return [None if time is None else time - begin for time in times]


def _since(started: datetime, text: str) -> float | None:
    """Seconds from the start to a time as nvidia-smi writes it, `2026/11/21 15:49:33.123`, by the same local clock."""
    try:
        time = datetime.fromisoformat(text.replace("/", "-"))
    except ValueError:
        return None
    return None if time.tzinfo else (time - started).total_seconds()


def _written(
    table: Sequence[Mapping[str, str]],
    columns: Mapping[str, TelemetryColumn],
    elapsed: Sequence[float | None],
) -> bytes:
    """CSV with those of our columns that hold anything; a row without a time is left out."""
    timed = [row for row, time in zip(table, elapsed, strict=True) if time is not None]
    said = {
        name: _values(name, column, timed)
        for name, column in columns.items()
        if name in COLUMNS and name != _OURS
    }
    filled = {name: values for name, values in said.items() if any(values)}
    filled[_OURS] = [f"{time:.3f}" for time in elapsed if time is not None]
    names = [name for name in COLUMNS if filled.get(name)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(zip(*(filled[name] for name in names), strict=True))
    return text.getvalue().encode()


def _values(
    name: str, column: TelemetryColumn, rows: Sequence[Mapping[str, str]]
) -> list[str]:
    """The cells of a column in the unit of ours; empty for `[N/A]` and for whatever is no number. The first of several
    columns counts that holds anything."""
    places = str(column.at).split("|")
    scale = factor(column.unit, unit_of(name)) if column.unit else None
    values = []
    for row in rows:
        said = [row.get(place, "") for place in places]
        if name in TEXT_COLUMNS:
            texts = (text for text in said if text and not text.startswith("["))
            values.append(next(texts, ""))
            continue
        numbers = (reading.number(text.partition(" ")[0]) for text in said)
        known = next((number for number in numbers if number is not None), None)
        values.append("" if known is None else f"{known * (scale or 1.0):g}")
    return values
