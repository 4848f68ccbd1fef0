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
from operator import attrgetter
from typing import NamedTuple

from sparkpub.record.errors import SiteError
from sparkpub.record.metrics import Metric
from sparkpub.review import sweeps
from sparkpub.review.dataset import CampaignData
from sparkpub.review.names import runs_of
from sparkpub.review.sweeps import Axis
from sparkpub.site.content import placeholder
from sparkpub.site.figures import campaign as metrics
from sparkpub.site.figures import others, said, speeds
from sparkpub.site.figures.draw import Chart, Drawings
from sparkpub.site.figures.figure import Figure
from sparkpub.site.publication import Publication, slug
from sparkpub.site.study import KEYS, StudiedCampaign

ENDINGS = {axis.name: f"by-{axis.name}" for axis in sweeps.AXES} | {
    sweeps.LOAD.name: "sweep"
}
"""Name of an axis to the end of its figures' names: `output-throughput-sweep`, `output-throughput-by-depth`."""


class Offer(NamedTuple):
    """A figure that can be made of a campaign or a part of it: nothing is worked out for its title."""

    title: str
    make: Callable[[StudiedCampaign], Figure]
    metric: Metric | None = None
    """Whose findings it shows; those of all metrics where it is of several."""


Offers = Iterator[tuple[str, Offer]]


def of_metric(campaign: StudiedCampaign, metric: Metric) -> Offers:
    """The figures of a metric by name."""

    def offer(
        ending: str, title: str, make: Callable[..., Figure], **more: Axis
    ) -> tuple[str, Offer]:
        made = partial(make, metric=metric, **more)
        return f"{slug(metric.name)}{ending}", Offer(metric.label + title, made, metric)

    yield offer("", ": every run", metrics.every_run)
    if campaign.statistics(metric):
        yield offer("-box", ": how runs spread", metrics.box)
        yield offer("-bars", ": means", metrics.bars)
    if metrics.has_order(campaign, metric):
        yield offer("-order", " in run order", metrics.in_order)
    for axis in sweeps.AXES:
        for curve in said.curves(campaign, axis, metric)[:1]:
            title, ending = f" against {curve.line.word}", f"-{ENDINGS[axis.name]}"
            yield offer(ending, title, metrics.along, axis=axis)
    compared = campaign.site.results.comparisons_of(campaign.data.name, metric.name)
    if any(row.difference_percent is not None for row in compared):
        title = f": every run against {runs_of(campaign.baseline)}"
        yield offer("-relative", title, metrics.relative)
    for up in campaign.site.metrics(campaign.data):
        if up is not metric:
            title = f"{up.label} against {metric.within_sentence}"
            make = partial(metrics.against, up=up, across=metric)
            yield f"{slug(up.name)}-against-{slug(metric.name)}", Offer(title, make)


OF_CAMPAIGN = (
    (
        "pareto-front",
        "Throughput of the machine against the speed of each user",
        speeds.users_of,
        speeds.users,
    ),
    (
        "capacity",
        "Capacity: requests per second within limits of the time to first token and per output token",
        others.capacities,
        others.capacity,
    ),
    (
        "memory-bandwidth",
        "One user: tokens per second against the weights read for each",
        others.bandwidths,
        others.bandwidth,
    ),
    (
        "comparison",
        "Difference from {}, metric by metric",
        attrgetter("differences"),
        metrics.comparison,
    ),
    (
        "effect-per-machine",
        "Difference from {} on each machine",
        others.effects,
        others.per_machine,
    ),
    (
        "coverage",
        "Planned and completed runs",
        attrgetter("cells_here"),
        others.coverage,
    ),
    (
        "gpu-utilisation",
        "GPU utilisation over time",
        others.busy_runs,
        others.utilisation,
    ),
)
"""The figures that are not of one metric: name, title (with the baseline), what it needs some of, and its maker."""


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
        """Name to offer of every figure of the campaign of a name, or of a part of it."""
        self.campaign = cache(self._campaign)
        """The tables of a campaign by its name, or of a part of it: a `model`, an `environment` or a `workload`."""

    def place(self, name: str, campaign: str | None = None, **part: str) -> str:
        """The placeholder of a figure. `part` may name a `model`, an `environment` or a `workload`.

        Raises SiteError naming what there is where the figure, the campaign or the part does not exist.
        """
        key, cut, offer = self._asked(name, campaign, part)
        return self.add(self.wanted.get(key) or _made(key, cut, offer))

    def place_known(
        self, campaign: CampaignData, names: Iterable[str], **part: str
    ) -> list[str]:
        """Placeholders of those of these figures that the campaign has, or the part of it."""
        known = self.makers(campaign.name, **part)
        return [
            self.place(name, campaign.name, **part) for name in names if name in known
        ]

    def add(self, figure: Figure) -> str:
        """The placeholder of a figure made elsewhere."""
        if figure.key not in self.wanted:
            self.wanted[figure.key] = figure
            if self._drawings is not None:
                self._drawings.want(figure.key, figure.chart)
        return placeholder(figure.key)

    def add_later(self, key: str, chart: Chart) -> None:
        """Have drawn what is put into its pages as these are written."""
        self.later[key] = chart
        if self._drawings is not None:
            self._drawings.want(key, chart)

    def picture(self, name: str, campaign: str | None = None, **part: str) -> str:
        """Note that a figure is wanted as PNG too, and return its placeholder."""
        self.pictures.add(self._asked(name, campaign, part)[0])
        return self.place(name, campaign, **part)

    def named(self, name: str, campaign: str | None = None, **part: str) -> str:
        """The placeholder of a figure that there is, which is not made for that."""
        return placeholder(self._asked(name, campaign, part)[0])

    def figure(self, name: str, campaign: str | None = None, **part: str) -> Figure:
        """A figure by name."""
        return _made(*self._asked(name, campaign, part))

    def _asked(
        self,
        name: str,
        campaign: str | None,
        part: Mapping[str, str],
    ) -> tuple[str, StudiedCampaign, Offer]:
        """The key of a figure, the part of the campaign that it is of, and its offer."""
        if campaign is None:
            if not self.publication.campaigns:
                raise SiteError(
                    "there is no campaign to draw", remedy="collect or import one"
                )
            campaign = self.publication.campaigns[0].name
        whole, offers = self.makers(campaign), self.makers(campaign, **part)
        key = "-".join([campaign, name, *part.values()])
        if name not in whole:
            near = difflib.get_close_matches(name, whole, n=1)
            hint = (
                f"did you mean {near[0]}?" if near else f"there are {', '.join(whole)}"
            )
            raise SiteError(f"no figure {name!r} for campaign {campaign}", remedy=hint)
        if name not in offers:
            raise SiteError(
                f"figure {key}: this part of the campaign has nothing that it draws",
                remedy="leave out a part, or ask for the whole campaign",
            )
        return key, self.campaign(campaign, **part), offers[name]

    def _makers(self, campaign: str, **part: str) -> Mapping[str, Offer]:
        cut = self.campaign(campaign, **part)
        found: dict[str, Offer] = {}
        for metric in self.publication.metrics(cut.data):
            found |= of_metric(cut, metric)
        baseline = runs_of(cut.baseline)
        for name, title, shown, make in OF_CAMPAIGN:
            if len(shown(cut)):
                found[name] = Offer(title.format(baseline), make)
        return found

    def _campaign(self, name: str, **part: str) -> StudiedCampaign:
        data = self.publication.dataset.campaign(name)
        if part.keys() <= set(KEYS):
            cut = StudiedCampaign(self.publication, data, part)
            if cut.cells_here or not part:
                return cut
        wrong = ", ".join(f"{axis}={key!r}" for axis, key in part.items())
        raise SiteError(
            f"no cell of campaign {name} is {wrong}", remedy="see sparkpub values"
        )


def _made(
    key: str,
    campaign: StudiedCampaign,
    offer: Offer,
) -> Figure:
    """The figure under its key, with its title and the findings that touch it."""
    flags = campaign.flags(offer.metric)
    return replace(offer.make(campaign), key=key, title=offer.title, flags=flags)
