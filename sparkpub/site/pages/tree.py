"""The generated pages but those of single runs: which there are, and what each template is given."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from sparkpub.site.content import File
from sparkpub.site.figures.library import Library
from sparkpub.site.pages import (
    badge,
    campaign_page,
    findings,
    found_by,
    front_page,
    leaderboard_page,
    measure_page,
    metadata,
    model_page,
    preview_pictures,
    programs,
)
from sparkpub.site.pages.blog import Post
from sparkpub.site.pages.templating import Templates
from sparkpub.site.publication import Publication, newest_first


def pages(
    publication: Publication,
    library: Library,
    templates: Templates,
    addresses: Mapping[str, str],
    posts: Sequence[Post] = (),
) -> Iterator[tuple[str, File]]:
    """(address, page) of every page. `addresses` are those of the tables that programs in the browser read, `posts` are
    in the order of their dates. Figures are asked from `library`, which notes what is shown."""
    page = partial(
        templates.page,
        publication=publication,
        options=publication.options,
        dataset=publication.dataset,
    )
    campaigns = publication.campaigns

    chart = front_page.chart(publication)
    place = "" if chart is None else library.add(chart)
    front = front_page.context(publication, posts, place)
    answers = tuple(found_by.of_front(front["answers"]))
    yield "index.md", replace(page("index", front_page=front), answers=answers)

    board = page("leaderboard", **leaderboard_page.context(publication))
    words = found_by.of_board(publication.boards)
    loads = tuple(found_by.of_loads(publication.boards))
    yield "leaderboard/index.md", replace(board, found_by=words, answers=loads)

    cards = [campaign_page.card(publication, item) for item in newest_first(campaigns)]
    yield "campaigns/index.md", page("campaigns", campaigns=cards)
    for campaign in campaigns:
        lead = campaign_page.context(publication, library, campaign)
        answer = " ".join(lead["card"]["answers"])
        data = metadata.linked_data(publication, campaign, answer)
        seen = {"image": preview_pictures.card(campaign), "linked_data": data}
        made = page(
            "campaign",
            lead=lead,
            pandas=metadata.pandas_line(publication, campaign),
            badge=badge.line(publication, campaign),
        )
        yield (
            f"campaigns/{campaign.name}.md",
            replace(
                made,
                meta={**made.meta, **seen},
                found_by=found_by.of_campaign(publication, campaign, answer),
            ),
        )
        yield badge.address(campaign), badge.of_campaign(publication, campaign)

    models = model_page.models(publication)
    entries = [model_page.entry(model) for model in models]
    yield "models/index.md", page("models", models=entries)
    for model in models:
        figures = (
            model_page.figure(publication, model),
            model_page.versions_figure(publication, model),
        )
        places = ["" if figure is None else library.add(figure) for figure in figures]
        found = model_page.context(publication, model, *places)
        words = found_by.of_model(model.speeds, found)
        yield model.uri, replace(page("model", model=found), found_by=words)

    measure = page("measure", figures=measure_page.FIGURES)
    yield "measure/index.md", replace(measure, found_by=found_by.MEASURE)
    yield measure_page.FIGURES, measure_page.published(publication)

    explorer = programs.explorer(publication, library, addresses)
    yield "runs/index.md", page("runs", explorer=explorer)
    compared = publication.results.comparison_rows
    compare = page("compare", figures=measure_page.FIGURES, comparisons=compared)
    yield "compare/index.md", compare

    judged = findings.judged(publication)
    yield (
        "review/index.md",
        page("review", campaigns=campaigns, judged=judged, by_check=findings.by_check),
    )
