"""What the page of a metric shows: its part of every campaign that measured it, by the question that it answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.tables.column import TableRow
from sparkpub.site import sentences, sweeps
from sparkpub.site.figures import sweep
from sparkpub.site.figures.library import Library
from sparkpub.site.figures.selection import Selection, scope
from sparkpub.site.pages import campaign_kind
from sparkpub.site.publication import Gathered, Publication, slug

MOST_LISTED = 100
"""Cells and comparisons of a campaign on the page of a metric; the tables to load have them all."""
EVERY_RUN = ("",)
SWEEPS = tuple(f"-{suffix}" for suffix in sweep.SUFFIXES.values())
COMPARED, GROWN, RANKED = (
    "Does the environment change it?",
    "How does it grow?",
    "Who has the best?",
)
"""The questions of the page, in the order in which it asks them."""


@dataclass(frozen=True)
class Part:
    """A campaign on the page: a sentence, and the tables behind it."""

    campaign: CampaignData
    says: str
    comparisons: Sequence[TableRow]
    more_comparisons: int
    cells: Sequence[TableRow]
    more_cells: int


@dataclass(frozen=True)
class MetricQuestion:
    """A question with the campaigns that answer it, and one chart where the metric leads one of them, with what it
    says."""

    title: str
    chart: str
    parts: Sequence[Part]
    says: str


def context(
    publication: Publication, library: Library, gathered: Gathered
) -> dict[str, Any]:
    """What the template needs."""
    return {
        "metric": gathered.metric,
        "sections": list(_sections(publication, library, gathered)),
        "earlier": gathered.listed,
    }


def _sections(
    publication: Publication, library: Library, gathered: Gathered
) -> Iterator[MetricQuestion]:
    metric = gathered.metric
    by_question = grouped(
        gathered.shown, lambda campaign: _question(publication, campaign, metric)
    )
    for title in (COMPARED, GROWN, RANKED):
        campaigns = by_question.get(title, ())
        if campaigns:
            parts = [_part(publication, campaign, metric) for campaign in campaigns]
            chart = _chart(publication, library, campaigns, metric)
            says = library.placed[chart].says if chart else ""
            yield MetricQuestion(title, chart, parts, says)


def _question(publication: Publication, campaign: CampaignData, metric: Metric) -> str:
    """What a campaign says of a metric: a comparison goes before a shape, and this before a rank."""
    if publication.results.comparisons_of(campaign.name, metric.name):
        return COMPARED
    if campaign_kind.asked(publication, campaign).sweeps:
        return GROWN
    return RANKED


def _part(publication: Publication, campaign: CampaignData, metric: Metric) -> Part:
    cells = publication.results.cells_of(campaign.name, metric.name)
    comparisons = publication.results.comparisons_of(campaign.name, metric.name)
    names = publication.names
    says = (
        sentences.differences(names, metric, comparisons)
        or shape(publication, campaign, metric)
        or sentences.means(names, metric, cells)
    )
    return Part(
        campaign,
        says,
        comparisons[:MOST_LISTED],
        len(comparisons[MOST_LISTED:]),
        cells[:MOST_LISTED],
        len(cells[MOST_LISTED:]),
    )


def shape(publication: Publication, campaign: CampaignData, metric: Metric) -> str:
    """How a metric grows along the first axis of a campaign with a shape, empty without one."""
    whole = Selection(publication, campaign, scope(publication.names, campaign), {}, {})
    if sweeps.has_a_shape(whole.lines):
        for axis in sweeps.AXES:
            found = sweep.curves(whole, axis, metric)
            if sweeps.has_a_shape([curve.line for curve in found]):
                return sweep.sentence(metric, found)
    return ""


def _chart(
    publication: Publication,
    library: Library,
    campaigns: Sequence[CampaignData],
    metric: Metric,
) -> str:
    """Every run, or how the metric grows, in the first campaign that it leads; empty where it leads none."""
    for campaign in campaigns:
        leads = metric in publication.headlines(campaign)
        if leads and publication.results.cells_of(campaign.name, metric.name):
            grows = sweeps.has_a_shape(publication.lines(campaign))
            kinds = SWEEPS if grows else EVERY_RUN
            for kind in kinds:
                name = f"{slug(metric.name)}{kind}"
                for chart in library.place_known(campaign, [name]):
                    return chart
    return ""
