"""The arithmetic that the figures of a run imply: tokens computed per second, and what each of them takes.

A prompt is computed in one go, so that arithmetic bounds it, not memory. Tokens that a cache gave cost nothing: they
are left out where the run says how many they were.
"""

from collections.abc import Iterator
from typing import NamedTuple

from sparkpub.plan.requested import load_of, options_of
from sparkpub.record import weights
from sparkpub.record.identity import expected
from sparkpub.record.record import Record
from sparkpub.review.setup import setup_of
from sparkpub.review.statistics import physics
from sparkpub.review.traffic import (
    THROUGHPUT,
    active_parameters,
    devices,
    is_dense,
    machine_of,
)

HEAD_SHARE = 1 / 3
"""Share of a model's parameters that a token of a prompt may not use: input embedding and output head, 14 % of Qwen2.5
7B; small models have larger shares."""


class Computed(NamedTuple):
    """What a metric of a run says of its tokens: how many were computed per second."""

    metric: str
    tokens_per_second: float


class Peak(NamedTuple):
    """Operations per second of a run's machine: at most in any format, and with numbers as wide as the weights."""

    any_format: float
    own_format: float


class Operations(NamedTuple):
    """Operations per token: at least, and with every parameter that takes part."""

    at_least: float
    expected: float
    by_name: bool
    """Whether nothing but the publisher's number of parameters is known."""


def computed(record: Record) -> Iterator[Computed]:
    """The figures of a run that tell how fast tokens were computed, of prompts or of all."""
    share = share_computed(record)
    prompts = record.value("prompt_throughput_tok_s")
    if prompts is not None:
        yield Computed("prompt_throughput_tok_s", share * prompts)
    output = record.value(THROUGHPUT)
    if output is not None:
        total = record.value("total_throughput_tok_s") or output
        yield Computed(THROUGHPUT, output + share * (total - output))
    load = load_of(record)
    tokens = record.observed.input_tokens_mean or load.input_tokens
    for name in ("ttft_mean_ms", "ttft_p50_ms"):
        first = record.value(name)
        if tokens and first:
            # The first tokens of a static batch come when all of its prompts are computed.
            together = (load.at_once or 1) if load.is_in_step else 1
            yield Computed(name, share * tokens * together / (first / 1e3))
            return


def share_computed(record: Record) -> float:
    """The share of the prompts' tokens that no cache gave; 0 where they came from one and nothing says how many."""
    if options_of(record).get("prefix_caching"):
        return 0.0
    return 1 - (record.value("prefix_cache_hit_percent") or 0.0) / 100


def peak(record: Record) -> Peak | None:
    """What all GPUs of a run's machine compute at most; None where nothing says what machine it was."""
    facts = machine_of(record)
    if facts is None:
        return None
    fastest = max(facts.peak_8_bit_flops, facts.peak_4_bit_flops or 0)
    width = weights.bits(setup_of(record).quantization) or 0
    own = fastest
    if width >= 16:
        own = facts.peak_16_bit_flops
    elif width >= 8:
        own = facts.peak_8_bit_flops
    return Peak(float(fastest * devices(record)), float(own * devices(record)))


def operations(record: Record) -> Operations | None:
    """What a token takes; None where nothing says how many parameters take part."""
    known, seen = expected(record.requested), record.observed
    taking_part = None if known is None else known.active_parameters
    if taking_part is None and known is not None and not known.experts:
        taking_part = known.parameters
    if taking_part is None and is_dense(seen):
        taking_part = seen.parameters
    by_name = taking_part is None
    count = active_parameters(record) if taking_part is None else float(taking_part)
    if count is None:
        return None
    whole = physics.implied_flops(1.0, count)
    return Operations((1 - HEAD_SHARE) * whole, whole, by_name)
