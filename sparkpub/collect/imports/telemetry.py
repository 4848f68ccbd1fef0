"""Telemetry that lay beside a report, in our own columns: of a CSV whose columns a layout describes.

Seconds since somebody's own start do not say when the report began: they are taken to end with the measurement.
"""

from collections.abc import Mapping

from sparkpub.collect.imports.facts import TelemetryColumn
from sparkpub.record.metrics import factor, unit_of
from sparkpub.record.telemetry import COLUMNS
from sparkpub.tools import forms, reading
from sparkpub.tools.forms import FileError

_OURS = "elapsed_seconds"


def samples(
    content: bytes, columns: Mapping[str, TelemetryColumn], seconds: float | None
) -> bytes:
    """CSV in those of our columns that hold anything of one in somebody's, which a layout describes; empty for any
    other, such as a table of results. A row without a time is left out. `seconds` is how long was measured."""
    theirs = columns.get(_OURS)
    try:
        table = forms.of_csv(reading.text(content))
    except FileError:
        return b""
    if theirs is None or not table or theirs.at not in table[0]:
        return b""
    timed = [(reading.number(row[str(theirs.at)]), row) for row in table]
    rows = [(time, row) for time, row in timed if time is not None]
    begin = max(0.0, rows[-1][0] - seconds) if rows and seconds is not None else 0.0
    filled = {_OURS: [f"{time - begin:.3f}" for time, _ in rows]}
    for name, column in columns.items():
        if name not in COLUMNS or name == _OURS:
            continue
        scale = factor(column.unit, unit_of(name)) if column.unit else None
        numbers = [reading.number(row.get(str(column.at))) for _, row in rows]
        if any(number is not None for number in numbers):
            filled[name] = [
                "" if number is None else f"{number * (scale or 1.0):g}"
                for number in numbers
            ]
    names = [name for name in COLUMNS if filled.get(name)]
    lines = zip(*(filled[name] for name in names), strict=True)
    return "".join(f"{','.join(line)}\n" for line in (names, *lines)).encode()
