"""What lies beside a report: what the tool printed, notes on the run (JSON or YAML), and telemetry (CSV).

Notes lie in a file of the report's own name (`a.json`: `a.meta.json`, `a.metadata.yaml`), or in one for everything in
a folder and below it (`metadata.json`); the nearest one counts. Telemetry lies in a file of the report's own name
(`a.telemetry.csv`, `a.gpu.csv`, `a.csv`), or, where a folder holds one report, in any CSV of that folder.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from sparkpub.collect.importers.files import ResultFile
from sparkpub.plan.workloads import reading
from sparkpub.record import documents
from sparkpub.record.errors import ImportFormatError
from sparkpub.record.outside import UnfitError, unpacked

LOGS = (".log", ".stdout", ".txt")
_NOTES = ("meta", "metadata")
_NOTES_SUFFIXES = (".json", ".yaml", ".yml")
_TELEMETRY = ("telemetry", "gpu", "nvidia-smi")
_REPORTS = (".json", ".jsonl")


@dataclass(frozen=True)
class Sidecars:
    """The files beside one report. A file that cannot be read counts as one that is not there."""

    report: ResultFile | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What people noted, by name; the nearest file counts where several say the same."""
    notes_content: bytes = b""
    """The nearest file of notes as it is."""
    notes_suffix: str = ".json"

    @classmethod
    def of(cls, report: ResultFile) -> "Sidecars":
        """What lies beside a report."""
        notes: dict[str, Any] = {}
        content, suffix = b"", ".json"
        for path in _notes_paths(report):
            found = _read(path)
            if found is not None:
                content, suffix = found, path.suffix
                notes |= _noted(path, found)
        return cls(report, notes, content, suffix)

    @cached_property
    def log(self) -> bytes:
        """What the tool printed; empty where there is none that can be read."""
        if self.report is None:
            return b""
        return _first(self.report, [self.report.stem + suffix for suffix in LOGS])

    @cached_property
    def telemetry(self) -> bytes:
        """Samples of the sensors; empty where there are none that can be read."""
        if self.report is None:
            return b""
        stem = self.report.stem
        own = [f"{stem}{mark}{word}.csv" for word in _TELEMETRY for mark in ".-_"]
        found = _first(self.report, [*own, f"{stem}.csv"])
        return found or _only_csv(self.report)


def is_sidecar(file: ResultFile) -> bool:
    """Whether a file is one that a report beside it, or below its folder, may have: nothing has to be said of it."""
    if file.suffix in LOGS:
        names = [f"{file.stem}{suffix}" for suffix in (".json", ".json.gz")]
        return any(file.path.with_name(name).is_file() for name in names)
    if file.suffix == ".csv":
        return any(_reports(file.path.parent))
    last_word = file.stem.replace("_", ".").rpartition(".")[2]
    return file.suffix in _NOTES_SUFFIXES and last_word in _NOTES


def _notes_paths(report: ResultFile) -> Iterator[Path]:
    """Where notes may lie, the farthest first: from the folder that is imported down to the report's own."""
    folders = [report.path.parent]
    for _ in Path(report.source).parts[:-1]:
        folders.append(folders[-1].parent)
    names = [word + suffix for word in _NOTES for suffix in _NOTES_SUFFIXES]
    for folder in reversed(folders):
        yield from (folder / name for name in names)
    for name in names:
        yield report.path.with_name(f"{report.stem}.{name}")
        yield report.path.with_name(f"{report.stem}_{name}")


def _noted(path: Path, content: bytes) -> dict[str, Any]:
    """The names and values of a file of notes; empty for anything else."""
    try:
        document, _ = documents.parse(
            reading.text(content), str(path), ImportFormatError
        )
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
