"""The feed, the series, citations and drafts: what others read of the blog and the campaigns."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sparkpub.site.content import Page, SiteOptions
from sparkpub.site.mkdocs import build_site
from sparkpub.site.pages import blog
from sparkpub.site.pages.citation import bibtex
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

Text with [a post](first.md#first), [a page](../../models/index.md?x=1), [itself](#here),
[elsewhere](https://else.test/x.md).

## Here

{{ figure("output-throughput", campaign="c") }}
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
        (entry.findtext(f"{ATOM}title"), entry.findtext(f"{ATOM}id"))
        for entry in entries
    ]
    assert found == [
        ("Second & <last>", "https://site.test/x/blog/second/"),
        ("First", "https://site.test/x/blog/first/"),
        ("A small campaign", "https://site.test/x/campaigns/c/"),
    ]


def test_an_entry_says_who_wrote_it_when_and_of_what(
    entries: list[ElementTree.Element],
) -> None:
    second = entries[0]
    assert second.findtext(f"{ATOM}published") == "2026-02-01T00:00:00Z"
    assert second.findtext(f"{ATOM}updated") == "2026-03-01T00:00:00Z"
    assert [name.text for name in second.iter(f"{ATOM}name")] == [
        "A. Writer",
        "B. Writer",
    ]
    assert [tag.get("term") for tag in second.iter(f"{ATOM}category")] == [
        "Notes",
        "memory",
    ]


def test_a_campaign_says_what_it_found_and_changes_with_its_last_run(
    entries: list[ElementTree.Element],
) -> None:
    campaign = entries[-1]
    # Runs start ten minutes apart from 10:00 on; the failed fourth one at 10:40.
    assert campaign.findtext(f"{ATOM}updated") == "2026-01-01T10:40:00Z"
    assert (campaign.findtext(f"{ATOM}published") or "") < "2026-01-01T10:40:00Z"
    assert (campaign.findtext(f"{ATOM}summary") or "").startswith("Output throughput")


def test_a_post_has_its_place_and_how_to_cite_it(tree: dict[str, str]) -> None:
    second = tree["blog/posts/second.md"]
    assert "**Part 2 of 2.** Previous: [First](first.md)." in second
    assert "author = {A. Writer and B. Writer}" in second
    assert "url = {https://site.test/x/blog/second/}" in second
    assert (
        "Cite as: A&#46; Writer" in second
        or "Cite as: A. Writer and B. Writer" in second
    )
    assert "Part" not in tree["blog/posts/draft.md"]
    assert "cards/draft.png" not in tree
    assert "draft.md" not in tree["blog/posts/second.md"]


def _post(name: str, date: str) -> tuple[str, str]:
    text = f"---\ndate: {date}\ntitle: {name}\nslug: {name}\n---\n\nText.\n"
    return f"blog/posts/{name}.md", text


@pytest.mark.parametrize(
    ("dates", "order"),
    [
        ({"b": "2026-01-01", "a": "2026-01-01"}, ["a", "b"]),
        # Numbers are read as numbers.
        ({"part-10": "2026-01-01", "part-9": "2026-01-01"}, ["part-9", "part-10"]),
        # A time decides, and one without a zone is UTC: 01:00 two hours ahead is 23:00 of the day before.
        ({"a": "2026-01-01", "b": "2026-01-01T01:00:00+02:00"}, ["b", "a"]),
    ],
)
def test_posts_are_in_order_of_their_times(
    dates: dict[str, str], order: list[str]
) -> None:
    written = (_post(name, date) for name, date in dates.items())
    found = blog.posts(
        {uri: Page(source_of(text, uri).meta, "") for uri, text in written}
    )
    assert [post.title for post in found] == order


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_links_below_posts_of_one_day_follow_the_series(
    data: Path, options: SiteOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    for name in "abc":
        uri, text = _post(name, "2026-05-01")
        (options.sources / uri).write_text(text)
    (tmp_path / "mkdocs.yml").write_text(
        "site_name: test\ndocs_dir: pages\n"
        "theme: {name: material, font: false, features: [navigation.footer]}\n"
        "plugins: [search, {sparkpub: {folders: data}}, {blog: {authors: false, post_url_format: '{slug}'}}]\n"
        "markdown_extensions: [attr_list, md_in_html, tables, toc]\n"
    )
    build_site(tmp_path / "mkdocs.yml", tmp_path / "site")
    page = (tmp_path / "site" / "blog" / "b" / "index.html").read_text()
    footer = page[page.index('class="md-footer"') :]
    links = re.findall(r'md-footer__link--(prev|next)" aria-label="([^"]*)"', footer)
    assert links == [("prev", "Previous: a"), ("next", "Next: c")]


def test_an_entry_for_bibtex() -> None:
    about = ("50 % of {x} & y", "2026-03-01", "S_1", "https://s.test/")
    assert bibtex("k", ("A", "B"), *about) == (
        "@misc{k,\n"
        "  author = {A and B},\n"
        "  title = {{50 \\% of \\{x\\} \\& y}},\n"
        "  year = {2026},\n"
        "  month = {3},\n"
        "  howpublished = {S\\_1},\n"
        "  url = {https://s.test/}\n"
        "}"
    )
