"""Telemetry that lay beside a report, in our own columns: of a CSV whose columns a layout describes.

Seconds since somebody's own start do not say when the report began: they are taken to end with the measurement.
"""

import csv
import io
from collections.abc import Mapping, Sequence

from sparkpub.collect.imports.facts import TelemetryColumn
from sparkpub.record.metrics import factor, unit_of
from sparkpub.record.telemetry import COLUMNS
from sparkpub.tools import forms, reading
from sparkpub.tools.forms import FileError

_OURS = "elapsed_seconds"


def samples(
    content: bytes, columns: Mapping[str, TelemetryColumn], seconds: float | None
) -> bytes:
    """CSV in our columns of one in somebody's, which a layout describes; empty for any other, such as a table of
    results. `seconds` is how long was measured."""
    theirs = columns.get(_OURS)
    try:
        table = forms.of_csv(reading.text(content))
    except FileError:
        return b""
    if theirs is None or not table or theirs.at not in table[0]:
        return b""
    elapsed = _counted([row[str(theirs.at)] or "" for row in table], seconds)
    return _written(table, columns, elapsed)


def _counted(said: Sequence[str], seconds: float | None) -> list[float | None]:
    """Seconds counted from the start of the measurement, which ends with the rows."""
    times = [reading.number(text) for text in said]
    known = [time for time in times if time is not None]
    begin = 0.0
    if seconds is not None and known:
        begin = max(0.0, known[-1] - seconds)
    return [None if time is None else time - begin for time in times]


def _written(
    table: Sequence[Mapping[str, str | None]],
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
    name: str, column: TelemetryColumn, rows: Sequence[Mapping[str, str | None]]
) -> list[str]:
    """The cells of a column in the unit of ours; empty for whatever is no number."""
    scale = factor(column.unit, unit_of(name)) if column.unit else None
    values = []
    for row in rows:
        number = reading.number(row.get(str(column.at)))
        values.append("" if number is None else f"{number * (scale or 1.0):g}")
    return values
