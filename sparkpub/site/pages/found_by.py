"""By which words the search finds a page, besides those of its Markdown: the names in its charts and tables, which the
search does not read."""

from collections.abc import Iterable

from sparkpub.review.dataset import CampaignData
from sparkpub.review.speeds import Speed
from sparkpub.site.publication import Publication

MOST = 2000
"""Letters for a page: the search is loaded as a whole."""


def of_campaign(publication: Publication, campaign: CampaignData) -> str:
    """Names of a campaign: its key, its models, environments and engines."""
    names = publication.names.campaign(campaign.name)
    called = (*names.models.values(), *names.environments.values())
    return of_speeds(
        publication.speeds.where(campaign=campaign.name), campaign.name, *called
    )


def of_speeds(speeds: Iterable[Speed], *others: str) -> str:
    """Names of models, formats, engines and machines, behind others."""
    names: list[str | None] = [*others]
    for speed in speeds:
        names += [speed.model.name, speed.setup.model_id, speed.weights]
        names += [speed.engine, speed.machine]
    return " ".join(dict.fromkeys(filter(None, names)))[:MOST]
