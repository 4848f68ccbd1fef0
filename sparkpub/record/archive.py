"""A campaign as one file: a tar with a bag (BagIt 1.0, RFC 8493). The same data give the same bytes on any machine.

    CAMPAIGN/bagit.txt, bag-info.txt, manifest-sha256.txt, tagmanifest-sha256.txt
    CAMPAIGN/data/CAMPAIGN/campaign.json, its records and their evidence

Without sparkpub: `tar xf FILE && cd CAMPAIGN && sha256sum -c manifest-sha256.txt`. Nothing is compressed, since what
compressors write differs between their versions; archives of other people cannot grow while they are read, either.
"""

import hashlib
import io
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sparkpub.record import outside
from sparkpub.record.errors import RecordError, UsageError
from sparkpub.record.record import Evidence
from sparkpub.record.store import (
    CAMPAIGN_FILE,
    EVIDENCE_CAP,
    EVIDENCE_KINDS,
    read_campaign,
    read_folder,
    record_paths,
    replacing,
)

DECLARATION = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
MANIFEST, TAG_MANIFEST = "manifest-sha256.txt", "tagmanifest-sha256.txt"
TAG_FILES = ("bagit.txt", "bag-info.txt", MANIFEST, TAG_MANIFEST)
MOST_FILES = 60_000
"""Files of one archive: six for each of 10,000 runs."""
_NO_TAR = (tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError)
"""What reading a tar ends with where somebody forged one; UnfitError is a ValueError."""
_REMEDY = "get the archive again from where it was published"
_KEY = r"[a-z0-9][a-z0-9.-]{0,62}"
_NAME = re.compile(
    rf"(?P<root>{_KEY})/(?:(?P<tag>{'|'.join(map(re.escape, TAG_FILES))})"
    rf"|data/(?P<campaign>{_KEY})/(?P<file>[A-Za-z0-9][A-Za-z0-9._-]{{0,220}}))"
)
"""Names within an archive: none leads out of its folder."""
_LINE = re.compile(r"(?P<digest>[0-9a-f]{64})  (?P<name>\S+)")


@dataclass(frozen=True)
class Written:
    """What an archive holds: files of data, and their bytes."""

    runs: int
    files: int
    size: int


# -- writing -----------------------------------------------------------------------------------------------


def write(folder: Path, output: Path) -> Written:
    """Write the archive of a campaign's folder; a reader sees the whole file or none of it.

    Raises RecordError where a record is damaged or its evidence is not what it says.
    """
    with replacing(output) as file:
        return write_to(folder, file)


def write_to(folder: Path, file: IO[bytes]) -> Written:
    """Write the archive of a campaign's folder to an open file, such as standard output."""
    info = read_campaign(folder)
    name = info.campaign
    runs = read_folder(folder)
    evidence = {item.path: item for run in runs for item in run.record.evidence}
    paths = sorted({CAMPAIGN_FILE, *(run.path.name for run in runs), *evidence})
    digests: dict[str, str] = {}
    size = 0
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for path in paths:
            content = _content(folder / path, evidence.get(path))
            digests[f"data/{name}/{path}"] = hashlib.sha256(content).hexdigest()
            size += len(content)
            _add(tar, f"{name}/data/{name}/{path}", content)
        about = (
            f"External-Identifier: {name}\n"
            f"External-Description: {_one_line(info.title)}\n"
            f"Payload-Oxum: {size}.{len(paths)}\n"
        )
        tags = {
            "bagit.txt": DECLARATION,
            "bag-info.txt": about.encode(),
            MANIFEST: _manifest(digests),
        }
        tag_digests = {
            tag: hashlib.sha256(content).hexdigest() for tag, content in tags.items()
        }
        tags[TAG_MANIFEST] = _manifest(tag_digests)
        for tag, content in tags.items():
            _add(tar, f"{name}/{tag}", content)
    return Written(len(runs), len(paths), size)


def _content(path: Path, evidence: Evidence | None) -> bytes:
    """The bytes of a file. Raises RecordError where they are not those that the record knows, or no archive holds such
    a file."""
    where, remedy = str(path), "restore it from git"
    if evidence and path.suffix.lower() not in EVIDENCE_KINDS:
        rename = "name it .txt there and in its record"
        raise RecordError("no kind of file of an archive", where=where, remedy=rename)
    try:
        content = outside.content(path, EVIDENCE_CAP)
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise RecordError(what, where=where, remedy=remedy) from None
    except outside.UnfitError as error:
        raise RecordError(str(error), where=where, remedy=remedy) from None
    if evidence and hashlib.sha256(content).hexdigest() != evidence.sha256:
        raise RecordError("not what its record says", where=where, remedy=remedy)
    return content


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    # Nobody's, of 1970: nothing in it depends on who writes it, or when.
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def _manifest(digests: Mapping[str, str]) -> bytes:
    """The lines of a manifest, as `sha256sum -c` reads them too."""
    return "".join(f"{digest}  {name}\n" for name, digest in digests.items()).encode()


def _one_line(text: str) -> str:
    return " ".join(outside.plain(text).split())


# -- reading -----------------------------------------------------------------------------------------------


@contextmanager
def as_folder(path: Path) -> Iterator[Path]:
    """A data folder with the campaign of an archive, for as long as it is needed; a folder itself is that already.

    Raises RecordError where the archive is not whole.
    """
    if not path.is_file():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="sparkpub-") as folder:
        extract(path, Path(folder))
        yield Path(folder)


def unpack(path: Path, data: Path) -> str:
    """Put the campaign of an archive into a data folder, and return its name.

    Raises RecordError where the archive is not whole, UsageError where the campaign is there already.
    """
    data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=data, prefix=".unpack-") as folder:
        name = extract(path, Path(folder))
        read_campaign(Path(folder) / name)
        place = data / name
        if place.exists():
            remedy = "name another folder with --data"
            raise UsageError("the campaign is there", where=str(place), remedy=remedy)
        (Path(folder) / name).rename(place)
    return name


def extract(path: Path, into: Path) -> str:
    """Write the campaign's folder of an archive into the folder `into`, and return the campaign's name.

    Only ordinary files with the names of an archive are written, each within its bound. Raises RecordError with every
    file that is missing, too much or different from the manifest, or that is no part of the campaign.
    """
    try:
        with outside.opened(path) as file:
            bounded = _Bounded(file)
            with tarfile.open(fileobj=bounded, mode="r:") as tar:  # type: ignore[call-overload]
                contents = _read(tar, into)
                _refuse_more(bounded, tar.offset)
    except _NO_TAR as error:
        what = f"not an archive of sparkpub: {outside.plain(str(error))[:200]}"
        raise RecordError(what, where=str(path), remedy=_REMEDY) from None
    problems = _problems(contents) or _strays(into / contents.campaign)
    if problems:
        lines = [f"{problem}, {path}; {_REMEDY}" for problem in problems[1:]]
        raise RecordError(problems[0], where=str(path), remedy=_REMEDY, others=lines)
    return contents.campaign


class _Bounded:
    """A file of which no more is read at a time than a file of the archive may be long."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.tell = file.tell

    def seek(self, place: int) -> int:
        """Go to a place. Raises UnfitError for one before the beginning, where a forged length leads."""
        if place < 0:
            raise outside.UnfitError("a part ends before the file begins")
        return self._file.seek(place)

    def read(self, size: int = -1) -> bytes:
        """The next bytes. Raises UnfitError for more than fit into memory."""
        if not 0 <= size <= EVIDENCE_CAP + tarfile.BLOCKSIZE:
            raise outside.UnfitError("a part is larger than any file of a campaign")
        return self._file.read(size)


def _refuse_more(file: _Bounded, end: int) -> None:
    """Raise UnfitError where a tar does not end with a block of zeros, or with the file. Python 3.12 and later take a
    forged header behind the first member for the end and say nothing."""
    file.seek(end)
    if file.read(tarfile.BLOCKSIZE).strip(b"\0"):
        raise outside.UnfitError(f"byte {end:,} begins no file")


@dataclass(frozen=True)
class _Contents:
    """What was read of an archive: SHA-256 of each file of data, and the bytes of each tag file."""

    campaign: str
    digests: Mapping[str, str]
    tags: Mapping[str, bytes]


def _read(tar: tarfile.TarFile, into: Path) -> _Contents:
    """Write the files of data to `into`. Raises UnfitError for what no archive holds."""
    digests: dict[str, str] = {}
    tags: dict[str, bytes] = {}
    places: set[tuple[str, str | None]] = set()
    spelled: dict[str, str] = {}
    for number, member in enumerate(tar):
        if number >= MOST_FILES:
            raise outside.UnfitError(f"more than {MOST_FILES:,} files")
        if member.isdir():
            continue
        name, content = _fitting(tar, member)
        if name["tag"]:
            known, key = name["tag"] in tags, name["tag"]
            tags[key] = content
        else:
            key = f"data/{name['campaign']}/{name['file']}"
            known = key in digests
            digests[key] = hashlib.sha256(content).hexdigest()
        if known:
            raise outside.UnfitError(f"{key} stands twice")
        # On many a disk they would be one file.
        twin = spelled.setdefault(key.lower(), key)
        if twin != key:
            raise outside.UnfitError(f"{twin} and {key} differ in case alone")
        places.add((name["root"], name["campaign"]))
        if name["file"]:
            folder = into / name["campaign"]
            folder.mkdir(exist_ok=True)
            (folder / name["file"]).write_bytes(content)
    roots = {root for root, _ in places}
    campaigns = {campaign for _, campaign in places if campaign is not None}
    if len(roots) != 1 or len(campaigns) != 1:
        raise outside.UnfitError("it does not hold exactly one campaign")
    return _Contents(campaigns.pop(), digests, tags)


def _fitting(
    tar: tarfile.TarFile, member: tarfile.TarInfo
) -> tuple[re.Match[str], bytes]:
    """The parts of a member's name and its bytes. Raises UnfitError for a link, a device or another name."""
    shown = outside.plain(member.name)[:200]
    if not member.isreg() or member.issparse():
        raise outside.UnfitError(f"{shown} is not an ordinary file")
    name = _NAME.fullmatch(member.name)
    if name is None:
        raise outside.UnfitError(f"{shown} has no place in it")
    file = tar.extractfile(member)
    assert file is not None  # an ordinary file
    return name, file.read()


def _problems(contents: _Contents) -> list[str]:
    """What a bag lacks of being complete and valid (RFC 8493, section 3), one line each."""
    missing = [tag for tag in TAG_FILES if tag not in contents.tags]
    if missing:
        return [f"{tag} is missing" for tag in missing]
    if contents.tags["bagit.txt"] != DECLARATION:
        return ["bagit.txt does not declare BagIt 1.0 in UTF-8"]
    tag_digests = {
        tag: hashlib.sha256(content).hexdigest()
        for tag, content in contents.tags.items()
        if tag != TAG_MANIFEST
    }
    return [
        *_differences(TAG_MANIFEST, contents.tags[TAG_MANIFEST], tag_digests),
        *_differences(MANIFEST, contents.tags[MANIFEST], contents.digests),
    ]


def _strays(folder: Path) -> list[str]:
    """Files that are no part of the campaign, though the manifest has them, one line each: an archive has the
    campaign's own file, its records, and what these name as their evidence."""
    found = {path.name for path in folder.iterdir()}
    if CAMPAIGN_FILE not in found:
        return [f"{CAMPAIGN_FILE} is missing"]
    own = {CAMPAIGN_FILE}
    for path in record_paths(folder):
        named = _named_by(path)
        if named is not None:
            own |= {path.name, *named}
    return [f"{name} is no part of a campaign" for name in sorted(found - own)]


def _named_by(path: Path) -> set[str] | None:
    """The evidence that a record names, of the kinds that an archive holds; None for what is no record. Whether the
    record is otherwise as it should be, the review says."""
    try:
        document = outside.json_document(outside.content(path))
        _ = document["schema_version"], document["run_id"]
        names = [str(item["path"]) for item in document.get("evidence", ())]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return {name for name in names if Path(name).suffix.lower() in EVIDENCE_KINDS}


def _differences(
    manifest: str, content: bytes, digests: Mapping[str, str]
) -> Iterator[str]:
    """Where a manifest and the files differ."""
    listed: dict[str, str] = {}
    text = content.decode(errors="replace").removesuffix("\n")
    for number, line in enumerate(text.split("\n"), 1):
        found = _LINE.fullmatch(line)
        if found is None or found["name"] in listed:
            yield f"{manifest}: line {number} names no file, or names one again"
            continue
        listed[found["name"]] = found["digest"]
    for name, digest in listed.items():
        if name not in digests:
            yield f"{outside.plain(name)[:200]} is listed in {manifest} and missing"
        elif digests[name] != digest:
            yield f"{name} is not what {manifest} says"
    for name in digests:
        if name not in listed:
            yield f"{name} is not listed in {manifest}"
