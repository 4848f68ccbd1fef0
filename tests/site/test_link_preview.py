"""Descriptions of pages."""

from types import SimpleNamespace
from typing import Any

import pytest

from sparkpub.site.mkdocs import DESCRIPTION_LENGTH, description


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
    found = description(page(meta=meta, content=content), "of the site")
    assert found == expected


def test_a_long_description_ends_at_a_word() -> None:
    text = "word " * 100
    found = description(page(meta={"description": text}), "")
    assert len(found) <= DESCRIPTION_LENGTH
    assert found.endswith("word …")
