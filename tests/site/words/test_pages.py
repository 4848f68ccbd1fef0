"""The pages of the package: they render, type no figure, document every name, and use every fact they bring."""

from pathlib import Path

import pytest

from sparkpub.collect.environments import ENVIRONMENTS
from sparkpub.plan.workloads import WORKLOADS
from sparkpub.plan.workloads.withdrawn import WithdrawnOptions
from sparkpub.record.metrics import METRICS
from sparkpub.record.record import Record
from sparkpub.record.telemetry import COLUMNS
from sparkpub.review import dataset
from sparkpub.review.checks import CHECKS, Review, review
from sparkpub.review.claims.facts import read as read_facts
from sparkpub.review.results import Results
from sparkpub.review.vocabulary import STATISTICS
from sparkpub.site import manual
from sparkpub.site.build import facts_of
from sparkpub.site.content import SiteOptions
from sparkpub.site.proofreading import typed_on
from sparkpub.site.publication import Publication
from sparkpub.site.sources import pages, read
from sparkpub.site.words import Words
from tests.published import MEASURED
from tests.review.claims.campaigns import verdict_on

RUN_TODAY: dict[str, object] = {
    name: workload
    for name, workload in WORKLOADS.items()
    if not issubclass(workload.options, WithdrawnOptions)
}


@pytest.fixture(scope="module")
def reviewed() -> Review:
    return review(dataset.load(MEASURED))


@pytest.fixture(scope="module")
def rendered(
    reviewed: Review, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    data = reviewed.dataset
    verdict = verdict_on(
        data, reviewed, id="two", campaign="h200", expect={"holds": "runs = 2"}
    )
    publication = Publication(
        Results(reviewed),
        reviewed,
        SiteOptions(Path()),
        [verdict],
        facts_of(tmp_path_factory.mktemp("no-facts")),
    )
    words = Words(publication, lambda *_, **__: "")
    shipped = manual.pages()
    return {uri: words.page(read(path, uri)).text for uri, path in shipped.items()}


def test_no_page_types_a_figure() -> None:
    for page in pages(manual.FOLDER).values():
        assert [said.text for said in typed_on(page)] == [], page.uri


@pytest.mark.parametrize(
    ("uri", "names"),
    [
        ("method/metrics.md", METRICS),
        ("method/metrics.md", COLUMNS),
        ("method/metrics.md", Record.model_fields),
        ("method/checks.md", CHECKS),
        ("guide/write.md", STATISTICS),
        ("method/matrix.md", RUN_TODAY),
        ("method/matrix.md", ENVIRONMENTS),
    ],
)
def test_every_name_is_documented(
    rendered: dict[str, str], uri: str, names: dict[str, object]
) -> None:
    assert [name for name in names if f"`{name}`" not in rendered[uri]] == []


def test_every_claim_and_fact_has_an_anchor(rendered: dict[str, str]) -> None:
    claims = rendered["claims/index.md"]
    assert "{ #two }" in claims
    for fact in read_facts(manual.FACTS):
        assert f"{{ #{fact} }}" in rendered["claims/facts.md"]


def test_every_fact_is_used() -> None:
    text = "".join(page.text for page in pages(manual.FOLDER).values())
    assert [name for name in read_facts(manual.FACTS) if f'"{name}"' not in text] == []


def test_no_table_aligns_its_columns(rendered: dict[str, str]) -> None:
    """Markdown aligns by inline style, which the policy of every page forbids."""
    assert [uri for uri, text in rendered.items() if "--:" in text] == []
