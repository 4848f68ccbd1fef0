"""What a change of the data does to the results: runs, coverage, findings, cells, verdicts and claims against a base.

Made for pull requests that add records. Both sides are data folders: nothing of either is run, and git is not needed.
A campaign whose files are the same on both sides cannot change a result, so it is neither reviewed nor listed.
"""

import filecmp
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sparkpub.record import outside
from sparkpub.record.errors import ClaimError
from sparkpub.record.metrics import metric_called
from sparkpub.record.store import campaign_folders
from sparkpub.record.text import counted
from sparkpub.review.checks import Review, review
from sparkpub.review.claims import ledger
from sparkpub.review.claims.claim import Claim
from sparkpub.review.dataset import Dataset, load
from sparkpub.review.results import Results

ChangedRow = Mapping[str, Any]
"""What a row is about, by column, and what either side shows in `before` and `after`: None where it shows nothing."""
Shown = dict[tuple[str, ...], str]
"""What a side shows of something, by what it is about."""
MOST_ROWS = 50
"""Rows of one table in Markdown: GitHub shows a summary of at most 1 MiB, and nobody reads more."""
_COLUMNS = {
    "campaigns": ("campaign",),
    "runs": ("campaign", "run"),
    "decisions": ("campaign", "entry"),
    "findings": ("campaign", "where", "check", "message"),
    "cells": ("campaign", "cell", "metric", "family"),
    "verdicts": ("campaign", "comparison", "metric", "family"),
    "claims": ("claim",),
}
"""The tables, and what their rows are about."""
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
"""ASCII punctuation: Markdown takes each of its signs as it stands behind a backslash (CommonMark, section 2.4)."""


def changes(
    base: Path, data: Path, claims: Path | None = None
) -> dict[str, list[ChangedRow]]:
    """What is different in the data folder `data` from the data folder `base`, as `sparkpub changes --json` prints it:
    the rows of each table that are not the same on both sides. With a file of `claims` these are among them.

    A run that is on both sides with another record may be a published figure that was changed by hand. Damaged records
    are findings.

    Raises UsageError where a folder is missing, MatrixError for a campaign whose matrix cannot be read, and ClaimError
    for mistakes in the file of claims.
    """
    folders = [*campaign_folders(base), *campaign_folders(data)]
    names = sorted({folder.name for folder in folders})
    names = [name for name in names if not _same(base / name, data / name)]
    asked = ledger.read(claims) if claims else []
    asked = [one for one in asked if {one.campaign, *one.repeated_in} & set(names)]
    sides = []
    for folder in (base, data):
        # All of a folder is loaded, since a run may stand in two campaigns.
        whole = load(folder, skip=lambda _: None)
        mine = {name: one for name, one in whole.campaigns.items() if name in names}
        found = review(Dataset(folder, mine, whole.damage))
        side = _shown(found)
        # A claim may rest on further campaigns, which are the same on both sides.
        side["claims"] = _judged(asked, whole)
        sides.append(side)
    old, new = sides
    return {
        table: _differing(columns, old[table], new[table])
        for table, columns in _COLUMNS.items()
    }


def _same(one: Path, other: Path) -> bool:
    """Whether two folders hold the same ordinary files, byte for byte."""
    if not (one.is_dir() and other.is_dir()):
        return False
    names, others = ({path.name for path in each.iterdir()} for each in (one, other))
    same, _, _ = filecmp.cmpfiles(one, other, names, shallow=False)
    return names == others == set(same)


def _differing(columns: Sequence[str], old: Shown, new: Shown) -> list[ChangedRow]:
    """What is not the same on both sides: first what the old one has, which readers know."""
    found: list[ChangedRow] = []
    for about in {**old, **new}:
        before, after = old.get(about), new.get(about)
        if before != after:
            row = dict(zip(columns, about, strict=True))
            found.append(row | {"before": before, "after": after})
    return found


# -- what a side shows -------------------------------------------------------------------------------------------


def _shown(found: Review) -> dict[str, Shown]:
    """Every table but that of claims."""
    data, results = found.dataset, Results(found)
    shown: dict[str, Shown] = {name: {} for name in _COLUMNS}
    shown["campaigns"] = {(name,): "cannot be read" for name in data.damage}
    for name, campaign in data.campaigns.items():
        good = sum(run.run_id not in found.excluded for run in campaign.runs)
        told = f"{counted(len(campaign.runs), 'run')}, {good} counted"
        if campaign.covered:
            told += f", {campaign.progress}"
        shown["campaigns"][name,] = told
        for run in campaign.runs:
            shown["runs"][name, run.run_id] = f"record {run.sha256[:12]}"
        info = campaign.info
        decisions = [
            f"{item.check} acknowledged for {item.cell or 'the campaign'}: {item.reason}"
            for item in info.acknowledged
        ]
        decisions += [
            f"{out.run} quarantined: {out.reason}" for out in info.quarantined
        ]
        if info.ended is not None:
            decisions.append(f"ended before every planned run was done: {info.ended}")
        shown["decisions"] |= {(name, entry): "decided" for entry in decisions}
    for item in found.findings:
        about = (item.campaign, item.where, item.check, item.message)
        shown["findings"][about] = item.severity
    for row in results.cell_rows:
        metric = metric_called(row.metric, row.unit)
        about = (row.campaign, "/".join(row.cell), row.metric, row.family)
        shown["cells"][about] = f"{metric.format(row.mean)} (n = {row.n})"
    for row in results.comparison_rows:
        sides = f"{row.model}/{row.workload}, {row.candidate} against {row.baseline}"
        about = (row.campaign, sides, row.metric, row.family)
        shown["verdicts"][about] = row.verdict
    return shown


def _judged(asked: Sequence[Claim], whole: Dataset) -> Shown:
    """The verdicts on claims."""
    verdicts: Shown = {}
    if not asked:
        return verdicts
    found = review(whole)
    for claim in asked:
        with suppress(ClaimError):  # the data lack what it names
            (told,) = ledger.judge([claim], found)
            verdicts[told.says,] = told.verdict
    return verdicts


# -- in words ------------------------------------------------------------------------------------------------------


def as_text(found: Mapping[str, Sequence[ChangedRow]]) -> Iterator[str]:
    """Lines for a terminal."""
    if not found["campaigns"]:
        yield "no campaign differs from the base"
    for table, rows in found.items():
        if rows:
            yield f"{table.capitalize()}: {len(rows)}"
        for row in rows:
            yield "  " + "  ".join(_texts(row))


def as_markdown(found: Mapping[str, Sequence[ChangedRow]]) -> Iterator[str]:
    """Markdown for the summary of a GitHub workflow, of the primary metrics. Text from the data cannot become markup, a
    link or a mention."""
    yield from ("## What this changes", "")
    if not found["campaigns"]:
        yield "No campaign differs from the base."
    for table, every in found.items():
        rows = [row for row in every if row.get("family") != "secondary"]
        if not rows:
            continue
        heads = (*_COLUMNS[table], "change")
        yield from (f"### {table.capitalize()}: {len(rows)}", "")
        yield f"| {' | '.join(heads)} |"
        yield "|" + " --- |" * len(heads)
        for row in rows[:MOST_ROWS]:
            yield f"| {' | '.join(map(escaped, _texts(row)))} |"
        yield ""
        if len(rows) > MOST_ROWS:
            yield from (f"and {len(rows) - MOST_ROWS} more", "")


def _texts(row: ChangedRow) -> list[str]:
    """What a row is about, and what changed: `80.0 tok/s (n = 6) → 80.5 tok/s (n = 2)`, `new: …`, `gone: …`."""
    *about, before, after = row.values()
    if before is None:
        return [*about, f"new: {after}"]
    if after is None:
        return [*about, f"gone: {before}"]
    return [*about, f"{before} → {after}"]


def escaped(text: str) -> str:
    """Text as GitHub's Markdown shows it in one cell of a table, whatever it says."""
    line = " ".join(outside.plain(text).split())
    return _PUNCTUATION.sub(r"\\\g<0>", line)
