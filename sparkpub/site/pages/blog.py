"""The blog: posts with their place in the series and how to cite them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from sparkpub.record.errors import SiteError
from sparkpub.review.dataset import CampaignData
from sparkpub.site.content import POSTS, Page
from sparkpub.site.pages import templating
from sparkpub.site.publication import Publication
from sparkpub.site.sources import dates

_SLUG = re.compile(r"\w[\w-]*(?:/\w[\w-]*)*")


@dataclass(frozen=True)
class Post:
    """One post that is published.

    `created` and `updated` have a time zone: a day alone begins at midnight UTC.
    """

    uri: str
    slug: str
    title: str
    created: datetime
    updated: datetime
    meta: Mapping[str, Any]

    @property
    def authors(self) -> list[str]:
        """Who its front matter names."""
        return [str(name) for name in self.meta.get("authors") or ()]

    @property
    def description(self) -> str:
        """What its front matter says of it."""
        return str(self.meta.get("description") or "")

    @property
    def date(self) -> str:
        """The day on which it was published, as ISO 8601."""
        return self.created.date().isoformat()

    @property
    def href(self) -> str:
        """The page of the post, from the root of the site."""
        return f"blog/{self.slug}/"

    @property
    def card(self) -> str:
        """The preview picture, from the root of the site."""
        return f"cards/{self.slug}.png"


def posts(written: Mapping[str, Page]) -> list[Post]:
    """The posts among pages in order of their times, without drafts.

    Raises SiteError naming the file and the field.
    """
    found = [
        _post(uri, page)
        for uri, page in written.items()
        if uri.startswith(POSTS) and not page.meta.get("draft")
    ]
    return sorted(found, key=attrgetter("created", "uri"))


def _post(uri: str, page: Page) -> Post:
    meta = page.meta
    try:
        created, updated = dates(meta.get("date"))
    except ValueError as error:
        raise SiteError(
            f"a post needs front matter with a date: {error}",
            where=uri,
            remedy="add date: YYYY-MM-DD to it, with a time if you like",
        ) from None
    heading = re.search(r"^# (.*)$", page.text, re.MULTILINE)
    title = str(meta.get("title") or (heading[1] if heading else uri))
    slug = str(meta.get("slug", ""))
    if not _SLUG.fullmatch(slug):
        raise SiteError(
            f"slug {slug!r} is no address"
            if slug
            else "a post needs a slug, its address",
            where=uri,
            remedy="add slug: to its front matter, of letters, digits, - and _",
        )
    return Post(uri, slug, title, created, updated, meta)


def with_series(
    written: Mapping[str, Page],
    series: Sequence[Post],
    publication: Publication,
) -> Iterator[tuple[str, Page]]:
    """(address, page) of each post, with its place in the series, links to its neighbours, and how to cite it."""
    for index, post in enumerate(series):
        end = templating.text(
            "series.md.j2",
            post=post,
            series=series,
            index=index,
            options=publication.options,
            campaigns=campaigns_behind(post, publication),
        )
        page = written[post.uri]
        text = f"{page.text.rstrip()}\n\n{end}"
        yield post.uri, replace(page, meta={**page.meta, "image": post.card}, text=text)


def campaigns_behind(post: Post, publication: Publication) -> Sequence[CampaignData]:
    """The campaign that a post names as its own; all of them where it names none."""
    for campaign in publication.campaigns:
        if campaign.name == post.meta.get("campaign"):
            return [campaign]
    return publication.campaigns
