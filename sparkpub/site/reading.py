"""Whether everything that people wrote can be read: pages, claims and facts, each by itself, so that one that cannot be
hides nothing of the others."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from sparkpub.record.errors import ClaimError, SiteError, SparkpubError
from sparkpub.record.web import address_problem
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.reviewing import Review
from sparkpub.review.claims import facts as facts_file
from sparkpub.review.claims import ledger
from sparkpub.review.claims.claim import Claim
from sparkpub.site import prose
from sparkpub.site.content import POSTS, Content
from sparkpub.site.pages import blog
from sparkpub.site.prose import Passage
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

CHECK = "unreadable-page"
_MOST_KEPT = 512
"""Pages that are read once."""
_EXPRESSION = re.compile(r"\{[{%]")
_TITLE = re.compile(r"^(?:title|description|summary):\s*(.+)$", re.MULTILINE)

Speak = Callable[[], Words]
"""Gives the names that prose may use, with what they say today."""
Problem = tuple[Path, int, str]
"""File, line, and what cannot be read."""


def unreadable_page(
    sources: Path, review: Review, speak: Speak | None
) -> Iterator[Finding]:
    """Files of people that cannot be read, with the line, and posts that cannot stand beside each other."""
    in_the_way = list(_of_claims(sources, review))
    words = None
    if speak is not None and not in_the_way and _has_expressions(sources):
        words = speak()
    for path, line, text in (*in_the_way, *_of_pages(sources, words)):
        where = {"file": str(path), "line": line}
        yield Finding(CHECK, "error", "", None, None, text, where)


def claims(sources: Path) -> list[Claim]:
    """The claims, none where they cannot be read."""
    try:
        return ledger.read(sources / CLAIMS_FILE)
    except ClaimError:
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


def facts(sources: Path) -> dict[str, facts_file.Fact]:
    """The facts by id, none where they cannot be read."""
    try:
        return facts_file.read(sources / FACTS_FILE)
    except ClaimError:
        return {}


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
    front = FRONT.match(source)
    try:
        filled = proof(source, uri)
        head = "" if front is None else filled[: filled.index("\n---\n", 3) + 5]
        titles = [Passage(found[1]) for found in _TITLE.finditer(head)]
        with bounded(uri):
            found, addresses = prose.passages(prose.to_html(filled[len(head) :]))
        for address in addresses:
            _refuse_address(address, source, uri)
    except SparkpubError as error:
        return error
    return titles + found


def _refuse_address(address: str, source: str, uri: str) -> None:
    problem = address_problem(address)
    if problem is not None:
        where = f"{uri}:{_line_with(source, address)}"
        raise SiteError(problem, where=where, remedy="correct the link")


def _of_claims(sources: Path, review: Review) -> Iterator[Problem]:
    """What is wrong with claims.yaml and facts.yaml, and with claims about what a campaign does not have."""
    path = sources / FACTS_FILE
    try:
        facts_file.read(path)
    except ClaimError as error:
        yield from _problems(error, path, str(path))
    path = sources / CLAIMS_FILE
    try:
        written = ledger.read(path)
    except ClaimError as error:
        yield from _problems(error, path, str(path))
        return
    for claim in written:
        try:
            verdict(claim, review)
        except ClaimError as error:
            line = _line_with(path.read_text(encoding="utf-8"), claim.id)
            yield path, line, error.lines()[0]


def _of_pages(sources: Path, words: Words | None) -> Iterator[Problem]:
    posts: dict[str, Content] = {}
    for path, uri in files(sources):
        try:
            refuse_outside(path, uri, sources)
            if path.suffix == ".md":
                text = _rendered(path, uri, words)
                posts |= _as_post(uri, text)
        except SparkpubError as error:
            yield from _problems(error, path, uri)
    try:
        blog.posts(posts)
    except SiteError as error:
        yield from _problems(error, sources / error.where, error.where)


def _rendered(path: Path, uri: str, words: Words | None) -> str:
    """A page as the site has it; without `words` with marks in place of what they say."""
    text = page_text(path, uri)
    read_page(text, uri)
    if words is None:
        return proof(text, uri)
    return words.render(text, uri)


def _as_post(uri: str, text: str) -> dict[str, Content]:
    """A post by its address, nothing for another page. Raises SiteError where it could not be published on its own."""
    if not uri.startswith(POSTS):
        return {}
    post = {uri: Content(text=text)}
    blog.posts(post)
    return post


def _has_expressions(sources: Path) -> bool:
    return any(_EXPRESSION.search(text) for _, _, text in prose.pages(sources))


def _problems(error: SparkpubError, path: Path, name: str) -> Iterator[Problem]:
    """Each line of an error, without the place, which a finding has itself."""
    place = re.compile(rf", {re.escape(name)}(?::(\d+))?(?=;|$)")
    for text in error.lines():
        found = place.search(text)
        line = int(found[1]) if found and found[1] else 1
        yield path, line, place.sub("", text)


def _line_with(source: str, text: str) -> int:
    """The first line of a page that has a text; the first of all where none has it as it is."""
    return source.count("\n", 0, max(0, source.find(text))) + 1
