"""What a reader sees of one run: the browser puts its page together from a file.

Pages cost: each has the theme around it and drawings in two widths. So a run has two small files: a short page that
stands at its address, leads on and works without scripting; and one with what the page shows, beside the samples of its
chart. It is compressed, since hosts count files as they lie on the disk. Its suffix is one that no host takes for an
encoding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from sparkpub.record.metrics import Metric
from sparkpub.record.record import Record, metric_of
from sparkpub.record.store import Stored
from sparkpub.review.dataset import CampaignData
from sparkpub.review.reviewed import Cell
from sparkpub.review.tables.column import TableRow
from sparkpub.site import cache
from sparkpub.site.browser import runtime
from sparkpub.site.content import packed, relative, way_to_root
from sparkpub.site.figures.figure import Figure
from sparkpub.site.pages.evidence import Published
from sparkpub.site.pages.templating import Templates
from sparkpub.site.publication import (
    Publication,
    cell_label,
    one_of_each_check,
)

LOG_LINES, LOG_CHARACTERS = 200, 3_400
VIEW = "runs/view.md"
"""The page in which the browser shows a run."""
PAGE = "page"
"""The member of a run's file that holds the HTML of its page."""


@dataclass(frozen=True)
class Standing:
    """A metric of a run within its cell. `rank` counts from the best (the largest, where neither way is better)."""

    metric: Metric
    value: float | None
    source: str
    reason: str | None
    rank: int | None = None
    of: int = 0
    mean: float | None = None

    @property
    def against_mean(self) -> float | None:
        """Deviation from the mean of the cell in per cent; None on a scale without a true zero."""
        if self.value is None or not self.mean or self.metric.unit == "°C":
            return None
        return 100 * (self.value - self.mean) / self.mean


@dataclass(frozen=True)
class RunPages:
    """Makes the pages of runs."""

    publication: Publication
    templates: Templates

    def decided_by(self, campaign: CampaignData, index: int) -> str:
        """A key of all that the page of the campaign's run number `index` shows. It changes with the run, with others
        of its cell, and with what was found in them, and stays where other runs change."""
        stored = campaign.runs[index]
        return cache.key(
            "run",
            self._site,
            self._campaigns[campaign.name],
            self._cells[stored.record.campaign, stored.record.cell],
            cell_label(self.publication.names, campaign, stored.record.cell),
            self.publication.evidence[stored.run_id],
            self.publication.review.excluded.get(stored.run_id),
            [self._digests[id(finding)] for finding in self._findings(stored)],
            [run and run.run_id for run in _around(campaign, index)],
        )

    @cached_property
    def _site(self) -> str:
        """Changes with whatever writes every page."""
        publication = self.publication
        decides: list[Any] = [
            cache.program(),
            self.templates.shipped,
            publication.options.evidence_on_site,
        ]
        if self.templates.own:  # which may show anything of a campaign
            decides += [self.templates.own, self._campaigns, list(self._cells.items())]
        return cache.key(*decides)

    @cached_property
    def _campaigns(self) -> dict[str, str]:
        """Campaign to a key of what its pages say of the whole of it."""
        publication = self.publication
        return {
            campaign.name: cache.key(
                campaign.info,
                len(campaign.runs),
                [metric.name for metric in publication.headlines(campaign)],
                publication.names.campaign(campaign.name).models,
                publication.names.campaign(campaign.name).by_axis,
            )
            for campaign in publication.campaigns
        }

    @cached_property
    def _cells(self) -> dict[tuple[str, Cell], str]:
        """Campaign and cell to a key of its runs and of what they are as one."""
        parts: dict[tuple[str, Cell], list[Any]] = {}
        for stored in self.publication.dataset.runs:
            record = stored.record
            of_cell = parts.setdefault((record.campaign, record.cell), [])
            of_cell.append(self.publication.evidence[stored.run_id][0].sha256)
        for row in self.publication.results.cell_rows:
            parts[row.campaign, row.cell].append(
                [row.metric, row.n, row.mean, row.runs]
            )
        return {of: cache.key(part) for of, part in parts.items()}

    @cached_property
    def _digests(self) -> dict[int, str]:
        """The findings by identity, each with the names in its campaign: a finding on a campaign is one on each of its
        runs, and one that names a run may be of another campaign."""
        return {
            id(finding): cache.key(
                finding.document(), self._campaigns.get(finding.campaign)
            )
            for finding in self.publication.review.findings
        }

    def page(self, campaign: CampaignData, index: int, figure: str) -> str:
        """The HTML of the campaign's run number `index`; `figure` is that of its telemetry, or empty."""
        stored = campaign.runs[index]
        files = self.publication.evidence[stored.record.run_id]
        leading, others = self._by_rank(campaign, stored)
        previous, following = _around(campaign, index)
        return self.templates.text(
            "run.html.j2",
            run=stored.record,
            stored=stored,
            campaign=campaign,
            place=index + 1,
            names=self.publication.names,
            label=cell_label(self.publication.names, campaign, stored.record.cell),
            leading=leading,
            others=others,
            files=files,
            findings=self._findings(stored),
            reason=self.publication.review.excluded.get(stored.record.run_id),
            figure=figure,
            log=_log(files),
            plan=_plan(stored.record),
            previous=previous,
            next=following,
        )

    def short(self, campaign: CampaignData, index: int) -> bytes:
        """The short page that stands at the address of a run."""
        stored = campaign.runs[index]
        label = cell_label(self.publication.names, campaign, stored.record.cell)
        stub = self.templates.text(
            "stub.html.j2",
            title=f"{label}, iteration {stored.record.iteration}",
            run=stored.run_id,
            files=self.publication.evidence[stored.run_id],
            script=runtime.script(runtime.OPEN)[0],
        )
        return stub.encode()

    def _standings(self, stored: Stored) -> Iterator[Standing]:
        record = stored.record
        for name, value in record.metrics.items():
            metric = metric_of(name, value)
            cell = self.publication.results.cell(record.campaign, record.cell, name)
            if value.value is None or cell is None or record.run_id not in cell.runs:
                yield Standing(metric, value.value, value.source, value.reason)
                continue
            values = self._values(cell)
            better = sum(
                v < value.value if metric.direction == "lower" else v > value.value
                for v in values
            )
            yield Standing(
                metric,
                value.value,
                value.source,
                value.reason,
                better + 1,
                cell.n,
                cell.mean,
            )

    def _by_rank(
        self, campaign: CampaignData, stored: Stored
    ) -> tuple[list[Standing], list[Standing]]:
        """What leads the campaign, and the other metrics of the run."""
        names = {metric.name for metric in self.publication.headlines(campaign)}
        leading, others = [], []
        for standing in self._standings(stored):
            if standing.metric.name in names:
                leading.append(standing)
            else:
                others.append(standing)
        return leading, others

    def _values(self, cell: TableRow) -> list[float]:
        by_id = self.publication.dataset.by_id
        return [
            value
            for run in cell.runs
            if (value := by_id[run].record.value(cell.metric)) is not None
        ]

    def _findings(self, stored: Stored) -> list[Any]:
        """Findings on the run first, then those on its cell and campaign."""
        record, review = stored.record, self.publication.review
        own = review.by_run.get(record.run_id, ())
        shared = review.by_cell.get((record.campaign, "/".join(record.cell)), ())
        return [
            *own,
            *one_of_each_check(
                finding
                for finding in shared
                if not finding.runs and finding.severity != "info"
            ),
        ]


def _around(campaign: CampaignData, index: int) -> tuple[Stored | None, Stored | None]:
    """The run before a run and the one after it."""
    before = campaign.runs[index - 1] if index > 0 else None
    after = campaign.runs[index + 1] if index + 1 < len(campaign.runs) else None
    return before, after


def _plan(record: Record) -> dict[str, Any]:
    """Where the run stood in its campaign, for a reader."""
    plan = record.plan
    known = {
        "place in plan": plan.position + 1,
        "order": plan.order,
        "seed": plan.seed,
        "attempt": plan.attempt,
        "run id": record.run_id,
        "specification": record.specification,
        "repeat of": record.repeat_of,
    }
    return {name: value for name, value in known.items() if value is not None}


def _log(files: Sequence[Published]) -> dict[str, Any] | None:
    """The log of a run with the last of its lines and their numbers, or None where there is none."""
    there = (item for item in files if item.address or item.repository)
    log = next((item for item in there if item.role == "log"), None)
    if log is None:
        return None
    return {"file": log, "lines": _last_lines(log.path)}


def _last_lines(log: Path) -> list[tuple[int, str]]:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    first = len(lines)
    room = LOG_CHARACTERS
    # A real engine prints its whole configuration in a line or two: those are left to the file.
    while first > max(0, len(lines) - LOG_LINES) and room >= len(lines[first - 1]):
        first -= 1
        room -= len(lines[first])
    return list(enumerate(lines[first:], first + 1))


def file(page: str, figure: Figure | None) -> bytes:
    """A run's file: its page as HTML, seen from the page that shows it, and what its chart shows."""
    document: dict[str, Any] = {PAGE: relative(page, way_to_root(VIEW))}
    if figure is not None:
        document |= {**figure.data, "samples": samples(figure)}
    return packed(to_json(document))


def samples(figure: Figure) -> dict[str, list[list[int]]]:
    """The samples that the chart of a run shows, as `{signal: [times, values]}`, each list in hundredths and as the
    steps from one to the next."""
    signals: dict[str, tuple[list[float], list[float]]] = {}
    for row in figure.data["samples"]:
        times, values = signals.setdefault(row["signal"], ([], []))
        times.append(row["t"])
        values.append(row["value"])
    return {name: [_steps(of) for of in lists] for name, lists in signals.items()}


def _steps(values: Sequence[float]) -> list[int]:
    """Values with two decimals as whole numbers: the first, and then what each adds."""
    hundredths = [round(100 * value) for value in values]
    return [after - before for before, after in pairwise([0, *hundredths])]
