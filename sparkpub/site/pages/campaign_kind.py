"""What kind of campaign a page shows: it decides what the page says first, and which charts it has."""

from dataclasses import dataclass
from typing import Literal

from sparkpub.review.dataset import CampaignData
from sparkpub.site import sweeps
from sparkpub.site.publication import Publication

Kind = Literal["comparison", "sweep", "ranking", "mixed"]


@dataclass(frozen=True)
class Asked:
    """What a campaign asks: do environments differ, how does something grow, which model is best."""

    compares: bool
    sweeps: bool
    ranks: bool

    @property
    def kind(self) -> Kind:
        """One of the three, or several of them mixed."""
        if self.compares + self.sweeps + self.ranks > 1:
            return "mixed"
        if self.compares:
            return "comparison"
        return "sweep" if self.sweeps else "ranking"


def asked(publication: Publication, campaign: CampaignData) -> Asked:
    """What a campaign asks, by what it has: comparisons of a leading metric, lines of three points, several models.

    A campaign with none of these ranks what it has.
    """
    models, _, _ = campaign.axes
    compares = any(
        publication.comparisons_of(campaign, metric)
        for metric in publication.headlines(campaign)
    )
    shapes = sweeps.has_a_shape(sweeps.lines(campaign))
    several_models = len(models) > 1 and not compares
    return Asked(compares, shapes, several_models or not (compares or shapes))
