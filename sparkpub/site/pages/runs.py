"""What a reader sees of one run: a page that needs no scripting, and a file with the samples of its chart.

There are thousands of them. So MkDocs renders one shell, and each run is put into it as the site is written. The file
is compressed, since hosts count files as they lie on the disk; its suffix is one that no host takes for an encoding.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import to_json

from sparkpub.record.metrics import Metric
from sparkpub.record.record import MetricValue, Record, metric_of
from sparkpub.record.store import Stored
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.site.content import ROOT, SHELL, Page, packed, placeholder, way_to_root
from sparkpub.site.figures.telemetry import Trace
from sparkpub.site.pages.evidence import Published
from sparkpub.site.pages.templating import Templates, markdown_text
from sparkpub.site.publication import (
    Publication,
    cell_label,
    one_of_each_check,
)

LOG_LINES, LOG_CHARACTERS = 200, 3_400
TITLE = "sp-run-title"
"""Of the shell, in whose place each run has its own: no other text of a page is like it."""
_BODY = "run"
"""The key of the HTML of a run."""
_PLACE = re.compile(r"<div data-sp-run>.*?</div>", re.DOTALL)


class Standing(NamedTuple):
    """A metric of a run within its cell. `rank` counts from the best (the largest, where neither way is better);
    `against_mean` is the deviation from the mean of the cell in per cent, None on a scale without a true zero."""

    metric: Metric
    given: MetricValue
    rank: int = 0
    of: int = 0
    against_mean: float | None = None


@dataclass(frozen=True)
class RunPages:
    """Makes the pages of runs."""

    publication: Publication
    templates: Templates

    def page(self, campaign: CampaignData, index: int, chart: str) -> Page:
        """The page of the campaign's run number `index`, with the HTML of its chart, which may be empty."""
        stored = campaign.runs[index]
        files = self.publication.evidence[stored.record.run_id]
        names = {metric.name for metric in self.publication.headlines(campaign)}
        by_rank = grouped(stored.record.metrics, lambda name: name in names)
        label = cell_label(self.publication.names, campaign, stored.record.cell)
        text = self.templates.text(
            "run.html.j2",
            run=stored.record,
            stored=stored,
            campaign=campaign,
            index=index,
            names=self.publication.names,
            leading=self._standings(stored.record, by_rank.get(True, ())),
            others=self._standings(stored.record, by_rank.get(False, ())),
            files=files,
            findings=self._findings(stored),
            reason=self.publication.review.excluded.get(stored.record.run_id),
            figure=chart,
            log=_log(files),
        )
        title = f"{label}, iteration {stored.record.iteration}"
        heading = f"# {markdown_text(title)} {{ #run }}"
        return Page(
            {"title": title, "hide": ["navigation"], "search": {"exclude": True}},
            f"{heading}\n\n<div data-sp-run>{placeholder(_BODY)}</div>\n",
            {_BODY: text},
        )

    def _standings(self, record: Record, names: Sequence[str]) -> list[Standing]:
        return [self._standing(record, name) for name in names]

    def _standing(self, record: Record, name: str) -> Standing:
        given = record.metrics[name]
        metric, value = metric_of(name, given), given.value
        cell = self.publication.results.cell(record.campaign, record.cell, name)
        if value is None or cell is None or record.run_id not in cell.runs:
            return Standing(metric, given)
        by_id = self.publication.dataset.by_id
        others = [by_id[run].record.value(name) for run in cell.runs]
        sign = -1 if metric.direction == "lower" else 1
        better = sum(
            other is not None and sign * other > sign * value for other in others
        )
        against = None
        if cell.mean and metric.unit != "°C":
            against = 100 * (value - cell.mean) / cell.mean
        return Standing(metric, given, better + 1, cell.n, against)

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


def samples(stored: Stored, found: Trace) -> bytes:
    """A run's file: what its chart shows.

    A line of a signal is one row with its `times` and `values`, each in hundredths and as the steps from one to the
    next; the browser makes a row of each point.
    """
    rows: list[dict[str, object]] = [
        {
            "panel": panel,
            "times": _steps([time for time, _ in points]),
            "values": _steps([value for _, value in points]),
        }
        for panel, points in found.lines.items()
    ]
    for phase in stored.record.phases:
        start, end = round(phase.start_seconds, 2), round(phase.end_seconds, 2)
        rows.append({"kind": "phase", "name": phase.name, "x": start, "end": end})
    return packed(to_json({"rows": rows}))


def in_shell(shell: str, uri: str, page: Page) -> str:
    """The HTML of the page of a run, which is as far from the root as the shell."""
    body = page.html[_BODY].replace(ROOT, way_to_root(SHELL))
    whole = shell.replace(SHELL.replace(".md", "/"), uri.replace(".md", "/"))
    whole = whole.replace(TITLE, html.escape(page.meta["title"]))
    return _PLACE.sub(lambda _: f"<div data-sp-run>{body}</div>", whole, count=1)


def _steps(values: Sequence[float]) -> list[int]:
    """Values with two decimals as whole numbers: the first, and then what each adds."""
    hundredths = [round(100 * value) for value in values]
    return [after - before for before, after in pairwise([0, *hundredths])]
