"""What the page of a metric shows: its part of every campaign that measured it."""

from collections.abc import Sequence
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.review.dataset import CampaignData
from sparkpub.site import sentences, sweeps
from sparkpub.site.figures import sweep
from sparkpub.site.figures.library import Library
from sparkpub.site.publication import Publication, slug

MOST_LISTED = 100
"""Cells and comparisons of a campaign on the page of a metric; the tables to load have them all."""
EVERY_RUN = ("",)
SWEEPS = tuple(f"-{suffix}" for suffix in sweep.SUFFIXES.values())


def address(publication: Publication, campaign: CampaignData, metric: Metric) -> str:
    """Where the page of a metric shows a campaign, from the root of the site; the whole page where it only lists it."""
    page = f"metrics/{slug(metric.name)}/"
    shown = publication.by_metric[metric.name].shown
    if any(campaign.name == one.name for one in shown):
        return f"{page}#{campaign.name}"
    return page


def context(
    publication: Publication, library: Library, campaign: CampaignData, metric: Metric
) -> dict[str, Any]:
    """What the template needs of one campaign."""
    cells = publication.results.cells_of(campaign.name, metric.name)
    comparisons = publication.results.comparisons_of(campaign.name, metric.name)
    kinds = _kinds(publication, campaign, metric)
    differences = sentences.differences(publication.names, metric, comparisons)
    names = [slug(metric.name) + kind for kind in kinds]
    return {
        "campaign": campaign,
        "sentence": differences or sentences.means(publication.names, metric, cells),
        "comparisons": comparisons[:MOST_LISTED],
        "more_comparisons": len(comparisons[MOST_LISTED:]),
        "cells": cells[:MOST_LISTED],
        "more_cells": len(cells[MOST_LISTED:]),
        "figures": library.place_known(campaign, names),
    }


def _kinds(
    publication: Publication, campaign: CampaignData, metric: Metric
) -> Sequence[str]:
    """A metric that leads a campaign shows how it grows, or else every run. Another has a table."""
    if metric not in publication.headlines(campaign):
        return ()
    if not publication.results.cells_of(campaign.name, metric.name):
        return ()
    return SWEEPS if sweeps.has_a_shape(publication.lines(campaign)) else EVERY_RUN
