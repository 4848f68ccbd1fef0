"""The generated pages: which there are, and what each template is given."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from sparkpub.record.store import CAMPAIGN_FILE
from sparkpub.site.content import Content, Picture, SearchAnswer
from sparkpub.site.figures.figure import Figure
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
    metric_page,
    model_page,
    preview_pictures,
    programs,
)
from sparkpub.site.pages.blog import Post
from sparkpub.site.pages.templating import Templates
from sparkpub.site.publication import (
    Publication,
    newest_first,
    slug,
)


@dataclass(frozen=True)
class Pages:
    """Makes every page but those of single runs. Figures are asked from `library`, which notes what is shown."""

    publication: Publication
    library: Library
    templates: Templates
    written: frozenset[str]
    """Addresses that people wrote; a generated page of the same address gives way."""
    posts: Sequence[Post] = ()
    """The posts that people wrote, in the order of their dates."""

    def all(self) -> Iterator[tuple[str, Content]]:
        """(address, page) of every page."""
        yield from self._front()
        yield (
            "leaderboard/index.md",
            self._page(
                "leaderboard",
                found_by=found_by.of_board(self.publication.boards),
                answers=found_by.of_loads(self.publication),
                **leaderboard_page.context(self.publication),
            ),
        )
        yield from self._campaigns()
        yield from self._models()
        measure = measure_page.context(self.publication)
        yield (
            "measure/index.md",
            self._page("measure", measure=measure, found_by=found_by.MEASURE),
        )
        yield measure_page.FIGURES, measure_page.published(self.publication)
        yield from self._metrics()
        campaigns = self.publication.campaigns
        explorer = programs.explorer(self.publication, self.library)
        yield "runs/index.md", self._page("runs", explorer=explorer)
        yield (
            "compare/index.md",
            self._page(
                "compare", compare=programs.compare(self.publication, self.library)
            ),
        )
        reviews = [
            findings.of_campaign(self.publication, campaign) for campaign in campaigns
        ]
        yield (
            "review/index.md",
            self._page(
                "review",
                campaigns=reviews,
                judged=findings.judged(self.publication),
                unjudged=findings.unjudged(self.publication),
            ),
        )

    def _page(
        self,
        template: str,
        *,
        image: Picture | None = None,
        source: Any = None,
        linked_data: str | None = None,
        found_by: str = "",
        answers: Sequence[SearchAnswer] = (),
        **context: Any,
    ) -> Content:
        page = self.templates.page(
            template,
            publication=self.publication,
            options=self.publication.options,
            dataset=self.publication.dataset,
            written=self.written,
            **context,
        )
        return Content(
            text=page.text,
            blocks=page.blocks,
            source=source,
            image=image,
            linked_data=linked_data,
            found_by=found_by,
            answers=tuple(answers),
        )

    def _front(self) -> Iterator[tuple[str, Content]]:
        """The questions with their answers, over all campaigns, and the rows of their chart."""
        place, rows = self._own_chart(front_page.chart(self.publication))
        yield from rows
        found = front_page.context(self.publication, self.posts, place)
        answers = found_by.of_front(found["answers"])
        yield "index.md", self._page("index", front_page=found, answers=answers)

    def _own_chart(
        self, figure: Figure | None
    ) -> tuple[str, list[tuple[str, Content]]]:
        """The placeholder of a chart over several campaigns, and the files of its rows."""
        if figure is None:
            return "", []
        files = [
            (figure.sources[name], Content(data=to_json(rows)))
            for name, rows in figure.data.items()
        ]
        return self.library.add(figure), files

    def _campaigns(self) -> Iterator[tuple[str, Content]]:
        """The list of all campaigns, and the page of each."""
        campaigns = self.publication.campaigns
        cards = [
            campaign_page.card(self.publication, campaign)
            for campaign in newest_first(campaigns)
        ]
        yield "campaigns/index.md", self._page("campaigns", campaigns=cards)
        for campaign in campaigns:
            lead = campaign_page.context(self.publication, self.library, campaign)
            source = campaign.folder / CAMPAIGN_FILE
            page = self._page(
                "campaign",
                lead=lead,
                pandas=metadata.pandas_line(self.publication, campaign),
                badge=badge.line(self.publication, campaign),
                image=preview_pictures.of_campaign(campaign),
                source=source,
                linked_data=metadata.linked_data(
                    self.publication, campaign, lead["card"]["answer"]
                ),
                found_by=found_by.of_campaign(
                    self.publication, campaign, [lead["card"]["answer"]]
                ),
            )
            yield f"campaigns/{campaign.name}.md", page
            shown = badge.badge_of(self.publication, campaign)
            yield badge.address(campaign), Content(data=badge.svg(shown))
            behind = campaign_page.diagnostics(self.publication, self.library, campaign)
            yield (
                f"campaigns/{campaign.name}/diagnostics.md",
                self._page("diagnostics", lead=behind, source=source),
            )

    def _models(self) -> Iterator[tuple[str, Content]]:
        """The list of all models, and the page of each."""
        models = model_page.models(self.publication)
        entries = [model_page.entry(model) for model in models]
        yield "models/index.md", self._page("models", models=entries)
        for model in models:
            figure = model_page.figure(self.publication, model)
            place, rows = self._own_chart(figure)
            yield from rows
            again = model_page.versions_figure(self.publication, model)
            versions, rows = self._own_chart(again)
            yield from rows
            found = model_page.context(self.publication, model, place, versions)
            words = found_by.of_model(model.speeds, found)
            yield model.uri, self._page("model", model=found, found_by=words)

    def _metrics(self) -> Iterator[tuple[str, Content]]:
        """The list of all metrics, and the page of each."""
        metrics = self.publication.by_metric
        yield "metrics/index.md", self._page("metrics", metrics=metrics)
        for name, gathered in metrics.items():
            found = metric_page.context(self.publication, self.library, gathered)
            yield (
                f"metrics/{slug(name)}.md",
                self._page(
                    "metric", found_by=found_by.of_metric(gathered.metric), **found
                ),
            )
