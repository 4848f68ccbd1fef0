"""The page of one run, kept on disk by the content of everything it shows."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.record.record import Record, metric_of
from sparkpub.record.store import Stored, write_atomic
from sparkpub.review.dataset import CampaignData
from sparkpub.review.summary import CellStatistic
from sparkpub.site.content import Content
from sparkpub.site.figures import Chart
from sparkpub.site.figures.compile import NARROW
from sparkpub.site.figures.drawn import Figure, Table
from sparkpub.site.figures.samples import Trace, trace
from sparkpub.site.pages.evidence import Published
from sparkpub.site.pages.templating import Templates
from sparkpub.site.pages.tree import unique
from sparkpub.site.publication import Publication, cell_label

LOG_LINES = 200


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
        """Deviation from the mean of the cell in per cent."""
        return None if self.value is None or not self.mean else 100 * (self.value - self.mean) / self.mean


@dataclass(frozen=True)
class RunPages:
    """Makes the pages of runs. `figure` notes a figure and returns its placeholder."""

    publication: Publication
    templates: Templates

    def figure(self, stored: Stored, *, drawn: bool) -> Figure | None:
        """The run's telemetry as a figure, or None where it has none."""
        found = trace(stored)
        return None if found is None else _telemetry_figure(stored, found, drawn)

    def page(self, campaign: CampaignData, index: int, figure: str, *, drawn: bool) -> Content:
        """The page of the campaign's run number `index`; `figure` is the placeholder of its telemetry, or empty.

        Where it is not `drawn`, the browser fetches the lines of the log, as it does the data of the figure.
        """
        stored = campaign.runs[index]
        files = self.publication.evidence[stored.record.run_id]
        around = tuple(campaign.runs[at] if 0 <= at < len(campaign.runs) else None for at in (index - 1, index + 1))
        context = {
            "run": stored.record,
            "stored": stored,
            "campaign": campaign,
            "place": index + 1,
            "label": cell_label(campaign, stored.record.cell),
            "standings": list(self._standings(stored)),
            "files": files,
            "findings": self._findings(stored),
            "reason": self.publication.review.excluded.get(stored.record.run_id),
            "figure": figure,
            "drawn": drawn,
            "log": _log_tail(files),
            "plan": _plan(stored.record),
            "previous": around[0],
            "next": around[1],
        }
        key = self._key(context)
        kept = _kept(key)
        if kept is None:
            kept = self.templates.page("run", **context)
            key.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(key, json.dumps({"text": kept.text, "blocks": dict(kept.blocks)}), durable=False)
        return Content(text=kept.text, blocks=kept.blocks, source=stored.path)

    def _key(self, context: Mapping[str, Any]) -> Path:
        """Where the page is kept: named by a digest of all that the template is given, and of the template."""
        seen = {name: value for name, value in context.items() if name not in ("run", "stored", "campaign")}
        for name in ("previous", "next"):
            seen[name] = seen[name] and seen[name].record.run_id
        text = repr([self._code, context["stored"].sha256, context["campaign"].info.title, seen])
        return self.publication.options.cache / "runs" / f"{hashlib.sha256(text.encode()).hexdigest()}.json"

    @cached_property
    def _code(self) -> str:
        return self.templates.fingerprint()

    def _standings(self, stored: Stored) -> Iterator[Standing]:
        record = stored.record
        for name, value in record.metrics.items():
            metric = metric_of(name, value)
            cell = self.publication.statistics.cell(record.campaign, *record.cell, name)
            if value.value is None or cell is None or record.run_id not in cell.runs:
                yield Standing(metric, value.value, value.source, value.reason)
                continue
            values = self._values(cell)
            better = sum(v < value.value if metric.direction == "lower" else v > value.value for v in values)
            yield Standing(metric, value.value, value.source, value.reason, better + 1, cell.n, cell.mean)

    def _values(self, cell: CellStatistic) -> list[float]:
        by_id = self.publication.dataset.by_id
        return [value for run in cell.runs if (value := by_id[run].record.value(cell.metric)) is not None]

    def _findings(self, stored: Stored) -> list[Any]:
        """Findings on the run first, then those on its cell and campaign."""
        record, review = stored.record, self.publication.review
        own = review.by_run.get(record.run_id, ())
        shared = review.by_cell.get((record.campaign, "/".join(record.cell)), ())
        return [*own, *unique(finding for finding in shared if not finding.runs and finding.severity != "info")]


def _kept(path: Path) -> Content | None:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return Content(text=document["text"], blocks=document["blocks"])
    except (OSError, ValueError, KeyError):
        return None


def _telemetry_figure(stored: Stored, found: Trace, drawn: bool) -> Figure:
    run = stored.record.run_id
    base = f"evidence/{stored.record.campaign}/{stored.path.stem}"
    rows = {"samples": found.samples, "phases": found.phases}
    last = max(row["t"] for row in found.samples)
    ranges = [(label, unit, [row["value"] for row in found.samples if row["signal"] == label])
              for label, unit in found.signals]  # fmt: skip
    return Figure(
        key=f"telemetry-{run}",
        title="What the sensors saw",
        says=f"{len(found.signals)} signals over {last:.3g} seconds from launch"
        + (f"; shaded: {', '.join(phase['name'] for phase in found.phases)}." if found.phases else "."),
        sample="Each stretch keeps its lowest and highest sample; the file of telemetry has all of them.",
        chart=Chart("telemetry", (found.signals,)),
        narrow=Chart("telemetry", (found.signals, NARROW)),
        data=rows,
        table=Table(("Signal", "Unit", "Least", "Most"), [
            [label, unit, f"{min(values):.1f}", f"{max(values):.1f}"] for label, unit, values in ranges]),
        rows=found.samples,
        sources={name: f"{base}.{name}.json" for name in rows},
        drawn=drawn,
    )  # fmt: skip


def _plan(record: Record) -> dict[str, Any]:
    """Where the run stood in its campaign, for a reader."""
    plan = record.plan
    known = {"place in plan": plan.position + 1, "order": plan.order, "seed": plan.seed, "attempt": plan.attempt,
             "run id": record.run_id, "specification": record.specification, "repeat of": record.repeat_of}  # fmt: skip
    return {name: value for name, value in known.items() if value is not None}


def _log_tail(files: Sequence[Published]) -> dict[str, Any] | None:
    """The last lines of the log with their numbers, or None where there is no log."""
    log = next((item for item in files if item.role == "log" and item.address), None)
    if log is None:
        return None
    lines = log.path.read_text(encoding="utf-8", errors="replace").splitlines()
    first = max(0, len(lines) - LOG_LINES)
    return {"file": log, "total": len(lines), "lines": list(enumerate(lines[first:], first + 1))}
