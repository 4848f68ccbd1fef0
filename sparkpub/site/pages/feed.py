"""The Atom feed: posts and campaigns, the newest first (RFC 4287)."""

from collections.abc import Sequence
from datetime import UTC, datetime
from operator import itemgetter

from sparkpub.site.pages import campaign_page, templating
from sparkpub.site.pages.blog import Post
from sparkpub.site.publication import Publication

ADDRESS = "feed.xml"


def feed(publication: Publication, posts: Sequence[Post]) -> bytes:
    """The feed as XML in UTF-8. A campaign says its answers, and changes with its last run."""
    entries = []
    for campaign in publication.campaigns:
        # To the second; a time without a zone is taken for UTC.
        starts = sorted(f"{one.started.value[:19]}Z" for one in campaign.records)
        if starts:
            entry = {
                "title": campaign.info.title,
                "href": f"campaigns/{campaign.name}/",
                "published": starts[0],
                "updated": starts[-1],
                "summary": " ".join(campaign_page.answers(publication, campaign)),
            }
            entries.append(entry)
    for post in posts:
        entry = {
            "title": post.title,
            "href": post.href,
            "published": _utc(post.created),
            "updated": _utc(post.updated),
            "summary": post.description,
        }
        entries.append(entry)
    entries.sort(key=itemgetter("updated", "href"), reverse=True)
    text = templating.text("feed.xml.j2", entries=entries, options=publication.options)
    return text.encode()


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
