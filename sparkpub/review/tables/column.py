"""A column of a table: its type, and what it holds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from sparkpub.review.statistics.describe import or_none

Kind = Literal["text", "integer", "number", "boolean", "list"]
_DTYPES: Mapping[Kind, Any] = {
    "text": "category",
    "integer": "int64",
    "number": "float64",
    "boolean": "bool",
    "list": "object",
}


@dataclass(frozen=True)
class Column:
    """`kind` in words of this program; `meaning` for readers. Missing text is null, a missing number NaN."""

    kind: Kind
    meaning: str


Columns = Mapping[str, Column]


def table(columns: Columns, values: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """A table of these columns, in their order and with their types."""
    series = {}
    for name, column in columns.items():
        series[name] = pd.Series(values[name], dtype=_DTYPES[column.kind])
    return pd.DataFrame(series)


def figures(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Each row of a table by column, None where there is nothing."""
    names = [str(name) for name in table]
    for values in table.itertuples(index=False, name=None):
        yield {name: or_none(value) for name, value in zip(names, values, strict=True)}
