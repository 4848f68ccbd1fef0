"""The pages of other owners' campaigns, with the files of their charts: made once for what they show, and kept in the
cache beside the tables."""

from collections.abc import Callable, Iterator, Mapping

from pydantic_core import from_json, to_json

from sparkpub.review.dataset import CampaignData
from sparkpub.site import kept
from sparkpub.site.cache import Cache, key
from sparkpub.site.content import File, Page
from sparkpub.site.figures.draw import Drawings, Drawn
from sparkpub.site.figures.library import Library
from sparkpub.site.pages import campaign_page, placing, tree
from sparkpub.site.publication import Publication

_SAID = "said.json"
"""What a campaign found out, kept with its page."""
Files = dict[str, File]
"""By address: a campaign's page and its charts."""


def of(
    publication: Publication, drawings: Drawings, cache: Cache
) -> Callable[[Mapping[str, Drawn]], Iterator[Files]]:
    """What gives the files of each campaign once everything is drawn. What is not in the cache asks for its charts
    now."""
    kept: list[Files] = []
    made: list[tuple[CampaignData, Library, Page]] = []
    for campaign in publication.campaigns:
        if campaign.owner is not None:
            found = _read(publication, campaign, cache)
            if found is None:
                library = Library(publication, drawings)
                page = tree.of_campaign(publication, library, campaign)
                made.append((campaign, library, page))
            else:
                kept.append(found)

    def files(drawn: Mapping[str, Drawn]) -> Iterator[Files]:
        yield from kept
        for campaign, library, page in made:
            uri = campaign_page.source(campaign)
            found = placing.Placing(library, drawn).placed({uri: page}, cache)
            _keep(publication, campaign, found, cache)
            yield found

    return files


def _name(publication: Publication, campaign: CampaignData) -> str:
    """The entry of a campaign in the cache; empty where its page speaks of other campaigns, too."""
    made_from = publication.review.campaigns[campaign.name].made_from
    if not made_from or len(publication.joined(campaign)) > 1:
        return ""
    options, names = publication.options, publication.names.campaign(campaign.name)
    found = [
        finding.document()
        for finding in publication.findings.where(campaign=campaign.name)
    ]
    about = (publication.home, options.name, options.url, options.repo_url)
    return key("page", made_from, names.models, found, about)


def _read(
    publication: Publication, campaign: CampaignData, cache: Cache
) -> Files | None:
    """The files of a campaign as they were made; None where they have to be made now."""
    known = kept.files(_name(publication, campaign), cache)
    if known is None:
        return None
    found = dict(known)
    said = found.pop(_SAID)
    assert isinstance(said, bytes)
    publication.said[campaign.name] = from_json(said)
    return found


def _keep(
    publication: Publication, campaign: CampaignData, files: Files, cache: Cache
) -> None:
    said = to_json(campaign_page.answers(publication, campaign))
    whole = {**files, _SAID: said}
    kept.keep_files(_name(publication, campaign), cache, whole)
