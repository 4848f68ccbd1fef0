"""Everything the pages speak of, computed once: the data, what was found out about them, and what people say."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter

from sparkpub.record import metrics as registry
from sparkpub.record.metrics import METRICS, Metric, ranked
from sparkpub.record.store import Stored
from sparkpub.record.text import counted
from sparkpub.review import sweeps
from sparkpub.review.checks import Finding, Review
from sparkpub.review.claims.facts import Fact
from sparkpub.review.claims.ledger import Verdict
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.review.grouping import RowList
from sparkpub.review.leaderboard import Board, boards, machines
from sparkpub.review.names import Names
from sparkpub.review.progress import VersionLine, lines
from sparkpub.review.results import Results
from sparkpub.review.reviewed import Cell
from sparkpub.review.speeds import Speed, speeds
from sparkpub.review.tables.column import rows
from sparkpub.site.content import RUN_FILE, SiteOptions
from sparkpub.site.pages.evidence import Published, published

LEADING = 6
"""Metrics that lead the page of a campaign, at most."""
SHARED = 0.5
"""Share of a campaign's runs that shared the machine beyond which it answers nothing."""


slug = registry.slug
"""What a metric is called in addresses and in prose."""


@dataclass(frozen=True, eq=False)
class Publication:
    """What a dataset shows, and the verdicts on its claims. Each is itself, so that what is made of it can be kept."""

    results: Results
    review: Review
    options: SiteOptions
    verdicts: Sequence[Verdict] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
    """By id, and behind them those of the manual that the site does not state itself."""
    said: dict[str, list[str]] = field(default_factory=dict)
    """What each campaign found out, by name, as far as a page asked."""

    def same_as(self, other: "Publication") -> bool:
        """Whether another one is made of the same."""
        return (
            self.results is other.results
            and self.options == other.options
            and self.verdicts == other.verdicts
            and self.facts == other.facts
        )

    @property
    def dataset(self) -> Dataset:
        """The campaigns as recorded."""
        return self.review.dataset

    @cached_property
    def names(self) -> Names:
        """What readers call models, environments and workloads."""
        return Names(self.dataset)

    @cached_property
    def lines(self) -> Mapping[str, Sequence[sweeps.Line]]:
        """What each campaign varies: every line of it, axis by axis."""
        return {campaign.name: sweeps.lines(campaign) for campaign in self.campaigns}

    @cached_property
    def speeds(self) -> RowList[Speed]:
        """What was measured of models, cell by cell."""
        return RowList(speeds(self.review, self.results.cell_rows, self.names))

    @cached_property
    def home(self) -> str | None:
        """The machine that comes first; None where no speed was measured."""
        return next(iter(machines(self.speeds, self.options.home)), None)

    @cached_property
    def boards(self) -> RowList[Board]:
        """The leaderboard, the site's home machine first."""
        capacities = rows(self.results.capacities)
        return RowList(boards(self.speeds, self.options.home, capacities))

    @cached_property
    def progress(self) -> list[VersionLine]:
        """What was measured more than once: versions and sessions of one recipe."""
        return lines(self.speeds)

    @cached_property
    def campaigns(self) -> tuple[CampaignData, ...]:
        """Campaigns, the one with the most runs first."""
        by_name = sorted(self.dataset.campaigns.values(), key=attrgetter("name"))
        return tuple(sorted(by_name, key=lambda each: -len(each.runs)))

    @cached_property
    def own_campaigns(self) -> tuple[CampaignData, ...]:
        """Those that are no other owner's: their runs have pages."""
        return tuple(each for each in self.campaigns if each.owner is None)

    @cached_property
    def evidence(self) -> Mapping[str, tuple[Published, ...]]:
        """Run id to the files of the run as published; those of other owners are linked at their commits."""
        return {
            run.run_id: published(run, self.options)
            for campaign in self.own_campaigns
            for run in campaign.runs
        }

    def joined(self, campaign: CampaignData) -> tuple[str, ...]:
        """The campaign and those that a claim joins with it, as measurements of the same: see `repeated_in`."""
        found = {campaign.name: None}
        for verdict in self.verdicts:
            together = (verdict.claim.campaign, *verdict.claim.repeated_in)
            if campaign.name in together:
                found |= dict.fromkeys(together)
        return tuple(name for name in found if name in self.dataset.campaigns)

    @cached_property
    def findings(self) -> RowList[Finding]:
        """What the checks found."""
        return RowList(self.review.findings)

    def doubts(self, campaign: CampaignData) -> bool:
        """Whether an error in it voids what is said of more than its runs."""
        return any(
            self.review.voids(finding)
            for finding in self.findings.where(campaign=campaign.name, severity="error")
        )

    def metrics(self, campaign: CampaignData) -> Sequence[Metric]:
        """The metrics for which a campaign has values: those that lead first, then in the order of metrics.toml."""
        return self._ranked[campaign.name][0]

    def headlines(self, campaign: CampaignData) -> Sequence[Metric]:
        """The leading metrics of a campaign, at most `LEADING`: those that its matrix names, its own and those of its
        workloads by rank, and only then what the sampler saw. Where none of them leads, its first metrics."""
        return self._ranked[campaign.name][1]

    @cached_property
    def _ranked(self) -> Mapping[str, tuple[Sequence[Metric], Sequence[Metric]]]:
        """The metrics of each campaign, and those that lead it."""
        runs = self.results.runs[self.results.runs["value"].notna()]
        of_sampler = (runs["source"] == "sampler").groupby(
            [runs["campaign"], runs["metric"]], observed=True
        )
        sampled, found = of_sampler.all().to_dict(), {}
        for campaign in self.campaigns:
            metrics = ranked(
                metric
                for name, metric in campaign.metrics.items()
                if (campaign.name, name) in sampled
            )
            declared = campaign.matrix.primary if campaign.matrix else ()
            primary = [one for name in declared for one in metrics if one.name == name]
            others = [
                one
                for one in metrics
                if one.headline is not None or one.name not in METRICS
            ]
            others.sort(key=lambda one: sampled[campaign.name, one.name])
            leading = [*dict.fromkeys([*primary, *others])] or metrics
            found[campaign.name] = metrics, leading[:LEADING]
        return found

    def shared(self, campaign: CampaignData) -> str:
        """Why a campaign answers nothing: other programs used the machine during many of its runs. Empty where they did
        not."""
        beside = self.findings.where(campaign=campaign.name, check="foreign-load")
        found = {run for finding in beside for run in finding.runs}
        if len(found) <= SHARED * len(campaign.runs):
            return ""
        return (
            f"No answer: other programs used the machine during {len(found)} of {counted(len(campaign.runs), 'run')}. "
            "Measure again when it is idle."
        )


def cell_keys(campaign: CampaignData) -> tuple[Cell, ...]:
    """Every cell that is declared or was run, load by load, and in each model by model."""
    models, environments, workloads = campaign.axes
    present = {record.cell for record in campaign.records}
    if campaign.matrix is not None:
        present |= set(campaign.matrix.cells())
    ordered = itertools.product(workloads, models, environments)
    cells = [(model, environment, workload) for workload, model, environment in ordered]
    return tuple(cell for cell in cells if cell in present)


def cell_label(names: Names, campaign: CampaignData, cell: Cell) -> str:
    """What a row of a table is called: the parts of its name that differ within the campaign, `7B · native`."""
    told = names.cell(campaign.name, cell)
    parts = zip(told, campaign.axes, strict=True)
    return " · ".join(part for part, keys in parts if len(keys) > 1) or told[0]


def run_address(run: Stored) -> str:
    """The page of a run, from the root of the site; of another owner's the place that leads to its repository."""
    if run.is_gathered:
        return f"campaigns/{run.record.campaign}/#evidence"
    return f"runs/{run.run_id}/"


def run_page(run: Stored) -> str:
    """The source of the page of one's own run."""
    return f"runs/{run.run_id}.md"


def run_file(run: Stored) -> str:
    """What the browser fetches of a run, from the root of the site: the samples of its chart."""
    return f"runs/{run.run_id}/{RUN_FILE}"


def one_of_each_check(findings: Iterable[Finding]) -> list[Finding]:
    """The first finding of each check."""
    first: dict[str, Finding] = {}
    for finding in findings:
        first.setdefault(finding.check, finding)
    return list(first.values())
