"""Whether the machine's memory can carry what a throughput implies, and its tensor cores compute it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from sparkpub.record.metrics import METRICS
from sparkpub.record.store import Stored
from sparkpub.review import physics
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View, ids, label
from sparkpub.review.physics import (
    Operations,
    Peak,
    batch_of,
    computed,
    devices,
    machine_of,
    operations,
    peak,
    read_per_step,
    traffic,
)
from sparkpub.review.reviewed import Cell
from sparkpub.review.setup import setup_of

ROOFLINE_SUSPICIOUS = Threshold(
    "roofline suspicious",
    physics.SUSPICIOUS,
    "Share of the nominal bandwidth from which a throughput is suspicious: good engines reach 60 to 85 %. Of the "
    "nominal operations per second, 1,640 runs on a DGX Spark and a GPU of a data centre reached 64 %, but for two "
    "with rates over a part of the time.",
)
STATED_SUSPICIOUS = Threshold(
    "stated suspicious",
    physics.SUSPICIOUS_NOMINAL,
    "The same where only the publisher's number of parameters is known, which a name rounds.",
)
EMBEDDING_SHARE = Threshold(
    "embedding share",
    physics.EMBEDDING_SHARE,
    "Share of a dense model's weights that a step may not read: the input embedding, 7 % of Llama 3 8B and of "
    "Qwen2.5 7B in 16 bits, more where only it is not quantised.",
)
HEAD_SHARE = Threshold(
    "head share",
    physics.HEAD_SHARE,
    "Share of a model's parameters that a token of a prompt may not use: input embedding and output head, 14 % of "
    "Qwen2.5 7B, more in small models.",
)

_IMPOSSIBLE = "A different model must have run"
_CLOSE = "Engines rarely come that close: the weights may have fewer bits, or fewer parameters, than the record says"
_AS_STATED = "That is by name and format: look whether fewer parameters, or other weights than {}, were served"
_NOT_COMPUTED = "No format is that fast: these tokens came from a cache, another model ran, or the time is too short"
_TOO_FAST = (
    "Prompts may have come from a cache, the client may have left time out, or the model has fewer parameters or "
    "narrower numbers than the record says"
)


class Needed(NamedTuple):
    """What a figure of a cell needs of its machine, over `n` runs, as a share of what that has."""

    severity: Severity
    end: str
    """What follows."""
    share: float
    figure: str
    amount: str
    limit: str
    n: int
    numbers: dict[str, Any]


def roofline(view: View) -> Iterator[Finding]:
    """Cells whose figures need more memory traffic or arithmetic than the machine has, or nearly all of it, and runs
    whose first tokens came too soon."""
    found: dict[tuple[Severity, str, str], dict[Cell, Needed]] = defaultdict(dict)
    for cell, runs in view.counted.items():
        both = [each for each in (_memory(view, runs), _arithmetic(runs)) if each]
        # What makes one of them impossible makes the other suspicious, or impossible, too.
        errors = [needed for needed in both if needed.severity == "error"]
        for needed in errors[:1] or both:
            found[needed.severity, needed.end, needed.figure][cell] = needed
    for (severity, end, _), cells in found.items():
        yield _overload(view, severity, end, cells)
    yield from view.faulty(
        "roofline",
        "error",
        _first_token_too_soon,
        "has first tokens that came before the weights can have been read once",
        "have first tokens that came before the weights can have been read once",
    )


# -- memory ------------------------------------------------------------------------------------------------------


def _memory(view: View, runs: Sequence[Stored]) -> Needed | None:
    """The traffic that the throughput of a cell needs, where that is too much."""
    limits = [limit for run in runs if (limit := _limit(view, run))]
    if not limits:
        return None
    limit = fmean(limits)
    flows = [flow for run in runs if (flow := traffic(run.record))]
    if not flows:
        return None
    least, likely, steps = zip(*flows, strict=True)
    at_least, expected = fmean(least), fmean(likely)
    severity: Severity = "warning"
    share, end = expected / limit, _CLOSE
    if at_least > limit:
        # The bound that cannot be doubted.
        severity, share, end = "error", at_least / limit, _IMPOSSIBLE
    elif share < steps[0].suspicious:
        return None
    elif steps[0].is_nominal:
        end = _AS_STATED.format(setup_of(runs[0].record).weights)
    amount = f"{share * limit / 1e9:,.0f} GB/s of memory traffic"
    has = f"{limit / 1e9:,.0f} GB/s that the machine has"
    numbers = {
        "batch": batch_of(runs[0].record),
        "bytes_per_second_at_least": at_least,
        "bytes_per_second_expected": expected,
        "bandwidth_bytes_per_second": limit,
    }
    return Needed(severity, end, share, "throughput", amount, has, len(flows), numbers)


def _limit(view: View, stored: Stored) -> float | None:
    """The bandwidth of all GPUs of a run at the memory clock that its samples show; the nominal one where they show
    none."""
    facts, samples = machine_of(stored.record), view.evidence.of(stored).samples
    if facts is None:
        return None
    nominal = float(facts.bandwidth_bytes_s) * devices(stored.record)
    clock = None if samples is None else samples.clock("gpu_clock_mem_mhz")
    if clock is None or facts.memory_clock_mhz is None:
        return nominal
    return nominal * min(1.0, clock / facts.memory_clock_mhz)


def _first_token_too_soon(view: View, stored: Stored) -> Iterator[str]:
    """A TTFT below the time that one pass over the weights takes: what came was not a token."""
    first = stored.record.value("ttft_p50_ms")
    limit, weights = _limit(view, stored), read_per_step(stored.record, 1)
    if first is None or limit is None or weights is None:
        return
    least = 1e3 * weights.at_least / limit
    if first < least:
        yield f"{first:.3g} ms, and {weights.at_least / 1e9:.3g} GB take {least:.3g} ms"


# -- arithmetic --------------------------------------------------------------------------------------------------


def _arithmetic(runs: Sequence[Stored]) -> Needed | None:
    """The arithmetic that a cell needs by the figure that needs most, where that is too much."""
    if not runs:
        return None
    token, most = operations(runs[0].record), peak(runs[0].record)
    if token is None or most is None:
        return None
    rates: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        for metric, rate in computed(run.record):
            rates[metric].append(rate)
    found = [_too_fast(metric, token, most, rate) for metric, rate in rates.items()]
    told = [needed for needed in found if needed is not None]
    errors = [needed for needed in told if needed.severity == "error"]
    return max(errors or told, key=lambda needed: needed.share, default=None)


def _too_fast(
    metric: str, token: Operations, most: Peak, rates: Sequence[float]
) -> Needed | None:
    """What tokens computed at these rates need, where that is too much: of the bound that cannot be doubted for an
    error."""
    least, likely = (each * fmean(rates) for each in (token.at_least, token.expected))
    severity: Severity
    if least > most.any_format and not token.is_nominal:
        severity, end, needed, limit = "error", _NOT_COMPUTED, least, most.any_format
        where = "in any format"
    elif likely >= token.suspicious * most.own_format:
        severity, end, needed, limit = "warning", _TOO_FAST, likely, most.own_format
        where = "with numbers as wide as its weights"
    else:
        return None
    amount = f"{needed / 1e12:,.0f} TFLOP/s"
    has = f"{limit / 1e12:,.0f} TFLOP/s that the machine has {where}"
    numbers = {
        "metric": metric,
        "tokens_per_second": fmean(rates),
        "operations_per_token": token.expected,
        "operations_per_token_at_least": token.at_least,
        "peak_operations_per_second": limit,
    }
    figure = METRICS[metric].within_sentence
    share = needed / limit
    return Needed(severity, end, share, figure, amount, has, len(rates), numbers)


def _overload(
    view: View, severity: Severity, end: str, cells: Mapping[Cell, Needed]
) -> Finding:
    worst = max(cells, key=lambda cell: cells[cell].share)
    needed = cells[worst]
    text = (
        f"The {needed.figure} of {label(worst)} would need {needed.amount}, {100 * needed.share:,.0f} % of the "
        f"{needed.limit}. {end}."
    )
    return view.concerning(
        "roofline",
        severity,
        text,
        list(cells),
        cases=len(cells),
        n=needed.n,
        runs=[run for cell in cells for run in ids(view.counted[cell])],
        share_by_cell={label(cell): each.share for cell, each in cells.items()},
        **needed.numbers,
    )


CHECKS = (
    Check(
        "roofline",
        "meaning",
        ("error", "warning"),
        "Are the figures possible with the machine's memory bandwidth and arithmetic?",
        roofline,
        thresholds=(
            ROOFLINE_SUSPICIOUS,
            STATED_SUSPICIOUS,
            EMBEDDING_SHARE,
            HEAD_SHARE,
        ),
        remedy="Look in the log for the model, its weights, cached prompts and the number of requests.",
    ),
)
