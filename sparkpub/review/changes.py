"""What a change of the data does to the results: runs, coverage, findings, cells, verdicts and claims against a base.

Made for pull requests that add records. Both sides are data folders: nothing of either is run, and git is not needed.
A campaign whose files are the same on both sides cannot change a result, so it is neither reviewed nor listed.
"""

import filecmp
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from sparkpub.record import outside
from sparkpub.record.errors import ClaimError
from sparkpub.record.metrics import METRICS, Metric
from sparkpub.record.store import campaign_folders
from sparkpub.record.text import counted
from sparkpub.review.checks import Finding, Review, review
from sparkpub.review.claims import ledger
from sparkpub.review.claims.claim import Claim
from sparkpub.review.dataset import Dataset, load
from sparkpub.review.results import Results
from sparkpub.review.tables.column import TableRow

FileChange = Literal["added", "changed", "removed", "unreadable"]
_CELL = ("campaign", "model", "environment", "workload", "metric", "unit")
_COMPARISON = ("campaign", "model", "workload", "metric", "baseline", "candidate")
"""Columns that tell one row of a table from the others."""


@dataclass(frozen=True)
class CampaignCounts:
    """How much of a campaign there is on one side. `planned` and `done` are None where no matrix says it."""

    runs: int
    counted: int
    planned: int | None = None
    done: int | None = None


@dataclass(frozen=True)
class ResultChange:
    """What is not the same on both sides: what it is about, by column, and what either side shows, None where it shows
    nothing."""

    about: Mapping[str, Any]
    before: Any
    after: Any

    def document(self) -> dict[str, Any]:
        """As `sparkpub changes --json` prints it."""
        return {**self.about, "before": self.before, "after": self.after}


@dataclass(frozen=True)
class CampaignChange:
    """One campaign with a file that is not the same on both sides. Runs are named by id.

    `altered` runs are on both sides with another record: a published figure may have been changed by hand.
    `decisions` are entries of campaign.json that are new or gone: acknowledgements and quarantines, in words.
    """

    campaign: str
    state: FileChange
    before: CampaignCounts | None
    after: CampaignCounts | None
    added: tuple[str, ...]
    removed: tuple[str, ...]
    altered: tuple[str, ...]
    decisions: tuple[str, ...]


@dataclass(frozen=True)
class Changes:
    """What differs between a base and another data folder: `found` are findings that the base does not have, `gone`
    those that only it has; of `cells` mean and number of runs differ, of `verdicts` and `claims` the verdict."""

    campaigns: tuple[CampaignChange, ...]
    found: tuple[Finding, ...]
    gone: tuple[Finding, ...]
    cells: tuple[ResultChange, ...]
    verdicts: tuple[ResultChange, ...]
    claims: tuple[ResultChange, ...]

    def document(self) -> dict[str, Any]:
        """As `sparkpub changes --json` prints it."""
        findings = {"new": self.found, "gone": self.gone}
        return {
            "campaigns": [asdict(item) for item in self.campaigns],
            "findings": {
                side: [finding.document() for finding in found]
                for side, found in findings.items()
            },
            "cells": [item.document() for item in self.cells],
            "verdicts": [item.document() for item in self.verdicts],
            "claims": [item.document() for item in self.claims],
        }


@dataclass(frozen=True)
class _Side:
    """The campaigns of a folder that are not the same on the other side. `whole` are all of the folder."""

    whole: Dataset
    dataset: Dataset
    review: Review
    results: Results


def changes(base: Path, data: Path, claims: Path | None = None) -> Changes:
    """What is different in the data folder `data` from the data folder `base`; with a file of `claims`, also which of
    them get another verdict.

    Damaged records are findings. Raises UsageError where a folder is missing, MatrixError for a campaign whose matrix
    cannot be read, and ClaimError for mistakes in the file of claims.
    """
    folders = {
        folder.name for root in (base, data) for folder in campaign_folders(root)
    }
    names = sorted(name for name in folders if not _same(base / name, data / name))
    before, after = _side(base, names), _side(data, names)
    old = {_identity(finding) for finding in before.review.findings}
    new = {_identity(finding) for finding in after.review.findings}
    return Changes(
        campaigns=tuple(_campaign(name, before, after) for name in names),
        found=tuple(one for one in after.review.findings if _identity(one) not in old),
        gone=tuple(one for one in before.review.findings if _identity(one) not in new),
        cells=tuple(
            _differing(
                (before.results.cell_rows, after.results.cell_rows),
                _CELL,
                lambda row: {"n": row.n, "mean": row.mean},
            )
        ),
        verdicts=tuple(
            _differing(
                (before.results.comparison_rows, after.results.comparison_rows),
                _COMPARISON,
                attrgetter("verdict"),
            )
        ),
        claims=tuple(_judged(claims, names, before, after)),
    )


def _same(one: Path, other: Path) -> bool:
    """Whether two folders hold the same ordinary files, byte for byte."""
    if not (one.is_dir() and other.is_dir()):
        return False
    names = sorted(path.name for path in one.iterdir())
    if names != sorted(path.name for path in other.iterdir()):
        return False
    return all(filecmp.cmp(one / name, other / name, shallow=False) for name in names)


def _side(folder: Path, names: Sequence[str]) -> _Side:
    """The named campaigns of a folder. All of it is loaded, since a run may stand in two campaigns."""
    whole = load(folder, skip=lambda _: None)
    campaigns = {name: data for name, data in whole.campaigns.items() if name in names}
    dataset = Dataset(folder, campaigns, whole.damage)
    found = review(dataset)
    return _Side(whole, dataset, found, Results(found))


def _campaign(name: str, before: _Side, after: _Side) -> CampaignChange:
    sides = [side.dataset.campaigns.get(name) for side in (before, after)]
    old, new = (
        {stored.run_id: stored.sha256 for stored in data.runs} if data else {}
        for data in sides
    )
    decided, decides = _decisions(name, before), _decisions(name, after)
    state: FileChange = "changed"
    if sides[1] is None:
        is_there = (after.dataset.folder / name).is_dir()
        state = "unreadable" if is_there else "removed"
    elif sides[0] is None:
        state = "added"
    return CampaignChange(
        campaign=name,
        state=state,
        before=_counts(name, before),
        after=_counts(name, after),
        added=tuple(run for run in new if run not in old),
        removed=tuple(run for run in old if run not in new),
        altered=tuple(run for run in new if old.get(run, new[run]) != new[run]),
        decisions=(
            *(f"new: {entry}" for entry in decides if entry not in decided),
            *(f"gone: {entry}" for entry in decided if entry not in decides),
        ),
    )


def _counts(name: str, side: _Side) -> CampaignCounts | None:
    data = side.dataset.campaigns.get(name)
    if data is None:
        return None
    left_out = sum(stored.run_id in side.review.excluded for stored in data.runs)
    progress = data.planned_and_done if data.covered else (None, None)
    return CampaignCounts(len(data.runs), len(data.runs) - left_out, *progress)


def _decisions(name: str, side: _Side) -> list[str]:
    """Entries of campaign.json by which people decided something."""
    data = side.dataset.campaigns.get(name)
    if data is None:
        return []
    info = data.info
    decided = [
        f"{item.check} acknowledged for {item.cell or 'the campaign'}: {item.reason}"
        for item in info.acknowledged
    ]
    decided += [f"{item.run} quarantined: {item.reason}" for item in info.quarantined]
    if info.ended is not None:
        decided.append(f"ended before every planned run was done: {info.ended}")
    return decided


_identity = attrgetter("check", "severity", "campaign", "cell", "run", "message")
"""What makes two findings the same; evidence may name other files."""


def _differing(
    sides: Sequence[Iterable[TableRow]],
    columns: Sequence[str],
    shown: Callable[[TableRow], Any],
) -> Iterator[ResultChange]:
    """Rows of which the sides do not show the same, in the order of the second, then those that only the first has."""
    old, new = ({attrgetter(*columns)(row): row for row in side} for side in sides)
    for name in dict.fromkeys((*new, *old)):
        before, after = (
            shown(side[name]) if name in side else None for side in (old, new)
        )
        if before != after:
            about = dict(zip(columns, name, strict=True))
            row = new[name] if name in new else old[name]
            about["primary"] = row.family == "primary"
            yield ResultChange(about, before, after)


def _judged(
    file: Path | None, names: Sequence[str], before: _Side, after: _Side
) -> Iterator[ResultChange]:
    """The claims about a campaign that differs, as far as their verdict differs too. Both sides are asked the same."""
    asked = [] if file is None else ledger.read(file)
    asked = [one for one in asked if {one.campaign, *one.repeated_in} & set(names)]
    if not asked:
        return
    # A claim may rest on further campaigns, which are the same on both sides.
    reviews = review(before.whole), review(after.whole)
    for claim in asked:
        verdicts = [_verdict(claim, found) for found in reviews]
        old, new = (found and found.verdict for found in verdicts)
        if old != new:
            says = next(found.says for found in reversed(verdicts) if found)
            yield ResultChange({"claim": claim.id, "says": says}, old, new)


def _verdict(claim: Claim, found: Review) -> ledger.Verdict | None:
    """The verdict on a claim; None where the data lack what it names."""
    try:
        (verdict,) = ledger.judge([claim], found)
    except ClaimError:
        return None
    return verdict


# -- in words ------------------------------------------------------------------------------------------------------

MOST_ROWS = 50
"""Rows of one table in Markdown: GitHub shows a summary of at most 1 MiB, and nobody reads more."""
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
"""ASCII punctuation: Markdown takes each of its signs as it stands behind a backslash (CommonMark, section 2.4)."""
_Section = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""A table: title, headings, rows."""


def as_text(found: Changes) -> Iterator[str]:
    """Lines for a terminal."""
    if not found.campaigns:
        yield "no campaign differs from the base"
    for title, _, rows in _sections(found, primary=False):
        yield f"{title}: {len(rows)}"
        for row in rows:
            yield "  " + "  ".join(filter(None, row))


def as_markdown(found: Changes) -> Iterator[str]:
    """Markdown for the summary of a GitHub workflow, of the primary metrics. Text from the data cannot become markup, a
    link or a mention."""
    yield "## What this changes"
    yield ""
    if not found.campaigns:
        yield "No campaign differs from the base."
    for title, heads, rows in _sections(found, primary=True):
        yield f"### {title}: {len(rows)}"
        yield ""
        yield f"| {' | '.join(heads)} |"
        yield "|" + " --- |" * len(heads)
        for row in rows[:MOST_ROWS]:
            yield f"| {' | '.join(map(escaped, row))} |"
        yield ""
        if len(rows) > MOST_ROWS:
            yield f"and {len(rows) - MOST_ROWS} more"
            yield ""


def _sections(found: Changes, *, primary: bool) -> Iterator[_Section]:
    """The tables that have rows, of all metrics or the primary ones. Of cells, those that readers know come first."""
    cells, verdicts = (
        [row for row in rows if row.about["primary"] or not primary]
        for rows in (found.cells, found.verdicts)
    )
    cells.sort(key=lambda cell: cell.before is None)
    which = " (primary metrics)" if primary else ""
    sections: list[_Section] = [
        (
            "Campaigns",
            ("Campaign", "", "Runs", "Coverage"),
            [
                (item.campaign, item.state, _runs(item), _covered(item))
                for item in found.campaigns
            ],
        ),
        ("Published records touched", ("Run", ""), list(_touched(found))),
        (
            "Decisions in campaign.json",
            ("Campaign", "Entry"),
            [
                (item.campaign, one)
                for item in found.campaigns
                for one in item.decisions
            ],
        ),
        ("New findings", _FINDING, list(map(_finding, found.found))),
        ("Resolved findings", _FINDING, list(map(_finding, found.gone))),
        (
            f"Cells{which}",
            ("Cell", "Metric", "Mean and runs"),
            list(map(_shift, cells)),
        ),
        (
            f"Verdicts{which}",
            ("Comparison", "Metric", "Verdict"),
            list(map(_turn, verdicts)),
        ),
        (
            "Claims",
            ("Claim", "Verdict"),
            [
                (claim.about["says"], _arrow(claim, "no such data"))
                for claim in found.claims
            ],
        ),
    ]
    return (section for section in sections if section[2])


_FINDING = ("", "Check", "Where", "Finding")


def _finding(finding: Finding) -> tuple[str, ...]:
    return finding.severity, finding.check, finding.where, finding.message


def _touched(found: Changes) -> Iterator[tuple[str, str]]:
    """The records that the base has otherwise or no longer: they were published."""
    for item in found.campaigns:
        yield from ((run, "changed in place") for run in item.altered)
        yield from ((run, "removed") for run in item.removed)


def _runs(item: CampaignChange) -> str:
    """`12 runs, 10 counted (2 added, 1 removed)`."""
    told = "no run"
    if item.after is not None:
        told = f"{counted(item.after.runs, 'run')}, {item.after.counted} counted"
    moved = {"added": item.added, "removed": item.removed, "changed": item.altered}
    parts = [f"{len(runs)} {word}" for word, runs in moved.items() if runs]
    return f"{told} ({', '.join(parts)})" if parts else told


def _covered(item: CampaignChange) -> str:
    if item.after is None or item.after.planned is None:
        return "not declared"
    return f"{item.after.done} of {item.after.planned} planned runs"


def _shift(cell: ResultChange) -> tuple[str, ...]:
    """A cell and its metric with `no value → 1,508.2 tok/s (n = 3)`."""
    name = "{campaign} {model}/{environment}/{workload}".format(**cell.about)
    metric = cell.about["metric"]
    known = METRICS.get(metric) or Metric(
        metric, cell.about["unit"], "neither", metric, ""
    )
    shown = partial(_mean, known)
    return name, metric, f"{shown(cell.before)} → {shown(cell.after)}"


def _mean(metric: Metric, figure: Mapping[str, Any] | None) -> str:
    if figure is None:
        return "no value"
    return f"{metric.format(figure['mean'])} (n = {figure['n']})"


def _turn(row: ResultChange) -> tuple[str, ...]:
    name = "{campaign} {model}/{workload}, {candidate} against {baseline}"
    turn = _arrow(row, "not compared")
    return name.format(**row.about), row.about["metric"], turn


def _arrow(change: ResultChange, nothing: str) -> str:
    return f"{change.before or nothing} → {change.after or nothing}"


def escaped(text: str) -> str:
    """Text as GitHub's Markdown shows it in one cell of a table, whatever it says."""
    line = " ".join(outside.plain(text).split())
    return _PUNCTUATION.sub(r"\\\g<0>", line)
