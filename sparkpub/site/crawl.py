"""Links of a finished site that lead nowhere on it."""

import html
import posixpath
import re
from functools import cache
from itertools import chain
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sparkpub.record.web import address_problem

_LINKING_TAG = re.compile(r"<(?:a|area|link|img|script|source|image|use)\b[^>]*>")
_ADDRESS = re.compile(r'\s(?:href|src)="([^"]*)"')
_ANCHOR = re.compile(r'\s(?:id|name)="([^"]+)"')


def dead_links(site: Path, site_url: str) -> list[str]:
    """A line for each address within the site that pages link to and that is not there.

    `site_url` is the site's address, or empty: links that begin with it are the site's own as well.
    """
    linking: dict[str, list[str]] = {}
    lines = []
    for path in sorted(site.rglob("*.html")):
        page = path.relative_to(site).as_posix()
        tags = _LINKING_TAG.findall(path.read_text(encoding="utf-8"))
        targets = {}
        for link in dict.fromkeys(chain(*map(_ADDRESS.findall, tags))):
            problem = address_problem(html.unescape(link))
            if problem is not None:
                lines.append(f"{page}: {problem}")
            else:
                targets[_target(page, html.unescape(link), site_url)] = page
        for target in targets.keys() - {None}:
            linking.setdefault(str(target), []).append(page)

    @cache
    def anchors(path: Path) -> set[str]:
        return set(map(html.unescape, _ANCHOR.findall(path.read_text("utf-8"))))

    for target in sorted(linking):
        address, _, anchor = target.partition("#")
        path = site / address
        if path.is_dir():
            path /= "index.html"
        needs = anchor and path.suffix == ".html"
        if not path.is_file() or (needs and anchor not in anchors(path)):
            page, *others = linking[target]
            more = f" and {len(others)} more" if others else ""
            lines.append(f"{page}{more}: links to {target}, which does not exist")
    return lines


def _target(page: str, link: str, site_url: str) -> str | None:
    """Where a link of a page leads on the site, from its root; None for one that leads elsewhere."""
    way_of_site = urlsplit(site_url).path or "/"
    if site_url and link.startswith(site_url):
        link = way_of_site + link.removeprefix(site_url)
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    path, target = unquote(parts.path), page
    if path.startswith("/"):
        target = posixpath.normpath(path.removeprefix(way_of_site))
    elif path:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
    return f"{target}#{unquote(parts.fragment)}" if parts.fragment else target
