"""What the pages of a running server say: which engine and model answered, and whether anybody else used it meanwhile.

The drivers ask for the pages (`payload/pages.py`): `/v1/models` and `/metrics` of any server, `/version` (vLLM,
TensorRT-LLM), `/props` (llama-server), `/model_info` and `/server_info` (SGLang, with `get_` in older ones),
`/info` (TGI), `/api/version`, `/api/ps` and `/api/show` (Ollama), `/api/v1/models` (LM Studio, v0 before its 0.4).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sparkpub.plan.workloads.payload import pages
from sparkpub.plan.workloads.vllm_bench import TOKENS_TOLERANCE
from sparkpub.record.record import MetricValue
from sparkpub.tools import reading
from sparkpub.tools.shapes import llama_bench

PAYLOAD = "pages.py"
ANSWERED = "the model answered before the test: "
"""What a note begins with that keeps an answer of the model."""
LONGEST_ANSWER = 2000
"""Characters of it that are kept."""

_ENGINES = {
    "vllm": "vLLM",
    "llamacpp": "llama.cpp",
    "sglang": "SGLang",
    "trtllm": "TensorRT-LLM",
    "tensorrt_llm": "TensorRT-LLM",
    "tgi": "TGI",
}
"""How servers sign: the prefix of their metrics, or `owned_by` in /v1/models."""
_GENERATED = (
    "vllm:generation_tokens_total",
    "sglang:generation_tokens_total",
    "llamacpp:tokens_predicted_total",
)
"""Counters of generated tokens."""
_PROMPTS = ("vllm:prompt_tokens_total", "vllm:prompt_tokens_cached_total")
"""Counters of prompts' tokens, and of those that were in the prefix cache."""
_LOOKED_UP = ("vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total")
"""The same of versions without them: tokens of a request that waits are looked up again at every step."""
_WAITING = (
    "vllm:e2e_request_latency_seconds_sum",
    "vllm:request_queue_time_seconds_sum",
)
"""Counters of the seconds that requests were on the server, and of those that they waited for their turn."""
_PREEMPTED = ("vllm:num_preemptions_total",)
_ANSWERED = ("vllm:request_success_total",)
"""Counters of requests that were taken out of the batch, and of those that were answered."""
_OF_SGLANG = (
    *("tp_size", "quantization", "kv_cache_dtype", "attention_backend"),
    *("mem_fraction_static", "max_running_requests", "speculative_algorithm"),
)
_OPTIONS = {
    "/get_server_info": _OF_SGLANG,
    "/server_info": _OF_SGLANG,
    "/info": ("max_concurrent_requests", "max_batch_total_tokens"),
}
"""Options with which a server was started, by the page that says them: SGLang's and TGI's."""
_CACHE_OPTIONS = ("cache_dtype", "enable_prefix_caching", "gpu_memory_utilization")
"""Options of vLLM that stand beside the size of its cache."""
_SAMPLE = re.compile(
    r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)"
)
_LABEL = re.compile(r'(?<!\w)(\w++)="((?:[^"\\]++|\\.)*+)"')
"""A label begins where no other word does, so that a long word is not tried at each of its letters."""


def identity(server: Mapping[str, Any]) -> dict[str, Any]:
    """What the pages say of engine and model, as fields of `Observed`; what none of them says is left out."""
    said = server.get("said")
    entry = _model_entry(said, server.get("model"))
    properties = reading.at(said, "/props")
    samples = _samples(server.get("metrics_after"))
    engine = _engine(said, entry, samples)
    path = (
        entry.get("root")
        or reading.at(properties, "model_path")
        or _page(said, "/model_info", "model_path")
        or _page(said, "/get_model_info", "model_path")
        or reading.at(reading.at(said, "/info"), "model_id")
    )
    settings = _options(said, samples) | {
        "client": server.get("client"),
        "client_version": server.get("client_version"),
        "max_model_len": reading.positive_int(entry.get("max_model_len"))
        or _context(said, entry),
    }
    found = {
        "engine": engine,
        "engine_version": _word(_version(said)),
        "model_path": _word(path) or _word(server.get("model")),
        "parameters": _parameters(said, entry),
        "weight_bytes": reading.positive_int(reading.at(entry, "meta.size")),
        **_weights_format(said, entry),
        "batch_size": reading.positive_int(reading.at(properties, "total_slots")),
        "settings": {
            name: str(value)[: pages.LONGEST_NAME]
            for name, value in settings.items()
            if value is not None
        },
    }
    return {name: value for name, value in found.items() if value is not None}


def _word(value: Any) -> str | None:
    """What a server says of itself, where it can be a name."""
    found = reading.word(value)
    if found is None or len(found) > pages.LONGEST_NAME or not found.isprintable():
        return None
    return found


def _engine(
    said: Any, entry: Mapping[str, Any], samples: Mapping[str, Any]
) -> str | None:
    """The engine by the prefix of its metrics, else by who owns the model, else by a page that no other one has."""
    prefixes = {name.partition(":")[0] for name in samples if ":" in name}
    signed = next(
        (prefix for prefix in _ENGINES if prefix in prefixes),
        str(entry.get("owned_by")),
    )
    if signed in _ENGINES:
        return _ENGINES[signed]
    if reading.word(_page(said, "/api/version", "version")) is not None:
        return "Ollama"
    older = reading.objects(_page(said, "/api/v0/models", "data"))
    # A server that says the same at every address has no such page: LM Studio says which of its models are loaded.
    if any("state" in model for model in older) or _lm_studio(said):
        return "LM Studio"
    if reading.word(_page(said, "/info", "model_id")) is not None:
        return "TGI"
    for path in ("/model_info", "/get_model_info"):
        if reading.word(_page(said, path, "model_path")) is not None:
            return "SGLang"
    return None


def _lm_studio(said: Any) -> list[Mapping[str, Any]]:
    """The models of LM Studio's own page, by the names of their loaded instances, in the form of its older one."""
    found: list[Mapping[str, Any]] = []
    for model in reading.objects(_page(said, "/api/v1/models", "models")):
        for instance in reading.objects(model.get("loaded_instances")):
            entry = {
                "id": instance.get("id"),
                "quantization": reading.at(model, "quantization.name"),
                "loaded_context_length": reading.at(instance, "config.context_length"),
            }
            found.append(entry)
    return found


def _options(said: Any, samples: Mapping[str, Any]) -> dict[str, Any]:
    """What a server says of how it was started, in its own words."""
    found = {}
    for path, names in _OPTIONS.items():
        for name in names:
            value = _page(said, path, name)
            if isinstance(value, str | int | float):
                found[name] = value
    for labels, _ in samples.get("vllm:cache_config_info", ()):
        found |= {name: labels[name] for name in _CACHE_OPTIONS if name in labels}
    return found


def _version(said: Any) -> str | None:
    """The engine's version, on whichever page its kind says it."""
    for path, name in (
        ("/version", "version"),
        ("/server_info", "version"),
        ("/get_server_info", "version"),
        ("/api/version", "version"),
        ("/info", "version"),
        ("/props", "build_info"),
    ):
        found = reading.word(_page(said, path, name))
        if found is not None:
            return found
    return None


def _page(said: Any, path: str, name: str) -> Any:
    """A field of a page."""
    return reading.at(reading.at(said, path), name)


def _model_entry(said: Any, name: Any) -> Mapping[str, Any]:
    """What /v1/models says of the model measured; LM Studio says more on its own page."""
    found: dict[str, Any] = {}
    for entry in (
        *reading.objects(_page(said, "/api/v0/models", "data")),
        *_lm_studio(said),
        *reading.objects(_page(said, "/v1/models", "data")),
    ):
        if entry.get("id") == name:
            found |= entry
    return found


def _ollama(said: Any, part: str, name: str) -> Any:
    """A field of what Ollama knows of its model; keys of `model_info` have dots."""
    known = _page(said, "/api/show", part)
    return known.get(name) if isinstance(known, dict) else None


def _context(said: Any, entry: Mapping[str, Any]) -> int | None:
    """Most tokens of a request, prompt and answer, as the server was started."""
    running = reading.objects(_page(said, "/api/ps", "models"))
    for value in (
        _page(said, "/props", "default_generation_settings.n_ctx"),
        *(model.get("context_length") for model in running[:1]),
        entry.get("loaded_context_length"),
        _page(said, "/info", "max_total_tokens"),
    ):
        found = reading.positive_int(value)
        if found is not None:
            return found
    return None


def _parameters(said: Any, entry: Mapping[str, Any]) -> int | None:
    known = reading.positive_int(reading.at(entry, "meta.n_params"))
    ollama = _ollama(said, "model_info", "general.parameter_count")
    return known or reading.positive_int(ollama)


def _weights_format(said: Any, entry: Mapping[str, Any]) -> dict[str, str]:
    """The format of the weights as type or as quantisation."""
    gguf = (
        reading.at(entry, "meta.ftype"),
        _ollama(said, "details", "quantization_level"),
        entry.get("quantization"),
    )
    for name in gguf:
        word = _word(name)
        if word is not None:
            return llama_bench.weights_format(word)
    dtype = _word(_page(said, "/info", "model_dtype"))
    return {} if dtype is None else {"dtype": dtype.removeprefix("torch.")}


def counted(server: Mapping[str, Any]) -> dict[str, MetricValue]:
    """What vLLM counts: the capacity of its KV cache, which it gives as blocks, how much of the prompts was in it, how
    long requests waited for their turn, and how often they lost it."""
    hits = _share(server, _PROMPTS)
    shares = {
        "prefix_cache_hit_percent": _share(server, _LOOKED_UP)
        if hits is None
        else hits,
        "queue_time_percent": _share(server, _WAITING),
        "preemptions_per_request": _preempted(server),
    }
    return _capacity(server) | reading.metrics(
        {name: share for name, share in shares.items() if share is not None}, "report"
    )


def _share(server: Mapping[str, Any], names: tuple[str, str]) -> float | None:
    """By how many percent of the first counter the second one grew while the client ran."""
    whole, part = (_growth(server, [name]) for name in names)
    if not whole or part is None or not 0 <= part <= whole:
        return None
    return 100 * part / whole


def _preempted(server: Mapping[str, Any]) -> float | None:
    """Preemptions while the client ran, by the requests answered; None where there was no preemption."""
    preempted, answered = (_growth(server, names) for names in (_PREEMPTED, _ANSWERED))
    if not preempted or not answered or min(preempted, answered) < 0:
        return None
    return preempted / answered


def _growth(server: Mapping[str, Any], names: Sequence[str]) -> float | None:
    """By how much counters grew between the two readings of the server's metrics."""
    before = _counter(server.get("metrics_before"), names)
    after = _counter(server.get("metrics_after"), names)
    return None if before is None or after is None else after - before


def _capacity(server: Mapping[str, Any]) -> dict[str, MetricValue]:
    samples = _samples(server.get("metrics_after"))
    for labels, _ in samples.get("vllm:cache_config_info", ()):
        blocks = reading.number(labels.get("num_gpu_blocks"))
        size = reading.number(labels.get("block_size"))
        if blocks and size:
            return reading.metrics({"kv_cache_tokens": blocks * size}, "report")
    return {}


def answered(server: Mapping[str, Any]) -> tuple[str, ...]:
    """The model's answer before the test, as a note by which the review judges it."""
    text = reading.word(reading.at(server, "answer.text"))
    if text is None:
        return ()
    return (f"{ANSWERED}{' '.join(text.split())[:LONGEST_ANSWER]}",)


def other_users(server: Mapping[str, Any], most: int) -> list[str]:
    """Whether the server generated more tokens than the `most` that a run asked for."""
    grown = _growth(server, _GENERATED)
    if grown is None or grown <= (1 + TOKENS_TOLERANCE) * most:
        return []
    return [
        f"the server generated {grown:g} tokens and this run {most} at most: others used it meanwhile"
    ]


def _counter(page: Any, names: Sequence[str]) -> float | None:
    """What counters of these names have counted since the server's start; None where its metrics have none of them."""
    samples = _samples(page)
    found = []
    for name in names:
        found += [value for _, value in samples.get(name, ())]
    if not found:
        return None
    return sum(found)


def _samples(page: Any) -> dict[str, list[tuple[dict[str, str], float]]]:
    """A page in Prometheus' text format: name to the labels and value of each sample."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    if not isinstance(page, str):
        return found
    for line in page.splitlines():
        sample = _SAMPLE.match(line)
        if sample is None:
            continue
        value = reading.number(sample["value"])
        if value is not None:
            labels = dict(_LABEL.findall(sample["labels"] or ""))
            found.setdefault(sample["name"], []).append((labels, value))
    return found
