"""The pages under review: what cannot be read, typed figures, claims whose verdict changed, dead links to evidence.

Each page is read by itself, so that one that cannot be read hides nothing of the others.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

from sparkpub.record import documents
from sparkpub.record.errors import ClaimError, SiteError, SparkpubError
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.registry import CHECKS
from sparkpub.review.checks.reviewing import Review
from sparkpub.review.claims import facts, ledger
from sparkpub.review.claims.ledger import Verdict
from sparkpub.review.dataset import Dataset
from sparkpub.review.names import Names
from sparkpub.site import kept, prose, sources
from sparkpub.site.cache import key
from sparkpub.site.pages import blog
from sparkpub.site.prose import Typed
from sparkpub.site.sources import CLAIMS_FILE, FACTS_FILE, WrittenPage
from sparkpub.site.words import Words, proof

UNREADABLE, UNBOUND, CLAIM, DEAD = (
    "unreadable-page",
    "unbound-number",
    "claim",
    "dead-evidence",
)
"""The checks of kind `prose`."""
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)|\bhref=[\"']([^\"']+)")
_RUN = re.compile(r"(?:^|/)runs/([A-Za-z0-9][\w.-]*?)(?:\.md|/|$)")
_EVIDENCE = re.compile(r"(?:^|/)evidence/([a-z0-9][a-z0-9.-]*)/([A-Za-z0-9][\w.-]*)$")
_DIRECTION = re.compile(
    r"(?:\b(?:(?P<rises>ris(?:es?|en)|rose|gr[eo]w(?:s|n)?|gain(?:s|ed)?|increase[sd]?)"
    r"|(?P<falls>f[ae]ll(?:s|en)?|drop(?:s|ped)?|sh?r[aiu]nk(?:s|en)?|los(?:es?|t)|decrease[sd]?))\s+(?:by\s+)?)?"
    r"(?P<call>\{\{[^{}]*\}\})"
    r"(?:\s+(?:percent\s+)?(?:(?P<more>higher|more|larger|longer)|(?P<less>lower|less|fewer|smaller|shorter))\b)?",
    re.IGNORECASE,
)
"""An expression with the words of direction beside it."""

_ADVICE = {
    "figure": "write what was computed, {{ value(…) }} or {{ compare(…) }} (`sparkpub values` has the names). A figure "
    "from elsewhere belongs in facts.yaml with its source: {{ fact(…) }}",
    "verdict": "a verdict comes from a claim: write {{ claim(…) }} or {{ verdict(…) }} in the same sentence",
}
"""What to write instead."""

Speak = Callable[[], Words]
"""Gives the names that prose may use, with what they say today."""


def with_prose(review: Review, folder: Path, speak: Speak | None = None) -> Review:
    """The review with what is wrong in the pages, claims.yaml included, of a folder.

    `speak` is asked only where a page has an expression.
    """
    found = list(_of_claims(folder, review))
    # Claims or facts that cannot be read have no values.
    is_whole = not any(one.check == UNREADABLE for one in found)
    said = cache(speak) if speak is not None and is_whole else None
    for path, uri in sources.files(folder):
        try:
            sources.refuse_outside(path, uri, folder)
            if path.suffix == ".md":
                source = sources.read(path, uri)
                # One by one: what is found before an error stays.
                for finding in _of_page(path, source, review.dataset, said):
                    found.append(finding)
        except SparkpubError as error:
            found += _problems(error, path, uri)
    return replace(review, findings=review.findings + tuple(found))


def _finding(
    check: str,
    page: Path,
    line: int,
    message: str,
    *,
    campaign: str = "",
    **evidence: object,
) -> Finding:
    severity = CHECKS[check].severities[0]
    where = {"file": str(page), "line": line, **evidence}
    return Finding(check, severity, campaign, None, None, message, where)


def _problems(error: SparkpubError, path: Path, name: str) -> Iterator[Finding]:
    """Each line of an error, without the place, which a finding has itself."""
    place = re.compile(rf", {re.escape(name)}(?::(\d+))?(?=;|$)")
    for text in error.lines():
        found = place.search(text)
        line = int(found[1]) if found and found[1] else 1
        yield _finding(UNREADABLE, path, line, place.sub("", text))


# -- claims and facts ------------------------------------------------------------------------------------------


def _of_claims(folder: Path, review: Review) -> Iterator[Finding]:
    """What is wrong with claims.yaml and facts.yaml: what cannot be read, figures in the words of a claim, claims that
    the data now judge otherwise than when the text was written."""
    path = folder / FACTS_FILE
    try:
        facts.read(path)
        path = folder / CLAIMS_FILE
        found = judged(folder, review)
        claims = ledger.read(path)
    except ClaimError as error:
        yield from _problems(error, path, str(path))
        return
    text = documents.text_of(path, ClaimError) if claims else ""
    for claim in claims:
        verdict = found[claim.id]
        if isinstance(verdict, ClaimError):
            line = text.count("\n", 0, max(0, text.find(claim.id))) + 1
            yield _finding(UNREADABLE, path, line, verdict.lines()[0])
        elif verdict.changed:
            yield _changed(folder, verdict)
        for said in prose.typed(claim.says or ""):
            what = f"{said.text!r} is typed into claim {claim.id}; a figure is tested: write it into expect."
            yield _finding(UNBOUND, path, prose.line_of(text, said), what)


def _changed(folder: Path, found: Verdict) -> Finding:
    """A claim that was recorded with another verdict, with the places to reread."""
    claim, now = found.claim, found.verdict
    places = prose.uses(folder, claim.id)
    text = (
        f"Claim {claim.id} was recorded as {claim.recorded} and is now {now}: {found.text} "
        f"Reread {', '.join(places) or 'what rests on it'}, then record the verdict."
    )
    return _finding(
        CLAIM,
        folder / CLAIMS_FILE,
        1,
        text,
        campaign=claim.campaign,
        claim=claim.id,
        recorded=claim.recorded,
        verdict=now,
        places=places,
    )


def judged(folder: Path, review: Review) -> Mapping[str, Verdict | ClaimError]:
    """Claim to its verdict, or to what it names and its campaign does not have. Raises ClaimError where claims.yaml
    cannot be read."""
    path = folder / CLAIMS_FILE
    text = documents.text_of(path, ClaimError) if path.is_file() else ""
    return _judged(path, text, review)


@lru_cache(maxsize=1)
def _judged(path: Path, _: str, review: Review) -> Mapping[str, Verdict | ClaimError]:
    """The verdicts on the claims of a text, kept: they are proofread, and then shown."""
    found: dict[str, Verdict | ClaimError] = {}
    last, names = {**_last}, Names(review.dataset)
    _last.clear()
    for claim in ledger.read(path):
        of = kept.basis(review, names, [claim.campaign, *claim.repeated_in])
        name = of and key(of, claim.model_dump())
        try:
            verdict = last.get(name) or ledger.judge([claim], review, names)[0]
        except ClaimError as error:
            found[claim.id] = error
            continue
        found[claim.id] = verdict
        if name:
            _last[name] = verdict
    return found


_last: dict[str, Verdict] = {}
"""The verdicts of the last review, by what decides them: of a preview most campaigns are as they were."""


# -- pages -----------------------------------------------------------------------------------------------------


@cache
def read_page(source: WrittenPage) -> Sequence[str]:
    """What a reader sees of a page, title and description included. Raises ClaimError with file and line, SiteError for
    what no engine could follow."""
    page = proof(source)
    try:
        seen = prose.passages(prose.to_html(page.text))
    except RecursionError:
        what, remedy = "its parts are nested too deep", "write it as plain Markdown"
        raise SiteError(what, where=source.uri, remedy=remedy) from None
    titles = (page.meta.get(name) for name in ("title", "description", "summary"))
    return [*filter(None, titles), *seen]


def typed_on(source: WrittenPage) -> Iterator[Typed]:
    """Figures and verdicts of a page that nobody computed. Raises as `read_page` does."""
    for passage in read_page(source):
        yield from prose.typed(passage)


def _of_page(
    path: Path, source: WrittenPage, dataset: Dataset, speak: Speak | None
) -> Iterator[Finding]:
    """What is wrong in a page: figures and verdicts that somebody typed, which go stale in silence, links to evidence
    that is not there, directions against the figures beside them. Raises SparkpubError for what cannot be read."""
    for said in typed_on(source):
        line = prose.line_of(source.whole, said)
        what = f"{said.text!r} is typed into the text; {_ADVICE[said.kind]}."
        yield _finding(UNBOUND, path, line, what)
    for found in _LINK.finditer(source.whole):
        target = (found[1] or found[2]).split("#")[0].split("?")[0]
        if "://" not in target and _dead(target, dataset):
            line = source.whole.count("\n", 0, found.start()) + 1
            what = f"{target} leads to evidence that does not exist."
            yield _finding(DEAD, path, line, what)
    page = proof(source)
    if speak is not None and "{{" in source.whole:
        page = speak().page(source)
        yield from _directions(path, source, speak())
    blog.posts({source.uri: page})


def _directions(path: Path, source: WrittenPage, words: Words) -> Iterator[Finding]:
    """`… lower` behind a difference or `falls by …` before one that is above zero, and so on: the words beside an
    expression are typed and its result is not, so that one can change without the other."""
    for found in _DIRECTION.finditer(source.whole):
        up, down = found["rises"] or found["more"], found["falls"] or found["less"]
        if not (up or down):
            continue
        shown = words.said(source, found["call"])
        if shown[:1] in ("+", "−") and shown.startswith("+") != bool(up):
            line = source.whole.count("\n", 0, found.start("call")) + 1
            what = f"The sentence says “{up or down}”, and the figure is {shown}."
            yield _finding(UNBOUND, path, line, what)


def _dead(target: str, dataset: Dataset) -> bool:
    """Whether a link leads to a run that is not among the data, or to evidence that does not exist."""
    run, file = _RUN.search(target), _EVIDENCE.search(target)
    if file is not None:
        path = dataset.folder / file[1] / file[2]
        inert = path.with_name(file[2].removesuffix(".txt"))
        return not (path.is_file() or inert.is_file())
    return run is not None and run[1] != "index" and run[1] not in dataset.by_id
