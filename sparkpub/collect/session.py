"""The loop: what is missing is measured, each run is committed, and everything survives an end at any instant."""

from contextlib import ExitStack
from typing import Protocol

from sparkpub.collect import station
from sparkpub.collect.books import Books, Outcome
from sparkpub.collect.choice import Choice
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.job import Job
from sparkpub.collect.lock import folder_locked, locked
from sparkpub.collect.machine import inventory
from sparkpub.collect.obstacles import refuse_obstacles
from sparkpub.collect.progress import Progress, Say
from sparkpub.collect.station import Station
from sparkpub.plan.matrix import Matrix
from sparkpub.record.store import Stored


def collect(
    matrix: Matrix,
    choice: Choice,
    say: Say | None = None,
    keeper: type[Books] = Books,
) -> Outcome:
    """Measure what is missing. Raises CollectError where the machine or an environment stands in the way.

    One collector at a time cleans up what a killed one left, looks at what there is and what stands in the way of the
    rest, declares the campaign, sets up the machine, measures run by run, and puts everything back. `say` takes each
    line that would else be printed, and `keeper` keeps the books.
    """
    folder = choice.data / matrix.campaign
    with ExitStack() as stack:
        stack.enter_context(locked())
        stack.enter_context(folder_locked(folder))
        interruption = stack.enter_context(Interruption())
        cleaned = station.tidied(matrix, folder)
        progress = Progress(matrix.campaign, say)
        stack.callback(progress.close)

        books = keeper(matrix, choice, progress)
        if matrix.machines == "replicate" and (own := inventory.machine_id()):
            books.schedule([own])  # a collector on this machine plans for itself
        refuse_obstacles(matrix, books.todo)
        for line in cleaned:
            progress.line(line)
        books.begin()
        here = stack.enter_context(
            station.opened(matrix, folder, interruption, progress)
        )
        work(here, books, interruption)
        outcome = books.outcome(interruption.stopped)
        progress.line(outcome.summary)
        return outcome


class Bookkeeper(Protocol):
    """Who says what a machine measures next, and keeps what it measured: the books, here or on another machine."""

    def next(self, machine: str | None, /) -> Job | None:
        """The next attempt of this machine, on lease; None where there is nothing for it now."""

    def keep(self, machine: str | None, stored: Stored, /) -> None:
        """Take in the run of the machine's lease."""

    def skip(self, machine: str | None, /) -> None:
        """End the lease of a run that a gate kept from starting."""


def work(here: Station, ledger: Bookkeeper, interruption: Interruption) -> None:
    """The loop of one machine: the next run, until there is none or nothing new may be started any more."""
    machine = here.machine.id
    while not interruption.finish and (job := ledger.next(machine)) is not None:
        stored = here.measure(job)
        if stored is not None:
            ledger.keep(machine, stored)
        elif not interruption.finish:
            ledger.skip(machine)
