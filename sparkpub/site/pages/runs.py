"""The page of one run: a page of the site, or a file from which the browser puts it together.

Pages cost: each has the theme around it and drawings in two widths. So runs beyond a limit have two small files: a
short page that stands at the address of the run, leads on and works without scripting; and one with what the page would
hold beside the samples that its chart shows, as every run has them. It is compressed, since hosts count files as they
lie on the disk. Its suffix is one that no host takes for an encoding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import markdown
from pydantic_core import from_json, to_json

from sparkpub.record.metrics import Metric
from sparkpub.record.record import Record, metric_of
from sparkpub.record.store import Stored
from sparkpub.review.dataset import CampaignData
from sparkpub.review.tables.column import TableRow
from sparkpub.site.browser import runtime
from sparkpub.site.content import Content, fill, packed, unpacked, way_to_root
from sparkpub.site.figures import telemetry
from sparkpub.site.figures.figure import Figure
from sparkpub.site.pages.campaign_page import preview
from sparkpub.site.pages.evidence import Published
from sparkpub.site.pages.templating import Templates
from sparkpub.site.publication import (
    Publication,
    cell_label,
    one_of_each_check,
)

LOG_LINES, LOG_CHARACTERS = 200, 3_400
VIEW = "runs/view.md"
"""The page in which the browser shows a run that has none."""
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
    """Makes the pages of runs. `figure` notes a figure and returns its placeholder."""

    publication: Publication
    templates: Templates

    def page(
        self, campaign: CampaignData, index: int, figure: str, *, drawn: bool
    ) -> Content:
        """The page of the campaign's run number `index`; `figure` is the placeholder of its telemetry, or empty.

        Where it is not `drawn`, the browser fetches the lines of the log, as it does the data of the figure.
        """
        stored = campaign.runs[index]
        files = self.publication.evidence[stored.record.run_id]
        around = tuple(
            campaign.runs[at] if 0 <= at < len(campaign.runs) else None
            for at in (index - 1, index + 1)
        )
        page = self.templates.page(
            "run",
            run=stored.record,
            stored=stored,
            campaign=campaign,
            place=index + 1,
            label=cell_label(campaign, stored.record.cell),
            standings=list(self._standings(stored)),
            measured=self.publication.by_metric,
            files=files,
            findings=self._findings(stored),
            reason=self.publication.review.excluded.get(stored.record.run_id),
            figure=figure,
            drawn=drawn,
            log=_log_tail(files),
            log_here=drawn or not self.publication.options.evidence_on_site,
            plan=_plan(stored.record),
            previous=around[0],
            next=around[1],
        )
        return Content(
            text=page.text,
            blocks=page.blocks,
            source=stored.path,
            image=preview(campaign),
        )

    def short(self, campaign: CampaignData, index: int) -> bytes:
        """The short page that stands at the address of a run without a page of its own."""
        stored = campaign.runs[index]
        label = cell_label(campaign, stored.record.cell)
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
            cell = self.publication.results.cell(record.campaign, *record.cell, name)
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


def _log_tail(files: Sequence[Published]) -> dict[str, Any] | None:
    """The last lines of the log with their numbers, or None where there is no log."""
    there = (item for item in files if item.address or item.repository)
    log = next((item for item in there if item.role == "log"), None)
    if log is None:
        return None
    lines = log.path.read_text(encoding="utf-8", errors="replace").splitlines()
    first = len(lines)
    room = LOG_CHARACTERS
    # A real engine prints its whole configuration in a line or two: those are left to the file.
    while first > max(0, len(lines) - LOG_LINES) and room >= len(lines[first - 1]):
        first -= 1
        room -= len(lines[first])
    return {
        "file": log,
        "total": len(lines),
        "lines": list(enumerate(lines[first:], first + 1)),
    }


def samples(figure: Figure) -> Iterator[tuple[str, bytes]]:
    """(address, content) of the samples that the chart of a run shows: its named rows, compressed; those of `samples`
    as `{signal: [times, values]}`, each list in hundredths and as the steps from one to the next."""
    addresses = {source.partition("#")[0] for source in figure.sources.values()}
    signals: dict[str, tuple[list[float], list[float]]] = {}
    for row in figure.data["samples"]:
        times, values = signals.setdefault(row["signal"], ([], []))
        times.append(row["t"])
        values.append(row["value"])
    steps = {name: [_steps(of) for of in lists] for name, lists in signals.items()}
    document = {**figure.data, "samples": steps}
    for address in addresses:
        yield address, packed(to_json(document))


def _steps(values: Sequence[float]) -> list[int]:
    """Values with two decimals as whole numbers: the first, and then what each adds."""
    hundredths = [round(100 * value) for value in values]
    return [after - before for before, after in pairwise([0, *hundredths])]


def recalled(samples: bytes) -> telemetry.Trace:
    """What `samples` packed."""
    document = from_json(unpacked(samples))
    rows = []
    for signal, (times, values) in document["samples"].items():
        points = zip(accumulate(times), accumulate(values), strict=True)
        for time, value in points:
            rows.append({"signal": signal, "t": time / 100, "value": value / 100})
    return telemetry.recalled(rows, document["phases"])


def with_page(samples: bytes | None, page: Content) -> bytes:
    """A run's file: its samples, where it has any, and its page as HTML, seen from the page that shows it."""
    _, _, text = (page.text or "").partition("\n---\n")
    html = markdown.markdown(text, extensions=["toc"])
    document = to_json({PAGE: fill(html, page.blocks, way_to_root(VIEW))})
    if samples is not None:
        document = document[:-1] + b"," + unpacked(samples)[1:]
    return packed(document)
