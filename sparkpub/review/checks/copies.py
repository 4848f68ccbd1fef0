"""Whether runs are independent of each other, within a campaign and between campaigns: copies, and two at once on one
GPU or one host."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

from sparkpub.record.metrics import TIMED_UNITS
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.record.text import counted
from sparkpub.review import committed
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.rules import CLOCK_SECONDS
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View, either, ids, label
from sparkpub.review.grouping import grouped

DIGITS = Threshold(
    "copied digits",
    5,
    "Digits behind the third, over all figures of a run that come from a clock, from which two runs do not agree in "
    "all of them by chance. The first three are alike in most runs of a cell.",
)
LOG_BYTES = Threshold(
    "copied log bytes",
    2048,
    "From this size on, a log contains times and addresses that differ between runs. Shorter logs can be equal.",
)
_ALIKE_DIGITS = 3
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
    for item in record.evidence:
        is_long_log = item.role == "log" and item.bytes >= LOG_BYTES
        # A published file may hold many runs.
        is_own = record.plan.order != "as-published"
        if is_own and (item.role in _OWN_TO_A_RUN or is_long_log):
            yield f"their {item.role}", item.sha256
    # Clocks hardly show the same twice. The figures of the sampler are in its file.
    figures = {
        name: value.value
        for name, value in record.metrics.items()
        if value.unit in TIMED_UNITS and value.source != "sampler" and value.value
    }
    told, start = repr(sorted(figures.items())), record.started.value.rstrip("Z")
    if figures and not start.endswith("T00:00:00"):  # more than a date
        # No two runs of a cell begin in the same second.
        yield "their start and all their figures", _digest(record.cell, start, told)
    if sum(map(_digits, figures.values())) >= DIGITS:
        yield "all their figures", _digest(told)


def _digits(value: float) -> int:
    """The digits of a figure that differ from run to run."""
    digits = repr(value).split("e")[0].replace(".", "").strip("-0")
    return max(0, len(digits) - _ALIKE_DIGITS)


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def dependent(kept: Recorded) -> Iterator[Finding]:
    """Copies of runs, and runs beside which another one ran: one finding on the later ones for each two campaigns."""
    yield from _findings(
        "copied-evidence",
        _copies(kept),
        "is|are copied from {}, and replicates|replicate nothing",
        "Quarantine or delete the copies.",
    )
    yield from _findings(
        "time-consistency",
        _at_once(run for run, _ in kept),
        "ran beside runs of {} on one GPU or host, so each slowed the other down",
        "Re-run them one after the other.",
    )


def _copies(kept: Recorded) -> Iterator[Clash]:
    """Runs that share what no two do. The copy is what came to this branch of git later, if git knows it."""
    groups: dict[tuple[str, str], list[Stored]] = defaultdict(list)
    for run, marks in kept:
        for mark in marks:
            groups[mark].append(run)
    shared = {mark: runs for mark, runs in groups.items() if len(runs) > 1}
    several = [runs for runs in shared.values() if len(_campaigns(runs)) > 1]
    arrived = _arrivals([run for runs in several for run in runs])
    told: set[str] = set()
    for (what, _), runs in shared.items():
        runs.sort(
            key=lambda run: (arrived.get(run.path, 0.0), run.record.started.value)
        )
        for one, other in pairwise(runs):
            if other.run_id in told:
                continue
            told.add(other.run_id)
            detail = f"it shares {what} with {one.run_id}"
            is_known = _data_of(one) == _data_of(other)
            if len(_campaigns([one, other])) > 1 and not (
                is_known and arrived[one.path] < arrived[other.path]
            ):
                detail += ", and git does not know which of them came first"
            yield one, other, detail


def _campaigns(runs: Iterable[Stored]) -> set[str]:
    return {run.record.campaign for run in runs}


def _arrivals(runs: Sequence[Stored]) -> Mapping[Path, float]:
    """When the record of each run came to the branch at hand, as a number; infinite where no commit has it."""
    found: dict[Path, float] = {}
    for data, own in grouped(runs, _data_of).items():
        known = committed.arrivals(data)
        for run in own:
            name = run.path.relative_to(data).as_posix()
            found[run.path] = known.get(name, float("inf"))
    return found


def _data_of(run: Stored) -> Path:
    """The data folder that a run lies in."""
    return run.path.parent.parent


def _at_once(runs: Iterable[Stored]) -> Iterator[Clash]:
    """Runs that began before another one was over: on the same GPU, or as another machine's on the same host, whose
    processors, memory and power they share. In a zone that nobody knows, only runs of one campaign are compared."""
    gpus: dict[object, list[Stored]] = defaultdict(list)
    hosts: dict[object, list[Stored]] = defaultdict(list)
    for run in runs:
        machine, started = run.record.machine, run.record.started
        zone = started.zone if started.zone == "utc" else run.record.campaign
        if machine.id is not None and _ended(run) is not None:
            gpus[zone, machine.id, *(gpu.id for gpu in machine.gpus)].append(run)
            if machine.boot is not None:
                hosts[zone, machine.boot].append(run)
    for alike in gpus.values():
        yield from _overlapping(alike)
    for alike in hosts.values():
        for clash in _overlapping(alike):
            if clash[0].record.machine.id != clash[1].record.machine.id:
                yield clash


def _overlapping(runs: list[Stored]) -> Iterator[Clash]:
    """Runs that began before one of those before them was over."""
    runs.sort(key=_began)
    last = runs[0]
    for run in runs[1:]:
        end, later = _ended(last), _ended(run)
        assert end is not None
        assert later is not None
        early = (end - _began(run)).total_seconds()
        if early > CLOCK_SECONDS:
            yield last, run, f"it started {early:.0f} s before {last.run_id} was over"
        if later > end:
            last = run


def _began(run: Stored) -> datetime:
    return datetime.fromisoformat(run.record.started.value)


def _ended(run: Stored) -> datetime | None:
    """When a run ended, by its record or else by how long it took. An end without the start's zone tells nothing."""
    record = run.record
    if record.ended is not None and record.ended.zone == record.started.zone:
        return datetime.fromisoformat(record.ended.value)
    if record.duration_seconds is not None:
        return _began(run) + timedelta(seconds=record.duration_seconds)
    return None


def _findings(
    check: str, clashes: Iterable[Clash], what: str, remedy: str
) -> Iterator[Finding]:
    """One finding for each two campaigns, or for one, with the later runs; within a campaign with those before them,
    too. `what` is said of them, and of the other campaign."""
    pairs = grouped(
        clashes, lambda clash: (clash[0].record.campaign, clash[1].record.campaign)
    )
    for (first, second), found in pairs.items():
        _, run, detail = found[0]
        later = {other.run_id: other for _, other, _ in found}
        said = either(what, several=len(later) > 1).format(first)
        text = f"{counted(len(later), 'run')} of {second} {said}. For example {run.run_id}: {detail}."
        concerned = list(later.values())
        evidence: dict[str, object] = {"other_campaign": first}
        if first == second:
            both = {
                each.run_id: each for one, other, _ in found for each in (one, other)
            }
            concerned, evidence = list(both.values()), {}
        cells = dict.fromkeys(label(each.record.cell) for each in concerned)
        evidence |= {"cells": list(cells), "runs": ids(concerned)}
        yield Finding(check, "error", second, None, None, text, evidence, remedy)


CHECKS = (
    Check(
        "copied-evidence",
        "meaning",
        ("error",),
        "Is every run an independent measurement?",
        thresholds=(DIGITS, LOG_BYTES),
    ),
)
