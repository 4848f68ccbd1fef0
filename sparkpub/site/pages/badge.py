"""A badge for a README: how many runs the site holds, and what the checks found in them, as JSON that
shields.io draws (https://shields.io/badges/endpoint-badge)."""

from collections import Counter

from pydantic_core import to_json

from sparkpub.record.text import counted
from sparkpub.site.publication import Publication

ADDRESS = "badge.json"
"""Of the badge of the whole site, from its root."""


def of_site(publication: Publication) -> bytes:
    """The runs of the site, and its errors and warnings; acknowledged ones are counted too."""
    found = Counter(finding.severity for finding in publication.review.findings)
    told = [
        f"{counted(found[severity], severity)}"
        for severity in ("error", "warning")
        if found[severity]
    ]
    colour = "orange" if found["warning"] else "green"
    if found["error"]:
        colour = "red"
    document = {
        "schemaVersion": 1,
        "label": f"{counted(len(publication.dataset.runs), 'run')} checked",
        "message": ", ".join(told) or "no findings",
        "color": colour,
    }
    return to_json(document) + b"\n"
