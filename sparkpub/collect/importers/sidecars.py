"""What lies beside a report: what the tool printed, notes on the run (JSON or YAML), telemetry (CSV), an answer.

Notes lie in a file of the report's own name (`a.json`: `a.meta.json`, `a.metadata.yaml`), or in one for everything in
a folder and below it (`metadata.json`); the nearest one counts. A log has the report's own name, or the beginning of it
where it is that of a sweep (`sweep.log`: `sweep-0.1.json`). Telemetry lies in a file of the report's own name
(`a.telemetry.csv`, `a.gpu.csv`, `a.csv`), of the beginning of it (`07-telemetry.csv`: `07-chat.json`), or, where a
folder holds one report, in any CSV of that folder.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from sparkpub.collect.importers.layout import Facts, NotesLayout, facts_in
from sparkpub.record import documents
from sparkpub.record.errors import ImportFormatError
from sparkpub.record.outside import UnfitError, unpacked
from sparkpub.tools import reading
from sparkpub.tools.forms import MARKS, ResultFile, begins

LOGS = (".log", ".stdout", ".txt")
_TOLD = (".md",)
"""People keep what a tool printed in it, with the command."""
_NOTES = ("meta", "metadata")
_NOTES_SUFFIXES = (".json", ".yaml", ".yml")
_TELEMETRY = ("telemetry", "gpu", "nvidia-smi")
_REPORTS = (".json", ".jsonl")
_LONGEST_ANSWER = 200


@dataclass(frozen=True)
class Sidecars:
    """The files beside one report. A file that cannot be read counts as one that is not there."""

    report: ResultFile | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What people noted, by name; the nearest file counts where several say the same."""
    notes_content: bytes = b""
    """The nearest file of notes as it is."""
    notes_suffix: str = ".json"
    layouts: tuple[NotesLayout, ...] = ()
    is_of_one_run: bool = True
    """Whether the report is of one run; log and telemetry beside one of several are of none of them alone."""

    @classmethod
    def of(
        cls, report: ResultFile, layouts: tuple[NotesLayout, ...], *, alone: bool = True
    ) -> "Sidecars":
        """What lies beside a report."""
        notes: dict[str, Any] = {}
        content, suffix = b"", ".json"
        further = [name for layout in layouts for name in layout.notes]
        for path in _notes_paths(report, further):
            found = _read(path)
            if found is not None:
                content, suffix = found, path.suffix
                notes |= _noted(found)
        if report.suffix in (".yaml", ".yml"):
            notes |= _noted(report.content)
        return cls(report, notes, content, suffix, layouts, alone)

    @cached_property
    def layout(self) -> NotesLayout:
        """The first layout that the notes fit."""
        fitting = (layout for layout in self.layouts if layout.fits(self.notes))
        return next(fitting, NotesLayout())

    @cached_property
    def facts(self) -> Facts:
        """What notes and answer say of the run."""
        return replace(
            facts_in(self.notes, self.layout.run, self.layout.same), answer=self._answer
        )

    @cached_property
    def log(self) -> bytes:
        """What the tool printed; empty where there is none that can be read."""
        if self.report is None or not self.is_of_one_run:
            return b""
        return self._namesake or _part(self._log_of_sweep, self.report.name)

    @cached_property
    def log_of_call(self) -> bytes:
        """What the tool printed when it measured all runs of a report; empty where that is one, or nothing is there."""
        return b"" if self.is_of_one_run else self._namesake

    @cached_property
    def _namesake(self) -> bytes:
        """The log of the report's name."""
        if self.report is None:
            return b""
        return _first(self.report, [self.report.stem + suffix for suffix in LOGS])

    @cached_property
    def told(self) -> bytes:
        """What people wrote of the run in a file of the report's name."""
        if self.report is None:
            return b""
        return _first(self.report, [self.report.stem + suffix for suffix in _TOLD])

    @cached_property
    def telemetry(self) -> bytes:
        """Samples of the sensors; empty where there are none that can be read."""
        if self.report is None or not self.is_of_one_run:
            return b""
        stem = self.report.stem
        own = [f"{stem}{mark}{word}.csv" for word in _TELEMETRY for mark in MARKS]
        found = _first(self.report, [*own, f"{stem}.csv"])
        return found or self._numbered_telemetry or _only_csv(self.report)

    @property
    def _log_of_sweep(self) -> bytes:
        """The log whose name begins the report's."""
        assert self.report is not None
        for begin in reversed(list(_beginnings(self.report.stem))):
            found = _first(self.report, [begin + suffix for suffix in LOGS])
            if found:
                return found
        return b""

    @property
    def _numbered_telemetry(self) -> bytes:
        """Telemetry whose name begins like the report's, where no other results do."""
        assert self.report is not None
        for begin in reversed(list(_beginnings(self.report.stem))):
            names = [
                f"{begin}{mark}{word}.csv" for word in _TELEMETRY for mark in MARKS
            ]
            found = _first(self.report, names)
            if found and _stems(self.report.path.parent, begin) == {self.report.stem}:
                return found
        return b""

    @property
    def _answer(self) -> str | None:
        """What the model answered, in short."""
        name = self.layout.answer
        if self.report is None or name is None or "/" in name:
            return None
        for file in (name, f"{name}.gz"):
            found = _read(self.report.path.with_name(file))
            if found is not None:
                return " ".join(reading.text(found).split())[:_LONGEST_ANSWER]
        return None


def is_sidecar(file: ResultFile) -> bool:
    """Whether a file is one that a report beside it, or below its folder, may have: nothing has to be said of it."""
    if file.suffix in (*LOGS, *_TOLD):
        names = [report.name for report in _reports(file.path.parent)]
        return any(begins(name, file.stem) for name in names)
    if file.suffix == ".csv":
        words = file.stem.replace("_", "-").replace(".", "-").split("-")
        is_telemetry = words[-1] in _TELEMETRY
        return is_telemetry or any(_reports(file.path.parent))
    return is_notes(file)


def is_notes(file: ResultFile) -> bool:
    """Whether a file holds what people noted."""
    last_word = file.stem.replace("_", ".").rpartition(".")[2]
    return file.suffix in _NOTES_SUFFIXES and last_word in (*_NOTES, "about")


def _beginnings(stem: str) -> Iterator[str]:
    """`11-rate-sweep-0.1` begins with `11`, `11-rate`, `11-rate-sweep` and `11-rate-sweep-0`."""
    for number, letter in enumerate(stem):
        if letter in MARKS and number:
            yield stem[:number]


def _stems(folder: Path, begin: str) -> set[str]:
    """Names, without suffixes, of the results in a folder that begin in that way."""
    found = set()
    for path in folder.iterdir():
        name = path.name.removesuffix(".gz")
        if begins(name, begin) and not name.endswith(".csv"):
            found.add(Path(name).stem)
    return found


def _part(log: bytes, report: str) -> bytes:
    """A report's part of the log of a sweep: the client prints its options first, the report's name among them."""
    lines = log.split(b"\n")
    name = f"result_filename='{report}'".encode()
    part: list[bytes] = []
    is_own = False
    for line in lines:
        if line.startswith(b"Namespace("):
            is_own = name in line
        if is_own:
            part.append(line)
    return b"\n".join(part)


def _notes_paths(report: ResultFile, further: list[str]) -> Iterator[Path]:
    """Where notes may lie, the farthest first: from the folder that is imported down to the report's own."""
    folders = [report.path.parent]
    for _ in Path(report.source).parts[:-1]:
        folders.append(folders[-1].parent)
    names = [word + suffix for word in _NOTES for suffix in _NOTES_SUFFIXES]
    for folder in reversed(folders):
        yield from (folder / name for name in (*further, *names))
    for name in names:
        yield report.path.with_name(f"{report.stem}.{name}")
        yield report.path.with_name(f"{report.stem}_{name}")


@lru_cache(maxsize=64)
def _noted(content: bytes) -> Mapping[str, Any]:
    """The names and values of a file of notes, which many results share; empty for anything else."""
    try:
        document, _ = documents.parse(reading.text(content), "", ImportFormatError)
    except ImportFormatError:
        return {}
    return document if isinstance(document, dict) else {}


def _first(report: ResultFile, names: list[str]) -> bytes:
    for name in (*names, *(f"{name}.gz" for name in names)):
        found = _read(report.path.with_name(name))
        if found is not None:
            return found
    return b""


def _only_csv(report: ResultFile) -> bytes:
    """The only CSV of a folder that holds no other report."""
    folder = report.path.parent
    tables = [*folder.glob("*.csv"), *folder.glob("*.csv.gz")]
    if len(tables) != 1 or len(list(_reports(folder))) != 1:
        return b""
    return _read(tables[0]) or b""


def _reports(folder: Path) -> Iterator[Path]:
    """The files of a folder that may be reports."""
    for path in sorted(folder.iterdir()):
        name = path.name.removesuffix(".gz")
        last_word = Path(name).stem.replace("_", ".").rpartition(".")[2]
        if name.endswith(_REPORTS) and last_word not in _NOTES:
            yield path


def _read(path: Path) -> bytes | None:
    """The content of a file; None where it is not there, cannot be read, or is too large."""
    if path.is_symlink() or not path.is_file():
        return None
    with suppress(OSError, UnfitError):
        return unpacked(path)
    return None
