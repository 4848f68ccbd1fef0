"""A folder of results: its files, plain or compressed with gzip, and what lies beside each of them.

That is what the tool printed, notes on the run, telemetry, an answer. Notes lie in `meta.json` for everything in a
folder and below it, or in a file that a layout names; the nearest one counts. A log has the report's own name, or the
beginning of it where it is that of a sweep (`sweep.log`: `sweep-0.1.json`), and so has telemetry that no other report
may have (`07-telemetry.csv`: `07-chat.json`).
"""

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from sparkpub.collect.imports.facts import Facts, NotesLayout, facts_in
from sparkpub.collect.imports.given import Given, Left
from sparkpub.record import documents
from sparkpub.record.errors import ImportFormatError
from sparkpub.record.outside import MOST_BYTES, UnfitError, unpacked
from sparkpub.tools import forms, reading
from sparkpub.tools.forms import MARKS, ResultFile, begins
from sparkpub.tools.language import named_in
from sparkpub.tools.where import holds

LOG = ".log"
_TOLD = ".md"
"""People keep what a tool printed in it, with the command."""
_NOTES = "meta.json"
_TELEMETRY = "telemetry"
_LONGEST_ANSWER = 200
_EACH = 100
"""A line about the progress comes after so many files."""


@dataclass(frozen=True)
class Notes:
    """What people noted, by name, and the file that it stands in."""

    said: Mapping[str, Any]
    content: bytes
    suffix: str


@dataclass(frozen=True)
class Folder:
    """What is imported: a file, or a folder with everything below it. The names in a folder are looked up once."""

    path: Path
    given: Given
    _names: dict[Path, frozenset[str]] = field(default_factory=dict)

    def files(self) -> Iterator[ResultFile | Left]:
        """Every file, by name, or why it cannot be read. Hidden files and links are passed over. Raises
        FileNotFoundError where there is nothing."""
        self.path.stat()  # raises where nothing is
        is_folder = self.path.is_dir()
        root = self.path if is_folder else self.path.parent
        paths = sorted(_below(self.path)) if is_folder else [self.path]
        for count, file in enumerate(paths, 1):
            source = str(file.relative_to(root))
            try:
                yield ResultFile(file, source, unpacked(file, MOST_BYTES))
            except OSError as error:
                yield Left(source, f"cannot be read: {error.strerror or error}")
            except UnfitError as error:
                yield Left(source, str(error))
            if count % _EACH == 0:
                self.given.say(f"{count} of {len(paths)} files read")

    def names(self, folder: Path) -> frozenset[str]:
        """The names of the files in one folder, without links."""
        if folder not in self._names:
            there = (path for path in folder.iterdir() if path.is_file())
            self._names[folder] = frozenset(
                path.name for path in there if not path.is_symlink()
            )
        return self._names[folder]

    def reports(self, folder: Path) -> list[str]:
        """The names, without `.gz`, of the files in a folder that may be reports."""
        plain = (name.removesuffix(".gz") for name in self.names(folder))
        return [name for name in plain if name.endswith(forms.JSON) and name != _NOTES]

    def is_sidecar(self, file: ResultFile) -> bool:
        """Whether a file is one that a report beside it, or below its folder, may have: nothing has to be said of
        it."""
        reports = self.reports(file.path.parent)
        if file.suffix in (LOG, _TOLD):
            return any(begins(name, file.stem) for name in reports)
        if file.suffix == ".csv":
            is_named = any(begins(name, file.stem) for name in reports)
            return is_named or file.stem.endswith(_TELEMETRY)
        return is_notes(file)

    def read(self, folder: Path, names: Sequence[str]) -> bytes:
        """The first of several files that is there and can be read, plain or else compressed; empty for none."""
        there = self.names(folder)
        for name in (*names, *(f"{name}.gz" for name in names)):
            if name in there:
                with suppress(OSError, UnfitError):
                    return unpacked(folder / name)
        return b""

    def notes(self, file: ResultFile) -> Notes | None:
        """The notes on a file: those of its folder, else of the nearest one above it that is imported."""
        further = [name for layout in self.given.layouts for name in layout.notes]
        folder = file.path.parent
        for _ in Path(file.source).parts:
            for name in (_NOTES, *further):
                if content := self.read(folder, [name]):
                    return Notes(_said(content), content, Path(name).suffix)
            folder = folder.parent
        return None


@dataclass
class Beside:
    """The files beside one file. One that cannot be read counts as one that is not there."""

    file: ResultFile
    folder: Folder
    is_of_one_run: bool = True
    """Whether the file is of one run; log and telemetry beside one of several are of none of them alone."""

    @cached_property
    def noted(self) -> Notes | None:
        """The file of notes on it."""
        return self.folder.notes(self.file)

    @cached_property
    def notes(self) -> Mapping[str, Any]:
        """What people noted, by name."""
        if self.file.suffix in (".yaml", ".yml"):
            return _said(self.file.content)
        return self.noted.said if self.noted else {}

    @cached_property
    def layout(self) -> NotesLayout:
        """The first layout that the notes fit."""
        layouts = self.folder.given.layouts
        fitting = (layout for layout in layouts if holds(self.notes, layout.when))
        return next(fitting, NotesLayout())

    @property
    def is_named(self) -> bool:
        """Whether the command names the file, or results of the same run lie beside it."""
        if self.folder.path == self.file.path:
            return True
        same = (name for name in self._names if Path(name).stem == self.file.stem)
        return any(Path(name).suffix != _TOLD for name in same)

    @property
    def is_other(self) -> bool:
        """Whether the layout says that the file is no result."""
        names = self.layout.others
        return any(fnmatch.fnmatch(self.file.name, name) for name in names)

    @cached_property
    def facts(self) -> Facts:
        """What notes and answer say of the run."""
        facts = facts_in(self.notes, self.layout.run, self.layout.same)
        pattern = self.folder.given.about.path
        named = pattern and named_in(pattern, self.file.source)
        if named and named.get("variant"):
            facts = replace(facts, variant=named["variant"])
        name = self.layout.answer
        said = reading.text(b"" if name is None else self.read([name]))
        return replace(facts, answer=" ".join(said.split())[:_LONGEST_ANSWER] or None)

    @cached_property
    def log(self) -> bytes:
        """What the tool printed; empty where there is none that can be read."""
        if not self.is_of_one_run:
            return b""
        if own := self.read([self.file.stem + LOG]):
            return own
        sweeps = (self.read([begin + LOG]) for begin in _beginnings(self.file.stem))
        return _part(next(filter(None, sweeps), b""), self.file.name)

    @cached_property
    def log_of_call(self) -> bytes:
        """What the tool printed when it measured all runs of a file; empty where that is one, or nothing is there."""
        return b"" if self.is_of_one_run else self.read([self.file.stem + LOG])

    @cached_property
    def told(self) -> bytes:
        """What people wrote of the run in a file of the report's name."""
        return self.read([self.file.stem + _TOLD])

    @cached_property
    def telemetry(self) -> bytes:
        """Samples of the sensors; empty where there are none that can be read."""
        if not self.is_of_one_run or self.file.suffix == ".csv":
            return b""
        stem = self.file.stem
        for begin in (stem, *_beginnings(stem)):
            found = self.read([f"{begin}{mark}{_TELEMETRY}.csv" for mark in MARKS])
            if found and self._results(begin) == {stem}:
                return found
        return b""

    def read(self, names: Sequence[str]) -> bytes:
        """The first of several files in its folder."""
        return self.folder.read(self.file.path.parent, names)

    @property
    def _names(self) -> Iterator[str]:
        """The names of the files beside it, without `.gz`."""
        there = self.folder.names(self.file.path.parent)
        return (name.removesuffix(".gz") for name in there)

    def _results(self, begin: str) -> set[str]:
        """What the files are called that begin so and are no tables."""
        there = (name for name in self._names if not name.endswith(".csv"))
        return {Path(name).stem for name in there if begins(name, begin)}


def is_notes(file: ResultFile) -> bool:
    """Whether a file holds what people noted."""
    return file.name in (_NOTES, "about.yaml")


def _beginnings(stem: str) -> Iterator[str]:
    """The longest first: `11-rate-0.1` begins with `11-rate-0`, `11-rate` and `11`."""
    for number in range(len(stem) - 1, 0, -1):
        if stem[number] in MARKS:
            yield stem[:number]


def _part(log: bytes, report: str) -> bytes:
    """A report's part of the log of a sweep: the client prints its options first, the report's name among them."""
    name = f"result_filename='{report}'".encode()
    part: list[bytes] = []
    is_own = False
    for line in log.split(b"\n"):
        if line.startswith(b"Namespace("):
            is_own = name in line
        if is_own:
            part.append(line)
    return b"\n".join(part)


@lru_cache(maxsize=4)
def _said(content: bytes) -> Mapping[str, Any]:
    """The names and values of a file of notes; empty for anything else."""
    try:
        document, _ = documents.parse(reading.text(content), "", ImportFormatError)
    except ImportFormatError:
        return {}
    return document if isinstance(document, dict) else {}


def _below(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not path.is_symlink() and not hidden:
            yield path
