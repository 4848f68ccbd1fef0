"""The Atom feed: posts and campaigns, the newest first (RFC 4287)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import attrgetter

from sparkpub.site.pages import campaign_page
from sparkpub.site.pages.blog import Post
from sparkpub.site.pages.templating import Templates
from sparkpub.site.publication import Publication

ADDRESS = "feed.xml"
_FORBIDDEN = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no way to write (section 2.2)."""


@dataclass(frozen=True)
class FeedEntry:
    """A post or a campaign. `href` is from the root of the site, times are RFC 3339."""

    title: str
    href: str
    published: str
    updated: str
    summary: str
    authors: Sequence[str] = ()
    categories: Sequence[str] = ()


def feed(
    publication: Publication, posts: Sequence[Post], templates: Templates
) -> bytes:
    """The feed as XML in UTF-8. A campaign says its answers, and changes with its last run."""
    entries = []
    for campaign in publication.campaigns:
        # To the second; a time without a zone is taken for UTC.
        starts = sorted(f"{one.started.value[:19]}Z" for one in campaign.records)
        if starts:
            said = " ".join(campaign_page.answers(publication, campaign))
            title, href = campaign.info.title, f"campaigns/{campaign.name}/"
            entry = FeedEntry(title, href, starts[0], starts[-1], said)
            entries.append(replace(entry, categories=("campaign",)))
    for post in reversed(posts):  # of one time the last one comes first
        entries.append(
            FeedEntry(
                post.title,
                post.href,
                _utc(post.created),
                _utc(post.updated),
                str(post.meta.get("description", "")),
                post.names("authors"),
                post.names("categories", "tags"),
            )
        )
    entries.sort(key=attrgetter("updated"), reverse=True)
    text = templates.text("feed.xml.j2", entries=entries, options=publication.options)
    return _FORBIDDEN.sub("", text).encode()


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
