"""The data folder: addresses, reading, and writing that never leaves half a file.

    data/comprehensive/<campaign>/campaign.json
    data/comprehensive/<campaign>/<environment>_<model>_<workload>_iter<NN>_<timestamp>.json  + .log, .telemetry.csv

The path is an address; identity is in the record.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, TypeVar

from pydantic import ValidationError

from sparkpub.record import outside
from sparkpub.record.campaign import Campaign
from sparkpub.record.errors import RecordError, UsageError, field_problems
from sparkpub.record.record import SCHEMA_VERSION, Evidence, Record

CAMPAIGN_FILE = "campaign.json"
EVIDENCE_CAP = 64 * 2**20
"""Bytes of one file of evidence: one over 100 MB is refused by the usual hosts of git and blocks every later push."""
COLLECTORS_FOLDERS = (".run",)
"""Where a collector keeps runs of a campaign that are not over; git is told to ignore them."""
REMEDY = "correct the field or restore the file from git"
"""What to do about a field that is not as it has to be."""


@dataclass(frozen=True, eq=False)
class Stored:
    """A run: its record, and where it lies."""

    record: Record
    path: Path
    is_gathered: bool = False
    """Whether it is another owner's: then the site shows its figures, and neither a page nor its evidence."""

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.record.run_id

    @cached_property
    def sha256(self) -> str:
        """Of the record's file, as 64 hexadecimal digits."""
        return file_sha256(self.path)

    def evidence_path(self, item: Evidence) -> Path:
        """Where a piece of evidence lies."""
        return self.path.parent / item.path

    @property
    def files(self) -> list[Path]:
        """The record's file, and then its evidence."""
        return [self.path, *map(self.evidence_path, self.record.evidence)]


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, as 64 hexadecimal digits."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def canonical_json(document: Any) -> str:
    """The one spelling of a JSON document: keys sorted, no spaces. Used for fingerprints."""
    return json.dumps(
        document,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )


def to_json(model: Record | Campaign) -> str:
    """The text of a record or campaign on disk: indented, defaults left out, one newline at the end.

    Characters that a terminal would obey are replaced: a record that has them is not read.
    """
    document = {"schema_version": model.schema_version} | outside.without_controls(
        model.model_dump(mode="json", exclude_defaults=True)
    )
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of the one at `path` once it is written: a reader sees the whole of either."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as handle:
            yield handle
        temporary.replace(path)
    except OSError as error:
        if str(error.filename) == str(temporary):
            error.filename = str(path)  # the file that somebody asked for
        raise
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_atomic(path: Path, content: str | bytes, *, durable: bool = True) -> None:
    """Write so that a reader sees the whole new file or none of it, even after a power cut.

    Without `durable` a power cut may leave an empty file: enough for a cache, and without the wait for the disk.
    """
    with replacing(path) as handle:
        handle.write(content.encode() if isinstance(content, str) else content)
        if durable:
            handle.flush()
            os.fsync(handle.fileno())
    if durable:  # the rename too
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file. Raises RecordError naming the file, and line and column where it is not JSON."""
    return _read_json(path)[0]


def _read_json(path: Path, data: bytes | None = None) -> tuple[dict[str, Any], bytes]:
    """A JSON object and the text that it was read from; with `data` what the file is about to hold."""
    where = str(path)
    remedy = "restore it from git"
    try:
        data = outside.content(path) if data is None else data
        document = outside.json_document(data)
        if isinstance(document, dict):
            return document, data
        what = "not a JSON object"
    except OSError as error:
        what, remedy = f"cannot be read: {error.strerror}", "check the file's rights"
    except UnicodeDecodeError as error:
        what = f"not UTF-8 at byte {error.start}"
    except json.JSONDecodeError as error:
        what = f"not JSON: {error.msg}"
        remedy = "restore it from git, or remove it and collect again"
        where += f":{error.lineno}:{error.colno}"
    except outside.UnfitError as error:
        what = str(error)
    raise RecordError(what, where=where, remedy=remedy)


def read_record(path: Path) -> Stored:
    """One record. Raises RecordError naming file and field."""
    document, data = _read_json(path)
    version = document.get("schema_version")
    if version != SCHEMA_VERSION:
        what = f"schema_version: {version!r} is not known here (newest is {SCHEMA_VERSION})"
        remedy = "update sparkpub, or restore the file"
        raise RecordError(what, where=str(path), remedy=remedy)
    record = _validated(Record, data, path)
    _refuse_stray(record.campaign, path, "move the file to the folder of its campaign")
    return Stored(record, path)


def refuse_unreadable(record: Record, path: Path) -> None:
    """Raise RecordError for a record that nobody could read from its file."""
    _validated(Record, _read_json(path, to_json(record).encode())[1], path)


def read_campaign(folder: Path) -> Campaign:
    """A campaign's campaign.json. Raises RecordError naming file and field."""
    path = folder / CAMPAIGN_FILE
    campaign = _validated(Campaign, _read_json(path)[1], path)
    _refuse_stray(campaign.campaign, path, "rename the folder or the campaign")
    return campaign


def _refuse_stray(campaign: str, path: Path, remedy: str) -> None:
    """Raise RecordError for a file of another campaign than its folder's."""
    if campaign != path.parent.name:
        what = f"campaign: {campaign!r} lies in folder {path.parent.name!r}"
        raise RecordError(what, where=str(path), remedy=remedy)


T = TypeVar("T", Record, Campaign)


def _validated(model: type[T], data: bytes, path: Path) -> T:
    """The model of a file's JSON. Raises RecordError with every field at fault."""
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        first, *others = field_problems(error)
    lines = [f"{text}, {path}; {REMEDY}" for text in others]
    raise RecordError(first, where=str(path), remedy=REMEDY, others=lines)


def campaign_folders(data: Path) -> list[Path]:
    """The folders of a data folder that hold a campaign, by name. Links are not followed: they may lead anywhere."""
    if not data.is_dir():
        raise UsageError(
            "no such data folder",
            where=str(data),
            remedy="give the folder that holds the campaigns, or change to your repository",
        )
    return sorted(
        folder
        for folder in data.iterdir()
        if folder.is_dir()
        and not folder.is_symlink()
        and _is_file(folder / CAMPAIGN_FILE)
    )


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def everything(folder: Path) -> Iterator["os.DirEntry[str]"]:
    """What lies below a folder, by name, but for what is in the collector's own folders; nothing where there is no
    folder. Links are not followed."""
    if not folder.is_dir():
        return
    with os.scandir(folder) as listed:
        entries = sorted(listed, key=lambda entry: entry.name)
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        if is_folder and _is_collectors(entry):
            continue
        yield entry
        if is_folder:
            yield from everything(Path(entry.path))


def _is_collectors(entry: "os.DirEntry[str]") -> bool:
    ignored = Path(entry.path, ".gitignore")
    return entry.name in COLLECTORS_FOLDERS and _is_file(ignored)


EVIDENCE_SUFFIXES = (
    ".report.json",
    ".requests.json",
    ".iterations.json",
    ".original.json",
    ".output.json",
)


def record_paths(folder: Path) -> Iterator[Path]:
    """Paths of a campaign's records, by name. Evidence in JSON carries a second suffix and is not a record, and a link
    is none."""
    for path in sorted(folder.glob("*.json")):
        if (
            path.name != CAMPAIGN_FILE
            and not path.is_symlink()
            and not path.name.startswith(".")
            and not path.name.endswith(EVIDENCE_SUFFIXES)
        ):
            yield path


def read_folder(folder: Path) -> list[Stored]:
    """All records of one campaign folder, by name. Raises RecordError at the first damaged one."""
    return [read_record(path) for path in record_paths(folder)]
