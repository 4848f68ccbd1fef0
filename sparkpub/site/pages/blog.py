"""The blog: posts with their place in the series and how to cite them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
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
    description: str
    created: datetime
    updated: datetime
    authors: tuple[str, ...]
    categories: tuple[str, ...]
    tags: tuple[str, ...]
    meta: Mapping[str, Any]
    body: str

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
    """The posts among pages (address to text) in order of their dates, without drafts; those of one date in order of
    their files, 9 before 10.

    Raises SiteError naming the file and the field.
    """
    found = []
    for uri, text in written.items():
        if not uri.startswith(POSTS):
            continue
        meta, body = _parts(uri, text)
        if not meta.get("draft"):
            found.append(_post(uri, meta, body))
    _refuse_twins(found)
    found.sort(key=lambda post: (post.created, _numbered(post.uri)))
    return list(_one_after_another(found))


def _numbered(uri: str) -> list[tuple[str, int]]:
    """A file's name to sort by: part 10 comes after part 9."""
    pieces = re.findall(r"(\D*)(\d*)", uri)
    return [(text, int(digits or 0)) for text, digits in pieces]


def _one_after_another(ordered: Iterable[Post]) -> Iterator[Post]:
    """Posts of the same time a second apart: the theme orders its links by time alone."""
    earliest = datetime.min.replace(tzinfo=UTC)
    for post in ordered:
        created = max(post.created, earliest)
        yield replace(post, created=created, updated=max(post.updated, created))
        earliest = created + timedelta(seconds=1)


def _refuse_twins(found: Sequence[Post]) -> None:
    """Raise SiteError where two posts would be published at one address, and one of them lost."""
    files: dict[str, str] = {}
    for post in found:
        other = files.setdefault(post.slug, post.uri)
        if other != post.uri:
            raise SiteError(
                f"{other} has the slug {post.slug!r} too",
                where=post.uri,
                remedy="give one of the two posts another slug",
            )


def _parts(uri: str, text: str) -> tuple[Mapping[str, Any], str]:
    """Front matter and body of a post."""
    head, fence, body = text.removeprefix(_FENCE).partition("\n" + _FENCE)
    try:
        meta = yaml.safe_load(head) if fence and text.startswith(_FENCE) else None
    except (yaml.YAMLError, ValueError) as error:
        raise SiteError(
            f"front matter is not YAML: {error}", where=uri, remedy="correct it"
        ) from None
    if not isinstance(meta, dict):
        raise SiteError(
            "a post needs front matter",
            where=uri,
            remedy="begin it with ---, date: and description:",
        )
    return meta, body


def _post(uri: str, meta: Mapping[str, Any], body: str) -> Post:
    try:
        created, updated = dates(meta.get("date"))
    except ValueError as error:
        raise SiteError(
            f"a post needs a date: {error}",
            where=uri,
            remedy="add date: YYYY-MM-DD to its front matter, with a time if you like",
        ) from None
    slug = str(meta.get("slug") or uri.removeprefix(POSTS).removesuffix(".md"))
    if not _SLUG.fullmatch(slug):
        remedy = "use letters, digits, - and _"
        raise SiteError(f"slug {slug!r} is no address", where=uri, remedy=remedy)
    heading = re.search(r"^# (.*)$", body, re.MULTILINE)
    title = meta.get("title") or (heading[1] if heading else uri)
    return Post(
        uri=uri,
        slug=slug,
        title=str(title),
        description=str(meta.get("description", "")),
        created=created,
        updated=updated,
        authors=tuple(map(str, meta.get("authors") or ())),
        categories=tuple(map(str, meta.get("categories") or ())),
        tags=tuple(map(str, meta.get("tags") or ())),
        meta=meta,
        body=body,
    )


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
    """The front matter of a post, its date as the blog reads it: YAML's own, not text."""
    written = post.created.isoformat()
    dates = post.meta["date"]
    if isinstance(dates, dict):
        days = {name: str(day) for name, day in dates.items()} | {"created": written}
        written = ", ".join(f"{name}: {day}" for name, day in days.items())
        written = f"{{{written}}}"
    others = {
        name: value for name, value in post.meta.items() if name not in {"slug", "date"}
    }
    front = front_matter(slug=post.slug, **others)
    return front.replace(_FENCE, f"{_FENCE}date: {written}\n", 1)
