"""A column of a table: its type, and what it holds; the rows of a table, for code that takes them one by one; and the
groups of its rows, for code that describes them together."""

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isnan
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

ColumnKind = Literal["text", "integer", "count", "number", "boolean", "answer", "list"]
"""`count` is an integer, and `answer` a boolean, that may be missing."""
_DTYPES: Mapping[ColumnKind, Any] = {
    "text": "category",
    "integer": "int64",
    "count": "Int64",
    "number": "float64",
    "boolean": "bool",
    "answer": "boolean",
    "list": "object",
}


@dataclass(frozen=True)
class Column:
    """`kind` in words of this program; `meaning` for readers. Missing text is null, a missing number NaN."""

    kind: ColumnKind
    meaning: str


Columns = Mapping[str, Column]
TableRow: TypeAlias = Any
"""A row of a table: each column is an attribute, see `rows`."""


def columns(kind: ColumnKind, **meanings: str) -> dict[str, Column]:
    """Columns of one kind, by name."""
    return {name: Column(kind, meaning) for name, meaning in meanings.items()}


_ABOUT = columns(
    "text",
    campaign="The campaign, or the first of several",
    model="Key of the model",
    environment="Key of the environment",
    workload="Key of the workload",
    metric="Name of the metric",
    unit="Unit of the figures",
    family="primary, or secondary for exploratory metrics",
    baseline="The environment that is compared with",
    candidate="The environment that is compared",
)


def shared(*names: str) -> dict[str, Column]:
    """Columns that several tables have: what a row is about."""
    return {name: _ABOUT[name] for name in names}


def interval(**meanings: str) -> dict[str, Column]:
    """Two columns for the ends of each interval, `NAME_low` and `NAME_high`."""
    found = {}
    for name, meaning in meanings.items():
        found[f"{name}_low"] = Column("number", f"Lower end of {meaning}")
        found[f"{name}_high"] = Column("number", "Upper end of it")
    return found


def table(columns: Columns, values: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """A table of these columns, in their order and with their types."""
    series = {}
    for name, column in columns.items():
        series[name] = pd.Series(values[name], dtype=_DTYPES[column.kind])
    return pd.DataFrame(series)


def table_of(columns: Columns, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The same from rows that have these columns, among others. Rows that are made one by one are never there all at
    once, which would take several times the room of the table."""
    values: dict[str, list[Any]] = {name: [] for name in columns}
    for row in rows:
        for name, column in values.items():
            stem, _, end = name.rpartition("_")
            if name in row:
                column.append(row[name])
            else:  # an end of an interval
                column.append(None if row[stem] is None else row[stem][end == "high"])
    return table(columns, values)


def rows(table: pd.DataFrame) -> list[TableRow]:
    """The rows of a table, None where there is nothing.

    The columns `…_low` and `…_high` of an interval are one attribute, a pair or None. A row about a cell has it as
    `cell`: (model, environment, workload).
    """
    members: dict[str, list[Any]] = {}
    for column in table:
        name = str(column)
        stem, _, end = name.rpartition("_")
        if end == "low" and f"{stem}_high" in table:
            ends = zip(_plain(table[name]), _plain(table[f"{stem}_high"]), strict=True)
            members[stem] = [None if low is None else (low, high) for low, high in ends]
        elif end != "high" or f"{stem}_low" not in table:
            members[name] = _plain(table[name])
    if {"model", "environment", "workload"} <= members.keys():
        parts = (members[axis] for axis in ("model", "environment", "workload"))
        members["cell"] = list(zip(*parts, strict=True))
    row = namedtuple("row", members)  # type: ignore[misc]
    return list(map(row._make, zip(*members.values(), strict=True)))


def rows_by(table: pd.DataFrame, columns: Sequence[str]) -> Iterator[list[TableRow]]:
    """The rows that share their values in these columns, in the order first met."""
    each = rows(table)
    for places in groups(table, columns):
        yield [each[place] for place in places]


Places = NDArray[np.int64]
"""Where some rows stand in a table."""


def groups(table: pd.DataFrame, by: Sequence[str]) -> list[Places]:
    """The places of the rows that share their values in these columns, in the order first met."""
    if table.empty:
        return []
    grouped = table.groupby(list(by), observed=True, sort=False, dropna=False)
    numbers = grouped.ngroup().to_numpy()
    ordered = np.argsort(numbers, kind="stable")
    ends = [0, *np.cumsum(np.bincount(numbers)).tolist()]
    return [ordered[first:last] for first, last in pairwise(ends)]


def by_size(
    samples: Sequence[NDArray[Any]],
    describe: Callable[[NDArray[Any]], Mapping[str, NDArray[Any]]],
) -> dict[str, NDArray[Any]]:
    """The columns that `describe` makes of samples of one size, each a row of what it is given, for samples of any
    sizes: those of one are described at once."""
    columns: dict[str, NDArray[Any]] = {}
    sizes = np.array(list(map(len, samples)), dtype=np.int64)
    for size in np.unique(sizes):
        places = np.flatnonzero(sizes == size).tolist()
        same = np.stack([samples[place] for place in places])
        for name, column in describe(same).items():
            if name not in columns:
                columns[name] = np.empty(len(sizes), dtype=column.dtype)
            columns[name][places] = column
    return columns


def texts(column: "pd.Series[Any]") -> Any:
    """A column of text as an array, empty where there is none."""
    known = [*column.cat.categories, ""]
    return np.array(known, dtype=object)[column.cat.codes]


def _plain(column: "pd.Series[Any]") -> list[Any]:
    """The values of a column as Python has them, None where there is none."""
    if column.dtype == np.float64:
        return [None if isnan(value) else value for value in column.tolist()]
    values = column.astype(object)
    found: list[Any] = values.where(column.notna(), None).tolist()
    return found
