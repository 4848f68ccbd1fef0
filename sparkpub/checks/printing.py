"""The review as text, as JSON and as annotations of a GitHub workflow."""

import json
from collections.abc import Iterator

from sparkpub.checks.finding import Finding, Severity
from sparkpub.checks.reviewing import Review
from sparkpub.store import CAMPAIGN_FILE

_LEVELS = {"error": "error", "warning": "warning", "info": "notice"}
_NAMES: dict[Severity, str] = {"error": "errors", "warning": "warnings", "info": "notes"}


def as_json(review: Review) -> str:
    document = {"findings": [finding.document() for finding in review.findings], "runs": len(review.dataset.runs)}
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)


def as_text(review: Review) -> Iterator[str]:
    """One line per finding, then the reason of each acknowledged one, then a summary."""
    for finding in review.findings:
        where = " ".join(part for part in (finding.campaign, finding.cell, finding.run) if part)
        known = review.acknowledgement(finding)
        yield f"{finding.severity:<8}{finding.check:<20} {where}: {finding.message}"
        if known is not None:
            yield f"{'':<8}{'':<20} acknowledged: {known.reason}"
    severities = [finding.severity for finding in review.findings]
    counts = ", ".join(f"{severities.count(severity)} {name}" for severity, name in _NAMES.items())
    yield f"{len(review.dataset.runs)} runs, {len(review.excluded)} of them out of the figures: {counts}"


def as_annotations(review: Review) -> Iterator[str]:
    """Workflow commands that GitHub shows beside the file concerned; acknowledged findings become notices."""
    for finding in review.findings:
        level = "notice" if review.acknowledgement(finding) else _LEVELS[finding.severity]
        properties = f"file={_property(_file(review, finding))},title={_property(finding.check)}"
        if "line" in finding.evidence and isinstance(finding.evidence["line"], int):
            properties += f",line={finding.evidence['line']}"
        yield f"::{level} {properties}::{_data(finding.message)}"


def _file(review: Review, finding: Finding) -> str:
    """The file a finding is about: a page, a record, else the campaign's file."""
    if "file" in finding.evidence and finding.run is None:
        return str(finding.evidence["file"])
    run, data = review.dataset.by_id.get(finding.run or ""), review.dataset.campaigns.get(finding.campaign)
    folder = review.dataset.folder / finding.campaign if data is None else data.folder
    return str(folder / CAMPAIGN_FILE if run is None else run.path)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
