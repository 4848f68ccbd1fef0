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
    cards = [campaign_page.card(publication, item) for item in leading[:NEWEST]]
    return {
        "heading": heading(publication),
        "counts": _counts(publication),
        "answers": answers.answers(publication),
        "trust": _trust(publication),
        "chart": chart,
        "cards": cards,
        "posts": posts,
        "newest": NEWEST,
    }


def heading(publication: Publication) -> str:
    """The question that the site is about."""
    names = machines(publication.speeds, publication.options.home)
    if not names:
        return "LLM inference, measured"
    return f"How fast is your {names[0]}?"


def _counts(publication: Publication) -> str:
    """`1,664 runs of 33 models in 9 campaigns`."""
    runs = counted(len(publication.dataset.runs), "run")
    campaigns = counted(len(publication.campaigns), "campaign")
    models = {speed.model for speed in publication.speeds}
    if not models:
        return f"{runs} in {campaigns}"
    return f"{runs} of {counted(len(models), 'model')} in {campaigns}"


def _trust(publication: Publication) -> str:
    """What can be judged, what was checked, and what came of it."""
    excluded = f"{len(publication.review.excluded):,} of {counted(len(publication.dataset.runs), 'run')}"
    (home,) = machines(publication.speeds, publication.options.home)[:1] or [""]
    mine = [speed for speed in publication.speeds if speed.machine == home]
    doubted = {speed.model for speed in mine if speed.doubts}
    ranked = {speed.model for speed in mine if not speed.doubts}
    text = f"{len(CHECKS)} checks read what there is. {excluded} are excluded, each with its reason."
    unranked = counted(len(doubted - ranked), "model")
    if doubted - ranked:
        text += f" Not ranked on {home}, because figures failed checks: {unranked}."
    return f"{findings.judged(publication)} {text}".strip()


def chart(publication: Publication) -> Figure | None:
    """One chart of the home machine; None where too little was measured."""
    if not publication.boards:
        return None
    home = publication.boards[0].machine
    boards = {
        board.use.key: board for board in publication.boards if board.machine == home
    }
    one, some = boards.get("one"), boards.get("some") or boards.get("many")
    if one is None or some is None:
        return None
    addresses = {row.model.name: model_links.page(row.model) for row in one.rows}
    return speeds.models(one, some, addresses)
