"""What people answered in campaign.json: whether each answer has a finding, and says why."""

from collections.abc import Iterator, Sequence

from sparkpub.record.campaign import Acknowledgement
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View

REASON_WORDS = Threshold(
    "reason words",
    4,
    "Words that say why a finding is published as it is: with fewer a reader learns that somebody saw it, and no more.",
)


MERGED = {
    "fact-mismatch": "metric-mismatch",
    "foreign-tenant": "foreign-load",
    "too-many-outliers": "outlier",
}
"""Former names of checks, under which campaigns acknowledge findings, and the check that asks it now."""


def covers(entry: Acknowledgement, finding: Finding) -> bool:
    """Whether an entry answers a finding: it names the check, perhaps by a former name, and every cell concerned."""
    if MERGED.get(entry.check, entry.check) != finding.check:
        return False
    pattern = (entry.cell or "*/*/*").split("/")
    if pattern == ["*", "*", "*"]:
        return True
    return (
        bool(finding.cells)
        and len(pattern) == 3
        and all(
            want in ("*", part)
            for cell in finding.cells
            for want, part in zip(pattern, cell.split("/"), strict=True)
        )
    )


def acknowledgements(view: View, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Entries that answer none of a campaign's findings, and those that answer one in a word or two."""
    idle: list[Acknowledgement] = []
    for entry in view.campaign.info.acknowledged:
        answered = [finding for finding in findings if covers(entry, finding)]
        if not answered:
            idle.append(entry)
        elif len(entry.reason.split()) < REASON_WORDS:
            cells = dict.fromkeys(
                cell for finding in answered for cell in finding.cells
            )
            text = (
                f"The finding {entry.check} is acknowledged with the words “{entry.reason}”, which do not say why the "
                "figures are published all the same."
            )
            yield view.finding(
                "acknowledgement",
                "warning",
                text,
                cells=list(cells),
                about=entry.check,
                reason=entry.reason,
            )
    if idle:
        checks = list(dict.fromkeys(entry.check for entry in idle))
        text = (
            f"Acknowledged in campaign.json, but not found in these cells: {', '.join(checks)}. Correct the cell of "
            "these entries (model/environment/workload), or remove them: they would answer what nobody has seen yet."
        )
        yield view.finding("acknowledgement", "info", text, checks=checks)


CHECKS = (
    Check(
        "acknowledgement",
        "evidence",
        ("warning", "info"),
        "Does every acknowledgement answer a finding, and say why?",
        thresholds=(REASON_WORDS,),
    ),
)
