"""Whether measuring began after warming up: the first batch of a run against its others."""

from collections.abc import Iterator
from statistics import median

from sparkpub.plan.requested import load_of, options_of
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import (
    Case,
    View,
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
    """Runs whose first measured batch or request stands apart from the rest."""
    cold: list[Case] = []
    for run in view.happened:
        times = _series(view, run)
        if len(times) > 2 and times[0] > COLD_START * max(times[1:]):
            others = median(times[1:])
            cold.append(
                (run, f"{times[0]:.1f} ms, while the others take {others:.1f} ms")
            )
        elif not times and (tail := _cold_tail(run.record)) is not None:
            cold.append((run, tail))
    yield from view.cases(
        "warmed-up",
        "warning",
        cold,
        "measured a cold start: the first batch or requests are far slower",
        "measured cold starts: the first batch or requests are far slower",
    )


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


CHECKS = (
    Check(
        "warmed-up",
        "meaning",
        ("warning",),
        "Did measuring begin after warming up?",
        warmed_up,
        thresholds=(COLD_START, COLD_TAIL),
        remedy="Raise warmup: of the workload, and re-run.",
    ),
)
