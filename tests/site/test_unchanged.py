"""A site of which nothing changed is not built again, and one of which anything changed is."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sparkpub.record.errors import SiteError
from sparkpub.review import committed
from sparkpub.site import cache as caching
from sparkpub.site import unchanged
from sparkpub.site.content import Content, SiteOptions
from sparkpub.site.words import Words
from tests.site.conftest import run_of, write_run, write_sources

FACT = """- id: elsewhere
  says: What a report of ours says.
  value: 12
  unit: GiB
  source: {document: docs/report.md}
"""
CLAIM = """- id: slower
  says: The container is slower.
  about: world
  campaign: c
  recorded: undecided
  expect: {metric: output_throughput_tok_s, statistic: difference, is: below, than: 0}
"""


@pytest.fixture
def site(tmp_path: Path, options: SiteOptions) -> SiteOptions:
    """A site with templates of its own, and facts from a document beside its pages."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "report.md").write_text("It was 12 GiB.\n")
    (options.sources / "facts.yaml").write_text(FACT)
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "note.html.j2").write_text("a note")
    return replace(options, templates=tmp_path / "templates")


def contents(tree: Mapping[str, Content]) -> dict[str, bytes]:
    return {uri: content.inlined(uri) for uri, content in tree.items()}


_opened: list[str] | None = None


def _note(event: str, given: tuple[object, ...]) -> None:
    if _opened is not None and event == "open":
        _opened.append(str(given[0]))


@contextmanager
def opened() -> Iterator[list[str]]:
    """The files that anything opens meanwhile."""
    global _opened  # noqa: PLW0603 - a hook can never be taken away
    if not _hooked:
        sys.addaudithook(_note)
        _hooked.append(True)
    _opened = []
    yield _opened
    _opened = None


_hooked: list[bool] = []


def test_what_decides_a_site_is_in_its_name_and_the_next_build_shows_a_new_record(
    data: Path, site: SiteOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    say = Words._render

    def noted(words: Words, text: str, uri: str) -> str:
        said.append(uri)
        return say(words, text, uri)

    with monkeypatch.context() as patch:
        patch.setattr(Words, "_render", noted)
        before = unchanged.tree([data], site)
    assert "blog/posts/first.md" in said
    assert [uri for uri, times in Counter(said).items() if times > 1] == [], "once"

    record = run_of("n", "native", 4)
    write_run(data / "c", record)  # collection goes on after a build
    with opened() as files:
        after = unchanged.tree([data], site)
        contents(after)
    read = {path for path in files if Path(path).is_relative_to(tmp_path)}
    assert len(read) > 16
    assert read - set(map(str, unchanged.read_files([data], site))) == set()

    new = f"runs/{record.run_id}/run.packed"
    assert new not in before
    assert new in after
    assert before["campaigns/c.md"] != after["campaigns/c.md"]


def test_a_site_that_did_not_change_is_the_one_that_was_built(
    data: Path, site: SiteOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = unchanged.tree([data], site)
    first = contents(built)
    builds: list[int] = []

    def count(*_: object) -> unchanged.Tree:
        builds.append(1)
        return built

    monkeypatch.setattr(unchanged, "_built", count)
    again = unchanged.tree([data], site)
    assert list(again) == list(built)
    assert again == built
    assert contents(again) == first
    assert not builds

    # The file of a run lies by itself. Where it is damaged, it is made again.
    work = caching.Cache(site.cache / caching.WORK)
    made = [content.made.name for content in built.values() if content.made]
    assert len(made) == 13
    for name in made:
        work._place(name).write_bytes(b"?")
    assert contents(unchanged.tree([data], site)) == first
    assert len(builds) == 1

    trees = caching.Cache(site.cache / "sites")
    entry = trees._place(unchanged._name([data], site))
    whole = entry.read_bytes()
    for damaged in (whole[:-1], b"", b"{}", whole[:32] + b"{}"):
        entry.write_bytes(damaged)
        assert contents(unchanged.tree([data], site)) == first
    assert len(builds) == 5
    assert entry.read_bytes() == whole


def of(folder: Path, pattern: str) -> Path:
    return next(iter(sorted(folder.glob(pattern))))


CHANGES: dict[str, tuple[str, str]] = {
    "page": ("pages", "blog/posts/*.md"),
    "fact": ("pages", "facts.yaml"),
    "document of a fact": ("docs", "*.md"),
    "record": ("data/c", "native*.json"),
    "campaign": ("data/c", "campaign.json"),
    "log": ("data/c", "*.log"),
    "telemetry": ("data/c", "*.csv"),
    "template": ("templates", "*"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_each_file_counts(
    data: Path, site: SiteOptions, tmp_path: Path, what: str
) -> None:
    before = unchanged._name([data], site)
    folder, pattern = CHANGES[what]
    path = of(tmp_path / folder, pattern)
    text = path.read_bytes()
    path.write_bytes(text[:-1] + b" ")
    assert unchanged._name([data], site) != before
    path.unlink()
    assert unchanged._name([data], site) != before
    path.write_bytes(text)
    assert unchanged._name([data], site) == before, "the time of a file says nothing"
    path.with_name(f"one-more{path.suffix}").write_bytes(text)
    seen = what != "document of a fact"  # another document is none of its business
    assert (unchanged._name([data], site) != before) is seen


def test_claims_options_folders_and_the_program_count(
    data: Path, site: SiteOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = write_sources(tmp_path / "other")
    (other / "facts.yaml").write_text(FACT)
    names = {
        "as it is": unchanged._name([data], site),
        "name": unchanged._name([data], replace(site, name="other")),
        "address": unchanged._name([data], replace(site, url="https://o.test/")),
        "home": unchanged._name([data], replace(site, home="h200")),
        "repository": unchanged._name([data], replace(site, repo_url="https://r.test")),
        "commits": unchanged._name([data], replace(site, commits={"a": "b"})),
        "pages": unchanged._name([data], replace(site, sources=other)),
        "shipped templates": unchanged._name([data], replace(site, templates=None)),
        "folders": unchanged._name([data, tmp_path / "more"], site),
    }
    (site.sources / "claims.yaml").write_text(CLAIM)
    names["claim"] = unchanged._name([data], site)
    with monkeypatch.context() as patch:
        patch.setattr(unchanged, "program", lambda: "another")
        names["program"] = unchanged._name([data], site)
    with monkeypatch.context() as patch:
        patch.setattr(unchanged.package, "public_source", lambda: "git+https://x")
        names["where it is from"] = unchanged._name([data], site)
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@x.test", "-C", str(tmp_path))
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    names["commit"] = unchanged._name([data], site)
    assert len(set(names.values())) == len(names), names
    elsewhere = replace(site, cache=tmp_path / "elsewhere", compiled=None)
    assert unchanged._name([data], elsewhere) == names["commit"]


def test_the_source_of_the_program_is_in_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "templates").mkdir()
    monkeypatch.setattr(caching, "_PACKAGE", tmp_path)
    names = []
    for text in ("one", "two"):
        for path in (tmp_path / "code.py", tmp_path / "templates" / "page.md.j2"):
            path.write_text(text)
            names.append(caching.program.__wrapped__())
    assert len(set(names)) == len(names)


def test_what_is_refused_is_not_kept_and_refused_again(
    data: Path, site: SiteOptions, tmp_path: Path
) -> None:
    (site.sources / "more.md").write_text("It made 123.4 tok/s.\n")
    fresh = replace(site, cache=tmp_path / "cache")
    for _ in range(2):
        with pytest.raises(SiteError, match="unbound-number"):
            unchanged.tree([data], fresh)
    assert not list(fresh.cache.glob("sites/*/*"))


def test_few_sites_are_kept(tmp_path: Path) -> None:
    store = caching.Cache(tmp_path)
    for number in range(6):
        store.put(caching.key(number), b"x")
    store.get(caching.key(0))
    store.prune_to(2)
    left = [number for number in range(6) if store.get(caching.key(number))]
    assert len(left) == 2
    assert 0 in left


def test_a_clone_without_git_has_a_name(tmp_path: Path) -> None:
    assert committed.head(tmp_path) is None
