"""A chart -> compiled Vega and two static drawings.

A chart names its data (`{"name": "runs"}`) and holds none. A single view is drawn in two widths; a chart of several
views, which has widths of its own, or one whose shape must change is drawn otherwise on a phone (`Chart.phone`).

Colours are `var(--sp-…)`, which a browser resolves wherever an SVG attribute takes a colour; `colours.css` has their
values. The `href` channel holds addresses from the site's root (`runs/<id>/`).
"""

import functools
import json
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from sparkpub.record.errors import SiteError
from sparkpub.record.store import canonical_json
from sparkpub.site.figures.converter import VEGA_LITE, converter, printable
from sparkpub.site.figures.svg import tidy

WIDE, NARROW = 640, 344
"""Total widths of the two drawings in CSS pixels: a column of the site, and a phone."""
MOST_LETTERS = 500
"""Of a text in a row; far more than fit beside a chart."""
LEGEND_COLUMNS = 3
NARROW_LEGEND_COLUMNS = 2
_COMPOSED = frozenset({"facet", "hconcat", "vconcat", "concat", "repeat", "spec"})
"""Members of a specification that hold other views."""

Specification = dict[str, Any]
"""Vega-Lite as plain values; the data that it names hold no rows."""
Data = Mapping[str, Sequence[Mapping[str, Any]]]
"""Name of a data set to its rows."""


@dataclass(frozen=True)
class Chart:
    """A drawing not made yet: `draw(*subject)` is its Vega-Lite specification, and `draw(*subject, *phone)` that for a
    phone where a change of width is not enough.

    `draw` is a function of a module, so that other processes find it. It is called only for a drawing that is not in
    the cache: Altair is slow, to load and to work.
    """

    draw: Callable[..., Specification]
    subject: tuple[Any, ...] = ()
    phone: tuple[Any, ...] = ()

    @property
    def identity(self) -> str:
        """Text that changes with everything but code that decides the specification."""
        name = f"{self.draw.__module__}.{self.draw.__qualname__}"
        return f"{name}{self.subject!r}{self.phone!r}"

    def specification(self, *more: Any) -> Specification:
        """The Vega-Lite specification. Altair's own validation, most of its time, is left to the tests."""
        debug_mode = pkgutil.resolve_name("altair.utils.schemapi:debug_mode")
        with debug_mode(False):
            return self.draw(*self.subject, *more)


@dataclass(frozen=True)
class Job:
    """One chart to compile. `key` names it on the whole site: the ids within its drawings begin with it."""

    key: str
    chart: Chart
    data: Data


@dataclass(frozen=True)
class Compiled:
    """A chart ready for pages.

    `svg_wide` and `svg_narrow` need no script: colours are variables, links begin with `content.ROOT`. `vega_json` and
    `vega_json_narrow` are Vega without rows: the browser fetches them once for all charts.
    """

    key: str
    vega_json: str
    vega_json_narrow: str
    svg_wide: str
    svg_narrow: str


def compile_chart(job: Job) -> Compiled:
    """Compile and draw one chart. Raises SiteError naming its key where Vega-Lite or Vega refuses it."""
    try:
        wide, narrow = translated(job.chart)
        svg_wide, svg_narrow = _drawn(wide, job.data), _drawn(narrow, job.data)
    except (ValueError, ElementTree.ParseError) as error:
        raise SiteError(
            f"chart {job.key!r} does not compile: {_reason(error)}",
            remedy="correct its specification or the data it names",
        ) from None
    return Compiled(
        key=job.key,
        vega_json=canonical_json(wide),
        vega_json_narrow=canonical_json(narrow),
        svg_wide=tidy(svg_wide, f"{job.key}-w-"),
        # On a phone a finger needs the table or the live chart to choose a run, and the page is a third lighter.
        svg_narrow=tidy(svg_narrow, f"{job.key}-n-", links=False),
    )


def _reason(error: Exception) -> str:
    """The line of the converter's message that says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in lines:
        if "Error:" in line:
            return line
    return lines[-1]


@functools.lru_cache(maxsize=16)
def translated(chart: Chart) -> tuple[dict[str, Any], dict[str, Any]]:
    """Vega of the wide and of the narrow drawing. Runs differ in their data alone, so theirs is translated once."""
    wide, narrow = specifications(chart)
    return vega(wide), vega(narrow)


def specifications(chart: Chart) -> tuple[Specification, Specification]:
    """Vega-Lite of the wide and of the narrow drawing."""
    wide = chart.specification()
    narrow = wide
    if chart.phone:
        narrow = chart.specification(*chart.phone)
    return _fitted(wide, WIDE), _fitted(_narrowed(narrow), NARROW)


def vega(specification: Specification) -> dict[str, Any]:
    """Vega of a Vega-Lite specification.

    Both drawings of a single view have one: its width and the columns of its legend, all that differs, pass through
    Vega-Lite as they are.
    """
    if "autosize" not in specification:
        return _vega(canonical_json(specification))
    config = specification.get("config", {})
    legend = {**config.get("legend", {}), "columns": 0}
    common = {**specification, "width": WIDE, "config": {**config, "legend": legend}}
    found = _vega(canonical_json(common))
    found["width"] = specification["width"]
    found["config"]["legend"]["columns"] = config.get("legend", {}).get(
        "columns", LEGEND_COLUMNS
    )
    return found


def _vega(specification: str) -> dict[str, Any]:
    return dict(json.loads(_translated(specification)))


@functools.lru_cache(maxsize=4)
def _translated(specification: str) -> str:
    return canonical_json(
        converter().vegalite_to_vega(specification, vl_version=VEGA_LITE)
    )


def _narrowed(wide: Specification) -> Specification:
    """The chart for a phone: a legend that has room for two columns."""
    config = wide.get("config", {})
    legend = {**config.get("legend", {}), "columns": NARROW_LEGEND_COLUMNS}
    return {**wide, "config": {**config, "legend": legend}}


def _fitted(specification: Specification, width: int) -> Specification:
    """A single view is fitted by Vega to the total width; composed ones keep the widths of their views."""
    faceted = {"row", "column", "facet"} & specification.get("encoding", {}).keys()
    if faceted or _COMPOSED & specification.keys():
        return dict(specification)
    return {
        **specification,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "width": width,
    }


def _drawn(vega: Mapping[str, Any], data: Data) -> str:
    """The drawing as SVG."""
    # As text, which costs the converter less than objects do.
    text = json.dumps(_with_rows(_printed(vega), data))
    return str(converter().vega_to_svg(text, allowed_base_urls=[]))


def _printed(vega: Any) -> Any:
    """The Vega specification without tooltips: computed for every point, they take a fifth of the time to draw."""
    if isinstance(vega, dict):
        shown = dict(vega)
        shown.pop("tooltip", None)
        return {name: _printed(value) for name, value in shown.items()}
    if isinstance(vega, list):
        return [_printed(item) for item in vega]
    if isinstance(vega, str):
        return printable(vega)
    return vega


def _printed_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with texts that can be drawn: measuring one of a million letters takes gigabytes."""
    printed = dict(row)
    for name, value in row.items():
        if isinstance(value, str):
            printed[name] = printable(value[:MOST_LETTERS])
    return printed


def _with_rows(vega: Mapping[str, Any], data: Data) -> dict[str, Any]:
    """The Vega specification with the rows of every data set that it names and does not define."""
    sources = []
    for item in vega.get("data", []):
        source = dict(item)
        if item["name"] in data and "source" not in item:
            source["values"] = [_printed_row(row) for row in data[item["name"]]]
        sources.append(source)
    return {**vega, "data": sources}
