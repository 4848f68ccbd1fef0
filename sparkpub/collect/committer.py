"""One commit per run, made when the run is over, made up for when it fails, pushed where asked."""

from collections.abc import Sequence
from pathlib import Path

from sparkpub import store
from sparkpub.collect.git import GitError, Repository
from sparkpub.collect.progress import Progress
from sparkpub.record import Record
from sparkpub.store import Stored


class Committer:
    """One commit per run, of exactly its own files; what fails is tried again later and never stops measuring."""

    def __init__(self, folder: Path, commit: bool, push: bool, progress: Progress) -> None:
        self._folder, self._push, self._progress = folder, push, progress
        self._waiting: list[tuple[list[Path], str]] = []
        self._pushed = True
        self._repository: Repository | None = None
        if commit:
            try:
                self._repository = Repository.of(folder)
            except GitError as error:
                progress.line(f"not committing: {error}; records are written all the same")

    def catch_up(self) -> None:
        """Commit runs that an earlier collector wrote and could not commit."""
        if self._repository is None:
            return
        try:
            loose = set(self._repository.uncommitted(self._folder))
        except GitError as error:
            self._progress.line(f"git: {error}")
            return
        for path in store.record_paths(self._folder):
            if path.resolve() in loose:
                stored = store.read_record(path)
                self.add_run(stored)

    def add(self, paths: Sequence[Path], message: str) -> None:
        """Commit these files, after whatever is still waiting."""
        if self._repository is None or not paths:
            return
        self._waiting.append((list(paths), message))
        while self._waiting:
            try:
                self._repository.commit(*self._waiting[0])
            except GitError as error:
                self._progress.line(f"not committed yet, {len(self._waiting)} waiting: {error}")
                return
            self._waiting.pop(0)
            self._pushed = False
        self._publish()

    def add_run(self, stored: Stored) -> None:
        """Commit a run: its record and its evidence."""
        paths = [stored.path, *(stored.evidence_path(item) for item in stored.record.evidence)]
        self.add(paths, _message(stored.record))

    def _publish(self) -> None:
        if not self._push or self._pushed or self._repository is None:
            return
        try:
            self._repository.push()
        except GitError as error:
            self._progress.line(f"not pushed yet: {error}")
        else:
            self._pushed = True

    def finish(self) -> None:
        """A last try, and what is left undone."""
        if self._waiting:
            paths, message = self._waiting.pop()
            self.add(paths, message)
        self._publish()


def _message(record: Record) -> str:
    again = f", repeat of {record.repeat_of}" if record.repeat_of else ""
    return f"Measure {'/'.join(record.cell)}, iteration {record.iteration}{again}: {record.status}"
