"""The current run, on disk before it starts, so that a run which never finished still becomes a record.

`<campaign>/.run/` is its owner's alone (0700). It holds `journal.json`, a complete record of status `interrupted`,
`private.json`, what the command and the server it is a client of print, telemetry, and `work/`, the command's folder.
A run is finished by writing its record and removing the folder. What a killed collector leaves is therefore either a
finished run, whose folder is dropped, or a draft that says what was started when; the draft then becomes the record.

What is private is replaced once: when log and outputs are sealed, by the collector or by the next one.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sparkpub.collect import invoker, workdir
from sparkpub.collect.workdir import WORK
from sparkpub.record import outside
from sparkpub.record.errors import CollectError
from sparkpub.record.record import Evidence, Record
from sparkpub.record.redaction import Redactor
from sparkpub.record.store import (
    EVIDENCE_CAP,
    Stored,
    file_sha256,
    to_json,
    write_atomic,
)

FOLDER, DRAFT, PRIVATE = ".run", "journal.json", "private.json"
LOG, SERVER_LOG, TELEMETRY = "log", "server-log", "telemetry.csv"
CAP = EVIDENCE_CAP - 2**20
"""Bytes kept of a log or an output; redaction may lengthen it a little."""
_MARGIN = 4096
"""Bytes read beside a cut, to see what a line there belongs to."""
_ENDED = "the run ended before it was written"

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
    """Write the record of the current run, and forget the run."""
    stored = write(folder, record)
    drop(folder)
    return stored


def write(folder: Path, record: Record, *, durable: bool = True) -> Stored:
    """Write a record, its evidence being in place; all of it belongs to who called for it. See `write_atomic`."""
    path = folder / f"{record.stem}.json"
    for item in record.evidence:
        invoker.give(folder / item.path)
    write_atomic(path, to_json(record), durable=durable)
    invoker.give(path)
    return Stored(record, path)


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
    outputs = private.get("outputs", {})
    evidence, lacking, _ = seal(place, folder, draft.stem, outputs, redactor)
    found = {
        "status_reason": reason,
        "evidence": evidence,
        "unavailable": draft.unavailable | lacking,
    }
    document = redactor.record(draft.model_copy(update=found).model_dump())
    return finish(folder, Record.model_validate(document, strict=False))


def _without_record(folder: Path) -> Record | None:
    """The draft of a run that has no record; None where there is no draft, or a torn one, or one of another version."""
    draft = None
    with suppress(OSError, ValueError):
        draft = Record.model_validate_json(outside.content(folder / FOLDER / DRAFT))
    if draft is None or (folder / f"{draft.stem}.json").exists():
        return None
    return draft


def seal(
    place: Path,
    folder: Path,
    stem: str,
    outputs: Mapping[str, str],
    redactor: Redactor,
) -> tuple[tuple[Evidence, ...], dict[str, str], dict[str, bytes]]:
    """Write the log, telemetry and outputs of a run from its own folder beside its record, as `<stem>.<role>…`, without
    what is private; returns them, why others are not there, by role, and what the workload's parser reads: the log, and
    outputs that are whole. Log and outputs stay where they are, so that a second try finds them."""
    evidence: list[Evidence] = []
    lacking: dict[str, str] = {}
    read: dict[str, bytes] = {}

    def add(role: Any, path: Path, cut: int = 0) -> None:
        size, digest = path.stat().st_size, file_sha256(path)
        item = Evidence(
            role=role, path=path.name, sha256=digest, bytes=size, truncated=cut > 0
        )
        evidence.append(item)

    printed = [name for name in (SERVER_LOG, LOG) if (place / name).is_file()]
    if printed:
        most = CAP // len(printed)
        logs = [_output(place, name, redactor, most) or (b"", 0) for name in printed]
        path = folder / f"{stem}.log"
        # What the command prints begins a line of its own.
        ends = [said.removesuffix(b"\n") for said, _ in logs[:-1] if said]
        read["log"] = b"\n".join([*ends, logs[-1][0]])
        write_atomic(path, read["log"])
        add("log", path, sum(cut for _, cut in logs))
    else:
        lacking["log"] = _ENDED
    source, path = place / TELEMETRY, folder / f"{stem}.{TELEMETRY}"
    if source.is_file():
        source.replace(path)
    if path.is_file():
        add("telemetry", path)
    else:
        lacking["telemetry"] = _ENDED
    for role, name in outputs.items():
        output = _output(place / WORK, name, redactor, CAP)
        if output is None:
            lacking[role] = "the command did not write it"
            continue
        path = folder / f"{stem}.{role}.json"
        content, cut = output
        write_atomic(path, content)
        add(role, path, cut)
        if cut:
            why = f"{cut} bytes in its middle were cut: files are capped"
            lacking[f"{role}_content"] = why
        else:
            read[role] = content
    return tuple(evidence), lacking, read


def _output(
    work: Path, name: str, redactor: Redactor, most: int
) -> tuple[bytes, int] | None:
    """A file the command wrote, redacted, and how many bytes of its middle were cut: of one with more than `most` the
    beginning and the end are kept. Links are not followed, nor pipes waited for: the command may be anybody's."""
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
        if size <= most:
            return redactor.content(handle.read(most)), 0
        head = redactor.content(handle.read(most // 2))
        handle.seek(size - most // 2)
        tail = redactor.content(handle.read(most // 2))
    # What is torn at the cut could be half a secret: it was redacted beside its neighbours, and is left out.
    head = head[: head.rfind(b"\n") + 1]
    tail = tail[_MARGIN:].partition(b"\n")[2]
    cut = size - len(head) - len(tail)
    mark = b"[sparkpub: %d bytes cut here: files are capped]\n" % cut
    return head + mark + tail, cut
