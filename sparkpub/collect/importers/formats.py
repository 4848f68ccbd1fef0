"""Which format each file of a folder has: the readers are offered every file, and the first that takes it has it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sparkpub.collect.importers.base import (
    Draft,
    Given,
    Left,
)
from sparkpub.collect.importers.files import result_files
from sparkpub.collect.importers.sidecars import Sidecars, is_sidecar
from sparkpub.tools.forms import FileError, ResultFile

NO_RESULT = "not a result of"
_ALWAYS_RESULTS = (".json", ".jsonl")
"""Suffixes of files that ought to be readable, whatever they are."""


class FileReader(ABC):
    """Reads the results of one tool."""

    tool: str

    def __init__(self, given: Given) -> None:
        self._given = given
        self._found: list[Draft | Left] = []

    @abstractmethod
    def takes(self, file: ResultFile) -> bool:
        """Whether a file holds results of the tool, which are then kept. Raises FileError for one that is damaged."""

    def found(self) -> Iterator[Draft | Left]:
        """What the files that were taken hold."""
        yield from self._found

    def passes_over(self, file: ResultFile) -> bool:  # noqa: ARG002 - where others are to look
        """Whether nothing has to be said of a file that is not taken."""
        return False


MakeReader = Callable[[Given], FileReader]


def read_files(
    path: Path, given: Given, make: Sequence[MakeReader]
) -> Iterator[Draft | Left]:
    """The runs of a file or folder, of as many formats as there are readers."""
    readers = [reader(given) for reader in make]
    others: list[Draft | Left] = []
    for file in result_files(path, given):
        if isinstance(file, Left):
            others.append(file)
            continue
        if Sidecars.of(file, given.layouts).layout.is_other(file.name):
            continue
        left = _offered(file, readers)
        if left is not None:
            others.append(left)
    found = [*others]
    for reader in readers:
        found += reader.found()
    yield from sorted(found, key=lambda item: item.source)


def _offered(file: ResultFile, readers: Sequence[FileReader]) -> Left | None:
    """Offer a file to the readers: why none takes it, if something has to be said."""
    problem = ""
    for reader in readers:
        try:
            if reader.takes(file):
                return None
        except FileError as error:
            problem = problem or str(error)
    only = readers[0] if len(readers) == 1 else None
    if problem and (only is not None or file.suffix in _ALWAYS_RESULTS):
        return Left(file.source, problem)
    passed_over = is_sidecar(file) if only is None else only.passes_over(file)
    if passed_over:
        return None
    name = "a known tool" if only is None else only.tool
    return Left(file.source, f"{NO_RESULT} {name}", refused=False)
