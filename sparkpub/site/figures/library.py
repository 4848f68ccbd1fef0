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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from operator import attrgetter
from typing import NamedTuple

from sparkpub.record.errors import SiteError
from sparkpub.record.metrics import Metric
from sparkpub.review import sweeps
from sparkpub.review.dataset import CampaignData
from sparkpub.review.names import runs_of
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


OF_METRIC = (
    ("", ": every run", metrics.every_run, StudiedCampaign.statistics),
    ("-box", ": how runs spread", metrics.box, StudiedCampaign.statistics),
    ("-bars", ": means", metrics.bars, StudiedCampaign.statistics),
    ("-order", " in run order", metrics.in_order, metrics.trends),
    (
        "-relative",
        ": every run against {}",
        metrics.relative,
        StudiedCampaign.compared_in_percent,
    ),
)
"""The figures of a metric: the end of its name and of its title (with the baseline), its maker, and what it needs some
of."""
OF_CAMPAIGN = (
    (
        "pareto-front",
        "Throughput of the machine against the speed of each user",
        speeds.users,
        speeds.users_of,
    ),
    (
        "capacity",
        "Capacity: requests per second within limits of the time to first token and per output token",
        others.capacity,
        others.capacities,
    ),
    (
        "memory-bandwidth",
        "One user: tokens per second against the weights read for each",
        others.bandwidth,
        others.bandwidths,
    ),
    (
        "comparison",
        "Difference from {}, metric by metric",
        metrics.comparison,
        attrgetter("differences"),
    ),
    (
        "effect-per-machine",
        "Difference from {} on each machine",
        others.per_machine,
        others.effects,
    ),
    (
        "coverage",
        "Planned and completed runs",
        others.coverage,
        attrgetter("cells_here"),
    ),
    (
        "gpu-utilisation",
        "GPU utilisation over time",
        others.utilisation,
        others.busy_runs,
    ),
)
"""The figures that are not of one metric: name, title, maker, and what each needs some of."""


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
        return self.add(self.figure(name, campaign, **part))

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
        """A figure by name, with its title and the findings that touch it."""
        key, cut, offer = self._asked(name, campaign, part)
        if key in self.wanted:
            return self.wanted[key]
        flags = cut.flags(offer.metric)
        return replace(offer.make(cut), key=key, title=offer.title, flags=flags)

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
        known, baseline = self.publication.metrics(cut.data), runs_of(cut.baseline)
        found: dict[str, Offer] = {}
        for metric in known:
            name = slug(metric.name)
            for ending, title, make, needed in OF_METRIC:
                if len(needed(cut, metric)):
                    called = metric.label + title.format(baseline)
                    made = partial(make, metric=metric)
                    found[name + ending] = Offer(called, made, metric)
            for axis in sweeps.AXES:
                for curve in said.curves(cut, axis, metric)[:1]:
                    called = f"{metric.label} against {curve.line.word}"
                    made = partial(metrics.along, metric=metric, axis=axis)
                    ending = ENDINGS[axis.name]
                    found[f"{name}-{ending}"] = Offer(called, made, metric)
            for up in known:
                called = f"{up.label} against {metric.within_sentence}"
                made = partial(metrics.against, up=up, across=metric)
                if up is not metric:
                    found[f"{slug(up.name)}-against-{name}"] = Offer(called, made)
        for name, title, of_campaign, some in OF_CAMPAIGN:
            if len(some(cut)):
                found[name] = Offer(title.format(baseline), of_campaign)
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
