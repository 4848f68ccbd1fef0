"""Every kind of figure. A new one is a module beside this one and a line in `KINDS`."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from pydantic_core import to_json

from sparkpub.site.figures import (
    bandwidth,
    bars,
    capacity,
    coverage,
    forest,
    heat,
    machines,
    order,
    relative,
    scatter,
    strip,
    sweep,
    users,
)
from sparkpub.site.figures.kind import Kind, Make
from sparkpub.site.figures.rows import SHARED, MakeRows, Row, Tables
from sparkpub.site.figures.selection import Selection
from sparkpub.site.publication import Publication

MOST_OPEN = 16
"""Campaigns whose rows are kept: pages speak of one campaign after the other, or of the few newest in turn."""
KINDS: tuple[Kind, ...] = (
    strip.KIND,
    bars.KIND,
    order.KIND,
    sweep.KIND,
    users.KIND,
    capacity.KIND,
    bandwidth.KIND,
    relative.KIND,
    scatter.KIND,
    forest.KIND,
    machines.KIND,
    coverage.KIND,
    heat.KIND,
)
"""In the order in which their figures are listed. Figures of single pages (`telemetry`, `explore`, `models`,
`versions`) are asked for by those pages."""


def offered(campaign: Selection) -> Mapping[str, Make]:
    """Name to what makes the figure: all that a campaign has, those of its metrics first."""
    makers: dict[str, Make] = {}
    for metric in campaign.publication.metrics(campaign.campaign):
        for kind in KINDS:
            makers.update(kind.of_metric(campaign, metric))
    for kind in KINDS:
        makers.update(kind.of_campaign(campaign))
    return makers


def tables() -> Mapping[str, MakeRows]:
    """Name of every table that charts read to what makes a campaign's share of it."""
    wanted = dict(SHARED)
    for kind in KINDS:
        wanted.update(kind.tables)
    return wanted


@lru_cache(MOST_OPEN)
def tables_of(publication: Publication, campaign: str) -> Tables:
    """What charts read of a campaign, by its name."""
    data = publication.dataset.campaign(campaign)
    return {name: list(make(publication, data)) for name, make in tables().items()}


def rows(publication: Publication, table: str) -> Iterator[Row]:
    """A table for the whole site, campaign by campaign: made once for files and charts where all campaigns are kept."""
    make = tables()[table]
    all_kept = len(publication.campaigns) <= MOST_OPEN
    for campaign in publication.campaigns:
        if all_kept:
            yield from tables_of(publication, campaign.name)[table]
        else:
            yield from make(publication, campaign)


def text(publication: Publication, table: str) -> Iterator[bytes]:
    """The same as JSON, in pieces: all rows of a large site at once would take gigabytes."""
    before = b"["
    for row in rows(publication, table):
        yield before + to_json(row)
        before = b","
    yield b"[]" if before == b"[" else b"]"
