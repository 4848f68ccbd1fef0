"""The browser's side: our own modules and style sheet, and the chart runtime that packages provide.

    files(cache)     everything the browser needs, by address from the site's root, named by content
    runtime(cache)   the chart runtime alone

Where Node and npm are there, Vega is bundled from npm packages without what no chart here uses: 132 KB compressed.
Without them the converter's own copy of Vega, Vega-Lite and vega-embed serves, 305 KB compressed, and the log says so.
Both interpret the charts' expressions instead of compiling them, so no page needs `unsafe-eval`.
"""

import hashlib
import logging
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic_core import from_json, to_json

from sparkpub.site import cache as caching
from sparkpub.site.cache import Cache
from sparkpub.site.figures.colours import STYLESHEET
from sparkpub.site.figures.converter import VEGA_LITE, VERSION, converter

log = logging.getLogger("mkdocs.plugins.sparkpub")
ASSETS = Path(__file__).parent / "assets"
BUNDLE = Path(__file__).parent / "bundle"
FOLDER = "assets/sparkpub"
MODULES = (
    "filters.js",
    "page.js",
    "live.js",
    "files.js",
    "explorer.js",
    "compare.js",
    "log.js",
    "leaderboard.js",
    "yours.js",
    "costs.js",
    "run.js",
    "sparkpub.js",
)
"""In the order in which they import each other."""
OPEN = "open.js"
"""Leads from the short page of a run to the whole view of it."""
SEARCH = "search.js"
"""Keeps the theme's search back until a reader turns to it."""
RELOAD = "reload.js"
"""Only in a preview: reloads the open page when the site was built anew."""
ICON = f"{FOLDER}/icon.svg"
"""Named in mkdocs.yml, so it keeps its address."""
BUNDLE_SOURCES = ("package.json", "package-lock.json", "build.mjs", "entry.mjs")
BUNDLE_STEPS = (
    ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"),
    ("node", "build.mjs", "out.js", "licenses.txt"),
)
NPM_TIMEOUT_SECONDS = 240


@dataclass(frozen=True)
class Runtime:
    """The chart runtime: a module that exports `makeView(specification, place, loader)`."""

    code: bytes
    kind: Literal["slim", "vl-convert"]
    licences: str


@dataclass(frozen=True)
class Browser:
    """What a page refers to. `files` maps addresses from the root to content."""

    files: Mapping[str, bytes]
    module: str
    stylesheet: str


@contextmanager
def begun(cache: Cache) -> Iterator[Future[Browser]]:
    """`files` beside everything else: packages may have to be fetched and bundled first."""
    aside = ThreadPoolExecutor(1)
    try:
        yield aside.submit(files, cache)
    finally:
        aside.shutdown(wait=False, cancel_futures=True)


def files(cache: Cache, *, node: bool = True) -> Browser:
    """Our modules, style sheet and the chart runtime, each under a name that changes with its content."""
    chart = runtime(cache, node=node)
    vega = named("vega.js", chart.code)
    found = {vega: chart.code, f"{FOLDER}/licenses.txt": chart.licences.encode()}
    names = {"vega.js": vega.rpartition("/")[2]}
    for source in MODULES:
        text = (ASSETS / source).read_text(encoding="utf-8")
        for plain, hashed in names.items():
            text = text.replace(f"'./{plain}'", f"'./{hashed}'")
        address = named(source, text.encode())
        names[source] = address.rpartition("/")[2]
        found[address] = text.encode()
    for name in (SEARCH, OPEN):
        address, content = script(name)
        found[address] = content
    style = STYLESHEET.read_bytes() + b"\n" + (ASSETS / "sparkpub.css").read_bytes()
    stylesheet = named("sparkpub.css", style)
    found[stylesheet] = style
    found[ICON] = (ASSETS / "icon.svg").read_bytes()
    return Browser(found, f"{FOLDER}/{names['sparkpub.js']}", stylesheet)


def script(name: str) -> tuple[str, bytes]:
    """Address and text of a script that pages name by themselves: SEARCH, OPEN or RELOAD."""
    text = (ASSETS / name).read_bytes()
    return named(name, text), text


def named(name: str, content: bytes) -> str:
    """`assets/sparkpub/<stem>.<8 digits of SHA-256><suffix>`: a page never meets another build's file."""
    stem, _, suffix = name.rpartition(".")
    return f"{FOLDER}/{stem}.{hashlib.sha256(content).hexdigest()[:8]}.{suffix}"


def runtime(cache: Cache, *, node: bool = True) -> Runtime:
    """The chart runtime, from `cache` where its sources have not changed. Never raises for want of Node."""
    slim = (
        _slim(cache) if node and shutil.which("node") and shutil.which("npm") else None
    )
    return slim or _from_converter(cache)


def _slim(cache: Cache) -> Runtime | None:
    """The bundle built with Node from locked packages, or None where npm or esbuild fails."""
    sources = {
        name: (BUNDLE / name).read_text(encoding="utf-8") for name in BUNDLE_SOURCES
    }
    key = caching.key("bundle", sources)
    entry = cache.get(key)
    if entry is None:
        try:
            code, licences = _bundled(sources)
        except (subprocess.SubprocessError, OSError) as error:
            reason = getattr(error, "stderr", None) or str(error).encode()
            log.info(
                "the chart runtime cannot be bundled: %s",
                reason.decode(errors="replace").strip().split("\n")[0],
            )
            return None
        entry = to_json([code, licences])
        cache.put(key, entry)
    code, licences = from_json(entry)
    return Runtime(code.encode(), "slim", licences)


def _bundled(sources: Mapping[str, str]) -> tuple[str, str]:
    """The bundle and the licences of what is in it."""
    with tempfile.TemporaryDirectory(prefix="sparkpub-bundle-") as name:
        work = Path(name)
        for source, text in sources.items():
            (work / source).write_text(text, encoding="utf-8")
        for argv in BUNDLE_STEPS:
            subprocess.run(
                argv,
                cwd=work,
                check=True,
                capture_output=True,
                timeout=NPM_TIMEOUT_SECONDS,
            )
        return (work / "out.js").read_text(encoding="utf-8"), (
            work / "licenses.txt"
        ).read_text(encoding="utf-8")


def _from_converter(cache: Cache) -> Runtime:
    """The converter's own bundle: kept, since making it anew takes longer than the pages of a small site."""
    log.info(
        "the chart runtime is the converter's copy of Vega, twice as large; with Node and npm it is bundled anew"
    )
    key = caching.key("converter's bundle", _EMBED, VERSION, VEGA_LITE)
    bundle = cache.get(key)
    if bundle is None:
        bundle = converter().javascript_bundle(_EMBED, vl_version=VEGA_LITE).encode()
        cache.put(key, bundle)
    code = bundle + b"\n" + _MAKE_VIEW.encode()
    return Runtime(code, "vl-convert", _CONVERTER_LICENCE)


_EMBED = "window.sparkpubEmbed = vegaEmbed;"
_CONVERTER_LICENCE = "Vega, Vega-Lite, vega-embed, vega-tooltip, vega-interpreter, D3: BSD-3-Clause and ISC\n"
_MAKE_VIEW = """
export const makeView = async (specification, place, loader) => {
  const options = {
    mode: 'vega', ast: true, renderer: 'svg', actions: false, defaultStyle: false, tooltip: () => {}, loader,
  };
  return (await window.sparkpubEmbed(place, specification, options)).view;
};
"""
"""`makeView` of `bundle/entry.mjs` in terms of vega-embed, the one thing that the converter's bundle gives out."""
