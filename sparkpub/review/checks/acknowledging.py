"""What people answered in campaign.json: which finding an entry answers, and entries that answer none."""

from collections.abc import Iterator, Sequence

from sparkpub.record.campaign import Acknowledgement
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.view import View

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


def idle_acknowledgements(view: View, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Entries that answer none of a campaign's findings."""
    idle = dict.fromkeys(
        entry.check
        for entry in view.campaign.info.acknowledged
        if not any(covers(entry, finding) for finding in findings)
    )
    if idle:
        text = (
            f"Acknowledged in campaign.json, but not found in these cells: {', '.join(idle)}. Correct the cell of "
            "these entries (model/environment/workload), or remove them: they would answer what nobody has seen yet."
        )
        yield view.finding("acknowledgement", "info", text, checks=list(idle))


CHECKS = (
    Check(
        "acknowledgement",
        "Does every acknowledgement answer a finding?",
        kind="evidence",
        raises=("info",),
    ),
)
