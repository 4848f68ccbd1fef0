"""Whether campaigns are independent of each other: copies under another name, and two at once on one GPU."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from sparkpub.record.store import Stored
from sparkpub.record.text import counted
from sparkpub.review.checks.copies import Recorded
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.timing import overlapping
from sparkpub.review.checks.view import ids, label

Clash = tuple[Stored, Stored, str]
"""A run, a later one of another campaign, and what is wrong with the two."""


def between_campaigns(kept: Recorded) -> Iterator[Finding]:
    """Findings on the later one of two campaigns."""
    yield from _findings(
        "copied-evidence",
        _copies(kept),
        "are copies of runs of {}, and replicate nothing",
        "Delete the copy.",
    )
    dated = [run for run, _ in kept if run.record.started.zone == "utc"]
    yield from _findings(
        "time-consistency",
        [clash for clash in overlapping(dated) if _are_apart(clash)],
        "ran on the GPU that {} used at the same time, so each slowed the other down",
        "Re-run them one after the other.",
    )


def _copies(kept: Recorded) -> list[Clash]:
    """Runs that share a recording with one of another campaign, each once."""
    shared: dict[tuple[str, str], list[Stored]] = defaultdict(list)
    for run, marks in kept:
        for mark in marks:
            shared[mark].append(run)
    clashes: dict[str, Clash] = {}
    for (what, _), runs in shared.items():
        runs.sort(key=lambda run: run.record.started.value)
        for one, other in pairwise(runs):
            clash = one, other, f"it shares {what} with {one.run_id}"
            if _are_apart(clash):
                clashes.setdefault(other.run_id, clash)
    return list(clashes.values())


def _are_apart(clash: Clash) -> bool:
    one, other, _ = clash
    return one.record.campaign != other.record.campaign


def _findings(
    check: str, clashes: Sequence[Clash], what: str, remedy: str
) -> Iterator[Finding]:
    """One finding for each two campaigns, with the later runs; `what` is said of them, and of the other campaign."""
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
        yield Finding(check, "error", second, None, None, text, evidence, remedy)
