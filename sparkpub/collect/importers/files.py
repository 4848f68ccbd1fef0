"""The files that an import reads: a file, or a folder with everything below it, plain or compressed with gzip."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sparkpub.collect.importers.base import (
    Given,
    Left,
)
from sparkpub.record.outside import MOST_BYTES, UnfitError, unpacked
from sparkpub.record.record import Moment
from sparkpub.tools import reading

_EACH = 100
"""A line about the progress comes after so many files."""


class FileError(Exception):
    """A file of the right kind that cannot be used; the text says why."""


@dataclass(frozen=True)
class ResultFile:
    """A file as read. `source` is its path within the folder that was given, for lines to people."""

    path: Path
    source: str
    content: bytes

    @property
    def name(self) -> str:
        """Its name without `.gz`."""
        return self.path.name.removesuffix(".gz")

    @property
    def suffix(self) -> str:
        """Its suffix without `.gz`: `.json`."""
        return Path(self.name).suffix.lower()

    @property
    def stem(self) -> str:
        """Its name without any suffix."""
        return Path(self.name).stem

    @property
    def modified(self) -> Moment:
        """When it was last modified, for results that hold no date."""
        return Moment.at(datetime.fromtimestamp(self.path.stat().st_mtime, UTC))


def result_files(path: Path, given: Given) -> Iterator[ResultFile | Left]:
    """Every file at or below `path`, by name, or why it cannot be read. Hidden files and links are passed over. Raises
    FileNotFoundError where there is nothing."""
    path.stat()  # raises where nothing is
    root = path if path.is_dir() else path.parent
    paths = sorted(_below(path)) if path.is_dir() else [path]
    for count, file in enumerate(paths, 1):
        source = str(file.relative_to(root))
        try:
            yield ResultFile(file, source, unpacked(file, MOST_BYTES))
        except OSError as error:
            yield Left(source, f"cannot be read: {error.strerror or error}")
        except UnfitError as error:
            yield Left(source, str(error))
        if count % _EACH == 0:
            given.say(f"{count} of {len(paths)} files read")


def _below(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not path.is_symlink() and not hidden:
            yield path


def documents(file: ResultFile) -> list[dict[str, Any]]:
    """The JSON objects of a file: one, those of an array, or one on each line; other values are passed over. Raises
    FileError where it is none of these, or was cut short."""
    try:
        document = reading.strict_json(file.content)
        listed = document if isinstance(document, list) else [document]
    except ValueError as problem:
        listed = _of_lines(file.content, problem)
    return reading.objects(listed)


def _of_lines(content: bytes, why_no_document: ValueError) -> list[Any]:
    """The JSON values of lines. Raises FileError where a line has none, with the bound that something is out of."""
    values: list[Any] = []
    problems: list[ValueError] = []
    for line in reading.text(content).splitlines():
        if not line.strip():
            continue
        try:
            values.append(reading.strict_json(line.encode()))
        except ValueError as problem:
            problems.append(problem)
    if values and not problems:
        return values
    unfit = [
        str(problem)
        for problem in (why_no_document, *problems)
        if isinstance(problem, UnfitError)
    ]
    raise FileError(unfit[0] if unfit else "not JSON, or cut short")
