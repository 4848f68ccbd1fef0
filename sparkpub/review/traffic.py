"""The memory traffic that a run's throughput implies: what a decode step reads, and what the machine's memory carries.

An engine reads every weight that takes part in a token, once per step and batch. How many bytes that is, the model's
architecture says; else the weights that a dense model loaded; else, roughly, the parameters that the publisher states.
"""

import re
from typing import NamedTuple

from sparkpub.plan.requested import load_of
from sparkpub.record import catalogue
from sparkpub.record.identity import expected
from sparkpub.record.record import Observed, Record
from sparkpub.review.models import stated_sizes
from sparkpub.review.setup import setup_of
from sparkpub.review.statistics import physics

THROUGHPUT = "output_throughput_tok_s"
EMBEDDING_SHARE = 0.2
"""Share of a dense model's weights that a step may not read: the input embedding, 7 % of Llama 3 8B and of Qwen2.5 7B
in 16 bits, more where only it is not quantised."""
BEYOND_CACHES = 2**30
"""Bytes from which weights fit in no cache of a GPU, so that each step reads them from memory."""
DENSE_FAMILIES = frozenset(
    {"llama", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "phi3", "mistral3"}
)
"""Architectures of llama.cpp without experts, where the size does not name any."""
_DENSE_SIZE = re.compile(r"[\d.]+[BM] ")


class Traffic(NamedTuple):
    """Bytes per second: at least, and as expected of a mixture of experts."""

    at_least: float
    expected: float


def machine_of(record: Record) -> catalogue.MachineFacts | None:
    """What the catalogue knows of the machine of a run."""
    names = [
        record.machine.kind,
        *(catalogue.machine_kind(gpu.name) for gpu in record.machine.gpus),
    ]
    known = catalogue.machines()
    return next((known[name] for name in names if name and name in known), None)


def bandwidth(record: Record) -> float | None:
    """Nominal memory bandwidth of the machine in bytes per second; None where nothing says what machine it was."""
    facts = machine_of(record)
    return None if facts is None else float(facts.bandwidth_bytes_s)


def devices(record: Record) -> int:
    """How many GPUs served a run together."""
    return max(1, len(record.machine.gpus)) * (record.machine.count or 1)


def batch_of(record: Record) -> int | None:
    """Most sequences that one step can have held; None where neither the run nor its options say."""
    load = load_of(record)
    batch = record.observed.batch_size or load.batch
    known = [bound for bound in (batch, load.at_once) if bound is not None]
    return min(known, default=None)


def traffic(record: Record) -> Traffic | None:
    """What a run's throughput implies; None where batch, model or throughput is unknown, or speculative decoding makes
    steps uncountable."""
    throughput, batch = record.value(THROUGHPUT), batch_of(record)
    if throughput is None or batch is None or record.observed.speculative_decoding:
        return None
    per_step = read_per_step(record, batch)
    if per_step is None:
        return None
    load = load_of(record)
    tokens = record.observed.output_tokens_mean or load.output_tokens
    requests = record.observed.requests or load.requests
    if "requests" in record.requested.disputed or not tokens:
        requests = None
    least, likely = (
        physics.implied_bandwidth(throughput, step, batch, float(tokens or 1), requests)
        for step in (per_step.at_least, per_step.expected)
    )
    return Traffic(least, likely)


def read_per_step(record: Record, batch: int) -> physics.Bytes | None:
    """Bytes of weights that a decode step reads: by the model's architecture, else by the weights that a dense model of
    llama.cpp loaded, most of which every step reads whatever their format."""
    known = expected(record.requested)
    if known is not None and (found := physics.bytes_per_step(known, batch)):
        return found
    weights = record.observed.weight_bytes
    if weights is None or weights < BEYOND_CACHES or not is_dense(record.observed):
        return None
    return physics.Bytes((1 - EMBEDDING_SHARE) * weights, float(weights))


def is_dense(seen: Observed) -> bool:
    """Whether llama.cpp says that its model has no experts: "llama 8B F16", "qwen2 7B Q4_K - Medium"; with experts,
    "llama 8x7B Q4_0" and "qwen3moe 30B.A3B Q8_0"."""
    family, _, rest = seen.settings.get("model_type", "").partition(" ")
    is_known = seen.engine == "llama.cpp" and family in DENSE_FAMILIES
    return is_known and _DENSE_SIZE.match(rest) is not None


class Stated(NamedTuple):
    """What the publisher states of a model: the parameters that take part in a token, and their bytes in the format of
    the weights. Nominal numbers: caches, activations and parts in another format are not in them."""

    parameters: float
    bytes_per_token: float


def stated(record: Record) -> Stated | None:
    """The numbers of one request at once on one machine, which reads everything for each token; None for other loads,
    and where no name or card says them."""
    if load_of(record).at_once != 1 or (record.machine.count or 1) > 1:
        return None
    if record.observed.speculative_decoding:
        return None
    active = active_parameters(record)
    if active is None:
        return None
    size = physics.nominal_bytes(active, setup_of(record).quantization or "")
    return None if size is None else Stated(active, size)


def active_parameters(record: Record) -> float | None:
    """The parameters that take part in a token, in the publisher's words; None where they say none."""
    model_id = record.requested.model_id
    build = catalogue.builds().get(model_id)
    if build is not None and build.active_parameters is not None:
        return float(build.active_parameters)
    known = expected(record.requested)
    if known is not None and known.active_parameters is not None:
        return float(known.active_parameters)
    sizes = stated_sizes(model_id.rpartition("/")[2])
    return sizes.get("A") or sizes.get("E") or sizes.get("")
