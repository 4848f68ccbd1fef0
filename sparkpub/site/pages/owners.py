"""Owners' pages: whose results the site shows, and what agrees between them."""

from collections.abc import Sequence
from typing import Any

from sparkpub.record.metrics import METRICS
from sparkpub.record.owner import ARENA_FILE, ArenaLine, Owner, read
from sparkpub.record.text import percent
from sparkpub.review.names import load_name
from sparkpub.review.owners import OwnersPair, pairs
from sparkpub.site.content import SiteOptions
from sparkpub.site.pages import model_links
from sparkpub.site.pages.leaderboard_page import figure_text
from sparkpub.site.publication import Publication

LIST = "owners/index.md"
HERE = "this site"
"""What an owner's figures are compared with, where they are the site's own."""


def lines(options: SiteOptions) -> Sequence[ArenaLine]:
    """The lines of the repository's arena.yaml; none where there is no such file."""
    path = options.repository / ARENA_FILE
    return read(path) if path.is_file() else ()


def source(owner: str) -> str:
    """The source of an owner's page."""
    return f"owners/{owner}.md"


def context(publication: Publication) -> list[dict[str, Any]]:
    """Every owner of arena.yaml or of gathered data: what the templates need of each."""
    campaigns = publication.dataset.campaigns.values()
    owners = {each.owner.owner: each.owner for each in campaigns if each.owner}
    asked = {line.id: line for line in lines(publication.options)}
    found = pairs(publication.speeds)
    return [
        _of_owner(publication, name, owners.get(name), asked.get(name), found)
        for name in sorted(owners.keys() | asked.keys())
    ]


def _of_owner(
    publication: Publication,
    name: str,
    owner: Owner | None,
    line: ArenaLine | None,
    found: Sequence[OwnersPair],
) -> dict[str, Any]:
    """One owner: repository and commit, campaigns with their errors, machines, and the figures that others have too."""
    mine = [each for each in publication.campaigns if owner and each.owner == owner]
    errors = {
        each.name: publication.findings.where(campaign=each.name, severity="error")
        for each in mine
    }
    speeds = publication.speeds.where(owner=name)
    about = owner or line
    assert about is not None
    return {
        "name": name,
        "is_gathered": owner is not None,
        "repository": about.repository.removesuffix(".git"),
        "commit": about.commit,
        "licence": about.licence,
        "campaigns": mine,
        "errors": errors,
        "runs": sum(len(each.runs) for each in mine),
        "machines": sorted({speed.machine for speed in speeds}),
        "pairs": [_row(pair) for pair in found if pair.one.owner == name],
    }


def _row(pair: OwnersPair) -> dict[str, Any]:
    """A figure beside another owner's, in words."""
    one, other, metric = pair.one, pair.other, METRICS[pair.metric]
    own, theirs = (
        figure_text(each.figures[pair.metric].mean, metric) for each in (one, other)
    )
    return {
        "model": one.model,
        "page": model_links.setup(one),
        "weights": one.weights,
        "load": load_name(one.load),
        "metric": metric,
        "unit": "s" if metric.unit == "ms" else metric.unit,
        "own": own,
        "other": theirs,
        "other_owner": other.owner or HERE,
        "percent": percent(pair.percent),
        "differs": pair.differs,
    }
