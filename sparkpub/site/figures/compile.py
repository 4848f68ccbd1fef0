"""Chart specification -> compiled Vega and two static drawings, at build time.

A chart names its data (`{"name": "runs"}`) and holds none. Its widths are those of the wide drawing; the narrow one
is the same chart with every width reduced alike, or a chart of its own (`Job.narrow`) where the shape must change.

    Compiled.vega_json, .vega_json_narrow   Vega without data: the browser fetches the rows once for all charts
    Compiled.svg_wide, .svg_narrow          drawings for a page: colours are variables, links begin with `content.ROOT`
    Compiled.svg_file                       a drawing that stands alone: real colours on white
    drawing(compiled, …)                    both drawings as HTML, switched by the width of their container

Colours are `var(--sp-…)`, which a browser resolves wherever an SVG attribute takes a colour; `sparkpub.css` has their
values. The `href` channel holds addresses from the site's root (`runs/<id>/`).
"""

import concurrent.futures
import functools
import hashlib
import html
import json
import multiprocessing
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self

import vl_convert
from pydantic_core import to_json

from sparkpub.record.errors import SiteError
from sparkpub.record.store import canonical_json, write_atomic
from sparkpub.site.content import ROOT
from sparkpub.site.figures import Chart
from sparkpub.site.figures.svg import tidy

LEGEND_COLUMNS = 4
WIDE, NARROW = 640, 344
"""Total widths of the two drawings in CSS pixels: a column of the site, and a phone."""
FONT = "Helvetica Neue, Arial, sans-serif"
"""Ends in a family that the converter ships, so that text is measured alike on every machine."""
VEGA_LITE = "6.4"
FORMAT = 13
"""Counts changes of what this module makes of the same chart; part of every cache key."""
POOL_FROM = 24
"""Cold charts from which other processes pay for their start."""
CHUNK = 4
"""Charts that travel to another process at once."""
_CORES = os.cpu_count() or 1
_CONVERTER = metadata.version("vl-convert-python")
_SIZE = re.compile(r'width="[\d.]+" height="[\d.]+"')
_VARIABLE = re.compile(r"var\((--sp-[a-z0-9]+)\)")
_FONTS = Path(__file__).parents[1] / "browser" / "assets" / "fonts.conf"

Rows = Sequence[Mapping[str, Any]]
Data = Mapping[str, Rows]


@functools.cache
def converter() -> ModuleType:
    """vl-convert, held to the fonts that it ships.

    So a drawing has the same measures on every machine; and text is measured eight times as fast as with a font of
    the system, whose file the converter opens anew for every few letters.
    """
    before = os.environ.get("FONTCONFIG_FILE")
    os.environ["FONTCONFIG_FILE"] = str(_FONTS)
    try:  # fonts are looked for once, at the first text
        vl_convert.svg_to_png('<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"><text>.</text></svg>')
    finally:
        del os.environ["FONTCONFIG_FILE"]
        if before is not None:
            os.environ["FONTCONFIG_FILE"] = before
    return vl_convert


@dataclass(frozen=True)
class Compiled:
    """A chart ready for pages. `svg_*` need no script; `vega_json*` need the data that the chart names."""

    key: str
    vega_json: str
    vega_json_narrow: str
    svg_wide: str
    svg_narrow: str

    @cached_property
    def svg_file(self) -> str:
        """The wide drawing as a file of its own: real colours, white ground, no links."""
        return _alone(concrete(self.svg_wide), '<rect width="100%" height="100%" fill="#fff"/>')


@dataclass(frozen=True)
class Job:
    """One chart to compile. `narrow` replaces it on phones where a change of width is not enough."""

    key: str
    chart: Chart | Mapping[str, Any]
    data: Data
    narrow: Chart | Mapping[str, Any] | None = None

    @cached_property
    def specifications(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Vega-Lite of the wide and the narrow drawing."""
        wide = _specification(self.chart)
        narrow = _narrowed(wide) if self.narrow is None else _specification(self.narrow)
        return _fitted(wide, WIDE), _fitted(narrow, NARROW)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all that decides the result: charts, data, theme and the versions that compile."""
        charts = [chart.identity if isinstance(chart, Chart) else chart for chart in (self.chart, self.narrow)]
        content = [self.key, charts, self.data, FORMAT, VEGA_LITE, _CONVERTER]
        return hashlib.sha256(to_json(content)).hexdigest()


def compile_chart(chart: Chart | Mapping[str, Any], data: Data, *, key: str, narrow: Any = None) -> Compiled:
    """One chart, without the cache. Raises SiteError naming `key` where Vega-Lite or Vega refuses it."""
    return _compiled(Job(key, chart, data, narrow))


class Drawings:
    """Compiles charts while their pages are still being made.

    What the cache holds is there at once. The first `POOL_FROM` others wait for the end, in case they are all; beyond
    that, other processes begin to compile.

        with Drawings(cache) as drawings:
            drawings.want(job)  # as often as there are charts
            compiled = drawings.finished()
    """

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._wanted: set[str] = set()
        self._found: dict[str, Compiled] = {}
        self._waiting: list[tuple[Job, Path]] = []
        self._sent: list[concurrent.futures.Future[list[Compiled]]] = []
        self._pool: concurrent.futures.ProcessPoolExecutor | None = None
        cache.mkdir(parents=True, exist_ok=True)
        if next(cache.iterdir(), None) is None and _CORES > 1:
            self._start()  # with nothing known there will be work, and starting takes a second

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def want(self, job: Job) -> None:
        """Have a chart compiled. Jobs of one key are one chart."""
        if job.key in self._wanted:
            return
        self._wanted.add(job.key)
        path = self._cache / f"{job.fingerprint}.json"
        known = _from_cache(path)
        if known is not None:
            self._found[job.key] = known
            return
        self._waiting.append((job, path))
        if len(self._waiting) >= (POOL_FROM if self._pool is None else CHUNK) and _CORES > 1:
            self._send(self._pool or self._start())

    def _start(self) -> concurrent.futures.ProcessPoolExecutor:
        # A forked process hangs once V8 has started in its parent, so processes are spawned.
        context = multiprocessing.get_context("spawn")
        self._pool = concurrent.futures.ProcessPoolExecutor(_CORES, mp_context=context)
        self._sent += [self._pool.submit(_compile_all, []) for _ in range(_CORES)]
        return self._pool

    def _send(self, pool: concurrent.futures.ProcessPoolExecutor) -> None:
        for at in range(0, len(self._waiting), CHUNK):
            self._sent.append(pool.submit(_compile_all, self._waiting[at : at + CHUNK]))
        self._waiting = []

    def finished(self) -> Mapping[str, Compiled]:
        """Key to chart, for every chart wanted. Raises SiteError naming one that cannot be compiled."""
        if self._pool is not None:
            self._send(self._pool)
        done = [*(item for future in self._sent for item in future.result()), *_compile_all(self._waiting)]
        self._found |= {compiled.key: compiled for compiled in done}
        return self._found


def _compile_all(jobs: Iterable[tuple[Job, Path]]) -> list[Compiled]:
    """Compile the jobs and keep each on disk where it is said."""
    found = []
    for job, path in jobs:
        compiled = _compiled(job)
        write_atomic(path, json.dumps(asdict(compiled)), durable=False)
        found.append(compiled)
    return found


def _from_cache(path: Path) -> Compiled | None:
    try:
        return Compiled(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _compiled(job: Job) -> Compiled:
    try:
        wide, narrow = (_drawn(specification, job.data) for specification in job.specifications)
    except ValueError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = next((line for line in lines if "Error:" in line), lines[-1])
        raise SiteError(f"chart {job.key!r} does not compile: {reason}",
                        remedy="correct its specification or the data it names") from None  # fmt: skip
    # On a phone a finger needs the table or the live chart to choose a run, and the page is a third lighter.
    drawings = tidy(wide[1], f"{job.key}-w-"), tidy(narrow[1], f"{job.key}-n-", links=False)
    return Compiled(job.key, wide[0], narrow[0], *drawings)


def _drawn(specification: dict[str, Any], data: Data) -> tuple[str, str]:
    """(Vega without data, SVG)."""
    vega = _vega(specification)
    # As text, which costs the converter less than objects do.
    text = json.dumps(_with_data(_still(vega), data))
    return canonical_json(vega), converter().vega_to_svg(text, allowed_base_urls=[])


def _vega(specification: dict[str, Any]) -> dict[str, Any]:
    """Vega of a Vega-Lite specification. Both drawings of a single view have one: its width and the columns of its
    legend, all that differs, pass through Vega-Lite as they are."""
    if "autosize" not in specification:
        return dict(json.loads(_translated(canonical_json(specification))))
    config = specification.get("config", {})
    legend = {**config.get("legend", {}), "columns": 0}
    common = {**specification, "width": WIDE, "config": {**config, "legend": legend}}
    vega: dict[str, Any] = json.loads(_translated(canonical_json(common)))
    vega["width"] = specification["width"]
    vega["config"]["legend"]["columns"] = config.get("legend", {}).get("columns", LEGEND_COLUMNS)
    return vega


@functools.lru_cache(maxsize=64)
def _translated(specification: str) -> str:
    """Vega-Lite to Vega; runs differ in their data alone, so theirs is translated once."""
    return canonical_json(converter().vegalite_to_vega(specification, vl_version=VEGA_LITE))


def _specification(chart: Chart | Mapping[str, Any]) -> dict[str, Any]:
    return chart.specification() if isinstance(chart, Chart) else dict(chart)


_COMPOSED = frozenset({"facet", "hconcat", "vconcat", "concat", "repeat", "spec"})


def _narrowed(wide: Mapping[str, Any]) -> dict[str, Any]:
    """The chart for a phone: every width reduced alike, and a legend that has room for two columns."""
    config = wide.get("config", {})
    narrow: dict[str, Any] = _resized(wide, NARROW / WIDE)
    return {**narrow, "config": {**config, "legend": {**config.get("legend", {}), "columns": 2}}}


def _resized(node: Any, factor: float) -> Any:
    """A copy of a specification in which the width of every view is multiplied; marks keep theirs."""
    if isinstance(node, Mapping):
        return {
            key: round(value * factor)
            if key == "width" and isinstance(value, int | float)
            else _resized(value, factor)
            if key in _COMPOSED | {"layer"}
            else value
            for key, value in node.items()
        }
    return [_resized(item, factor) for item in node] if isinstance(node, list) else node


def _fitted(specification: Mapping[str, Any], width: int) -> dict[str, Any]:
    """A single view is fitted by Vega to the total width; composed ones keep the widths of their views."""
    composed = _COMPOSED & specification.keys() or {"row", "column", "facet"} & specification.get("encoding", {}).keys()
    if composed:
        return dict(specification)
    return {**specification, "autosize": {"type": "fit-x", "contains": "padding"}, "width": width}


def _still(vega: Any) -> Any:
    """The Vega specification without tooltips: computed for every point, they take a fifth of the time to draw."""
    if isinstance(vega, dict):
        return {key: _still(value) for key, value in vega.items() if key != "tooltip"}
    return [_still(item) for item in vega] if isinstance(vega, list) else vega


def _with_data(vega: Mapping[str, Any], data: Data) -> dict[str, Any]:
    """The Vega specification with the rows of every data set that it names and does not define."""
    sources = [
        {**item, "values": data[item["name"]]} if item["name"] in data and "source" not in item else item
        for item in vega.get("data", [])
    ]
    return {**vega, "data": sources}


def drawing(
    compiled: Compiled, *, specification: str = "", sources: Mapping[str, str] | None = None, images: Iterable[str] = ()
) -> str:
    """Both drawings as HTML; addresses in it begin with `content.ROOT`.

    `specification` is the address from the root, without suffix, under which `<it>.vega.json` and
    `<it>.narrow.vega.json` are published; `sources` maps the name of a data set to the address of its rows (a JSON
    list of objects, or an object whose member after `#` in the address is that list). Without sources the chart stays
    as drawn, and its specification is named for a program of the page. With `images`, the addresses of the wide and
    the narrow file, a browser fetches the one it needs as a reader comes near.
    """
    live = ""
    if specification and not sources:
        live = f' data-sp-spec="{html.escape(ROOT + specification)}"'
    elif specification:
        addresses = json.dumps({name: ROOT + address for name, address in (sources or {}).items()}, ensure_ascii=False)
        live = f' data-sp-chart="{html.escape(ROOT + specification)}" data-sp-data="{html.escape(addresses)}"'
    wide, narrow = compiled.svg_wide, compiled.svg_narrow
    if images:
        wide, narrow = (
            f'<img src="{ROOT}{address}" {_SIZE.findall(svg)[0]} alt="" loading="lazy">'
            for address, svg in zip(images, (wide, narrow), strict=True)
        )
    return f'<div class="sp-chart"{live}><div class="sp-wide">{wide}</div><div class="sp-narrow">{narrow}</div></div>'


def image(svg: str) -> str:
    """A drawing of a page as a file for `<img>`: its colours follow the `color-scheme` of the page around it."""
    used = sorted({"--sp-bg", *_VARIABLE.findall(svg)})
    light, dark = (";".join(f"{name}:{values[name]}" for name in used) for values in _colours())
    style = f"<style>:root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}</style>"
    return _alone(svg, f'{style}<rect width="100%" height="100%" fill="var(--sp-bg)"/>')


def _alone(svg: str, ground: str) -> str:
    """A drawing as a file of its own, without links."""
    start = f'<svg xmlns="http://www.w3.org/2000/svg" font-family="{FONT}" '
    return re.sub(r"</?a\b[^>]*>", "", svg).replace("<svg ", start, 1).replace(">", f">{ground}", 1)


@functools.cache
def _colours() -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Every colour variable of `sparkpub.css` with its value in light and in dark mode."""
    text = (Path(__file__).parents[1] / "browser" / "assets" / "sparkpub.css").read_text(encoding="utf-8")
    light, dark = (dict(re.findall(r"(--sp-[a-z0-9]+): *(#[0-9a-f]{6});", text[at : text.index("}", at)]))
                   for at in (0, text.index('[data-md-color-scheme="slate"] {')))  # fmt: skip
    return light, dark


def concrete(text: str) -> str:
    """A drawing or specification with every colour variable replaced by its value in light mode."""
    return _VARIABLE.sub(lambda found: _colours()[0][found[1]], text)
