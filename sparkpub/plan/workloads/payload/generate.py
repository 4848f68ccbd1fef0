"""Generate text with PyTorch and transformers, and report how long it took and what memory it cost.

Runs inside the environment measured, alone. A batch is a prefill of random prompts followed by greedy decoding with a
static key-value cache; the end-of-sequence token is ignored, so every request emits the same number of tokens. Times
of a batch are the host's, after the device has finished; times between tokens are the device's own events.

The weights come from a folder, or are random: then the model is built on the device itself, by its own initialiser
and from a fixed seed, so that logits stay finite and nothing is read from disk.
"""

import argparse
import hashlib
import importlib.metadata
import importlib.util
import itertools
import json
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparkpub.plan.workloads.payload import stopwatch
else:
    import stopwatch  # the clock starts before the other imports, which are part of loading

import torch

GIB = 2**30
NO_DEVICE = "no CUDA device was used"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--model", type=Path, help="folder with config.json and weights"
    )
    source.add_argument(
        "--config", type=Path, help="a config.json; the weights are random"
    )
    parser.add_argument(
        "--random-weights", action="store_true", help="ignore the weights of --model"
    )
    stopwatch.add_load(parser)
    parser.add_argument(
        "--dtype", choices=("bfloat16", "float16", "float32"), required=True
    )
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), required=True)
    parser.add_argument("--attention", choices=("sdpa", "eager"), required=True)
    parser.add_argument("--cuda-graph", action="store_true")
    chosen = parser.parse_args()
    if chosen.device == "auto":
        chosen.device = "cuda" if torch.cuda.is_available() else "cpu"
    if chosen.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit(
            "generate: no CUDA device is visible to PyTorch in this environment"
        )
    if chosen.cuda_graph and chosen.device != "cuda":
        raise SystemExit("generate: a CUDA graph needs device cuda")
    return chosen


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def device_used(device: str) -> float | None:
    """Total minus free device memory in GiB, every process and the context included."""
    if device != "cuda":
        return None
    free, total = torch.cuda.mem_get_info()
    return float(total - free) / GIB


def load(chosen: argparse.Namespace) -> tuple[Any, Path, bool]:
    """The model in evaluation mode on its device, the config.json it was built from, and whether weights are random."""
    from transformers import AutoConfig, AutoModelForCausalLM

    path = chosen.config or chosen.model / "config.json"
    random = chosen.config is not None or chosen.random_weights
    dtype = getattr(torch, chosen.dtype)
    if random:
        values = json.loads(path.read_text(encoding="utf-8"))
        for key in (
            "architectures",
            "auto_map",
            "quantization_config",
            "torch_dtype",
            "dtype",
            "transformers_version",
        ):
            values.pop(key, None)
        config = AutoConfig.for_model(values.pop("model_type"), **values)
        with torch.device(chosen.device):
            model = AutoModelForCausalLM.from_config(
                config, dtype=dtype, attn_implementation=chosen.attention
            )
    else:
        # Straight to the device where accelerate is there; over host memory where it is not.
        direct = (
            {"device_map": chosen.device}
            if importlib.util.find_spec("accelerate")
            else {}
        )
        model = AutoModelForCausalLM.from_pretrained(
            chosen.model,
            dtype=dtype,
            attn_implementation=chosen.attention,
            local_files_only=True,
            **direct,
        ).to(chosen.device)
    return model.eval().requires_grad_(False), path, random


class Generator:
    """Generates one batch after another with the same buffers."""

    def __init__(self, model: Any, chosen: argparse.Namespace) -> None:
        from transformers import StaticCache

        self.model, self.chosen, self.device = model, chosen, chosen.device
        self.cache = StaticCache(
            config=model.config,
            max_cache_len=chosen.input_tokens + chosen.output_tokens,
        )
        self.positions = torch.arange(
            chosen.input_tokens, device=self.device
        ).unsqueeze(0)
        self.token = torch.zeros(
            chosen.batch_size, 1, dtype=torch.long, device=self.device
        )
        self.position = torch.zeros(1, 1, dtype=torch.long, device=self.device)
        self.output = torch.zeros(
            chosen.batch_size,
            chosen.output_tokens,
            dtype=torch.long,
            device=self.device,
        )
        self.logits: torch.Tensor | None = None
        self.graph: torch.cuda.CUDAGraph | None = None
        draw = torch.Generator().manual_seed(chosen.seed)
        count = (chosen.warmup + chosen.batches, chosen.batch_size, chosen.input_tokens)
        vocabulary = model.config.get_text_config(decoder=True).vocab_size
        self.prompts = torch.randint(vocabulary, count, generator=draw).to(self.device)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Logits of the last position: (batch, 1, vocabulary)."""
        answer = self.model(
            input_ids=tokens,
            position_ids=positions,
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: torch.Tensor = answer.logits
        return logits

    def prefill(self, index: int) -> None:
        self.logits = self.forward(self.prompts[index], self.positions)
        self.token.copy_(self.logits[:, -1:].argmax(-1))
        self.position.fill_(self.chosen.input_tokens)

    def step(self) -> None:
        """One token for every request, from the buffers into the buffers, as a CUDA graph needs it."""
        self.logits = self.forward(self.token, self.position)
        self.token.copy_(self.logits[:, -1:].argmax(-1))
        self.position.add_(1)

    def capture(self) -> None:
        """Record one step as a CUDA graph. A sliding cache counts on the host, which no graph can replay."""
        if any(getattr(layer, "is_sliding", False) for layer in self.cache.layers):
            raise SystemExit(
                "generate: this model has sliding-window layers, which a CUDA graph cannot replay"
            )
        self.cache.reset()
        self.prefill(0)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        self.graph = graph

    def batch(self, index: int) -> dict[str, Any]:
        """Generate one batch; times in milliseconds."""
        advance = self.graph.replay if self.graph is not None else self.step
        timed = self.chosen.output_tokens if self.device == "cuda" else 0
        events = [torch.cuda.Event(enable_timing=True) for _ in range(timed)]
        stamps: list[float] = []
        self.cache.reset()
        synchronize(self.device)
        start = time.perf_counter()
        self.prefill(index)
        for place in range(self.chosen.output_tokens):
            if place:
                advance()
            self.output[:, place].copy_(self.token[:, 0])
            if events:
                events[place].record()
            if not place:
                synchronize(self.device)
            stamps.append(time.perf_counter())
        synchronize(self.device)
        end = time.perf_counter()
        if events:
            between = [one.elapsed_time(two) for one, two in itertools.pairwise(events)]
        else:
            between = [1e3 * (two - one) for one, two in itertools.pairwise(stamps)]
        return {
            "start_seconds": start - stopwatch.START,
            "end_seconds": end - stopwatch.START,
            "ttft_ms": 1e3 * (stamps[0] - start),
            "latency_ms": 1e3 * (end - start),
            "itl_ms": [round(value, 4) for value in between],
        }

    def finite(self) -> bool:
        """Whether the last logits are numbers."""
        return self.logits is not None and bool(torch.isfinite(self.logits).all())

    def cache_facts(self) -> tuple[int, float, str]:
        """Bytes of all keys and values, bytes per token of one request, and their type: from the tensors themselves."""
        layers: list[Any] = [
            layer
            for layer in self.cache.layers
            if getattr(layer, "keys", None) is not None
        ]
        tensors: list[torch.Tensor] = [
            tensor for layer in layers for tensor in (layer.keys, layer.values)
        ]
        # (batch, heads, tokens, head size)
        per_token = sum(
            tensor.nbytes / (tensor.shape[0] * tensor.shape[2]) for tensor in tensors
        )
        return (
            sum(tensor.nbytes for tensor in tensors),
            per_token,
            str(tensors[0].dtype).removeprefix("torch."),
        )


def metrics(
    chosen: argparse.Namespace, batches: list[dict[str, Any]]
) -> dict[str, float]:
    """Rates over the wall time from the first batch's start to the last one's end."""
    wall = batches[-1]["end_seconds"] - batches[0]["start_seconds"]
    requests = chosen.batch_size * len(batches)
    rates = [chosen.output_tokens / batch["latency_ms"] * 1e3 for batch in batches]
    return {
        "output_throughput_tok_s": requests * chosen.output_tokens / wall,
        "total_throughput_tok_s": requests
        * (chosen.input_tokens + chosen.output_tokens)
        / wall,
        "request_throughput_req_s": requests / wall,
        "output_throughput_per_user_tok_s": sum(rates) / len(rates),
        "measured_time_ms": 1e3 * wall,
    }


def observed(
    chosen: argparse.Namespace, generator: Generator, path: Path, random: bool
) -> dict[str, Any]:
    """What this run proves: counted in the module and the cache, not taken from a label."""
    model = generator.model
    parameters = list(model.parameters())
    _, per_token, cache_dtype = generator.cache_facts()
    text = model.config.get_text_config(decoder=True)
    quantization = getattr(model.config, "quantization_config", None)
    digest = hashlib.sha256(generator.output.cpu().numpy().tobytes()).hexdigest()
    on_gpu = chosen.device == "cuda"
    settings = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "attention": str(getattr(model.config, "_attn_implementation", "unknown")),
        "experts": getattr(model.config, "_experts_implementation", None),
        "cache": type(generator.cache).__name__,
        "cuda_graph": str(generator.graph is not None).lower(),
        "cuda": torch.version.cuda if on_gpu else None,
        "threads": None if on_gpu else torch.get_num_threads(),
        "last_batch_tokens_sha256": digest,
    }
    return {
        "engine": "transformers",
        "engine_version": importlib.metadata.version("transformers"),
        "model_path": None if chosen.model is None else str(chosen.model),
        "random_weights": random,
        "parameters": sum(parameter.numel() for parameter in parameters),
        "weight_bytes": sum(parameter.nbytes for parameter in parameters),
        "kv_bytes_per_token": round(per_token),
        "config_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "model_type": model.config.model_type,
        "layers": text.num_hidden_layers,
        "dtype": str(parameters[0].dtype).removeprefix("torch."),
        "kv_cache_dtype": cache_dtype,
        "quantization": None
        if quantization is None
        else str(quantization.quant_method),
        "device": torch.cuda.get_device_name()
        if on_gpu
        else platform.processor() or platform.machine(),
        "device_total_gib": torch.cuda.mem_get_info()[1] / GIB if on_gpu else None,
        "requests": chosen.batches * chosen.batch_size,
        "input_tokens_mean": chosen.input_tokens,
        "output_tokens_mean": chosen.output_tokens,
        "batch_size": chosen.batch_size,
        "concurrency_mean": chosen.batch_size,
        "settings": {
            name: str(value) for name, value in settings.items() if value is not None
        },
    }


def memory(
    generator: Generator, used: dict[str, float | None]
) -> dict[str, float | None]:
    """In GiB, and bytes of keys and values per token; None where there is no CUDA device."""
    on_gpu = generator.device == "cuda"
    cache_bytes, per_token, _ = generator.cache_facts()
    return {
        "kv_cache_gib": cache_bytes / GIB,
        "kv_bytes_per_token": per_token,
        "weights_gib": sum(
            parameter.nbytes for parameter in generator.model.parameters()
        )
        / GIB,
        "device_used_before_gib": used["before"],
        "device_used_loaded_gib": used["loaded"],
        # The allocator gives nothing back, so that the end of the measured phase is its peak.
        "device_used_peak_gib": used["measured"],
        "allocated_peak_gib": torch.cuda.max_memory_allocated() / GIB
        if on_gpu
        else None,
        "reserved_peak_gib": torch.cuda.max_memory_reserved() / GIB if on_gpu else None,
    }


def write(
    chosen: argparse.Namespace, report: dict[str, Any], batches: list[dict[str, Any]]
) -> None:
    """The report, and one entry per request with the device's times between tokens by batch."""
    requests = [
        {
            "request": number * chosen.batch_size + place,
            "batch": number,
            "input_tokens": chosen.input_tokens,
            "output_tokens": chosen.output_tokens,
            "ttft_ms": batch["ttft_ms"],
            "latency_ms": batch["latency_ms"],
        }
        for number, batch in enumerate(batches)
        for place in range(chosen.batch_size)
    ]
    inter_token = [batch.pop("itl_ms") for batch in batches]
    chosen.requests.write_text(
        json.dumps({"requests": requests, "itl_ms": inter_token}), encoding="utf-8"
    )
    chosen.report.write_text(
        json.dumps(report | {"batches": batches}, indent=1), encoding="utf-8"
    )


def run(chosen: argparse.Namespace) -> None:
    phases = stopwatch.Phases()

    torch.manual_seed(chosen.seed)
    used = {"before": device_used(chosen.device)}
    model, path, random = load(chosen)
    generator = Generator(model, chosen)
    synchronize(chosen.device)
    used["loaded"] = device_used(chosen.device)
    phases.mark("load")
    if chosen.cuda_graph:
        generator.capture()
    for index in range(chosen.warmup):
        generator.batch(index)
    synchronize(chosen.device)
    phases.begin_measuring()
    batches = [
        generator.batch(chosen.warmup + index) for index in range(chosen.batches)
    ]
    used["measured"] = device_used(chosen.device)
    phases.mark("measure")

    rates = metrics(chosen, batches)
    facts = observed(chosen, generator, path, random) | {
        "measured_seconds": rates["measured_time_ms"] / 1e3
    }
    values = rates | memory(generator, used)
    report = {
        "tool": "sparkpub generate",
        "python": platform.python_version(),
        "metrics": {name: value for name, value in values.items() if value is not None},
        "unavailable": {
            name: NO_DEVICE for name, value in values.items() if value is None
        },
        "observed": facts,
        "problems": []
        if generator.finite()
        else ["the logits are not finite: the work was not that of a model"],
        **phases.report(),
    }
    write(chosen, report, batches)
    print(
        f"{facts['parameters'] / 1e9:.3f} B parameters, batch {chosen.batch_size}: "
        f"{rates['output_throughput_tok_s']:.1f} output tokens/s"
    )


def main() -> None:
    with torch.inference_mode():
        run(options())


if __name__ == "__main__":
    main()
