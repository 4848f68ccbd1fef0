"""Any server with an OpenAI-compatible interface that runs already: vLLM, SGLang, llama-server, TensorRT-LLM, NIM.

A real client measures it: `vllm bench serve` or AIPerf, whichever is installed in the environment. Which model the
server loaded comes from its own pages, as far as it has them: `/v1/models`, `/version` (vLLM), `/props` (llama-server),
`/get_model_info` (SGLang) and `/metrics`. The counters of `/metrics` before and after also show whether anybody else
used the server meanwhile.
"""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from sparkpub.plan.workloads import (
    aiperf,
    guidellm,
    llama_bench,
    reading,
    sglang,
    vllm_bench,
)
from sparkpub.plan.workloads.base import (
    PYTHON,
    WORKDIR,
    Answer,
    Case,
    Command,
    Options,
    flags,
    no_answer,
)
from sparkpub.plan.workloads.load import Load
from sparkpub.record.errors import WorkloadError
from sparkpub.record.record import MetricValue, Observed

_DRIVER, _WANTED, _REPORT, _SERVER = (
    "openai_endpoint.py",
    "endpoint.json",
    "report.json",
    "server.json",
)
_AIPERF_FOLDER = "aiperf"
_PROMPTS = "prompts.jsonl"

_BEGINS = rf"{vllm_bench.CLIENT_BEGINS}|Phase .*\(profiling\) started"
_ENDS = r"Phase .*\(profiling\) complete"
"""What the clients print when their warm-up is over, and AIPerf when the measurement is."""

_ENGINES = {
    "vllm": "vLLM",
    "llamacpp": "llama.cpp",
    "sglang": "SGLang",
    "trtllm": "TensorRT-LLM",
}
"""How servers sign: the prefix of their metrics, or `owned_by` in /v1/models."""
_GENERATED = (
    "vllm:generation_tokens_total",
    "sglang:generation_tokens_total",
    "llamacpp:tokens_predicted_total",
)
"""Counters of generated tokens."""
_SAMPLE = re.compile(
    r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)"
)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class OpenaiEndpointOptions(Options):
    """A load of random prompts, or of a file of prompts, on a server that is already running.

    The client takes a key for the server from the variable `OPENAI_API_KEY` of its environment, if it needs one.

    Example: {type: openai-endpoint, url: "http://127.0.0.1:8000", requests: 64, input_tokens: 512, concurrency: 8}
    """

    type: Literal["openai-endpoint"] = "openai-endpoint"
    url: Annotated[str, Field(pattern=r"^https?://[^/]+(/.*)?$")] | None = None
    """Address of the server without `/v1`, e.g. `http://127.0.0.1:8000`; none: the server of the environment."""
    model: str | None = None
    """The model's name on the server; none: the first one that `/v1/models` lists."""
    tokenizer: str | None = None
    """Folder or name of the tokenizer: clients make prompts and count tokens with it; none: the model's folder."""
    client: Literal["vllm", "aiperf"] | None = None
    """The measuring client; none: `vllm bench serve` where vLLM is installed, else AIPerf."""
    requests: PositiveInt = 100
    """Requests measured."""
    input_tokens: PositiveInt = 512
    """Tokens of each random prompt."""
    output_tokens: PositiveInt = 128
    """Tokens generated per request; the end-of-sequence token is ignored."""
    dataset: Annotated[str, Field(min_length=1)] | None = None
    """A file of prompts to send in turn instead of random ones, by its path in the environment: JSON lines with
    `prompt`."""
    concurrency: PositiveInt | None = None
    """Most requests in flight; none submits all at once."""
    request_rate: PositiveFloat | None = None
    """Requests per second, submitted at random intervals (Poisson); none: as many as `concurrency` lets."""
    temperature: Annotated[float, Field(ge=0)] = 0.0
    """0 takes the likeliest token."""
    warmup: Annotated[int, Field(ge=0)] = 8
    """Requests before the measured ones; they do not count."""
    extra_args: tuple[str, ...] = ()
    """Appended to the command of the client; needs `client`."""

    @property
    def measures_server(self) -> bool:
        """Unless the address of another server is given."""
        return self.url is None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.extra_args and self.client is None:
            raise ValueError("extra_args needs client, since each client has its own")
        if self.dataset is not None and "input_tokens" in self.model_fields_set:
            raise ValueError("give either dataset or input_tokens")
        return self

    def asked(self) -> dict[str, Any]:
        """With prompts of a file without the default length of random ones."""
        options = super().asked()
        if self.dataset is not None:
            options["input_tokens"] = None
        return options

    @classmethod
    def load(cls, asked: Mapping[str, Any]) -> Load:
        """All requests are submitted at once where neither a number in flight nor a rate bounds them."""
        return Load.declared(asked).submitted_at_once()


def command(case: Case, options: OpenaiEndpointOptions) -> Command:
    """A driver that asks the server who it is and runs the client. Raises WorkloadError where an option is missing."""
    where = f"workloads.{case.workload_key}"
    url = options.url
    if url is None and case.server is not None:
        url = case.server.url
    if url is None:
        raise WorkloadError(
            "openai-endpoint needs the server's address", where=where, remedy="add url:"
        )
    tokenizer = options.tokenizer or case.model_path
    if tokenizer is None:
        raise WorkloadError(
            "openai-endpoint needs a tokenizer",
            where=where,
            remedy="add tokenizer:, or path: of the model",
        )
    url = url.rstrip("/")
    clients = {
        "vllm": {
            "argv": _vllm(case, options, url, tokenizer),
            # A tokenizer is a folder, or was fetched before: nothing is fetched while something is measured.
            "variables": {"HF_HUB_OFFLINE": "1"},
            "report": _REPORT,
        },
        "aiperf": {
            # With the variable above, AIPerf 0.13 takes the path of a folder for the name of a repository.
            "variables": {},
            "argv": _aiperf(case, options, url, tokenizer),
            "report": f"{_AIPERF_FOLDER}/profile_export_aiperf.json",
        },
    }
    wanted = {
        "url": url,
        "model": options.model,
        "dataset": options.dataset,
        "requests": options.requests,
        "output_tokens": options.output_tokens,
        "clients": [
            {"name": name} | client
            for name, client in clients.items()
            if options.client in (None, name)
        ],
    }
    return Command(
        (PYTHON, f"{WORKDIR}/{_DRIVER}"),
        {"PYTHONUNBUFFERED": "1"},
        lambda: {
            _DRIVER: reading.payload(_DRIVER),
            _WANTED: json.dumps(wanted).encode(),
        },
        {"report": _REPORT, "output": _SERVER},
        _BEGINS,
        _ENDS,
    )


def _vllm(
    case: Case, options: OpenaiEndpointOptions, url: str, tokenizer: str
) -> list[str]:
    """`vllm bench serve`; `{model}` and `{workdir}` are filled in by the driver."""
    data: dict[str, object]
    if options.dataset is not None:
        data = {
            "--dataset-name": "custom",
            "--dataset-path": f"{WORKDIR}/{_PROMPTS}",
            "--custom-output-len": options.output_tokens,
            "--skip-chat-template": True,
            "--disable-shuffle": True,
        }
    else:
        data = {
            "--dataset-name": "random",
            "--random-input-len": options.input_tokens,
            "--random-output-len": options.output_tokens,
        }
    argv = flags(
        {"--model": "{model}", "--tokenizer": tokenizer, "--base-url": url}
        | data
        | {
            "--num-prompts": options.requests,
            "--num-warmups": options.warmup,
            "--max-concurrency": options.concurrency,
            "--request-rate": options.request_rate,
            "--temperature": options.temperature,
            "--seed": case.prompt_seed,
        }
        | dict(vllm_bench.REPORTED)
    )
    return ["vllm", "bench", "serve", *argv, *options.extra_args]


def _aiperf(
    case: Case, options: OpenaiEndpointOptions, url: str, tokenizer: str
) -> list[str]:
    """`aiperf profile`; `{model}` and `{workdir}` are filled in by the driver."""
    data: dict[str, object]
    if options.dataset is not None:
        data = {
            "--input-file": f"{WORKDIR}/{_PROMPTS}",
            "--custom-dataset-type": "single_turn",
        }
    else:
        data = {"--isl": options.input_tokens, "--isl-stddev": 0}
    argv = flags(
        {
            "--model": "{model}",
            "--tokenizer": tokenizer,
            "--url": url,
            "--endpoint-type": "completions",
        }
        | {"--streaming": True}
        | data
        | {
            "--osl": options.output_tokens,
            "--osl-stddev": 0,
            "--request-count": options.requests,
            "--warmup-request-count": options.warmup or None,
            "--concurrency": options.concurrency or options.requests,
            "--request-rate": options.request_rate,
            "--random-seed": case.prompt_seed,
            "--artifact-dir": f"{WORKDIR}/{_AIPERF_FOLDER}",
            "--ui": "none",
            "--no-gpu-telemetry": True,
            "--no-server-metrics": True,
        }
    )
    extra = [
        "--extra-inputs",
        "ignore_eos:true",
        "--extra-inputs",
        f"temperature:{options.temperature:g}",
    ]
    return ["aiperf", "profile", *argv, *extra, *options.extra_args]


def parse(
    log: bytes, files: Mapping[str, bytes], options: OpenaiEndpointOptions | None
) -> Answer:
    """Figures from the client's report; who answered from what the server said."""
    report = reading.json_object(files.get("report"))
    server = reading.json_object(files.get("output")) or {}
    loaded = _loaded(log)
    said = _identity(server)
    identity = (
        loaded | said | {"settings": loaded.get("settings", {}) | said["settings"]}
    )
    if report is None:
        return no_answer("no report from the client", reading.observed(identity))
    if aiperf.is_report(report):
        metrics = aiperf.metrics(report)
        load = aiperf.load(report)
        problems = aiperf.problems(report)
    elif sglang.is_report(report):
        metrics = sglang.metrics(report)
        load = sglang.load(report)
        problems = []
    elif guidellm.is_report(report):
        metrics = guidellm.metrics(report)
        load = guidellm.load(report)
        problems = guidellm.problems(report)
    else:
        client = vllm_bench.parse(b"", {"report": json.dumps(report).encode()}, None)
        metrics = dict(client.metrics)
        names = (
            "requests",
            "input_tokens_mean",
            "output_tokens_mean",
            "measured_seconds",
        )
        load = {name: getattr(client.observed, name) for name in names}
        problems = [problem for problem in client.problems if "request" in problem]
    metrics |= vllm_bench.memory(reading.lines(log)) | _cache(server)
    observed = reading.observed(identity | load)
    if options is not None:
        problems += _other_load(observed, server, options)
    complete = reading.known(metrics, "output_throughput_tok_s")
    if not complete:
        problems.append("the client's report holds no rate of output tokens")
    return Answer(metrics, observed, complete=complete, problems=tuple(problems))


def _other_load(
    observed: Observed, server: Mapping[str, Any], options: OpenaiEndpointOptions
) -> list[str]:
    """Lengths that were not asked for, and tokens that somebody else had generated meanwhile."""
    asked = options.input_tokens if options.dataset is None else None
    found = vllm_bench.other_lengths(observed, asked, options.output_tokens)
    before = _counter(server.get("metrics_before"))
    after = _counter(server.get("metrics_after"))
    if before is None or after is None:
        return found
    # The client sends one request to try the server, the warm-up, and what it measures.
    most = (1 + options.warmup + options.requests) * options.output_tokens
    if after - before > (1 + vllm_bench.TOKENS_TOLERANCE) * most:
        found.append(
            f"the server generated {after - before:g} tokens and this run {most} at most: others used it meanwhile"
        )
    return found


def _loaded(log: bytes) -> dict[str, Any]:
    """What vLLM printed about the model that it loaded, where the environment keeps the server: as its own workload
    reads it."""
    return vllm_bench.parse(log, {}, None).observed.model_dump(exclude_defaults=True)


def _identity(server: Mapping[str, Any]) -> dict[str, Any]:
    """What the server's pages say of engine and model, as fields of `Observed`."""
    said = server.get("said")
    entry = _model_entry(said, server.get("model"))
    properties = reading.at(said, "/props")
    information = reading.at(said, "/get_model_info")
    samples = _samples(server.get("metrics_after"))
    version = reading.word(reading.at(reading.at(said, "/version"), "version"))
    path = (
        entry.get("root")
        or reading.at(properties, "model_path")
        or reading.at(information, "model_path")
    )
    settings = {
        "client": server.get("client"),
        "client_version": server.get("client_version"),
        "max_model_len": entry.get("max_model_len"),
    }
    found = {
        "engine": _engine(entry, samples),
        "engine_version": version or reading.word(reading.at(properties, "build_info")),
        "model_path": reading.word(path) or reading.word(server.get("model")),
        "parameters": reading.positive_int(reading.at(entry, "meta.n_params")),
        "weight_bytes": reading.positive_int(reading.at(entry, "meta.size")),
        **_weights_format(entry),
        "batch_size": reading.positive_int(reading.at(properties, "total_slots")),
        "settings": {
            name: str(value) for name, value in settings.items() if value is not None
        },
    }
    return {name: value for name, value in found.items() if value is not None}


def _weights_format(entry: Mapping[str, Any]) -> dict[str, str]:
    """The format of the weights that llama-server says, as type or as quantisation."""
    name = reading.word(reading.at(entry, "meta.ftype"))
    if name is None:
        return {}
    return llama_bench.weights_format(name)


def _model_entry(said: Any, name: Any) -> Mapping[str, Any]:
    """What /v1/models says of the model measured."""
    listed = reading.objects(reading.at(reading.at(said, "/v1/models"), "data"))
    return next((entry for entry in listed if entry.get("id") == name), {})


def _engine(entry: Mapping[str, Any], samples: Mapping[str, Any]) -> str | None:
    """The engine by the prefix of its metrics, else by who owns the model."""
    prefixes = {name.partition(":")[0] for name in samples if ":" in name}
    signed = next(
        (prefix for prefix in _ENGINES if prefix in prefixes),
        str(entry.get("owned_by")),
    )
    return _ENGINES.get(signed)


def _cache(server: Mapping[str, Any]) -> dict[str, MetricValue]:
    """The capacity of vLLM's KV cache, which its metrics give as blocks."""
    samples = _samples(server.get("metrics_after"))
    for labels, _ in samples.get("vllm:cache_config_info", ()):
        blocks = reading.number(labels.get("num_gpu_blocks"))
        size = reading.number(labels.get("block_size"))
        if blocks and size:
            return reading.metrics({"kv_cache_tokens": blocks * size}, "report")
    return {}


def _counter(page: Any) -> float | None:
    """Tokens generated since the server's start; None where its metrics do not count them."""
    samples = _samples(page)
    found = []
    for name in _GENERATED:
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
