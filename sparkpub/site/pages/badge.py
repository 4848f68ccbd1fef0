"""A badge for a README: how many runs the site or one campaign holds, and what the checks found in them, as JSON that
shields.io draws (https://shields.io/badges/endpoint-badge)."""

from collections import Counter
from collections.abc import Iterable
from urllib.parse import quote

from pydantic_core import to_json

from sparkpub.record.text import counted
from sparkpub.review.checks import Finding
from sparkpub.review.dataset import CampaignData
from sparkpub.site.publication import Publication

ADDRESS = "badge.json"
"""Of the badge of the whole site, from its root."""
SHIELDS = "https://img.shields.io/endpoint?url="


def of_site(publication: Publication) -> bytes:
    """The runs of the site, and its errors and warnings; acknowledged ones are counted too."""
    return _badge("", len(publication.dataset.runs), publication.review.findings)


def of_campaign(publication: Publication, campaign: CampaignData) -> bytes:
    """The same of one campaign, with its name."""
    found = publication.findings_of(campaign)
    return _badge(f"{campaign.name}: ", len(campaign.runs), found)


def address(campaign: CampaignData) -> str:
    """Where the badge of a campaign is, from the root of the site."""
    return f"campaigns/{campaign.name}/{ADDRESS}"


def line(publication: Publication, campaign: CampaignData) -> str:
    """The line of Markdown that shows the badge of a campaign and leads to its page; empty without an address."""
    url = publication.options.url
    if not url:
        return ""
    drawn = SHIELDS + quote(url + address(campaign), safe="")
    return f"[![{campaign.name}]({drawn})]({url}campaigns/{campaign.name}/)"


def _badge(name: str, runs: int, findings: Iterable[Finding]) -> bytes:
    found = Counter(finding.severity for finding in findings)
    told = [
        f"{counted(found[severity], severity)}"
        for severity in ("error", "warning")
        if found[severity]
    ]
    colour = "red" if found["error"] else "orange" if found["warning"] else "green"
    document = {
        "schemaVersion": 1,
        "label": f"{name}{counted(runs, 'run')} checked",
        "message": ", ".join(told) or "no findings",
        "color": colour,
    }
    return to_json(document) + b"\n"
