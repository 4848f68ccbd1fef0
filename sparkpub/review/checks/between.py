"""Whether campaigns are independent of each other: copies under another name, and two at once on one GPU."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from sparkpub.record.store import Stored
from sparkpub.record.text import counted
from sparkpub.review import committed
from sparkpub.review.checks.copies import Recorded
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.timing import overlapping
from sparkpub.review.checks.view import ids, label

Clash = tuple[Stored, Stored, str]
"""A run, a later one of another campaign, and what is wrong with the two."""
_NOT_KNOWN = (
    " Git does not know which of them came first: it may be the other way round."
)


def between_campaigns(kept: Recorded) -> Iterator[Finding]:
    """Findings on the later one of two campaigns."""
    yield from _copies_found(kept)
    dated = [run for run, _ in kept if run.record.started.zone == "utc"]
    yield from _findings(
        "time-consistency",
        [clash for clash in overlapping(dated) if _are_apart(clash)],
        "ran on the GPU that {} used at the same time, so each slowed the other down",
        "Re-run them one after the other.",
    )


def _copies_found(kept: Recorded) -> Iterator[Finding]:
    """Copies of runs of another campaign. The copy is what came to this branch of git later."""
    shared = _shared(kept)
    if not shared:
        return
    runs = [run for _, some in shared for run in some]
    arrived = _arrivals(runs)
    known: list[Clash] = []
    unknown: list[Clash] = []
    told: set[str] = set()
    for what, some in shared:
        some.sort(key=lambda run: (arrived[run.path], run.record.started.value))
        for one, other in pairwise(some):
            clash = one, other, f"it shares {what} with {one.run_id}"
            if _are_apart(clash) and other.run_id not in told:
                told.add(other.run_id)
                is_known = _data_of(one) == _data_of(other)
                is_known = is_known and arrived[one.path] < arrived[other.path]
                (known if is_known else unknown).append(clash)
    what, remedy = "are copies of runs of {}, and replicate nothing", "Delete the copy."
    yield from _findings("copied-evidence", known, what, remedy)
    yield from _findings("copied-evidence", unknown, what, remedy, _NOT_KNOWN)


def _shared(kept: Recorded) -> list[tuple[str, list[Stored]]]:
    """What runs of several campaigns share, in words, with these runs."""
    groups: dict[tuple[str, str], list[Stored]] = defaultdict(list)
    for run, marks in kept:
        for mark in marks:
            groups[mark].append(run)
    return [
        (what, runs)
        for (what, _), runs in groups.items()
        if len({run.record.campaign for run in runs}) > 1
    ]


def _arrivals(runs: Sequence[Stored]) -> Mapping[Path, float]:
    """When the record of each run came to the branch at hand, as a number; infinite where no commit has it."""
    found: dict[Path, float] = {}
    for data in {_data_of(run) for run in runs}:
        known = committed.arrivals(data)
        for run in runs:
            if _data_of(run) == data:
                name = run.path.relative_to(data).as_posix()
                found[run.path] = known.get(name, float("inf"))
    return found


def _data_of(run: Stored) -> Path:
    """The data folder that a run lies in."""
    return run.path.parent.parent


def _are_apart(clash: Clash) -> bool:
    one, other, _ = clash
    return one.record.campaign != other.record.campaign


def _findings(
    check: str, clashes: Sequence[Clash], what: str, remedy: str, more: str = ""
) -> Iterator[Finding]:
    """One finding for each two campaigns, with the later runs; `what` is said of them, and of the other campaign, and
    `more` in the end."""
    by_campaigns: dict[tuple[str, str], list[Clash]] = defaultdict(list)
    for clash in clashes:
        one, other, _ = clash
        by_campaigns[one.record.campaign, other.record.campaign].append(clash)
    for (first, second), found in by_campaigns.items():
        _, run, detail = found[0]
        later = [other for _, other, _ in found]
        text = f"{counted(len(found), 'run')} of {second} {what.format(first)}. For example {run.run_id}: {detail}."
        cells = dict.fromkeys(label(run.record.cell) for run in later)
        evidence = {"cells": list(cells), "runs": ids(later), "other_campaign": first}
        yield Finding(check, "error", second, None, None, text + more, evidence, remedy)
