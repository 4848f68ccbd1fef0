"""Every figure there is, by name: what pages and authors ask for, drawn once each.

<metric>            all runs as points, with mean and interval      peak-memory, output-throughput, ...
<metric>-relative   in % from the mean of the baseline
<metric>-bars       means from zero
<metric>-order      against run order        <metric>-sweep   against requests at once
<metric>-by-depth, -by-input, -by-output, -by-length, -by-rate      against what else a campaign varies
<metric>-against-<metric>                    one metric against another
comparison, pareto-front, coverage, gpu-utilisation
"""

import difflib
from collections.abc import Iterable, Mapping
from functools import lru_cache

from sparkpub.record.errors import SiteError
from sparkpub.review.dataset import CampaignData
from sparkpub.site.content import placeholder
from sparkpub.site.figures import kinds
from sparkpub.site.figures.compile import Job
from sparkpub.site.figures.drawings import Drawings
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.kind import Make
from sparkpub.site.figures.selection import Scope, Selection, scope
from sparkpub.site.publication import Publication

PARTS = frozenset({"model", "environment", "workload"})
"""Into which a figure of a campaign can be cut."""


class Library:
    """The figures of a publication. Asking for one has it drawn, so that only what is shown gets drawn.

    Without `drawings` figures are named and not drawn.
    """

    def __init__(
        self, publication: Publication, drawings: Drawings | None = None
    ) -> None:
        self.publication = publication
        self.wanted: dict[str, Figure] = {}
        """Key to every figure that was asked for."""
        self.placed: dict[str, Figure] = {}
        """Placeholder to the figure that it stands for."""
        self.files: dict[str, bytes] = {}
        """Address to the rows of figures."""
        self.later: list[Job] = []
        """Drawings that come into their pages as these are written."""
        self.pictures: set[str] = set()
        """Keys of those that are wanted as PNG too."""
        self._drawings = drawings
        self.makers = lru_cache(kinds.MOST_OPEN)(self._makers)
        """Name to what makes the figure, for the campaign of a name."""

    def place(self, name: str, campaign: str | None = None, **part: str) -> str:
        """The placeholder of a figure. `part` may name a `model`, an `environment` or a `workload`.

        Raises SiteError naming what there is where the figure, the campaign or the part does not exist.
        """
        if campaign is not None:
            known = self.wanted.get(_key(campaign, name, part))
            if known is not None:
                return placeholder(known.block)
        return self.add(self.figure(name, campaign, **part))

    def place_known(
        self, campaign: CampaignData, names: Iterable[str], **part: str
    ) -> list[str]:
        """Placeholders of those of these figures that the campaign has, or the part of it."""
        wanted = list(names)
        if not wanted:
            return []
        known = self.makers(campaign.name)
        if part:
            known = kinds.offered(self._selection(campaign, self._cut(campaign, part)))
        return [
            self.place(name, campaign.name, **part) for name in wanted if name in known
        ]

    def add(self, figure: Figure) -> str:
        """The placeholder of a figure made elsewhere. Once it is sent to be drawn, its rows are in its files alone."""
        place = placeholder(figure.block)
        if figure.key in self.wanted:
            return place
        if self._drawings is not None:
            self._drawings.want(figure.job)
            self.files |= figure.files()
        self.wanted[figure.key] = self.placed[place] = figure.without_rows
        return place

    def add_later(self, job: Job) -> None:
        """Have drawn what is put into its pages as these are written."""
        self.later.append(job)
        if self._drawings is not None:
            self._drawings.want(job)

    def picture(self, name: str, campaign: str | None = None, **part: str) -> str:
        """Note that a figure is wanted as PNG too, and return its placeholder."""
        figure = self.figure(name, campaign, **part)
        self.pictures.add(figure.key)
        return self.add(figure)

    def figure(self, name: str, campaign: str | None = None, **part: str) -> Figure:
        """A figure by name."""
        data = self._campaign(campaign)
        selection = self._selection(data, self._cut(data, part))
        return self._maker(data, name)(selection, _key(data.name, name, part))

    def _makers(self, campaign: str) -> Mapping[str, Make]:
        data = self.publication.dataset.campaign(campaign)
        return kinds.offered(self._selection(data, scope(self.publication.names, data)))

    def _maker(self, campaign: CampaignData, name: str) -> Make:
        makers = self.makers(campaign.name)
        if name in makers:
            return makers[name]
        hint = f"there are {', '.join(makers)}"
        near = difflib.get_close_matches(name, makers, n=1)
        if near:
            hint = f"did you mean {near[0]}?"
        raise SiteError(f"no figure {name!r} for campaign {campaign.name}", remedy=hint)

    def _campaign(self, name: str | None) -> CampaignData:
        if name is not None:
            return self.publication.dataset.campaign(name)
        if not self.publication.campaigns:
            raise SiteError(
                "there is no campaign to draw", remedy="collect or import one"
            )
        return self.publication.campaigns[0]

    def _cut(self, campaign: CampaignData, part: Mapping[str, str]) -> Scope:
        """The part of a campaign, which must have a cell."""
        if part.keys() <= PARTS:
            cut = scope(self.publication.names, campaign, **part)
            if cut.cells:
                return cut
        wrong = ", ".join(f"{axis}={name!r}" for axis, name in part.items())
        raise SiteError(
            f"no cell of campaign {campaign.name} is {wrong}",
            remedy="see sparkpub values",
        )

    def _selection(self, campaign: CampaignData, cut: Scope) -> Selection:
        tables = kinds.tables_of(self.publication, campaign.name)
        return Selection(self.publication, campaign, cut, tables)


def _key(campaign: str, name: str, part: Mapping[str, str]) -> str:
    """What a figure is published under."""
    return "-".join([campaign, name, *part.values()])
