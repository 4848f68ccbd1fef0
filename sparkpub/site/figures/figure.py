"""A figure as pages show and publish it."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from sparkpub.review.checks import Finding
from sparkpub.review.tables.column import plain as values
from sparkpub.site.figures.draw import Chart
from sparkpub.site.figures.shapes import Row, Spec
from sparkpub.site.study import column, records

FOLDER = "charts"
DRAWN = (
    *("model", "environment", "workload", "panel", "name", "group", "kind", "line"),
    *("column", "text", "colour", "label", "x", "end", "order", "value"),
    *("low", "high", "least", "most", "verdict", "iteration", "counts"),
    *("href", "tip"),
)
"""What a row of a chart may have: what a shape draws, and behind the keys of its cell, by which readers filter."""


@dataclass(frozen=True)
class Entry:
    """One cell of a table: text, and a link from the root of the site."""

    text: str
    href: str = ""


Value = Entry | Sequence[Entry] | str
Heads = Mapping[str, tuple[Hashable, Callable[[Any], Value]]]
"""Head of a table to the column of rows that stands below it, and what is written of each of its values."""


TableLine = Mapping[str, Value]
"""A row of a table for readers: head to what stands below it; rows of one table have the same heads."""


def known(table: Sequence[TableLine]) -> list[str]:
    """The heads of a table without those below which nothing is known; what its rows are about stays."""
    about, *others = table[0]

    def says(value: Value) -> bool:
        said = value.text if isinstance(value, Entry) else value
        return bool(said) and said != "not known"

    return [about, *(head for head in others if any(says(row[head]) for row in table))]


@dataclass(frozen=True)
class Figure:
    """A chart with its sentence and its table, published under `key`.

    `says` is the sentence with the result, `sample` says n and what is left out, `note` how to read it in full, behind
    a line; `flags` are the findings that touch it. A chart whose rows lie in another file of the site names its address
    as `rows_at`; `drawn_as` is the key of axes that it shares with others of its kind, until the browser puts these
    rows in.
    """

    says: str
    chart: Chart
    table: Sequence[TableLine] = ()
    sample: str = ""
    note: str = ""
    title: str = ""
    flags: tuple[Finding, ...] = ()
    key: str = ""
    rows_at: str = ""
    drawn_as: str = ""

    def csv(self) -> bytes:
        """Its rows for a spreadsheet."""
        rows = pd.DataFrame(self.chart.rows).drop(columns="tip", errors="ignore")
        return rows.to_csv(index=False, lineterminator="\n").encode()

    def address(self, suffix: str) -> str:
        """Where a file of the figure is published, from the root of the site: stable across builds."""
        return f"{FOLDER}/{self.key}.{suffix}"


def telling(rows: pd.DataFrame, heads: Heads) -> pd.DataFrame:
    """The rows with what a table says of each as `tip`: under each head what a function makes of a column, nothing
    where it has nothing."""
    said = (
        ["" if value is None else form(value) for value in values(rows[name])]
        for name, form in heads.values()
    )
    tips = (dict(zip(heads, each, strict=True)) for each in zip(*said, strict=True))
    return rows.assign(tip=column(rows, tips))


def chart(
    shape: Callable[..., Spec], rows: "pd.DataFrame | Sequence[Row]", **options: Any
) -> Chart:
    """Rows as one of the shapes draws them, with the options of the shape."""
    drawn = plain(rows) if isinstance(rows, pd.DataFrame) else rows
    return Chart(partial(shape, **options), drawn)


def plain(rows: pd.DataFrame) -> list[Row]:
    """The rows that a chart draws, without what is not there; that a run counts goes without saying."""
    found: list[Row] = []
    for row in records(rows[[name for name in DRAWN if name in rows]]):
        said = {name: value for name, value in row.items() if value is not None}
        if said.get("counts"):
            del said["counts"]
        found.append(said)
    return found
