"""The generated pages but those of campaigns and runs: which there are, and what each template is given."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from sparkpub.review.dataset import CampaignData
from sparkpub.site.content import File, Page, SearchAnswer
from sparkpub.site.figures.library import Library
from sparkpub.site.pages import (
    answers,
    campaign_page,
    found_by,
    measure_page,
    model_page,
    owners,
    programs,
    templating,
)
from sparkpub.site.pages.blog import Post
from sparkpub.site.publication import Publication, run_address

MakePage = Callable[..., Page]
"""Makes a page of the name of its template and what that is given beside the publication."""


def pages(
    publication: Publication,
    library: Library,
    runs: programs.RunTable,
    posts: Sequence[Post] = (),
) -> Iterator[tuple[str, File]]:
    """(address, page) of every page. `posts` are in the order of their dates. Figures are asked from `library`, which
    notes what is shown."""
    page = partial(templating.page, publication=publication)
    ordered = campaign_page.in_order(publication)
    yield "index.md", _front(page, publication, ordered, posts)
    board = page("leaderboard")
    ranked = [speed for board in publication.boards for speed in board.speeds]
    words = found_by.of_speeds(ranked, *(board.title for board in publication.boards))
    yield "leaderboard/index.md", replace(board, found_by=words)
    yield "campaigns/index.md", page("campaigns", campaigns=ordered)
    yield "models/index.md", page("models", models=model_page.models(publication))
    yield from _owners(page, publication)

    yield "measure/index.md", page("measure", figures=measure_page.FIGURES)
    yield measure_page.FIGURES, measure_page.published(publication)

    explorer = programs.explorer(library, runs)
    yield "runs/index.md", page("runs", explorer=explorer, table=runs)
    yield "compare/index.md", page("compare", figures=measure_page.FIGURES)

    yield "review/index.md", page("review", run_address=run_address)


def _owners(page: MakePage, publication: Publication) -> Iterator[tuple[str, File]]:
    """The list of owners and the page of each, where there are others than the site's own."""
    found = owners.context(publication)
    if found:
        yield owners.LIST, page("owners", owners=found)
    for owner in found:
        if owner["is_gathered"]:
            yield (
                owners.source(owner["name"]),
                page("owner", owner=owner, figure=owners.figure),
            )


def _front(
    page: MakePage,
    publication: Publication,
    campaigns: Sequence[CampaignData],
    posts: Sequence[Post],
) -> Page:
    cards = answers.cards(publication)
    counts = answers.counts(publication)
    made = page("index", answers=cards, counts=counts, campaigns=campaigns, posts=posts)
    found = (SearchAnswer(card.anchor, card.question, card.plain) for card in cards)
    return replace(made, answers=tuple(found))
