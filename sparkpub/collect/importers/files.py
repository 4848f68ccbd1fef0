"""The files that an import reads: a file, or a folder with everything below it, plain or compressed with gzip."""

from collections.abc import Iterator
from pathlib import Path

from sparkpub.collect.importers.base import Given, Left
from sparkpub.record.outside import MOST_BYTES, UnfitError, unpacked
from sparkpub.tools.forms import ResultFile

_EACH = 100
"""A line about the progress comes after so many files."""


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
