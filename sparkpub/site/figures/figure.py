"""A figure as pages show and publish it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sparkpub.review.checks import Finding
from sparkpub.site import cache
from sparkpub.site.cache import Cache
from sparkpub.site.content import block_key
from sparkpub.site.drawing.chart import Chart
from sparkpub.site.drawing.compile import Job
from sparkpub.site.drawing.converter import LEVEL, VERSION, png
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
    chart draws, `sources` the addresses from which a browser fetches them. A figure that is not `drawn` shares its
    empty axes with others of its kind, until the browser puts the rows in.
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
            return Job(self.key, self.chart, self.data, self.narrow)
        no_rows: Tables = dict.fromkeys(self.data, ())
        return Job(
            f"empty-{block_key(self.chart.identity)}", self.chart, no_rows, self.narrow
        )

    def address(self, suffix: str) -> str:
        """Where a file of the figure is published, from the root of the site: stable across builds."""
        return f"{FOLDER}/{self.key}.{suffix}"


def as_png(svg: str, kept: Cache, *, scale: float = 1.0) -> bytes:
    """A drawing as PNG, from the cache where it was made before."""
    name = cache.key("picture", VERSION, LEVEL, scale, svg)
    picture = kept.get(name)
    if picture is None:
        picture = png(svg, scale=scale)
        kept.put(name, picture)
    return picture
