"""A figure: a chart with its sentence, its table, its files and its flags."""

import csv
import hashlib
import io
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from sparkpub.record.store import write_atomic
from sparkpub.review.checks import Finding
from sparkpub.site.content import Content, block_key
from sparkpub.site.figures import Chart
from sparkpub.site.figures.compile import Compiled, Job, converter
from sparkpub.site.figures.rows import Rows

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
    puts the rows in.
    """

    key: str
    title: str
    says: str
    chart: Chart
    data: Rows
    table: Table
    rows: Sequence[Mapping[str, Any]]
    sample: str = ""
    flags: tuple[Finding, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    narrow: Chart | None = None
    drawn: bool = True

    @property
    def block(self) -> str:
        """The key of the placeholder that stands for the figure in a page."""
        return block_key(f"figure:{self.key}")

    @property
    def job(self) -> Job:
        """The chart to compile."""
        if self.drawn:
            return Job(self.key, self.chart, self.data, self.narrow)
        return Job(f"empty-{block_key(self.chart.identity)}", self.chart, dict.fromkeys(self.data, ()), self.narrow)

    def address(self, suffix: str) -> str:
        """Where a file of the figure is published, from the root of the site: stable across builds."""
        return f"{FOLDER}/{self.key}.{suffix}"

    def files(self, compiled: Compiled, cache: Path, *, picture: bool) -> Mapping[str, Content]:
        """The figure as SVG, CSV, JSON and compiled Vega, and as PNG where a post or a preview wants a picture."""
        document = {"title": self.title, "says": self.says, "sample": self.sample, **self.about}
        made = {"svg": compiled.svg_file.encode(), "csv": as_csv(self.rows), "json": as_json(document, self.rows)}
        found = {self.address(suffix): Content(data=data) for suffix, data in made.items() if self.drawn}
        vega = specification(compiled)
        found[f"{vega}.vega.json"] = Content(data=compiled.vega_json.encode())
        found[f"{vega}.narrow.vega.json"] = Content(data=compiled.vega_json_narrow.encode())
        if picture:
            found[self.address("png")] = Content(data=as_png(compiled.svg_file, cache, scale=2.0))
        return found


def specification(compiled: Compiled) -> str:
    """Where the compiled chart lies, without suffix: named by content, so charts of one kind share it."""
    return f"{FOLDER}/vega/{block_key(compiled.vega_json + compiled.vega_json_narrow)}"


def as_png(svg: str, cache: Path, *, scale: float = 1.0) -> bytes:
    """A drawing as PNG, from `cache` where it was made before."""
    place = cache / "pictures" / f"{hashlib.sha256(f'{scale} {svg}'.encode()).hexdigest()}.png"
    if not place.is_file():
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(place, bytes(converter().svg_to_png(svg, scale=scale)), durable=False)
    return place.read_bytes()


def as_json(document: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> bytes:
    """An object with the members of `document` and `rows`, each row on a line of its own."""
    return to_json(document)[:-1] + b',"rows":[\n' + b",\n".join(map(to_json, rows)) + b"\n]}\n"


def as_csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Rows as CSV with a header; columns in order of first use, empty where a row has no value."""
    columns = list(dict.fromkeys(itertools.chain.from_iterable(rows)))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *([row.get(c) for c in columns] for row in rows)])
    return text.getvalue().encode()
