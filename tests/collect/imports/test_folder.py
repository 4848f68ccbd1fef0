"""The files of an import: found in folders, decompressed, bounded; one bad file does not stop the others."""

import gzip
from pathlib import Path

import pytest

from sparkpub.collect.imports import folder, import_results
from sparkpub.collect.imports.folder import Folder
from sparkpub.collect.imports.given import Given, Left
from sparkpub.record.errors import ImportFormatError
from sparkpub.tools.forms import ResultFile

GIVEN = Given("c", environment="native")


def test_folders_are_read_to_the_bottom_and_compressed_files_too(
    tmp_path: Path,
) -> None:
    (tmp_path / "b/c").mkdir(parents=True)
    (tmp_path / "b/c/two.json.gz").write_bytes(gzip.compress(b"2"))
    (tmp_path / "a.JSON").write_bytes(b"1")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_bytes(b"hidden")
    (tmp_path / "link.json").symlink_to("/etc/hostname")
    found = [
        file for file in Folder(tmp_path, GIVEN).files() if isinstance(file, ResultFile)
    ]
    assert [(file.source, file.name, file.suffix, file.content) for file in found] == [
        ("a.JSON", "a.JSON", ".json", b"1"),
        ("b/c/two.json.gz", "two.json", ".json", b"2"),
    ]


def test_what_cannot_be_read_is_said_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "MOST_BYTES", 1 << 20)
    whole = gzip.compress(b"x" * 1000)
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b"0" * ((1 << 20) + 1)))
    (tmp_path / "cut.json.gz").write_bytes(whole[:-5])
    (tmp_path / "damaged.json.gz").write_bytes(whole[:10] + b"\xff\xff" + whole[12:])
    (tmp_path / "fits.json").write_bytes(b"0" * (1 << 20))
    (tmp_path / "not.json.gz").write_bytes(b"plain")
    read = {item.source: item for item in Folder(tmp_path, GIVEN).files()}
    reasons = {
        name: item.reason
        for name, item in read.items()
        if isinstance(item, Left) and item.refused
    }
    assert reasons["bomb.json.gz"] == "larger than 1.0 MiB"
    assert set(reasons) == {
        "bomb.json.gz",
        "cut.json.gz",
        "damaged.json.gz",
        "not.json.gz",
    }
    assert isinstance(read["fits.json"], ResultFile)


def test_a_folder_without_results_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("bring milk")
    with pytest.raises(ImportFormatError, match="no results of a known tool"):
        import_results(tmp_path, tmp_path / "data", GIVEN)
    (tmp_path / "told.md").write_text("| model | tok/s |\n|---|---|\n| 8B | 41.2 |\n")
    with pytest.raises(ImportFormatError, match=r"told\.md save it as CSV"):
        import_results(tmp_path, tmp_path / "data", GIVEN)
    with pytest.raises(FileNotFoundError):
        import_results(tmp_path / "nowhere", tmp_path / "data", GIVEN)
