"""Any server with an OpenAI-compatible interface that runs already: vLLM, SGLang, llama-server, TensorRT-LLM, NIM.

A real client measures it: `vllm bench serve` or AIPerf, whichever is installed in the environment. Which model the
server loaded comes from its own pages (`server_pages`).
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from sparkpub.plan.workloads import (
    llama_server,
    server_pages,
    vllm_bench,
)
from sparkpub.plan.workloads.base import (
    PYTHON,
    SAID_AT_ONCE,
    WORKDIR,
    Answer,
    ClientOptions,
    Command,
    RunCase,
    flags,
    no_answer,
    payload,
)
from sparkpub.plan.workloads.load import Load
from sparkpub.record.errors import WorkloadError
from sparkpub.record.record import Observed
from sparkpub.tools import reading
from sparkpub.tools.reader import read

_DRIVER, _WANTED, _REPORT, _SERVER = (
    "openai_endpoint.py",
    "endpoint.json",
    "report.json",
    "server.json",
)
_AIPERF_FOLDER = "aiperf"
_PROMPTS = "prompts.jsonl"

BEGINS = rf"{vllm_bench.CLIENT_BEGINS}|Phase .*\(profiling\) started"
_ENDS = r"Phase .*\(profiling\) complete"
"""What the clients print when their warm-up is over, and AIPerf when the measurement is."""


class OpenaiEndpointOptions(ClientOptions):
    """A load of random prompts, or of a file of prompts, on a server that is already running.

    The client takes a key for the server from the variable `OPENAI_API_KEY` of its environment, if it needs one.

    Example: {type: openai-endpoint, url: "http://127.0.0.1:8000", requests: 64, input_tokens: 512, concurrency: 8}
    """

    type: Literal["openai-endpoint"] = "openai-endpoint"
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
    def programs(self) -> Mapping[str, str]:
        """The clients of which one is needed."""
        known = (self.client,) if self.client is not None else ("vllm", "aiperf")
        return {name: f"uv tool install {name}" for name in known}

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


def command(case: RunCase, options: OpenaiEndpointOptions) -> Command:
    """A driver that asks the server who it is and runs the client. Raises WorkloadError where an option is missing."""
    where = f"workloads.{case.workload_key}"
    url = case.server_url(options.url, "openai-endpoint")
    tokenizer = options.tokenizer or case.model_path
    if tokenizer is None:
        raise WorkloadError(
            "openai-endpoint needs a tokenizer",
            where=where,
            remedy="add tokenizer:, or path: of the model",
        )
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
        "random_weights": case.random_weights,
        "clients": [
            {"name": name} | client
            for name, client in clients.items()
            if options.client in (None, name)
        ],
    }
    return Command(
        (PYTHON, f"{WORKDIR}/{_DRIVER}"),
        SAID_AT_ONCE,
        lambda: {
            _DRIVER: payload(_DRIVER),
            server_pages.PAYLOAD: payload(server_pages.PAYLOAD),
            _WANTED: json.dumps(wanted).encode(),
        },
        {"report": _REPORT, "output": _SERVER},
        BEGINS,
        _ENDS,
    )


def _vllm(
    case: RunCase, options: OpenaiEndpointOptions, url: str, tokenizer: str
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
        data = vllm_bench.random_prompts(options)
    argv = flags(
        {"--model": "{model}", "--tokenizer": tokenizer, "--base-url": url}
        | data
        | vllm_bench.client_flags(options, case.prompt_seed)
    )
    return ["vllm", "bench", "serve", *argv, *options.extra_args]


def _aiperf(
    case: RunCase, options: OpenaiEndpointOptions, url: str, tokenizer: str
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


_CLIENTS = ("genai-perf", "aiperf", "sglang", "guidellm")
"""Tools whose reports mappings read, as told by their content."""


def parse(
    log: bytes, files: Mapping[str, bytes], options: OpenaiEndpointOptions | None
) -> Answer:
    """Figures from the client's report; who answered from what the server said."""
    report = reading.json_object(files.get("report"))
    server = reading.json_object(files.get("output")) or {}
    identity = llama_server.merged(server_pages.identity(server), _loaded(log))
    if report is None:
        return no_answer("no report from the client", reading.observed(identity))
    said = read(report, _CLIENTS) or vllm_bench.reported(report)
    metrics, problems = dict(said.metrics), said.problems
    printed = reading.lines(log)
    metrics |= vllm_bench.memory(printed) | llama_server.cache_hits(printed)
    metrics |= server_pages.counted(server)
    observed = reading.observed(identity | said.facts)
    if options is not None:
        problems += _other_load(observed, server, options)
    complete = reading.known(metrics, "output_throughput_tok_s")
    if not complete:
        problems.append("the client's report holds no rate of output tokens")
    return Answer(
        metrics,
        observed,
        complete=complete,
        problems=tuple(problems),
        notes=server_pages.answered(server),
        deviations=said.deviations,
    )


def _other_load(
    observed: Observed, server: Mapping[str, Any], options: OpenaiEndpointOptions
) -> list[str]:
    """Lengths that were not asked for, and tokens that somebody else had generated meanwhile."""
    asked = options.input_tokens if options.dataset is None else None
    found = vllm_bench.other_lengths(observed, asked, options.output_tokens)
    # The client sends one request to try the server, the warm-up, and what it measures.
    most = (1 + options.warmup + options.requests) * options.output_tokens
    return found + server_pages.other_users(server, most)


def _loaded(log: bytes) -> dict[str, Any]:
    """What vLLM or llama-server printed about the model that it loaded, where the environment keeps the server: as its
    own workload reads it."""
    printed = llama_server.identity(reading.lines(log))
    if printed:
        return printed
    return vllm_bench.parse(log, {}, None).observed.model_dump(exclude_defaults=True)
