"""Whether runs are independent of each other, within a campaign and between campaigns: copies, and two at once on one
GPU or one host."""

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from itertools import pairwise
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import NamedTuple

from sparkpub.record.metrics import TIMED_UNITS
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.record.text import counted
from sparkpub.review import committed
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding, Threshold
from sparkpub.review.checks.rules import CLOCK_SECONDS, seconds_on_the_clock
from sparkpub.review.checks.view import is_planned, label
from sparkpub.review.grouping import grouped

LOG_BYTES = Threshold(
    2048,
    "From this size on, a log contains times and addresses that differ between runs. Shorter logs can be equal.",
)
EXACT_DIGITS = 5
"""Digits behind the third, over all figures of a run that come from a clock, from which two runs do not agree in all of
them by chance. The first three are alike in most runs of a cell."""
_OWN_TO_A_RUN = frozenset({"report", "requests", "iterations", "telemetry"})


class RunTrace(NamedTuple):
    """What tells whether a run is independent of all others."""

    run_id: str
    campaign: str
    cell: str
    path: Path
    started: str
    lasted: float
    """Seconds; 0 where nothing says it."""
    place: tuple[str, str, tuple[str | None, ...]]
    """The clock by which it ran (in a zone that nobody knows the campaign's own), and the machine and GPUs on which it
    did; the machine is empty where nobody knows it."""
    marks: tuple[tuple[str, str], ...]
    """What no two runs share, in words, with a digest of it. The first that matches is reported."""

    @property
    def began(self) -> float:
        """Seconds since 1970 by its clock."""
        return datetime.fromisoformat(self.started).timestamp()


Clash = tuple[RunTrace, RunTrace, str]
"""A run, a later one, and what is wrong with the two."""


def trace(run: Stored) -> RunTrace:
    """That of a run."""
    record = run.record
    machine, zone = record.machine, record.started.zone
    clock = zone if zone == "utc" else record.campaign
    return RunTrace(
        run.run_id,
        record.campaign,
        label(record.cell),
        run.path,
        record.started.value,
        seconds_on_the_clock(record) or record.duration_seconds or 0.0,
        (clock, machine.id or "", tuple(gpu.id for gpu in machine.gpus)),
        tuple(_marks(record)),
    )


def dependent(runs: Sequence[RunTrace]) -> Iterator[Finding]:
    """Copies of runs, and runs beside which another one ran: one finding on the later ones for each two campaigns, and
    within a campaign on both."""
    for check, clashes, what in (
        (
            "copied-evidence",
            _copies(runs),
            "Copied from {}, so that they replicate nothing",
        ),
        (
            "time-consistency",
            _at_once(runs),
            "Beside runs of {} on one GPU or host, so that each slowed the other down",
        ),
    ):
        for (first, second), found in grouped(clashes, _campaigns).items():
            later = {run.run_id: run for _, run, _ in found}
            _, example, detail = found[0]
            text = (
                f"{what.format(first)}: {counted(len(later), 'run')} of {second}. For example {example.run_id}: "
                f"{detail}."
            )
            if first == second:
                later = {run.run_id: run for *both, _ in found for run in both}
            cells = dict.fromkeys(run.cell for run in later.values())
            evidence = {"cells": [*cells], "runs": [*later]}
            yield Finding(check, "error", second, None, None, text, evidence)


def _campaigns(clash: Clash) -> tuple[str, str]:
    one, other, _ = clash
    return one.campaign, other.campaign


def _copies(runs: Sequence[RunTrace]) -> Iterator[Clash]:
    """Runs that share what no two do. The copy is what came to this branch of git later, if git knows it."""
    marks = ((mark, run) for run in runs for mark in run.marks)
    shared = [
        found for found in grouped(marks, itemgetter(0)).values() if len(found) > 1
    ]
    folders = {run.path.parent.parent for found in shared for _, run in found}
    known = {folder: committed.arrivals(folder) for folder in folders}

    def arrived(run: RunTrace) -> float:
        """When its record came to the branch at hand, as a number; infinite where no commit has it."""
        folder = run.path.parent.parent
        return known[folder].get(run.path.relative_to(folder).as_posix(), math.inf)

    told: set[str] = set()
    for found in shared:
        alike = sorted(
            (run for _, run in found),
            key=lambda run: (arrived(run), run.started),
        )
        (what, _), _ = found[0]
        for one, other in pairwise(alike):
            if other.run_id in told:
                continue
            told.add(other.run_id)
            yield one, other, f"it shares {what} with {one.run_id}"


def _marks(record: Record) -> Iterator[tuple[str, str]]:
    # A published file may hold many runs.
    for item in record.evidence if is_planned(record) else ():
        is_long = item.role == "log" and item.bytes >= LOG_BYTES
        if is_long or item.role in _OWN_TO_A_RUN:
            yield f"their {item.role}", item.sha256
    # Clocks hardly show the same twice. The figures of the sampler are in its file.
    figures = sorted(
        (name, value.value)
        for name, value in record.metrics.items()
        if value.unit in TIMED_UNITS and value.source != "sampler" and value.value
    )
    digits = [repr(value).replace(".", "").strip("-0") for _, value in figures]
    if sum(max(0, len(each) - 3) for each in digits) >= EXACT_DIGITS:
        yield "all their figures", sha256(repr(figures).encode()).hexdigest()


def _at_once(runs: Iterable[RunTrace]) -> Iterator[Clash]:
    """Runs that began before another one on the same GPU was over. In a zone that nobody knows, only runs of one
    campaign are compared."""
    for (_, machine, _), alike in grouped(runs, attrgetter("place")).items():
        over, last = 0.0, alike[0]
        for run in sorted(alike, key=attrgetter("began")):
            early = over - run.began
            if early > CLOCK_SECONDS and machine:
                detail = f"it started {early:.0f} s before {last.run_id} was over"
                yield last, run, detail
            if run.began + run.lasted > over:
                over, last = run.began + run.lasted, run


CHECKS = (
    Check(
        "copied-evidence",
        "Is every run an independent measurement?",
        raises=("error",),
        remedy="Quarantine or delete the copies.",
    ),
)
