"""What a docs tree is made of: pages, files, and how HTML reaches a page without passing through Markdown."""

import hashlib
import html
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

import yaml
from pydantic import TypeAdapter

from sparkpub.site.cache import user_folder

ROOT = "\ue000/"
"""Stands at the beginning of an address in generated HTML for the way from a page back to the root of the site, e.g.
`../../`."""
_PLACEHOLDER = re.compile(r'<div data-sp-block="([^"]*)"></div>')
POSTS = "blog/posts/"
SHELL = "runs/view.md"
"""The page into which MkDocs puts every run."""
RUN_FILE = "run.json"
"""Beside the page of a run: the samples of its chart."""
SITE_CARD = "cards/-site.png"
"""The preview picture of pages that have none of their own; no campaign's name and no slug begins like this."""


class SearchAnswer(NamedTuple):
    """A part of a page that the search finds by itself: its place in the page, its title, and what a result shows."""

    anchor: str
    title: str
    text: str


@dataclass(frozen=True)
class Page:
    """A page: what it says of itself, its Markdown, and the HTML of the placeholders in it, by key.

    `meta` is front matter, as the engine and the theme read it: `title`, `description`, `hide`, and of ours `image`,
    the address of a preview picture. Charts and tables stand in the
    Markdown as placeholders, since passing them through Markdown and the search index would cost most of the build.
    """

    meta: Mapping[str, Any]
    text: str
    html: Mapping[str, str] = field(default_factory=dict)
    found_by: str = ""
    """Words by which the search finds the page, besides those of its Markdown."""
    answers: tuple[SearchAnswer, ...] = ()
    """What of the page the search finds by itself."""

    def whole(self, uri: str) -> str:
        """The page with its HTML in place, at its address in the docs tree, for any engine."""
        front = yaml.safe_dump(escaped(self.meta), allow_unicode=True, sort_keys=False)
        body = fill(self.text, self.html, way_to_root(uri))
        return f"---\n{front}---\n\n{body}"


File = Page | bytes | Path
"""One file of the docs tree: a page, what a file holds, or where it lies."""


def data_of(file: bytes | Path) -> bytes:
    """What a file holds that is no page."""
    return file if isinstance(file, bytes) else file.read_bytes()


def packed(files: Mapping[str, File]) -> bytes:
    """Pages and files by address, as a ZIP archive."""
    whole = io.BytesIO()
    with ZipFile(whole, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        for uri, file in files.items():
            if isinstance(file, Page):
                archive.writestr(uri, _PAGE.dump_json(file))
            else:
                archive.writestr(uri, data_of(file))
    return whole.getvalue()


class Packed(Mapping[str, File]):
    """Pages and files by address, in `archives` that `packed` made: each is unpacked when it is asked for, since those
    of thousands of runs would fill the memory. Raises BadZipFile for an archive that is none."""

    def __init__(self, archives: Sequence[bytes] = ()) -> None:
        self.archives = archives
        opened = [ZipFile(io.BytesIO(archive)) for archive in archives]
        self._archives = {
            uri: archive for archive in opened for uri in archive.namelist()
        }

    def __getitem__(self, uri: str) -> File:
        data = self._archives[uri].read(uri)
        return _PAGE.validate_json(data) if uri.endswith(".md") else data

    def __iter__(self) -> Iterator[str]:
        return iter(self._archives)

    def __len__(self) -> int:
        return len(self._archives)


_PAGE = TypeAdapter(Page)


class Site(NamedTuple):
    """The docs tree by address; the pages of runs and the files beside them, which are not for an engine to render; and
    the addresses of the style sheet, of the module and of the script before the theme's search that an engine has to
    put into every page."""

    files: Mapping[str, File]
    runs: Packed = Packed()
    assets: tuple[str, str, str] = ("", "", "")


@dataclass(frozen=True)
class SiteOptions:
    """What the site is built with. Nothing here may change a figure.

    `commits` maps a path relative to the repository to the last commit that touched it; `repo_url` without a
    slash at the end.
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
    """`text` with each placeholder replaced by its HTML, links relative to `root`; what somebody else wrote like one
    stays."""

    def filled(found: re.Match[str]) -> str:
        block = blocks.get(found[1])
        return found[0] if block is None else fill(block, blocks, root)

    return _PLACEHOLDER.sub(filled, text).replace(ROOT, root)


def escaped(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Front matter with title and description as HTML: themes put them into pages, tabs and attributes as they are."""
    told = {name: meta[name] for name in ("title", "description") if meta.get(name)}
    return {
        **meta,
        **{name: html.escape(html.unescape(str(said))) for name, said in told.items()},
    }


def way_to_root(uri: str) -> str:
    """From the page of a Markdown file back to the root of the site: "" for index.md, "../../" for runs/x.md."""
    if uri.startswith(POSTS):  # the blog publishes a post under blog/<slug>/
        return "../../"
    parts = uri.removesuffix(".md").split("/")
    return "../" * (len(parts) - (1 if parts[-1] == "index" else 0))
