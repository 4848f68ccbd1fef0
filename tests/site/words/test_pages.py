"""The pages as shipped: they render, type no figure, document every name, and tell the series in order."""

import re
from pathlib import Path

import pytest
import yaml

from sparkpub.collect.environments import ENVIRONMENTS
from sparkpub.plan.workloads import WORKLOADS
from sparkpub.record.metrics import METRICS
from sparkpub.record.record import Record
from sparkpub.record.telemetry import COLUMNS
from sparkpub.review import dataset
from sparkpub.review.checks import CHECKS, review
from sparkpub.review.claims.ledger import judge
from sparkpub.review.claims.ledger import read as read_claims
from sparkpub.review.claims.quantities import STATISTICS
from sparkpub.review.summary import statistics
from sparkpub.site import manual
from sparkpub.site.build import known_facts
from sparkpub.site.proofreading import unbound_number
from sparkpub.site.prose import pages
from sparkpub.site.words import Words

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "site_src"


@pytest.fixture(scope="module")
def rendered() -> dict[str, str]:
    data = dataset.load(ROOT / "data" / "comprehensive")
    found = review(data)
    verdicts = judge(read_claims(SOURCES / "claims.yaml"), found)
    words = Words(
        data,
        statistics(data, found.frames),
        found,
        verdicts,
        known_facts(SOURCES),
        lambda *_, **__: "",
    )
    found_pages = manual.pages(has_claims=True)
    found_pages |= {
        path.relative_to(SOURCES).as_posix(): path for path in pages(SOURCES)
    }
    return {
        uri: words.render(path.read_text(encoding="utf-8"), uri)
        for uri, path in found_pages.items()
    }


@pytest.mark.parametrize("folder", [SOURCES, manual.FOLDER])
def test_no_page_types_a_figure(folder: Path) -> None:
    found = unbound_number(
        folder, review(dataset.load(ROOT / "data" / "comprehensive")), tuple
    )
    assert [f"{item.where}: {item.message}" for item in found] == []


@pytest.mark.parametrize(
    ("uri", "names"),
    [
        ("method/metrics.md", METRICS),
        ("method/metrics.md", COLUMNS),
        ("method/metrics.md", Record.model_fields),
        ("method/checks.md", CHECKS),
        ("method/statistics.md", STATISTICS),
        ("method/matrix.md", WORKLOADS),
        ("method/matrix.md", ENVIRONMENTS),
    ],
)
def test_every_name_is_documented(
    rendered: dict[str, str], uri: str, names: dict[str, object]
) -> None:
    assert [name for name in names if f"`{name}`" not in rendered[uri]] == []


def test_every_claim_and_fact_has_an_anchor(rendered: dict[str, str]) -> None:
    for uri, known in (
        ("claims/index.md", read_claims(SOURCES / "claims.yaml")),
        ("claims/facts.md", known_facts(SOURCES).values()),
    ):
        assert [
            item.id for item in known if f"{{ #{item.id} }}" not in rendered[uri]
        ] == []


def test_every_fact_is_used() -> None:
    places = [*pages(SOURCES), *pages(manual.FOLDER)]
    text = "".join(page.read_text() for page in places)
    unused = [name for name in known_facts(SOURCES) if f'"{name}"' not in text]
    assert unused == []


def test_the_series_is_complete_and_in_order(rendered: dict[str, str]) -> None:
    posts = sorted(uri for uri in rendered if uri.startswith("blog/posts/"))
    heads = [yaml.safe_load(rendered[uri].split("---\n")[1]) for uri in posts]
    assert [f"Part {index}" for index in range(1, len(posts) + 1)] == [
        head["title"].split(":")[0] for head in heads
    ]
    assert [head["date"] for head in heads] == sorted(head["date"] for head in heads)
    assert all(
        head["description"] and head["tags"] and head["slug"].startswith("part-")
        for head in heads
    )
    assert all("<!-- more -->" in rendered[uri] for uri in posts)


def test_posts_take_their_figures_from_the_data() -> None:
    call = re.compile(
        r"\{\{ (?:value|compare|interval|extent|fact|claim|verdict|predict)\("
    )
    for post in sorted((SOURCES / "blog" / "posts").glob("part-*.md")):
        assert len(call.findall(post.read_text())) >= 5
