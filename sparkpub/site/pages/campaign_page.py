"""What the page of a campaign shows: its answer first, then how sure it is, its cells and its figures."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.record.text import SPACE, listed, percent, spread
from sparkpub.review.checks import CHECKS, Finding
from sparkpub.review.dataset import CampaignData
from sparkpub.review.summary import CellStatistic, ComparisonRow
from sparkpub.site import sentences
from sparkpub.site.figures.library import Library
from sparkpub.site.publication import (
    Publication,
    cell_keys,
    cell_label,
    one_of_each_check,
    slug,
)

ANSWERS = BOXES = 4
"""Leading metrics with a sentence, and with a value box."""
KINDS = ("meaning", "happened", "evidence", "prose")
"""Kinds of checks in the order in which a campaign's problems are listed."""


def context(
    publication: Publication, library: Library, campaign: CampaignData
) -> dict[str, Any]:
    """What the template of a campaign needs."""
    headlines = publication.headlines(campaign)
    models, environments, workloads = campaign.axes
    boxes = [value_box(publication, campaign, metric) for metric in headlines[:BOXES]]
    return {
        "campaign": campaign,
        "card": card(publication, campaign),
        "answers": answers(publication, campaign),
        "boxes": [box for box in boxes if box is not None],
        "problems": problems(publication, campaign),
        "doubted": bool(publication.review.voiding(campaign.name)),
        "models": models,
        "environments": environments,
        "workloads": workloads,
        "headlines": headlines,
        "summary": summary(publication, campaign, headlines),
        "figures": _figures(
            library, campaign, [slug(metric.name) for metric in headlines]
        ),
    }


def _figures(
    library: Library, campaign: CampaignData, leading: Sequence[str]
) -> dict[str, list[str]]:
    """Placeholders by section; `leading` are the slugs of the leading metrics."""

    def place(*names: str) -> list[str]:
        return library.place_known(campaign, names)

    relative = place(*[f"{name}-relative" for name in leading[:1]])
    waits = [name for name in leading[1:] if "latency" in name or "ttft" in name]
    return {
        "result": [*relative, *place(*leading[: 3 - len(relative)])],
        "comparison": place("comparison"),
        "sweep": place(*[f"{name}-sweep" for name in leading]),
        "against": place(*[f"{name}-against-{leading[0]}" for name in waits[:1]]),
        "order": place(*[f"{name}-order" for name in leading[:2]]),
        "memory": place("memory-ledger", "kv-cache-against-peak-memory"),
        "time": place("gpu-utilisation"),
    }


def card(publication: Publication, campaign: CampaignData) -> dict[str, Any]:
    """What a campaign is, in a few figures and two sentences."""
    records = campaign.records
    excluded = [
        record for record in records if record.run_id in publication.review.excluded
    ]
    severities = [finding.severity for finding in publication.findings_of(campaign)]
    times = sorted(record.started.value for record in records)
    gpus = {gpu.name for record in records for gpu in record.machine.gpus}
    machines = {record.machine.cpu or "unknown machine" for record in records}
    return {
        "campaign": campaign,
        "href": f"campaigns/{campaign.name}/",
        "runs": len(records),
        "counted": len(records) - len(excluded),
        "failed": sum(record.status != "ok" for record in records),
        "hardware": sorted(gpus or machines),
        "begun": times[0][:10] if times else None,
        "ended": times[-1][:10] if times else None,
        "errors": severities.count("error"),
        "warnings": severities.count("warning"),
        "answer": " ".join(answers(publication, campaign)[:2]),
    }


def answers(publication: Publication, campaign: CampaignData) -> list[str]:
    """One sentence per leading metric, comparisons first."""
    found = []
    for metric in publication.headlines(campaign)[:ANSWERS]:
        text = sentences.differences(
            metric, publication.comparisons_of(campaign, metric)
        )
        cells = publication.cells_of(campaign, metric)
        if text or cells:
            found.append(text or sentences.means(metric, cells))
    return found


def value_box(
    publication: Publication, campaign: CampaignData, metric: Metric
) -> dict[str, Any] | None:
    """One leading metric as a value box: the largest difference, or the best mean."""
    rows = publication.comparisons_of(campaign, metric)
    cells = publication.cells_of(campaign, metric)
    href = f"metrics/{slug(metric.name)}/"
    if rows:
        verdicts = Counter(row.verdict for row in rows)
        return {
            "metric": metric,
            "href": href,
            "value": _change(metric, rows),
            "verdicts": verdicts,
            "verdict": listed(f"{n} {word}" for word, n in verdicts.items()),
            "note": f"{rows[0].candidate} against {rows[0].baseline}",
        }
    if not cells:
        return None
    choose = min if metric.direction == "lower" else max
    best = choose(cells, key=lambda cell: cell.mean)
    return {
        "metric": metric,
        "href": href,
        "value": metric.format(best.mean),
        "verdict": "",
        "verdicts": {},
        "note": f"best mean: {best.model}, {best.environment}, n = {best.n}",
    }


def _change(metric: Metric, rows: Sequence[ComparisonRow]) -> str:
    """The least and the largest difference, in per cent where the scale has a true zero."""
    shares = sorted(
        row.difference_percent for row in rows if row.difference_percent is not None
    )
    if shares:
        texts = [
            percent(share).removesuffix(f"{SPACE}%")
            for share in (shares[0], shares[-1])
        ]
        return spread(texts, "%")
    sizes = sorted(row.difference for row in rows)
    return spread(
        [metric.signed(size, unit=False) for size in (sizes[0], sizes[-1])], metric.unit
    )


def problems(publication: Publication, campaign: CampaignData) -> list[dict[str, Any]]:
    """Findings by check, the severest first: each with its first message and how often it trips."""
    groups: dict[str, list[Finding]] = {}
    for finding in publication.findings_of(campaign):
        if finding.severity != "info":
            groups.setdefault(finding.check, []).append(finding)

    def place(check: str) -> tuple[bool, int]:
        return groups[check][0].severity != "error", KINDS.index(CHECKS[check].kind)

    return [
        {
            "check": check,
            "findings": groups[check],
            "severity": groups[check][0].severity,
            "href": anchor(campaign.name, check),
        }
        for check in sorted(groups, key=place)
    ]


def summary(
    publication: Publication, campaign: CampaignData, metrics: Sequence[Metric]
) -> list[dict[str, Any]]:
    """A row per cell: mean with interval of each leading metric, and what flags it carries."""
    cells: dict[tuple[str, ...], CellStatistic] = {}
    rivals: dict[tuple[str, ...], ComparisonRow] = {}
    for metric in metrics:
        for cell in publication.cells_of(campaign, metric):
            cells[metric.name, cell.model, cell.environment, cell.workload] = cell
        for row in publication.comparisons_of(campaign, metric):
            rivals.setdefault(
                (metric.name, row.model, row.candidate, row.workload), row
            )
    recorded = Counter(record.cell for record in campaign.records)
    counted = Counter(
        record.cell
        for record in campaign.records
        if record.status == "ok" and record.run_id not in publication.review.excluded
    )
    rows = []
    for key in cell_keys(campaign):
        values = [
            {
                "metric": metric,
                "cell": cells.get((metric.name, *key)),
                "comparison": rivals.get((metric.name, *key)),
            }
            for metric in metrics
        ]
        findings = publication.review.by_cell.get((campaign.name, "/".join(key)), ())
        model, environment, workload = key
        rows.append(
            {
                "label": cell_label(campaign, key),
                "model": model,
                "environment": environment,
                "workload": workload,
                "values": values,
                "runs": _runs(counted[key], recorded[key]),
                "flags": one_of_each_check(
                    finding for finding in findings if finding.severity != "info"
                ),
            }
        )
    return rows


def _runs(counted: int, recorded: int) -> str:
    """How many runs are in the figures of a cell, and of how many where some are not: `10`, `10 of 13`."""
    return str(counted) if counted == recorded else f"{counted} of {recorded}"


def anchor(campaign: str, check: str) -> str:
    """Where the review page speaks of a check."""
    return f"review/#{campaign}-{check}"
