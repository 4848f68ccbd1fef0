"""The review: every check put to every campaign, what follows for runs, cells and claims, and how it is printed.

Tables need `what_counts` alone: whether each run happened. What the figures mean is asked after that.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

from sparkpub.record.campaign import Acknowledgement
from sparkpub.record.record import Record
from sparkpub.record.text import counted, listed
from sparkpub.review.checks.acknowledging import covers, idle_acknowledgements
from sparkpub.review.checks.copies import RunTrace, dependent, trace
from sparkpub.review.checks.finding import SEVERITIES, Finding, Severity
from sparkpub.review.checks.happened import damaged, foreign_files
from sparkpub.review.checks.registry import CHECKS
from sparkpub.review.checks.view import View, label
from sparkpub.review.dataset import Dataset
from sparkpub.review.reviewed import ReviewedCampaign, ReviewedDataset

_TO_BE_MENDED = frozenset({"schema", "checksum", "foreign-file"})
BEYOND_DOUBT: Mapping[str, Severity] = {
    **dict.fromkeys(
        ("identity", "order-confound", "missing-cell", "mixed-machines"), "warning"
    ),
    "offered-load": "info",
}
"""Checks that void a claim about the world with less than an error: identity, order, coverage, and what a server did
while its queue emptied, which is no rate that it serves."""


@dataclass(frozen=True, eq=False)
class Review(ReviewedDataset):
    """What the checks found."""

    findings: tuple[Finding, ...] = ()

    @cached_property
    def by_run(self) -> Mapping[str, Sequence[Finding]]:
        """Run id to the findings that name the run. Findings on its cell or campaign are not repeated here."""
        found: dict[str, list[Finding]] = defaultdict(list)
        for finding in self.findings:
            for run in dict.fromkeys(finding.runs):
                found[run].append(finding)
        return found

    @cached_property
    def by_cell(self) -> Mapping[tuple[str, str], Sequence[Finding]]:
        """(campaign, `model/environment/workload`) to every finding that concerns the cell: its own, its runs',
        and its campaign's."""
        found: dict[tuple[str, str], list[Finding]] = defaultdict(list)
        for finding in self.findings:
            reviewed = self.campaigns.get(finding.campaign)
            every = map(label, () if reviewed is None else reviewed.recorded)
            for cell in dict.fromkeys(finding.cells or every):
                found[finding.campaign, cell].append(finding)
        return found

    def acknowledgement(self, finding: Finding) -> Acknowledgement | None:
        """The entry of campaign.json that answers a finding. Every cell concerned must be covered by it. Nothing
        answers damage, a foreign file or a sentence at fault: they are mended."""
        if finding.check in _TO_BE_MENDED or CHECKS[finding.check].kind == "prose":
            return None
        data = self.dataset.campaigns.get(finding.campaign)
        entries = () if data is None else data.info.acknowledged
        return next((entry for entry in entries if covers(entry, finding)), None)

    def unacknowledged(self, least: Severity) -> Sequence[Finding]:
        """Findings at least so severe that nobody has answered in campaign.json: a build stops at errors."""
        severe = SEVERITIES[: SEVERITIES.index(least) + 1]
        return [
            item
            for item in self.findings
            if item.severity in severe and self.acknowledgement(item) is None
        ]

    def only(self, campaign: str) -> "Review":
        """The same of one campaign: what was found by looking at the others, too."""
        campaigns = {}
        if campaign in self.campaigns:
            campaigns[campaign] = self.campaigns[campaign]
        findings = (item for item in self.findings if item.campaign == campaign)
        return Review(self.dataset.only(campaign), campaigns, tuple(findings))

    def voids(self, finding: Finding, records: Sequence[Record] | None = None) -> bool:
        """Whether claims that go beyond these runs, by default all of its campaign, are void because of a finding: an
        error, or less of `BEYOND_DOUBT`, about those of them that count, or their cells. An acknowledgement does not
        mend that, and a file that is no record is none of the runs."""
        check = CHECKS[finding.check]
        least = BEYOND_DOUBT.get(check.name, "error")
        if SEVERITIES.index(finding.severity) > SEVERITIES.index(least):
            return False
        counted = {*finding.runs} - self.excluded.keys()
        if finding.runs or check.kind == "happened":
            ran = counted if records is None else {each.run_id for each in records}
            return not counted.isdisjoint(ran)
        return records is None or any(
            record.campaign == finding.campaign
            and (not finding.cells or label(record.cell) in finding.cells)
            for record in records
        )


def what_counts(dataset: Dataset) -> ReviewedDataset:
    """Ask of every run whether it happened, and nothing more."""
    campaigns = {
        name: _happened(dataset, name)[0].reviewed for name in dataset.campaigns
    }
    return ReviewedDataset(dataset, campaigns)


Judged = tuple[ReviewedCampaign, Sequence[Finding]]
"""A campaign with what counts in it, and what the checks that look at it alone find."""


def judged(dataset: Dataset, name: str) -> Judged:
    """Put every check to one campaign."""
    view, found = _happened(dataset, name)
    asked = (check.run(view) for check in CHECKS.values())
    return view.reviewed, [*found, *chain(*asked)]


def traces(reviewed: ReviewedCampaign) -> Sequence[RunTrace]:
    """Those of its runs that happened."""
    kept: Sequence[RunTrace] | None = reviewed.kept("traces")
    return [*map(trace, chain(*reviewed.ran.values()))] if kept is None else kept


def review(
    dataset: Dataset, judge: Callable[[Dataset, str], Judged] = judged
) -> Review:
    """Put every check to every campaign, each by `judge`.

    Pages are another matter: `site.proofreading` adds what is wrong in them.
    """
    campaigns: dict[str, ReviewedCampaign] = {}
    findings = [*damaged(dataset.damage), *foreign_files(dataset)]
    for name in dataset.campaigns:
        campaigns[name], found = judge(dataset, name)
        findings += found
    findings += dependent([*chain(*map(traces, campaigns.values()))])
    for data in dataset.campaigns.values():
        own = [finding for finding in findings if finding.campaign == data.name]
        findings += idle_acknowledgements(data, own)
    findings = [_with_remedy(finding, dataset) for finding in findings]
    findings.sort(key=lambda item: (item.campaign, SEVERITIES.index(item.severity)))
    return Review(dataset, campaigns, tuple(findings))


def _happened(dataset: Dataset, name: str) -> tuple[View, list[Finding]]:
    """A campaign with the runs that happened, and what speaks against the others."""
    data = dataset.campaigns[name]
    out = {run: f"quarantined: {reason}" for run, reason in data.quarantined.items()}
    first = View(data, out)
    findings: list[Finding] = []
    for check in CHECKS.values():
        for finding in check.ask(first, takes_out=True):
            findings.append(finding)
            details = finding.evidence.get("details", {})
            for run in finding.runs:
                why = details.get(run, finding.message)
                out.setdefault(run, f"{check.name}: {why}")
    return View(data, out, first.evidence), findings


def _with_remedy(finding: Finding, dataset: Dataset) -> Finding:
    """An error or a warning with its own advice, else with that of its check; of results that others published, with
    what can be done without measuring again."""
    if finding.severity == "info":
        return finding
    check, data = CHECKS[finding.check], dataset.campaigns.get(finding.campaign)
    remedy = finding.remedy or check.remedy
    if data is not None and data.published:
        remedy = check.imported or remedy
    return replace(finding, remedy=remedy)


def document(review: Review) -> dict[str, Any]:
    """What `sparkpub check --json` prints."""
    findings = [finding.document() for finding in review.findings]
    return {"findings": findings, "runs": len(review.dataset.runs)}


def as_text(
    review: Review, least: Severity = "error", *, verbose: bool = False
) -> Iterator[str]:
    """A line per finding of at least that severity, the worst first, and a summary. With `verbose` all findings, and
    the reasons for which they are acknowledged."""
    shown = SEVERITIES[: None if verbose else SEVERITIES.index(least) + 1]
    by_severity = {
        severity: [item for item in review.findings if item.severity == severity]
        for severity in SEVERITIES
    }
    for severity in shown:
        each = [[item] for item in by_severity[severity]]
        for worst, *signs in each if verbose else by_cause(each):
            yield _line(review, worst, signs, verbose=verbose)
    counts = [
        counted(len(found), severity.replace("info", "note"))
        for severity, found in by_severity.items()
    ]
    is_all = all(item.severity in shown for item in review.findings)
    more = "" if is_all else " (--verbose shows all)"
    runs = counted(len(review.dataset.runs), "run")
    yield f"{runs}, {len(review.excluded)} excluded: {', '.join(counts)}{more}"


def by_cause(found: Iterable[Sequence[Finding]]) -> list[list[Finding]]:
    """Findings, with those behind them that are further signs of the same cause in the same cells."""
    told: list[tuple[list[Finding], str, set[tuple[str, str]]]] = []
    for mine in found:
        cause = CHECKS[mine[0].check].cause
        cells = {(item.campaign, cell) for item in mine for cell in item.cells}
        for first, of_first, among in told:
            if cause and cause == of_first and cells and cells <= among:
                first.extend(mine)
                break
        else:
            told.append(([*mine], cause, cells))
    return [first for first, *_ in told]


def _line(
    review: Review, finding: Finding, more: Sequence[Finding], *, verbose: bool
) -> str:
    known, after = review.acknowledgement(finding), finding.remedy
    if known is not None and all(map(review.acknowledgement, more)):
        after = f"(acknowledged: {known.reason})" if verbose else "(acknowledged)"
    if more:
        after = f"Further signs: {listed([each.check for each in more])}. {after}"
    said = f"{finding.severity:<8}{finding.check:<20} {finding.where}: {finding.message} {after}"
    return said.rstrip()
