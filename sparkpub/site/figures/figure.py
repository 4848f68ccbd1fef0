"""A figure as pages show and publish it."""

import csv
import io
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_core import to_json

from sparkpub.review.checks import Finding
from sparkpub.site import cache
from sparkpub.site.cache import Cache
from sparkpub.site.content import Content, block_key
from sparkpub.site.drawing.chart import Chart
from sparkpub.site.drawing.compile import Compiled, Job
from sparkpub.site.drawing.converter import LEVEL, VERSION, png
from sparkpub.site.drawing.output import standalone
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

    `says` is the sentence with the result, `sample` says n and what is left out. `rows` are the data behind it, as
    published in CSV and JSON; `data` the named rows that the chart draws. `sources` are the addresses from which a
    browser fetches them. A figure that is not `drawn` shares its empty axes with others of its kind, until the browser
    puts the rows in. One without `downloads` has no files of its own: evidence, or a table of all runs, has the rows.
    """

    key: str
    title: str
    says: str
    chart: Chart
    data: Tables
    table: Table
    rows: Sequence[Mapping[str, Any]]
    sample: str = ""
    flags: tuple[Finding, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    narrow: Chart | None = None
    drawn: bool = True
    downloads: bool = True

    @property
    def without_rows(self) -> "Figure":
        """The figure for a browser that fetches the rows itself."""
        return replace(self, data=dict.fromkeys(self.data, ()), rows=())

    @property
    def block(self) -> str:
        """The key of the placeholder that stands for the figure in a page."""
        return block_key(f"figure:{self.key}")

    @property
    def job(self) -> Job:
        """The chart to compile."""
        if self.drawn:
            return Job(self.key, self.chart, self.data, self.narrow)
        no_rows: Tables = dict.fromkeys(self.data, ())
        return Job(
            f"empty-{block_key(self.chart.identity)}", self.chart, no_rows, self.narrow
        )

    def address(self, suffix: str) -> str:
        """Where a file of the figure is published, from the root of the site: stable across builds."""
        return f"{FOLDER}/{self.key}.{suffix}"

    def files(
        self, compiled: Compiled, cache: Cache, *, picture: bool
    ) -> Mapping[str, Content]:
        """The figure as SVG, CSV and JSON, and as PNG where a post or a preview wants a picture."""
        files = {}
        svg = ""
        if self.drawn or picture:
            svg = standalone(compiled.svg_wide)
        if self.downloads:
            document = {
                "title": self.title,
                "says": self.says,
                "sample": self.sample,
                **self.about,
            }
            files[self.address("svg")] = svg.encode()
            files[self.address("csv")] = as_csv(self.rows)
            files[self.address("json")] = as_json(document, self.rows)
        if picture:
            files[self.address("png")] = as_png(svg, cache, scale=2.0)
        return {address: Content(data=data) for address, data in files.items()}


def as_png(svg: str, kept: Cache, *, scale: float = 1.0) -> bytes:
    """A drawing as PNG, from the cache where it was made before."""
    name = cache.key("picture", VERSION, LEVEL, scale, svg)
    picture = kept.get(name)
    if picture is None:
        picture = png(svg, scale=scale)
        kept.put(name, picture)
    return picture


def as_json(document: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> bytes:
    """An object with the members of `document` and `rows`, each row on a line of its own."""
    return (
        to_json(document)[:-1]
        + b',"rows":[\n'
        + b",\n".join(map(to_json, rows))
        + b"\n]}\n"
    )


def as_csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Rows as CSV with a header; columns in order of first use, empty where a row has no value."""
    columns = list(dict.fromkeys(itertools.chain.from_iterable(rows)))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([row.get(column) for column in columns])
    return text.getvalue().encode()
