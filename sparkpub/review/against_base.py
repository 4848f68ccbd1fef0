"""What a change of the data does to the results: runs, coverage, findings, cells and verdicts against a base.

Made for pull requests that add records. Both sides are data folders: nothing of either is run, and git is not needed.
A campaign whose files are the same on both sides cannot change a result, so it is neither reviewed nor listed.
"""

import filecmp
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from sparkpub.record.errors import ClaimError
from sparkpub.record.store import campaign_folders
from sparkpub.review.checks import Finding, Review, review
from sparkpub.review.claims import ledger
from sparkpub.review.claims.claim import Claim
from sparkpub.review.dataset import Dataset, load
from sparkpub.review.results import Results
from sparkpub.review.tables.column import TableRow

FileChange = Literal["added", "changed", "removed", "unreadable"]


@dataclass(frozen=True)
class CampaignCounts:
    """How much of a campaign there is on one side. `planned` and `done` are None where no matrix says it."""

    runs: int
    counted: int
    planned: int | None
    done: int | None


@dataclass(frozen=True)
class ResultChange:
    """What is not the same on both sides: what it is about, by column, and what either side tells, None where it tells
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
    """What differs between a base and another data folder."""

    campaigns: tuple[CampaignChange, ...]
    found: tuple[Finding, ...]
    """Findings that the base does not have."""
    gone: tuple[Finding, ...]
    cells: tuple[ResultChange, ...]
    """Metrics of cells with another mean or another number of runs: `{n, mean}` of either side."""
    verdicts: tuple[ResultChange, ...]
    """Comparisons with another verdict."""
    claims: tuple[ResultChange, ...] = ()
    """Claims with another verdict; None where a side lacks what they name."""

    def document(self) -> dict[str, Any]:
        """As `sparkpub changes --json` prints it."""
        return {
            "campaigns": [asdict(item) for item in self.campaigns],
            "findings": {
                "new": [finding.document() for finding in self.found],
                "gone": [finding.document() for finding in self.gone],
            },
            "cells": [item.document() for item in self.cells],
            "verdicts": [item.document() for item in self.verdicts],
            "claims": [item.document() for item in self.claims],
        }


@dataclass(frozen=True)
class _Side:
    """The campaigns of one side that are not the same on the other, with what they show."""

    folder: Path
    whole: Dataset
    dataset: Dataset
    review: Review
    """What the checks say of these campaigns."""
    results: Results


def changes(base: Path, data: Path, claims: Path | None = None) -> Changes:
    """What is different in the data folder `data` from the data folder `base`; with a file of `claims`, also which of
    them get another verdict.

    Damaged records are findings. Raises UsageError where a folder is missing, MatrixError for a campaign whose matrix
    cannot be read, and ClaimError for mistakes in the file of claims.
    """
    names = _differing(base, data)
    before, after = _side(base, names), _side(data, names)
    found, gone = _new_and_gone(before.review.findings, after.review.findings)
    return Changes(
        campaigns=tuple(_campaign(name, before, after) for name in names),
        found=found,
        gone=gone,
        cells=tuple(
            _differences(
                before.results.cell_rows,
                after.results.cell_rows,
                _CELL,
                lambda row: {"n": row.n, "mean": row.mean},
            )
        ),
        verdicts=tuple(
            _differences(
                before.results.comparison_rows,
                after.results.comparison_rows,
                _COMPARISON,
                lambda row: row.verdict,
            )
        ),
        claims=tuple(_claims(claims, names, before, after)),
    )


def _differing(base: Path, data: Path) -> list[str]:
    """The names of the campaigns of which any file differs, is new or is gone."""
    names = {folder.name for root in (base, data) for folder in campaign_folders(root)}
    return sorted(name for name in names if not _same(base / name, data / name))


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
    return _Side(folder, whole, dataset, found, Results(found))


def _campaign(name: str, before: _Side, after: _Side) -> CampaignChange:
    old, new = _run_digests(name, before), _run_digests(name, after)
    shared = old.keys() & new.keys()
    return CampaignChange(
        campaign=name,
        state=_state(name, before, after),
        before=_counts(name, before),
        after=_counts(name, after),
        added=tuple(run for run in new if run not in shared),
        removed=tuple(run for run in old if run not in shared),
        altered=tuple(run for run in new if run in shared and old[run] != new[run]),
        decisions=tuple(_decisions(name, before, after)),
    )


def _state(name: str, before: _Side, after: _Side) -> FileChange:
    if name not in after.dataset.campaigns:
        if (after.folder / name).is_dir():
            return "unreadable"
        return "removed"
    if name not in before.dataset.campaigns:
        return "added"
    return "changed"


def _run_digests(name: str, side: _Side) -> Mapping[str, str]:
    """Run id to the SHA-256 of its record, in the order in which they ran."""
    data = side.dataset.campaigns.get(name)
    if data is None:
        return {}
    return {stored.run_id: stored.sha256 for stored in data.runs}


def _counts(name: str, side: _Side) -> CampaignCounts | None:
    data = side.dataset.campaigns.get(name)
    if data is None:
        return None
    left_out = sum(stored.run_id in side.review.excluded for stored in data.runs)
    runs, counted = len(data.runs), len(data.runs) - left_out
    if not data.covered:
        return CampaignCounts(runs, counted, None, None)
    return CampaignCounts(runs, counted, *data.planned_and_done)


def _decisions(name: str, before: _Side, after: _Side) -> Iterator[str]:
    """Entries of campaign.json by which people decided something, on one side only."""
    old, new = _decided(name, before), _decided(name, after)
    for entry in new:
        if entry not in old:
            yield f"new: {entry}"
    for entry in old:
        if entry not in new:
            yield f"gone: {entry}"


def _decided(name: str, side: _Side) -> list[str]:
    data = side.dataset.campaigns.get(name)
    if data is None:
        return []
    acknowledged = [
        f"{item.check} acknowledged for {item.cell or 'the campaign'}: {item.reason}"
        for item in data.info.acknowledged
    ]
    quarantined = [
        f"{item.run} quarantined: {item.reason}" for item in data.info.quarantined
    ]
    ended = []
    if data.info.ended is not None:
        ended.append(f"ended before every planned run was done: {data.info.ended}")
    return acknowledged + quarantined + ended


def _new_and_gone(
    before: Sequence[Finding], after: Sequence[Finding]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    old = {_identity(finding) for finding in before}
    new = {_identity(finding) for finding in after}
    found = tuple(finding for finding in after if _identity(finding) not in old)
    gone = tuple(finding for finding in before if _identity(finding) not in new)
    return found, gone


def _identity(finding: Finding) -> tuple[str | None, ...]:
    """What makes two findings the same; evidence may name other files."""
    return (
        finding.check,
        finding.severity,
        finding.campaign,
        finding.cell,
        finding.run,
        finding.message,
    )


_CELL = ("campaign", "model", "environment", "workload", "metric", "unit")
_COMPARISON = ("campaign", "model", "workload", "metric", "baseline", "candidate")
"""Columns that tell one row of a table from the others."""


def _differences(
    before: Iterable[TableRow],
    after: Iterable[TableRow],
    columns: Sequence[str],
    told: Callable[[TableRow], Any],
) -> Iterator[ResultChange]:
    """Rows of which the sides do not tell the same, in the order of `after`, then those that only `before` has."""
    key = attrgetter(*columns)
    old = {key(row): row for row in before}
    new = {key(row): row for row in after}
    for name in dict.fromkeys((*new, *old)):
        sides = [told(side[name]) if name in side else None for side in (old, new)]
        if sides[0] != sides[1]:
            row = new[name] if name in new else old[name]
            about = dict(zip(columns, name, strict=True))
            about["primary"] = row.family == "primary"
            yield ResultChange(about, *sides)


def _claims(
    file: Path | None, names: Sequence[str], before: _Side, after: _Side
) -> Iterator[ResultChange]:
    """The claims about a campaign that differs, as far as their verdict differs too. Both sides are asked the same."""
    if file is None:
        return
    asked = [
        claim
        for claim in ledger.read(file)
        if not {claim.campaign, *claim.repeated_in}.isdisjoint(names)
    ]
    if not asked:
        return
    # A claim may rest on further campaigns, which are the same on both sides.
    reviews = review(before.whole), review(after.whole)
    for claim in asked:
        verdicts = [_judged(claim, found) for found in reviews]
        old, new = (found and found.verdict for found in verdicts)
        if old != new:
            says = next(found.says for found in reversed(verdicts) if found)
            yield ResultChange({"claim": claim.id, "says": says}, old, new)


def _judged(claim: Claim, found: Review) -> ledger.Verdict | None:
    """The verdict on a claim; None where the data lack what it names."""
    try:
        (verdict,) = ledger.judge([claim], found)
    except ClaimError:
        return None
    return verdict
