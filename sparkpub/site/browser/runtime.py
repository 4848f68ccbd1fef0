"""The browser's side: our own modules and style sheet, and Vega as the converter carries it.

    files(cache)     everything the browser needs, by address from the site's root, named by content

Vega interprets the charts' expressions instead of compiling them, so no page needs `unsafe-eval`.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from sparkpub.site.cache import Cache, key
from sparkpub.site.figures.colours import STYLESHEET
from sparkpub.site.figures.converter import VEGA_LITE, VERSION, converter

ASSETS = Path(__file__).parent / "assets"
FOLDER = "assets/sparkpub"
MODULES = (
    "filters.js",
    "page.js",
    "live.js",
    "explorer.js",
    "compare.js",
    "leaderboard.js",
    "yours.js",
    "costs.js",
    "sparkpub.js",
)
"""In the order in which they import each other."""
SEARCH = "search.js"
"""Keeps the theme's search back until a reader turns to it."""
ICON = f"{FOLDER}/icon.svg"
"""Named in mkdocs.yml, so it keeps its address."""


@dataclass(frozen=True)
class Browser:
    """What a page refers to. `files` maps addresses from the root to content."""

    files: dict[str, bytes]
    module: str
    stylesheet: str


def files(cache: Cache) -> Browser:
    """Our modules, style sheet and the chart runtime, each under a name that changes with its content."""
    chart = _vega(cache)
    vega = named("vega.js", chart)
    found = {vega: chart, f"{FOLDER}/licenses.txt": _LICENCES.encode()}
    names = {"vega.js": vega.rpartition("/")[2]}
    for source in MODULES:
        text = (ASSETS / source).read_text(encoding="utf-8")
        for plain, hashed in names.items():
            text = text.replace(f"'./{plain}'", f"'./{hashed}'")
        address = named(source, text.encode())
        names[source] = address.rpartition("/")[2]
        found[address] = text.encode()
    address, content = script(SEARCH)
    found[address] = content
    style = STYLESHEET.read_bytes() + b"\n" + (ASSETS / "sparkpub.css").read_bytes()
    stylesheet = named("sparkpub.css", style)
    found[stylesheet] = style
    found[ICON] = (ASSETS / "icon.svg").read_bytes()
    return Browser(found, f"{FOLDER}/{names['sparkpub.js']}", stylesheet)


def script(name: str) -> tuple[str, bytes]:
    """Address and text of a script that pages name by themselves."""
    text = (ASSETS / name).read_bytes()
    return named(name, text), text


def named(name: str, content: bytes) -> str:
    """`assets/sparkpub/<stem>.<8 digits of SHA-256><suffix>`: a page never meets another build's file."""
    stem, _, suffix = name.rpartition(".")
    return f"{FOLDER}/{stem}.{hashlib.sha256(content).hexdigest()[:8]}.{suffix}"


def _vega(cache: Cache) -> bytes:
    """The chart runtime, a module that exports `makeView(specification, place, loader)`: kept, since making it takes
    longer than the pages of a small site."""
    name = key("chart runtime", _EMBED, _MAKE_VIEW, VERSION, VEGA_LITE)
    module = cache.get(name)
    if module is None:
        bundle = converter().javascript_bundle(_EMBED, vl_version=VEGA_LITE)
        module = f"{bundle}\n{_MAKE_VIEW}".encode()
        cache.put(name, module)
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
