"""The pages of campaigns, with the files of their charts: each made once for what it shows, and kept in the cache
beside the tables."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from pydantic_core import from_json, to_json

from sparkpub.review.dataset import CampaignData
from sparkpub.site import kept
from sparkpub.site.cache import Cache, key
from sparkpub.site.content import File, Page
from sparkpub.site.figures.draw import Drawings
from sparkpub.site.figures.library import Library
from sparkpub.site.pages import (
    campaign_page,
    found_by,
    placing,
    preview_pictures,
    templating,
)
from sparkpub.site.publication import Publication


def begun(
    publication: Publication, pictured: Iterable[str], drawings: Drawings, cache: Cache
) -> Iterator[Callable[[], Mapping[str, File]]]:
    """What gives the page of each campaign, and the files of its charts; those that are `pictured` as PNG, too."""
    for campaign in publication.campaigns:
        mine = [figure for figure in pictured if figure.startswith(f"{campaign.name}-")]
        name = _name(publication, campaign, mine)
        said, uri = name and key(name, "said"), campaign_page.source(campaign)
        known = cache.get(said) if said else None
        if known is not None:
            publication.said[campaign.name] = from_json(known)
        make = partial(page, publication, campaign, mine)
        yield placing.once(name, uri, make, publication, drawings, cache)
        if said and known is None:
            cache.put(said, to_json(campaign_page.answers(publication, campaign)))


def page(
    publication: Publication,
    campaign: CampaignData,
    pictured: Iterable[str],
    library: Library,
) -> Page:
    """The page of a campaign."""
    library.pictures.update(pictured)
    whole = library.campaign(campaign.name)
    made = templating.page(
        "campaign",
        publication,
        whole=whole,
        shown=campaign_page.shown(publication, library, campaign),
        coverage=library.figure("coverage", campaign.name)
        if whole.cells_here
        else None,
    )
    seen = {"image": preview_pictures.card(campaign)}
    words = found_by.of_campaign(publication, campaign)
    return replace(made, meta={**made.meta, **seen}, found_by=words)


def _name(
    publication: Publication, campaign: CampaignData, pictured: Iterable[str]
) -> str:
    """The entry of a campaign in the cache, by all that its page speaks of; empty for what is not kept."""
    together, options = publication.joined(campaign), publication.options
    of = kept.basis(publication.review, publication.names, together)
    about = publication.home, options.name, options.url, options.repo_url
    return of and key("page", campaign.name, of, about, pictured)
