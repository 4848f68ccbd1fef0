"""The Atom feed: posts and campaigns with their content, the newest first (RFC 4287)."""

import html
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from sparkpub.review.dataset import CampaignData
from sparkpub.site.content import fill, placeholders
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.library import Library
from sparkpub.site.pages import campaign_page
from sparkpub.site.pages.blog import Post
from sparkpub.site.pages.templating import Templates
from sparkpub.site.prose import to_html
from sparkpub.site.publication import Publication

ADDRESS = "feed.xml"
_LINK = re.compile(r'(\s(?:href|src)=")([^"]*)"')
_FORBIDDEN = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no way to write (section 2.2)."""


@dataclass(frozen=True)
class FeedEntry:
    """A post or a campaign. `href` is from the root of the site, times are RFC 3339, `content` is HTML."""

    title: str
    href: str
    published: str
    updated: str
    summary: str
    content: str
    authors: Sequence[str] = ()
    categories: Sequence[str] = ()


def feed(
    publication: Publication,
    posts: Sequence[Post],
    library: Library,
    templates: Templates,
) -> bytes:
    """The feed as XML in UTF-8."""
    entries = []
    for campaign in publication.campaigns:
        if campaign.records:
            entries.append(_campaign(publication, campaign))
    figures = {figure.block: figure for figure in library.wanted.values()}
    hrefs = {post.uri: post.href for post in posts}
    for post in posts:
        entries.append(_post(post, figures, hrefs, publication.options.url))
    entries.sort(key=lambda entry: (entry.updated, entry.href), reverse=True)
    text = templates.text("feed.xml.j2", entries=entries, options=publication.options)
    return _FORBIDDEN.sub("", text).encode()


def _campaign(publication: Publication, campaign: CampaignData) -> FeedEntry:
    """A campaign with its answers; it changes with its last run."""
    answers = campaign_page.answers(publication, campaign)
    starts = sorted(_time(record.started.value) for record in campaign.records)
    return FeedEntry(
        title=campaign.info.title,
        href=f"campaigns/{campaign.name}/",
        published=starts[0],
        updated=starts[-1],
        summary=answers[0] if answers else "",
        content="".join(f"<p>{html.escape(answer)}</p>" for answer in answers),
        categories=("campaign",),
    )


def _time(moment: str) -> str:
    """A recorded time to the second; one without a zone is taken for UTC."""
    return f"{moment[:19]}Z"


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _post(
    post: Post, figures: Mapping[str, Figure], hrefs: Mapping[str, str], url: str
) -> FeedEntry:
    text = _LINK.sub(_links_from(post.uri, hrefs, url), to_html(post.body))
    pictures = {
        key: _picture(figures[key], url) for key in placeholders(text) if key in figures
    }
    return FeedEntry(
        title=post.title,
        href=post.href,
        published=_utc(post.created),
        updated=_utc(post.updated),
        summary=post.description,
        content=fill(text, pictures, ""),
        authors=post.authors,
        categories=(*post.categories, *post.tags),
    )


def _picture(figure: Figure, url: str) -> str:
    """A figure for a reader of feeds, which runs no scripts: the picture, and the sentence below it."""
    address = html.escape(url + figure.address("png"))
    title, says = html.escape(figure.title), html.escape(figure.says)
    return f'<p><img src="{address}" alt="{title}"></p><p>{says}</p>'


def _links_from(
    uri: str, hrefs: Mapping[str, str], url: str
) -> Callable[[re.Match[str]], str]:
    """A substitution that turns links of the page `uri`, which lead to sources, into links to published pages."""

    def published(found: re.Match[str]) -> str:
        link = urlsplit(html.unescape(found[2]))
        if link.scheme or link.netloc or not link.path or link.path.startswith("/"):
            return found[0]
        source = posixpath.normpath(posixpath.join(posixpath.dirname(uri), link.path))
        address = url + hrefs.get(source, page_address(source))
        return f'{found[1]}{html.escape(link._replace(path=address).geturl())}"'

    return published


def page_address(uri: str) -> str:
    """Where a source is published, from the root of the site: `a/b.md` at `a/b/`, other files where they are."""
    if not uri.endswith(".md"):
        return uri
    parts = uri.removesuffix(".md").split("/")
    if parts[-1] == "index":
        parts.pop()
    return "".join(f"{part}/" for part in parts)
