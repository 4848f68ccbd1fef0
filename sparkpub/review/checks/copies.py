"""Whether a run is a copy: evidence or figures that no two runs can share."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence

from sparkpub.record.metrics import TIMED_UNITS
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View, ids, label

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


def copied_evidence(view: View) -> Iterator[Finding]:
    """Runs that share a file or all their figures."""
    copies: dict[str, dict[str, list[Stored]]] = defaultdict(lambda: defaultdict(list))
    for stored, marks in view.once(recorded):
        for what, digest in marks:
            copies[what][digest].append(stored)
    told: set[frozenset[str]] = set()
    for what, groups in copies.items():
        shared = [
            runs
            for runs in groups.values()
            if len(runs) > 1 and frozenset(ids(runs)) not in told
        ]
        told |= {frozenset(ids(runs)) for runs in shared}
        if shared:
            yield _copies(view, what, shared)


def recorded(view: View) -> Recorded:
    """What each run has for itself. It is kept of a campaign until all others were read."""
    return [(run, tuple(_marks(run.record))) for run in view.happened]


def _marks(record: Record) -> Iterator[tuple[str, str]]:
    """What no two runs share, in words, with a digest of it. The first that matches is reported."""
    figures = _timed(record)
    all_figures = _digest(*sorted(figures.items()))
    for item in record.evidence:
        is_long_log = item.role == "log" and item.bytes >= LOG_BYTES
        # A published file may hold many runs.
        is_own = record.plan.order != "as-published"
        if is_own and (item.role in _OWN_TO_A_RUN or is_long_log):
            yield f"their {item.role}", item.sha256
    start = record.started.value.rstrip("Z")
    if figures and not start.endswith("T00:00:00"):  # more than a date
        # No two runs of a cell begin in the same second.
        digest = _digest(record.cell, start, all_figures)
        yield "their start and all their figures", digest
    if sum(map(_digits, figures.values())) >= DIGITS:
        yield "all their figures", all_figures


def _timed(record: Record) -> dict[str, float]:
    """The figures that come from a clock, which hardly shows the same twice. Those of the sampler are in its file."""
    return {
        name: value.value
        for name, value in record.metrics.items()
        if value.unit in TIMED_UNITS and value.source != "sampler" and value.value
    }


def _digits(value: float) -> int:
    """The digits of a figure that differ from run to run."""
    digits = repr(value).split("e")[0].replace(".", "").strip("-0")
    return max(0, len(digits) - _ALIKE_DIGITS)


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _copies(view: View, what: str, shared: Sequence[Sequence[Stored]]) -> Finding:
    runs = [run for some in shared for run in some]
    one, other = shared[0][:2]
    more = "" if len(runs) == 2 else f" {len(runs)} runs share it with another."
    text = (
        f"{one.record.run_id} and {other.record.run_id} share {what}. Independent runs never do: one of them was not "
        f"measured.{more}"
    )
    cells = dict.fromkeys(label(run.record.cell) for run in runs)
    return view.finding(
        "copied-evidence",
        "error",
        text,
        cells=list(cells),
        runs=ids(runs),
        shared=what,
        groups=[ids(some) for some in shared],
    )


CHECKS = (
    Check(
        "copied-evidence",
        "meaning",
        ("error",),
        "Is every run an independent measurement?",
        copied_evidence,
        thresholds=(DIGITS, LOG_BYTES),
        remedy="Quarantine the copy, and measure it.",
    ),
)
