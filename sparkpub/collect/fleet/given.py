"""Runs that machines were given, noted on disk until they are handed over: none is lost without a record.

`<campaign>/.fleet/` holds, for each machine that is at a run, a complete record of status `interrupted`. A machine that
answers has handed over all it has, and its note goes; so it does when the machine comes back, in this collection or in
a later one. What is still noted when a collection has ended becomes the record.
"""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from sparkpub import __version__
from sparkpub.collect import invoker
from sparkpub.collect.bench import Order
from sparkpub.collect.books import Books
from sparkpub.collect.run import interrupted
from sparkpub.plan.matrix import Matrix
from sparkpub.record.record import Machine, Moment, Record, Reproducibility, stem_of
from sparkpub.record.store import Stored, to_json, write_atomic

FOLDER = ".fleet"
LOST = "given to a machine that had not handed over a result when the collection ended"
"""Why such a run is interrupted."""


def note(books: Books, matrix: Matrix, order: Order, machine: str) -> None:
    """Note that a machine is given a run."""
    folder = books.folder / FOLDER
    invoker.make_folder(folder)
    ignored = folder / ".gitignore"
    if not ignored.exists():
        ignored.write_text("*\n")
        invoker.give(ignored)
    path = folder / f"{machine}.json"
    write_atomic(path, to_json(_draft(books.shown, matrix, order, machine)))
    invoker.give(path)


def settle(folder: Path, machine: str) -> None:
    """A machine has handed over all it has."""
    (folder / FOLDER / f"{machine}.json").unlink(missing_ok=True)


def entered(folder: Path) -> Iterator[Stored]:
    """Write the record of each run that is still noted, in the order in which they were given; then no note is left."""
    drafts = [
        Record.model_validate_json(path.read_text(encoding="utf-8"))
        for path in (folder / FOLDER).glob("*.json")
    ]
    for draft in sorted(drafts, key=lambda record: record.started.value):
        path = folder / f"{draft.stem}.json"
        write_atomic(path, to_json(draft))
        invoker.give(path)
        settle(folder, str(draft.machine.id))
        yield Stored(draft, path)
    shutil.rmtree(folder / FOLDER, ignore_errors=True)


def _draft(shown: Matrix, matrix: Matrix, order: Order, machine: str) -> Record:
    """The record as it is if nothing more becomes of the run. Its name is none that the machine may give its own."""
    run = order.run
    started = Moment.at(datetime.now(UTC))
    stem = f"{stem_of(run.cell, run.iteration, started)}_{machine[:8]}_lost"
    return interrupted(
        matrix,
        shown,
        order,
        stem=stem,
        started=started,
        status_reason=LOST,
        machine=Machine(id=machine),
        reproducibility=Reproducibility(sparkpub_version=__version__),
        unavailable=dict.fromkeys(("log", "telemetry"), LOST),
    )
