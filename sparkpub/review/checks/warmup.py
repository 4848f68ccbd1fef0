"""Whether measuring began after warming up: the first batch of runs against their others."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean, median

from sparkpub.plan.requested import load_of, options_of
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import (
    MATERIAL_SHARE_OF_MARGIN,
    Case,
    View,
    ids,
    label,
    listed,
)
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics import drift

WARMUP_ALPHA = Threshold(
    "warm-up alpha",
    0.0005,
    "Probability of a false warm-up finding in a clean cell (permutation of ranks over its runs).",
)
COLD_START = Threshold(
    "cold start",
    1.5,
    "From this multiple of the slowest other batch, the first batch of a run is a cold start.",
)


COLD_TAIL = Threshold(
    "cold tail",
    5.0,
    "From this multiple of the median, and from that of all requests in flight, the 99th percentile of TTFT is a cold "
    "start in a run that was to warm up with nothing, where the times of single requests are not known. With a warm-up "
    "it was below 2 in 154 of 156 runs.",
)


def warmed_up(view: View) -> Iterator[Finding]:
    """Cells and runs whose first measured batch or request stands apart from the rest."""
    cold: list[Case] = []
    slow: dict[Cell, float] = {}
    for cell, runs in view.ran.items():
        series = [_series(view, run) for run in runs]
        told = len(cold)
        for run, times in zip(runs, series, strict=True):
            if len(times) > 2 and times[0] > COLD_START * max(times[1:]):
                cold.append(
                    (
                        run,
                        f"{times[0]:.1f} ms, while the others take {median(times[1:]):.1f} ms",
                    )
                )
            elif not times and (tail := _cold_tail(run.record)) is not None:
                cold.append((run, tail))
        excess = _excess(view, series)
        if excess is not None and len(cold) == told:
            slow[cell] = excess
    yield from view.cases(
        "warmed-up",
        "warning",
        cold,
        "measured a cold start: the first batch or requests are far slower",
        "measured cold starts: the first batch or requests are far slower",
    )
    if slow:
        worst = max(slow, key=lambda cell: abs(slow[cell]))
        cells = [label(cell) for cell in slow]
        side = "slower" if slow[worst] > 0 else "faster"
        text = (
            f"The first measured batch differs in {listed(cells, 'cells')}: in {label(worst)} it is "
            f"{100 * abs(slow[worst]):.1f} % {side} than the rest of its run on average. The warm-up was too short."
        )
        runs_concerned = [run for cell in slow for run in ids(view.ran[cell])]
        yield view.finding(
            "warmed-up",
            "warning",
            text,
            cells=cells,
            runs=runs_concerned,
            excess_by_cell={label(cell): value for cell, value in slow.items()},
        )
    yield from view.unjudged("warmed-up", _untold(view))


def _untold(view: View) -> dict[str, list[Stored]]:
    """Runs with a log whose tool kept no times of single batches."""
    missing: dict[str, list[Stored]] = defaultdict(list)
    for stored in view.happened:
        if stored.record.file("log") is not None and not _series(view, stored):
            missing[
                "times of single batches or requests, in the order in which they ran"
            ].append(stored)
    return missing


def _series(view: View, stored: Stored) -> tuple[float, ...]:
    answer = view.evidence.of(stored).answer
    return () if answer is None else answer.series


def _cold_tail(record: Record) -> str | None:
    """What shows that a run of ours began cold although it kept no times of single requests. Where requests arrive at a
    rate, they may just have waited."""
    asked = options_of(record)
    usual, slowest = record.value("ttft_p50_ms"), record.value("ttft_p99_ms")
    if asked.get("warmup") != 0 or asked.get("request_rate") is not None:
        return None
    if record.plan.order == "as-published" or usual is None or slowest is None:
        return None
    # Prompts that are sent together are computed one after the other at worst.
    if slowest <= max(float(COLD_TAIL), load_of(record).in_flight or 1) * usual:
        return None
    return f"nothing was warmed up, and TTFT is {usual:.0f} ms at the median and {slowest:.0f} ms at P99"


def _excess(view: View, series: Sequence[Sequence[float]]) -> float | None:
    """By how much the first batches differ from the others on average, where that is beyond chance and moves the mean
    of a run by a share of the margin that matters; else None."""
    blocks = [times for times in series if len(times) >= 3]
    if not blocks or drift.first_runs(blocks).p_value >= WARMUP_ALPHA:
        return None
    excess = fmean(times[0] / fmean(times[1:]) - 1 for times in blocks)
    in_the_mean = abs(excess) / fmean(len(times) for times in blocks)
    least = MATERIAL_SHARE_OF_MARGIN * view.campaign.margin_percent / 100
    return excess if in_the_mean >= least else None


CHECKS = (
    Check(
        "warmed-up",
        "meaning",
        ("warning",),
        "Did measuring begin after warming up?",
        warmed_up,
        thresholds=(WARMUP_ALPHA, COLD_START, COLD_TAIL, MATERIAL_SHARE_OF_MARGIN),
        remedy="Raise warmup: of the workload, and re-run.",
    ),
)
