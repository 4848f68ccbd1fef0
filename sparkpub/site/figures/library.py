"""Every figure there is, by name: what pages and authors ask for, drawn once each.

<metric>            all runs as points, with mean and interval      peak-memory, output-throughput, ...
<metric>-box        all runs with median, quartiles and whiskers    <metric>-bars       means from zero
<metric>-relative   in % from the mean of the baseline              <metric>-order      against run order
<metric>-sweep      against requests at once
<metric>-by-depth, -by-input, -by-output, -by-length, -by-rate      against what else a campaign varies
<metric>-against-<metric>                                           one metric against another
comparison, effect-per-machine, capacity, memory-bandwidth, coverage, gpu-utilisation

Figures of models and of the whole site are asked for by their pages.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache, partial
from operator import attrgetter
from typing import Any, NamedTuple

from sparkpub.record.documents import suggestion
from sparkpub.record.errors import SiteError
from sparkpub.record.metrics import Metric
from sparkpub.review import sweeps
from sparkpub.review.dataset import CampaignData
from sparkpub.review.names import runs_of
from sparkpub.site.content import placeholder
from sparkpub.site.figures import campaign as metrics
from sparkpub.site.figures import others, said
from sparkpub.site.figures.draw import Drawings
from sparkpub.site.figures.figure import Figure
from sparkpub.site.publication import Publication, slug
from sparkpub.site.study import KEYS, StudiedCampaign

ENDINGS = {axis.name: f"by-{axis.name}" for axis in sweeps.AXES} | {
    sweeps.LOAD.name: "sweep"
}
"""Name of an axis to the end of its figures' names: `output-throughput-sweep`, `output-throughput-by-depth`."""
KNOWN = 32
"""Campaigns, and parts of them, of which tables and offers are kept: pages ask for one after the other."""


class Offer(NamedTuple):
    """A figure that can be made of a campaign, or of a part of it, which has some `rows` for it."""

    title: str
    rows: Callable[..., Any]
    make: Callable[..., Figure]
    metric: Metric | None = None
    """Whose findings it shows; those of all metrics where it is of several."""

    def of(self, metric: Metric) -> "Offer":
        """The same of one metric."""
        rows, make = (partial(do, metric=metric) for do in (self.rows, self.make))
        return Offer(metric.label + self.title, rows, make, metric)


OF_METRIC = {
    "": Offer(": every run", StudiedCampaign.statistics, metrics.every_run),
    "-box": Offer(": how runs spread", StudiedCampaign.statistics, metrics.box),
    "-bars": Offer(": means", StudiedCampaign.statistics, metrics.bars),
    "-order": Offer(" in run order", metrics.trends, metrics.in_order),
    "-relative": Offer(
        ": every run against {}", metrics.compared_in_percent, metrics.relative
    ),
}
"""The figures of a metric, by the end of their names; in titles `{}` is the baseline."""
OF_CAMPAIGN = {
    "capacity": Offer(
        "Capacity: requests per second within limits of the time to first token and per output token",
        others.capacities,
        others.capacity,
    ),
    "memory-bandwidth": Offer(
        "One user: tokens per second against the weights read for each",
        others.bandwidths,
        others.bandwidth,
    ),
    "comparison": Offer(
        "Difference from {}, metric by metric",
        attrgetter("differences"),
        metrics.comparison,
    ),
    "effect-per-machine": Offer(
        "Difference from {} on each machine", others.effects, others.per_machine
    ),
    "coverage": Offer(
        "Planned and completed runs", attrgetter("cells_here"), others.coverage
    ),
    "gpu-utilisation": Offer(
        "GPU utilisation over time", others.busy_runs, others.utilisation
    ),
}
"""The figures that are not of one metric."""


class _NothingToDrawError(SiteError):
    """A figure that there is has no rows in a campaign or a part of it."""


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
        self._offers = offered(publication)
        self.campaign = studied(publication)
        """The tables of a campaign by its name, or of a part of it: a `model`, an `environment` or a `workload`."""

    def makers(self, campaign: str) -> Mapping[str, Offer]:
        """Name to offer of every figure that a campaign has."""
        whole = self.campaign(campaign)
        baseline = runs_of(whole.baseline)
        return {
            name: offer._replace(title=offer.title.format(baseline))
            for name, offer in self._offers(campaign).items()
            if len(offer.rows(whole))
        }

    def place_known(self, campaign: CampaignData, names: Iterable[str]) -> list[str]:
        """Placeholders of those of these figures that the campaign has."""
        found, offers = [], self._offers(campaign.name)
        for name in names:
            with suppress(_NothingToDrawError):
                if name in offers:
                    found.append(self.add(self.figure(name, campaign.name)))
        return found

    def add(self, figure: Figure) -> str:
        """The placeholder of a figure made elsewhere."""
        if figure.key not in self.wanted:
            self.wanted[figure.key] = figure
            if self._drawings is not None:
                self._drawings.want(figure.key, figure.chart)
        return placeholder(figure.key)

    def picture(self, name: str, campaign: str, **part: str) -> str:
        """Note that a figure is wanted as PNG too, and return its placeholder."""
        figure = self.figure(name, campaign, **part)
        self.pictures.add(figure.key)
        return self.add(figure)

    def named(self, name: str, campaign: str, **part: str) -> str:
        """The placeholder of a figure that there is, which is not made for that."""
        self._asked(name, campaign, part)
        return placeholder(_key(name, campaign, part))

    def figure(self, name: str, campaign: str, **part: str) -> Figure:
        """A figure by name, with its title and the findings that touch it. `part` may name a `model`, an `environment`
        or a `workload`. Raises SiteError naming what there is where figure, campaign or part do not exist."""
        key = _key(name, campaign, part)
        if key in self.wanted:
            return self.wanted[key]
        cut, offer, rows = self._asked(name, campaign, part)
        title = offer.title.format(runs_of(cut.baseline))
        made, flags = offer.make(cut, rows), cut.flags(offer.metric)
        return replace(made, key=key, title=title, flags=flags)

    def _asked(
        self, name: str, campaign: str, part: Mapping[str, str]
    ) -> tuple[StudiedCampaign, Offer, Any]:
        """The part of the campaign that a figure is of, its offer, and the rows that it has there."""
        cut, offers = self.campaign(campaign, **part), self._offers(campaign)
        if name not in offers:
            what = f"no figure {name!r} for campaign {campaign}"
            raise SiteError(what, remedy=suggestion(name, sorted(offers)))
        rows = offers[name].rows(cut)
        if not len(rows):
            raise _NothingToDrawError(
                f"figure {_key(name, campaign, part)}: this part of the campaign has nothing that it draws",
                remedy="leave out a part, or ask for another figure",
            )
        return cut, offers[name], rows


@lru_cache(maxsize=1)
def offered(publication: Publication) -> Callable[[str], Mapping[str, Offer]]:
    """What gives name to figure of all that a campaign can have, by its name."""
    campaign = studied(publication)

    @lru_cache(KNOWN)
    def offers(name: str) -> Mapping[str, Offer]:
        whole = campaign(name)
        known = publication.metrics(whole.data)
        words = {line.axis: line.word for line in whole.lines}
        found = {}
        for metric in known:
            told = slug(metric.name)
            for ending, offer in OF_METRIC.items():
                found[told + ending] = offer.of(metric)
            for axis, word in words.items():
                curves = partial(said.curves, axis=axis)
                along = Offer(f" against {word}", curves, metrics.along)
                found[f"{told}-{ENDINGS[axis.name]}"] = along.of(metric)
            for up in known:
                if up is not metric:
                    found[f"{slug(up.name)}-against-{told}"] = _against(up, metric)
        return found | OF_CAMPAIGN

    return offers


@cache
def _against(up: Metric, across: Metric) -> Offer:
    """One metric against another: each campaign has hundreds of these pairs, and they are the same in all."""
    title = f"{up.label} against {across.within_sentence}"
    both = partial(metrics.against, up=up, across=across)
    return Offer(title, attrgetter("cells_here"), both)


def _key(name: str, campaign: str, part: Mapping[str, str]) -> str:
    return "-".join([campaign, name, *part.values()])


@lru_cache(maxsize=1)
def studied(publication: Publication) -> Callable[..., StudiedCampaign]:
    """What gives a campaign of a publication by its name, or a part of it, each made once."""

    @lru_cache(KNOWN)
    def campaign(name: str, **part: str) -> StudiedCampaign:
        cut = StudiedCampaign(publication, publication.dataset.campaign(name), part)
        if not part or (part.keys() <= set(KEYS) and cut.cells_here):
            return cut
        wrong = ", ".join(f"{axis}={key!r}" for axis, key in part.items())
        raise SiteError(
            f"no cell of campaign {name} is {wrong}", remedy="see sparkpub values"
        )

    return campaign
