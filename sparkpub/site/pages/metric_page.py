"""What the page of a metric shows: its part of every campaign that measured it."""

from collections.abc import Mapping
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.review.dataset import CampaignData
from sparkpub.site import sentences
from sparkpub.site.figures import sweep
from sparkpub.site.figures.library import Library
from sparkpub.site.publication import Publication, slug

LEADING = (
    "",
    "-relative",
    "-bars",
    "-box",
    "-order",
    *(f"-{suffix}" for suffix in sweep.SUFFIXES.values()),
)
"""The kinds of figures of a metric that leads; others show every run, and the rest as a table."""


def campaigns_by_metric(
    publication: Publication,
) -> Mapping[str, tuple[Metric, list[CampaignData]]]:
    """Name to every metric that a run has, with the campaigns that have it."""
    found: dict[str, tuple[Metric, list[CampaignData]]] = {}
    for campaign in publication.campaigns:
        for metric in publication.metrics(campaign):
            _, campaigns = found.setdefault(metric.name, (metric, []))
            campaigns.append(campaign)
    return found


def context(
    publication: Publication, library: Library, campaign: CampaignData, metric: Metric
) -> dict[str, Any]:
    """What the template needs of one campaign."""
    cells = publication.cells_of(campaign, metric)
    comparisons = publication.comparisons_of(campaign, metric)
    leads = metric in publication.headlines(campaign) and cells
    kinds = LEADING if leads else LEADING[:1]
    differences = sentences.differences(metric, comparisons)
    names = [slug(metric.name) + kind for kind in kinds]
    return {
        "campaign": campaign,
        "sentence": differences or sentences.means(metric, cells),
        "comparisons": comparisons,
        "cells": cells,
        "figures": library.place_known(campaign, names),
    }
