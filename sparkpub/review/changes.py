"""What a change of the data does to the results: runs, coverage, findings, cells, verdicts and claims against a base.

Made for pull requests that add records. Both sides are data folders: nothing of either is run, and git is not needed.
A campaign whose files are the same on both sides cannot change a result, so it is neither reviewed nor listed.
"""

import filecmp
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any

from sparkpub.record import outside
from sparkpub.record.errors import ClaimError
from sparkpub.record.metrics import metric_called
from sparkpub.record.store import campaign_folders
from sparkpub.record.text import counted
from sparkpub.review.checks import Finding, Review, review
from sparkpub.review.claims import ledger
from sparkpub.review.dataset import CampaignData, Dataset, load
from sparkpub.review.results import Results
from sparkpub.review.tables.column import TableRow

ChangeDocument = Mapping[Any, Any]
_CELL = ("campaign", "model", "environment", "workload", "metric", "unit")
_COMPARISON = ("campaign", "model", "workload", "metric", "baseline", "candidate")
"""Columns that tell one row of a table from the others."""
_FINDING = attrgetter("check", "severity", "campaign", "cell", "run", "message")
"""What makes two findings the same; evidence may name other files."""


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
    folders = [*campaign_folders(base), *campaign_folders(data)]
    names = sorted({folder.name for folder in folders})
    names = [name for name in names if not _same(base / name, data / name)]
    # All of a folder is loaded, since a run may stand in two campaigns.
    wholes = [load(folder, skip=lambda _: None) for folder in (base, data)]
    reviews = []
    for folder, whole in zip((base, data), wholes, strict=True):
        mine = {name: one for name, one in whole.campaigns.items() if name in names}
        reviews.append(review(Dataset(folder, mine, whole.damage)))
    results = [Results(each) for each in reviews]
    findings = _differing(
        *({_FINDING(one): one for one in each.findings} for each in reviews)
    )
    return {
        "campaigns": [_campaign(name, reviews) for name in names],
        "findings": {
            "new": [new.document() for _, old, new in findings if old is None],
            "gone": [old.document() for _, old, new in findings if new is None],
        },
        "cells": _rows(
            _CELL,
            [each.cell_rows for each in results],
            lambda row: {"n": row.n, "mean": row.mean},
        ),
        "verdicts": _rows(
            _COMPARISON,
            [each.comparison_rows for each in results],
            attrgetter("verdict"),
        ),
        "claims": _judged(claims, names, wholes) if claims else [],
    }


def _same(one: Path, other: Path) -> bool:
    """Whether two folders hold the same ordinary files, byte for byte."""
    if not (one.is_dir() and other.is_dir()):
        return False
    names, others = ({path.name for path in each.iterdir()} for each in (one, other))
    same, _, _ = filecmp.cmpfiles(one, other, names, shallow=False)
    return names == others == set(same)


def _differing(old: ChangeDocument, new: ChangeDocument) -> list[tuple[Any, Any, Any]]:
    """What is not the same on both sides, as it is on either: in the order of the second, then what only the first
    has."""
    found = [(key, old.get(key), new.get(key)) for key in {**new, **old}]
    return [(key, before, after) for key, before, after in found if before != after]


def _rows(
    columns: Sequence[str],
    sides: Iterable[Iterable[TableRow]],
    shown: Callable[[TableRow], Any],
) -> list[ChangeDocument]:
    """The rows of a table of which the sides do not show the same."""
    of_sides = (
        {
            (*attrgetter(*columns)(row), row.family == "primary"): shown(row)
            for row in side
        }
        for side in sides
    )
    names = (*columns, "primary")
    return [
        {**dict(zip(names, about, strict=True)), "before": before, "after": after}
        for about, before, after in _differing(*of_sides)
    ]


def _campaign(name: str, reviews: Sequence[Review]) -> ChangeDocument:
    datas = [found.dataset.campaigns.get(name) for found in reviews]
    stored = ([] if data is None else data.runs for data in datas)
    runs = _differing(*({run.run_id: run.sha256 for run in side} for side in stored))
    decisions = _differing(*(dict.fromkeys(_decisions(data), True) for data in datas))
    had, has = map(_counts, datas, reviews)
    state = "changed" if had else "added"
    if has is None:
        is_there = (reviews[1].dataset.folder / name).is_dir()
        state = "unreadable" if is_there else "removed"
    return {
        "campaign": name,
        "state": state,
        "before": had,
        "after": has,
        "added": [run for run, before, _ in runs if before is None],
        "removed": [run for run, _, after in runs if after is None],
        "altered": [run for run, before, after in runs if before and after],
        "decisions": [
            f"{'new' if is_new else 'gone'}: {entry}" for entry, _, is_new in decisions
        ],
    }


def _counts(data: CampaignData | None, found: Review) -> ChangeDocument | None:
    """How much there is of a campaign: `planned` and `done` are None where no matrix says it."""
    if data is None:
        return None
    planned, done = data.planned_and_done if data.covered else (None, None)
    good = sum(run.run_id not in found.excluded for run in data.runs)
    return {"runs": len(data.runs), "counted": good, "planned": planned, "done": done}


def _decisions(data: CampaignData | None) -> Iterator[str]:
    """What people decided in campaign.json."""
    if data is None:
        return
    for item in data.info.acknowledged:
        where = item.cell or "the campaign"
        yield f"{item.check} acknowledged for {where}: {item.reason}"
    for out in data.info.quarantined:
        yield f"{out.run} quarantined: {out.reason}"
    if data.info.ended is not None:
        yield f"ended before every planned run was done: {data.info.ended}"


def _judged(
    file: Path, names: Sequence[str], wholes: Sequence[Dataset]
) -> list[ChangeDocument]:
    """The claims about a campaign that differs, as far as their verdict differs too. Both sides are asked the same;
    a claim may rest on further campaigns, which are the same on both."""
    asked = ledger.read(file)
    asked = [one for one in asked if {one.campaign, *one.repeated_in} & set(names)]
    says: dict[str, str] = {}
    sides: list[dict[str, str]] = [{}, {}]
    for whole, verdicts in zip(wholes if asked else (), sides, strict=False):
        found = review(whole)
        for claim in asked:
            with suppress(ClaimError):  # the data lack what it names
                (told,) = ledger.judge([claim], found)
                says[claim.id], verdicts[claim.id] = told.says, told.verdict
    return [
        {"claim": name, "says": says[name], "before": before, "after": after}
        for name, before, after in _differing(*sides)
    ]


# -- in words ------------------------------------------------------------------------------------------------------

MOST_ROWS = 50
"""Rows of one table in Markdown: GitHub shows a summary of at most 1 MiB, and nobody reads more."""
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
"""ASCII punctuation: Markdown takes each of its signs as it stands behind a backslash (CommonMark, section 2.4)."""


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
    yield from ("## What this changes", "")
    if not found["campaigns"]:
        yield "No campaign differs from the base."
    for title, heads, rows in _sections(found, primary=True):
        yield from (f"### {title}: {len(rows)}", "")
        escaped_rows = [[*map(escaped, row)] for row in rows[:MOST_ROWS]]
        for line in (heads, ["---"] * len(heads), *escaped_rows):
            yield f"| {' | '.join(line)} |"
        yield ""
        if len(rows) > MOST_ROWS:
            yield from (f"and {len(rows) - MOST_ROWS} more", "")


def _sections(found: ChangeDocument, *, primary: bool) -> Iterator[tuple[Any, ...]]:
    """The tables that have rows, of all metrics or the primary ones: title, headings and rows. Of cells, those that
    readers know come first."""
    campaigns, findings = found["campaigns"], found["findings"]
    which = " (primary metrics)" if primary else ""
    about_finding = ("", "Check", "Where", "Finding")
    touched = {"altered": "changed in place", "removed": "removed"}
    cells, verdicts = (
        [row for row in found[name] if row["primary"] or not primary]
        for name in ("cells", "verdicts")
    )
    cells.sort(key=lambda cell: cell["before"] is None)
    headings = {
        "Campaigns": ("Campaign", "", "Runs", "Coverage"),
        "Published records touched": ("Run", ""),
        "Decisions in campaign.json": ("Campaign", "Entry"),
        "New findings": about_finding,
        "Resolved findings": about_finding,
        f"Cells{which}": ("Cell", "Metric", "Mean and runs"),
        f"Verdicts{which}": ("Comparison", "Metric", "Verdict"),
        "Claims": ("Claim", "Verdict"),
    }
    rows = (
        [
            (one["campaign"], one["state"], _runs(one), _covered(one))
            for one in campaigns
        ],
        [
            (run, how)
            for one in campaigns
            for name, how in touched.items()
            for run in one[name]
        ],
        [(one["campaign"], entry) for one in campaigns for entry in one["decisions"]],
        [*map(_told, findings["new"])],
        [*map(_told, findings["gone"])],
        [*map(_cell, cells)],
        [*map(_comparison, verdicts)],
        [(one["says"], _arrow(one, "no such data")) for one in found["claims"]],
    )
    for (title, heads), lines in zip(headings.items(), rows, strict=True):
        if lines:
            yield title, heads, lines


def _told(finding: ChangeDocument) -> Sequence[str]:
    found = Finding(**finding)
    return found.severity, found.check, found.where, found.message


def _runs(item: ChangeDocument) -> str:
    """`12 runs, 10 counted (2 added, 1 removed)`."""
    told = "no run"
    if item["after"] is not None:
        told = f"{counted(item['after']['runs'], 'run')}, {item['after']['counted']} counted"
    moved = {"added": "added", "removed": "removed", "altered": "changed"}
    parts = [f"{len(item[name])} {word}" for name, word in moved.items() if item[name]]
    return f"{told} ({', '.join(parts)})" if parts else told


def _covered(item: ChangeDocument) -> str:
    if item["after"] is None or item["after"]["planned"] is None:
        return "not declared"
    return "{done} of {planned} planned runs".format(**item["after"])


def _cell(row: ChangeDocument) -> Sequence[str]:
    """A cell and its metric with `no value → 1,508.2 tok/s (n = 3)`."""
    metric = metric_called(row["metric"], row["unit"])
    shown = [
        f"{metric.format(figure['mean'])} (n = {figure['n']})" if figure else "no value"
        for figure in (row["before"], row["after"])
    ]
    where = "{campaign} {model}/{environment}/{workload}".format(**row)
    return where, metric.name, " → ".join(shown)


def _comparison(row: ChangeDocument) -> Sequence[str]:
    where = "{campaign} {model}/{workload}, {candidate} against {baseline}"
    return where.format(**row), row["metric"], _arrow(row, "not compared")


def _arrow(change: ChangeDocument, nothing: str) -> str:
    return f"{change['before'] or nothing} → {change['after'] or nothing}"


def escaped(text: str) -> str:
    """Text as GitHub's Markdown shows it in one cell of a table, whatever it says."""
    line = " ".join(outside.plain(text).split())
    return _PUNCTUATION.sub(r"\\\g<0>", line)
