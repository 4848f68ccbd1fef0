"""What a change of the data does to the results: runs, coverage, findings, cells, verdicts and claims against a base.

Made for pull requests that add records. Both sides are data folders: nothing of either is run, and git is not needed.
Each is reviewed whole, since a run or a claim may concern several campaigns; what both show is not listed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sparkpub.record import outside
from sparkpub.record.errors import ClaimError
from sparkpub.record.metrics import metric_called
from sparkpub.record.text import counted
from sparkpub.review.checks import Review, review
from sparkpub.review.claims import ledger
from sparkpub.review.claims.claim import Claim
from sparkpub.review.dataset import CampaignData, load
from sparkpub.review.results import Results

ChangedRow = Mapping[str, Any]
"""What a row is about, by column, and what either side shows in `before` and `after`: None where it shows nothing."""
Shown = Iterator[tuple[str, tuple[str, ...], str]]
"""What a side shows: the table, what the row is about, and what is shown of it."""
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
    the rows of each table that are not the same on both sides, first those that the base has, which readers know. With
    a file of `claims` these are among them.

    A run that is on both sides with another record may be a published figure that was changed by hand. Damaged records
    are findings.

    Raises UsageError where a folder is missing, MatrixError for a campaign whose matrix cannot be read, and ClaimError
    for mistakes in the file of claims.
    """
    asked = ledger.read(claims) if claims else []
    sides = []
    for folder in (base, data):
        found = review(load(folder, skip=lambda _: None))
        rows = [*_of_campaigns(found), *_of_tables(found), *_of_claims(asked, found)]
        sides.append({(table, about): shown for table, about, shown in rows})
    old, new = sides
    differing: dict[str, list[ChangedRow]] = {table: [] for table in _COLUMNS}
    for table, about in {**old, **new}:
        before, after = (side.get((table, about)) for side in sides)
        if before != after:
            row = dict(zip(_COLUMNS[table], about, strict=True))
            differing[table].append(row | {"before": before, "after": after})
    return differing


# -- what a side shows -------------------------------------------------------------------------------------------


def _of_campaigns(found: Review) -> Shown:
    """Campaigns, runs and what people decided of them."""
    for name in found.dataset.damage:
        yield "campaigns", (name,), "cannot be read"
    for name, campaign in found.dataset.campaigns.items():
        good = sum(run.run_id not in found.excluded for run in campaign.runs)
        told = f"{counted(len(campaign.runs), 'run')}, {good} counted"
        if campaign.covered:
            told += f", {campaign.progress}"
        yield "campaigns", (name,), told
        for run in campaign.runs:
            yield "runs", (name, run.run_id), f"record {run.sha256[:12]}"
        for entry in _decisions(campaign):
            yield "decisions", (name, entry), "decided"


def _decisions(campaign: CampaignData) -> Iterator[str]:
    info = campaign.info
    for item in info.acknowledged:
        where = item.cell or "the campaign"
        yield f"{item.check} acknowledged for {where}: {item.reason}"
    for out in info.quarantined:
        yield f"{out.run} quarantined: {out.reason}"
    if info.ended is not None:
        yield f"ended before every planned run was done: {info.ended}"


def _of_tables(found: Review) -> Shown:
    """Findings, means of cells, and verdicts on comparisons."""
    results = Results(found)
    for item in found.findings:
        about = (item.campaign, item.where, item.check, item.message)
        yield "findings", about, item.severity
    for row in results.cell_rows:
        mean = metric_called(row.metric, row.unit).format(row.mean)
        about = (row.campaign, "/".join(row.cell), row.metric, row.family)
        yield "cells", about, f"{mean} (n = {row.n})"
    for row in results.comparison_rows:
        sides = f"{row.model}/{row.workload}, {row.candidate} against {row.baseline}"
        about = (row.campaign, sides, row.metric, row.family)
        yield "verdicts", about, row.verdict


def _of_claims(asked: Sequence[Claim], found: Review) -> Shown:
    for claim in asked:
        with suppress(ClaimError):  # the data lack what it names
            (told,) = ledger.judge([claim], found)
            yield "claims", (told.says,), told.verdict


# -- in words ------------------------------------------------------------------------------------------------------


def as_text(found: Mapping[str, Sequence[ChangedRow]]) -> Iterator[str]:
    """Lines for a terminal."""
    if not any(found.values()):
        yield "nothing differs from the base"
    for table, rows in found.items():
        if rows:
            yield f"{table.capitalize()}: {len(rows)}"
        for row in rows:
            yield "  " + "  ".join(_texts(row))


def as_markdown(found: Mapping[str, Sequence[ChangedRow]]) -> Iterator[str]:
    """Markdown for the summary of a GitHub workflow, of the primary metrics. Text from the data cannot become markup, a
    link or a mention."""
    yield from ("## What this changes", "")
    if not any(found.values()):
        yield "Nothing differs from the base."
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
