"""The browser's side: our own modules and style sheet, and Vega as the converter carries it.

    files(cache)     everything the browser needs, in a folder that is named by what it holds

Vega interprets the charts' expressions instead of compiling them, so no page needs `unsafe-eval`.
"""

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sparkpub.site import workers
from sparkpub.site.cache import Cache, key
from sparkpub.site.figures.colours import STYLESHEET
from sparkpub.site.figures.converter import VEGA_LITE, VERSION, converter

ASSETS = Path(__file__).parent / "assets"
FOLDER = "assets/sparkpub"
"""Of what pages and mkdocs.yml name, the icon and the licences, as well."""


class Browser(NamedTuple):
    """What pages refer to, by address from the site's root. `search` keeps the theme's search back until a reader turns
    to it."""

    files: dict[str, bytes]
    stylesheet: str
    module: str
    search: str


def files(cache: Cache) -> Browser:
    """Our modules, style sheet and the chart runtime, in a folder whose name changes with any of them: a page never
    meets another build's file."""
    found = {path.name: path.read_bytes() for path in sorted(ASSETS.glob("*.js"))}
    style = (ASSETS / "sparkpub.css").read_bytes()
    found["sparkpub.css"] = STYLESHEET.read_bytes() + b"\n" + style
    found["vega.js"] = _vega(cache)
    digest = hashlib.sha256(b"".join(found.values())).hexdigest()[:8]
    folder = f"{FOLDER}/{digest}"
    placed = {f"{folder}/{name}": content for name, content in found.items()}
    placed[f"{FOLDER}/icon.svg"] = (ASSETS / "icon.svg").read_bytes()
    placed[f"{FOLDER}/licenses.txt"] = _LICENCES.encode()
    names = ("sparkpub.css", "sparkpub.js", "search.js")
    return Browser(placed, *(f"{folder}/{name}" for name in names))


def begun(cache: Cache) -> Callable[[], Browser]:
    """What gives the same, made meanwhile by another process where the chart runtime is not kept."""
    return partial(files, cache) if cache.get(_KEPT) else workers.begin(files, cache)


def _vega(cache: Cache) -> bytes:
    """The chart runtime, a module that exports `makeView(specification, place, loader)`: kept, since making it takes
    longer than the pages of a small site."""
    module = cache.get(_KEPT)
    if module is None:
        bundle = converter().javascript_bundle(_EMBED, vl_version=VEGA_LITE)
        module = f"{bundle}\n{_MAKE_VIEW}".encode()
        cache.put(_KEPT, module)
    return module


_EMBED = "window.sparkpubEmbed = vegaEmbed;"
_LICENCES = "Vega, Vega-Lite, vega-embed, vega-tooltip, vega-interpreter, D3: BSD-3-Clause and ISC\n"
_MAKE_VIEW = """
export const makeView = async (specification, place, loader) => {
  const options = {
    mode: 'vega-lite', ast: true, renderer: 'svg', actions: false, defaultStyle: false, tooltip: () => {}, loader,
  };
  return (await window.sparkpubEmbed(place, specification, options)).view;
};
"""
"""In terms of vega-embed, the one thing that the bundle gives out. Expressions are interpreted, never compiled."""
_KEPT = key("chart runtime", _EMBED, _MAKE_VIEW, VERSION, VEGA_LITE)
