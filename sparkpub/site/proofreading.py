"""The sentences under review: typed figures, claims whose verdict changed, links to evidence that is not there."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from sparkpub.record import documents
from sparkpub.record.errors import ClaimError, SparkpubError
from sparkpub.record.text import listed
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.registry import CHECKS
from sparkpub.review.checks.reviewing import Review
from sparkpub.review.claims import ledger
from sparkpub.review.dataset import Dataset
from sparkpub.site import prose
from sparkpub.site.prose import Passage, Typed
from sparkpub.site.reading import (
    CHECK,
    Speak,
    claims,
    facts,
    read_page,
    unreadable_page,
    verdict,
)
from sparkpub.site.signs import against_sign
from sparkpub.site.sources import CLAIMS_FILE, FACTS_FILE, FRONT

_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)|\bhref=[\"']([^\"']+)")
_RUN = re.compile(r"(?:^|/)runs/([A-Za-z0-9][\w.-]*?)(?:\.md|/|$)")
_EVIDENCE = re.compile(r"(?:^|/)evidence/([a-z0-9][a-z0-9.-]*)/([A-Za-z0-9][\w.-]*)$")


def with_prose(review: Review, sources: Path, speak: Speak | None = None) -> Review:
    """The review with what is wrong in the pages, claims.yaml included, of a folder.

    `speak` is asked only where a page has an expression, or a typed figure that one could take the place of.
    """
    said = None if speak is None else cache(speak)
    found: list[Finding] = []
    for read in READERS.values():
        found += read(sources, review, said)
        if any(finding.check == CHECK for finding in found):
            said = None  # claims or facts that cannot be read have no values
    return replace(review, findings=review.findings + tuple(found))


def unbound_number(
    sources: Path, _review: Review, speak: Speak | None
) -> Iterator[Finding]:
    """Figures and verdicts that somebody typed, which go stale in silence, and directions against the figures beside
    them."""
    for page, uri, source in prose.pages(sources):
        for passage in _passages(source, uri):
            for said in prose.typed(passage):
                text = f"{said.text!r} is typed into the text; {_advice(said, speak)}."
                yield _finding(
                    "unbound-number", page, prose.line_of(source, said), text
                )
    for page, line, text in _against_signs(sources, speak):
        yield _finding("unbound-number", page, line, text)
    path = sources / CLAIMS_FILE
    for statement in claims(sources):
        for said in prose.typed(Passage(statement.says or "")):
            line = prose.line_of(documents.text_of(path, ClaimError), said)
            text = f"{said.text!r} is typed into claim {statement.id}; a figure is tested: write it into expect."
            yield _finding("unbound-number", path, line, text)


def _passages(source: str, uri: str) -> list[Passage]:
    """What a reader sees of a page, nothing where it cannot be read."""
    try:
        return read_page(source, uri)
    except SparkpubError:
        return []


def _advice(said: Typed, speak: Speak | None) -> str:
    """What to write instead: the expression that gives this number, where there is one."""
    if said.kind == "verdict":
        return "a verdict comes from a claim: write {{ claim(…) }} or {{ verdict(…) }} in the same sentence"
    if said.number is None:
        return (
            "write what was computed: {{ value(…) }}, {{ compare(…) }} or {{ fact(…) }}"
        )
    names = () if speak is None else tuple(speak().values())
    exact, near = _matches(said, names)
    if exact:
        return f"write {{{{ {exact[0]} }}}}"
    number = f"{said.number:g}" + (f" {said.unit}" if said.unit else "")
    nearest = "; ".join(f"{{{{ {name} }}}} = {value}" for name, value in near)
    what = (
        f"no value is {number}; nearest: {nearest}"
        if nearest
        else f"no value is {number}"
    )
    return f"{what}. A figure from elsewhere belongs in facts.yaml with its source: {{{{ fact(…) }}}}"


_LINKED = re.compile(r"^\[([^\]]*)\]\(.*", re.DOTALL)


def _against_signs(
    sources: Path, speak: Speak | None
) -> Iterator[tuple[Path, int, str]]:
    """What sentences say against the signs of their own expressions: page, line and text."""
    if speak is None:
        return
    for page, uri, source in prose.pages(sources):
        render = partial(_rendered, page=source, uri=uri, speak=speak)
        for place, text in against_sign(source, render):
            yield page, source.count("\n", 0, place) + 1, text


def _rendered(expression: str, page: str, uri: str, speak: Speak) -> str | None:
    """What an expression of a page says, without the link of a fact to its source, `[3 GiB](…)`; None where it
    cannot."""
    front = FRONT.match(page)
    head = front[0] if front else ""
    try:
        said = speak().render(head + expression, uri)
    except SparkpubError:
        return None
    return _LINKED.sub(r"\1", said[len(head) :])


def _number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


_VALUE = re.compile(r"([+−-]?\d[\d,]*(?:\.\d+)?)\s*(\S.*)?$")


def _matches(
    said: Typed, names: Sequence[tuple[str, str]]
) -> tuple[list[str], list[tuple[str, str]]]:
    """Expressions whose value is the number as typed, and the two that come nearest to it in the same unit."""
    assert said.number is not None
    exact: list[str] = []
    near: list[tuple[float, str, str]] = []
    decimals = len(said.text.partition(".")[2].split(" ")[0].rstrip("%GiBtok/s"))
    for name, value in names:
        found = _VALUE.fullmatch(value)
        if found is None or (said.unit is not None and (found[2] or "") != said.unit):
            continue
        number = abs(_number(found[1]))
        if round(number, decimals) == said.number:
            exact.append(name)
        near.append((abs(number - said.number), name, value))
    return exact, [(name, value) for _, name, value in sorted(near)[:2]]


def claim(sources: Path, review: Review, _speak: Speak | None) -> Iterator[Finding]:
    """Claims that the data now judge otherwise than when the text was written, with the places to reread."""
    path = sources / CLAIMS_FILE
    for found in _verdicts(sources, review):
        if found.changed:
            places = prose.uses(sources, found.claim.id)
            text = (
                f"Claim {found.claim.id} was recorded as {found.claim.recorded} and is now {found.verdict}: "
                f"{found.text} Reread {', '.join(places) if places else 'what rests on it'}, then record the verdict."
            )
            yield _finding(
                "claim",
                path,
                1,
                text,
                campaign=found.claim.campaign,
                claim=found.claim.id,
                recorded=found.claim.recorded,
                verdict=found.verdict,
                places=places,
            )


def _verdicts(sources: Path, review: Review) -> Iterator[ledger.Verdict]:
    """The verdicts on the claims that can be judged."""
    for statement in claims(sources):
        with suppress(ClaimError):
            yield verdict(statement, review)


def dead_evidence(
    sources: Path, review: Review, _speak: Speak | None
) -> Iterator[Finding]:
    """Links to runs that are not among the data, and to files that do not exist; and facts whose source is not quoted,
    so that nobody can compare the figure with it."""
    for page, _, text in prose.pages(sources):
        for found in _LINK.finditer(text):
            target = (found[1] or found[2]).split("#")[0].split("?")[0]
            if "://" not in target and _dead(target, review.dataset):
                line = text.count("\n", 0, found.start()) + 1
                yield _finding(
                    "dead-evidence",
                    page,
                    line,
                    f"{target} leads to evidence that does not exist.",
                )
    unquoted = [fact.id for fact in facts(sources).values() if fact.quote is None]
    if unquoted:
        text = f"These facts have no quote: in which their figure stands: {listed(unquoted)}."
        found = _finding("dead-evidence", sources / FACTS_FILE, 1, text)
        yield replace(found, severity="info")


def _dead(target: str, dataset: Dataset) -> bool:
    run, file = _RUN.search(target), _EVIDENCE.search(target)
    if file is not None:
        folder = dataset.folder / file[1]
        return not any(
            (folder / name).is_file()
            for name in (file[2], file[2].removesuffix(".txt"))
        )
    return run is not None and run[1] != "index" and run[1] not in dataset.by_id


def _finding(
    check: str,
    page: Path,
    line: int,
    message: str,
    *,
    campaign: str = "",
    **evidence: object,
) -> Finding:
    where = {"file": str(page), "line": line}
    return Finding(
        check,
        CHECKS[check].severities[0],
        campaign,
        None,
        None,
        message,
        where | evidence,
    )


READERS: dict[str, Callable[[Path, Review, Speak | None], Iterator[Finding]]] = {
    CHECK: unreadable_page,
    "unbound-number": unbound_number,
    "claim": claim,
    "dead-evidence": dead_evidence,
}
"""The checks of kind `prose` by name: how each reads a folder of pages; those behind the first, what can be read."""
