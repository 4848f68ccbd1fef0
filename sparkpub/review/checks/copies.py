"""Whether a run is a copy: evidence or figures that no two runs can share."""

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence

from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.dependence import independent
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import TIMED_UNITS, View, ids, label
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics import describe

DIGITS = Threshold(
    "copied digits",
    9,
    "Significant digits in which two runs do not agree by chance: with a spread of 0.1 % there are a million values.",
)
RATIOS = Threshold(
    "copied ratios",
    4,
    "Number of ratios between the times of a run that must equal those of another run, to eight digits, before one "
    "counts as a multiple of the other.",
)
COMBINATIONS = Threshold(
    "copied combinations",
    1e5,
    "Combinations of figures between the least and the largest of a cell from which two published runs do not agree "
    "in all of them by chance: among ten runs there are 45 pairs.",
)
LOG_BYTES = Threshold(
    "copied log bytes",
    2048,
    "From this size on, a log contains times and addresses that differ between runs. Shorter logs can be equal.",
)
DIGEST_VALUES = 20
"""Different values in a column of the telemetry from which no other run has the same column."""
_OWN_TO_A_RUN = frozenset({"report", "requests", "iterations", "telemetry"})
Recorded = list[tuple[Stored, tuple[tuple[str, str], ...]]]
"""Runs, each with digests of what was recorded during it and no other."""


def copied_evidence(view: View) -> Iterator[Finding]:
    """Runs that share a file, a trace of power, a figure of many digits, or all their proportions."""
    copies: dict[str, dict[str, list[Stored]]] = defaultdict(lambda: defaultdict(list))
    for stored, recordings in view.once(recorded):
        for what, key in (*recordings, *_marks(view, stored)):
            copies[what][repr(key)].append(stored)
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


def _marks(view: View, stored: Stored) -> Iterator[tuple[str, Hashable]]:
    """What is a run's own besides its recordings, in words, with the value that no other run can have. The first that
    matches is reported."""
    record = stored.record
    published = _published(record)
    if published is not None:
        cell, _, figures = published
        yield "their start and all their figures", published
        if _combinations(view, record.cell) >= COMBINATIONS:
            yield "all their figures", (cell, figures)
    timed = _timed(record)
    for name, value in timed.items():
        if _digits(value) >= DIGITS:
            yield f"{view.metrics[name].label} to the last digit", (name, value)
    proportions = _proportions(timed)
    if proportions is not None:
        yield (
            "the ratios between all their times, so one is a multiple of the other",
            proportions,
        )


def recorded(view: View) -> Recorded:
    """What each run has recorded. It is kept of a campaign until all others were read."""
    return [(run, tuple(_recordings(view, run))) for run in view.happened]


def _recordings(view: View, stored: Stored) -> Iterator[tuple[str, str]]:
    """What was recorded during a run and no other, in words, with a digest of it."""
    record, samples = stored.record, view.evidence.of(stored).samples
    if record.plan.order != "as-published":  # a published file may hold many runs
        for item in record.evidence:
            is_long_log = item.role == "log" and item.bytes >= LOG_BYTES
            if item.role in _OWN_TO_A_RUN or is_long_log:
                yield f"their {item.role}", item.sha256
    if samples is None:
        return
    power = samples.known("gpu_power_watt").tolist()
    # Whole seconds and their hundredths may agree.
    moments = [time for time in samples.times.tolist() if time != round(time, 2)]
    for what, values in (
        ("the power drawn, sample by sample", power),
        ("the times of their samples", moments),
    ):
        # An idle or coarse sensor may well repeat itself.
        if len(set(values)) >= DIGEST_VALUES:
            yield what, hashlib.sha256(repr(values).encode()).hexdigest()


def _combinations(view: View, cell: Cell) -> float:
    """How many combinations of figures the runs of a cell can show: of each measurement as many as its rounding leaves
    between the least and the largest."""
    found = 1.0
    for name in view.once(independent):
        values = view.figures(cell, name, ran=True)
        if values:
            step = describe.resolution_of(values)
            found *= 1 + (max(values) - min(values)) / step
    return found


def _published(record: Record) -> tuple[Cell, str, Hashable] | None:
    """Cell, start and figures of a run of which a table says no more; None where they may agree by chance: no two runs
    of a cell begin in the same second, but many on the same day."""
    values = [value for value in record.metrics.values() if value.value is not None]
    if not values or any(value.source != "published" for value in values):
        return None
    is_only_a_date = record.started.value.endswith("T00:00:00")
    if is_only_a_date and max(_digits(value.value or 0.0) for value in values) < DIGITS:
        return None
    figures = {name: value.value for name, value in record.metrics.items()}
    return record.cell, record.started.value, tuple(sorted(figures.items()))


def _timed(record: Record) -> dict[str, float]:
    """The figures that come from a clock, which never shows the same twice."""
    return {
        name: value.value
        for name, value in record.metrics.items()
        if value.unit in TIMED_UNITS
        and value.source in ("log", "report")
        and value.value
    }


def _digits(value: float) -> int:
    return len(repr(value).split("e")[0].replace(".", "").strip("-0"))


def _proportions(timed: Mapping[str, float]) -> tuple[str, ...] | None:
    """Each time divided by the first, to eight digits; None where too few differ from each other to tell."""
    times = [
        value
        for name, value in sorted(timed.items())
        if name.endswith("_ms") and _digits(value) >= DIGITS
    ]
    ratios = [f"{value / times[0]:.8g}" for value in times[1:]]
    return tuple(ratios) if len(set(ratios)) >= RATIOS else None


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
        thresholds=(DIGITS, RATIOS, LOG_BYTES, COMBINATIONS),
        remedy="Quarantine the copy, and measure it.",
    ),
)
