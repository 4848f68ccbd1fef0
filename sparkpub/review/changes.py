"""What a change of the data does to the results: runs, coverage, findings, cells, verdicts and claims against a base.

Made for pull requests that add records. Both sides are data folders: nothing of either is run, and git is not needed.
A campaign whose files are the same on both sides cannot change a result, so it is neither reviewed nor listed.
"""

import filecmp
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from sparkpub.record import outside
from sparkpub.record.errors import ClaimError
from sparkpub.record.metrics import METRICS, Metric
from sparkpub.record.store import campaign_folders
from sparkpub.record.text import counted
from sparkpub.review.checks import Finding, Review, review
from sparkpub.review.claims import ledger
from sparkpub.review.dataset import Dataset, load
from sparkpub.review.results import Results
from sparkpub.review.tables.column import TableRow

ChangeDocument = Mapping[str, Any]
_CELL = ("campaign", "model", "environment", "workload", "metric", "unit")
_COMPARISON = ("campaign", "model", "workload", "metric", "baseline", "candidate")
"""Columns that tell one row of a table from the others."""
_FINDING = attrgetter("check", "severity", "campaign", "cell", "run", "message")
"""What makes two findings the same; evidence may name other files."""


class _Side(NamedTuple):
    """The campaigns of a folder that are not the same on the other side. `whole` are all of the folder."""

    whole: Dataset
    review: Review
    results: Results


def changes(base: Path, data: Path, claims: Path | None = None) -> ChangeDocument:
    """What is different in the data folder `data` from the data folder `base`, as `sparkpub changes --json` prints it;
    with a file of `claims`, also which of them get another verdict.

    - `campaigns` that are not the same on both sides, with their `state` (added, changed, removed or unreadable), runs
      by id and `decisions`: acknowledgements and quarantines that are new or gone. `altered` runs are on both sides
      with another record: a published figure may have been changed by hand.
    - `findings` that are `new` or `gone`. Damaged records are findings.
    - `cells`, `verdicts` and `claims` with what either side shows, null where it shows nothing.

    Raises UsageError where a folder is missing, MatrixError for a campaign whose matrix cannot be read, and ClaimError
    for mistakes in the file of claims.
    """
    folders = {
        folder.name for root in (base, data) for folder in campaign_folders(root)
    }
    names = sorted(name for name in folders if not _same(base / name, data / name))
    sides = _side(base, names), _side(data, names)
    return {
        "campaigns": [_campaign(name, *sides) for name in names],
        "findings": {
            "new": _findings(sides[1], without=sides[0]),
            "gone": _findings(sides[0], without=sides[1]),
        },
        "cells": list(
            _differing(
                [side.results.cell_rows for side in sides],
                _CELL,
                lambda row: {"n": row.n, "mean": row.mean},
            )
        ),
        "verdicts": list(
            _differing(
                [side.results.comparison_rows for side in sides],
                _COMPARISON,
                attrgetter("verdict"),
            )
        ),
        "claims": list(_judged(claims, names, sides)),
    }


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
    found = review(Dataset(folder, campaigns, whole.damage))
    return _Side(whole, found, Results(found))


def _campaign(name: str, before: _Side, after: _Side) -> ChangeDocument:
    (old, decided, had), (new, decides, has) = (
        _about(name, side) for side in (before, after)
    )
    state = "changed" if had else "added"
    if has is None:
        is_there = (after.whole.folder / name).is_dir()
        state = "unreadable" if is_there else "removed"
    return {
        "campaign": name,
        "state": state,
        "before": had,
        "after": has,
        "added": [run for run in new if run not in old],
        "removed": [run for run in old if run not in new],
        "altered": [run for run in new if old.get(run, new[run]) != new[run]],
        "decisions": [
            *(f"new: {entry}" for entry in decides if entry not in decided),
            *(f"gone: {entry}" for entry in decided if entry not in decides),
        ],
    }


def _about(
    name: str, side: _Side
) -> tuple[dict[str, str], list[str], dict[str, int | None] | None]:
    """The runs of a campaign with their checksums, what people decided in campaign.json, and how much there is of it:
    `planned` and `done` are None where no matrix says it. Nothing where the side lacks the campaign."""
    data = side.whole.campaigns.get(name)
    if data is None:
        return {}, [], None
    info, out = data.info, side.review.excluded
    decided = [
        f"{item.check} acknowledged for {item.cell or 'the campaign'}: {item.reason}"
        for item in info.acknowledged
    ]
    decided += [f"{item.run} quarantined: {item.reason}" for item in info.quarantined]
    if info.ended is not None:
        decided.append(f"ended before every planned run was done: {info.ended}")
    planned, done = data.planned_and_done if data.covered else (None, None)
    counts = {
        "runs": len(data.runs),
        "counted": sum(stored.run_id not in out for stored in data.runs),
        "planned": planned,
        "done": done,
    }
    return {stored.run_id: stored.sha256 for stored in data.runs}, decided, counts


def _findings(side: _Side, *, without: _Side) -> list[ChangeDocument]:
    """What a side finds and the other does not."""
    known = set(map(_FINDING, without.review.findings))
    return [
        one.document() for one in side.review.findings if _FINDING(one) not in known
    ]


def _differing(
    sides: Iterable[Iterable[TableRow]],
    columns: Sequence[str],
    shown: Callable[[TableRow], Any],
) -> Iterator[ChangeDocument]:
    """Rows of which the sides do not show the same, in the order of the second, then those that only the first has."""
    old, new = ({attrgetter(*columns)(row): row for row in side} for side in sides)
    for name in dict.fromkeys((*new, *old)):
        row = new[name] if name in new else old[name]
        before, after = (
            shown(side[name]) if name in side else None for side in (old, new)
        )
        if before != after:
            about = dict(zip(columns, name, strict=True))
            about["primary"] = row.family == "primary"
            yield {**about, "before": before, "after": after}


def _judged(
    file: Path | None, names: Sequence[str], sides: Sequence[_Side]
) -> Iterator[ChangeDocument]:
    """The claims about a campaign that differs, as far as their verdict differs too. Both sides are asked the same."""
    asked = [] if file is None else ledger.read(file)
    asked = [one for one in asked if {one.campaign, *one.repeated_in} & set(names)]
    # A claim may rest on further campaigns, which are the same on both sides.
    reviews = [review(side.whole) for side in sides] if asked else []
    for claim in asked:
        verdicts: list[str | None] = []
        says = ""
        for found in reviews:
            try:
                (told,) = ledger.judge([claim], found)
            except ClaimError:  # the data lack what it names
                verdicts.append(None)
            else:
                verdicts.append(told.verdict)
                says = told.says
        old, new = verdicts
        if old != new:
            yield {"claim": claim.id, "says": says, "before": old, "after": new}


# -- in words ------------------------------------------------------------------------------------------------------

MOST_ROWS = 50
"""Rows of one table in Markdown: GitHub shows a summary of at most 1 MiB, and nobody reads more."""
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
"""ASCII punctuation: Markdown takes each of its signs as it stands behind a backslash (CommonMark, section 2.4)."""
_Section = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""A table: title, headings, rows."""


def as_text(found: ChangeDocument) -> Iterator[str]:
    """Lines for a terminal."""
    if not found["campaigns"]:
        yield "no campaign differs from the base"
    for title, _, rows in _sections(found, primary=False):
        yield f"{title}: {len(rows)}"
        for row in rows:
            yield "  " + "  ".join(filter(None, row))


def as_markdown(found: ChangeDocument) -> Iterator[str]:
    """Markdown for the summary of a GitHub workflow, of the primary metrics. Text from the data cannot become markup, a
    link or a mention."""
    yield "## What this changes"
    yield ""
    if not found["campaigns"]:
        yield "No campaign differs from the base."
    for title, heads, rows in _sections(found, primary=True):
        lines = [heads, ["---"] * len(heads), *(map(escaped, row) for row in rows)]
        yield f"### {title}: {len(rows)}"
        yield ""
        yield from (f"| {' | '.join(line)} |" for line in lines[: MOST_ROWS + 2])
        yield ""
        if len(rows) > MOST_ROWS:
            yield f"and {len(rows) - MOST_ROWS} more"
            yield ""


def _sections(found: ChangeDocument, *, primary: bool) -> Iterator[_Section]:
    """The tables that have rows, of all metrics or the primary ones. Of cells, those that readers know come first."""
    campaigns = found["campaigns"]
    cells, verdicts = (
        [row for row in found[name] if row["primary"] or not primary]
        for name in ("cells", "verdicts")
    )
    cells.sort(key=lambda cell: cell["before"] is None)
    which = " (primary metrics)" if primary else ""
    finding = ("", "Check", "Where", "Finding")
    sections: list[_Section] = [
        (
            "Campaigns",
            ("Campaign", "", "Runs", "Coverage"),
            [
                (item["campaign"], item["state"], _runs(item), _covered(item))
                for item in campaigns
            ],
        ),
        (
            "Published records touched",
            ("Run", ""),
            [
                (run, how)
                for item in campaigns
                for name, how in (
                    ("altered", "changed in place"),
                    ("removed", "removed"),
                )
                for run in item[name]
            ],
        ),
        (
            "Decisions in campaign.json",
            ("Campaign", "Entry"),
            [
                (item["campaign"], one)
                for item in campaigns
                for one in item["decisions"]
            ],
        ),
        ("New findings", finding, _told(found["findings"]["new"])),
        ("Resolved findings", finding, _told(found["findings"]["gone"])),
        (f"Cells{which}", ("Cell", "Metric", "Mean and runs"), list(map(_cell, cells))),
        (
            f"Verdicts{which}",
            ("Comparison", "Metric", "Verdict"),
            [
                (
                    "{campaign} {model}/{workload}, {candidate} against {baseline}".format(
                        **row
                    ),
                    row["metric"],
                    _arrow(row, "not compared"),
                )
                for row in verdicts
            ],
        ),
        (
            "Claims",
            ("Claim", "Verdict"),
            [
                (claim["says"], _arrow(claim, "no such data"))
                for claim in found["claims"]
            ],
        ),
    ]
    return (section for section in sections if section[2])


def _told(findings: Iterable[ChangeDocument]) -> list[Sequence[str]]:
    found = [Finding(**one) for one in findings]
    return [(one.severity, one.check, one.where, one.message) for one in found]


def _runs(item: ChangeDocument) -> str:
    """`12 runs, 10 counted (2 added, 1 removed)`."""
    told = "no run"
    if item["after"] is not None:
        runs, good = item["after"]["runs"], item["after"]["counted"]
        told = f"{counted(runs, 'run')}, {good} counted"
    moved = {"added": "added", "removed": "removed", "altered": "changed"}
    parts = [f"{len(item[name])} {word}" for name, word in moved.items() if item[name]]
    return f"{told} ({', '.join(parts)})" if parts else told


def _covered(item: ChangeDocument) -> str:
    if item["after"] is None or item["after"]["planned"] is None:
        return "not declared"
    return "{done} of {planned} planned runs".format(**item["after"])


def _cell(row: ChangeDocument) -> tuple[str, ...]:
    """A cell and its metric with `no value → 1,508.2 tok/s (n = 3)`."""
    name = row["metric"]
    metric = METRICS.get(name) or Metric(name, row["unit"], "neither", name, "")
    shown = [
        f"{metric.format(figure['mean'])} (n = {figure['n']})" if figure else "no value"
        for figure in (row["before"], row["after"])
    ]
    where = "{campaign} {model}/{environment}/{workload}".format(**row)
    return where, name, " → ".join(shown)


def _arrow(change: ChangeDocument, nothing: str) -> str:
    return f"{change['before'] or nothing} → {change['after'] or nothing}"


def escaped(text: str) -> str:
    """Text as GitHub's Markdown shows it in one cell of a table, whatever it says."""
    line = " ".join(outside.plain(text).split())
    return _PUNCTUATION.sub(r"\\\g<0>", line)
