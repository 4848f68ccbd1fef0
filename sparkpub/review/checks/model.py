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

IDENTITY_TOLERANCE = identities.TOLERANCE
"""Allowed relative difference in parameters or KV bytes per token, because logs round."""
WEIGHTS_TOLERANCE = identities.WEIGHTS_TOLERANCE
"""Allowed relative difference in weight bytes, because of padding and unquantised layers: TensorRT-LLM loads 4 % more
than the files of gpt-oss-120b contain."""
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
    for cell, runs in view.counted.items():
        row = view.cells.get((cell, THROUGHPUT))
        batch = batch_of(runs[0].record) if row is not None and row.n > 1 else None
        step = read_per_step(runs[0].record, batch) if batch else None
        if step is not None:
            sizes[cell] = step.expected
    alike = [
        (sizes[large] / sizes[small], small, large)
        for small, large in combinations(sorted(sizes, key=lambda it: sizes[it]), 2)
        if small[1:] == large[1:]
        and sizes[large] > SAME_NUMBERS_BYTES_RATIO * sizes[small]
        and _is_alike(view, small, large)
    ]
    if not alike:
        return
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


def _is_alike(view: View, small: Cell, large: Cell) -> bool:
    """Whether two cells have one throughput, of which the larger model needs half of the machine's bandwidth."""
    one, other = (view.cells[cell, THROUGHPUT] for cell in (small, large))
    error = math.sqrt(one.sd**2 / one.n + other.sd**2 / other.n)
    record = view.counted[large][0].record
    flow, limit = traffic(record), bandwidth(record)
    if flow and limit and flow.expected < 0.5 * limit:
        return False
    return bool(abs(one.mean - other.mean) + 2 * error <= SAME_NUMBERS_SHARE * one.mean)


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
