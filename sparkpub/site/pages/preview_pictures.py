"""Preview pictures with the actual result: of each campaign, of each post, and of the site."""

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sparkpub.record.metrics import Metric
from sparkpub.record.text import listed
from sparkpub.review.dataset import CampaignData
from sparkpub.site import sentences
from sparkpub.site.cache import Cache
from sparkpub.site.content import SITE_CARD
from sparkpub.site.figures.draw import as_png
from sparkpub.site.pages.blog import Post, campaigns_behind
from sparkpub.site.pages.templating import Templates
from sparkpub.site.publication import Publication, cell_label

CARD_BOXES = 3
"""Leading metrics on a preview picture."""


@dataclass(frozen=True)
class Box:
    """A figure with its name, and what stands behind it."""

    label: str
    value: str
    note: str = ""


def card(campaign: CampaignData) -> str:
    """The preview picture of a campaign, from the root of the site."""
    return f"cards/{campaign.name}.png"


def pictures(
    publication: Publication, series: Sequence[Post], templates: Templates, cache: Cache
) -> dict[str, bytes]:
    """A picture for each campaign and each post, and one of the site for all other pages."""
    name = publication.options.name
    found = {SITE_CARD: _card(templates, name, _totals(publication), name, cache)}
    for campaign in publication.campaigns:
        boxes = _boxes(publication, campaign)
        found[card(campaign)] = _card(
            templates, campaign.info.title, boxes, name, cache
        )
    for post in series:
        boxes = []
        for campaign in campaigns_behind(post, publication)[:1]:
            boxes += _boxes(publication, campaign)
        found[post.card] = _card(templates, post.title, boxes, name, cache)
    return found


def _totals(publication: Publication) -> list[Box]:
    """How much the site holds."""
    runs = publication.dataset.runs
    numbers = {
        "Runs": len(runs),
        "Models": len({run.record.model for run in runs}),
        "Campaigns": len(publication.campaigns),
    }
    return [Box(label, f"{number:,}") for label, number in numbers.items()]


def _boxes(publication: Publication, campaign: CampaignData) -> list[Box]:
    """The first leading metrics of a campaign, those with a value."""
    boxes = [
        _box(publication, campaign, metric)
        for metric in publication.headlines(campaign)[:CARD_BOXES]
    ]
    return [box for box in boxes if box is not None]


def _card(
    templates: Templates,
    title: str,
    boxes: Sequence[Box],
    name: str,
    cache: Cache,
) -> bytes:
    lines = textwrap.wrap(title, 38)[:3]
    svg = templates.text("card.svg.j2", lines=lines, boxes=boxes, name=name)
    return as_png(svg, cache)


def _box(
    publication: Publication, campaign: CampaignData, metric: Metric
) -> Box | None:
    """One leading metric as a value box: the largest difference, or the best mean."""
    rows = publication.results.comparisons_of(campaign.name, metric.name)
    cells = publication.results.cells_of(campaign.name, metric.name)
    if rows:
        verdicts = Counter(row.verdict for row in rows)
        told = listed(f"{n} {word}" for word, n in verdicts.items())
        compared = sentences.Comparisons(publication.names, metric, rows)
        return Box(metric.label, compared.measured, told)
    if not cells:
        return None
    choose = min if metric.direction == "lower" else max
    best = choose(cells, key=lambda cell: cell.mean)
    where = cell_label(publication.names, campaign, best.cell)
    return Box(
        metric.label, metric.format(best.mean), f"best mean: {where}, n = {best.n}"
    )
