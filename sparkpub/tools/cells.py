"""What stands in a cell of a table, or at a place of a document: text, a number, a time."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from sparkpub.record.record import Moment
from sparkpub.tools import reading

_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?(?:[eE][-+]?\d+)?")
"""A comma between groups of three digits: `1,204.5`."""
_DECIMALS = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+(?:[eE][-+]?\d+)?")
"""A comma before decimals, and points between groups if at all: `1.204,5`."""
_POINTS = re.compile(r"[-+]?\d{1,3}(?:\.\d{3})+")
"""What is a whole number where a comma begins decimals."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_SECONDS = re.compile(r"\d{9,10}(?:\.\d+)?")
"""UNIX time of the years 1973 to 2286."""
_EMPTY = ("", "nan", "null", "none", "n/a", "-")
"""Words for no value, as pandas and people write them."""
_LONGEST_SHOWN = 60


class CellError(Exception):
    """A cell that cannot be used; the text says which, why, and what to do."""


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


def without_commas(column: Sequence[Any]) -> list[Any]:
    """The cells of a column in which every number is written with a point and no comma.

    What its commas mean is seen by the whole column. Where that leaves both readings (`1,204` alone), or none, it stays
    as it is: no such cell is a figure, since nobody can tell which one.
    """
    parts = [
        part.strip()
        for cell in column
        if isinstance(cell, str)
        for part in cell.split("±")
    ]
    written = [part for part in parts if "," in part]
    if not written:
        return [*column]
    others = [part for part in parts if "." in part and "," not in part]
    thousands = all(map(_THOUSANDS.fullmatch, written))
    decimals = all(map(_DECIMALS.fullmatch, written))
    decimals = decimals and all(map(_POINTS.fullmatch, others))
    if thousands == decimals:
        return [*column]
    plain = str.maketrans({",": None}) if thousands else str.maketrans(",", ".", ".")
    return [cell.translate(plain) if isinstance(cell, str) else cell for cell in column]


def moment(cell: Any) -> Moment | None:
    """A time, in UTC where it has a zone or is UNIX time; a date alone is its midnight. None for anything else."""
    said = text(cell) or ""
    seconds = reading.number(said) if _SECONDS.fullmatch(said) else None
    if seconds is not None:
        return unix_moment(seconds)
    if _DATE.fullmatch(said):
        return local_moment(f"{said}T00:00:00")
    try:
        found = datetime.fromisoformat(said)
    except ValueError:
        return local_moment(said)
    return local_moment(said) if found.tzinfo is None else utc_moment(found)


def shown(said: str) -> str:
    """What stands in a cell, for a line to people."""
    if len(said) > _LONGEST_SHOWN:
        said = f"{said[:_LONGEST_SHOWN]}…"
    return repr(said)


_STAMP = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[-_T ]?(\d\d):?(\d\d):?(\d\d)")


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


def utc_moment(moment: datetime) -> Moment | None:
    """A time with its zone, in UTC; None for one that no run can have."""
    try:
        return Moment.at(moment.astimezone(UTC))
    except (OverflowError, ValidationError):
        return None


def unix_moment(seconds: float) -> Moment | None:
    """UNIX time in seconds; None for one that no run can have."""
    try:
        return utc_moment(datetime.fromtimestamp(seconds, UTC))
    except (OverflowError, ValueError, OSError):
        return None
