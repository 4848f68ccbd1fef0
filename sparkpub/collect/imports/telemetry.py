"""Telemetry that lay beside a report, in our own columns: of our sampler, of `nvidia-smi --query-gpu`, or in columns
that a layout describes.

`nvidia-smi --query-gpu=timestamp,power.draw,… --format=csv -l 1` is what most people leave running. Its times are the
machine's local clock, as those of the reports are. Seconds since somebody's own start do not say
when the report began: such telemetry is taken to end with the measurement.
"""

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sparkpub.collect.imports.facts import TelemetryColumn
from sparkpub.record.metrics import factor, unit_of
from sparkpub.record.telemetry import COLUMNS, TEXT_COLUMNS
from sparkpub.tools import reading

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
_TIMES = ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S")


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
        table_rows = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error:
        return TelemetryBeside()
    rows = [[cell.strip() for cell in row] for row in table_rows if row]
    table = _table(rows) if rows else []
    theirs = (columns or {}).get(_OURS)
    if columns and theirs is not None and rows and theirs.at in rows[0]:
        return TelemetryBeside(
            _written(table, columns, _counted(table, theirs, seconds))
        )
    if not rows or "timestamp" not in rows[0]:
        return TelemetryBeside()
    if started is None:
        problem = "the telemetry beside it has times of day, and the report has none"
        return TelemetryBeside(problem=problem)
    for name in _GPU:
        if len({row.get(name) for row in table}) > 1:
            return TelemetryBeside(problem="the telemetry beside it is of several GPUs")
    times = [_time(row["timestamp"]) for row in table]
    elapsed = [
        None if time is None else (time - started).total_seconds() for time in times
    ]
    return TelemetryBeside(_written(table, _NVIDIA_SMI, elapsed))


def _table(rows: list[list[str]]) -> list[dict[str, str]]:
    """The whole rows, by the names of their columns without units."""
    names = [_UNIT.sub("", name) for name in rows[0]]
    return [
        dict(zip(names, row, strict=True)) for row in rows[1:] if len(row) == len(names)
    ]


def _counted(
    table: list[dict[str, str]], elapsed: TelemetryColumn, seconds: float | None
) -> list[float | None]:
    """Seconds counted from the start of the measurement, which ends with the rows."""
    times = [reading.number(row.get(str(elapsed.at))) for row in table]
    known = [time for time in times if time is not None]
    begin = 0.0
    if seconds is not None and known:
        begin = max(0.0, known[-1] - seconds)
    return [None if time is None else time - begin for time in times]


def _value(name: str, column: TelemetryColumn, row: Mapping[str, str]) -> str:
    """A cell in the unit of our column; empty for `[N/A]` and for whatever is no number. The first of several columns
    counts that holds anything."""
    said = [row.get(place, "") for place in str(column.at).split("|")]
    if name in TEXT_COLUMNS:
        return next((text for text in said if text and not text.startswith("[")), "")
    numbers = [reading.number(text.partition(" ")[0]) for text in said]
    known = next((number for number in numbers if number is not None), None)
    scale = factor(column.unit, unit_of(name)) if column.unit else None
    return "" if known is None else f"{known * (scale or 1.0):g}"


def _time(text: str) -> datetime | None:
    for form in _TIMES:
        try:
            return datetime.strptime(text, form)  # noqa: DTZ007 - a local clock, like that of the report
        except ValueError:
            continue
    return None


def _written(
    table: list[dict[str, str]],
    columns: Mapping[str, TelemetryColumn],
    elapsed: list[float | None],
) -> bytes:
    """CSV with those of our columns that hold anything; a row without a time is left out."""
    rows = []
    for row, time in zip(table, elapsed, strict=True):
        if time is not None:
            values = {
                name: _value(name, column, row) for name, column in columns.items()
            }
            rows.append(values | {_OURS: f"{time:.3f}"})
    filled = {column for row in rows for column, value in row.items() if value}
    text = io.StringIO()
    writer = csv.DictWriter(
        text,
        [column for column in COLUMNS if column in filled],
        restval="",
        extrasaction="ignore",
        lineterminator="\n",
    )
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()
