"""What memory and arithmetic allow: bounds that no measurement can pass.

In each decode step an engine reads every weight that the step needs, once for the whole batch, and the keys and
values of every sequence. So steps per second times bytes per step cannot exceed the memory's bandwidth, and weights
plus KV cache cannot exceed its size. (Pope et al. 2022, Efficiently Scaling Transformer Inference, section 2.)
Each token, of a prompt or of an answer, is multiplied with every parameter that takes part in it. (Kaplan et al. 2020,
Scaling Laws for Neural Language Models, section 2.1.)
Bytes are bytes; GiB is 2**30.
"""

import math
from dataclasses import dataclass

from sparkpub.record.record import Architecture


@dataclass(frozen=True)
class Bytes:
    """Bytes read per decode step: `at_least` whatever the routing, `expected` with experts drawn evenly."""

    at_least: float
    expected: float


def steps(requests: int, batch: int, output_tokens: float) -> float:
    """Decode steps of a finite set of requests of fixed output length: full waves, the last one counted whole."""
    if requests < 1 or batch < 1 or output_tokens <= 0:
        raise ValueError(
            "steps need at least one request, a batch of one and one output token"
        )
    return math.ceil(requests / batch) * output_tokens


def steps_per_second(
    throughput_tok_s: float,
    batch: int,
    output_tokens: float,
    requests: int | None = None,
) -> float:
    """Decode steps per second behind an output throughput; at least throughput / batch where `requests` is None."""
    if requests is None:
        return throughput_tok_s / batch
    return (
        steps(requests, batch, output_tokens)
        * throughput_tok_s
        / (requests * output_tokens)
    )


def expert_share(
    experts: int, experts_per_token: int, batch: int
) -> tuple[float, float]:
    """Share of routed experts read in a step: at least k/E (all tokens agree), expected 1 - (1 - k/E)^batch where
    each token draws its k experts evenly and on its own."""
    share = experts_per_token / experts
    return share, 1 - (1 - share) ** batch


def bytes_per_step(model: Architecture, batch: int) -> Bytes | None:
    """Bytes of weights that a decode step reads at that batch; None where the facts are missing.

    A dense model reads `dense_bytes_per_step`; without that fact its weights bound nothing, as the input embedding
    inside them is not read whole. Keys and values come on top, as long as their context is.
    """
    if model.dense_bytes_per_step is None:
        return None
    dense = model.dense_bytes_per_step
    if not model.expert_bytes:
        return Bytes(dense, dense)
    if model.experts is None or model.experts_per_token is None:
        return None
    least, expected = expert_share(model.experts, model.experts_per_token, batch)
    return Bytes(
        dense + least * model.expert_bytes, dense + expected * model.expert_bytes
    )


def implied_bandwidth(
    throughput_tok_s: float,
    step_bytes: float,
    batch: int,
    output_tokens: float,
    requests: int | None = None,
) -> float:
    """Bytes per second that an output throughput implies. Not for speculative decoding: several tokens a step."""
    return (
        steps_per_second(throughput_tok_s, batch, output_tokens, requests) * step_bytes
    )


def throughput_ceiling(bandwidth: float, step_bytes: float, batch: int) -> float:
    """Highest output throughput (tok/s) that a bandwidth (bytes/s) allows with every step full."""
    return batch * bandwidth / step_bytes


def implied_flops(tokens_per_second: float, parameters: float) -> float:
    """Operations per second that so many tokens imply at least: a product and a sum for each parameter. Attention comes
    on top."""
    return 2 * parameters * tokens_per_second


BITS_PER_WEIGHT = {
    "BF16": 16.0,
    "FP16": 16.0,
    "FP8": 8.0,
    "INT8": 8.0,
    "MXFP8": 8 + 8 / 32,
    "NVFP4": 4 + 8 / 16,
    "MXFP4": 4 + 8 / 32,
}
"""Bits of a weight with its share of the scale of its block: 8 bits for 16 weights in NVFP4 (NVIDIA 2025, Pretraining
Large Language Models with NVFP4, section 2), for 32 in the MX formats (OCP Microscaling Formats 1.0, table 1)."""


def nominal_bytes(parameters: float, weights: str) -> float | None:
    """Bytes of so many parameters, were all of them in this format; None for a format that is not known."""
    bits = BITS_PER_WEIGHT.get(weights.upper())
    return None if bits is None else parameters * bits / 8
