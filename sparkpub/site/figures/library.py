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

from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import replace
from functools import cache, lru_cache, partial
from operator import attrgetter
from typing import NamedTuple

from sparkpub.record.documents import suggestion
from sparkpub.record.errors import SiteError
from sparkpub.record.metrics import Metric
from sparkpub.review import sweeps
from sparkpub.review.dataset import CampaignData
from sparkpub.review.names import runs_of
from sparkpub.site.content import placeholder
from sparkpub.site.figures import campaign as metrics
from sparkpub.site.figures import others, said, speeds
from sparkpub.site.figures.draw import Drawings
from sparkpub.site.figures.figure import Figure
from sparkpub.site.publication import Publication, slug
from sparkpub.site.study import KEYS, StudiedCampaign

ENDINGS = {axis.name: f"by-{axis.name}" for axis in sweeps.AXES} | {
    sweeps.LOAD.name: "sweep"
}
"""Name of an axis to the end of its figures' names: `output-throughput-sweep`, `output-throughput-by-depth`."""


class Offer(NamedTuple):
    """A figure that can be made of a campaign, or of a part of it that has some of what the figure `needs`."""

    title: str
    make: Callable[..., Figure]
    needs: Callable[..., Sized]
    metric: Metric | None = None
    """Whose findings it shows; those of all metrics where it is of several."""

    def of(self, metric: Metric) -> "Offer":
        """The same of one metric."""
        return Offer(
            title=metric.label + self.title,
            make=partial(self.make, metric=metric),
            needs=partial(self.needs, metric=metric),
            metric=metric,
        )


OF_METRIC = {
    "": Offer(": every run", metrics.every_run, StudiedCampaign.statistics),
    "-box": Offer(": how runs spread", metrics.box, StudiedCampaign.statistics),
    "-bars": Offer(": means", metrics.bars, StudiedCampaign.statistics),
    "-order": Offer(" in run order", metrics.in_order, metrics.trends),
    "-relative": Offer(
        ": every run against {}", metrics.relative, metrics.compared_in_percent
    ),
}
"""The figures of a metric, by the end of their names; in titles `{}` is the baseline."""
OF_CAMPAIGN = {
    "pareto-front": Offer(
        "Throughput of the machine against the speed of each user",
        speeds.users,
        speeds.users_of,
    ),
    "capacity": Offer(
        "Capacity: requests per second within limits of the time to first token and per output token",
        others.capacity,
        others.capacities,
    ),
    "memory-bandwidth": Offer(
        "One user: tokens per second against the weights read for each",
        others.bandwidth,
        others.bandwidths,
    ),
    "comparison": Offer(
        "Difference from {}, metric by metric",
        metrics.comparison,
        attrgetter("differences"),
    ),
    "effect-per-machine": Offer(
        "Difference from {} on each machine", others.per_machine, others.effects
    ),
    "coverage": Offer(
        "Planned and completed runs", others.coverage, attrgetter("cells_here")
    ),
    "gpu-utilisation": Offer(
        "GPU utilisation over time", others.utilisation, others.busy_runs
    ),
}
"""The figures that are not of one metric."""


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
        self.pictures: set[str] = set()
        """Keys of those that are wanted as PNG too."""
        self._drawings = drawings
        self._offers = cache(self._offers_of)
        self.campaign = studied(publication)
        """The tables of a campaign by its name, or of a part of it: a `model`, an `environment` or a `workload`."""

    def makers(self, campaign: str) -> Mapping[str, Offer]:
        """Name to offer of every figure that a campaign has."""
        whole = self.campaign(campaign)
        baseline = runs_of(whole.baseline)
        return {
            name: offer._replace(title=offer.title.format(baseline))
            for name, offer in self._offers(campaign).items()
            if len(offer.needs(whole))
        }

    def place(self, name: str, campaign: str, **part: str) -> str:
        """The placeholder of a figure. `part` may name a `model`, an `environment` or a `workload`.

        Raises SiteError naming what there is where the figure, the campaign or the part does not exist.
        """
        return self.add(self.figure(name, campaign, **part))

    def place_known(
        self, campaign: CampaignData, names: Iterable[str], **part: str
    ) -> list[str]:
        """Placeholders of those of these figures that the campaign has, or the part of it."""
        cut, offers = self.campaign(campaign.name, **part), self._offers(campaign.name)
        return [
            self.place(name, campaign.name, **part)
            for name in names
            if name in offers and len(offers[name].needs(cut))
        ]

    def add(self, figure: Figure) -> str:
        """The placeholder of a figure made elsewhere."""
        if figure.key not in self.wanted:
            self.wanted[figure.key] = figure
            if self._drawings is not None:
                self._drawings.want(figure.key, figure.chart)
        return placeholder(figure.key)

    def picture(self, name: str, campaign: str, **part: str) -> str:
        """Note that a figure is wanted as PNG too, and return its placeholder."""
        self.pictures.add(self._asked(name, campaign, part)[0])
        return self.place(name, campaign, **part)

    def named(self, name: str, campaign: str, **part: str) -> str:
        """The placeholder of a figure that there is, which is not made for that."""
        return placeholder(self._asked(name, campaign, part)[0])

    def figure(self, name: str, campaign: str, **part: str) -> Figure:
        """A figure by name, with its title and the findings that touch it."""
        key, cut, offer = self._asked(name, campaign, part)
        if key in self.wanted:
            return self.wanted[key]
        flags = cut.flags(offer.metric)
        title = offer.title.format(runs_of(cut.baseline))
        return replace(offer.make(cut), key=key, title=title, flags=flags)

    def _asked(
        self, name: str, campaign: str, part: Mapping[str, str]
    ) -> tuple[str, StudiedCampaign, Offer]:
        """The key of a figure, the part of the campaign that it is of, and its offer."""
        cut, offers = self.campaign(campaign, **part), self._offers(campaign)
        if name not in offers:
            what = f"no figure {name!r} for campaign {campaign}"
            raise SiteError(what, remedy=suggestion(name, sorted(offers)))
        key = "-".join([campaign, name, *part.values()])
        if not len(offers[name].needs(cut)):
            raise SiteError(
                f"figure {key}: this part of the campaign has nothing that it draws",
                remedy="leave out a part, or ask for another figure",
            )
        return key, cut, offers[name]

    def _offers_of(self, campaign: str) -> Mapping[str, Offer]:
        whole = self.campaign(campaign)
        known = self.publication.metrics(whole.data)
        words = {line.axis: line.word for line in whole.lines}
        found = {}
        for metric in known:
            name = slug(metric.name)
            for ending, offer in OF_METRIC.items():
                found[name + ending] = offer.of(metric)
            for axis, word in words.items():
                make = partial(metrics.along, axis=axis)
                needs = partial(said.curves, axis=axis)
                along = Offer(f" against {word}", make, needs).of(metric)
                found[f"{name}-{ENDINGS[axis.name]}"] = along
            for up in known:
                title = f"{up.label} against {metric.within_sentence}"
                both = partial(metrics.against, up=up, across=metric)
                if up is not metric:
                    key = f"{slug(up.name)}-against-{name}"
                    found[key] = Offer(title, both, attrgetter("cells_here"))
        return found | OF_CAMPAIGN


@lru_cache(maxsize=1)
def studied(publication: Publication) -> Callable[..., StudiedCampaign]:
    """What gives a campaign of a publication by its name, or a part of it, each made once."""

    @cache
    def campaign(name: str, **part: str) -> StudiedCampaign:
        data = publication.dataset.campaign(name)
        if not part:
            return StudiedCampaign(publication, data)
        if part.keys() <= set(KEYS):
            cut = StudiedCampaign(publication, data, part, campaign(name))
            if cut.cells_here:
                return cut
        wrong = ", ".join(f"{axis}={key!r}" for axis, key in part.items())
        raise SiteError(
            f"no cell of campaign {name} is {wrong}", remedy="see sparkpub values"
        )

    return campaign
