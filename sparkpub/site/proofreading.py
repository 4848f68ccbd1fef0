"""The pages under review: what cannot be read, typed figures, claims whose verdict changed, dead links to evidence.

Each page is read by itself, so that one that cannot be read hides nothing of the others.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from heapq import nsmallest
from pathlib import Path

from sparkpub.record import documents
from sparkpub.record.errors import ClaimError, SparkpubError
from sparkpub.record.metrics import METRICS
from sparkpub.record.text import listed
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.registry import CHECKS
from sparkpub.review.checks.reviewing import Review
from sparkpub.review.claims import facts, ledger
from sparkpub.review.claims.ledger import Verdict
from sparkpub.review.dataset import Dataset
from sparkpub.site import prose, sources
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
_MOST_KEPT = 512
"""Pages that a preview does not read again."""
_EXPRESSION = re.compile(r"\{\{[^{}]*\}\}")
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)|\bhref=[\"']([^\"']+)")
_RUN = re.compile(r"(?:^|/)runs/([A-Za-z0-9][\w.-]*?)(?:\.md|/|$)")
_EVIDENCE = re.compile(r"(?:^|/)evidence/([a-z0-9][a-z0-9.-]*)/([A-Za-z0-9][\w.-]*)$")
_VALUE = re.compile(r"([+−-]?\d[\d,]*(?:\.\d+)?)\s*(\S.*)?$")

Speak = Callable[[], Words]
"""Gives the names that prose may use, with what they say today."""
Pages = Mapping[str, WrittenPage]
"""Pages by their addresses."""


def with_prose(review: Review, folder: Path, speak: Speak | None = None) -> Review:
    """The review with what is wrong in the pages, claims.yaml included, of a folder.

    `speak` is asked only where a page has an expression, or a typed figure that one could take the place of.
    """
    said = None if speak is None else cache(speak)
    pages = sources.pages(folder)
    found = list(_of_claims(folder, review))
    # Claims or facts that cannot be read have no values.
    found += _unreadable(folder, pages, None if found else said)
    found += typed_figures(folder, pages, None if found else said)
    found += _changed(folder, review)
    found += _dead_links(folder, pages, review.dataset)
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


# -- what cannot be read ---------------------------------------------------------------------------------------


def _unreadable(folder: Path, pages: Pages, speak: Speak | None) -> Iterator[Finding]:
    """Files of people that cannot be read, with the line."""
    words = None
    if speak is not None and any("{{" in page.whole for page in pages.values()):
        words = speak()
    for path, uri in sources.files(folder):
        try:
            sources.refuse_outside(path, uri, folder)
            if path.suffix == ".md":
                source = sources.read(path, uri)
                read_page(source)
                page = proof(source) if words is None else words.page(source)
                blog.posts({uri: page})
        except SparkpubError as error:
            yield from _problems(error, path, uri)


def _of_claims(folder: Path, review: Review) -> Iterator[Finding]:
    """What is wrong with claims.yaml and facts.yaml, and with claims about what a campaign does not have."""
    path = folder / FACTS_FILE
    try:
        facts.read(path)
        path = folder / CLAIMS_FILE
        found = judged(folder, review)
    except ClaimError as error:
        yield from _problems(error, path, str(path))
        return
    for claim, verdict in found.items():
        if isinstance(verdict, ClaimError):
            text = documents.text_of(path, ClaimError)
            line = text.count("\n", 0, max(0, text.find(claim))) + 1
            yield _finding(UNREADABLE, path, line, verdict.lines()[0])


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
    for claim in ledger.read(path):
        try:
            found[claim.id] = ledger.judge([claim], review)[0]
        except ClaimError as error:
            found[claim.id] = error
    return found


def _verdicts(folder: Path, review: Review) -> list[Verdict]:
    """The verdicts that there are."""
    with suppress(ClaimError):
        found = judged(folder, review).values()
        return [verdict for verdict in found if isinstance(verdict, Verdict)]
    return []


@lru_cache(_MOST_KEPT)
def _read(source: WrittenPage) -> Sequence[str] | SparkpubError:
    """What a reader sees of a page, read once for all checks: a page that takes too long does so once."""
    try:
        page = proof(source)
        with sources.bounded(source.uri):
            seen = prose.passages(prose.to_html(page.text))
    except SparkpubError as error:
        return error
    titles = (page.meta.get(name) for name in ("title", "description", "summary"))
    return [*filter(None, titles), *seen]


def read_page(source: WrittenPage) -> Sequence[str]:
    """What a reader sees of a page, title and description included. Raises ClaimError with file and line, SiteError for
    what no engine could read or follow."""
    found = _read(source)
    if isinstance(found, SparkpubError):
        raise found
    return found


def _problems(error: SparkpubError, path: Path, name: str) -> Iterator[Finding]:
    """Each line of an error, without the place, which a finding has itself."""
    place = re.compile(rf", {re.escape(name)}(?::(\d+))?(?=;|$)")
    for text in error.lines():
        found = place.search(text)
        line = int(found[1]) if found and found[1] else 1
        yield _finding(UNREADABLE, path, line, place.sub("", text))


# -- what is typed ---------------------------------------------------------------------------------------------


def typed_figures(
    folder: Path, pages: Pages, speak: Speak | None = None
) -> Iterator[Finding]:
    """Figures and verdicts that somebody typed, which go stale in silence, and directions against the figures beside
    them."""
    for uri, source in pages.items():
        passages: Sequence[str] = ()
        with suppress(SparkpubError):
            passages = read_page(source)
        for said in (said for passage in passages for said in prose.typed(passage)):
            line = prose.line_of(source.whole, said)
            text = f"{said.text!r} is typed into the text; {_advice(said, speak)}."
            yield _finding(UNBOUND, folder / uri, line, text)
        if speak is not None:
            yield from _directions(folder, source, speak)
    path = folder / CLAIMS_FILE
    claims = []
    with suppress(ClaimError):
        claims = ledger.read(path)
    for statement in claims:
        for said in prose.typed(statement.says or ""):
            line = prose.line_of(documents.text_of(path, ClaimError), said)
            text = f"{said.text!r} is typed into claim {statement.id}; a figure is tested: write it into expect."
            yield _finding(UNBOUND, path, line, text)


def _advice(said: Typed, speak: Speak | None) -> str:
    """What to write instead, with the expressions whose values come nearest to the number in its unit."""
    if said.kind == "verdict":
        return "a verdict comes from a claim: write {{ claim(…) }} or {{ verdict(…) }} in the same sentence"
    near: list[tuple[float, str]] = []
    if speak is not None and said.number is not None:
        for name, value in speak().values(near=said.number):
            found = _VALUE.fullmatch(value)
            if found is not None and said.unit in (None, found[2] or ""):
                size = abs(float(found[1].replace(",", "").replace("−", "-")))
                told = f"{{{{ {name} }}}} = {value}"
                near.append((abs(size - said.number), told))
    offered = "; ".join(told for _, told in nsmallest(2, near))
    return (
        f"write what was computed: {offered or '{{ value(…) }}, {{ compare(…) }}'}. A figure from elsewhere belongs in "
        "facts.yaml with its source: {{ fact(…) }}"
    )


_UP = r"(?:higher|more|larger|longer|faster|quicker)"
_DOWN = r"(?:lower|less|fewer|smaller|shorter|slower)"
_BESIDE = re.compile(rf"\s+(?:percent\s+)?({_UP}|{_DOWN})\b", re.IGNORECASE)
_BEFORE = re.compile(
    r"\b(?:(?P<up>ris(?:es?|en)|rose|gr[eo]w(?:s|n)?|gain(?:s|ed)?|increase[sd]?)"
    r"|(?P<down>f[ae]ll(?:s|en)?|drop(?:s|ped)?|sh?r[aiu]nk(?:s|en)?|los(?:es?|t)|decrease[sd]?))\s+(?:by\s+)?$",
    re.IGNORECASE,
)
_METRIC = re.compile(r"[\"']([a-z0-9_]+)[\"']")
_WORD = 40
"""Letters in which a word before an expression is looked for."""


def _directions(folder: Path, source: WrittenPage, speak: Speak) -> Iterator[Finding]:
    """`… lower` behind a difference or `falls by …` before one that is above zero, and so on: the words beside an
    expression are typed and its result is not, so that one can change without the other."""
    text = source.whole
    for found in _EXPRESSION.finditer(text):
        behind = _BESIDE.match(text, found.end())
        front = text[max(0, found.start() - _WORD) : found.start()]
        before = _BEFORE.search(front.replace("\n", " "))
        if before:
            word, is_up = before[0].strip(), before["up"] is not None
        elif behind:
            word, is_up = behind[1], _is_up(behind[1], found[0])
        else:
            continue
        shown = ""
        with suppress(SparkpubError):
            shown = speak().said(source, found[0])
        if shown[:1] in ("+", "−") and shown.startswith("+") != is_up:
            line = text.count("\n", 0, found.start()) + 1
            what = f"The sentence says “{word}”, and the figure is {shown}."
            yield _finding(UNBOUND, folder / source.uri, line, what)


def _is_up(word: str, expression: str) -> bool:
    """Whether a word says that the metric of an expression is higher: of a time, `slower` does."""
    is_up = re.fullmatch(_UP, word, re.IGNORECASE) is not None
    metrics = [METRICS[name] for name in _METRIC.findall(expression) if name in METRICS]
    is_speed = word.lower() in ("faster", "quicker", "slower")
    is_time = bool(metrics) and metrics[0].direction == "lower"
    return is_up != (is_speed and is_time)


# -- claims and links ------------------------------------------------------------------------------------------


def _changed(folder: Path, review: Review) -> Iterator[Finding]:
    """Claims that the data now judge otherwise than when the text was written, with the places to reread."""
    for found in _verdicts(folder, review):
        if found.changed:
            claim, now = found.claim, found.verdict
            places = prose.uses(folder, claim.id)
            text = f"Claim {claim.id} was recorded as {claim.recorded} and is now {now}: {found.text} "
            text += f"Reread {', '.join(places) or 'what rests on it'}, then record the verdict."
            yield _finding(
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


def _dead_links(folder: Path, pages: Pages, dataset: Dataset) -> Iterator[Finding]:
    """Links to runs that are not among the data, and to files that do not exist."""
    for uri, source in pages.items():
        for found in _LINK.finditer(source.whole):
            target = (found[1] or found[2]).split("#")[0].split("?")[0]
            if "://" not in target and _dead(target, dataset):
                line = source.whole.count("\n", 0, found.start()) + 1
                what = f"{target} leads to evidence that does not exist."
                yield _finding(DEAD, folder / uri, line, what)
    known: dict[str, facts.Fact] = {}
    with suppress(ClaimError):
        known = facts.read(folder / FACTS_FILE)
    unquoted = [fact.id for fact in known.values() if fact.quote is None]
    if unquoted:
        what = f"These facts have no quote: in which their figure stands: {listed(unquoted)}."
        yield replace(_finding(DEAD, folder / FACTS_FILE, 1, what), severity="info")


def _dead(target: str, dataset: Dataset) -> bool:
    run, file = _RUN.search(target), _EVIDENCE.search(target)
    if file is not None:
        path = dataset.folder / file[1] / file[2]
        return (
            not path.is_file()
            and not path.with_name(file[2].removesuffix(".txt")).is_file()
        )
    return run is not None and run[1] != "index" and run[1] not in dataset.by_id
