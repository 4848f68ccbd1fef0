"""The pages under review: what cannot be read, typed figures, claims whose verdict changed, dead links to evidence.

Each page is read by itself, so that one that cannot be read hides nothing of the others.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path

from sparkpub.record import documents
from sparkpub.record.errors import ClaimError, SiteError, SparkpubError
from sparkpub.record.metrics import METRICS
from sparkpub.record.text import listed
from sparkpub.record.web import address_problem
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.registry import CHECKS
from sparkpub.review.checks.reviewing import Review
from sparkpub.review.claims import facts, ledger
from sparkpub.review.claims.claim import Claim
from sparkpub.review.dataset import Dataset
from sparkpub.site import prose
from sparkpub.site.content import POSTS, Content
from sparkpub.site.pages import blog
from sparkpub.site.prose import Passage, Typed
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

UNREADABLE = "unreadable-page"
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


def with_prose(review: Review, sources: Path, speak: Speak | None = None) -> Review:
    """The review with what is wrong in the pages, claims.yaml included, of a folder.

    `speak` is asked only where a page has an expression, or a typed figure that one could take the place of.
    """
    said = None if speak is None else cache(speak)
    found: list[Finding] = []
    for read in READERS.values():
        found += read(sources, review, said)
        if any(finding.check == UNREADABLE for finding in found):
            said = None  # claims or facts that cannot be read have no values
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
    where = {"file": str(page), "line": line}
    severity = CHECKS[check].severities[0]
    return Finding(
        check,
        severity,
        campaign,
        None,
        None,
        message,
        where | evidence,
    )


# -- what cannot be read ---------------------------------------------------------------------------------------


def unreadable_page(
    sources: Path, review: Review, speak: Speak | None
) -> Iterator[Finding]:
    """Files of people that cannot be read, with the line, and posts that cannot stand beside each other."""
    in_the_way = list(_of_claims(sources, review))
    yield from in_the_way
    words = None
    asks = any("{{" in text or "{%" in text for _, _, text in prose.pages(sources))
    if speak is not None and asks and not in_the_way:
        words = speak()
    posts: dict[str, Content] = {}
    for path, uri in files(sources):
        try:
            refuse_outside(path, uri, sources)
            if path.suffix == ".md":
                text = page_text(path, uri)
                read_page(text, uri)
                shown = proof(text, uri) if words is None else words.render(text, uri)
                if uri.startswith(POSTS):
                    blog.posts({uri: Content(text=shown)})
                    posts[uri] = Content(text=shown)
        except SparkpubError as error:
            yield from _problems(error, path, uri)
    try:
        blog.posts(posts)
    except SiteError as error:
        yield from _problems(error, sources / error.where, error.where)


def _of_claims(sources: Path, review: Review) -> Iterator[Finding]:
    """What is wrong with claims.yaml and facts.yaml, and with claims about what a campaign does not have."""
    path = sources / FACTS_FILE
    try:
        facts.read(path)
        path = sources / CLAIMS_FILE
        ledger.read(path)
    except ClaimError as error:
        yield from _problems(error, path, str(path))
    path = sources / CLAIMS_FILE
    for claim in _claims(sources):
        try:
            verdict(claim, review)
        except ClaimError as error:
            line = _line_with(documents.text_of(path, ClaimError), claim.id)
            yield _finding(
                UNREADABLE,
                path,
                line,
                error.lines()[0],
            )


def _claims(sources: Path) -> list[Claim]:
    """The claims, none where they cannot be read."""
    with suppress(ClaimError):
        return ledger.read(sources / CLAIMS_FILE)
    return []


def verdict(claim: Claim, review: Review) -> ledger.Verdict:
    """The verdict on a claim. Raises ClaimError where it names what its campaign does not have.

    Those of the last review are kept: claims are proofread, judged for the pages, and judged again in a preview.
    """
    if not _judged or _judged[0][0] is not review:
        _judged[:] = [(review, {})]
    known = _judged[0][1]
    if claim.id not in known or known[claim.id].claim != claim:
        known[claim.id] = ledger.judge([claim], review)[0]
    return known[claim.id]


_judged: list[tuple[Review, dict[str, ledger.Verdict]]] = []
"""The last review, and the verdicts on claims by their ids."""


def read_page(source: str, uri: str) -> list[Passage]:
    """What a reader sees of a page, title and description included. Raises ClaimError with file and line, SiteError for
    what no engine could read or follow."""
    found = _read(source, uri)
    if isinstance(found, SparkpubError):
        raise found
    return found


@lru_cache(_MOST_KEPT)
def _read(source: str, uri: str) -> list[Passage] | SparkpubError:
    """The same, read once for all checks: a page that takes too long does so once."""
    try:
        filled = proof(source, uri)
        front = FRONT.match(filled)
        head = front[0] if front else ""
        titles = [Passage(found[1]) for found in _TITLE.finditer(head)]
        with bounded(uri):
            found, addresses = prose.passages(prose.to_html(filled[len(head) :]))
        for address in addresses:
            problem = address_problem(address)
            if problem is not None:
                where = f"{uri}:{_line_with(source, address)}"
                raise SiteError(problem, where=where, remedy="correct the link")
    except SparkpubError as error:
        return error
    return titles + found


def _problems(error: SparkpubError, path: Path, name: str) -> Iterator[Finding]:
    """Each line of an error, without the place, which a finding has itself."""
    place = re.compile(rf", {re.escape(name)}(?::(\d+))?(?=;|$)")
    for text in error.lines():
        found = place.search(text)
        line = int(found[1]) if found and found[1] else 1
        yield _finding(
            UNREADABLE,
            path,
            line,
            place.sub("", text),
        )


def _line_with(source: str, text: str) -> int:
    """The first line of a page that has a text; the first of all where none has it as it is."""
    return source.count("\n", 0, max(0, source.find(text))) + 1


# -- what is typed ---------------------------------------------------------------------------------------------


def unbound_number(
    sources: Path, _review: Review, speak: Speak | None
) -> Iterator[Finding]:
    """Figures and verdicts that somebody typed, which go stale in silence, and directions against the figures beside
    them."""
    check = "unbound-number"
    for page, uri, source in prose.pages(sources):
        passages: list[Passage] = []
        with suppress(SparkpubError):
            passages = read_page(source, uri)
        for said in (said for passage in passages for said in prose.typed(passage)):
            text = f"{said.text!r} is typed into the text; {_advice(said, speak)}."
            yield _finding(
                check,
                page,
                prose.line_of(source, said),
                text,
            )
        if speak is not None:
            say = partial(
                _said,
                page=source,
                uri=uri,
                speak=speak,
            )
            for place, text in against_sign(source, say):
                yield _finding(
                    check,
                    page,
                    source.count("\n", 0, place) + 1,
                    text,
                )
    path = sources / CLAIMS_FILE
    for statement in _claims(sources):
        for said in prose.typed(Passage(statement.says or "")):
            line = prose.line_of(documents.text_of(path, ClaimError), said)
            text = f"{said.text!r} is typed into claim {statement.id}; a figure is tested: write it into expect."
            yield _finding(check, path, line, text)


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


def against_sign(
    source: str, render: Callable[[str], str | None]
) -> Iterator[tuple[int, str]]:
    """`… lower` behind a difference above zero, `falls by …` before one: each place in a page, and what is wrong. The
    words beside an expression are typed and its result is not, so that one can change without the other."""
    for found in _EXPRESSION.finditer(source):
        behind = _BESIDE.match(source, found.end())
        front = source[max(0, found.start() - _WORD) : found.start()]
        before = _BEFORE.search(front.replace("\n", " "))
        if before:
            is_up, word = before["up"] is not None, before[0].strip()
        elif behind:
            is_up, word = _is_up(behind[1], found[0]), behind[1]
        else:
            continue
        said = render(found[0]) or ""
        if said[:1] in ("+", "−") and said.startswith("+") != is_up:
            what = f"The sentence says “{word}”, and the figure is {said}."
            yield found.start(), what


def _is_up(word: str, expression: str) -> bool:
    """Whether a word says that the metric of an expression is higher: of a time, `slower` does."""
    is_up = re.fullmatch(_UP, word, re.IGNORECASE) is not None
    metrics = [METRICS[name] for name in _METRIC.findall(expression) if name in METRICS]
    is_speed = word.lower() in ("faster", "quicker", "slower")
    is_time = bool(metrics) and metrics[0].direction == "lower"
    return is_up != (is_speed and is_time)


def _said(expression: str, page: str, uri: str, speak: Speak) -> str | None:
    """What an expression of a page says, without the link of a fact to its source, `[3 GiB](…)`; None where it
    cannot."""
    front = FRONT.match(page)
    head = front[0] if front else ""
    with suppress(SparkpubError):
        said = speak().render(head + expression, uri)
        return _LINKED.sub(r"\1", said[len(head) :])
    return None


# -- claims and links ------------------------------------------------------------------------------------------


def claim(sources: Path, review: Review, _speak: Speak | None) -> Iterator[Finding]:
    """Claims that the data now judge otherwise than when the text was written, with the places to reread."""
    for statement in _claims(sources):
        with suppress(ClaimError):
            found = verdict(statement, review)
            if not found.changed:
                continue
            places = prose.uses(sources, statement.id)
            then, now = statement.recorded, found.verdict
            text = f"Claim {statement.id} was recorded as {then} and is now {now}: {found.text} "
            text += f"Reread {', '.join(places) or 'what rests on it'}, then record the verdict."
            evidence = {"recorded": then, "verdict": now, "places": places}
            yield _finding(
                "claim",
                sources / CLAIMS_FILE,
                1,
                text,
                campaign=statement.campaign,
                claim=statement.id,
                **evidence,
            )


def dead_evidence(
    sources: Path, review: Review, _speak: Speak | None
) -> Iterator[Finding]:
    """Links to runs that are not among the data, and to files that do not exist."""
    for page, _, text in prose.pages(sources):
        for found in _LINK.finditer(text):
            target = (found[1] or found[2]).split("#")[0].split("?")[0]
            if "://" not in target and _dead(target, review.dataset):
                line = text.count("\n", 0, found.start()) + 1
                what = f"{target} leads to evidence that does not exist."
                yield _finding("dead-evidence", page, line, what)
    known: dict[str, facts.Fact] = {}
    with suppress(ClaimError):
        known = facts.read(sources / FACTS_FILE)
    unquoted = [fact.id for fact in known.values() if fact.quote is None]
    if unquoted:
        what = f"These facts have no quote: in which their figure stands: {listed(unquoted)}."
        told = _finding("dead-evidence", sources / FACTS_FILE, 1, what)
        yield replace(told, severity="info")


def _dead(target: str, dataset: Dataset) -> bool:
    run, file = _RUN.search(target), _EVIDENCE.search(target)
    if file is not None:
        path = dataset.folder / file[1] / file[2]
        return (
            not path.is_file()
            and not path.with_name(file[2].removesuffix(".txt")).is_file()
        )
    return run is not None and run[1] != "index" and run[1] not in dataset.by_id


READERS: dict[str, Callable[[Path, Review, Speak | None], Iterator[Finding]]] = {
    UNREADABLE: unreadable_page,
    "unbound-number": unbound_number,
    "claim": claim,
    "dead-evidence": dead_evidence,
}
"""The checks of kind `prose` by name: how each reads a folder of pages; those behind the first, what can be read."""
