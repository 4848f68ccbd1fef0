"""Which model really ran: by its configuration, by the memory it takes, and beside other models."""

import math
from collections.abc import Iterator
from itertools import combinations

from sparkpub.plan.requested import is_of_running_server
from sparkpub.record import identity as identities
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Asked, Check, each
from sparkpub.review.checks.finding import Finding, Threshold
from sparkpub.review.checks.view import View
from sparkpub.review.physics import (
    THROUGHPUT,
    bandwidth,
    batch_of,
    read_per_step,
    traffic,
)
from sparkpub.review.reviewed import Cell

SAME_NUMBERS_SHARE = Threshold(
    "same numbers share",
    0.02,
    "Two models have the same throughput where their means, two standard errors included, lie within this share.",
)
SAME_NUMBERS_BYTES_RATIO = Threshold(
    "same numbers bytes ratio",
    1.5,
    "Ratio of bytes read per step from which memory-bound throughput must differ. The larger model has to need half of "
    "the machine's bandwidth: below that, something else may limit both, such as kernel launches.",
)


def _contradicted(_view: View, stored: Stored) -> Iterator[str]:
    """What the evidence of a run shows of another model."""
    record = stored.record
    problems = identities.contradictions(
        record.requested, record.observed, record.metrics
    )
    if problems:
        yield f"of {record.requested.model_id}, {'; '.join(problems)}"


def _silent(view: View, stored: Stored) -> Iterator[str]:
    """Runs of language models that show none, not even as the name that a server which was there before gives it."""
    record = stored.record
    is_named = is_of_running_server(record) and record.observed.model_path
    if record.value(THROUGHPUT) is None or is_named:
        return
    shown = identities.shown(record.observed, record.metrics)
    if not shown and not any(_contradicted(view, stored)):
        yield ""


def same_numbers(view: View) -> Iterator[Finding]:
    """Models of very different size with the same throughput: one of them, or none, is what it is called."""
    sizes: dict[Cell, float] = {}
    for (cell, metric), row in view.cells.items():
        record = view.counted[cell][0].record
        batch = batch_of(record) if metric == THROUGHPUT and row.n > 1 else None
        step = read_per_step(record, batch) if batch else None
        if step is not None:
            sizes[cell] = step.expected
    alike = []
    for small, large in combinations(sorted(sizes, key=lambda cell: sizes[cell]), 2):
        one, other = (view.cells[cell, THROUGHPUT] for cell in (small, large))
        error = math.sqrt(one.sd**2 / one.n + other.sd**2 / other.n)
        flow = traffic(record := view.counted[large][0].record)
        has_room = flow is not None and flow.expected < 0.5 * (bandwidth(record) or 0)
        ratio = sizes[large] / sizes[small]
        if (
            small[1:] == large[1:]
            and ratio > SAME_NUMBERS_BYTES_RATIO
            and abs(one.mean - other.mean) + 2 * error <= SAME_NUMBERS_SHARE * one.mean
            and not has_room
        ):
            alike.append((ratio, small, large))
    if alike:
        ratio, *clearest = max(alike)
        first, then = (
            f"{cell[0]} ({view.cells[cell, THROUGHPUT].mean:.1f} tok/s)"
            for cell in clearest
        )
        text = (
            f"{first} and {then} have the same output throughput in {'/'.join(clearest[0][1:])}, although one reads "
            f"{ratio:.1f} times the bytes of the other in every step."
        )
        cells = [cell for _, *both in alike for cell in both]
        yield view.concerning("same-numbers", "error", text, cells)


CHECKS = (
    Check(
        "identity",
        "Did the requested model run?",
        asked=(
            Asked(
                "showed another model than was asked for",
                each(_contradicted),
                "error",
            ),
            Asked(
                "showed nothing of which model ran: the name is what was asked for, not what was seen",
                each(_silent),
            ),
        ),
        remedy="Keep the server's log, which names the model that it loaded, and correct a name that is wrong.",
    ),
    Check(
        "same-numbers",
        "Do different models have different throughput?",
        ("error",),
        same_numbers,
        remedy="Look in the log for the model that each run loaded.",
    ),
)
