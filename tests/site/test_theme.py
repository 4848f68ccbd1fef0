"""What our templates add to the theme: on every page of a built site."""

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest
from jinja2 import Environment
from mkdocs.config.base import load_config
from mkdocs.structure.files import Files
from mkdocs.utils.templates import url_filter

from sparkpub.record.errors import SiteError
from sparkpub.site.mkdocs import SparkpubPlugin, build_site
from tests.site.conftest import (
    POST,
    write_data,
    write_sources,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
CONFIG = """
site_name: test & more
site_description: Of a test.
{address}
docs_dir: pages
repo_url: https://repository.test/x/y
theme: {{name: material, font: false{custom}}}
plugins:
  - material/search
  - sparkpub: {{folders: data, cache: cache}}
  - blog: {{authors: false, post_url_format: "{{slug}}"}}
markdown_extensions: [attr_list, md_in_html, tables, toc]
"""
ADDRESS = "site_url: https://site.test/x/"
POLICY = {
    "default-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}
INDEX = "search/search_index.json"
QUOTED = """---
title: The "quoted" page
description: Says "more" & <less>
---

# Quoted

| | a |
| --- | --- |
| b | c |
"""


@pytest.fixture(autouse=True)
def _drawn_once(tmp_path: Path, cache: Path) -> None:
    """What the sites here draw is drawn once for all tests."""
    (tmp_path / "cache").symlink_to(cache)


def build(folder: Path, *, address: str = ADDRESS, custom: str = "") -> Path:
    config = folder / "mkdocs.yml"
    text = CONFIG.format(address=address, custom=custom)
    config.write_text(text, encoding="utf-8")
    build_site(config, folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> dict[str, str]:
    """Every page of a built site, by address."""
    folder = tmp_path_factory.mktemp("theme")
    write_data(folder / "data")
    sources = write_sources(folder / "pages")
    (folder / "cache").symlink_to(cache)
    (sources / "quoted.md").write_text(QUOTED, encoding="utf-8")
    post = POST.replace("tags: [memory]", "authors: [A. Writer]\ncategories: [Notes]")
    (sources / "blog" / "posts" / "first.md").write_text(post, encoding="utf-8")
    site = build(folder)
    return {
        path.relative_to(site).as_posix(): path.read_text(encoding="utf-8")
        for path in [*site.rglob("*.html"), site / INDEX]
    }


def hash_of(script: str) -> str:
    """What allows a script: base64 of the SHA-256 of its text (CSP Level 3, section 2.3.1)."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def properties(page: str) -> dict[str, str]:
    return dict(re.findall(r'<meta property="([^"]+)" content="([^"]*)">', page))


def test_what_every_page_has(pages: dict[str, str]) -> None:
    assert len(pages) > 20
    for uri, page in pages.items():
        if uri == INDEX:
            continue
        (policy,) = re.findall('Content-Security-Policy" content="([^"]*)"', page)
        rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
        inline = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
        scripts = rules.pop("script-src").split()
        assert rules == POLICY, uri
        # A page of a run leaves out scripts that its shell has.
        assert {"'self'", *map(hash_of, inline)} <= set(scripts), uri
        assert all(re.match("'(self'$|sha256-)", script) for script in scripts), uri
        assert page.index("Content-Security-Policy") < page.index("<script"), uri
        if uri.startswith("runs/") and uri != "runs/index.html":
            assert len(page) < 20_000, uri
            assert "javascripts/bundle." not in page, uri
        else:
            assert 'role="dialog" aria-label="Search"' in page, uri
            search = page.index("/search.js")
            assert search < page.index("javascripts/bundle."), uri
        assert 'data-md-component="source"' not in page, uri
        assert page.count('<meta name="description"') == 1 or uri == "404.html", uri
        if uri == "404.html":
            continue
        found = properties(page)
        assert found["og:description"], uri
        assert found["og:url"].startswith("https://site.test/x/"), uri
        assert found["og:image"].startswith("https://site.test/x/cards/"), uri
        assert found["og:image:alt"], uri


def test_pages_of_their_own_kind(pages: dict[str, str]) -> None:
    quoted = pages["quoted/index.html"]
    assert (
        '<meta name="description" content="Says &quot;more&quot; &amp; &lt;less&gt;">'
        in quoted
    )
    assert properties(quoted)["og:title"] == "The &#34;quoted&#34; page"
    assert "<td></td>" in quoted
    assert "<th></th>" not in quoted
    assert "<h1>Page not found</h1>" in pages["404.html"]
    assert "og:title" not in pages["404.html"]
    post = pages["blog/first/index.html"]
    assert properties(post)["og:type"] == "article"
    assert properties(post)["og:image"] == "https://site.test/x/cards/first.png"
    campaign = properties(pages["campaigns/c/index.html"])
    assert campaign["og:image"] == "https://site.test/x/cards/c.png"
    front = properties(pages["index.html"])
    assert front["og:image"] == "https://site.test/x/cards/-site.png"
    assert front["og:image:alt"] == front["og:site_name"]
    for uri in ("blog/first/index.html", "blog/index.html"):
        assert "by A. Writer" in pages[uri], uri
        assert re.search(r'href="[^"]*category/notes/"[^>]*>Notes', pages[uri]), uri
    assert "blog/category/notes/index.html" in pages


def test_the_search_finds_names_in_charts_and_each_question(
    pages: dict[str, str],
) -> None:
    """Named as the search plugin may be, `material/search`."""
    entries = {entry["location"]: entry for entry in json.loads(pages[INDEX])["docs"]}
    assert "(container)" in entries["campaigns/c/"]["tags"]
    question = entries["#is-mine-as-fast"]
    assert question["title"] == "Is mine as fast?"
    assert question["text"].startswith("Measure your server")


def test_a_project_lays_its_own_templates_over_ours(
    data: Path, sources: Path, tmp_path: Path
) -> None:
    (tmp_path / "over").mkdir()
    (tmp_path / "over" / "main.html").write_text(
        '{% extends "sparkpub.html" %}{% block announce %}mine{% endblock %}'
    )
    asked = ", custom_dir: over, features: [toc.follow]"
    page = (build(tmp_path, custom=asked) / "index.html").read_text(encoding="utf-8")
    assert "mine" in page
    assert "Content-Security-Policy" in page
    assert "toc.follow" in page


def test_a_dead_link_stops_a_strict_build(
    data: Path, sources: Path, tmp_path: Path
) -> None:
    (sources / "quoted.md").write_text('# Q\n\n<a href="../nowhere/">x</a>\n')
    with pytest.raises(SiteError) as caught:
        build(tmp_path)
    assert [line for line in caught.value.lines() if "links to nowhere" in line]


def test_a_post_at_the_address_of_another_page_stops_a_build(
    data: Path, sources: Path, tmp_path: Path
) -> None:
    """The archive of a year was written over the post, which was nowhere then."""
    slug = "slug: archive/2026"
    post = f"---\n{slug}\ndate: 2026-01-01\ndescription: x\n---\n\n# Lost\n"
    (sources / "blog" / "posts" / "lost.md").write_text(post, encoding="utf-8")
    with pytest.raises(SiteError) as caught:
        build(tmp_path)
    (line,) = caught.value.lines()
    assert "blog/posts/lost.md" in line
    assert "are both published at blog/archive/2026/index.html" in line
    assert line.endswith("; give one of them another name or slug")


def test_a_preview_keeps_compiled_templates_and_no_filter_of_an_earlier_build(
    tmp_path: Path,
) -> None:
    """The blog wraps the filter `url` in every build: one that was kept would be wrapped again and again."""
    (tmp_path / "pages").mkdir()
    file = tmp_path / "mkdocs.yml"
    file.write_text(CONFIG.format(address=ADDRESS, custom=""))
    config = load_config(str(file))
    (plugin,) = (
        each for each in config.plugins.values() if isinstance(each, SparkpubPlugin)
    )
    config.plugins.on_startup(command="serve", dirty=False)
    plugin.on_config(config)

    def built() -> Environment:
        made = config.theme.get_env()
        return plugin.on_env(made, config=config, files=Files([]))

    first = built()
    compiled = first.get_template("main.html")
    first.filters["url"] = lambda _: "of the first build"
    again = built()
    assert again.get_template("main.html") is compiled
    assert again.filters["url"] is url_filter
