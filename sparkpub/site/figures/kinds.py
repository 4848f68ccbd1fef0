"""Every kind of figure. A new one is a module beside this one and a line in `KINDS`."""

from collections.abc import Mapping

from sparkpub.site.figures import (
    bandwidth,
    bars,
    box,
    capacity,
    coverage,
    forest,
    heat,
    ledger,
    machines,
    order,
    pareto,
    relative,
    scatter,
    strip,
    sweep,
)
from sparkpub.site.figures.kind import Kind, Make
from sparkpub.site.figures.rows import SHARED
from sparkpub.site.figures.selection import Selection
from sparkpub.site.publication import Publication
from sparkpub.site.tables import MOST_OPEN, SiteTables

KINDS: tuple[Kind, ...] = (
    strip.KIND,
    bars.KIND,
    box.KIND,
    order.KIND,
    sweep.KIND,
    pareto.KIND,
    capacity.KIND,
    bandwidth.KIND,
    relative.KIND,
    scatter.KIND,
    forest.KIND,
    machines.KIND,
    ledger.KIND,
    coverage.KIND,
    heat.KIND,
)
"""In the order in which their figures are listed. Figures of single pages (`telemetry`, `explore`, `overlay`) are asked
for by those pages."""


def offered(campaign: Selection) -> Mapping[str, Make]:
    """Name to what makes the figure: all that a campaign has, those of its metrics first."""
    makers: dict[str, Make] = {}
    for metric in campaign.publication.metrics(campaign.campaign):
        for kind in KINDS:
            makers.update(kind.of_metric(campaign, metric))
    for kind in KINDS:
        makers.update(kind.of_campaign(campaign))
    return makers


def tables(publication: Publication) -> SiteTables:
    """Every table that charts read, for the whole site."""
    wanted = dict(SHARED)
    for kind in KINDS:
        wanted.update(kind.tables)
    many = len(publication.campaigns) > MOST_OPEN
    found = SiteTables(wanted, compressed=many)
    for campaign in publication.campaigns:
        share = {
            name: list(make(publication, campaign)) for name, make in wanted.items()
        }
        found.put(campaign.name, share)
    return found
