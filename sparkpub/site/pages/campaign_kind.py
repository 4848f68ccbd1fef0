"""What kind of campaign a page shows: it decides what the page says first, and which charts it has."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sparkpub.review.dataset import CampaignData
from sparkpub.site import sweeps
from sparkpub.site.publication import Publication
from sparkpub.site.sweeps import Line

CampaignKind = Literal["comparison", "sweep", "ranking", "mixed"]


@dataclass(frozen=True)
class CampaignQuestions:
    """What a campaign asks: do environments differ, how does something grow, which model is best."""

    compares: bool
    sweeps: bool
    ranks: bool

    @property
    def kind(self) -> CampaignKind:
        """One of the three, or several of them mixed."""
        if self.compares + self.sweeps + self.ranks > 1:
            return "mixed"
        if self.compares:
            return "comparison"
        return "sweep" if self.sweeps else "ranking"


def asked(publication: Publication, campaign: CampaignData) -> CampaignQuestions:
    """What a campaign asks, by what it has: comparisons of a leading metric, lines of three points, several models.

    Models that were all measured along such a line are lines of a sweep, and a ranking of their cells would only rank
    the loads. A campaign with none of these ranks what it has.
    """
    models, _, _ = campaign.axes
    lines = publication.lines(campaign)
    compares = any(
        publication.results.comparisons_of(campaign.name, metric.name)
        for metric in publication.headlines(campaign)
    )
    shapes = sweeps.has_a_shape(lines)
    several_models = len(models) > 1 and not compares
    ranks = several_models and not _all_on_lines(campaign, lines)
    return CampaignQuestions(compares, shapes, ranks or not (compares or shapes))


def _all_on_lines(campaign: CampaignData, lines: Sequence[Line]) -> bool:
    """Whether every cell is a point of a line that shows how something grows."""
    shown = [line for line in lines if sweeps.has_a_shape([line])]
    on_lines = {cell for line in shown for _, cell in line.points}
    return all(record.cell in on_lines for record in campaign.records)
