"""A figure as pages show and publish it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd
from pydantic_core import to_json

from sparkpub.review.checks import Finding
from sparkpub.site.content import block_key
from sparkpub.site.figures.compile import Chart, Job
from sparkpub.site.figures.rows import Tables

FOLDER = "charts"


@dataclass(frozen=True)
class Entry:
    """One cell of a table: text, and a link from the root of the site."""

    text: str
    href: str = ""


Value = Entry | Sequence[Entry] | str


@dataclass(frozen=True)
class Table:
    """A table for readers: column heads, and rows of text, of one link or of several."""

    head: tuple[str, ...]
    rows: Sequence[Sequence[Value]]
    caption: str = ""


@dataclass(frozen=True)
class Figure:
    """What a page shows and publishes of one chart.

    `says` is the sentence with the result, `sample` says n and what is left out. `data` are the named rows that the
    chart draws; `shared` are the addresses of those that other parts of the site have too. A figure that is not `drawn`
    shares its empty axes with others of its kind, until the browser puts the rows in.
    """

    key: str
    title: str
    says: str
    chart: Chart
    data: Tables
    table: Table
    sample: str = ""
    flags: tuple[Finding, ...] = ()
    shared: Mapping[str, str] = field(default_factory=dict)
    drawn: bool = True

    @property
    def sources(self) -> dict[str, str]:
        """Name of a table to the address from which a browser fetches its rows: a file, and the member of it."""
        own = self.address("json")
        return {name: self.shared.get(name, f"{own}#{name}") for name in self.data}

    def files(self) -> dict[str, bytes]:
        """Its own rows by address: each table in a JSON document, and the longest of them as CSV."""
        if self.shared:
            return {}
        longest = pd.DataFrame(max(self.data.values(), key=len))
        text = longest.to_csv(index=False, lineterminator="\n")
        return {
            self.address("json"): to_json(self.data),
            self.address("csv"): text.encode(),
        }

    @property
    def without_rows(self) -> "Figure":
        """The figure for a browser that fetches the rows itself."""
        return replace(self, data=dict.fromkeys(self.data, ()))

    @property
    def block(self) -> str:
        """The key of the placeholder that stands for the figure in a page."""
        return block_key(f"figure:{self.key}")

    @property
    def job(self) -> Job:
        """The chart to compile."""
        if self.drawn:
            return Job(self.key, self.chart, self.data)
        return without_rows(self.chart, self.data)

    def address(self, suffix: str) -> str:
        """Where a file of the figure is published, from the root of the site: stable across builds."""
        return f"{FOLDER}/{self.key}.{suffix}"


def without_rows(chart: Chart, names: Iterable[str]) -> Job:
    """Empty axes: the chart with no rows in any of the tables that it names."""
    no_rows: Tables = dict.fromkeys(names, ())
    return Job(f"empty-{block_key(chart.identity)}", chart, no_rows)
