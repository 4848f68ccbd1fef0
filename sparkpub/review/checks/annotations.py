"""Findings as annotations that GitHub shows beside the files of a pull request.

A workflow command is a line `::warning file=F,line=N,title=T::MESSAGE`. The runner undoes exactly the escapes made here
(`ActionCommand.cs` of actions/runner), so no name and no message can end a property, a line or the command.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from sparkpub.record import outside
from sparkpub.record.errors import SparkpubError
from sparkpub.record.store import CAMPAIGN_FILE
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.reviewing import Review

_LEVELS: Mapping[Severity, str] = {
    "error": "error",
    "warning": "warning",
    "info": "notice",
}


def of_review(review: Review) -> Iterator[str]:
    """A line for each finding; acknowledged findings become notices."""
    for finding in review.findings:
        level = _LEVELS[finding.severity]
        if review.acknowledgement(finding):
            level = "notice"
        about = {"file": _file(review, finding), "title": finding.check}
        line = finding.evidence.get("line")
        if isinstance(line, int):
            about["line"] = str(line)
        yield annotation(level, about, finding.message)


def of_error(error: SparkpubError) -> Iterator[str]:
    """A line for each problem on account of which there is no review."""
    for line in error.lines():
        yield annotation("error", {"title": "sparkpub check"}, line)


def annotation(level: str, properties: Mapping[str, str], message: str) -> str:
    """One workflow command."""
    told = ",".join(
        f"{name}={_escaped(value).replace(':', '%3A').replace(',', '%2C')}"
        for name, value in properties.items()
    )
    return f"::{level} {told}::{_escaped(message)}"


def _escaped(text: str) -> str:
    text = outside.plain(text)
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _file(review: Review, finding: Finding) -> str:
    """The file a finding is about, a page, a record, else the campaign's file: from the root of the repository that
    holds it, as GitHub names files; as it is outside of one."""
    if finding.run is not None:
        path = review.dataset.by_id[finding.run].path
    elif "file" in finding.evidence:
        path = Path(str(finding.evidence["file"]))
    else:
        path = review.dataset.folder / finding.campaign / CAMPAIGN_FILE
        if finding.campaign in review.dataset.campaigns:
            campaign = review.dataset.campaigns[finding.campaign]
            path = campaign.folder / CAMPAIGN_FILE
    whole = path.absolute()
    for above in whole.parents:
        if (above / ".git").exists():
            return whole.relative_to(above).as_posix()
    return str(path)
