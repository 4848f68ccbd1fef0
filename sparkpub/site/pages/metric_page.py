"""What the page of a metric shows: its part of every campaign that measured it."""

from collections.abc import Sequence
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.review.dataset import CampaignData
from sparkpub.site import sentences, sweeps
from sparkpub.site.figures import sweep
from sparkpub.site.figures.library import Library
from sparkpub.site.publication import Publication, slug

EVERY_RUN = ("",)
SWEEPS = tuple(f"-{suffix}" for suffix in sweep.SUFFIXES.values())
LEADING = (*EVERY_RUN, "-relative", "-bars", "-box", "-order")
"""The kinds of figures of a metric that leads in a campaign that sweeps nothing."""
LEADING_OF_MANY = (*EVERY_RUN, "-relative")
"""The same on the page of a metric that more than `MANY` campaigns have: their own pages have the rest."""
MANY = 6
LEADING_SWEPT = (*EVERY_RUN, "-relative", *SWEEPS)
"""The same where a campaign sweeps something: lines in place of bars, boxes and order, which its own page has."""


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
    cells = publication.cells_of(campaign, metric)
    comparisons = publication.comparisons_of(campaign, metric)
    kinds = _kinds(publication, campaign, metric)
    differences = sentences.differences(metric, comparisons)
    names = [slug(metric.name) + kind for kind in kinds]
    return {
        "campaign": campaign,
        "sentence": differences or sentences.means(metric, cells),
        "comparisons": comparisons,
        "cells": cells,
        "figures": library.place_known(campaign, names),
    }


def _kinds(
    publication: Publication, campaign: CampaignData, metric: Metric
) -> Sequence[str]:
    """A metric that leads has several figures. Another shows how it grows, or else every run; the rest is a table."""
    swept = sweeps.has_a_shape(sweeps.lines(campaign))
    leads = metric in publication.headlines(campaign)
    if leads and publication.cells_of(campaign, metric):
        if swept:
            return LEADING_SWEPT
        if len(publication.by_metric[metric.name].campaigns) > MANY:
            return LEADING_OF_MANY
        return LEADING
    return SWEEPS if swept else EVERY_RUN
