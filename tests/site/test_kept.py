"""What stays of a built site while MkDocs builds it again."""

from pathlib import Path

from mkdocs.utils import clean_directory

from sparkpub.site import kept


def _file(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_files_that_the_next_site_has_stay_and_the_others_go(tmp_path: Path) -> None:
    site = tmp_path / "site"
    stays = _file(site / "runs" / "one" / "run.packed", "one")
    goes = _file(site / "runs" / "two" / "run.packed", "two")
    page = _file(site / "index.html", "page")
    elsewhere = _file(tmp_path / "elsewhere" / "log.txt", "log")
    (site / "evidence").symlink_to(elsewhere.parent)
    _file(site / ".sparkpub-runs" / "old", "of a build that was stopped")
    same = stays.stat().st_ino

    kept.aside(site)
    clean_directory(str(site))
    assert not stays.exists()
    kept.back(site, {"runs/one/run.packed", "index.html"})

    assert stays.stat().st_ino == same
    assert not goes.parent.exists()
    assert not page.exists()
    assert elsewhere.read_text() == "log"
    assert not list(site.glob(".sparkpub-*"))


def test_a_file_is_written_only_where_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "one"
    kept.write(path, b"figure 1")
    first = path.stat()
    kept.write(path, b"figure 1")
    assert path.stat() == first
    kept.write(path, b"figure 2")
    assert path.read_bytes() == b"figure 2"


def test_a_copy_follows_its_source_and_never_a_link(tmp_path: Path) -> None:
    source = _file(tmp_path / "run.log", "one")
    path = tmp_path / "evidence" / "run.log.txt"
    kept.copy(path, source)
    first = path.stat()
    kept.copy(path, source)
    assert path.stat() == first
    replaced = _file(tmp_path / "new", "two")  # as git and editors do
    replaced.replace(source)
    kept.copy(path, source)
    assert path.read_text() == "two"

    other = _file(tmp_path / "other", "theirs")
    path.unlink()
    path.symlink_to(other)
    kept.copy(path, source)
    assert (path.read_text(), other.read_text()) == ("two", "theirs")
