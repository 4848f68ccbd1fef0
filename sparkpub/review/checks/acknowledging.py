"""What people answered in campaign.json: which finding an entry answers, and entries that answer none."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from sparkpub.record.campaign import Acknowledgement
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.dataset import CampaignData

MERGED = {
    "fact-mismatch": "metric-mismatch",
    "foreign-tenant": "foreign-load",
    "too-many-outliers": "outlier",
}
"""Former names of checks, under which campaigns acknowledge findings, and the check that asks it now."""


def covers(entry: Acknowledgement, finding: Finding) -> bool:
    """Whether an entry answers a finding: it names the check, perhaps by a former name, and every cell concerned."""
    pattern = entry.cell or "*/*/*"
    is_of_cells = pattern.count("/") == 2 and bool(finding.cells)
    is_meant = pattern == "*/*/*" or (
        is_of_cells and all(fnmatchcase(cell, pattern) for cell in finding.cells)
    )
    return is_meant and MERGED.get(entry.check, entry.check) == finding.check


def idle_acknowledgements(
    campaign: CampaignData, findings: Sequence[Finding]
) -> Iterator[Finding]:
    """Entries that answer none of a campaign's findings."""
    idle = [
        entry.check
        for entry in campaign.info.acknowledged
        if not any(covers(entry, finding) for finding in findings)
    ]
    if idle:
        text = (
            f"Acknowledged in campaign.json, but not found in these cells: {', '.join(idle)}. Correct the cell of "
            "these entries (model/environment/workload), or remove them: they would answer what nobody has seen yet."
        )
        yield Finding(
            "acknowledgement", "info", campaign.name, None, None, text, {"checks": idle}
        )


CHECKS = (
    Check(
        "acknowledgement",
        "Does every acknowledgement answer a finding?",
        raises=("info",),
    ),
)
