"""What the first page of the site shows: the questions with their figures, and what is new."""

from collections.abc import Sequence
from typing import Any

from sparkpub.record.text import counted
from sparkpub.site.pages import answers, campaign_page
from sparkpub.site.pages.blog import Post
from sparkpub.site.publication import Publication

NEWEST = 3
"""Campaigns and posts."""


def context(publication: Publication, posts: Sequence[Post]) -> dict[str, Any]:
    """What the template needs."""
    return {
        "heading": f"How fast is your {publication.home}?"
        if publication.home
        else "LLM inference, measured",
        "counts": counts(publication),
        "answers": answers.cards(publication),
        "cards": [
            campaign_page.card(publication, item)
            for item in campaign_page.in_order(publication)[:NEWEST]
        ],
        "posts": posts,
        "newest": NEWEST,
    }


def counts(publication: Publication) -> str:
    """`1,664 runs of 33 models in 9 campaigns`."""
    runs = counted(len(publication.dataset.runs), "run")
    models = {speed.model for speed in publication.speeds}
    of = f" of {counted(len(models), 'model')}" if models else ""
    return f"{runs}{of} in {counted(len(publication.campaigns), 'campaign')}"
