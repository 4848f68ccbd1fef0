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
        "../index.html",
        "../a/",
        "../a/#named",
        "../a/#caf%C3%A9",
        "../#top",
        "../files/raw.txt",
        "../files/raw.txt#L3",
        "../?model=x#top",
        "#here",
        "?run=1",
        "/base/a/",
        "https://site.test/base/a/#named",
        "https://elsewhere.test/nothing",
        "//elsewhere.test/nothing",
        "mailto:a@b.test",
        "data:image/png;base64,AA==",
        "javascript:void(0)",
    ],
)
def test_links_that_lead_somewhere(tmp_path: Path, link: str) -> None:
    page = {"b/index.html": f'<p id="here"></p><a class="x" href="{link}">x</a>'}
    assert dead_links(site(tmp_path, PAGES | page), "https://site.test/base/") == []


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("../gone/", "gone"),
        ("../a/#gone", "a#gone"),
        ("#gone", "b/index.html#gone"),
        ("../files/", "files"),
        ("../files/gone.txt", "files/gone.txt"),
        ("/base/gone/", "gone"),
        ("https://site.test/base/gone/?x=1", "gone"),
        ("../a&amp;b/", "a&b"),
    ],
)
def test_links_that_lead_nowhere(tmp_path: Path, link: str, target: str) -> None:
    page = {"b/index.html": f'<a href="{link}">x</a>'}
    assert dead_links(site(tmp_path, PAGES | page), "https://site.test/base/") == [
        f"b/index.html: links to {target}, which does not exist"
    ]


@pytest.mark.parametrize("tag", ["img src", "script src", "link href", "use href"])
def test_files_that_a_page_loads_are_links_as_well(tmp_path: Path, tag: str) -> None:
    pages = {"index.html": f'<{tag}="gone.bin">'}
    assert dead_links(site(tmp_path, pages), "") == [
        "index.html: links to gone.bin, which does not exist"
    ]


def test_text_that_shows_a_link_is_none(tmp_path: Path) -> None:
    pages = {"x.html": '&lt;a href="gone/"&gt; href="gone/"'}
    assert dead_links(site(tmp_path, pages), "") == []


def test_a_target_is_named_once_with_the_number_of_pages(tmp_path: Path) -> None:
    text = '<a href="gone">x</a><a href="gone">y</a>'
    pages = dict.fromkeys(("a.html", "b.html", "c.html"), text)
    assert dead_links(site(tmp_path, pages), "") == [
        "a.html and 2 more: links to gone, which does not exist"
    ]


def test_an_address_that_cannot_be_taken_apart_is_named(tmp_path: Path) -> None:
    """A record may have brought it: the other links are followed all the same."""
    page = {"b/index.html": '<a href="https://[x]/y">x</a><a href="../gone/">y</a>'}
    unfit, gone = dead_links(site(tmp_path, PAGES | page), "")
    assert unfit.startswith("b/index.html: 'https://[x]/y' is no address: ")
    assert gone == "b/index.html: links to gone, which does not exist"
