"""The part of a campaign that a figure shows: its rows, its statistics, and the findings on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.review.checks import Finding
from sparkpub.review.dataset import CampaignData
from sparkpub.review.rows import ComparisonRow
from sparkpub.review.summary import CellStatistic
from sparkpub.site import sweeps
from sparkpub.site.drawing.chart import Chart
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.rows import Row, Tables
from sparkpub.site.figures.scope import Scope
from sparkpub.site.publication import Publication

_RUN_FIELDS = (
    "run",
    "campaign",
    "model",
    "environment",
    "workload",
    "cell",
    "iteration",
    "order",
    "state",
    "flags",
    "href",
    "start_temp",
    *(axis.name for axis in sweeps.AXES),
    *(axis.line for axis in sweeps.AXES),
)
"""What charts read of a run besides its metrics."""
_PUBLISHED_FIELDS = (
    "run",
    "campaign",
    "model",
    "environment",
    "workload",
    "iteration",
    "order",
    "state",
)
"""What the files of a figure say of a run besides its metrics."""


@dataclass(frozen=True)
class Selection:
    """A part of a campaign. `tables` are the campaign's rows, `sources` the addresses at which tables are published."""

    publication: Publication
    campaign: CampaignData
    scope: Scope
    tables: Tables
    sources: Mapping[str, str]

    def rows(self, table: str) -> list[Row]:
        """The rows of a table that belong to this part."""
        return [
            row
            for row in self.tables[table]
            if self.scope.holds(row["model"], row["environment"], row["workload"])
        ]

    def rows_about(self, table: str, *metrics: Metric) -> list[Row]:
        """Rows without what other metrics say, so that a changed figure draws only its own charts anew."""
        names = {metric.name for metric in metrics}
        if table != "runs":
            return [row for row in self.rows(table) if row["metric"] in names]
        kept = names.union(_RUN_FIELDS)
        return [
            {name: value for name, value in row.items() if name in kept}
            for row in self.rows(table)
        ]

    def runs_with(self, *metrics: Metric) -> list[Row]:
        """The rows of runs that have a value of each metric."""
        return [
            row
            for row in self.rows("runs")
            if all(row.get(metric.name) is not None for metric in metrics)
        ]

    @cached_property
    def lines(self) -> Sequence[sweeps.Line]:
        """What the campaign varies, the lines of this part's models and environments."""
        return [
            line
            for line in sweeps.lines(self.campaign)
            if line.model in self.scope.models
            and line.environment in self.scope.environments
        ]

    def cells(self, metric: Metric) -> list[CellStatistic]:
        """The statistics of a metric, a cell each."""
        known = self.publication.cells_of(self.campaign, metric)
        return [cell for cell in known if self.scope.holds(*cell.cell)]

    def comparisons(self, metric: Metric) -> list[ComparisonRow]:
        """The comparisons of a metric of which both sides are in this part."""
        return [
            row
            for row in self.campaign_comparisons(metric)
            if self.scope.holds(row.model, row.candidate, row.workload)
            and row.baseline in self.scope.environments
        ]

    def campaign_comparisons(self, metric: Metric) -> Sequence[ComparisonRow]:
        """The comparisons of a metric in the whole campaign, this part or not."""
        return self.publication.comparisons_of(self.campaign, metric)

    def excluded(self, rows: Sequence[Row]) -> Mapping[str, str]:
        """Those of these runs that are not in the pooled figures, with the reason."""
        reasons = self.publication.review.excluded
        return {
            row["run"]: reasons[row["run"]] for row in rows if row["run"] in reasons
        }

    def figure(
        self,
        key: str,
        chart: Chart,
        data: Tables,
        *,
        flagged: Metric | None = None,
        **what: Any,
    ) -> Figure:
        """A figure of this selection that shows rows of the site's tables, with the findings on it."""
        sources = {name: self.sources[name] for name in data if name in self.sources}
        found = flags(self.publication, self.scope, flagged)
        return Figure(
            key=key, chart=chart, data=data, sources=sources, flags=found, **what
        )


def published(rows: Sequence[Row], *metrics: Metric) -> list[Row]:
    """Rows of runs as a figure's files have them: which run it is, and the values."""
    names = [*_PUBLISHED_FIELDS, *(metric.name for metric in metrics)]
    return [{name: row.get(name) for name in names} for row in rows]


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
