"""What memory and arithmetic allow, and what the figures of a run need of them. Bytes are bytes; GiB is 2**30.

In each decode step an engine reads every weight that the step needs, once for the whole batch. So steps per second
times bytes per step cannot exceed the memory's bandwidth. (Pope et al. 2022, Efficiently Scaling Transformer Inference,
section 2.) Each token, of a prompt or of an answer, is multiplied with every parameter that takes part in it: a product
and a sum. (Kaplan et al. 2020, Scaling Laws for Neural Language Models, section 2.1.) A prompt is computed in one go,
so that arithmetic bounds it, not memory.

A checkpoint in a narrow format keeps parts of it wide: attention and output head of gpt-oss have 16 bits beside experts
of 4. So the bytes of a step are known by part, from the checkpoint's own files or the catalogue, or all parts are 16
bits wide; else they are not known. Caches and activations come on top.
"""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from sparkpub.plan.requested import load_of, options_of
from sparkpub.record import catalogue, weights
from sparkpub.record.identity import expected
from sparkpub.record.record import Architecture, Observed, Record
from sparkpub.review.models import stated_sizes
from sparkpub.review.setup import setup_of

THROUGHPUT = "output_throughput_tok_s"
EMBEDDING_SHARE = 0.2
"""Share of a dense model's weights that a step may not read: the input embedding, 7 % of Llama 3 8B and of Qwen2.5 7B
in 16 bits, more where only it is not quantised."""
SUSPICIOUS, SUSPICIOUS_NOMINAL = 0.85, 1.2
"""Shares of what a machine has from which a figure is not plausible; the second where only the publisher's number of
parameters is known, which a name rounds."""
BEYOND_CACHES = 2**30
"""Bytes from which weights fit in no cache of a GPU, so that each step reads them from memory."""
DENSE_FAMILIES = frozenset(
    {"llama", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "phi3", "mistral3"}
)
"""Architectures of llama.cpp without experts, where the size does not name any."""
_DENSE_SIZE = re.compile(r"[\d.]+[BM] ")
_WIDE_BITS = 16


# -- the machine -------------------------------------------------------------------------------------------------


def machine_of(record: Record) -> catalogue.MachineFacts | None:
    """What the catalogue knows of the machine of a run."""
    kinds = (catalogue.machine_of(gpu.name) for gpu in record.machine.gpus)
    known = map(catalogue.machines().get, filter(None, (record.machine.kind, *kinds)))
    return next(filter(None, known), None)


def bandwidth(record: Record) -> float | None:
    """Nominal memory bandwidth of the machine in bytes per second; None where nothing says what machine it was."""
    facts = machine_of(record)
    return None if facts is None else float(facts.bandwidth_bytes_s)


def devices(record: Record) -> int:
    """How many GPUs served a run together."""
    return max(1, len(record.machine.gpus)) * (record.machine.count or 1)


def peak(record: Record) -> float | None:
    """Operations per second that all GPUs of a run's machine compute at most, with numbers as wide as its weights; None
    where nothing says what machine it was, or what it computes."""
    facts = machine_of(record)
    if facts is None:
        return None
    width = weights.bits(setup_of(record).quantization) or 0
    found = facts.peak_4_bit_flops or facts.peak_8_bit_flops
    if width >= _WIDE_BITS:
        found = facts.peak_16_bit_flops
    elif width >= 8:
        found = facts.peak_8_bit_flops
    return None if found is None else float(found * devices(record))


# -- memory ------------------------------------------------------------------------------------------------------


class StepBytes(NamedTuple):
    """Bytes of weights that a decode step reads: `at_least` whatever the routing, `expected` with experts drawn evenly.
    `experts` are those of `expected` that belong to routed experts."""

    at_least: float
    expected: float
    experts: float
    source: str
    """Who says so, in words."""
    is_nominal: bool = False
    """Whether it is the publisher's number of parameters, which bounds nothing."""

    @property
    def suspicious(self) -> float:
        """The share of the bandwidth from which a throughput is not plausible."""
        return SUSPICIOUS_NOMINAL if self.is_nominal else SUSPICIOUS


class Traffic(NamedTuple):
    """Bytes per second that a throughput needs: at least, and as expected of a mixture of experts."""

    at_least: float
    expected: float
    step: StepBytes


def bytes_per_step(model: Architecture, batch: int) -> StepBytes | None:
    """Of the parts that a checkpoint has; None where the facts are missing.

    A dense model reads `dense_bytes_per_step`; without that fact its weights bound nothing, as the input embedding
    inside them is not read whole. Of E experts a batch of B tokens that choose k each reads at least k/E, where all
    agree, and 1 - (1 - k/E)^B where each draws its own evenly.
    """
    dense, experts = model.dense_bytes_per_step, model.expert_bytes
    source = _SOURCES[model.source]
    if dense is None:
        return None
    if not experts:
        return StepBytes(dense, dense, 0, source)
    if model.experts is None or model.experts_per_token is None:
        return None
    share = model.experts_per_token / model.experts
    drawn = (1 - (1 - share) ** batch) * experts
    return StepBytes(dense + share * experts, dense + drawn, drawn, source)


_SOURCES = {
    "log": "the log",
    "config.json": "the checkpoint's files",
    "matrix": "the matrix",
    "catalogue": "the catalogue",
}


def read_per_step(record: Record, batch: int) -> StepBytes | None:
    """Of a run's model: by its architecture, by the weights that a dense model of llama.cpp loaded, most of which every
    step reads whatever their format, or for one sequence by the parameters that the publisher states, where all parts
    are wide. None where a narrow format leaves open how wide each part is."""
    known, seen = expected(record.requested), record.observed
    if known is not None and (found := bytes_per_step(known, batch)):
        return found
    loaded = seen.weight_bytes
    if loaded is not None and loaded >= BEYOND_CACHES and is_dense(seen):
        least = (1 - EMBEDDING_SHARE) * loaded
        return StepBytes(least, loaded, 0, "the weights that were loaded")
    width = weights.bits(setup_of(record).quantization)
    if width and loaded and seen.parameters:
        width = min(width, math.ceil(8 * loaded / seen.parameters))
    active = active_parameters(record)
    if batch > 1 or active is None or width is None or width < _WIDE_BITS:
        return None
    return StepBytes(
        0, active * width / 8, 0, "the publisher's number of parameters", True
    )


def batch_of(record: Record) -> int | None:
    """Most sequences that one step can have held; None where neither the run nor its options say."""
    load = load_of(record)
    batch = record.observed.batch_size or load.batch
    known = [bound for bound in (batch, load.at_once) if bound is not None]
    return min(known, default=None)


def traffic(record: Record) -> Traffic | None:
    """What a run's throughput implies; None where batch, bytes or throughput is unknown, or speculative decoding makes
    steps uncountable."""
    throughput, batch = record.value(THROUGHPUT), batch_of(record)
    if throughput is None or batch is None or record.observed.speculative_decoding:
        return None
    step = read_per_step(record, batch)
    if step is None or (step.is_nominal and (record.machine.count or 1) > 1):
        return None
    load = load_of(record)
    tokens = record.observed.output_tokens_mean or load.output_tokens
    requests = record.observed.requests or load.requests
    if "requests" in record.requested.disputed or not tokens or step.is_nominal:
        requests = None
    steps = steps_per_second(throughput, batch, requests)
    return Traffic(steps * step.at_least, steps * step.expected, step)


def steps_per_second(
    throughput_tok_s: float, batch: int, requests: int | None = None
) -> float:
    """Decode steps per second behind an output throughput: at least throughput / batch; of so many requests of one
    length, in waves, of which the last one counts whole."""
    if not requests:
        return throughput_tok_s / batch
    return throughput_tok_s * math.ceil(requests / batch) / requests


def is_dense(seen: Observed) -> bool:
    """Whether llama.cpp says that its model has no experts: "llama 8B F16", "qwen2 7B Q4_K - Medium"; with experts,
    "llama 8x7B Q4_0" and "qwen3moe 30B.A3B Q8_0"."""
    family, _, rest = seen.settings.get("model_type", "").partition(" ")
    is_known = seen.engine == "llama.cpp" and family in DENSE_FAMILIES
    return is_known and _DENSE_SIZE.match(rest) is not None


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


# -- arithmetic --------------------------------------------------------------------------------------------------


def computed(record: Record) -> Iterator[tuple[str, float]]:
    """The metrics of a run that tell how fast tokens were computed, of prompts or of all: with tokens per second."""
    share = share_computed(record)
    prompts = record.value("prompt_throughput_tok_s")
    if prompts is not None:
        yield "prompt_throughput_tok_s", share * prompts
    output = record.value(THROUGHPUT)
    if output is not None:
        total = record.value("total_throughput_tok_s") or output
        yield THROUGHPUT, output + share * (total - output)
    load = load_of(record)
    tokens = record.observed.input_tokens_mean or load.input_tokens
    for name in ("ttft_mean_ms", "ttft_p50_ms"):
        first = record.value(name)
        if tokens and first:
            # The first tokens of a static batch come when all of its prompts are computed.
            together = (load.at_once or 1) if load.is_in_step else 1
            yield name, share * tokens * together / (first / 1e3)
            return


def share_computed(record: Record) -> float:
    """The share of the prompts' tokens that no cache gave; 0 where they came from one and nothing says how many."""
    if options_of(record).get("prefix_caching"):
        return 0.0
    return 1 - (record.value("prefix_cache_hit_percent") or 0.0) / 100


def operations(record: Record) -> tuple[float, float] | None:
    """What a token takes with every parameter that takes part, without attention, which comes on top, and the share of
    the machine's operations from which a rate is not plausible; None where nothing says how many parameters take
    part."""
    known, seen = expected(record.requested), record.observed
    taking_part = None if known is None else known.active_parameters
    if taking_part is None and known is not None and not known.experts:
        taking_part = known.parameters
    if taking_part is None and is_dense(seen):
        taking_part = seen.parameters
    if taking_part is not None:
        return 2.0 * taking_part, SUSPICIOUS
    stated = active_parameters(record)
    return None if stated is None else (2 * stated, SUSPICIOUS_NOMINAL)
