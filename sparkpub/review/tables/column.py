"""A column of a table: its type, and what it holds; the rows of a table, for code that takes them one by one; and the
groups of its rows, for code that describes them together."""

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sparkpub.review.grouping import RowList
from sparkpub.review.statistics.estimate import holm

# Of tables of some thousand rows, text as Python has it is faster than as Arrow has it.
pd.options.mode.string_storage = "python"

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


def table(columns: Columns, values: Any) -> pd.DataFrame:
    """A table of these columns, in their order and with their types, from what a DataFrame is made of (a list of rows,
    columns by name, another table), which may have others, too."""
    types = {name: _DTYPES[column.kind] for name, column in columns.items()}
    return pd.DataFrame(values, columns=[*types]).astype(types)


def plain(column: "pd.Series[Any]") -> list[Any]:
    """The values of a column, None where there is nothing."""
    return [
        None if value is pd.NA or value != value else value  # noqa: PLR0124 - NaN
        for value in column.tolist()
    ]


TableRows: TypeAlias = RowList[TableRow]


def rows(table: pd.DataFrame) -> TableRows:
    """The rows of a table, None where there is nothing.

    The columns `…_low` and `…_high` of an interval are one attribute, a pair or None. A row about a cell has it as
    `cell`: (model, environment, workload).
    """
    members: dict[str, list[Any]] = {}
    for column in table:
        name = str(column)
        stem, _, end = name.rpartition("_")
        values = plain(table[column])
        if end == "high" and stem in members:
            ends = zip(members[stem], values, strict=True)
            members[stem] = [None if low is None else (low, high) for low, high in ends]
        else:
            members[stem if end == "low" else name] = values
    axes = ("model", "environment", "workload")
    if members.keys() >= set(axes):
        members["cell"] = list(zip(*(members[axis] for axis in axes), strict=True))
    row = namedtuple("row", members)  # type: ignore[misc]
    return TableRows(map(row._make, zip(*members.values(), strict=True)))


Places = NDArray[np.int64]
"""Where some rows stand in a table."""


def groups(table: pd.DataFrame, by: Sequence[str]) -> list[Places]:
    """The places of the rows that share their values in these columns, in the order first met."""
    if table.empty:
        return []
    grouped = table.groupby(list(by), observed=True, sort=False, dropna=False)
    numbers = grouped.ngroup().to_numpy()
    ends = np.cumsum(np.bincount(numbers))
    return np.split(np.argsort(numbers, kind="stable"), ends[:-1])


def by_size(
    samples: Sequence[NDArray[Any]],
    describe: Callable[[NDArray[Any]], Mapping[str, NDArray[Any]]],
) -> pd.DataFrame:
    """The columns that `describe` makes of samples of one size, each a row of what it is given, for samples of any
    sizes: those of one are described at once."""
    if not samples:
        return pd.DataFrame(describe(np.empty((0, 1))))
    found = []
    sizes = np.array(list(map(len, samples)))
    for size in np.unique(sizes):
        places = np.flatnonzero(sizes == size).tolist()
        same = describe(np.stack([samples[place] for place in places]))
        found.append(pd.DataFrame(same, index=places))
    return pd.concat(found).sort_index()


def texts(column: "pd.Series[Any]") -> Any:
    """A column of text as an array, empty where there is none."""
    known = [*column.cat.categories, ""]
    return np.array(known, dtype=object)[column.cat.codes]


def corrected(
    found: pd.DataFrame, name: str, families: Sequence[str]
) -> "pd.Series[float]":
    """Holm's correction of the p-values in a column within each combination of the columns `families`."""
    by = found.groupby([*families], observed=True, sort=False, dropna=False)
    return by[name].transform(lambda p: pd.Series(holm(p.to_numpy()), p.index, float))
