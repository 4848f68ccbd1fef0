"""The generated pages but those of single runs: which there are, and what each template is given."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from sparkpub.review.dataset import CampaignData
from sparkpub.site.content import File, Page, SearchAnswer
from sparkpub.site.figures import speeds
from sparkpub.site.figures.library import Library
from sparkpub.site.pages import (
    campaign_page,
    findings,
    found_by,
    front_page,
    leaderboard_page,
    measure_page,
    model_page,
    owners,
    preview_pictures,
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
    page = partial(
        templating.page,
        publication=publication,
        options=publication.options,
        dataset=publication.dataset,
    )
    # First, since most charts are theirs, and others draw meanwhile.
    of_campaigns = list(_campaigns(page, publication, library))
    yield "index.md", _front(page, publication, posts)
    board = page("leaderboard", **leaderboard_page.context(publication))
    ranked = [speed for board in publication.boards for speed in board.speeds]
    words = found_by.of_speeds(ranked, *(board.title for board in publication.boards))
    yield "leaderboard/index.md", replace(board, found_by=words)
    yield from of_campaigns
    yield from _models(page, publication, library)
    yield from _owners(page, publication)

    yield "measure/index.md", page("measure", figures=measure_page.FIGURES)
    yield measure_page.FIGURES, measure_page.published(publication)

    explorer = programs.explorer(library, runs)
    yield "runs/index.md", page("runs", explorer=explorer)
    yield "compare/index.md", page("compare", figures=measure_page.FIGURES)

    judged = findings.judged(publication)
    yield (
        "review/index.md",
        page(
            "review",
            campaigns=publication.campaigns,
            judged=judged,
            by_check=findings.by_check,
            run_address=run_address,
        ),
    )


def _owners(page: MakePage, publication: Publication) -> Iterator[tuple[str, File]]:
    """The list of owners and the page of each, where there are others than the site's own."""
    found = owners.context(publication)
    if found:
        yield owners.LIST, page("owners", owners=found)
    for owner in found:
        if owner["is_gathered"]:
            yield owners.source(owner["name"]), page("owner", owner=owner)


def _front(page: MakePage, publication: Publication, posts: Sequence[Post]) -> Page:
    front = front_page.context(publication, posts)
    answers = tuple(
        SearchAnswer(card.anchor, card.question, card.plain)
        for card in front["answers"]
    )
    return replace(page("index", front_page=front), answers=answers)


def _campaigns(
    page: MakePage, publication: Publication, library: Library
) -> Iterator[tuple[str, File]]:
    """The list of campaigns, and the page of each that is no other owner's."""
    ordered = campaign_page.in_order(publication)
    cards = [campaign_page.card(publication, item) for item in ordered]
    yield "campaigns/index.md", page("campaigns", campaigns=cards)
    for campaign in publication.own_campaigns:
        yield (
            campaign_page.source(campaign),
            of_campaign(publication, library, campaign),
        )


def of_campaign(
    publication: Publication, library: Library, campaign: CampaignData
) -> Page:
    """The page of a campaign."""
    lead = campaign_page.context(publication, library, campaign)
    made = templating.page("campaign", publication=publication, lead=lead)
    seen = {"image": preview_pictures.card(campaign)}
    words = found_by.of_campaign(publication, campaign)
    return replace(made, meta={**made.meta, **seen}, found_by=words)


def _models(
    page: MakePage, publication: Publication, library: Library
) -> Iterator[tuple[str, File]]:
    """The list of models, and the page of each."""
    models = model_page.models(publication)
    entries = [model_page.entry(model) for model in models]
    yield "models/index.md", page("models", models=entries)
    for model in models:
        figures = (
            model_page.curve(publication, model, speeds.users_of_model),
            model_page.versions_figure(publication, model),
            model_page.curve(publication, model, speeds.context_of_model),
        )
        places = ["" if figure is None else library.add(figure) for figure in figures]
        found = model_page.context(publication, model, *places)
        words = found_by.of_speeds(model.speeds)
        yield model.uri, replace(page("model", model=found), found_by=words)
