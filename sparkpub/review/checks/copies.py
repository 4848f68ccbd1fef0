"""Whether runs are independent of each other, within a campaign and between campaigns: copies, and two at once on one
GPU or one host."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from operator import itemgetter
from pathlib import Path

from sparkpub.record.metrics import TIMED_UNITS
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.record.text import counted
from sparkpub.review import committed
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding, Threshold
from sparkpub.review.checks.rules import CLOCK_SECONDS
from sparkpub.review.checks.view import View, label
from sparkpub.review.grouping import grouped

LOG_BYTES = Threshold(
    "copied log bytes",
    2048,
    "From this size on, a log contains times and addresses that differ between runs. Shorter logs can be equal.",
)
EXACT_DIGITS = 5
"""Digits behind the third, over all figures of a run that come from a clock, from which two runs do not agree in all of
them by chance. The first three are alike in most runs of a cell."""
_OWN_TO_A_RUN = frozenset({"report", "requests", "iterations", "telemetry"})
Recorded = list[tuple[Stored, tuple[tuple[str, str], ...]]]
"""Runs, each with what no other run can share: in words, with a digest of it."""
Clash = tuple[Stored, Stored, str]
"""A run, a later one, and what is wrong with the two."""


def recorded(view: View) -> Recorded:
    """What each run has for itself. It is kept of a campaign until all others were read."""
    return [(run, tuple(_marks(run.record))) for run in view.happened]


def _marks(record: Record) -> Iterator[tuple[str, str]]:
    """What no two runs share, in words, with a digest of it. The first that matches is reported."""
    is_own = record.plan.order != "as-published"  # a published file may hold many runs
    for item in record.evidence if is_own else ():
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
        yield "all their figures", repr(figures)


def dependent(kept: Recorded) -> Iterator[Finding]:
    """Copies of runs, and runs beside which another one ran: one finding on the later ones for each two campaigns."""
    what = "Copied from {}, so that they replicate nothing"
    yield from _findings("copied-evidence", _copies(kept), what)
    what = "Beside runs of {} on one GPU or host, so that each slowed the other down"
    remedy = "Re-run them one after the other."
    clashes = _at_once(run for run, _ in kept)
    yield from _findings("time-consistency", clashes, what, remedy)


def _copies(kept: Recorded) -> Iterator[Clash]:
    """Runs that share what no two do. The copy is what came to this branch of git later, if git knows it."""
    marks = ((mark, run) for run, marks in kept for mark in marks)
    known: dict[Path, Mapping[str, int]] = {}

    def arrived(run: Stored) -> float:
        """When its record came to the branch at hand, as a number; infinite where no commit has it."""
        folder = run.path.parent.parent
        if folder not in known:
            known[folder] = committed.arrivals(folder)
        return known[folder].get(run.path.relative_to(folder).as_posix(), math.inf)

    told: set[str] = set()
    for (what, _), shared in grouped(marks, itemgetter(0)).items():
        runs = [run for _, run in shared]
        if len(runs) > 1:
            runs.sort(key=lambda run: (arrived(run), run.record.started.value))
        for one, other in pairwise(runs):
            if other.run_id in told:
                continue
            told.add(other.run_id)
            detail = f"it shares {what} with {one.run_id}"
            is_known = arrived(one) < arrived(other)
            if one.record.campaign != other.record.campaign and not is_known:
                detail += ", and git does not know which of them came first"
            yield one, other, detail


def _at_once(runs: Iterable[Stored]) -> Iterator[Clash]:
    """Runs that began before another one on the same GPU was over. In a zone that nobody knows, only runs of one
    campaign are compared."""
    sharing: dict[tuple[object, ...], list[tuple[datetime, datetime, Stored]]]
    sharing = defaultdict(list)
    for run in runs:
        machine, started = run.record.machine, run.record.started
        zone = started.zone if started.zone == "utc" else run.record.campaign
        gpus = tuple(gpu.id for gpu in machine.gpus)
        ended = _ended(run.record)
        if machine.id is not None and ended is not None:
            began = datetime.fromisoformat(started.value)
            sharing[zone, machine.id, gpus].append((began, ended, run))
    for alike in sharing.values():
        (_, over, last), *later = sorted(alike, key=itemgetter(0))
        for began, ended, run in later:
            early = (over - began).total_seconds()
            if early > CLOCK_SECONDS:
                detail = f"it started {early:.0f} s before {last.run_id} was over"
                yield last, run, detail
            if ended > over:
                over, last = ended, run


def _ended(record: Record) -> datetime | None:
    """When a run ended, by its record or else by how long it took. An end without the start's zone tells nothing."""
    if record.ended is not None and record.ended.zone == record.started.zone:
        return datetime.fromisoformat(record.ended.value)
    if record.duration_seconds is not None:
        began = datetime.fromisoformat(record.started.value)
        return began + timedelta(seconds=record.duration_seconds)
    return None


def _findings(
    check: str, clashes: Iterable[Clash], what: str, remedy: str = ""
) -> Iterator[Finding]:
    """One finding for each two campaigns, or for one, with the later runs; within a campaign with those before them,
    too. `what` is said of them, and of the other campaign."""
    pairs = grouped(
        clashes, lambda clash: (clash[0].record.campaign, clash[1].record.campaign)
    )
    for (first, second), found in pairs.items():
        _, example, detail = found[0]
        runs = {run.run_id: run for _, run, _ in found}
        number = counted(len(runs), "run")
        text = f"{what.format(first)}: {number} of {second}. For example {example.run_id}: {detail}."
        if first == second:
            runs = {run.run_id: run for *both, _ in found for run in both}
        cells = dict.fromkeys(label(run.record.cell) for run in runs.values())
        evidence = {"cells": list(cells), "runs": list(runs)}
        yield Finding(check, "error", second, None, None, text, evidence, remedy)


CHECKS = (
    Check(
        "copied-evidence",
        "Is every run an independent measurement?",
        raises=("error",),
        remedy="Quarantine or delete the copies.",
    ),
)
