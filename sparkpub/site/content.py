"""What a docs tree is made of: files by address, and how HTML reaches a page without passing through Markdown."""

import gzip
import hashlib
import html
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from sparkpub.site.cache import user_folder

ROOT = "\ue000/"
"""Stands at the beginning of an address in generated HTML for the way from a page back to the root of the site, e.g.
`../../`."""
_PLACEHOLDER = re.compile(r'<div data-sp-block="([0-9a-f]{16})"></div>')
POSTS = "blog/posts/"
SHELL = "runs/view.md"
"""The page into which MkDocs puts every run."""
RUN_FILE = "run.packed"
"""Beside the page of a run: the samples of its chart."""
LEVEL = 6
"""Of compression: a higher one takes twice the time for a hundredth of the bytes."""


SITE_CARD = "cards/-site.png"
"""The preview picture of pages that have none of their own; no campaign's name and no slug begins like this."""


@dataclass(frozen=True)
class Picture:
    """The preview picture of a page: its address from the root of the site, and what it shows in words."""

    address: str
    words: str


class SearchAnswer(NamedTuple):
    """A part of a page that the search finds by itself: its place in the page, its title and its words."""

    anchor: str
    title: str
    words: str


class RunPage(NamedTuple):
    """The page of a run, of which a site has thousands: its address without `.md`, its heading, the HTML below it, and
    the file beside it, which may be empty."""

    address: str
    title: str
    html: str
    file: bytes = b""

    @property
    def markdown(self) -> str:
        """The page for an engine that has no shell for it."""
        front = f"---\ntitle: {json.dumps(self.title)}\nhide: [navigation]\nsearch: {{exclude: true}}\n---"
        heading = html.escape(self.title).replace("_", "&#95;").replace("*", "&#42;")
        body = self.html.replace(ROOT, way_to_root(self.address))
        return f"{front}\n\n# {heading} {{ #run }}\n\n<div data-sp-run>{body}</div>\n"


@dataclass(frozen=True)
class Page:
    """A page as Markdown.

    `blocks` holds the HTML of its placeholders, by key. Charts and tables stand in the page as placeholders, since
    passing them through Markdown and the search index would cost most of the build. `source` is the file behind the
    page, for a "view source" link; `image` its preview picture; `linked_data` JSON about it for search engines.
    """

    text: str
    blocks: Mapping[str, str] = field(default_factory=dict)
    source: Path | None = None
    image: Picture | None = None
    linked_data: str | None = None
    found_by: str = ""
    """Words by which the search finds the page, besides those of its own text outside of blocks."""
    answers: tuple[SearchAnswer, ...] = ()
    """What of the page the search finds by itself."""

    def whole(self, uri: str) -> str:
        """The page with its HTML in place, at its address in the docs tree."""
        return fill(self.text, self.blocks, way_to_root(uri))


File = Page | bytes | Path
"""One file of the docs tree: a page, what a file holds, or where it lies."""


class Site(NamedTuple):
    """The docs tree by address; and what makes the pages of runs, one after another."""

    files: Mapping[str, File]
    runs: Callable[[], Iterator[RunPage]]


@dataclass(frozen=True)
class SiteOptions:
    """What the site is built with. Nothing here may change a figure.

    `commits` maps a path relative to the repository to the last commit that touched it; `repo_url` without a
    slash at the end. Records, logs and telemetry are files of the site, or without `evidence_on_site` links to the
    repository, as far as they are committed there.
    """

    sources: Path
    cache: Path = field(default_factory=user_folder)
    name: str = "sparkpub"
    url: str = ""
    home: str = "dgx-spark"
    """The machine that comes first on every page: its kind in the catalogue, or its name."""
    repo_url: str | None = None
    commits: Mapping[str, str] = field(default_factory=dict)
    repository: Path = field(default_factory=Path.cwd)
    templates: Path | None = None
    evidence_on_site: bool = True


def packed(data: bytes) -> bytes:
    """The content of a file that ends in `.packed`, for `json` of page.js; the same for the same bytes."""
    return gzip.compress(data, compresslevel=LEVEL, mtime=0)


def block_key(text: str) -> str:
    """The name of a piece of HTML: the first 16 digits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def placeholder(key: str) -> str:
    """What stands in the Markdown of a page for a piece of HTML."""
    return f'<div data-sp-block="{key}"></div>'


def placeholders(text: str) -> list[str]:
    """The keys of the pieces of HTML that a page wants."""
    return _PLACEHOLDER.findall(text)


def fill(text: str, blocks: Mapping[str, str], root: str) -> str:
    """`text` with each placeholder replaced by its HTML, links relative to `root`."""

    def filled(found: re.Match[str]) -> str:
        block = blocks.get(found[1])
        if block is None:
            return found[0]  # somebody wrote what looks like one
        return fill(block, blocks, root).replace(ROOT, root)

    return _PLACEHOLDER.sub(filled, text)


def way_to_root(uri: str) -> str:
    """From the page of a Markdown file back to the root of the site: "" for index.md, "../../" for runs/x.md."""
    if uri.startswith(POSTS):  # the blog publishes a post under blog/<slug>/
        return "../../"
    parts = uri.removesuffix(".md").split("/")
    return "../" * (len(parts) - (1 if parts[-1] == "index" else 0))
