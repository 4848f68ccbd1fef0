"""The two adapters: MkDocs with the plugin, and the same tree on disk for an engine without it."""

import logging
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from mkdocs.commands.build import build as build_docs
from mkdocs.config.base import load_config
from mkdocs.livereload import LiveReloadServer
from mkdocs.structure.files import File, Files

from sparkpub.record.errors import SiteError
from sparkpub.review.dataset import load
from sparkpub.site import disk
from sparkpub.site.build import build
from sparkpub.site.content import Page, Site, SiteOptions
from sparkpub.site.mkdocs import build_site, unasked

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
CONFIG = """
site_name: test
site_url: https://site.test/x/
docs_dir: {docs}
theme: {{name: material, font: false}}
plugins: [{plugins}{{blog: {{post_url_format: "{{slug}}"}}}}]
markdown_extensions: [attr_list, md_in_html, tables, toc]
"""
PLUGIN = "{sparkpub: {folders: data, cache: cache}}, "
ARTICLE = re.compile(
    r'<article class="md-content__inner[^>]*>(.*?)</article>', re.DOTALL
)


@pytest.fixture(autouse=True)
def _drawn_once(tmp_path: Path, cache: Path) -> None:
    """What the sites here draw is drawn once for all tests."""
    (tmp_path / "cache").symlink_to(cache)


def config_file(folder: Path, docs: str, *, plugin: bool) -> Path:
    path = folder / ("with.yml" if plugin else "without.yml")
    path.write_text(
        CONFIG.format(docs=docs, plugins=PLUGIN if plugin else ""), encoding="utf-8"
    )
    return path


class Parts(HTMLParser):
    """Tags with their attributes and texts, in order: Markdown within HTML writes both in a way of its own."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[Any] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: name if value is None else value for name, value in attrs}
        self.found.append((tag, told))

    def handle_data(self, data: str) -> None:
        self.found += data.split()


def articles(site: Path) -> dict[str, list[Any]]:
    found = {}
    for path in sorted(site.rglob("*.html")):
        article = ARTICLE.search(path.read_text(encoding="utf-8"))
        if article:
            found[path.relative_to(site).as_posix()] = Parts(article[1]).found
    return found


def test_both_adapters_give_the_same_pages(
    data: Path, sources: Path, options: SiteOptions, tmp_path: Path
) -> None:
    build_site(config_file(tmp_path, "pages", plugin=True), tmp_path / "one")
    disk.write(build(load(data), options), tmp_path / "docs")
    plain = config_file(tmp_path, "docs", plugin=False)
    build_docs(load_config(str(plain), site_dir=str(tmp_path / "two")))
    one, two = articles(tmp_path / "one"), articles(tmp_path / "two")
    del one["runs/view/index.html"]  # the shell, which only the plugin needs
    assert list(one) == list(two)
    assert "blog/first/index.html" in one
    # The page for no page is the theme's own; the plugin alone gives it words.
    differing = [uri for uri in one if one[uri] != two[uri]]
    assert differing == ["404.html"]


@pytest.mark.parametrize(
    ("search", "left_out"),
    [
        ("search: {lang: en}", ["main.js.map", "lunr/min/lunr.de.min.js"]),
        ("search: {lang: [en, de]}", ["main.js.map"]),
    ],
)
def test_files_of_the_theme_that_no_page_asks_for_stay_out(
    search: str, left_out: list[str], tmp_path: Path
) -> None:
    (tmp_path / "pages").mkdir()
    path = config_file(tmp_path, "pages", plugin=False)
    plugins = f"plugins: [{{{search}}}, "
    path.write_text(path.read_text().replace("plugins: [", plugins))
    config = load_config(str(path))
    names = ("main.js", "main.js.map", "lunr/min/lunr.de.min.js")
    folder = "assets/javascripts"
    files = Files(
        [File(f"{folder}/{name}", None, config.site_dir, True) for name in names]
    )
    found = [file.src_uri for file in unasked(files, config)]
    assert found == [f"{folder}/{name}" for name in left_out]


def test_a_preview_keeps_the_last_whole_data_and_says_so(
    data: Path, sources: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = load_config(str(config_file(tmp_path, "pages", plugin=True)))
    plugin = config.plugins["sparkpub"]
    config.plugins._current_plugin = "sparkpub"
    plugin.on_startup(command="serve", dirty=False)
    good = {file.src_uri for file in plugin.on_files(Files([]), config=config)}
    seen = {
        path: path.stat().st_mtime_ns
        for folder in (data, sources)
        for path in folder.rglob("*")
    }

    path = next((data / "c").glob("native_m_w_iter02_*.json"))
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    with caplog.at_level(logging.INFO, "mkdocs.plugins.sparkpub"):
        assert {
            file.src_uri for file in plugin.on_files(Files([]), config=config)
        } == good
    assert any(path.name in message for message in caplog.messages)
    assert "the last whole data stay until that is fixed" in caplog.messages
    assert not [
        record for record in caplog.records if record.levelno >= logging.WARNING
    ]

    path.unlink()
    after = {file.src_uri for file in plugin.on_files(Files([]), config=config)}
    assert "charts/c-output-throughput.json" in after
    assert f"runs/c-{path.stem}.md" not in plugin._site.runs
    path.write_text(text)
    assert {file.src_uri for file in plugin.on_files(Files([]), config=config)} == good
    # A rebuild that touched a watched file would start the next one.
    assert {
        known for known, when in seen.items() if known.stat().st_mtime_ns != when
    } - {path, path.parent} == set()

    for name in ("first", "second"):
        fact = f"- {{id: {name}, says: It was {name}., value: 1, source: {{document: x}}, unquoted: made up}}\n"
        (sources / "facts.yaml").write_text(fact)
        (sources / "of-a-fact.md").write_text(f'# It\n\n{{{{ fact("{name}") }}}}\n')
        plugin.on_files(Files([]), config=config)
        assert f"facts.md#{name}" in plugin._pages["of-a-fact.md"].text
        assert list(plugin._problems) == []


def test_a_preview_writes_what_a_browser_asks_for(
    data: Path, sources: Path, tmp_path: Path
) -> None:
    config = load_config(
        str(config_file(tmp_path, "pages", plugin=True)),
        site_dir=str(tmp_path / "site"),
    )
    config.plugins.on_startup(command="serve", dirty=False)
    build_docs(config)
    site = Path(config.site_dir)
    server = LiveReloadServer(
        lambda: None, "127.0.0.1", 0, root=str(site), mount_path="/x/"
    )
    config.plugins["sparkpub"].on_serve(server, config=config, builder=None)
    record = next((data / "c").glob("native_m_w_iter02_*.json"))
    run, evidence = f"runs/c-{record.stem}", f"evidence/c/{record.name}"

    def asked(address: str) -> tuple[str, bytes]:
        said: list[str] = []
        answer = server.get_app()(
            {"PATH_INFO": address}, lambda status, _: said.append(status)
        )
        found = b"".join(answer)
        getattr(answer, "close", tuple)()
        return said[-1], found

    assert not (site / run).exists()
    assert not (site / evidence).exists()
    assert asked(f"/x/{evidence}") == ("200 OK", record.read_bytes())
    for _ in range(2):
        status, page = asked(f"/x/{run}/")
        assert status == "200 OK"
        assert b"native, iteration 2" in page
        assert b"livereload" in page
    assert asked("/x/charts/c-output-throughput.json")[0] == "200 OK"
    for nothing in ("runs/nothing/", "evidence/c/", "index.md", f"../{record.name}"):
        assert asked(f"/x/{nothing}")[0] == "404 Not Found"

    build_docs(config)
    assert not (site / evidence).exists()
    record.write_text(record.read_text() + " ")
    assert asked(f"/x/{evidence}")[1] == record.read_bytes()
    server.server_close()


def test_render_writes_into_an_empty_folder_alone(tmp_path: Path) -> None:
    one = Site({"a": Page({}, "one"), "b": b"x"})
    assert disk.write(one, tmp_path / "out") == 2
    with pytest.raises(SiteError, match="the folder is not empty"):
        disk.write(one, tmp_path / "out")
