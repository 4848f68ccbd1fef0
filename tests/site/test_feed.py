"""The feed, the series, citations and drafts: what others read of the blog and the campaigns."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from sparkpub.site.content import Page
from sparkpub.site.pages import blog
from sparkpub.site.sources import source_of
from tests.site.conftest import (
    options_of,
    tree_of,
    write_data,
    write_sources,
)

ATOM = "{http://www.w3.org/2005/Atom}"
SECOND = """---
date: {created: 2026-02-01, updated: 2026-03-01}
title: Second & <last>
slug: second
description: More.
authors: [A. Writer, B. Writer]
categories: [Notes]
tags: [memory]
---

Text.
"""
DRAFT = """---
date: 2026-04-01
title: Not finished
draft: true
---

Nothing yet.
"""


def write_posts(pages: Path) -> None:
    """A second post and a draft."""
    posts = pages / "blog" / "posts"
    (posts / "second.md").write_text(SECOND, encoding="utf-8")
    (posts / "draft.md").write_text(DRAFT, encoding="utf-8")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> dict[str, str]:
    """Every text of a site with two posts and a draft, by address."""
    folder = tmp_path_factory.mktemp("feed")
    write_sources(folder / "pages")
    options = options_of(folder, cache)
    write_posts(options.sources)
    made = tree_of(write_data(folder / "data"), options)
    return {uri: data.decode(errors="replace") for uri, data in made.items()}


@pytest.fixture
def entries(tree: dict[str, str]) -> list[ElementTree.Element]:
    feed = ElementTree.fromstring(tree["feed.xml"])
    assert feed.findtext(f"{ATOM}updated") == "2026-03-01T00:00:00Z"
    return list(feed.iter(f"{ATOM}entry"))


def test_posts_and_campaigns_newest_first_and_no_draft(
    entries: list[ElementTree.Element],
) -> None:
    found = [
        [entry.findtext(f"{ATOM}{name}") for name in ("title", "id", "updated")]
        for entry in entries
    ]
    base = "https://site.test/x/"
    # Runs start ten minutes apart from 10:00 on; the failed fourth one at 10:40.
    assert found == [
        ["Second & <last>", f"{base}blog/second/", "2026-03-01T00:00:00Z"],
        ["First", f"{base}blog/first/", "2026-01-02T00:00:00Z"],
        ["A small campaign", f"{base}campaigns/c/", "2026-01-01T10:40:00Z"],
    ]
    assert entries[0].findtext(f"{ATOM}published") == "2026-02-01T00:00:00Z"
    summary = entries[-1].findtext(f"{ATOM}summary") or ""
    assert "on output throughput for m" in summary


def test_a_post_has_its_place_and_how_to_cite_it(tree: dict[str, str]) -> None:
    second = tree["blog/posts/second.md"]
    assert "**Part 2 of 2.** Previous: [First](first.md)." in second
    assert "Cite as: A. Writer and B. Writer" in second
    assert "Part" not in tree["blog/posts/draft.md"]
    assert "cards/draft.png" not in tree
    assert "draft.md" not in tree["blog/posts/second.md"]


def _post(name: str, head: str) -> dict[str, Page]:
    uri = f"blog/posts/{name}.md"
    return {uri: Page(source_of(f"---\n{head}\n---\n\nText.\n", uri).meta, "")}


def test_posts_are_in_order_of_their_times() -> None:
    """A day begins at midnight UTC; 01:00 in a zone two hours ahead is 23:00 of the day before."""
    dates = {
        "late": "2026-01-01 08:00:00",
        "day": "2026-01-01",
        "zone": "2026-01-01T01:00:00+02:00",
    }
    written = {}
    for name, date in dates.items():
        written |= _post(name, f"date: {date}\ntitle: {name}\nslug: {name}")
    found = blog.posts(written)
    assert [post.title for post in found] == ["zone", "day", "late"]
