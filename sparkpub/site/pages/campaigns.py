"""The pages of campaigns, with the files of their charts: each made once for what it shows, and kept in the cache
beside the tables."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from pydantic_core import from_json, to_json

from sparkpub.review.dataset import CampaignData
from sparkpub.site import kept
from sparkpub.site.cache import Cache, key
from sparkpub.site.content import File, Page
from sparkpub.site.figures.draw import Drawings, Drawn
from sparkpub.site.figures.library import Library
from sparkpub.site.pages import (
    campaign_page,
    found_by,
    placing,
    preview_pictures,
    templating,
)
from sparkpub.site.publication import Publication

_SAID = "said.json"
"""What a campaign found out, kept with its page."""
Files = dict[str, File]
"""By address: a campaign's page and its charts."""


def begun(
    publication: Publication, pictured: Iterable[str], drawings: Drawings, cache: Cache
) -> Callable[[Mapping[str, Drawn]], Iterator[Files]]:
    """What gives the files of each campaign once everything is drawn, those of its figures that are `pictured` as PNG,
    too. What is not in the cache asks for its charts now."""
    known: list[Files] = []
    made: list[tuple[str, CampaignData, Library, Page]] = []
    for campaign in publication.campaigns:
        mine = [figure for figure in pictured if figure.startswith(f"{campaign.name}-")]
        name = _name(publication, campaign, mine)
        files = kept.files(name, cache)
        if files is None:
            library = Library(publication, drawings)
            library.pictures.update(mine)
            made.append((name, campaign, library, page(publication, library, campaign)))
        else:
            found = dict(files)
            said = found.pop(_SAID)
            assert isinstance(said, bytes)
            publication.said[campaign.name] = from_json(said)
            known.append(found)

    def finished(drawn: Mapping[str, Drawn]) -> Iterator[Files]:
        yield from known
        for name, campaign, library, made_page in made:
            whole = {campaign_page.source(campaign): made_page}
            found = placing.Placing(library, drawn).placed(whole, cache)
            said = to_json(campaign_page.answers(publication, campaign))
            kept.keep_files(name, cache, {**found, _SAID: said})
            yield found

    return finished


def page(publication: Publication, library: Library, campaign: CampaignData) -> Page:
    """The page of a campaign."""
    lead = campaign_page.context(publication, library, campaign)
    made = templating.page("campaign", publication=publication, lead=lead)
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
    return of and key("page", of, about, pictured)
