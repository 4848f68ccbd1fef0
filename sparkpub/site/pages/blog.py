"""The blog: posts with their place in the series and how to cite them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter
from typing import Any

import yaml

from sparkpub.record.errors import SiteError
from sparkpub.review.dataset import CampaignData
from sparkpub.site.content import POSTS, Page, Picture
from sparkpub.site.pages.citation import bibtex
from sparkpub.site.pages.templating import Templates, front_matter, markdown_text
from sparkpub.site.publication import Publication
from sparkpub.site.sources import dates

_FENCE = "---\n"
_SLUG = re.compile(r"\w[\w-]*(?:/\w[\w-]*)*")
_HEADING = re.compile(r"^# |^=+\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Post:
    """One post that is published. `body` is Markdown with its figures bound.

    `created` and `updated` have a time zone: a day alone begins at midnight UTC.
    """

    uri: str
    slug: str
    title: str
    created: datetime
    updated: datetime
    meta: Mapping[str, Any]
    body: str

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


def posts(written: Mapping[str, str]) -> list[Post]:
    """The posts among pages (address to text) in order of their times, without drafts.

    Raises SiteError naming the file and the field.
    """
    found = [_post(uri, written[uri]) for uri in written if uri.startswith(POSTS)]
    published = [post for post in found if not post.meta.get("draft")]
    return sorted(published, key=attrgetter("created", "uri"))


def _post(uri: str, text: str) -> Post:
    head, fence, body = text.removeprefix(_FENCE).partition("\n" + _FENCE)
    try:
        meta = yaml.safe_load(head) if fence and text.startswith(_FENCE) else {}
        created, updated = dates(meta.get("date"))
    except (yaml.YAMLError, ValueError, AttributeError) as error:
        raise SiteError(
            f"a post needs front matter with a date: {error}",
            where=uri,
            remedy="add date: YYYY-MM-DD to it, with a time if you like",
        ) from None
    slug = str(meta.get("slug") or uri.removeprefix(POSTS).removesuffix(".md"))
    if not _SLUG.fullmatch(slug):
        remedy = "use letters, digits, - and _"
        raise SiteError(f"slug {slug!r} is no address", where=uri, remedy=remedy)
    heading = re.search(r"^# (.*)$", body, re.MULTILINE)
    title = str(meta.get("title") or (heading[1] if heading else uri))
    return Post(uri, slug, title, created, updated, meta, body)


def with_series(
    written: Mapping[str, Page],
    series: Sequence[Post],
    publication: Publication,
    templates: Templates,
) -> Iterator[tuple[str, Page]]:
    """(address, page) of each post, with its place in the series, links to its neighbours, and how to cite it."""
    options = publication.options
    for index, post in enumerate(series):
        cited = bibtex(
            f"{options.name}-{post.slug}".replace("/", "-").replace(" ", "-"),
            post.authors,
            post.title,
            post.date,
            options.name,
            options.url + post.href if options.url else "",
        )
        end = templates.text(
            "series.md.j2",
            post=post,
            place=index + 1,
            total=len(series),
            previous=series[index - 1] if index > 0 else None,
            next=series[index + 1] if index + 1 < len(series) else None,
            bibtex=cited,
            options=options,
            campaigns=campaigns_behind(post, publication),
        )
        yield (
            post.uri,
            replace(
                written[post.uri],
                text=f"{_front(post)}\n{_headed(post)}\n\n{end}",
                image=Picture(post.card, post.title),
            ),
        )


def _headed(post: Post) -> str:
    """The body with a heading: to a post without one the theme gives its title, which it takes for Markdown."""
    body = post.body.rstrip()
    if _HEADING.search(body):
        return body
    title = markdown_text(" ".join(post.title.split()))
    return f"# {title}\n\n{body}"


def campaigns_behind(post: Post, publication: Publication) -> Sequence[CampaignData]:
    """The campaign that a post names as its own; all of them where it names none."""
    for campaign in publication.campaigns:
        if campaign.name == post.meta.get("campaign"):
            return [campaign]
    return publication.campaigns


def _front(post: Post) -> str:
    """The front matter of a post, its dates as the blog reads them: YAML's own, not text."""
    told = {"created": post.created}
    if post.updated != post.created:
        told["updated"] = post.updated
    others = {name: value for name, value in post.meta.items() if name != "date"}
    front = front_matter(**others | {"slug": post.slug})
    return front.replace(_FENCE, f"{_FENCE}{yaml.safe_dump({'date': told})}", 1)
