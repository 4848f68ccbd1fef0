"""The blog: series links under each post, an Atom feed, and preview pictures that show the actual result."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from sparkpub.record.errors import SiteError
from sparkpub.review.cache import Cache
from sparkpub.review.dataset import CampaignData
from sparkpub.site.content import POSTS, Content
from sparkpub.site.figures.figure import as_png
from sparkpub.site.pages.campaign_page import value_box
from sparkpub.site.pages.templating import Templates, front_matter
from sparkpub.site.publication import Publication

FEED = "feed.xml"
CARD_BOXES = 3
"""Leading metrics on a preview picture."""
_FENCE = "---\n"
_SLUG = re.compile(r"\w[\w-]*(?:/\w[\w-]*)*")


@dataclass(frozen=True)
class Post:
    """One post. `href` is its page from the root of the site; `date` as ISO 8601."""

    uri: str
    slug: str
    title: str
    description: str
    date: str
    tags: tuple[str, ...]
    meta: Mapping[str, Any]
    body: str

    @property
    def href(self) -> str:
        """The page of the post, from the root of the site."""
        return f"blog/{self.slug}/"

    @property
    def card(self) -> str:
        """The preview picture, from the root of the site."""
        return f"cards/{self.slug}.png"


def posts(written: Mapping[str, Content]) -> list[Post]:
    """The posts in order of their dates. Raises SiteError naming the file and the field that is missing."""
    found = [
        _post(uri, c.text or "")
        for uri, c in written.items()
        if uri.startswith(POSTS) and uri.endswith(".md")
    ]
    return sorted(found, key=lambda post: (post.date, post.uri))


def _post(uri: str, text: str) -> Post:
    head, fence, body = text.removeprefix(_FENCE).partition("\n" + _FENCE)
    try:
        meta = yaml.safe_load(head) if fence and text.startswith(_FENCE) else None
    except yaml.YAMLError as error:
        raise SiteError(
            f"front matter is not YAML: {error}", where=uri, remedy="correct it"
        ) from None
    if not isinstance(meta, dict):
        raise SiteError(
            "a post needs front matter",
            where=uri,
            remedy="begin it with ---, date: and description:",
        )
    date = meta.get("date")
    created = date.get("created") if isinstance(date, dict) else date
    if created is None:
        raise SiteError(
            "a post needs a date",
            where=uri,
            remedy="add date: YYYY-MM-DD to its front matter",
        )
    heading = next(
        (
            line.removeprefix("# ")
            for line in body.splitlines()
            if line.startswith("# ")
        ),
        None,
    )
    title = str(meta.get("title") or heading or uri)
    slug = str(meta.get("slug") or uri.removeprefix(POSTS).removesuffix(".md"))
    if not _SLUG.fullmatch(slug):
        raise SiteError(
            f"slug {slug!r} is no address",
            where=uri,
            remedy="use letters, digits, - and _",
        )
    return Post(
        uri,
        slug,
        title,
        str(meta.get("description", "")),
        str(created)[:10],
        tuple(map(str, meta.get("tags", ()))),
        meta,
        body,
    )


def with_series(
    written: Mapping[str, Content],
    series: Sequence[Post],
    publication: Publication,
    templates: Templates,
) -> dict[str, Content]:
    """What people wrote, each post with its place in the series, links to its neighbours, and how to cite it."""
    found = dict(written)
    for index, post in enumerate(series):
        around = [
            series[at] if 0 <= at < len(series) else None
            for at in (index - 1, index + 1)
        ]
        end = templates.text(
            "series.md.j2",
            post=post,
            place=index + 1,
            total=len(series),
            previous=around[0],
            next=around[1],
            options=publication.options,
            campaigns=publication.campaigns,
        )
        kept = {
            name: value
            for name, value in post.meta.items()
            if name not in ("slug", "date")
        }
        front = front_matter(slug=post.slug, **kept).replace(
            f"{_FENCE}", f"{_FENCE}date: {_date(post)}\n", 1
        )
        found[post.uri] = Content(
            text=f"{front}\n{post.body.rstrip()}\n\n{end}",
            source=written[post.uri].source,
            image=post.card,
        )
    return found


def _date(post: Post) -> str:
    date = post.meta["date"]
    if not isinstance(date, dict):
        return post.date
    return (
        "{"
        + ", ".join(f"{name}: {str(value)[:10]}" for name, value in date.items())
        + "}"
    )


def previews(
    publication: Publication, series: Sequence[Post], templates: Templates, cache: Cache
) -> Mapping[str, Content]:
    """The feed, and a picture for each campaign and each post."""
    name = publication.options.name
    feed = templates.text(
        "feed.xml.j2", posts=series[::-1], options=publication.options
    )
    found = {FEED: Content(data=feed.encode())}
    for campaign in publication.campaigns:
        boxes = _boxes(publication, campaign)
        found[f"cards/{campaign.name}.png"] = _card(
            templates, campaign.info.title, boxes, name, cache
        )
    for post in series:
        named = [
            campaign
            for campaign in publication.campaigns
            if campaign.name == post.meta.get("campaign")
        ]
        boxes = [
            box
            for campaign in named or publication.campaigns[:1]
            for box in _boxes(publication, campaign)
        ]
        found[post.card] = _card(templates, post.title, boxes, name, cache)
    return found


def _boxes(publication: Publication, campaign: CampaignData) -> list[Mapping[str, Any]]:
    """The first leading metrics of a campaign, those with a value."""
    boxes = [
        value_box(publication, campaign, metric)
        for metric in publication.headlines(campaign)[:CARD_BOXES]
    ]
    return [box for box in boxes if box is not None]


def _card(
    templates: Templates,
    title: str,
    boxes: Sequence[Mapping[str, Any]],
    name: str,
    cache: Cache,
) -> Content:
    lines = textwrap.wrap(title, 38)[:3]
    svg = templates.text("card.svg.j2", lines=lines, boxes=boxes, name=name)
    return Content(data=as_png(svg, cache))
