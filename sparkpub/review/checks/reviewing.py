"""The review: every check put to every campaign, what follows for runs, cells and claims, and how it is printed.

Tables need `what_counts` alone: whether each run happened. What the figures mean is asked after that.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from sparkpub.record.campaign import Acknowledgement
from sparkpub.record.text import counted
from sparkpub.review.checks.acknowledging import acknowledgements, covers
from sparkpub.review.checks.check import Check, Run
from sparkpub.review.checks.copies import Recorded, dependent, recorded
from sparkpub.review.checks.finding import SEVERITIES, Finding, Severity
from sparkpub.review.checks.foreign import foreign_files
from sparkpub.review.checks.happened import damaged
from sparkpub.review.checks.registry import CHECKS
from sparkpub.review.checks.view import View, label
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.review.reviewed import ReviewedCampaign, ReviewedDataset

_AGAIN = re.compile(r"\b[Mm]easure|re-run")
"""Advice that only who measured can follow."""
_TELL = (
    "Tell whoever published it, or say in campaign.json why it stands (acknowledged:)."
)
_NAMES: dict[Severity, str] = {
    "error": "error",
    "warning": "warning",
    "info": "note",
}
_TO_BE_MENDED = frozenset({"schema", "checksum", "foreign-file"})


@dataclass(frozen=True, eq=False)
class Review(ReviewedDataset):
    """What the checks found."""

    findings: tuple[Finding, ...] = ()

    @cached_property
    def by_run(self) -> Mapping[str, tuple[Finding, ...]]:
        """Run id to the findings that name the run. Findings on its cell or campaign are not repeated here."""
        return _grouped(
            (run, finding) for finding in self.findings for run in finding.runs
        )

    @cached_property
    def by_cell(self) -> Mapping[tuple[str, str], tuple[Finding, ...]]:
        """(campaign, `model/environment/workload`) to every finding that concerns the cell: its own, its runs',
        and its campaign's."""
        return _grouped(
            ((finding.campaign, cell), finding)
            for finding in self.findings
            for cell in (finding.cells or self._cells.get(finding.campaign, ()))
        )

    @cached_property
    def _cells(self) -> Mapping[str, tuple[str, ...]]:
        return {
            name: tuple(map(label, reviewed.recorded))
            for name, reviewed in self.campaigns.items()
        }

    def acknowledgement(self, finding: Finding) -> Acknowledgement | None:
        """The entry of campaign.json that answers a finding. Every cell concerned must be covered by it. Nothing
        answers damage, a foreign file or a sentence at fault: they are mended."""
        if finding.check in _TO_BE_MENDED or CHECKS[finding.check].kind == "prose":
            return None
        data = self.dataset.campaigns.get(finding.campaign)
        entries = () if data is None else data.info.acknowledged
        return next((entry for entry in entries if covers(entry, finding)), None)

    @cached_property
    def unacknowledged_errors(self) -> tuple[Finding, ...]:
        """Errors that nobody has answered in campaign.json: a build stops at them."""
        return self.unacknowledged("error")

    def unacknowledged(self, threshold: Severity) -> tuple[Finding, ...]:
        """Findings at least as severe as `threshold` that nobody has answered in campaign.json."""
        severe = SEVERITIES[: SEVERITIES.index(threshold) + 1]
        return tuple(
            item
            for item in self.findings
            if item.severity in severe and self.acknowledgement(item) is None
        )

    def only(self, campaign: str) -> "Review":
        """The same of one campaign: what was found by looking at the others, too."""
        campaigns = {
            name: found for name, found in self.campaigns.items() if name == campaign
        }
        findings = (item for item in self.findings if item.campaign == campaign)
        return Review(self.dataset.only(campaign), campaigns, tuple(findings))

    def voiding(self, campaign: str) -> tuple[Finding, ...]:
        """A campaign's errors of meaning, and those about runs that count: claims about the world that rest on their
        cells are void, and an acknowledgement does not mend that."""
        errors = (
            item
            for item in self.findings
            if item.campaign == campaign and item.severity == "error"
        )
        return tuple(
            item
            for item in errors
            if CHECKS[item.check].kind == "meaning"
            or (
                CHECKS[item.check].kind == "happened"
                and not self.excluded.keys() >= set(item.runs)
            )
        )


_Key = TypeVar("_Key")


def _grouped(pairs: Iterable[tuple[_Key, Finding]]) -> dict[_Key, tuple[Finding, ...]]:
    groups: dict[_Key, dict[int, Finding]] = defaultdict(dict)
    for key, finding in pairs:
        groups[key][id(finding)] = finding
    return {key: tuple(found.values()) for key, found in groups.items()}


def what_counts(dataset: Dataset) -> ReviewedDataset:
    """Ask of every run whether it happened, and nothing more."""
    campaigns: dict[str, ReviewedCampaign] = {}
    for name, data in dataset.campaigns.items():
        view, _ = _happened(data, dataset.damage.get(name, ()))
        campaigns[name] = view.reviewed
    return ReviewedDataset(dataset, campaigns)


def review(dataset: Dataset) -> Review:
    """Put every check to every campaign.

    Pages are another matter: `checks.prose.with_prose` adds what is wrong in them.
    """
    findings: list[Finding] = []
    campaigns: dict[str, ReviewedCampaign] = {}
    kept: Recorded = []
    for name, data in dataset.campaigns.items():
        view, found = _happened(data, dataset.damage.get(name, ()))
        findings += _with_their_meaning(view, found)
        campaigns[name] = view.reviewed
        kept += recorded(view)
    findings += dependent(kept)
    findings += foreign_files(dataset)
    for name, data in dataset.campaigns.items():
        own = [finding for finding in findings if finding.campaign == name]
        findings += acknowledgements(View(data), own)
    for name, lines in dataset.damage.items():
        if name not in campaigns:
            findings += damaged(name, lines, units=False)
    published = {
        name
        for name, data in dataset.campaigns.items()
        if all(run.record.plan.order == "as-published" for run in data.runs)
    }
    findings = [
        _with_remedy(finding, is_published=finding.campaign in published)
        for finding in findings
    ]
    findings.sort(
        key=lambda finding: (finding.campaign, SEVERITIES.index(finding.severity))
    )
    return Review(dataset, campaigns, tuple(findings))


def _happened(data: CampaignData, damage: Sequence[str]) -> tuple[View, list[Finding]]:
    """The campaign with the runs that happened, and what speaks against the others."""
    findings: list[Finding] = []
    out = {run: f"quarantined: {reason}" for run, reason in data.quarantined.items()}
    first = View(data, out, damage)
    for check, run in _checks(happened=True):
        for finding in run(first):
            findings.append(finding)
            if finding.severity == "error" or check.name == "exit-status":
                for name in finding.runs:
                    out.setdefault(name, f"{check.name}: {finding.message}")
    return View(data, out, damage, first.evidence), findings


def _with_their_meaning(view: View, happened: list[Finding]) -> list[Finding]:
    """All findings of a campaign: those of whether each run happened, then what the runs that did mean."""
    findings = list(happened)
    for _, run in _checks(happened=False):
        findings += run(view)
    return findings


def _checks(*, happened: bool) -> Iterator[tuple[Check, Run]]:
    """The checks of whether a run happened, or all others, each with what it runs."""
    for check in CHECKS.values():
        if check.run is not None and (check.kind == "happened") is happened:
            yield check, check.run
        if check.of_what_counts is not None and not happened:
            yield check, check.of_what_counts


def _with_remedy(finding: Finding, *, is_published: bool) -> Finding:
    """An error or a warning with what its check advises, where it has no advice of its own. What others published, no
    reader can measure again: advice to do that is left out there."""
    remedy = finding.remedy
    if finding.severity != "info":
        remedy = remedy or CHECKS[finding.check].remedy
    if is_published and _AGAIN.search(remedy):
        remedy = _TELL
    return replace(finding, remedy=remedy)


def as_json(review: Review) -> str:
    """The document of `sparkpub check --json`."""
    document = {
        "findings": [finding.document() for finding in review.findings],
        "runs": len(review.dataset.runs),
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)


def as_text(
    review: Review, least: Severity = "error", *, verbose: bool = False
) -> Iterator[str]:
    """A line per finding of at least that severity, the worst first, and a summary. With `verbose` all findings, and
    the reasons for which they are acknowledged."""
    shown = SEVERITIES if verbose else SEVERITIES[: SEVERITIES.index(least) + 1]
    for severity in shown:
        for finding in review.findings:
            if finding.severity == severity:
                yield from _lines(review, finding, verbose=verbose)
    severities = [finding.severity for finding in review.findings]
    counts = ", ".join(
        counted(severities.count(severity), name) for severity, name in _NAMES.items()
    )
    runs = counted(len(review.dataset.runs), "run")
    hint = "" if set(severities) <= set(shown) else " (--verbose shows all)"
    yield f"{runs}, {len(review.excluded)} excluded: {counts}{hint}"


def _lines(review: Review, finding: Finding, *, verbose: bool) -> Iterator[str]:
    known = review.acknowledgement(finding)
    what = f"{finding.message} {finding.remedy}".rstrip()
    if known is not None:
        what = finding.message if verbose else f"{finding.message} (acknowledged)"
    yield f"{finding.severity:<8}{finding.check:<20} {finding.where}: {what}"
    if known is not None and verbose:
        yield f"{'':<8}{'':<20} acknowledged: {known.reason}"
