"""A badge for a README: how many runs the site or one campaign holds, and what the checks found in them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from sparkpub.record.text import counted
from sparkpub.review.checks import Finding
from sparkpub.review.dataset import CampaignData
from sparkpub.site.publication import Publication

SVG, ENDPOINT = "badge.svg", "badge.json"
"""Addresses of the drawing, and of the same for shields.io (https://shields.io/badges/endpoint-badge)."""
GREY, GREEN, AMBER, RED = "#444444", "#2e7d32", "#8a5a00", "#b3261e"
"""White text stands out of each by 4.5 to 1 or more (WCAG 2.2, success criterion 1.4.3)."""
_CHARACTER, _MARGIN, _HEIGHT = 6.5, 8, 20
"""Pixels of a character of 11 px, beside the text, and in height. The text is fitted to this width in any font."""


@dataclass(frozen=True)
class Badge:
    """Two words side by side; the right one on its colour."""

    label: str
    message: str
    colour: str


def badge(publication: Publication) -> Badge:
    """The runs of the site, and its errors and warnings; acknowledged ones are counted too."""
    label = f"{counted(len(publication.dataset.runs), 'run')} checked"
    return _badge(label, publication.review.findings)


def badge_of(publication: Publication, campaign: CampaignData) -> Badge:
    """The same of one campaign, with its name."""
    label = f"{campaign.name}: {counted(len(campaign.runs), 'run')} checked"
    return _badge(label, publication.findings_of(campaign))


def address(campaign: CampaignData) -> str:
    """Where the badge of a campaign is, from the root of the site."""
    return f"campaigns/{campaign.name}/{SVG}"


def line(publication: Publication, campaign: CampaignData) -> str:
    """The line of Markdown that shows the badge of a campaign and leads to its page; empty without an address."""
    url = publication.options.url
    if not url:
        return ""
    return f"[![{campaign.name}]({url}{address(campaign)})]({url}campaigns/{campaign.name}/)"


def _badge(label: str, findings: Iterable[Finding]) -> Badge:
    severities = [finding.severity for finding in findings]
    errors, warnings = severities.count("error"), severities.count("warning")
    parts = []
    if errors:
        parts.append(counted(errors, "error"))
    if warnings:
        parts.append(counted(warnings, "warning"))
    message = ", ".join(parts) or "no findings"
    colour = GREEN
    if warnings:
        colour = AMBER
    if errors:
        colour = RED
    return Badge(label, message, colour)


def svg(shown: Badge) -> bytes:
    """The badge as a drawing of its own."""
    left, right = _width(shown.label), _width(shown.message)
    whole = left + right
    said = escape(f"{shown.label}: {shown.message}")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{_HEIGHT}" role="img" aria-label="{said}">',
        f"<title>{said}</title>",
        f'<clipPath id="r"><rect width="{whole}" height="{_HEIGHT}" rx="3"/></clipPath>',
        '<g clip-path="url(#r)" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">',
        *_part(shown.label, 0, left, GREY),
        *_part(shown.message, left, right, shown.colour),
        "</g></svg>",
    ]
    return "\n".join([*lines, ""]).encode()


def endpoint(shown: Badge) -> bytes:
    """The badge as JSON that shields.io draws."""
    document = {
        "schemaVersion": 1,
        "label": shown.label,
        "message": shown.message,
        "color": shown.colour,
    }
    return json.dumps(document).encode() + b"\n"


def _width(text: str) -> int:
    return round(_CHARACTER * len(text)) + 2 * _MARGIN


def _part(text: str, x: int, width: int, colour: str) -> list[str]:
    """A rectangle with its text."""
    fitted = f'textLength="{width - 2 * _MARGIN}" lengthAdjust="spacingAndGlyphs"'
    return [
        f'<rect x="{x}" width="{width}" height="{_HEIGHT}" fill="{colour}"/>',
        f'<text x="{x + _MARGIN}" y="14" fill="#ffffff" {fitted}>{escape(text)}</text>',
    ]
