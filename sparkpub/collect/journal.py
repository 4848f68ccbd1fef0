"""The current run, on disk before it starts, so that a run which never finished still becomes a record.

`<campaign>/.run/` is its owner's alone (0700). It holds `journal.json`, a complete record of status `interrupted`,
`private.json`, the log as it is printed, telemetry, and `work/`, the command's folder. A run is finished by writing its
record and removing the folder. What a killed collector leaves is therefore either a finished run, whose folder is
dropped, or a draft that says what was started when; the draft then becomes the record.

What is private is replaced once: when log and outputs are sealed, by the collector or by the next one.
"""

import json
import os
import re
import threading
import time
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

FOLDER, DRAFT, PRIVATE = ".run", "journal.json", "private.json"
CAP = EVIDENCE_CAP - 2**20
"""Bytes kept of a log or an output; redaction may lengthen it a little."""
MOST = 1 << 30
"""Bytes of a log while the run is on."""
_LINE = 1 << 16
_LOOK_BACK = 4096
_MARGIN = 4096
"""Bytes read beside a cut, to see what a word at its edge belongs to."""
_FIRST_WORD, _LAST_WORD = re.compile(rb"\A\S*"), re.compile(rb"\S*\Z")
_ENDED = "the run ended before it was written"
_NOT_WRITTEN = "the command did not write it"

KILLED = "the collector was killed while the run was on"
"""Why a draft is interrupted where nobody could say more."""


def begin(
    folder: Path, draft: Record, outputs: Mapping[str, str], redactor: Redactor
) -> Path:
    """Note a run that is about to start; returns its own folder. The campaign's folder exists. `outputs` are the files
    that the command will write, by role, and `redactor` is the run's own.

    Raises CollectError where another run lies there that has no record yet, or what cannot be removed, as a link.
    """
    place = folder / FOLDER
    other = _without_record(folder)
    if other is not None:
        what = f"run {other.run_id} has no record yet"
        raise CollectError(
            what,
            where=str(place),
            remedy="start the collector again: it records what is there",
        )
    workdir.new(place)
    # Whoever recovers the run may not know the secrets that its log may show.
    private = {"outputs": dict(outputs), "replaced": redactor.replaced}
    write_atomic(place / PRIVATE, json.dumps(private))
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
    draft = _without_record(folder)
    # Files that were being written; the machine's lock says that nobody writes now.
    for torn in folder.glob(".*.tmp"):
        torn.unlink()
    if draft is None:
        drop(folder)
        return None
    place = folder / FOLDER
    private: Mapping[str, Mapping[str, str]] = {}
    with suppress(OSError, ValueError):
        private = dict(outside.json_document(outside.content(place / PRIVATE)))
    redactor = redactor.also({}, private.get("replaced", {}))
    sealed = seal(place, folder, draft.stem, private.get("outputs", {}), redactor)
    found = {
        "status_reason": reason,
        "evidence": sealed.evidence,
        "unavailable": draft.unavailable | sealed.unavailable,
    }
    return finish(folder, published(draft.model_copy(update=found), redactor))


def _without_record(folder: Path) -> Record | None:
    """The draft of a run that has no record; None where there is no draft, or a torn one, or one of another version."""
    draft = None
    with suppress(OSError, ValueError):
        draft = Record.model_validate_json(outside.content(folder / FOLDER / DRAFT))
    if draft is None or (folder / f"{draft.stem}.json").exists():
        return None
    return draft


COMMAND, SERVER = "command", "server"
"""Who prints to a log: the run's command, or the server that it is a client of."""


class Log:
    """A run's log as it is printed, lines of the command and of the server it is a client of kept whole.

    `began` is when the first text of the command that the regular expression `begins` matches was printed, `ended`
    when the last line of it that `ends` matches was, on the monotonic clock. Several threads may write.
    """

    def __init__(
        self, path: Path, *, begins: str | None = None, ends: str | None = None
    ) -> None:
        self.began: float | None = None
        self.ended: float | None = None
        self.problem: str | None = None
        """Why the log could not be written to its end, in words."""
        # The matrix may bring them, and the thread that reads the output must not wait for a match.
        self._begins = None if begins is None else patterns.compiled(begins.encode())
        self._ends = None if ends is None else patterns.compiled(ends.encode())
        self._turn = threading.Lock()
        self._rest: dict[str, bytes] = {}
        self._within: str | None = None
        """Who prints a line so long that its beginning is kept before its end."""
        self._file = path.open("wb", buffering=0)

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
        if source == COMMAND and self.began is None and self._begins is not None:
            # A progress bar ends its first line only with its second.
            self.began = time.monotonic() if self._begins.search(rest) else None
        cut = max(rest.rfind(b"\n"), rest.rfind(b"\r")) + 1
        # A line of the other source must not come between a name and its value.
        ends = rest[max(0, cut - _LOOK_BACK) : cut]
        cut -= len(ends) - unfinished(ends)
        if self._within not in (None, source):
            cut = 0
        elif cut:
            self._within = None
        elif len(rest) > _LINE:
            cut, self._within = len(rest), source
        self._keep(source, rest[:cut])
        self._rest[source] = rest[cut:]

    def _keep(self, source: str, lines: bytes) -> None:
        if source == COMMAND and self._ends is not None and self._ends.search(lines):
            self.ended = time.monotonic()
        if self._file.tell() + len(lines) > MOST:
            self.problem = f"it is longer than {MOST >> 20} MiB"
        # A disk that is full ends the log and not the thread that reads the command's output: the command would block
        # on a pipe that nobody empties.
        try:
            while lines and self.problem is None:
                lines = lines[self._file.write(lines) :]
        except OSError as error:
            self.problem = error.strerror or str(error)

    def close(self) -> None:
        """Write what was held back. Safe to call twice."""
        with self._turn:
            if self._file.closed:
                return
            if served := self._rest.pop(SERVER, b""):
                self._keep(SERVER, served + b"\n")
            self._keep(COMMAND, self._rest.pop(COMMAND, b""))
            with suppress(OSError):
                self._file.close()


@dataclass
class Sealed:
    """Evidence in its final place. `content` is what the workload's parser reads, by role."""

    evidence: tuple[Evidence, ...] = ()
    content: dict[str, bytes] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)

    def add(self, role: Any, path: Path, *, cut: bool = False) -> None:
        """One file more, as it lies there now."""
        size, sha256 = path.stat().st_size, file_sha256(path)
        self.evidence += (
            Evidence(
                role=role, path=path.name, sha256=sha256, bytes=size, truncated=cut
            ),
        )


def seal(
    place: Path,
    folder: Path,
    stem: str,
    outputs: Mapping[str, str],
    redactor: Redactor,
) -> Sealed:
    """Write the log, telemetry and outputs of a run from its own folder beside its record, as `<stem>.<role>…`, without
    what is private. Log and outputs stay where they are, so that a second try finds them."""
    sealed = Sealed()
    files = {"log": (place, "log", ".log")}
    for role, name in outputs.items():
        files[role] = (place / WORK, name, f".{role}.json")
    for role, (inside, name, suffix) in files.items():
        output = _output(inside, name, redactor)
        if output is None:
            sealed.unavailable[role] = _ENDED if role == "log" else _NOT_WRITTEN
            continue
        target = folder / f"{stem}{suffix}"
        content, cut = output
        write_atomic(target, content)
        sealed.add(role, target, cut=cut > 0)
        if cut and role != "log":
            why = f"{cut} bytes in its middle were cut: files are capped"
            sealed.unavailable[f"{role}_content"] = why
        else:
            sealed.content[role] = content
    source, target = place / "telemetry.csv", folder / f"{stem}.telemetry.csv"
    if source.is_file():
        source.replace(target)
    if target.is_file():
        sealed.add("telemetry", target)
    else:
        sealed.unavailable["telemetry"] = _ENDED
    first = ("log", "telemetry")
    sealed.evidence = tuple(
        sorted(sealed.evidence, key=lambda item: item.role not in first)
    )
    return sealed


def _output(work: Path, name: str, redactor: Redactor) -> tuple[bytes, int] | None:
    """A file the command wrote, redacted, and how many bytes of its middle were cut: of a large one the beginning and
    the end are kept. Links are not followed, nor pipes waited for: the command may be anybody's."""
    path = work / name
    if not path.resolve().is_relative_to(work.resolve()):
        return None
    try:
        opened = outside.opened(path, os.O_NOFOLLOW)
    except PermissionError:
        raise
    except (OSError, outside.UnfitError):
        return None
    with opened as handle:
        size = os.fstat(handle.fileno()).st_size
        if size <= CAP:
            return redactor.content(handle.read(CAP)), 0
        head = handle.read(CAP // 2)
        handle.seek(size - CAP // 2)
        tail = handle.read(CAP // 2)
    # What is torn at the cut could be half a secret: it is redacted beside its neighbours, and then left out.
    head, tail = redactor.content(head), redactor.content(tail)
    head = head[: len(head) - len(_LAST_WORD.findall(head[-_MARGIN:])[0])]
    tail = tail[_MARGIN:]
    tail = tail[len(_FIRST_WORD.findall(tail[:_MARGIN])[0]) :]
    cut = size - len(head) - len(tail)
    mark = b"\n[sparkpub: %d bytes cut here: files are capped]\n" % cut
    return head + mark + tail, cut
