"""The run in hand, on disk before it starts, so that a run which never finished still becomes a record.

`<campaign>/.run/` holds `journal.json`, a complete record of status `interrupted`, the log and telemetry as they
grow, and `work/`, the command's folder. A run is finished by writing its record and removing the folder. What a
killed collector leaves is therefore either a finished run, whose folder is dropped, or a draft that says what was
started when; the draft then becomes the record.
"""

import shutil
from contextlib import suppress
from pathlib import Path

from sparkpub.collect import invoker
from sparkpub.collect.evidence import seal
from sparkpub.errors import CollectError
from sparkpub.record import Record
from sparkpub.redaction import Redactor
from sparkpub.store import Stored, to_json, write_atomic

OUTPUT_ROLES = ("report", "requests", "iterations", "output")
FOLDER, DRAFT, WORK = ".run", "journal.json", "work"


def begin(folder: Path, draft: Record) -> Path:
    """Note a run that is about to start; returns its own folder. The campaign's folder exists."""
    place = folder / FOLDER
    shutil.rmtree(place, ignore_errors=True)
    if (place / WORK).exists():
        # A container's root may leave files that are not ours to remove; an old report must never pass for a new one.
        raise CollectError(
            "the last run left files that cannot be removed",
            where=str(place / WORK),
            remedy="remove them as root, or give the environment user: with your own id",
        )
    (place / WORK).mkdir(parents=True)
    # A container's user may not be ours.
    (place / WORK).chmod(0o777)
    (place / ".gitignore").write_text("*\n")
    write_atomic(place / DRAFT, to_json(draft))
    return place


def finish(folder: Path, record: Record) -> Stored:
    """Write the record, its evidence being in place, and forget the run in hand."""
    path = folder / f"{record.stem}.json"
    for item in record.evidence:
        invoker.give(folder / item.path)
    write_atomic(path, to_json(record))
    invoker.give(path)
    drop(folder)
    return Stored(record, path)


def drop(folder: Path) -> None:
    """Remove the run's own folder."""
    shutil.rmtree(folder / FOLDER, ignore_errors=True)


def recover(folder: Path, redactor: Redactor) -> Stored | None:
    """What a killed collector left: its draft as a record of status `interrupted`, or None."""
    place = folder / FOLDER
    for torn in folder.glob(".*.tmp"):  # files that were being written; the machine's lock says nobody writes now
        torn.unlink()
    draft = None
    with suppress(OSError, ValueError):  # none, torn, or of another version
        draft = Record.model_validate_json((place / DRAFT).read_text(encoding="utf-8"))
    if draft is None or (folder / f"{draft.stem}.json").exists():
        drop(folder)
        return None
    sealed_before = {role: "" for role in OUTPUT_ROLES if (folder / f"{draft.stem}.{role}.json").is_file()}
    sealed = seal(place, folder, draft.stem, sealed_before, redactor, cut=False)
    found = {"evidence": sealed.evidence, "unavailable": draft.unavailable | sealed.unavailable}
    return finish(folder, draft.model_copy(update=found))
