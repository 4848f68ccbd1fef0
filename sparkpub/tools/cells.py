"""What stands in a cell of a table, or at a place of a document, as text and as a time."""

import re
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from sparkpub.record.record import Moment

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_SECONDS = re.compile(r"\d{9,10}(?:\.\d+)?")
"""UNIX time of the years 1973 to 2286."""
_STAMP = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[-_T ]?(\d\d)[:-]?(\d\d)[:-]?(\d\d)")
_EMPTY = ("", "nan", "null", "none", "n/a", "-")
"""Words for no value, as pandas and people write them."""


def text(cell: Any) -> str | None:
    """A cell as text; None for an empty one."""
    if cell is None:
        return None
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    said = str(cell).strip()
    return None if said.lower() in _EMPTY else said


def moment(cell: Any) -> Moment | None:
    """A time, in UTC where it has a zone or is UNIX time; a date alone is its midnight. None for anything else."""
    said = text(cell) or ""
    try:
        if _SECONDS.fullmatch(said):
            return _in_utc(datetime.fromtimestamp(float(said), UTC))
        if _DATE.fullmatch(said):
            return local_moment(f"{said}T00:00:00")
        found = datetime.fromisoformat(said)
    except (ValueError, OSError):
        return local_moment(said)
    return local_moment(said) if found.tzinfo is None else _in_utc(found)


def local_moment(text: Any) -> Moment | None:
    """`20251108_195154` as a time whose zone nobody recorded; None where it is no time."""
    found = _STAMP.search(str(text))
    if found is None:
        return None
    year, month, day, *clock = found.groups()
    try:
        return Moment(value=f"{year}-{month}-{day}T{':'.join(clock)}", zone="unknown")
    except ValidationError:
        return None


def _in_utc(moment: datetime) -> Moment | None:
    """None for a time that no run can have."""
    try:
        return Moment.at(moment.astimezone(UTC))
    except (OverflowError, ValidationError):
        return None
