"""What the pages of the published study say beside its figures."""

from pathlib import Path

import pytest

from sparkpub.review.checks import Review
from sparkpub.review.claims.facts import read as read_facts
from sparkpub.review.claims.ledger import judge
from sparkpub.review.claims.ledger import read as read_claims
from sparkpub.review.results import Results
from sparkpub.site import manual
from sparkpub.site.build import SiteOptions, facts_of
from sparkpub.site.proofreading import typed_on
from sparkpub.site.publication import Publication
from sparkpub.site.sources import pages, read
from sparkpub.site.words import Words

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "site_src"


@pytest.fixture(scope="module")
def publication(committed: Review) -> Publication:
    return Publication(
        Results(committed),
        committed,
        SiteOptions(SOURCES),
        judge(read_claims(SOURCES / "claims.yaml"), committed),
        facts_of(SOURCES),
    )


@pytest.fixture(scope="module")
def rendered(publication: Publication) -> dict[str, str]:
    words = Words(publication, lambda *_, **__: "")
    found = manual.pages()
    found |= {uri: SOURCES / uri for uri in pages(SOURCES)}
    return {uri: words.page(read(path, uri)).text for uri, path in found.items()}


def test_no_page_types_a_figure() -> None:
    for page in pages(SOURCES).values():
        assert [said.text for said in typed_on(page)] == [], page.uri


def test_every_claim_and_fact_has_an_anchor(rendered: dict[str, str]) -> None:
    for uri, known in (
        ("claims/index.md", read_claims(SOURCES / "claims.yaml")),
        ("claims/facts.md", facts_of(SOURCES).values()),
    ):
        assert [
            item.id for item in known if f"{{ #{item.id} }}" not in rendered[uri]
        ] == []


def test_every_fact_is_used_and_none_repeats_the_packages() -> None:
    own = read_facts(SOURCES / "facts.yaml")
    text = "".join(page.text for page in pages(SOURCES).values())
    assert [name for name in own if f'"{name}"' not in text] == []
    assert own.keys() & read_facts(manual.FACTS).keys() == set()


def test_a_quotation_of_a_file_stands_in_it() -> None:
    """Of the facts whose source is a file of this repository."""
    checked = 0
    known = read_facts(SOURCES / "facts.yaml") | read_facts(manual.FACTS)
    for fact in known.values():
        path = ROOT / fact.source.document
        if fact.quote is not None and path.is_file():
            text = " ".join(path.read_text().split())
            parts = fact.quote.split(" … ")
            assert [part for part in parts if part not in text] == [], fact.id
            checked += 1
    assert checked > 0
