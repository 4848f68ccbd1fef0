"""The current run, on disk before it starts, so that a run which never finished still becomes a record.

`<campaign>/.run/` holds `journal.json`, a complete record of status `interrupted`, the log and telemetry as they
grow, and `work/`, the command's folder. A run is finished by writing its record and removing the folder. What a
killed collector leaves is therefore either a finished run, whose folder is dropped, or a draft that says what was
started when; the draft then becomes the record.
"""

import os
import re
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkpub.collect import invoker, workdir
from sparkpub.collect.public import published
from sparkpub.collect.workdir import WORK
from sparkpub.record import outside, patterns
from sparkpub.record.errors import CollectError, RecordError
from sparkpub.record.record import Evidence, Observed, Record
from sparkpub.record.redaction import Redactor
from sparkpub.record.secrets import unfinished
from sparkpub.record.store import (
    EVIDENCE_CAP,
    Stored,
    file_sha256,
    readable,
    to_json,
    write_atomic,
)

OUTPUT_ROLES = ("report", "requests", "iterations", "output")
FOLDER, DRAFT = ".run", "journal.json"
OUTPUT_CAP = EVIDENCE_CAP - 2**20
"""Bytes read of a file that a command wrote; redaction may lengthen it a little."""
_TAIL = EVIDENCE_CAP // 4
_LINE = 1 << 16
_TRIES = 8
_LOOK_BACK = 4096
_BLOCKS = (
    (b"-----BEGIN ", b"-----END "),
    (b"PuTTY-User-Key-File-", b"Private-MAC:"),
)
"""How secrets of several lines begin and end."""
_MARGIN = 4096
"""Bytes read beside a cut, to see what a word at its edge belongs to."""


KILLED = "the collector was killed while the run was on"
"""Why a draft is interrupted where nobody could say more."""


def begin(folder: Path, draft: Record) -> Path:
    """Note a run that is about to start; returns its own folder. The campaign's folder exists.

    Raises CollectError where another run lies there that has no record yet, files that cannot be removed, or a link.
    """
    place = folder / FOLDER
    unfinished = _unfinished(folder)
    if unfinished is not None:
        what = f"run {unfinished.run_id} has no record yet"
        raise CollectError(
            what,
            where=str(place),
            remedy="start the collector again: it records what is there",
        )
    workdir.new(place)
    write_atomic(place / DRAFT, to_json(draft))
    return place


def finish(folder: Path, record: Record) -> Stored:
    """Write the record, its evidence being in place, and forget the current run.

    A record that nobody could read again would stop every later command: it is written without what the run said, which
    its evidence keeps.
    """
    path = folder / f"{record.stem}.json"
    for item in record.evidence:
        invoker.give(folder / item.path)
    try:
        content = readable(record, path)
    except RecordError as error:
        record = record.model_copy(update=_silent(error))
        content = readable(record, path)
    write_atomic(path, content)
    invoker.give(path)
    drop(folder)
    return Stored(record, path)


def _silent(error: RecordError) -> dict[str, Any]:
    """What changes in the record of a run of which nothing can be kept that it said."""
    return {
        "status": "invalid",
        "status_reason": f"its record could not be read again: {error.what}"[:1000],
        "observed": Observed(),
        "metrics": {},
        "samples": {},
        "phases": (),
        "events": (),
    }


def drop(folder: Path) -> None:
    """Remove the folder of a run that has its record, or that never started."""
    workdir.remove(folder / FOLDER)


def recover(folder: Path, redactor: Redactor, reason: str = KILLED) -> Stored | None:
    """What a collector left that was killed or failed: its draft as a record of status `interrupted`, or None.

    A run that has its record keeps it.
    """
    draft = _unfinished(folder)
    # Files that were being written; the machine's lock says that nobody writes now.
    for torn in folder.glob(".*.tmp"):
        torn.unlink()
    if draft is None:
        drop(folder)
        return None
    sealed_before = {
        role: ""
        for role in OUTPUT_ROLES
        if (folder / f"{draft.stem}.{role}.json").is_file()
    }
    sealed = seal(
        folder / FOLDER, folder, draft.stem, sealed_before, redactor, cut=False
    )
    found = {
        "status_reason": reason,
        "evidence": sealed.evidence,
        "unavailable": draft.unavailable | sealed.unavailable,
    }
    return finish(folder, published(draft.model_copy(update=found), redactor))


def _unfinished(folder: Path) -> Record | None:
    """The draft of a run that has no record; None where there is no draft, or a torn one, or one of another version.

    Raises CollectError where something else is in the place of the run's folder.
    """
    workdir.refuse_planted(folder / FOLDER)
    draft = None
    with suppress(OSError, ValueError):
        draft = Record.model_validate_json(outside.content(folder / FOLDER / DRAFT))
    if draft is None or (folder / f"{draft.stem}.json").exists():
        return None
    return draft


COMMAND, SERVER = "command", "server"
"""Who prints to a log: the run's command, or the server that it is a client of."""


class Log:
    """A run's log: takes chunks as they come, redacts whole lines, keeps the beginning and the end.

    What may be cut is redacted only where it is kept: a command that prints faster than text can be redacted would
    have to wait for its own log.

    `began` is when the first text of the command that the regular expression `begins` matches was printed, `ended`
    when the last line of it that `ends` matches was, on the monotonic clock. Several threads may write.
    """

    def __init__(
        self,
        path: Path,
        redactor: Redactor,
        cap: int = EVIDENCE_CAP,
        *,
        begins: str | None = None,
        ends: str | None = None,
    ) -> None:
        self.began: float | None = None
        self.ended: float | None = None
        # The matrix may bring them, and the thread that reads the output must not wait for a match.
        self._begins = None if begins is None else patterns.compiled(begins.encode())
        self._ends = None if ends is None else patterns.compiled(ends.encode())
        self._file = path.open("wb")
        self._redactor = redactor
        self._turn = threading.Lock()
        self._rest: dict[str, bytes] = {}
        self._written, self._head = 0, cap - min(_TAIL, cap // 4)
        self._tail: deque[bytes] = deque()
        self._tail_bytes, self._tail_cap, self._cut = 0, cap - self._head - 200, 0
        self.problem: str | None = None
        """Why the log could not be written, in the operating system's words."""

    @property
    def truncated(self) -> bool:
        """Whether something in the middle was cut."""
        return self._cut > 0

    def write(self, chunk: bytes) -> None:
        """Take the next bytes of the command's output; what comes after the end is not the run's."""
        with self._turn:
            self._take(COMMAND, chunk)

    def write_served(self, chunk: bytes) -> None:
        """Take the next bytes of the server's output: its lines stand between those of the command."""
        with self._turn:
            self._take(SERVER, chunk)

    def _take(self, source: str, chunk: bytes) -> None:
        if self._file.closed:
            return
        rest = self._rest.get(source, b"") + chunk
        # A progress bar ends its first line only with its second: the beginning is looked for before that.
        if (
            source == COMMAND
            and self.began is None
            and self._begins is not None
            and self._begins.search(rest)
        ):
            self.began = time.monotonic()
        cut = self._whole_until(rest)
        if cut:
            self._keep(source, rest[:cut])
        self._rest[source] = rest[cut:]

    def _whole_until(self, rest: bytes) -> int:
        """Up to where no secret can be cut in two: after whole lines, but before a private key that has not ended, and
        before a value that may go on in the next line."""
        cut = max(rest.rfind(b"\n"), rest.rfind(b"\r")) + 1
        ends = rest[max(0, cut - _LOOK_BACK) : cut]
        cut -= len(ends) - unfinished(ends)
        for begins, ends in _BLOCKS:
            begun = rest.rfind(begins, 0, cut)
            open_still = begun >= 0 and rest.find(ends, begun, cut) < 0
            if open_still and len(rest) - begun < _LINE:
                cut = begun
        if cut or len(rest) <= _LINE:
            return cut
        # A line without end: a value may follow its name in the part that is held back.
        whole = self._redactor.content(rest)
        place = len(rest)
        for _ in range(_TRIES):
            place = rest.rfind(b" ", 0, place)
            if place < 0:
                break
            parts = rest[: place + 1], rest[place + 1 :]
            if b"".join(map(self._redactor.content, parts)) == whole:
                return place + 1
        return len(rest) - _LINE // 2

    def _keep(self, source: str, lines: bytes) -> None:
        if not lines:
            return  # nothing was held back; it would push the last words out
        if source == COMMAND and self._ends is not None and self._ends.search(lines):
            self.ended = time.monotonic()
        if not self._tail:
            content = self._redactor.content(lines)
            if self._written + len(content) <= self._head:
                self._append(content)
                self._written += len(content)
                return
        self._tail.append(lines)
        self._tail_bytes += len(lines)
        while self._tail_bytes > self._tail_cap and len(self._tail) > 1:
            self._drop()

    def _drop(self) -> None:
        """Leave out the oldest lines of the end."""
        gone = len(self._tail.popleft())
        self._tail_bytes -= gone
        self._cut += gone

    def _kept_end(self) -> bytes:
        """The lines of the end, redacted. A placeholder can be longer than what it stands for, so that the oldest
        may not fit any more."""
        kept: deque[bytes] = deque()
        size = 0
        while self._tail:
            content = self._redactor.content(self._tail[-1])
            size += len(content)
            if kept and size > self._tail_cap:
                break
            kept.appendleft(content)
            self._tail.pop()
        while self._tail:
            self._drop()
        return b"".join(kept)

    def close(self) -> None:
        """Write what was held back; a cut is marked where it is. Safe to call twice."""
        with self._turn:
            if self._file.closed:
                return
            if served := self._rest.pop(SERVER, b""):
                self._keep(SERVER, served + b"\n")
            self._keep(COMMAND, self._rest.pop(COMMAND, b""))
            end = self._kept_end()
            if self._cut:
                self._append(
                    b"\n[sparkpub: %d bytes cut here: logs are capped]\n" % self._cut
                )
            self._append(end)
            with suppress(OSError):
                self._file.close()

    def _append(self, content: bytes) -> None:
        """Write at once. A disk that is full ends the log and not the thread that reads the command's output: the
        command would block on a pipe that nobody empties."""
        if self.problem is not None:
            return
        try:
            self._file.write(content)
            self._file.flush()
        except OSError as error:
            self.problem = error.strerror or str(error)


@dataclass
class Sealed:
    """Evidence in its final place. `content` is what the workload's parser reads, by role."""

    evidence: tuple[Evidence, ...] = ()
    content: dict[str, bytes] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)

    def add(self, role: Any, path: Path, truncated: bool) -> None:
        """One file more, as it lies there now."""
        size, sha256 = path.stat().st_size, file_sha256(path)
        self.evidence += (
            Evidence(
                role=role,
                path=path.name,
                sha256=sha256,
                bytes=size,
                truncated=truncated,
            ),
        )


def seal(
    run_folder: Path,
    folder: Path,
    stem: str,
    outputs: Mapping[str, str],
    redactor: Redactor,
    *,
    cut: bool,
) -> Sealed:
    """Move the log, telemetry and outputs of a run from its own folder beside its record, as `<stem>.<role>…`."""
    sealed = Sealed()
    for role, name, suffix in (
        ("log", "log", ".log"),
        ("telemetry", "telemetry.csv", ".telemetry.csv"),
    ):
        source, target = run_folder / name, folder / f"{stem}{suffix}"
        if source.is_file():
            if role == "log":
                sealed.content["log"] = source.read_bytes()
            source.replace(target)
        if target.is_file():
            sealed.add(role, target, cut and role == "log")
        else:
            sealed.unavailable[role] = "the run ended before it was written"
    for role, name in outputs.items():
        output = _output(run_folder / WORK, name, redactor)
        target = folder / f"{stem}.{role}.json"
        if output is None and target.is_file():
            # Sealed already, by a collector that was killed right after.
            output = Output(redactor.content(target.read_bytes()))
        if output is None:
            sealed.unavailable[role] = "the command did not write it"
            continue
        write_atomic(target, output.content)
        sealed.add(role, target, truncated=output.cut > 0)
        if output.cut:
            sealed.unavailable[f"{role}_content"] = (
                f"{output.cut} bytes in its middle were cut: files are capped"
            )
        else:
            sealed.content[role] = output.content
    return sealed


@dataclass(frozen=True)
class Output:
    """A file that a command wrote, redacted; `cut` bytes of its middle are left out."""

    content: bytes
    cut: int = 0


def _output(work: Path, name: str, redactor: Redactor) -> Output | None:
    """A file the command wrote, of a large one the beginning and the end. Links are not followed: the command may be
    anybody's."""
    path = work / name
    inside = path.resolve().is_relative_to(work.resolve())
    if path.is_symlink() or not path.is_file() or not inside:
        return None
    with open(path, "rb", opener=_not_through_a_link) as handle:
        size = os.fstat(handle.fileno()).st_size
        if size <= OUTPUT_CAP:
            return Output(redactor.content(handle.read(OUTPUT_CAP)))
        head = handle.read(OUTPUT_CAP // 2)
        handle.seek(size - OUTPUT_CAP // 2)
        tail = handle.read(OUTPUT_CAP // 2)
    # What is torn at the cut could be half a secret: it is redacted beside its neighbours, and then left out.
    head, tail = redactor.content(head), redactor.content(tail)
    head = head[: len(head) - len(_LAST_WORD.findall(head[-_MARGIN:])[0])]
    tail = tail[_MARGIN:]
    tail = tail[len(_FIRST_WORD.findall(tail[:_MARGIN])[0]) :]
    cut = size - len(head) - len(tail)
    mark = b"\n[sparkpub: %d bytes cut here: files are capped]\n" % cut
    return Output(head + mark + tail, cut)


def _not_through_a_link(path: str, flags: int) -> int:
    """Whoever may write to the folder may do so while it is read."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


_LAST_WORD = re.compile(rb"\S*\Z")
_FIRST_WORD = re.compile(rb"\A\S*")
