"""OpenGraph properties and descriptions of pages."""

from types import SimpleNamespace
from typing import Any

import pytest

from sparkpub.site import link_preview
from sparkpub.site.content import Picture


def page(**fields: Any) -> Any:
    """As much of MkDocs' page as is read."""
    known = {"meta": {}, "title": "Nav title", "content": "", "canonical_url": None}
    return SimpleNamespace(**known | fields)


@pytest.mark.parametrize(
    ("meta", "content", "expected"),
    [
        ({"description": "A &amp; B"}, "<p>first</p>", "A & B"),
        (
            {},
            "<h1>T</h1>\n<p>The <em>first</em> &lt;one&gt;.</p><p>Second</p>",
            "The first <one>.",
        ),
        ({"description": ""}, "<p>first</p>", "first"),
        ({}, "<h1>no paragraph</h1>", "of the site"),
    ],
)
def test_a_page_is_described_by_the_nearest_text(
    meta: dict[str, str], content: str, expected: str
) -> None:
    found = link_preview.description(page(meta=meta, content=content), "of the site")
    assert found == expected


def test_a_long_description_ends_at_a_word() -> None:
    text = "word " * 100
    found = link_preview.description(page(meta={"description": text}), "")
    assert len(found) <= link_preview.DESCRIPTION_LENGTH
    assert found.endswith("word …")


def test_properties_of_a_page() -> None:
    found = link_preview.open_graph(
        page(
            meta={"title": "A &lt;B&gt;", "description": "D"},
            canonical_url="https://site.test/a/",
        ),
        site_name="S",
        of_site="",
        image=Picture("https://site.test/card.png", "A card"),
    )
    assert found == [
        ("og:type", "website"),
        ("og:site_name", "S"),
        ("og:title", "A <B>"),
        ("og:description", "D"),
        ("og:url", "https://site.test/a/"),
        ("og:image", "https://site.test/card.png"),
        ("og:image:alt", "A card"),
    ]


def test_a_post_is_an_article_and_nothing_is_named_that_has_no_address() -> None:
    found = dict(
        link_preview.open_graph(
            page(meta={"date": "2026-01-01"}), site_name="S", of_site="D", image=None
        )
    )
    assert found["og:type"] == "article"
    assert found["og:title"] == "Nav title"
    assert not {"og:url", "og:image"} & set(found)
