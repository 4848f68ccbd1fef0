"""How pages list what the checks found: the caveats of a page, and the page of checks."""

from collections.abc import Iterable
from typing import Any

from sparkpub.record.text import counted
from sparkpub.review.checks import CHECKS, Finding
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.leaderboard import machines
from sparkpub.review.names import Names
from sparkpub.site.publication import Publication

CHECK_KINDS = ("meaning", "happened", "evidence", "prose")
"""Kinds of checks in the order in which a campaign's problems are listed."""


def problems(names: Names, findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Findings by check, the severest first: each with its first message and how often it trips."""
    found = [finding for finding in findings if finding.severity != "info"]
    groups = grouped(found, lambda finding: finding.check)

    def place(check: str) -> tuple[bool, int]:
        kind = CHECKS[check].kind
        return groups[check][0].severity != "error", CHECK_KINDS.index(kind)

    return [
        {
            "title": check.replace("-", " "),
            "message": names.in_words(
                groups[check][0].campaign, groups[check][0].message
            ),
            "findings": groups[check],
            "severity": groups[check][0].severity,
            "href": anchor(groups[check][0].campaign, check),
        }
        for check in sorted(groups, key=place)
    ]


def judged(publication: Publication) -> str:
    """Which runs can be judged at all: of how many nothing shows the model, how many cells are one run, and whose the
    figures of the home machine are. Empty where nothing is missing."""
    said = []
    runs = publication.dataset.runs
    unknown = {
        run
        for finding in publication.review.findings
        if finding.check == "identity" and finding.severity == "warning"
        for run in finding.runs
    }
    if unknown:
        said.append(
            f"Which model ran is known by name only in {len(unknown):,} of {counted(len(runs), 'run')}."
        )
    cells = [
        members
        for campaign in publication.results.campaigns.values()
        for members in campaign.counted.values()
    ]
    alone = sum(len(members) == 1 for members in cells)
    if alone:
        said.append(
            f"{alone:,} of {counted(len(cells), 'cell')} are a single run, so how far runs differ is not known."
        )
    for home in machines(publication.speeds, publication.options.home)[:1]:
        origins = {
            record.origin
            for speed in publication.speeds
            if speed.machine == home and not speed.doubts
            for record in speed.records
        }
        owners = {origin.author if origin else None for origin in origins}
        if len(owners) == 1 and (owner := owners.pop()):
            said.append(f"All that is ranked on {home} is from one owner, {owner}.")
    return " ".join(said)


def of_campaign(publication: Publication, campaign: CampaignData) -> dict[str, Any]:
    """What the checks found in a campaign, check by check, and which runs are left out."""
    review = publication.review
    found_in = publication.findings_of(campaign)
    by_check = grouped(found_in, lambda finding: finding.check)
    checks = [
        {
            "check": CHECKS[name],
            "is_note": all(finding.severity == "info" for finding in found),
            "anchor": anchor(campaign.name, name).partition("#")[2],
            "findings": [
                (finding, review.acknowledgement(finding)) for finding in found
            ],
        }
        for name, found in by_check.items()
    ]
    excluded = {
        record.run_id: review.excluded[record.run_id]
        for record in campaign.records
        if record.run_id in review.excluded
    }
    return {"campaign": campaign, "checks": checks, "excluded": excluded}


def anchor(campaign: str, check: str) -> str:
    """Where the review page speaks of a check."""
    return f"review/#{campaign}-{check}"
