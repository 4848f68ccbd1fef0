"""Every figure there is, by name: what pages and authors ask for, drawn once each.

<metric>            all runs as points, with mean and interval      peak-memory, output-throughput, ...
<metric>-box        all runs with median, quartiles and whiskers    <metric>-bars       means from zero
<metric>-relative   in % from the mean of the baseline              <metric>-order      against run order
<metric>-sweep      against requests at once
<metric>-by-depth, -by-input, -by-output, -by-length, -by-rate      against what else a campaign varies
<metric>-against-<metric>                                           one metric against another
comparison, effect-per-machine, pareto-front, capacity, memory-bandwidth, coverage, gpu-utilisation

Figures of models and of the whole site are asked for by their pages.
"""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial

from sparkpub.record.errors import SiteError
from sparkpub.record.metrics import Metric
from sparkpub.review.dataset import CampaignData
from sparkpub.site import sweeps
from sparkpub.site.content import placeholder
from sparkpub.site.figures import campaign as metrics
from sparkpub.site.figures import others, said
from sparkpub.site.figures.draw import Chart, Drawings
from sparkpub.site.figures.figure import Figure
from sparkpub.site.publication import Publication, slug
from sparkpub.site.study import KEYS, StudiedCampaign

Make = Callable[[StudiedCampaign], Figure]
ENDINGS = {axis.name: f"by-{axis.name}" for axis in sweeps.AXES} | {
    sweeps.LOAD.name: "sweep"
}
"""Name of an axis to the end of its figures' names: `output-throughput-sweep`, `output-throughput-by-depth`."""


def of_metric(campaign: StudiedCampaign, metric: Metric) -> Iterator[tuple[str, Make]]:
    """Name and maker of the figures of a metric."""
    name = slug(metric.name)
    yield name, lambda part: metrics.every_run(part, metric)
    if campaign.statistics(metric):
        yield f"{name}-box", lambda part: metrics.box(part, metric)
        yield f"{name}-bars", lambda part: metrics.bars(part, metric)
    if metrics.has_order(campaign, metric):
        yield f"{name}-order", lambda part: metrics.in_order(part, metric)
    for axis in sweeps.AXES:
        if said.curves(campaign, axis, metric):
            yield f"{name}-{ENDINGS[axis.name]}", partial(_along, metric, axis)
    compared = campaign.site.results.comparisons_of(campaign.data.name, metric.name)
    if any(row.difference_percent is not None for row in compared):
        yield f"{name}-relative", lambda part: metrics.relative(part, metric)
    for other in campaign.site.metrics(campaign.data):
        if other is not metric:
            yield f"{slug(other.name)}-against-{name}", partial(_against, other, metric)


def _along(metric: Metric, axis: sweeps.Axis, campaign: StudiedCampaign) -> Figure:
    return metrics.along(campaign, metric, axis)


def _against(up: Metric, across: Metric, campaign: StudiedCampaign) -> Figure:
    return metrics.against(campaign, up, across)


def of_campaign(campaign: StudiedCampaign) -> Iterator[tuple[str, Make]]:
    """Name and maker of the figures that are not of one metric."""
    if len(others.users_of(campaign)):
        yield "pareto-front", others.users
    if len(others.capacities(campaign)):
        yield "capacity", others.capacity
    known = others.bandwidths(campaign)
    if len(known) and known["share_percent"].count() >= others.FEWEST:
        yield "memory-bandwidth", others.bandwidth
    if len(campaign.differences):
        yield "comparison", metrics.comparison
    if len(others.effects(campaign)):
        yield "effect-per-machine", others.per_machine
    if campaign.cells_here:
        yield "coverage", others.coverage
    if any(others.busy(run) for run in others.sampled(campaign)):
        yield "gpu-utilisation", others.utilisation


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
        self.later: dict[str, Chart] = {}
        """Charts that come into their pages as these are written, by key."""
        self.pictures: set[str] = set()
        """Keys of those that are wanted as PNG too."""
        self._drawings = drawings
        self.makers = cache(self._makers)
        """Name to what makes the figure, for the campaign of a name."""
        self.campaign = cache(self._campaign)
        """The tables of a campaign by its name."""

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
        known = self.makers(campaign.name)
        if part:
            cut = self._cut(campaign.name, part)
            known = dict(_offered(cut))
        return [
            self.place(name, campaign.name, **part) for name in names if name in known
        ]

    def add(self, figure: Figure) -> str:
        """The placeholder of a figure made elsewhere."""
        if figure.key not in self.wanted:
            self.wanted[figure.key] = figure
            if self._drawings is not None:
                self._drawings.want(figure.key, figure.chart)
        return placeholder(figure.block)

    def add_later(self, key: str, chart: Chart) -> None:
        """Have drawn what is put into its pages as these are written."""
        self.later[key] = chart
        if self._drawings is not None:
            self._drawings.want(key, chart)

    def picture(self, name: str, campaign: str | None = None, **part: str) -> str:
        """Note that a figure is wanted as PNG too, and return its placeholder."""
        figure = self.figure(name, campaign, **part)
        self.pictures.add(figure.key)
        return self.add(figure)

    def figure(self, name: str, campaign: str | None = None, **part: str) -> Figure:
        """A figure by name."""
        if campaign is None:
            if not self.publication.campaigns:
                raise SiteError(
                    "there is no campaign to draw", remedy="collect or import one"
                )
            campaign = self.publication.campaigns[0].name
        cut = self._cut(campaign, part)
        makers = self.makers(campaign)
        if name not in makers:
            near = difflib.get_close_matches(name, makers, n=1)
            hint = (
                f"did you mean {near[0]}?" if near else f"there are {', '.join(makers)}"
            )
            raise SiteError(f"no figure {name!r} for campaign {campaign}", remedy=hint)
        key = _key(campaign, name, part)
        if part and name not in dict(_offered(cut)):
            raise SiteError(
                f"figure {key}: this part of the campaign has nothing that it draws",
                remedy="leave out a part, or ask for the whole campaign",
            )
        return replace(makers[name](cut), key=key)

    def _makers(self, campaign: str) -> Mapping[str, Make]:
        return dict(_offered(self.campaign(campaign)))

    def _campaign(self, name: str) -> StudiedCampaign:
        return StudiedCampaign(
            self.publication, self.publication.dataset.campaign(name)
        )

    def _cut(self, campaign: str, part: Mapping[str, str]) -> StudiedCampaign:
        """The part of a campaign, which must have a cell."""
        if not part:
            return self.campaign(campaign)
        if part.keys() <= set(KEYS):
            cut = replace(self.campaign(campaign), only=part)
            if cut.cells_here:
                return cut
        wrong = ", ".join(f"{axis}={name!r}" for axis, name in part.items())
        raise SiteError(
            f"no cell of campaign {campaign} is {wrong}", remedy="see sparkpub values"
        )


def _offered(campaign: StudiedCampaign) -> Iterator[tuple[str, Make]]:
    """All figures that a campaign has, those of its metrics first."""
    for metric in campaign.site.metrics(campaign.data):
        yield from of_metric(campaign, metric)
    yield from of_campaign(campaign)


def _key(campaign: str, name: str, part: Mapping[str, str]) -> str:
    """What a figure is published under."""
    return "-".join([campaign, name, *part.values()])
