"""A campaign as one file: the same bytes for the same data, checked by other programs, and forged ones refused."""

import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkpub.cli import cli
from sparkpub.record import archive
from sparkpub.record.campaign import Campaign
from sparkpub.record.errors import RecordError, UsageError
from sparkpub.record.record import Evidence
from sparkpub.record.store import CAMPAIGN_FILE, EVIDENCE_CAP, to_json
from tests.building import a_record

LOG = b"10 tok/s\n"


def a_folder(data: Path) -> Path:
    """A campaign of one run with its log."""
    folder = data / "c"
    folder.mkdir(parents=True)
    digest = hashlib.sha256(LOG).hexdigest()
    record = a_record(
        evidence=(Evidence(role="log", path="run.log", sha256=digest, bytes=len(LOG)),)
    )
    (folder / "run.log").write_bytes(LOG)
    (folder / f"{record.stem}.json").write_text(to_json(record))
    info = Campaign(campaign="c", title="Two\nlines")
    (folder / CAMPAIGN_FILE).write_text(to_json(info))
    (folder / "stray.txt").write_text("not of the campaign")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return a_folder(tmp_path / "data")


@pytest.fixture
def whole(folder: Path, tmp_path: Path) -> Path:
    archive.write(folder, tmp_path / "c.tar")
    return tmp_path / "c.tar"


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        return {
            item.name: file.read()
            for item in tar
            if (file := tar.extractfile(item)) is not None
        }


def repacked(path: Path, contents: dict[str, bytes]) -> Path:
    """An archive with these members, whether they fit each other or not."""
    with tarfile.open(path, "w") as tar:
        for name, content in contents.items():
            item = tarfile.TarInfo(name)
            item.size = len(content)
            tar.addfile(item, io.BytesIO(content))
    return path


def refusal(path: Path, into: Path) -> str:
    into.mkdir(exist_ok=True)
    with pytest.raises(RecordError) as refused:
        archive.extract(path, into)
    return "\n".join(refused.value.lines())


# -- writing -----------------------------------------------------------------------------------------------


def test_it_holds_the_campaign_and_nothing_else(whole: Path, folder: Path) -> None:
    found = members(whole)
    data = {name for name in found if name.startswith("c/data/")}
    expected = {path.name for path in folder.iterdir()} - {"stray.txt"}
    assert {name.removeprefix("c/data/c/") for name in data} == expected
    assert set(found) - data == {f"c/{name}" for name in archive.TAG_FILES}
    about = found["c/bag-info.txt"].decode().splitlines()
    assert about[1] == "External-Description: Two lines"
    size = sum((folder / name).stat().st_size for name in expected)
    assert about[2] == f"Payload-Oxum: {size}.3"


def test_the_same_data_give_the_same_bytes(
    folder: Path, whole: Path, tmp_path: Path
) -> None:
    for number, path in enumerate(folder.iterdir()):
        os.utime(path, (number, number))
        path.chmod(0o600)
    archive.write(folder, tmp_path / "again.tar")
    assert (tmp_path / "again.tar").read_bytes() == whole.read_bytes()
    stream = io.BytesIO()
    archive.write_to(folder, stream)
    assert stream.getvalue() == whole.read_bytes()


def test_programs_of_the_system_unpack_and_check_it(
    whole: Path, tmp_path: Path
) -> None:
    subprocess.run(["tar", "xf", whole], cwd=tmp_path, check=True)
    for manifest in (archive.MANIFEST, archive.TAG_MANIFEST):
        subprocess.run(
            ["sha256sum", "--check", "--strict", "--quiet", manifest],
            cwd=tmp_path / "c",
            check=True,
        )


def test_evidence_that_is_not_what_its_record_says_is_not_archived(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "run.log").write_bytes(b"11 tok/s\n")
    with pytest.raises(RecordError) as refused:
        archive.write(folder, tmp_path / "c.tar")
    said = f"not what its record says, {folder / 'run.log'}; restore it from git"
    assert refused.value.lines() == [said]
    (folder / "run.log").unlink()
    with pytest.raises(RecordError) as refused:
        archive.write(folder, tmp_path / "c.tar")
    said = f"cannot be read: No such file or directory, {folder / 'run.log'}; restore it from git"
    assert refused.value.lines() == [said]
    (folder / "run.log").mkdir()
    with pytest.raises(RecordError) as refused:
        archive.write(folder, tmp_path / "c.tar")
    said = f"a folder and not a file, {folder / 'run.log'}; restore it from git"
    assert refused.value.lines() == [said]
    assert not list(tmp_path.glob("*c.tar*"))


# -- reading -----------------------------------------------------------------------------------------------


def test_a_place_that_cannot_be_written_is_named_as_it_was_given(
    folder: Path, tmp_path: Path
) -> None:
    output = tmp_path / "nowhere" / "own.tar"
    with pytest.raises(FileNotFoundError) as caught:
        archive.write(folder, output)
    assert caught.value.filename == str(output)


def test_it_comes_back_as_it_was(whole: Path, folder: Path, tmp_path: Path) -> None:
    assert archive.unpack(whole, tmp_path / "others") == "c"
    for path in (tmp_path / "others/c").iterdir():
        assert path.read_bytes() == (folder / path.name).read_bytes()
    assert len(list((tmp_path / "others/c").iterdir())) == 3
    assert [path.name for path in (tmp_path / "others").iterdir()] == ["c"]


def test_the_folders_that_it_goes_to_are_made(whole: Path, tmp_path: Path) -> None:
    data = tmp_path / "a" / "b"
    archive.unpack(whole, data)
    assert (data / "c" / CAMPAIGN_FILE).is_file()


def test_a_campaign_that_is_there_is_left_alone(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the campaign is there"):
        archive.unpack(whole, tmp_path / "data")
    assert (tmp_path / "data/c/stray.txt").is_file()


def test_a_folder_is_read_where_it_is(folder: Path, whole: Path) -> None:
    with archive.as_folder(folder.parent) as found:
        assert found == folder.parent
    with archive.as_folder(whole) as found:
        assert (found / "c" / CAMPAIGN_FILE).is_file()
    assert not found.exists()


def test_an_unpacked_bag_may_be_packed_by_others(whole: Path, tmp_path: Path) -> None:
    """`tar cf` writes folders too."""
    subprocess.run(["tar", "xf", whole], cwd=tmp_path, check=True)
    subprocess.run(["tar", "cf", "others.tar", "c"], cwd=tmp_path, check=True)
    (tmp_path / "into").mkdir()
    assert archive.extract(tmp_path / "others.tar", tmp_path / "into") == "c"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda all_: all_.update({"c/data/c/run.log": b"1"}), "is not what manifest-sha256.txt says"),
        (lambda all_: all_.pop("c/data/c/run.log"), "is listed in manifest-sha256.txt and missing"),
        (lambda all_: all_.update({"c/data/c/more.log": b"1"}), "is not listed in manifest-sha256.txt"),
        (lambda all_: all_.pop("c/manifest-sha256.txt"), "manifest-sha256.txt is missing"),
        (lambda all_: all_.pop("c/bagit.txt"), "bagit.txt is missing"),
        (lambda all_: all_.update({"c/bagit.txt": b"BagIt-Version: 2.0\n"}), "does not declare BagIt 1.0"),
        (lambda all_: all_.update({"c/bag-info.txt": b"x: y\n"}), "bag-info.txt is not what tagmanifest"),
        (lambda all_: all_.update({"c/manifest-sha256.txt": b"x"}), "line 1 names no file"),
        (lambda all_: all_.update({"c/manifest-sha256.txt": b"\xff\n"}), "line 1 names no file"),
        (lambda all_: all_.update({"c/../../evil": b"1"}), "has no place in it"),
        (lambda all_: all_.update({"/c/data/c/evil": b"1"}), "has no place in it"),
        (lambda all_: all_.update({"c/data/../evil": b"1"}), "has no place in it"),
        (lambda all_: all_.update({"c/data/c/.hidden": b"1"}), "has no place in it"),
        (lambda all_: all_.update({"c/data/c/deep/er": b"1"}), "has no place in it"),
        (lambda all_: all_.update({"c/data/d/run.log": b"1"}), "does not hold exactly one campaign"),
        (lambda all_: all_.update({"d/data/c/other.log": b"1"}), "does not hold exactly one campaign"),
        (lambda all_: all_.clear(), "does not hold exactly one campaign"),
    ],
)  # fmt: skip
def test_what_is_not_whole_is_refused(
    change: Callable[[dict[str, bytes]], object], said: str, whole: Path, tmp_path: Path
) -> None:
    contents = members(whole)
    change(contents)
    lines = refusal(repacked(tmp_path / "forged.tar", contents), tmp_path / "into")
    assert said in lines
    assert str(tmp_path / "forged.tar") in lines
    written = {path.name for path in (tmp_path / "into").rglob("*") if path.is_file()}
    assert "evil" not in written
    assert not (tmp_path / "evil").exists()


def summed(contents: dict[str, bytes]) -> dict[str, bytes]:
    """The same with manifests that fit: sums that anybody can make."""
    for manifest, begin in (("manifest", "c/data/"), ("tagmanifest", "c/")):
        name = f"c/{manifest}-sha256.txt"
        lines = [
            f"{hashlib.sha256(content).hexdigest()}  {member.removeprefix('c/')}\n"
            for member, content in contents.items()
            if member.startswith(begin) and member != name
        ]
        if manifest == "tagmanifest":
            lines = [line for line in lines if "  data/" not in line]
        contents[name] = "".join(lines).encode()
    return contents


def renaming(contents: dict[str, bytes], old: str, new: str) -> None:
    """Give a piece of evidence another name, in its record too."""
    contents[f"c/data/c/{new}"] = contents.pop(f"c/data/c/{old}")
    for name, content in contents.items():
        if name.endswith("Z.json"):
            contents[name] = content.replace(old.encode(), new.encode())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda all_: all_.update({"c/data/c/conftest.py": b"import os"}), "conftest.py is no part of a campaign"),
        (lambda all_: all_.update({"c/data/c/index.html": b"<script>"}), "index.html is no part of a campaign"),
        (lambda all_: all_.update({"c/data/c/extra.sh": b"rm"}), "extra.sh is no part of a campaign"),
        (lambda all_: all_.update({"c/data/c/more.log": b"1"}), "more.log is no part of a campaign"),
        (lambda all_: all_.update({"c/data/c/more.json": b"{}"}), "more.json is no part of a campaign"),
        (lambda all_: all_.update({"c/data/c/more.json": b"[1]"}), "more.json is no part of a campaign"),
        (lambda all_: all_.update({"c/data/c/Campaign.json": b"{}"}), "data/c/Campaign.json differ in case alone"),
        (lambda all_: all_.pop("c/data/c/campaign.json"), "campaign.json is missing"),
        (lambda all_: renaming(all_, "run.log", "conftest.py"), "conftest.py is no part of a campaign"),
    ],
)  # fmt: skip
def test_what_is_no_part_of_the_campaign_is_refused_with_right_sums(
    change: Callable[[dict[str, bytes]], object], said: str, whole: Path, tmp_path: Path
) -> None:
    contents = members(whole)
    assert summed(dict(contents)) == contents
    change(contents)
    forged = repacked(tmp_path / "forged.tar", summed(contents))
    assert said in refusal(forged, tmp_path / "into")
    with pytest.raises(RecordError):
        archive.unpack(forged, tmp_path / "others")
    assert not list((tmp_path / "others").iterdir())


def test_evidence_that_no_archive_holds_is_named_when_it_is_written(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "run.log").rename(folder / "run.py")
    (record,) = folder.glob("*Z.json")
    record.write_text(record.read_text().replace("run.log", "run.py"))
    with pytest.raises(RecordError) as refused:
        archive.write(folder, tmp_path / "c.tar")
    said = f"no kind of file of an archive, {folder / 'run.py'}; name it .txt there and in its record"
    assert refused.value.lines() == [said]


def test_every_difference_is_told_at_once(whole: Path, tmp_path: Path) -> None:
    contents = members(whole)
    contents["c/data/c/run.log"] = b"1"
    contents["c/data/c/more.log"] = b"1"
    lines = refusal(repacked(tmp_path / "forged.tar", contents), tmp_path / "into")
    assert len(lines.splitlines()) == 2


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
def test_links_and_devices_are_refused(
    kind: bytes, whole: Path, tmp_path: Path
) -> None:
    with tarfile.open(whole, "a") as tar:
        item = tarfile.TarInfo("c/data/c/link.log")
        item.type, item.linkname = kind, "/etc/passwd"
        tar.addfile(item)
    assert "is not an ordinary file" in refusal(whole, tmp_path / "into")


def test_a_file_that_stands_twice_is_refused(whole: Path, tmp_path: Path) -> None:
    for name in ("c/data/c/run.log", "c/bagit.txt"):
        forged = tmp_path / "forged.tar"
        forged.write_bytes(whole.read_bytes())
        with tarfile.open(forged, "a") as tar:
            tar.addfile(tarfile.TarInfo(name))
        assert "stands twice" in refusal(forged, tmp_path / "into")


def test_a_sparse_file_is_refused(whole: Path, tmp_path: Path) -> None:
    """A hundred bytes of archive could become any number of bytes of file."""
    with tarfile.open(whole, "a", format=tarfile.PAX_FORMAT) as tar:
        item = tarfile.TarInfo("c/data/c/zeros.log")
        item.pax_headers = {
            "GNU.sparse.size": str(2**40),
            "GNU.sparse.numblocks": "0",
            "GNU.sparse.map": "0,0",
        }
        tar.addfile(item)
    assert "is not an ordinary file" in refusal(whole, tmp_path / "into")


@pytest.mark.parametrize(
    "kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME]
)
def test_a_part_larger_than_any_file_is_not_read(kind: bytes, tmp_path: Path) -> None:
    """It is there: a hole in the file, which takes no room on the disk."""
    item = tarfile.TarInfo("c/data/c/large.log")
    item.type, item.size = kind, EVIDENCE_CAP + 4 * tarfile.BLOCKSIZE
    path = tmp_path / "large.tar"
    path.write_bytes(item.tobuf(tarfile.GNU_FORMAT))
    os.truncate(path, item.size + 10 * tarfile.BLOCKSIZE)
    assert "larger than any file of a campaign" in refusal(path, tmp_path / "into")


def test_an_archive_of_too_many_files_is_refused(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has seven: three of data, and four that describe them."""
    (tmp_path / "into").mkdir()
    monkeypatch.setattr(archive, "MOST_FILES", 7)
    assert archive.extract(whole, tmp_path / "into") == "c"
    monkeypatch.setattr(archive, "MOST_FILES", 6)
    assert "more than 6 files" in refusal(whole, tmp_path / "others")


def test_a_part_that_ends_before_the_file_begins_is_refused(
    whole: Path, tmp_path: Path
) -> None:
    """A forged length is negative, as tar can write it (base 256), and the sum of its header is right."""
    with tarfile.open(whole, "a", format=tarfile.GNU_FORMAT) as tar:
        item = tarfile.TarInfo("c/data/c/more.log")
        item.size = -(10**7)
        tar.fileobj.write(item.tobuf(tarfile.GNU_FORMAT))  # type: ignore[union-attr]
    assert "not an archive of sparkpub" in refusal(whole, tmp_path / "into")


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert "a named pipe and not a file" in refusal(tmp_path / "pipe", tmp_path / "a")
    assert "a folder and not a file" in refusal(tmp_path / "folder", tmp_path / "b")


@pytest.mark.parametrize(
    "content",
    [b"", b"x" * 600, gzip.compress(b"x", mtime=0)],
    ids=["empty", "plain", "gzip"],
)
def test_what_is_no_tar_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    path.write_bytes(content)
    assert "not an archive of sparkpub" in refusal(path, tmp_path / "into")


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_change_of_bytes_gets_through(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Headers hold fields that nobody reads (owner, time); whatever is read is as it was, or refused in one line."""
    root = tmp_path_factory.mktemp("fuzz")
    folder = a_folder(root / "data")
    archive.write(folder, root / "c.tar")
    content = bytearray((root / "c.tar").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    (root / "c.tar").write_bytes(content)
    (root / "into").mkdir()
    try:
        archive.extract(root / "c.tar", root / "into")
    except RecordError:
        return
    for path in (root / "into/c").iterdir():
        assert path.read_bytes() == (folder / path.name).read_bytes()


# -- the commands ------------------------------------------------------------------------------------------


def test_the_commands_write_check_and_unpack(folder: Path, tmp_path: Path) -> None:
    path, data = tmp_path / "c.tar", ["--data", str(folder.parent)]
    told = CliRunner().invoke(cli, ["archive", "c", *data, "-o", str(path), "--json"])
    document = json.loads(told.output)
    assert document["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (document["runs"], document["files"]) == (1, 3)
    plain = CliRunner().invoke(cli, ["archive", "c", *data, "-o", "-"])
    assert plain.stdout_bytes == path.read_bytes()
    checked = CliRunner().invoke(cli, ["check", str(path), "--json"])
    assert json.loads(checked.output)["runs"] == 1
    done = CliRunner().invoke(cli, ["unpack", str(path), "--data", str(tmp_path / "o")])
    assert done.exit_code == 0
    assert (tmp_path / "o/c" / CAMPAIGN_FILE).is_file()


def test_check_refuses_an_archive_that_is_not_whole(whole: Path) -> None:
    content = whole.read_bytes().replace(LOG, b"99 tok/s\n")
    whole.write_bytes(content)
    done = CliRunner().invoke(cli, ["check", str(whole)])
    assert isinstance(done.exception, RecordError)
    assert "run.log is not what manifest-sha256.txt says" in str(done.exception)


def test_a_campaign_that_is_not_there_is_named(folder: Path, tmp_path: Path) -> None:
    arguments = [
        "archive",
        "d",
        "--data",
        str(folder.parent),
        "-o",
        str(tmp_path / "x"),
    ]
    done = CliRunner().invoke(cli, arguments)
    assert isinstance(done.exception, UsageError)
    assert "no campaign 'd'" in str(done.exception)
