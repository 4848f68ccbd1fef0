"""The part of a campaign that a figure shows: its rows, its statistics, and the findings on it."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.record.record import Record
from sparkpub.review.checks import Finding
from sparkpub.review.dataset import CampaignData
from sparkpub.review.names import Names
from sparkpub.review.tables.column import TableRow
from sparkpub.site import sentences, sweeps
from sparkpub.site.figures.compile import Chart
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.rows import Row, Tables, cell_of
from sparkpub.site.publication import Publication, cell_keys, cell_label

_RUN_FIELDS = (
    "run",
    "campaign",
    "model",
    "environment",
    "workload",
    "iteration",
    "order",
    "state",
    "cell",
    "flags",
    "href",
    "start_temp",
    *(axis.name for axis in sweeps.AXES),
    *(axis.line for axis in sweeps.AXES),
)
"""What charts read of a run besides its metrics."""


@dataclass(frozen=True)
class Scope:
    """A campaign, or a part of it. Each tuple is in the order of the matrix; `cells` are labels of rows, and `names`
    are keys with what readers call them."""

    campaign: str
    models: tuple[str, ...]
    environments: tuple[str, ...]
    workloads: tuple[str, ...]
    cells: tuple[str, ...]
    names: tuple[tuple[str, str], ...] = ()

    def holds(self, model: str, environment: str, workload: str) -> bool:
        """Whether a cell of the campaign is in this part of it."""
        return (
            model in self.models
            and environment in self.environments
            and workload in self.workloads
        )

    def name(self, key: str) -> str:
        """What readers call a key; the key itself where it has no other name."""
        return dict(self.names).get(key, key)

    def in_words(self, keys: Sequence[str], value: str) -> str:
        """A Vega expression: the name of the one of these keys that an expression gives."""
        names = [self.name(key) for key in keys]
        return f"{json.dumps(names)}[indexof({json.dumps(list(keys))}, {value})]"


def scope(
    names: Names,
    campaign: CampaignData,
    *,
    model: str | None = None,
    environment: str | None = None,
    workload: str | None = None,
) -> Scope:
    """The scope of charts on a campaign, or on one model, environment or workload of it."""
    models, environments, workloads = campaign.axes
    part = Scope(
        campaign.name,
        tuple(name for name in models if model in (None, name)),
        tuple(name for name in environments if environment in (None, name)),
        tuple(name for name in workloads if workload in (None, name)),
        cells=(),
    )
    labels = tuple(
        cell_label(names, campaign, cell)
        for cell in cell_keys(campaign)
        if part.holds(*cell)
    )
    called = names.campaign(campaign.name)
    axes = (called.short_models, called.environments, called.workloads)
    times = Counter(key for axis in axes for key in axis)
    # What stands for two things has no name of its own.
    said = [
        (key, name) for axis in axes for key, name in axis.items() if times[key] < 2
    ]
    return replace(part, cells=labels, names=tuple(said))


@dataclass(frozen=True)
class Selection:
    """A part of a campaign. `tables` are the campaign's rows."""

    publication: Publication
    campaign: CampaignData
    scope: Scope
    tables: Tables

    @property
    def names(self) -> Names:
        """What readers call models, environments and workloads."""
        return self.publication.names

    def rows(self, table: str) -> list[Row]:
        """The rows of a table that belong to this part."""
        return [row for row in self.tables[table] if self.scope.holds(*cell_of(row))]

    def data(self, metric: Metric, *tables: str) -> Tables:
        """The rows of these tables, without what they say of other metrics: a changed figure draws only its own charts
        anew."""
        found = {}
        for table in tables:
            if table == "runs":
                found[table] = self.runs_about(metric)
            else:
                rows = self.rows(table)
                found[table] = [row for row in rows if row["metric"] == metric.name]
        return found

    @property
    def _records(self) -> list[Record]:
        """The records of this part."""
        return [
            record for record in self.campaign.records if self.scope.holds(*record.cell)
        ]

    def runs_about(self, *metrics: Metric) -> list[Row]:
        """The rows of runs without their other metrics."""
        kept = {metric.name for metric in metrics}.union(_RUN_FIELDS)
        found = []
        for row in self.rows("runs"):
            found.append({name: value for name, value in row.items() if name in kept})
        return found

    def runs_with(self, *metrics: Metric) -> list[Row]:
        """The rows of runs that have a value of each metric."""
        rows = self.rows("runs")
        for metric in metrics:
            rows = [row for row in rows if row.get(metric.name) is not None]
        return rows

    @cached_property
    def lines(self) -> Sequence[sweeps.Line]:
        """What the campaign varies, the lines of this part's models and environments."""
        scope = self.scope
        found = []
        for line in self.publication.lines(self.campaign):
            if line.model in scope.models and line.environment in scope.environments:
                found.append(line)
        return found

    def cells(self, metric: Metric) -> list[TableRow]:
        """The statistics of a metric, a cell each."""
        known = self.publication.results.cells_of(self.campaign.name, metric.name)
        return [cell for cell in known if self.scope.holds(*cell.cell)]

    def comparisons(self, metric: Metric) -> list[TableRow]:
        """The comparisons of a metric of which both sides are in this part."""
        found = []
        for row in self.campaign_comparisons(metric):
            here = self.scope.holds(row.model, row.candidate, row.workload)
            if here and row.baseline in self.scope.environments:
                found.append(row)
        return found

    def campaign_comparisons(self, metric: Metric) -> Sequence[TableRow]:
        """The comparisons of a metric in the whole campaign, this part or not."""
        return self.publication.results.comparisons_of(self.campaign.name, metric.name)

    def excluded(self, rows: Sequence[Row]) -> Mapping[str, str]:
        """Those of these runs that are not in the pooled figures, with the reason."""
        reasons = self.publication.review.excluded
        runs = [row["run"] for row in rows]
        return {run: reasons[run] for run in runs if run in reasons}

    def figure(
        self,
        key: str,
        chart: Chart,
        data: Tables,
        *,
        flagged: Metric | None = None,
        **members: Any,
    ) -> Figure:
        """A figure of this selection, with the findings on it."""
        found = flags(self.publication, self.scope, flagged)
        if flagged is not None:
            about = sentences.about_prompts(flagged, self._records)
            members["sample"] = f"{members.get('sample', '')} {about}".strip()
        return Figure(key=key, chart=chart, data=data, flags=found, **members)


def flags(
    publication: Publication, scope: Scope, metric: Metric | None = None
) -> tuple[Finding, ...]:
    """Findings that touch the cells of a scope (and, where a finding names one, the metric): one per check."""
    chosen: dict[str, Finding] = {}
    for finding in publication.review.findings:
        if finding.campaign != scope.campaign or finding.severity == "info":
            continue
        named = finding.evidence.get("metric")
        if metric is not None and named not in (None, metric.name):
            continue
        cells = [cell.split("/") for cell in finding.cells]
        if not cells or any(scope.holds(*cell) for cell in cells):
            chosen.setdefault(finding.check, finding)
    return tuple(chosen.values())
