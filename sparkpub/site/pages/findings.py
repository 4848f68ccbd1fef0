"""How pages list what the checks found: the caveats of a page, and the page of checks."""

import re
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from sparkpub.record.text import counted
from sparkpub.review.checks import CHECKS, Finding
from sparkpub.review.checks.reviewing import by_cause
from sparkpub.review.grouping import grouped
from sparkpub.site.publication import Publication

CHECK_KINDS = ("meaning", "happened", "prose")
"""Kinds of checks in the order in which a campaign's problems are listed."""


def problems(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Findings by their cause, the severest first."""
    found = [finding for finding in findings if finding.severity != "info"]

    def place(mine: Sequence[Finding]) -> tuple[bool, int]:
        kind = CHECKS[mine[0].check].kind
        return mine[0].severity != "error", CHECK_KINDS.index(kind)

    return sorted(by_cause(by_check(found).values()), key=place)


_FIGURES = re.compile(r": [^.\d]*\d.*?(?=\. |\.?$)")
"""From a colon to the end of the sentence, where numbers follow."""


_ALL = re.compile(r"\. In all, this holds [^.]*?(\d+ cells)\.?$")
_ASIDE = re.compile(r" \(coefficient of variation; [^)]*\)")


def brief(message: str) -> str:
    """What a finding says, without its example and its figures, which are on the page of checks; of how many cells it
    holds in brackets."""
    said = _FIGURES.sub("", message.partition(" For example ")[0])
    return _ALL.sub(r" (\1).", _ASIDE.sub("", said))


def by_check(findings: Iterable[Finding]) -> Mapping[str, Sequence[Finding]]:
    """The findings of each check."""
    return grouped(findings, attrgetter("check"))


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
            f"{len(unknown):,} of {counted(len(runs), 'run')} do not show which model ran."
        )
    cells = [
        members
        for campaign in publication.results.campaigns.values()
        for members in campaign.counted.values()
    ]
    alone = sum(len(members) == 1 for members in cells)
    if alone:
        said.append(
            f"{alone:,} of {counted(len(cells), 'figure')} are from a single run."
        )
    home = publication.home
    origins = {
        record.origin
        for speed in publication.speeds
        if speed.machine == home and not speed.doubts
        for record in speed.records
    }
    owners = {origin.author if origin else None for origin in origins}
    if len(owners) == 1 and (owner := owners.pop()):
        said.append(f"Everything ranked on {home} is from one owner, {owner}.")
    return " ".join(said)
