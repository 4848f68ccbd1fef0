"""Links of a finished site that lead nowhere on it."""

import html
import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sparkpub.record.web import address_problem

_LINKING_TAG = re.compile(r"<(?:a|area|link|img|script|source|image|use)\b[^>]*>")
_ADDRESS = re.compile(r'\s(?:href|src)="([^"]*)"')
NOT_THERE = ", which does not exist"
"""The end of each line of a target that is not there."""
_ANCHOR = re.compile(r'\s(?:id|name)="([^"]+)"')


def dead_links(site: Path, site_url: str) -> list[str]:
    """A line for each address within the site that pages link to and that is not there.

    `site_url` is the site's address, or empty: links that begin with it are the site's own as well.
    """
    linking: dict[str, list[str]] = {}
    lines = []
    for path in sorted(site.rglob("*.html")):
        page = path.relative_to(site).as_posix()
        text = path.read_text(encoding="utf-8")
        links, unfit = _links(text)
        lines += [f"{page}: {problem}" for problem in unfit]
        for target in _own(page, links, site_url):
            linking.setdefault(target, []).append(page)
    anchors: dict[Path, set[str]] = {}
    for target, pages in linking.items():
        if _exists(site, target, anchors):
            continue
        others = f" and {len(pages) - 1} more" if len(pages) > 1 else ""
        lines.append(f"{pages[0]}{others}: links to {target}{NOT_THERE}")
    return lines


def _links(text: str) -> tuple[list[str], list[str]]:
    """Where the HTML of a page leads, each once; and what of it is no address, as a line each."""
    found: dict[str, None] = {}
    for tag in _LINKING_TAG.findall(text):
        found |= dict.fromkeys(map(html.unescape, _ADDRESS.findall(tag)))
    problems = {link: address_problem(link) for link in found}
    fit = [link for link, problem in problems.items() if problem is None]
    return fit, [problem for problem in problems.values() if problem is not None]


def _own(page: str, links: Iterable[str], site_url: str) -> Iterator[str]:
    """Those of a page's links that stay on the site, from its root."""
    way_of_site = urlsplit(site_url).path or "/"
    for link in links:
        inner = link
        if site_url and link.startswith(site_url):
            inner = way_of_site + link.removeprefix(site_url)
        parts = urlsplit(inner)
        if parts.scheme or parts.netloc:
            continue
        target = _from_root(page, unquote(parts.path), way_of_site)
        yield f"{target}#{unquote(parts.fragment)}" if parts.fragment else target


def _from_root(page: str, path: str, way_of_site: str) -> str:
    if not path:
        return page
    if path.startswith("/"):
        return posixpath.normpath(path.removeprefix(way_of_site))
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path))


def _exists(site: Path, target: str, anchors: dict[Path, set[str]]) -> bool:
    """Whether the site has this page or file. `anchors` keeps those of each page that was asked for."""
    address, _, anchor = target.partition("#")
    path = site / address
    if path.is_dir():
        path /= "index.html"
    if not path.is_file():
        return False
    if not anchor or path.suffix != ".html":
        return True
    if path not in anchors:
        text = path.read_text(encoding="utf-8")
        anchors[path] = set(map(html.unescape, _ANCHOR.findall(text)))
    return anchor in anchors[path]
