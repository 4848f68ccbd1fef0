"""Whether figures of memory add up: parts within wholes, bytes that are said twice, GB taken for GiB."""

import math
from collections.abc import Iterator

from sparkpub.record.metrics import GIB, mixed_units
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import of_each_run
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View

MEMORY_TOLERANCE = Threshold(
    "memory tolerance",
    0.01,
    "Allowed relative difference between two figures for the same memory, because logs round to two decimals.",
)
MEMORY_SLACK_GIB = Threshold(
    "memory slack gib",
    0.05,
    "GiB by which a part may exceed its total, because the two are read at different times.",
)

_WITHIN = (
    ("weights_gib", "allocated_peak_gib"),
    ("allocated_peak_gib", "reserved_peak_gib"),
    ("reserved_peak_gib", "device_used_peak_gib"),
    ("device_used_before_gib", "device_used_loaded_gib"),
    ("device_used_loaded_gib", "device_used_peak_gib"),
    ("device_used_peak_gib", "gpu_memory_peak_gib"),
)
"""A part, and the whole that it lies in."""
_SAMPLED_SLACK_GIB = 1.0
"""A peak between two samples is not seen."""


def _problems(_view: View, stored: Stored) -> Iterator[str]:
    record, value = stored.record, stored.record.value
    for part, whole in _WITHIN:
        small, large = value(part), value(whole)
        slack = (
            _SAMPLED_SLACK_GIB if whole == "gpu_memory_peak_gib" else MEMORY_SLACK_GIB
        )
        if small is not None and large is not None and small > large + slack:
            yield f"{part} is {small:.2f} GiB, more than {whole} of {large:.2f} GiB{mixed_units(small, large)}"
    yield from _sums(record)
    yield from _said_twice(record)


def _sums(record: Record) -> Iterator[str]:
    """Weights and KV cache lie side by side in what was allocated."""
    weights, cache = record.value("weights_gib"), record.value("kv_cache_gib")
    held = record.value("allocated_peak_gib")
    if (
        weights is not None
        and cache is not None
        and held is not None
        and weights + cache > held + MEMORY_SLACK_GIB
    ):
        yield (
            f"weights of {weights:.2f} GiB and a KV cache of {cache:.2f} GiB are more than the {held:.2f} GiB "
            f"allocated{mixed_units(weights + cache, held)}"
        )


def _said_twice(record: Record) -> Iterator[str]:
    """The same memory in two figures: bytes and GiB, tokens and GiB."""
    weights, weight_bytes = record.value("weights_gib"), record.observed.weight_bytes
    pairs = []
    if weights is not None and weight_bytes is not None:
        pairs.append(("weights_gib", weights, "the weights' bytes", weight_bytes / GIB))
    cache, tokens = record.value("kv_cache_gib"), record.value("kv_cache_tokens")
    per_token = record.value("kv_bytes_per_token") or record.observed.kv_bytes_per_token
    if cache is not None and tokens is not None and per_token is not None:
        pairs.append(
            (
                "kv_cache_gib",
                cache,
                "tokens × bytes per token",
                tokens * per_token / GIB,
            )
        )
    for name, said, other, counted in pairs:
        if not math.isclose(
            said, counted, rel_tol=MEMORY_TOLERANCE, abs_tol=float(MEMORY_SLACK_GIB)
        ):
            yield f"{name} is {said:.2f} GiB, and {other} are {counted:.2f} GiB{mixed_units(said, counted)}"


CHECKS = (
    of_each_run(
        "memory-bookkeeping",
        "meaning",
        "error",
        "Do the memory figures add up?",
        _problems,
        (
            "has memory figures that do not add up",
            "have memory figures that do not add up",
        ),
        thresholds=(MEMORY_TOLERANCE, MEMORY_SLACK_GIB),
        remedy="Check whether the source of the figures means GB or GiB.",
    ),
)
