"""A chart -> two static drawings, and what a browser needs to make it live: from the cache, else drawn while pages are
being made.

Colours are `var(--sp-…)`, which a browser resolves wherever an SVG attribute takes a colour; `colours.css` has their
values. The `href` channel holds addresses from the site's root (`runs/<id>/`).
"""

import json
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from pydantic_core import from_json, to_json

from sparkpub.record.errors import SiteError
from sparkpub.record.store import canonical_json
from sparkpub.site import cache, workers
from sparkpub.site.cache import Cache
from sparkpub.site.content import File
from sparkpub.site.figures.converter import (
    VEGA_LITE,
    VERSION,
    converter,
    png,
    printable,
)
from sparkpub.site.figures.shapes import Row, Spec, finished
from sparkpub.site.figures.svg import tidy

POOL_FROM = 12
"""Charts from which other processes take part: fewer do not pay for their start."""
_SOURCES = Path(__file__).parent
"""Where the code is that decides a drawing."""


@dataclass(frozen=True)
class Chart:
    """A drawing not made yet: `shape(rows, narrow=…)` is its Vega-Lite specification.

    The shape is a function of a module with its options, so that other processes find it. It is called only for a
    drawing that is not in the cache: Altair is slow, to load and to work.
    """

    shape: "partial[Spec]"
    rows: Sequence[Row]

    @property
    def identity(self) -> list[Any]:
        """What decides the chart, but code."""
        return [self.shape.func.__qualname__, repr(self.shape.keywords), self.rows]

    def specification(self, *, narrow: bool = False) -> Spec:
        """The Vega-Lite specification. Altair's own validation, most of its time, is left to the tests."""
        debug_mode = pkgutil.resolve_name("altair.utils.schemapi:debug_mode")
        with debug_mode(False):
            return finished(self.shape(self.rows, narrow=narrow), narrow)


@dataclass(frozen=True)
class Drawn:
    """A chart ready for pages, under a key that names it on the whole site: ids within its drawings begin with it.

    `live` is a JSON document with the specifications `wide` and `narrow`, without rows. The drawings need no script:
    colours are variables, links begin with `content.ROOT`.
    """

    key: str
    live: str
    svg_wide: str
    svg_narrow: str


def draw(key: str, chart: Chart) -> Drawn:
    """Raises SiteError naming the key where Vega-Lite or Vega refuses the chart."""
    try:
        wide, narrow = chart.specification(), chart.specification(narrow=True)
        svg_wide, svg_narrow = _svg(wide, chart.rows), _svg(narrow, chart.rows)
    except (ValueError, ElementTree.ParseError) as error:
        # Behind its first lines the converter tells where in Vega it was.
        reason = " ".join(str(error).splitlines()[:2])
        raise SiteError(
            f"chart {key!r} does not compile: {reason}",
            remedy="correct its specification or the data it names",
        ) from None
    return Drawn(
        key,
        canonical_json({"wide": wide, "narrow": narrow}),
        tidy(svg_wide, f"{key}-w-"),
        # On a phone a finger needs the table or the live chart to choose a run, and the page is a third lighter.
        tidy(svg_narrow, f"{key}-n-", links=False),
    )


def _svg(specification: Spec, rows: Sequence[Row]) -> str:
    """The drawing as Vega writes it."""
    # As text, which costs the converter less than objects do.
    text = json.dumps(_printed({**specification, "datasets": {"rows": rows}}))
    return str(
        converter().vegalite_to_svg(text, vl_version=VEGA_LITE, allowed_base_urls=[])
    )


def _printed(part: Any) -> Any:
    """A specification with its rows, but without tooltips: computed for every point, they take a fifth of the time to
    draw."""
    if isinstance(part, Mapping):
        return {
            name: _printed(item)
            for name, item in part.items()
            if name not in ("tooltip", "tip")
        }
    if isinstance(part, list | tuple):
        return list(map(_printed, part))
    return printable(part) if isinstance(part, str) else part


class Drawings:
    """Draws charts while their pages are still being made.

    What the cache holds is there at once. Once `POOL_FROM` have come together other processes begin to draw, and at the
    end this one helps.

        drawings = Drawings(cache)
        drawings.want(key, chart)  # as often as there are charts
        drawn = drawings.finished()
    """

    def __init__(self, kept: Cache) -> None:
        self._cache = kept
        versions = metadata.version("altair"), VERSION, VEGA_LITE
        self._decided_by = [*versions, cache.code(_SOURCES)]
        self._names: dict[str, str] = {}
        self._found: dict[str, Drawn] = {}
        self._waiting: list[tuple[str, Chart]] = []
        self._begun: list[Callable[[], Drawn]] = []

    def want(self, key: str, chart: Chart) -> None:
        """Have a chart drawn. Those of one key are one chart."""
        if key in self._names:
            return
        name = cache.key("chart", key, chart.identity, self._decided_by)
        self._names[key] = name
        entry = self._cache.get(name)
        with suppress(ValueError):  # a damaged entry is drawn again
            if entry is not None:
                self._found[key] = Drawn(*from_json(entry))
                return
        self._waiting.append((key, chart))
        if self._begun or len(self._waiting) == POOL_FROM:
            self._begun += [workers.begin(draw, *job) for job in self._waiting]
            self._waiting = []

    def finished(self) -> Mapping[str, Drawn]:
        """Key to drawing, of every chart wanted so far. Raises SiteError naming one that cannot be drawn."""
        here: list[Callable[[], Drawn]]
        here = [partial(draw, *job) for job in self._waiting]
        for result in [*here, *reversed(self._begun)]:
            drawn = result()
            self._cache.put(self._names[drawn.key], to_json(astuple(drawn)))
            self._found[drawn.key] = drawn
        self._waiting, self._begun = [], []
        return self._found


def pictures(
    svgs: Mapping[str, str], kept: Cache, *, scale: float = 1.0
) -> Callable[[], dict[str, File]]:
    """What gives drawings as PNG, by address: from the cache, else made meanwhile by other processes, where they are
    many."""
    of = "picture", VERSION, cache.code(_SOURCES), scale
    names = {address: cache.key(*of, svg) for address, svg in svgs.items()}
    known = {address: kept.get(name) for address, name in names.items()}
    found: dict[str, File] = {each: data for each, data in known.items() if data}
    missing = [address for address in svgs if address not in found]
    begin = workers.begin if len(missing) >= POOL_FROM else partial
    begun = {address: begin(png, svgs[address], scale=scale) for address in missing}

    def finished() -> dict[str, File]:
        for address, result in reversed(begun.items()):
            picture = found[address] = result()
            kept.put(names[address], picture)
        return found

    return finished
