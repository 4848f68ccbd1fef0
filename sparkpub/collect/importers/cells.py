"""What stands in a cell of a table, or at a place of a document: text, a number, a time."""

import re
from datetime import datetime
from typing import Any

from sparkpub.collect.importers.base import local_moment, unix_moment, utc_moment
from sparkpub.plan.workloads import reading
from sparkpub.record.record import Moment

_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d*)(?:\.\d*)?(?:[eE][-+]?\d+)?")
"""With commas only between groups of three digits: `12,5` is no number here, since nobody can tell which one it is."""
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


def number(said: str) -> float | None:
    """A finite number; None for anything else."""
    if not _NUMBER.fullmatch(said):
        return None
    return reading.number(said)


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
