"""The sentences under review: typed figures, claims whose verdict changed, links to evidence that is not there."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.registry import CHECKS
from sparkpub.review.checks.reviewing import Review
from sparkpub.review.claims import ledger
from sparkpub.review.dataset import Dataset
from sparkpub.site import prose

CLAIMS_FILE = "claims.yaml"
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)|\bhref=[\"']([^\"']+)")
_RUN = re.compile(r"(?:^|/)runs/([A-Za-z0-9][\w.-]*?)(?:\.md|/|$)")
_EVIDENCE = re.compile(r"(?:^|/)evidence/([a-z0-9][a-z0-9.-]*)/([A-Za-z0-9][\w.-]*)$")


def with_prose(review: Review, sources: Path) -> Review:
    """The review with what is wrong in the pages, ledger.yaml included, of a folder."""
    found = [finding for read in READERS.values() for finding in read(sources, review)]
    return replace(review, findings=review.findings + tuple(found))


def unbound_number(sources: Path, _review: Review) -> Iterator[Finding]:
    """Figures with a unit that somebody typed: they go stale in silence."""
    for page in prose.pages(sources):
        for number in prose.unbound_numbers(page):
            text = f"{number.text!r} is typed into the text; {number.fix}."
            yield _finding("unbound-number", page, number.line, text)


def claim(sources: Path, review: Review) -> Iterator[Finding]:
    """Claims that the data now judge otherwise than when the text was written, with the places to reread."""
    path = sources / CLAIMS_FILE
    for verdict in ledger.judge(ledger.read(path), review.dataset, review) if path.is_file() else ():
        if verdict.verdict != verdict.claim.recorded:
            places = prose.uses(sources, verdict.claim.id)
            text = (
                f"Claim {verdict.claim.id} was recorded as {verdict.claim.recorded} and is now {verdict.verdict}: "
                f"{verdict.text} Reread {', '.join(places) if places else 'what rests on it'}, then record the verdict."
            )
            yield _finding("claim", path, 1, text, campaign=verdict.claim.campaign, claim=verdict.claim.id,
                           recorded=verdict.claim.recorded, verdict=verdict.verdict, places=places)  # fmt: skip


def dead_evidence(sources: Path, review: Review) -> Iterator[Finding]:
    """Links to runs that are not among the data, and to files that do not exist."""
    for page in prose.pages(sources):
        text = page.read_text(encoding="utf-8")
        for found in _LINK.finditer(text):
            target = (found[1] or found[2]).split("#")[0].split("?")[0]
            if "://" not in target and _dead(target, review.dataset):
                line = text.count("\n", 0, found.start()) + 1
                yield _finding("dead-evidence", page, line, f"{target} leads to evidence that does not exist.")


def _dead(target: str, dataset: Dataset) -> bool:
    run, file = _RUN.search(target), _EVIDENCE.search(target)
    if file is not None:
        folder = dataset.folder / file[1]
        return not any((folder / name).is_file() for name in (file[2], file[2].removesuffix(".txt")))
    return run is not None and run[1] != "index" and run[1] not in dataset.by_id


def _finding(check: str, page: Path, line: int, message: str, *, campaign: str = "", **evidence: object) -> Finding:
    where = {"file": str(page), "line": line}
    return Finding(check, CHECKS[check].severities[0], campaign, None, None, message, where | evidence)


READERS: dict[str, Callable[[Path, Review], Iterator[Finding]]] = {
    "unbound-number": unbound_number,
    "claim": claim,
    "dead-evidence": dead_evidence,
}
"""The checks of kind `prose` by name: how each reads a folder of pages."""
