"""The browser's side: our own module and style sheet, and the chart runtime that packages provide.

    files(cache)     everything the browser needs, by address from the site's root, named by content
    runtime(cache)   the chart runtime alone

Where Node and npm are there, Vega is bundled from npm packages without what no chart here uses: 132 KB compressed.
Without them the converter's own copy of Vega, Vega-Lite and vega-embed serves, 305 KB compressed, and the log says so.
Both interpret the charts' expressions instead of compiling them, so no page needs `unsafe-eval`.
"""

import functools
import hashlib
import logging
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sparkpub.record.store import write_atomic
from sparkpub.site.figures.compile import converter

log = logging.getLogger("mkdocs.plugins.sparkpub")
ASSETS = Path(__file__).parent / "assets"
BUNDLE = Path(__file__).parent / "bundle"
FOLDER = "assets/sparkpub"
MODULES = ("filters.js", "live.js", "welch.js", "explorer.js", "compare.js", "log.js", "sparkpub.js")
ICON = f"{FOLDER}/icon.svg"
"""Named in mkdocs.yml, so it keeps its address."""
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


def begun(cache: Path) -> "Future[Browser]":
    """`files` beside everything else: packages may have to be fetched and bundled first."""
    return _ASIDE.submit(files, cache)


_ASIDE = ThreadPoolExecutor(1)


def files(cache: Path, *, node: bool = True) -> Browser:
    """Our modules, style sheet and the chart runtime, each under a name that changes with its content."""
    chart = runtime(cache, node=node)
    found = {_named("vega.js", chart.code): chart.code, f"{FOLDER}/licenses.txt": chart.licences.encode()}
    vega = next(iter(found)).rpartition("/")[2]
    names = {"vega.js": vega}
    # In the order in which they import each other: a name in a later file is known by then.
    for source in MODULES:
        text = (ASSETS / source).read_text(encoding="utf-8")
        for plain, hashed in names.items():
            text = text.replace(f"'./{plain}'", f"'./{hashed}'")
        address = _named(source, text.encode())
        names[source] = address.rpartition("/")[2]
        found[address] = text.encode()
    found.update([search()])
    style = (ASSETS / "sparkpub.css").read_bytes()
    found[_named("sparkpub.css", style)] = style
    found[ICON] = (ASSETS / "icon.svg").read_bytes()
    return Browser(found, f"{FOLDER}/{names['sparkpub.js']}", _named("sparkpub.css", style))


@functools.cache
def search() -> tuple[str, bytes]:
    """Address and text of the script that keeps the theme's search back until a reader turns to it."""
    text = (ASSETS / "search.js").read_bytes()
    return _named("search.js", text), text


def _named(name: str, content: bytes) -> str:
    """`assets/sparkpub/<stem>.<8 digits of SHA-256><suffix>`: a page never meets another build's file."""
    stem, _, suffix = name.rpartition(".")
    return f"{FOLDER}/{stem}.{hashlib.sha256(content).hexdigest()[:8]}.{suffix}"


def runtime(cache: Path, *, node: bool = True) -> Runtime:
    """The chart runtime, from `cache` where its sources have not changed. Never raises for want of Node."""
    slim = _slim(cache) if node and shutil.which("node") and shutil.which("npm") else None
    return slim or _converter()


def _slim(cache: Path) -> Runtime | None:
    """The bundle built with Node from locked packages, or None where npm or esbuild fails."""
    sources = [BUNDLE / name for name in ("package.json", "package-lock.json", "build.mjs", "entry.mjs")]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    built, licences = cache / f"vega-{digest}.js", cache / f"vega-{digest}.txt"
    if not built.is_file() or not licences.is_file():
        work = cache / f"bundle-{digest}"
        work.mkdir(parents=True, exist_ok=True)
        for path in sources:
            shutil.copyfile(path, work / path.name)
        try:
            for argv in (
                ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
                ["node", "build.mjs", "out.js", "licenses.txt"],
            ):
                subprocess.run(argv, cwd=work, check=True, capture_output=True, timeout=NPM_TIMEOUT_SECONDS)
        except (subprocess.SubprocessError, OSError) as error:
            reason = getattr(error, "stderr", None) or str(error).encode()
            log.info("the chart runtime cannot be bundled: %s", reason.decode(errors="replace").strip().split("\n")[0])
            return None
        write_atomic(licences, (work / "licenses.txt").read_bytes(), durable=False)
        write_atomic(built, (work / "out.js").read_bytes(), durable=False)
        shutil.rmtree(work, ignore_errors=True)
    return Runtime(built.read_bytes(), "slim", licences.read_text(encoding="utf-8"))


@functools.cache
def _converter() -> Runtime:
    log.info("the chart runtime is the converter's copy of Vega, twice as large; with Node and npm it is bundled anew")
    bundle = converter().javascript_bundle("window.sparkpubEmbed = vegaEmbed;", vl_version="6.4")
    return Runtime(f"{bundle}\n{_MAKE_VIEW}".encode(), "vl-convert", _CONVERTER_LICENCE)


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
