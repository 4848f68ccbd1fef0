"""Telemetry that lay beside a report, in our own columns: of our sampler, of `nvidia-smi --query-gpu`, or in columns
that a layout describes.

`nvidia-smi --query-gpu=timestamp,power.draw,… --format=csv -l 1` is what most people leave running. Its times are the
machine's local clock, as those of the reports are. Seconds since somebody's own start do not say
when the report began: such telemetry is taken to end with the measurement.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from sparkpub.collect.importers.layout import TelemetryColumn
from sparkpub.plan.workloads import reading
from sparkpub.record.metrics import factor, unit_of
from sparkpub.record.telemetry import COLUMNS, TEXT_COLUMNS

_OURS = "elapsed_seconds"
_COLUMNS: Mapping[str, str] = {
    "utilization.gpu": "gpu_utilization_percent",
    "utilization.memory": "gpu_memory_utilization_percent",
    "memory.used": "gpu_memory_used_gib",
    "temperature.gpu": "gpu_temp_celsius",
    "power.draw": "gpu_power_watt",
    "power.draw.instant": "gpu_power_watt",
    "clocks.sm": "gpu_clock_sm_mhz",
    "clocks.current.sm": "gpu_clock_sm_mhz",
    "clocks.mem": "gpu_clock_mem_mhz",
    "clocks.current.memory": "gpu_clock_mem_mhz",
    "pstate": "gpu_performance_state",
    "clocks_throttle_reasons.active": "gpu_throttle_reasons",
    "clocks_event_reasons.active": "gpu_throttle_reasons",
}
"""What nvidia-smi calls a sensor (`nvidia-smi --help-query-gpu`), and our column."""
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
    theirs = (columns or {}).get(_OURS)
    if columns and theirs is not None and rows and theirs.at in rows[0]:
        return TelemetryBeside(_written(_counted(_table(rows), columns, seconds)))
    if not rows or "timestamp" not in rows[0]:
        return TelemetryBeside()
    table = _table(rows)
    if started is None:
        problem = "the telemetry beside it has times of day, and the report has none"
        return TelemetryBeside(problem=problem)
    for name in _GPU:
        if len({row.get(name) for row in table}) > 1:
            return TelemetryBeside(problem="the telemetry beside it is of several GPUs")
    return TelemetryBeside(_written(list(_converted(table, started))))


def _table(rows: list[list[str]]) -> list[dict[str, str]]:
    """The whole rows, by the names of their columns without units."""
    names = [_UNIT.sub("", name) for name in rows[0]]
    return [
        dict(zip(names, row, strict=True)) for row in rows[1:] if len(row) == len(names)
    ]


def _counted(
    table: list[dict[str, str]],
    columns: Mapping[str, TelemetryColumn],
    seconds: float | None,
) -> list[dict[str, str]]:
    """Each row with our columns, its seconds counted from the start of the measurement, which ends with the rows."""
    times = [reading.number(row.get(str(columns[_OURS].at))) for row in table]
    known = [time for time in times if time is not None]
    begin = 0.0
    if seconds is not None and known:
        begin = max(0.0, known[-1] - seconds)
    found = []
    for time, row in zip(times, table, strict=True):
        if time is None:
            continue
        ours = {_OURS: f"{time - begin:.3f}"}
        for name, column in columns.items():
            value = reading.number(row.get(str(column.at)))
            if name != _OURS and value is not None:
                ours[name] = f"{value * _scale(column.unit, name):g}"
        found.append(ours)
    return found


def _converted(
    table: list[dict[str, str]], started: datetime
) -> Iterator[dict[str, str]]:
    """Each row with our columns; one without a time is left out."""
    for row in table:
        time = _time(row["timestamp"])
        if time is None:
            continue
        ours = {_OURS: f"{(time - started).total_seconds():.3f}"}
        for theirs, column in _COLUMNS.items():
            value = _value(column, row.get(theirs, ""))
            if value:
                ours[column] = value
        yield ours


def _value(column: str, text: str) -> str:
    """A cell in our unit; empty for `[N/A]` and for whatever is no number."""
    if column in TEXT_COLUMNS:
        return "" if text.startswith("[") else text
    number = reading.number(text.partition(" ")[0])
    if number is None:
        return ""
    unit = "MiB" if column == "gpu_memory_used_gib" else None
    return f"{number * _scale(unit, column):g}"


def _scale(unit: str | None, column: str) -> float:
    """What a number in a unit is multiplied with for a column of ours; without a unit it is that of the column."""
    return 1.0 if unit is None else factor(unit, unit_of(column)) or 1.0


def _time(text: str) -> datetime | None:
    for form in _TIMES:
        try:
            return datetime.strptime(text, form)  # noqa: DTZ007 - a local clock, like that of the report
        except ValueError:
            continue
    return None


def _written(rows: list[dict[str, str]]) -> bytes:
    """CSV with those of our columns that hold anything."""
    filled = {column for row in rows for column in row}
    columns = [column for column in COLUMNS if column in filled]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()
