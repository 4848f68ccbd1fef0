"""A folder of results: its files, plain or compressed with gzip, and what lies beside each of them.

That is what the tool printed, notes on the run, telemetry, an answer. Notes lie in `meta.json` for everything in a
folder and below it, or in a file that a layout names; the nearest one counts. A log has the report's own name, or the
beginning of it where it is that of a sweep (`sweep.log`: `sweep-0.1.json`), and so has telemetry that no other report
may have (`07-telemetry.csv`: `07-chat.json`).
"""

import fnmatch
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from sparkpub.collect.imports.facts import Facts, NotesLayout, facts_in, said_in
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
class Folder:
    """What is imported: a file, or a folder with everything below it. The files in a folder are looked up once."""

    path: Path
    given: Given
    _there: dict[Path, Mapping[str, Path]] = field(default_factory=dict)

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

    def there(self, folder: Path) -> Mapping[str, Path]:
        """The files in one folder, without links, by their names without `.gz`; a plain one before a compressed."""
        if folder not in self._there:
            paths = (path for path in folder.iterdir() if path.is_file())
            self._there[folder] = {
                path.name.removesuffix(".gz"): path
                for path in sorted(paths, reverse=True)
                if not path.is_symlink()
            }
        return self._there[folder]

    def reports(self, folder: Path) -> list[str]:
        """The names of the files in a folder that may be reports."""
        there = self.there(folder)
        return [name for name in there if name.endswith(forms.JSON) and name != _NOTES]

    def is_sidecar(self, file: ResultFile) -> bool:
        """Whether a file is one that a report beside it, or below its folder, may have: nothing has to be said of
        it."""
        if file.suffix not in (LOG, _TOLD, ".csv"):
            return is_notes(file)
        is_telemetry = file.suffix == ".csv" and file.stem.endswith(_TELEMETRY)
        reports = self.reports(file.path.parent)
        return is_telemetry or any(begins(name, file.stem) for name in reports)

    def read(self, folder: Path, *names: str) -> ResultFile | None:
        """The first of several files that is there, can be read and holds anything."""
        there = self.there(folder)
        for path in (there[name] for name in names if name in there):
            with suppress(OSError, UnfitError):
                if content := unpacked(path):
                    return ResultFile(path, path.name, content)
        return None


@dataclass
class Beside:
    """The files beside one file. One that cannot be read counts as one that is not there."""

    file: ResultFile
    folder: Folder
    is_of_one_run: bool = True
    """Whether the file is of one run; log and telemetry beside one of several are of none of them alone."""

    @cached_property
    def noted(self) -> ResultFile | None:
        """The notes on it: those of its folder, else of the nearest one above it that is imported."""
        names = [name for layout in self.folder.given.layouts for name in layout.notes]
        above = islice(self.file.path.parents, len(Path(self.file.source).parts))
        found = (self.folder.read(folder, _NOTES, *names) for folder in above)
        return next(filter(None, found), None)

    @cached_property
    def notes(self) -> Mapping[str, Any]:
        """What people noted, by name."""
        is_own = self.file.suffix in (".yaml", ".yml")
        file = self.file if is_own else self.noted
        return {} if file is None else _said(file.content)

    @cached_property
    def layout(self) -> NotesLayout:
        """The first layout that the notes fit."""
        layouts = self.folder.given.layouts
        fitting = (layout for layout in layouts if holds(self.notes, layout.when))
        return next(fitting, NotesLayout())

    @property
    def is_named(self) -> bool:
        """Whether the command names the file, or results of the same run lie beside it."""
        same = (Path(name) for name in self._there if Path(name).stem == self.file.stem)
        is_given = self.folder.path == self.file.path
        return is_given or any(path.suffix != _TOLD for path in same)

    @property
    def is_other(self) -> bool:
        """Whether the layout says that the file is no result."""
        names = self.layout.others
        return any(fnmatch.fnmatch(self.file.name, name) for name in names)

    @cached_property
    def facts(self) -> Facts:
        """What the notes say of the run, and the names of its files."""
        said = said_in(self.notes, self.layout.run, self.layout.same)
        pattern = self.folder.given.about.path
        named = named_in(pattern, self.file.source) if pattern else None
        said["variant"] = (named or {}).get("variant") or said["variant"]
        return facts_in(said)

    @cached_property
    def answer(self) -> str:
        """What the model answered before it was measured; empty where that is not known."""
        name = self.layout.answer
        said = "" if name is None else reading.text(self.read(name))
        return " ".join(said.split())[:_LONGEST_ANSWER]

    @cached_property
    def log(self) -> bytes:
        """What the tool printed; empty where there is none that can be read."""
        if not self.is_of_one_run:
            return b""
        sweeps = [begin + LOG for begin in _beginnings(self.file.stem)]
        return self._printed or _part(self.read(*sweeps), self.file.name)

    @property
    def log_of_call(self) -> bytes:
        """What the tool printed when it measured all runs of a file; empty where that is one, or nothing is there."""
        return b"" if self.is_of_one_run else self._printed

    @cached_property
    def _printed(self) -> bytes:
        return self.read(self.file.stem + LOG)

    @cached_property
    def told(self) -> bytes:
        """What people wrote of the run in a file of the report's name."""
        return self.read(self.file.stem + _TOLD)

    @cached_property
    def telemetry(self) -> bytes:
        """Samples of the sensors; empty where there are none that can be read."""
        stem = self.file.stem
        begins_with = [stem, *_beginnings(stem)]
        if not self.is_of_one_run or self.file.suffix == ".csv":
            begins_with = []
        for begin in begins_with:
            found = self.read(*(f"{begin}{mark}{_TELEMETRY}.csv" for mark in MARKS))
            if found and self._results(begin) == {stem}:
                return found
        return b""

    def read(self, *names: str) -> bytes:
        """The first of several files in its folder; empty where none is there."""
        found = self.folder.read(self.file.path.parent, *names)
        return found.content if found else b""

    @property
    def _there(self) -> Mapping[str, Path]:
        return self.folder.there(self.file.path.parent)

    def _results(self, begin: str) -> set[str]:
        """What the files are called that begin so and are no tables."""
        there = (name for name in self._there if not name.endswith(".csv"))
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
