"""A site of which nothing changed is not built again, and one of which anything changed is."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mkdocs.config.base import load_config

from sparkpub.record.errors import SiteError
from sparkpub.site import stamp
from sparkpub.site.mkdocs import SparkpubPlugin, build_site
from tests.site.conftest import run_of, write_run

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
FACT = """- id: elsewhere
  says: What a report of ours says.
  value: 12
  unit: GiB
  quote: 12 GiB
  source: {document: docs/report.md}
"""
CONFIG = """
site_name: test
site_url: https://site.test/x/
docs_dir: pages
theme: {name: material, font: false, custom_dir: theme}
plugins: [{sparkpub: {folders: data, cache: cache}}, {blog: {post_url_format: "{slug}"}}]
markdown_extensions: [attr_list, md_in_html, tables, toc]
"""
GIT = ("git", "-c", "user.name=x", "-c", "user.email=x@x.test", "-C")


@pytest.fixture
def project(data: Path, sources: Path, tmp_path: Path, cache: Path) -> Path:
    """A project with templates of its own, and facts."""
    files = {
        "pages/facts.yaml": FACT,
        "theme/note.html": "a note",
        "mkdocs.yml": CONFIG,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "cache").symlink_to(cache)
    return tmp_path


def digest(project: Path) -> str:
    config = load_config(str(project / "mkdocs.yml"))
    plugin = config.plugins["sparkpub"]
    assert isinstance(plugin, SparkpubPlugin)
    return stamp.of(config, plugin.data(config), plugin.options(config))


_opened: list[str] | None = None


def _note(event: str, given: tuple[object, ...]) -> None:
    if _opened is not None and event == "open":
        _opened.append(str(given[0]))


@contextmanager
def opened() -> Iterator[list[str]]:
    """The files that anything opens meanwhile."""
    global _opened  # noqa: PLW0603 - a hook can never be taken away
    sys.addaudithook(_note)
    _opened = []
    yield _opened
    _opened = None


def test_an_unchanged_site_is_left_and_a_new_record_is_shown(project: Path) -> None:
    config, site = project / "mkdocs.yml", project / "site"
    with opened() as files:
        assert build_site(config, None) == (site, True)
    loaded = load_config(str(config))
    plugin = loaded.plugins["sparkpub"]
    assert isinstance(plugin, SparkpubPlugin)
    counted = {
        str(path)
        for _, path in stamp.read_files(
            loaded, plugin.data(loaded), plugin.options(loaded)
        )
    }
    made = ("site", "cache", "mkdocs.yml")
    read = {
        path
        for path in files
        if Path(path).is_relative_to(project)
        and Path(path).relative_to(project).parts[0] not in made
    }
    assert len(read) > 16
    assert read - counted == set(), "every file that a build reads decides its digest"

    (site / "index.html").write_text("of nobody's business")
    assert build_site(config, None) == (site, False)
    assert (site / "index.html").read_text() == "of nobody's business"

    record = run_of("n", "native", 4)
    write_run(project / "data" / "c", record)
    assert build_site(config, None) == (site, True)
    assert (site / "runs" / record.run_id / "index.html").is_file()


def test_a_build_that_stops_leaves_no_digest_and_stops_again(project: Path) -> None:
    build_site(project / "mkdocs.yml", None)
    (project / "pages" / "more.md").write_text("It made 123.4 tok/s.\n")
    for _ in range(2):
        with pytest.raises(SiteError, match="unbound-number"):
            build_site(project / "mkdocs.yml", None)
        assert stamp.known(project / "site") is None


def test_a_file_counts_by_its_content(project: Path) -> None:
    path = project / "theme/note.html"
    path.touch()
    before, text = digest(project), path.read_bytes()
    path.write_bytes(text[:-1] + b" ")
    assert digest(project) != before
    path.unlink()
    assert digest(project) != before
    path.write_bytes(text)
    assert digest(project) == before, "the time of a file says nothing"


def test_settings_git_and_the_program_count_and_the_place_does_not(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"as it is": digest(project)}
    config = project / "mkdocs.yml"
    for setting in ("site_name: other", "repo_url: https://r.test"):
        config.write_text(CONFIG + setting + "\n")
        found[setting] = digest(project)
    config.write_text(CONFIG.replace("folders: data,", "folders: data:more,"))
    (project / "more").mkdir()
    found["folders"] = digest(project)
    config.write_text(CONFIG)
    with monkeypatch.context() as patch:
        patch.setattr(stamp, "program", lambda: "another")
        found["program"] = digest(project)
    assert digest(project) == found["as it is"]
    project.rename(tmp_path.with_name("elsewhere"))
    assert digest(tmp_path.with_name("elsewhere")) == found["as it is"]
    elsewhere = str(tmp_path.with_name("elsewhere"))
    subprocess.run([*GIT, elsewhere, "init", "-q"], check=True)
    commit = [*GIT, elsewhere, "commit", "-q", "--allow-empty", "-m", "one"]
    subprocess.run(commit, check=True)
    found["commit"] = digest(tmp_path.with_name("elsewhere"))
    assert len(set(found.values())) == len(found), found
