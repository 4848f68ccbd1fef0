"""What the first page of the site shows: what it is, the questions with their answers, one chart, what is new."""

from collections.abc import Sequence
from typing import Any

from sparkpub.record.text import counted
from sparkpub.review.checks import CHECKS
from sparkpub.review.leaderboard import machines
from sparkpub.site.figures import speeds
from sparkpub.site.figures.figure import Figure
from sparkpub.site.pages import answers, campaign_page, findings, model_links
from sparkpub.site.pages.blog import Post
from sparkpub.site.publication import Publication, newest_first

NEWEST = 3
"""Campaigns and posts."""


def context(
    publication: Publication, posts: Sequence[Post], chart: str
) -> dict[str, Any]:
    """What the template needs; `chart` is the placeholder of one, or empty."""
    campaigns = newest_first(publication.campaigns)
    measuring = {speed.campaign for speed in publication.speeds}
    # A demonstration measures no model: it stays on its own page, unless there is nothing else.
    leading = [item for item in campaigns if item.name in measuring] or campaigns
    home = machines(publication.speeds, publication.options.home)[:1]
    return {
        "heading": f"How fast is your {home[0]}?"
        if home
        else "LLM inference, measured",
        "counts": counts(publication),
        "answers": answers.answers(publication),
        "trust": _trust(publication, home),
        "chart": chart,
        "cards": [campaign_page.card(publication, item) for item in leading[:NEWEST]],
        "posts": posts,
        "newest": NEWEST,
    }


def counts(publication: Publication) -> str:
    """`1,664 runs of 33 models in 9 campaigns`."""
    runs = counted(len(publication.dataset.runs), "run")
    models = {speed.model for speed in publication.speeds}
    of = f" of {counted(len(models), 'model')}" if models else ""
    return f"{runs}{of} in {counted(len(publication.campaigns), 'campaign')}"


def _trust(publication: Publication, home: Sequence[str]) -> str:
    """What can be judged, what was checked, and what came of it."""
    runs = counted(len(publication.dataset.runs), "run")
    said = [
        findings.judged(publication),
        f"{len(CHECKS)} checks read what there is. "
        f"{len(publication.review.excluded):,} of {runs} are excluded, each with its reason.",
    ]
    mine = [speed for speed in publication.speeds if speed.machine in home]
    ranked = {speed.model for speed in mine if not speed.doubts}
    unranked = {speed.model for speed in mine} - ranked
    if unranked:
        models = counted(len(unranked), "model")
        said.append(
            f"Not ranked on {home[0]}, because figures failed checks: {models}."
        )
    return " ".join(said).strip()


def chart(publication: Publication) -> Figure | None:
    """One chart of the home machine; None where too little was measured."""
    boards = answers.home_boards(publication)
    one, some = boards.get("one"), boards.get("some") or boards.get("many")
    if one is None or some is None:
        return None
    addresses = {row.model.name: model_links.page(row.model) for row in one.rows}
    return speeds.models(one, some, addresses)
