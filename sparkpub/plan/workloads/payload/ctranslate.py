"""Generate text with CTranslate2 and a Llama-shaped model with random weights, and report how long it took.

Runs inside the environment measured, alone. The model is made on the spot from a config.json with NumPy, by the seed,
and saved in the type that it is computed in. A batch is a number of random prompts submitted together and decoded
greedily; no end-of-sequence token is taken, so every request emits the same number of tokens. A token's time is when
CTranslate2 hands it over.
"""

import hashlib
import itertools
import json
import math
import platform
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparkpub.plan.workloads.payload import stopwatch
else:
    import stopwatch  # the clock starts before the other imports, which are part of loading

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerDecoderModelSpec, common_spec

GIB = 2**30
SPREAD = 0.02
"""Standard deviation of the weights, as Llama initialises them."""
WEIGHT_BYTES = {"float32": 4, "int16": 2, "int8": 1}


def token(index: int) -> str:
    """The word of a token in the model's vocabulary."""
    return f"t{index}"


def weights(config: dict[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The path of each weight in CTranslate2's decoder, and its shape."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    heads, shared = config["num_attention_heads"], config["num_key_value_heads"]
    projected = (heads + 2 * shared) * (hidden // heads)
    yield "embeddings.weight", (config["vocab_size"], hidden)
    yield "projection.weight", (config["vocab_size"], hidden)
    yield "layer_norm.gamma", (hidden,)
    for number in range(config["num_hidden_layers"]):
        for part, shape in {
            "self_attention.layer_norm.gamma": (hidden,),
            "self_attention.linear.0.weight": (projected, hidden),
            "self_attention.linear.1.weight": (hidden, hidden),
            "ffn.layer_norm.gamma": (hidden,),
            "ffn.linear_0.weight": (inner, hidden),
            "ffn.linear_0_noact.weight": (inner, hidden),
            "ffn.linear_1.weight": (hidden, inner),
        }.items():
            yield f"layer.{number}.{part}", shape


def place(spec: Any, path: str, value: Any) -> None:
    """Set what lies at a dotted path; a number is an index into a list."""
    *parts, last = path.split(".")
    for part in parts:
        spec = spec[int(part)] if part.isdecimal() else getattr(spec, part)
    setattr(spec, last, value)


def model(
    config: dict[str, Any], compute_type: str, seed: int
) -> TransformerDecoderModelSpec:
    """A Llama with random weights in CTranslate2's own form."""
    spec = TransformerDecoderModelSpec.from_config(
        config["num_hidden_layers"],
        config["num_attention_heads"],
        activation=common_spec.Activation.SWISH,
        pre_norm=True,
        ffn_glu=True,
        rms_norm=True,
        rotary_dim=0,
        rotary_interleave=False,
        num_heads_kv=config["num_key_value_heads"],
    )
    draw = np.random.default_rng(seed)
    spec.decoder.scale_embeddings = False
    for path, shape in weights(config):
        value = np.ones(shape, np.float32)
        if len(shape) > 1:
            value = draw.standard_normal(shape, np.float32) * np.float32(SPREAD)
        place(spec.decoder, path, value)
    spec.register_vocabulary([token(index) for index in range(config["vocab_size"])])
    spec.config.bos_token = spec.config.eos_token = spec.config.unk_token = token(0)
    spec.validate()
    spec.optimize(quantization=None if compute_type == "float32" else compute_type)
    return spec


def batch(
    generator: Any, chosen: SimpleNamespace, prompts: list[list[str]]
) -> dict[str, Any]:
    """One batch: times in ms since its submission, and the tokens that it gave."""
    times: list[float] = []
    start = time.perf_counter()

    def handed_over(step: Any) -> bool:
        if step.batch_id == 0:
            times.append(1e3 * (time.perf_counter() - start))
        return False

    results = generator.generate_batch(
        prompts,
        min_length=chosen.output_tokens,
        max_length=chosen.output_tokens,
        include_prompt_in_result=False,
        callback=handed_over,
    )
    latency = 1e3 * (time.perf_counter() - start)
    outputs = [result.sequences_ids[0] for result in results]
    steps = [after - before for before, after in itertools.pairwise(times)]
    return {
        "ttft_ms": times[0],
        "latency_ms": latency,
        "itl_ms": steps,
        "outputs": outputs,
    }


def prompts(chosen: SimpleNamespace, vocabulary: int) -> list[list[list[str]]]:
    """The prompts of each batch, warm-up included."""
    draw = np.random.default_rng(chosen.seed + 1)
    shape = (chosen.warmup + chosen.batches, chosen.batch_size, chosen.input_tokens)
    drawn = draw.integers(1, vocabulary, shape)
    return [
        [[token(index) for index in prompt] for prompt in some]
        for some in drawn.tolist()
    ]


def observed(
    chosen: SimpleNamespace,
    config: dict[str, Any],
    generator: Any,
    batches: list[dict[str, Any]],
) -> dict[str, Any]:
    """What this run proves: counted, not taken from a label. Only matrices are quantised."""
    kind = chosen.compute_type
    counts = {"float32": 0, kind: 0}
    for _, shape in weights(config):
        counts[kind if len(shape) > 1 else "float32"] += math.prod(shape)
    outputs = [output for item in batches for output in item["outputs"]]
    digest = hashlib.sha256(json.dumps(outputs[-1]).encode()).hexdigest()
    return {
        "engine": "CTranslate2",
        "engine_version": ctranslate2.__version__,
        "random_weights": True,
        "parameters": sum(counts.values()),
        "weight_bytes": sum(WEIGHT_BYTES[of] * n for of, n in counts.items()),
        "config_sha256": hashlib.sha256(Path(chosen.config).read_bytes()).hexdigest(),
        "model_type": config["model_type"],
        "layers": config["num_hidden_layers"],
        "dtype": "float32",
        "quantization": None if kind == "float32" else kind,
        "device": platform.processor() or platform.machine(),
        "requests": len(outputs),
        "input_tokens_mean": chosen.input_tokens,
        "output_tokens_mean": sum(map(len, outputs)) / len(outputs),
        "batch_size": chosen.batch_size,
        "concurrency_mean": chosen.batch_size,
        "measured_seconds": sum(item["latency_ms"] for item in batches) / 1e3,
        "settings": {
            "compute_type": generator.compute_type,
            "last_request_tokens_sha256": digest,
        },
    }


def metrics(chosen: SimpleNamespace, facts: dict[str, Any]) -> dict[str, float]:
    """Rates over the measured batches, which follow each other.

    All are of one size: the rate of a user is the throughput divided by it, and no measurement of its own.
    """
    seconds, requests = facts["measured_seconds"], facts["requests"]
    generated = requests * facts["output_tokens_mean"]
    return {
        "output_throughput_tok_s": generated / seconds,
        "total_throughput_tok_s": (generated + requests * chosen.input_tokens)
        / seconds,
        "request_throughput_req_s": requests / seconds,
        "measured_time_ms": 1e3 * seconds,
        "weights_gib": facts["weight_bytes"] / GIB,
    }


def request_times(
    chosen: SimpleNamespace, batches: list[dict[str, Any]]
) -> dict[str, Any]:
    """One entry for each request, and the times between tokens of each batch."""
    requests = [
        {
            "batch": number,
            "input_tokens": chosen.input_tokens,
            "output_tokens": len(output),
            "ttft_ms": item["ttft_ms"],
            "latency_ms": item["latency_ms"],
        }
        for number, item in enumerate(batches)
        for output in item["outputs"]
    ]
    return {"requests": requests, "itl_ms": [item["itl_ms"] for item in batches]}


def main() -> None:
    chosen = stopwatch.options()
    config = json.loads(Path(chosen.config).read_bytes())
    phases = stopwatch.Phases()

    with tempfile.TemporaryDirectory(dir=Path(chosen.report).parent) as folder:
        model(config, chosen.compute_type, chosen.seed).save(folder)
        generator = ctranslate2.Generator(
            folder, device="cpu", compute_type=chosen.compute_type
        )
    given = prompts(chosen, config["vocab_size"])
    phases.mark("load")
    for some in given[: chosen.warmup]:
        batch(generator, chosen, some)
    phases.begin_measuring()
    batches = [batch(generator, chosen, some) for some in given[chosen.warmup :]]
    phases.mark("measure")

    facts = observed(chosen, config, generator, batches)
    rates = metrics(chosen, facts)
    report = {
        "tool": "sparkpub ctranslate",
        "python": platform.python_version(),
        "metrics": rates,
        "observed": facts,
        **phases.report(),
    }
    Path(chosen.requests).write_text(json.dumps(request_times(chosen, batches)))
    Path(chosen.report).write_text(json.dumps(report, indent=1), encoding="utf-8")
    print(
        f"{facts['parameters'] / 1e9:.3f} B parameters, {chosen.compute_type}, batch {chosen.batch_size}: "
        f"{rates['output_throughput_tok_s']:.1f} output tokens/s"
    )


if __name__ == "__main__":
    main()
