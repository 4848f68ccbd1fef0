"""What a change of the data does to the results, in words: lines for a terminal, and Markdown for GitHub."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sparkpub.record import outside
from sparkpub.record.metrics import METRICS, Metric
from sparkpub.record.text import counted
from sparkpub.review.against_base import (
    CampaignChange,
    Changes,
    ResultChange,
)

MOST_ROWS = 50
"""Rows of one table in Markdown: GitHub shows a summary of at most 1 MiB, and nobody reads more."""
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
"""ASCII punctuation: Markdown takes each of its signs as it stands behind a backslash (CommonMark, section 2.4)."""


def as_text(found: Changes) -> Iterator[str]:
    """Lines for a terminal."""
    if not found.campaigns:
        yield "no campaign differs from the base"
    for item in found.campaigns:
        yield f"{item.campaign}: {item.state}, {_runs(item)}"
        for entry in item.decisions:
            yield f"  {entry}"
    for word, findings in (("new", found.found), ("gone", found.gone)):
        for finding in findings:
            where = f"{finding.check} {finding.where}"
            yield f"{word:<5}{finding.severity:<8} {where}: {finding.message}"
    for cell in found.cells:
        yield f"{_cell_name(cell)} {cell.about['metric']}: {_shift(cell)}"
    for row in found.verdicts:
        yield f"{_comparison_name(row)} {row.about['metric']}: {_turn(row)}"
    for claim in found.claims:
        yield f"claim {claim.about['claim']}: {_judgement(claim)}"


def as_markdown(found: Changes) -> Iterator[str]:
    """Markdown for the summary of a GitHub workflow. Text from the data cannot become markup, a link or a mention."""
    yield "## What this changes"
    yield ""
    if not found.campaigns:
        yield "No campaign differs from the base."
    else:
        yield from _table(
            ["Campaign", "", "Runs", "Coverage"],
            [
                [item.campaign, item.state, _runs(item), _covered(item)]
                for item in found.campaigns
            ],
        )
    yield from _touched(found)
    decisions = [
        (item.campaign, text) for item in found.campaigns for text in item.decisions
    ]
    yield from _titled("Decisions in campaign.json", ["Campaign", "Entry"], decisions)
    for title, findings in (("New", found.found), ("Resolved", found.gone)):
        rows = [
            [finding.severity, finding.check, finding.where, finding.message]
            for finding in findings
        ]
        yield from _titled(f"{title} findings", ["", "Check", "Where", "Finding"], rows)
    primary = [cell for cell in found.cells if cell.about["primary"]]
    # What readers know already comes first.
    primary.sort(key=lambda cell: cell.before is None)
    yield from _titled(
        "Cells (primary metrics)",
        ["Cell", "Metric", "Mean and runs"],
        [[_cell_name(cell), cell.about["metric"], _shift(cell)] for cell in primary],
    )
    verdicts = [row for row in found.verdicts if row.about["primary"]]
    yield from _titled(
        "Verdicts (primary metrics)",
        ["Comparison", "Metric", "Verdict"],
        [[_comparison_name(row), row.about["metric"], _turn(row)] for row in verdicts],
    )
    yield from _titled(
        "Claims",
        ["Claim", "Verdict"],
        [[claim.about["says"], _judgement(claim)] for claim in found.claims],
    )


def _touched(found: Changes) -> Iterator[str]:
    """The records that the base has otherwise or no longer: they were published."""
    rows = []
    for item in found.campaigns:
        rows += [[run, "changed in place"] for run in item.altered]
        rows += [[run, "removed"] for run in item.removed]
    yield from _titled("Published records touched", ["Run", ""], rows)


def _runs(item: CampaignChange) -> str:
    """`12 runs, 10 counted (2 added, 1 removed)`."""
    here = item.after
    told = "no run"
    if here is not None:
        told = f"{counted(here.runs, 'run')}, {here.counted} counted"
    moved = {"added": item.added, "removed": item.removed, "changed": item.altered}
    parts = [f"{len(runs)} {word}" for word, runs in moved.items() if runs]
    if parts:
        told += f" ({', '.join(parts)})"
    return told


def _covered(item: CampaignChange) -> str:
    here = item.after
    if here is None or here.planned is None:
        return "not declared"
    return f"{here.done} of {here.planned} planned runs"


def _cell_name(cell: ResultChange) -> str:
    return "{campaign} {model}/{environment}/{workload}".format(**cell.about)


def _comparison_name(row: ResultChange) -> str:
    form = "{campaign} {model}/{workload}, {candidate} against {baseline}"
    return form.format(**row.about)


def _shift(cell: ResultChange) -> str:
    """`no value → 1,508.2 tok/s (n = 3)`."""
    name = cell.about["metric"]
    metric = METRICS.get(name)
    if metric is None:
        metric = Metric(name, cell.about["unit"], "neither", name, "")
    return f"{_mean(cell.before, metric)} → {_mean(cell.after, metric)}"


def _mean(figure: Mapping[str, Any] | None, metric: Metric) -> str:
    if figure is None:
        return "no value"
    return f"{metric.format(figure['mean'])} (n = {figure['n']})"


def _turn(row: ResultChange) -> str:
    return f"{row.before or 'not compared'} → {row.after or 'not compared'}"


def _judgement(claim: ResultChange) -> str:
    return f"{claim.before or 'no such data'} → {claim.after or 'no such data'}"


def _titled(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]
) -> Iterator[str]:
    """A table below a heading with the number of its rows; nothing where there is no row."""
    if rows:
        yield f"### {title}: {len(rows)}"
        yield ""
        yield from _table(heads, rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|" + " --- |" * len(heads)
    for row in rows[:MOST_ROWS]:
        yield f"| {' | '.join(map(escaped, row))} |"
    yield ""
    if len(rows) > MOST_ROWS:
        yield f"and {len(rows) - MOST_ROWS} more"
        yield ""


def escaped(text: str) -> str:
    """Text as GitHub's Markdown shows it in one cell of a table, whatever it says."""
    line = " ".join(outside.plain(text).split())
    return _PUNCTUATION.sub(r"\\\g<0>", line)
