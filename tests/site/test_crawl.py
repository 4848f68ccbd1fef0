"""Links of a finished site that lead nowhere on it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from sparkpub.site.crawl import dead_links

PAGES = {
    "index.html": '<h1 id="top">x</h1>',
    "a/index.html": '<a name="named">x</a><a id="caf&eacute;">y</a>',
    "files/raw.txt": "x",
}


def site(folder: Path, pages: Mapping[str, str]) -> Path:
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "link",
    [
        "../",
        "../a/#caf%C3%A9",
        "../files/raw.txt#L3",
        "../?model=x#top",
        "#here",
        "/base/a/",
        "https://site.test/base/a/#named",
        "https://elsewhere.test/nothing",
        "mailto:a@b.test",
    ],
)
def test_links_that_lead_somewhere(tmp_path: Path, link: str) -> None:
    page = {"b/index.html": f'<p id="here"></p><a class="x" href="{link}">x</a>'}
    assert dead_links(site(tmp_path, PAGES | page), "https://site.test/base/") == []


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("../gone/", "gone"),
        ("#gone", "b/index.html#gone"),
        ("https://site.test/base/gone/?x=1", "gone"),
        ("../a&amp;b/", "a&b"),
    ],
)
def test_links_that_lead_nowhere(tmp_path: Path, link: str, target: str) -> None:
    page = {"b/index.html": f'<a href="{link}">x</a>'}
    assert dead_links(site(tmp_path, PAGES | page), "https://site.test/base/") == [
        f"b/index.html: links to {target}, which does not exist"
    ]


def test_a_target_is_named_once_with_the_number_of_pages(tmp_path: Path) -> None:
    text = '<a href="gone">x</a><a href="gone">y</a>'
    pages = dict.fromkeys(("a.html", "b.html", "c.html"), text)
    assert dead_links(site(tmp_path, pages), "") == [
        "a.html and 2 more: links to gone, which does not exist"
    ]
