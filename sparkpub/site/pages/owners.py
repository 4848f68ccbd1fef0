"""Owners' pages: whose results the site shows, and what agrees between them."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from sparkpub.record.metrics import METRICS
from sparkpub.record.owner import ARENA_FILE, ArenaLine, Owner, read
from sparkpub.review.grouping import grouped
from sparkpub.review.owners import pairs
from sparkpub.review.speeds import Speed
from sparkpub.site.content import SiteOptions
from sparkpub.site.pages.leaderboard_page import figure_text
from sparkpub.site.publication import Publication

LIST = "owners/index.md"


def lines(options: SiteOptions) -> Sequence[ArenaLine]:
    """The lines of the repository's arena.yaml; none where there is no such file."""
    path = options.repository / ARENA_FILE
    return read(path) if path.is_file() else ()


def source(owner: str) -> str:
    """The source of an owner's page."""
    return f"owners/{owner}.md"


def context(publication: Publication) -> list[dict[str, Any]]:
    """Every owner of arena.yaml or of gathered data, with campaigns, machines, and the figures that others have too."""
    campaigns = publication.dataset.campaigns.values()
    gathered = {each.owner.owner: each.owner for each in campaigns if each.owner}
    asked = {line.id: line for line in lines(publication.options)}
    known: dict[str, ArenaLine | Owner] = {**asked, **gathered}
    beside = grouped(pairs(publication.speeds), attrgetter("one.owner"))
    return [
        {
            "name": name,
            "about": known[name],
            "is_gathered": name in gathered,
            "campaigns": [
                each
                for each in publication.campaigns
                if each.owner and each.owner.owner == name
            ],
            "machines": sorted(
                {speed.machine for speed in publication.speeds.where(owner=name)}
            ),
            "pairs": beside.get(name, ()),
        }
        for name in sorted(known)
    ]


def figure(speed: Speed, name: str) -> str:
    """What it reached of a metric, with the unit: `58.8 tok/s`."""
    metric = METRICS[name]
    unit = "s" if metric.unit == "ms" else metric.unit
    return f"{figure_text(speed.figures[name].mean, metric)} {unit}"
