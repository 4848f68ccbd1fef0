"""Whether the machine's memory can carry what a throughput implies."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View, label
from sparkpub.review.reviewed import Cell
from sparkpub.review.setup import setup_of
from sparkpub.review.traffic import EMBEDDING_SHARE as EMBEDDING
from sparkpub.review.traffic import (
    THROUGHPUT,
    Traffic,
    bandwidth,
    batch_of,
    machine_of,
    read_per_step,
    stated,
    traffic,
)

ROOFLINE_SUSPICIOUS = Threshold(
    "roofline suspicious",
    0.85,
    "Share of the nominal bandwidth from which a throughput is suspicious: good engines reach 60 to 85 %.",
)
STATED_SUSPICIOUS = Threshold(
    "stated suspicious",
    1.2,
    "The same where only the publisher's number of parameters and the format are known: names round, and not every "
    "part is in that format. On 257 loads of a DGX Spark it was 0.94 at most.",
)
EMBEDDING_SHARE = Threshold(
    "embedding share",
    EMBEDDING,
    "Share of a dense model's weights that a step may not read: the input embedding, 7 % of Llama 3 8B and of "
    "Qwen2.5 7B in 16 bits, more where only it is not quantised.",
)

_IMPOSSIBLE = "A different model must have run"
_CLOSE = "Engines rarely come that close"
_AS_STATED = "That is by name and format: look whether fewer parameters, or other weights than {}, were served"


class Needed(NamedTuple):
    """The traffic that a cell needs, as a share of what its machine's memory carries; means over `n` runs."""

    share: float
    flow: Traffic
    limit: float
    n: int


def roofline(view: View) -> Iterator[Finding]:
    """Cells whose throughput needs more memory traffic than the machine can carry, or nearly all of it, and runs whose
    first tokens came too soon."""
    found: dict[tuple[Severity, str], dict[Cell, Needed]] = defaultdict(dict)
    for cell, runs in view.counted.items():
        limits = [limit for run in runs if (limit := _limit(view, run))]
        if not limits:
            continue
        limit, verdict = fmean(limits), None
        flows = [flow for run in runs if (flow := traffic(run.record))]
        if flows:
            verdict = _by_architecture(flows, limit)
        elif by_name := [flow for run in runs if (flow := _as_stated(run.record))]:
            flows = by_name
            verdict = _by_name(runs[0].record, flows, limit)
        if verdict is not None:
            severity, end, share = verdict
            found[severity, end][cell] = Needed(share, _mean(flows), limit, len(flows))
    for (severity, end), cells in found.items():
        yield _overload(view, severity, end, cells)
    yield from view.faulty(
        "roofline",
        "error",
        lambda run: _first_token_too_soon(view, run),
        "has first tokens that came before the weights can have been read once",
        "have first tokens that came before the weights can have been read once",
    )
    yield from view.unjudged("roofline", _unjudged(view))


def _by_architecture(
    flows: Sequence[Traffic], limit: float
) -> tuple[Severity, str, float] | None:
    """Severity, what follows and the share of the bandwidth: of the bound that cannot be doubted for an error."""
    flow = _mean(flows)
    if flow.at_least > limit:
        return "error", _IMPOSSIBLE, flow.at_least / limit
    if flow.expected >= ROOFLINE_SUSPICIOUS * limit:
        return "warning", _CLOSE, flow.expected / limit
    return None


def _by_name(
    record: Record, flows: Sequence[Traffic], limit: float
) -> tuple[Severity, str, float] | None:
    """The same, where nothing but the publisher's numbers is known."""
    share = _mean(flows).expected / limit
    if share < STATED_SUSPICIOUS:
        return None
    return "warning", _AS_STATED.format(setup_of(record).weights), share


def _as_stated(record: Record) -> Traffic | None:
    throughput, size = record.value(THROUGHPUT), stated(record)
    if throughput is None or size is None:
        return None
    return Traffic(0.0, throughput * size.bytes_per_token)


def _mean(flows: Sequence[Traffic]) -> Traffic:
    least, expected = zip(*flows, strict=True)
    return Traffic(fmean(least), fmean(expected))


def _limit(view: View, stored: Stored) -> float | None:
    """The bandwidth of all GPUs of a run at the memory clock that its samples show; the nominal one where they show
    none."""
    facts, samples = machine_of(stored.record), view.evidence.of(stored).samples
    if facts is None:
        return None
    machine = stored.record.machine
    devices = max(1, len(machine.gpus)) * (machine.count or 1)
    nominal = float(facts.bandwidth_bytes_s) * devices
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


def _overload(
    view: View, severity: Severity, end: str, cells: Mapping[Cell, Needed]
) -> Finding:
    worst = max(cells, key=lambda cell: cells[cell].share)
    share, flow, limit, n = cells[worst]
    text = (
        f"The throughput of {label(worst)} would need {share * limit / 1e9:,.0f} GB/s of memory traffic, "
        f"{100 * share:,.0f} % of the {limit / 1e9:,.0f} GB/s that the machine has. {end}."
    )
    return view.concerning(
        "roofline",
        severity,
        text,
        list(cells),
        cases=len(cells),
        n=n,
        batch=batch_of(view.counted[worst][0].record),
        bytes_per_second_at_least=flow.at_least,
        bytes_per_second_expected=flow.expected,
        bandwidth_bytes_per_second=limit,
        share_by_cell={label(cell): needed.share for cell, needed in cells.items()},
    )


def _unjudged(view: View) -> dict[str, list[Stored]]:
    """The runs of language models whose traffic nothing tells, by the fact that is missing."""
    unknown: dict[str, list[Stored]] = defaultdict(list)
    for runs in view.counted.values():
        for run in runs:
            missing = _missing(run.record)
            if missing is not None:
                unknown[missing].append(run)
    return unknown


def _missing(record: Record) -> str | None:
    if record.value(THROUGHPUT) is None:
        return None
    if bandwidth(record) is None:
        return "the memory bandwidth of the machine, which is not in the catalogue"
    if record.observed.speculative_decoding:
        return "the number of decode steps, which speculative decoding hides"
    if stated(record) is not None:
        return None
    if batch_of(record) is None:
        return "the batch size"
    if read_per_step(record, 1) is None:
        return "the bytes that the model reads per step"
    return None


CHECKS = (
    Check(
        "roofline",
        "meaning",
        ("error", "warning"),
        "Is the throughput possible with the machine's memory bandwidth?",
        roofline,
        thresholds=(ROOFLINE_SUSPICIOUS, STATED_SUSPICIOUS, EMBEDDING_SHARE),
        remedy="Look in the log for model, batch size and number of requests before you publish.",
    ),
)
