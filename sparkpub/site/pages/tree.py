"""The generated pages: which there are, and what each template is given."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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

GLOSSARY = "method/metrics/"
"""The page that defines every metric."""


@dataclass(frozen=True)
class Pages:
    """Makes every page but those of single runs. Figures are asked from `library`, which notes what is shown."""

    publication: Publication
    library: Library
    templates: Templates
    addresses: Mapping[str, str]
    """Of the tables of the whole site that programs in the browser read."""
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
        yield from self._moved()
        campaigns = self.publication.campaigns
        explorer = programs.explorer(self.publication, self.library, self.addresses)
        yield "runs/index.md", self._page("runs", explorer=explorer)
        yield (
            "compare/index.md",
            self._page(
                "compare", compare=programs.compare(self.publication, self.addresses)
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
        """The questions with their answers, over all campaigns."""
        place = self._own_chart(front_page.chart(self.publication))
        found = front_page.context(self.publication, self.posts, place)
        answers = found_by.of_front(found["answers"])
        yield "index.md", self._page("index", front_page=found, answers=answers)

    def _own_chart(self, figure: Figure | None) -> str:
        """The placeholder of a chart over several campaigns; empty without one."""
        return "" if figure is None else self.library.add(figure)

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
            shown = badge.of_campaign(self.publication, campaign)
            yield badge.address(campaign), Content(data=shown)
            yield (
                f"campaigns/{campaign.name}/diagnostics/index.html",
                self._leading_to("../#diagnostics"),
            )

    def _models(self) -> Iterator[tuple[str, Content]]:
        """The list of all models, and the page of each."""
        models = model_page.models(self.publication)
        entries = [model_page.entry(model) for model in models]
        yield "models/index.md", self._page("models", models=entries)
        for model in models:
            figure = model_page.figure(self.publication, model)
            place = self._own_chart(figure)
            again = model_page.versions_figure(self.publication, model)
            versions = self._own_chart(again)
            found = model_page.context(self.publication, model, place, versions)
            words = found_by.of_model(model.speeds, found)
            yield model.uri, self._page("model", model=found, found_by=words)

    def _moved(self) -> Iterator[tuple[str, Content]]:
        """Pages at addresses that were public: each leads to where its text is now."""
        yield "metrics/index.html", self._leading_to(f"../{GLOSSARY}")
        metrics = {
            metric.name
            for campaign in self.publication.campaigns
            for metric in self.publication.metrics(campaign)
        }
        for name in sorted(metrics):
            anchor = slug(name)
            page = self._leading_to(f"../../{GLOSSARY}#{anchor}")
            yield f"metrics/{anchor}/index.html", page

    def _leading_to(self, address: str) -> Content:
        page = self.templates.text("moved.html.j2", address=address)
        return Content(data=page.encode())
