"""The pages under review: what cannot be read, typed figures, claims whose verdict changed, dead links to evidence.

Each page is read by itself, so that one that cannot be read hides nothing of the others.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

from sparkpub.record import documents
from sparkpub.record.errors import ClaimError, SiteError, SparkpubError
from sparkpub.record.metrics import METRICS
from sparkpub.record.text import listed
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.registry import CHECKS
from sparkpub.review.checks.reviewing import Review
from sparkpub.review.claims import facts, ledger
from sparkpub.review.claims.claim import Claim
from sparkpub.review.dataset import Dataset
from sparkpub.site import prose
from sparkpub.site.content import POSTS
from sparkpub.site.pages import blog
from sparkpub.site.prose import Typed
from sparkpub.site.sources import (
    CLAIMS_FILE,
    FACTS_FILE,
    FRONT,
    bounded,
    files,
    page_text,
    refuse_outside,
)
from sparkpub.site.words import Words, proof

UNREADABLE, UNBOUND, CLAIM, DEAD = (
    "unreadable-page",
    "unbound-number",
    "claim",
    "dead-evidence",
)
"""The checks of kind `prose`."""
_MOST_KEPT = 512
"""Pages that are read once."""
_EXPRESSION = re.compile(r"\{\{[^{}]*\}\}")
_TITLE = re.compile(r"^(?:title|description|summary):\s*(.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)|\bhref=[\"']([^\"']+)")
_RUN = re.compile(r"(?:^|/)runs/([A-Za-z0-9][\w.-]*?)(?:\.md|/|$)")
_EVIDENCE = re.compile(r"(?:^|/)evidence/([a-z0-9][a-z0-9.-]*)/([A-Za-z0-9][\w.-]*)$")
_LINKED = re.compile(r"^\[([^\]]*)\]\(.*", re.DOTALL)
_VALUE = re.compile(r"([+−-]?\d[\d,]*(?:\.\d+)?)\s*(\S.*)?$")

Speak = Callable[[], Words]
"""Gives the names that prose may use, with what they say today."""
Pages = Mapping[str, str]
"""The text of pages by their addresses."""


def with_prose(review: Review, sources: Path, speak: Speak | None = None) -> Review:
    """The review with what is wrong in the pages, claims.yaml included, of a folder.

    `speak` is asked only where a page has an expression, or a typed figure that one could take the place of.
    """
    said = None if speak is None else cache(speak)
    pages = prose.pages(sources)
    found = list(_of_claims(sources, review))
    # Claims or facts that cannot be read have no values.
    found += _unreadable(sources, pages, None if found else said)
    if found:
        said = None
    found += typed_figures(sources, pages, said)
    found += _changed(sources, review)
    found += _dead_links(sources, pages, review.dataset)
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


def _unreadable(sources: Path, pages: Pages, speak: Speak | None) -> Iterator[Finding]:
    """Files of people that cannot be read, with the line, and posts that cannot stand beside each other."""
    words = None
    if speak is not None and any(
        "{{" in text or "{%" in text for text in pages.values()
    ):
        words = speak()
    posts: dict[str, str] = {}
    for path, uri in files(sources):
        try:
            refuse_outside(path, uri, sources)
            if path.suffix == ".md":
                text = page_text(path, uri)
                read_page(text, uri)
                shown = proof(text, uri) if words is None else words.render(text, uri)
                if uri.startswith(POSTS):
                    blog.posts({uri: shown})
                    posts[uri] = shown
        except SparkpubError as error:
            yield from _problems(error, path, uri)
    try:
        blog.posts(posts)
    except SiteError as error:
        yield from _problems(error, sources / error.where, error.where)


def _of_claims(sources: Path, review: Review) -> Iterator[Finding]:
    """What is wrong with claims.yaml and facts.yaml, and with claims about what a campaign does not have."""
    for name, read in ((FACTS_FILE, facts.read), (CLAIMS_FILE, ledger.read)):
        try:
            read(sources / name)
        except ClaimError as error:
            yield from _problems(error, sources / name, str(sources / name))
            break
    path = sources / CLAIMS_FILE
    for claim in _claims(sources):
        try:
            verdict(claim, review)
        except ClaimError as error:
            line = _line_with(documents.text_of(path, ClaimError), claim.id)
            yield _finding(UNREADABLE, path, line, error.lines()[0])


def _claims(sources: Path) -> list[Claim]:
    """The claims, none where they cannot be read."""
    with suppress(ClaimError):
        return ledger.read(sources / CLAIMS_FILE)
    return []


def verdict(claim: Claim, review: Review) -> ledger.Verdict:
    """The verdict on a claim. Raises ClaimError where it names what its campaign does not have.

    Claims are proofread, judged for the pages, and judged again in a preview.
    """
    known = _judged(review)
    if claim.id not in known or known[claim.id].claim != claim:
        known[claim.id] = ledger.judge([claim], review)[0]
    return known[claim.id]


@lru_cache(maxsize=1)
def _judged(_review: Review) -> dict[str, ledger.Verdict]:
    """The verdicts that were found for the last review, by ids of claims."""
    return {}


def read_page(source: str, uri: str) -> list[str]:
    """What a reader sees of a page, title and description included. Raises ClaimError with file and line, SiteError for
    what no engine could read or follow."""
    found = _read(source, uri)
    if isinstance(found, SparkpubError):
        raise found
    return found


@lru_cache(_MOST_KEPT)
def _read(source: str, uri: str) -> list[str] | SparkpubError:
    """The same, read once for all checks: a page that takes too long does so once."""
    try:
        filled = proof(source, uri)
        front = FRONT.match(filled)
        head = front[0] if front else ""
        with bounded(uri):
            found = prose.passages(prose.to_html(filled[len(head) :]))
    except SparkpubError as error:
        return error
    return _TITLE.findall(head) + found


def _problems(error: SparkpubError, path: Path, name: str) -> Iterator[Finding]:
    """Each line of an error, without the place, which a finding has itself."""
    place = re.compile(rf", {re.escape(name)}(?::(\d+))?(?=;|$)")
    for text in error.lines():
        found = place.search(text)
        line = int(found[1]) if found and found[1] else 1
        yield _finding(UNREADABLE, path, line, place.sub("", text))


def _line_with(source: str, text: str) -> int:
    """The first line of a page that has a text; the first of all where none has it as it is."""
    return source.count("\n", 0, max(0, source.find(text))) + 1


# -- what is typed ---------------------------------------------------------------------------------------------


def typed_figures(
    sources: Path, pages: Pages, speak: Speak | None
) -> Iterator[Finding]:
    """Figures and verdicts that somebody typed, which go stale in silence, and directions against the figures beside
    them."""
    for uri, source in pages.items():
        page, passages = sources / uri, list[str]()
        with suppress(SparkpubError):
            passages = read_page(source, uri)
        for said in (said for passage in passages for said in prose.typed(passage)):
            text = f"{said.text!r} is typed into the text; {_advice(said, speak)}."
            yield _finding(UNBOUND, page, prose.line_of(source, said), text)
        for expression, word, is_up in _directions(source):
            shown = "" if speak is None else _said(expression[0], source, uri, speak())
            if shown[:1] in ("+", "−") and shown.startswith("+") != is_up:
                line = source.count("\n", 0, expression.start()) + 1
                text = f"The sentence says “{word}”, and the figure is {shown}."
                yield _finding(UNBOUND, page, line, text)
    path = sources / CLAIMS_FILE
    for statement in _claims(sources):
        for said in prose.typed(statement.says or ""):
            line = prose.line_of(documents.text_of(path, ClaimError), said)
            text = f"{said.text!r} is typed into claim {statement.id}; a figure is tested: write it into expect."
            yield _finding(UNBOUND, path, line, text)


def _advice(said: Typed, speak: Speak | None) -> str:
    """What to write instead: the expression that gives this number, where there is one."""
    if said.kind == "verdict":
        return "a verdict comes from a claim: write {{ claim(…) }} or {{ verdict(…) }} in the same sentence"
    if said.number is None:
        return (
            "write what was computed: {{ value(…) }}, {{ compare(…) }} or {{ fact(…) }}"
        )
    exact, near = _matches(
        said, () if speak is None else speak().values(near=said.number)
    )
    if exact:
        return f"write {{{{ {exact[0]} }}}}"
    what = f"no value is {said.number:g} {said.unit or ''}".strip()
    if near:
        told = (f"{{{{ {name} }}}} = {value}" for name, value in near)
        what += f"; nearest: {'; '.join(told)}"
    return f"{what}. A figure from elsewhere belongs in facts.yaml with its source: {{{{ fact(…) }}}}"


def _matches(
    said: Typed, names: Iterable[tuple[str, str]]
) -> tuple[list[str], list[tuple[str, str]]]:
    """Expressions whose value is the number as typed, and the two that come nearest to it in the same unit."""
    assert said.number is not None
    exact: list[str] = []
    near: list[tuple[float, str, str]] = []
    fraction = re.search(r"\.(\d+)", said.text)
    decimals = len(fraction[1]) if fraction else 0
    for name, value in names:
        found = _VALUE.fullmatch(value)
        if found is None or said.unit not in (None, found[2] or ""):
            continue
        number = abs(float(found[1].replace(",", "").replace("−", "-")))
        if round(number, decimals) == said.number:
            exact.append(name)
        near.append((abs(number - said.number), name, value))
    return exact, [(name, value) for _, name, value in sorted(near)[:2]]


# -- a direction against its figure ----------------------------------------------------------------------------

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


def _directions(source: str) -> Iterator[tuple[re.Match[str], str, bool]]:
    """`… lower` behind a difference, `falls by …` before one: each such expression of a page, the word, and whether it
    says that the figure is above zero. The words beside an expression are typed and its result is not, so that one can
    change without the other."""
    for found in _EXPRESSION.finditer(source):
        behind = _BESIDE.match(source, found.end())
        front = source[max(0, found.start() - _WORD) : found.start()]
        before = _BEFORE.search(front.replace("\n", " "))
        if before:
            yield found, before[0].strip(), before["up"] is not None
        elif behind:
            yield found, behind[1], _is_up(behind[1], found[0])


def _is_up(word: str, expression: str) -> bool:
    """Whether a word says that the metric of an expression is higher: of a time, `slower` does."""
    is_up = re.fullmatch(_UP, word, re.IGNORECASE) is not None
    metrics = [METRICS[name] for name in _METRIC.findall(expression) if name in METRICS]
    is_speed = word.lower() in ("faster", "quicker", "slower")
    is_time = bool(metrics) and metrics[0].direction == "lower"
    return is_up != (is_speed and is_time)


def _said(expression: str, page: str, uri: str, words: Words) -> str:
    """What an expression of a page says, without the link of a fact to its source, `[3 GiB](…)`; nothing where it
    cannot."""
    front = FRONT.match(page)
    head = front[0] if front else ""
    with suppress(SparkpubError):
        said = words.render(head + expression, uri)
        return _LINKED.sub(r"\1", said[len(head) :])
    return ""


# -- claims and links ------------------------------------------------------------------------------------------


def _changed(sources: Path, review: Review) -> Iterator[Finding]:
    """Claims that the data now judge otherwise than when the text was written, with the places to reread."""
    for claim in _claims(sources):
        with suppress(ClaimError):
            found = verdict(claim, review)
            if not found.changed:
                continue
            places = prose.uses(sources, claim.id)
            then, now = claim.recorded, found.verdict
            text = f"Claim {claim.id} was recorded as {then} and is now {now}: {found.text} "
            text += f"Reread {', '.join(places) or 'what rests on it'}, then record the verdict."
            yield _finding(
                CLAIM,
                sources / CLAIMS_FILE,
                1,
                text,
                campaign=claim.campaign,
                claim=claim.id,
                recorded=then,
                verdict=now,
                places=places,
            )


def _dead_links(sources: Path, pages: Pages, dataset: Dataset) -> Iterator[Finding]:
    """Links to runs that are not among the data, and to files that do not exist."""
    for uri, text in pages.items():
        for found in _LINK.finditer(text):
            target = (found[1] or found[2]).split("#")[0].split("?")[0]
            if "://" not in target and _dead(target, dataset):
                line = text.count("\n", 0, found.start()) + 1
                what = f"{target} leads to evidence that does not exist."
                yield _finding(DEAD, sources / uri, line, what)
    known: dict[str, facts.Fact] = {}
    with suppress(ClaimError):
        known = facts.read(sources / FACTS_FILE)
    unquoted = [fact.id for fact in known.values() if fact.quote is None]
    if unquoted:
        what = f"These facts have no quote: in which their figure stands: {listed(unquoted)}."
        yield replace(_finding(DEAD, sources / FACTS_FILE, 1, what), severity="info")


def _dead(target: str, dataset: Dataset) -> bool:
    run, file = _RUN.search(target), _EVIDENCE.search(target)
    if file is not None:
        path = dataset.folder / file[1] / file[2]
        return (
            not path.is_file()
            and not path.with_name(file[2].removesuffix(".txt")).is_file()
        )
    return run is not None and run[1] != "index" and run[1] not in dataset.by_id
