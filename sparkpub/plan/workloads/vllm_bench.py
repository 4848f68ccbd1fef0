"""`vllm bench`: throughput, latency and serve, from the JSON files that vLLM writes (`vllm/benchmarks`).

The throughput file counts prompt and output tokens together; the rate of output tokens is printed only. The
latency file gives seconds per batch and not the size of the batch. None of them says which model was loaded: the
engine's log does.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from sparkpub.plan.workloads import llama_server
from sparkpub.plan.workloads.base import (
    SAID_AT_ONCE,
    WORKDIR,
    Answer,
    Command,
    Options,
    RunCase,
    flags,
    no_answer,
)
from sparkpub.plan.workloads.load import Load
from sparkpub.record.errors import WorkloadError
from sparkpub.record.metrics import GIB
from sparkpub.record.record import MetricValue, Observed
from sparkpub.tools import agreement, reading

REPORT = "report.json"
_REPORTED: Mapping[str, object] = {
    "--ignore-eos": True,
    "--percentile-metrics": "ttft,tpot,itl,e2el",
    "--metric-percentiles": "50,90,95,99",
    "--save-result": True,
    "--result-dir": WORKDIR,
    "--result-filename": REPORT,
}
"""Flags of the client: outputs of the length asked for, and what is reported of them."""
_LENGTHS = {
    "--random-input-len": "input_tokens",
    "--random-output-len": "output_tokens",
}
_PACE = {
    "--num-prompts": "requests",
    "--num-warmups": "warmup",
    "--max-concurrency": "concurrency",
    "--request-rate": "request_rate",
    "--temperature": "temperature",
}
"""Flags of the client, and the options whose values they take."""
_NUMBER = r"([\d.,]+)"
CLIENT_BEGINS = "Starting main benchmark run"
"""What the client prints when its warm-up is over."""
_PROGRESS = re.compile(r"\b(\d+)/(\d+) \[")
_HIT_RATE = re.compile(r"Prefix cache hit rate: ([\d.]+)%")
"""How many of its requests a client has answers to, and what the server says of its prefix cache."""
TOKENS_TOLERANCE = 0.02
"""Random prompts are decoded and encoded again, which adds a few tokens: more than this share is another load."""


class VllmBenchOptions(Options):
    """Random prompts of `input_tokens` tokens, `output_tokens` generated with the end-of-sequence token ignored.

    `serve` is the client of the `server` that its environment keeps. For a server that somebody else started there are
    `llama-benchy` and `openai-endpoint`.

    Example: {type: vllm-bench, mode: serve, requests: 64, input_tokens: 512, output_tokens: 128, concurrency: 8}
    """

    type: Literal["vllm-bench"] = "vllm-bench"
    mode: Literal["throughput", "latency", "serve"] = "throughput"
    """`throughput` and `latency` run in one process; `serve` is a client of the environment's `server`."""
    requests: PositiveInt = 100
    """Prompts of throughput and serve; in mode latency the number of measured batches."""
    input_tokens: PositiveInt = 512
    """Tokens of each prompt."""
    output_tokens: PositiveInt = 128
    """Tokens generated per request."""
    batch_size: PositiveInt = 8
    """Mode latency: requests in each batch; mode throughput: the most sequences that vLLM runs together. In mode serve
    the server's own arguments say it."""
    concurrency: PositiveInt | None = None
    """Mode serve: most requests in flight; None submits all at once."""
    request_rate: PositiveFloat | None = None
    """Mode serve: requests per second, submitted at random intervals (Poisson); None: as many as `concurrency` lets."""
    temperature: Annotated[float, Field(ge=0)] = 0.0
    """Mode serve: 0 takes the likeliest token. It is always said to the server, whose own default differs by model."""
    warmup: Annotated[int, Field(ge=0)] | None = None
    """Mode latency: batches before the measured ones; mode serve: requests before the measured ones. None: vLLM's own
    default, which is one request in mode serve: too few to compile what the first full batch needs."""
    extra_args: tuple[str, ...] = ()
    """Appended to the command of the engine, e.g. `--gpu-memory-utilization`, `"0.8"`, `--max-model-len`, `"4096"`; in
    mode serve to that of the client."""
    executable: Annotated[str, Field(min_length=1)] = "vllm"
    """The program, by name or path."""

    @property
    def measures_server(self) -> bool:
        """Mode serve does; the others have an engine of their own."""
        return self.mode == "serve"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for name in ("concurrency", "request_rate", "temperature"):
            if name in self.model_fields_set and self.mode != "serve":
                raise ValueError(f"{name} is for mode serve")
        if "warmup" in self.model_fields_set and self.mode == "throughput":
            raise ValueError("warmup is for modes latency and serve")
        return self

    def asked(self) -> dict[str, Any]:
        """In mode serve without the default of `batch_size`, which the server's own arguments say."""
        options = super().asked()
        if self.mode == "serve" and "batch_size" not in self.model_fields_set:
            options["batch_size"] = None
        return options

    @classmethod
    def load(cls, asked: Mapping[str, Any]) -> Load:
        """Mode latency: batch after batch. Mode throughput: all requests, of which a batch holds so many. Mode serve:
        those of a client; the server's batch is a setting."""
        load = Load.declared(asked)
        if asked.get("mode") != "latency":
            load = load.submitted_at_once()
        elif load.requests and load.batch:
            load = replace(load, requests=load.requests * load.batch)
        if asked.get("mode") == "serve":
            return load
        return load.in_batches()


def command(case: RunCase, options: VllmBenchOptions) -> Command:
    """One command; in mode serve the client of a server. Raises WorkloadError where the options make none."""
    if options.mode == "serve":
        return _serve(case, options)
    model = case.folder("vllm-bench")
    if options.mode == "throughput":
        begins = "Processed prompts"
        # `--input-len` is no use: the tool prefers `--random-input-len`, which has a default.
        load = {
            "--dataset-name": "random",
            "--random-input-len": options.input_tokens,
            "--random-output-len": options.output_tokens,
            "--num-prompts": options.requests,
            "--max-num-seqs": options.batch_size,
        }
    else:
        begins = "(?:Profiling|Bench) iterations"
        load = {
            "--input-len": options.input_tokens,
            "--output-len": options.output_tokens,
            "--num-iters": options.requests,
            "--batch-size": options.batch_size,
            "--num-iters-warmup": options.warmup,
        }
    argv = flags({"--model": model} | load | {"--output-json": f"{WORKDIR}/{REPORT}"})
    return Command(
        (options.executable, "bench", options.mode, *argv, *_engine(case, options)),
        SAID_AT_ONCE,
        dict,
        {"report": REPORT},
        begins,
    )


def _engine(case: RunCase, options: VllmBenchOptions) -> list[str]:
    """What an engine is told besides its model and load."""
    weights = "dummy" if case.random_weights else None
    return [
        *flags({"--seed": case.seed, "--load-format": weights}),
        *options.extra_args,
    ]


def _serve(case: RunCase, options: VllmBenchOptions) -> Command:
    """The client of the server that the environment keeps. Its prompts differ from run to run."""
    if case.server is None:
        raise WorkloadError(
            "mode serve of vllm-bench needs a server",
            where=f"workloads.{case.workload_key}",
            remedy="add server: to the environment",
        )
    if "batch_size" in options.model_fields_set:
        raise WorkloadError(
            "batch_size is said by the arguments of the environment's server",
            where=f"workloads.{case.workload_key}",
            remedy="remove batch_size:",
        )
    argv = flags(
        {"--model": case.folder("vllm-bench"), "--base-url": case.server.url}
        | random_prompts(options)
        | client_flags(options, case.prompt_seed)
    )
    return Command(
        (options.executable, "bench", "serve", *argv, *options.extra_args),
        SAID_AT_ONCE,
        dict,
        {"report": REPORT},
        CLIENT_BEGINS,
    )


def random_prompts(options: Options) -> dict[str, object]:
    """Flags of the client for prompts of random tokens."""
    lengths = {flag: getattr(options, name) for flag, name in _LENGTHS.items()}
    return {"--dataset-name": "random", **lengths}


def client_flags(options: Options, seed: int) -> dict[str, object]:
    """Flags of the client for how many requests it sends, how fast, and what it reports of them."""
    pace = {flag: getattr(options, name) for flag, name in _PACE.items()}
    return pace | {"--seed": seed} | dict(_REPORTED)


def parse(
    log: bytes, files: Mapping[str, bytes], options: VllmBenchOptions | None
) -> Answer:
    """The kind of report shows in its keys, so that an import needs no options."""
    printed = reading.lines(log)
    report = reading.json_object(files.get("report"))
    observed = _observed(report or {}, printed, options)
    if report is None:
        return no_answer("no report from vllm bench", observed)
    if _kind(report) == "serve" and reading.number(report.get("completed")) == 0:
        # The client ends with exit code 0 then, and reports zeros.
        return no_answer("no request succeeded", observed)
    metrics = _metrics(report, printed, options) | memory(printed)
    problems = []
    problems += contradictions(report)
    if options is not None:
        problems += _told_otherwise(report, options)
        problems += other_lengths(observed, options.input_tokens, options.output_tokens)
    complete = any(
        reading.known(metrics, name)
        for name in ("output_throughput_tok_s", "request_latency_mean_ms")
    )
    if not complete:
        problems.append(
            "the report holds neither a rate of output tokens nor a latency"
        )
    samples: Mapping[str, tuple[float, ...]] = {}
    if _kind(report) == "latency" and reading.known(metrics, "request_latency_mean_ms"):
        samples = _samples(report)
    return Answer(
        metrics,
        observed,
        said_at=_said_at(report),
        complete=complete,
        problems=tuple(problems),
        samples=samples,
    )


def contradictions(report: Mapping[str, Any]) -> list[str]:
    """Where a report's summaries are not of what it lists, and its sums not of their parts."""
    match _kind(report):
        case "latency":
            return _unlike_its_batches(report)
        case "serve":
            return _unlike_its_requests(report) + _lost(report)
    return []


def _unlike_its_batches(report: Mapping[str, Any]) -> list[str]:
    """Where mean and percentiles of mode latency are not those of its batches."""
    given = report.get("percentiles")
    shares = given if isinstance(given, dict) else {}
    said = {"mean": report.get("avg_latency")}
    said |= {f"p{share}": value for share, value in shares.items()}
    return agreement.of_values(
        "latency", said, reading.numbers(report.get("latencies"))
    )


def _unlike_its_requests(report: Mapping[str, Any]) -> list[str]:
    """Where a detailed report's summary is not of the requests in it. Failed ones are in the lists, with zeros."""
    firsts = reading.numbers(report.get("ttfts"))
    chunks = report.get("itls")
    if (
        reading.number(report.get("failed"))
        or not firsts
        or not isinstance(chunks, list)
    ):
        return []
    rests = [reading.numbers(times) for times in chunks]
    lengths = reading.numbers(report.get("output_lens"))
    if not len(firsts) == len(rests) == len(lengths):
        return [f"it lists {len(firsts)} first tokens and {len(lengths)} lengths"]
    latencies = [first + sum(rest) for first, rest in zip(firsts, rests, strict=True)]
    per_token = [
        sum(rest) / (length - 1)
        for rest, length in zip(rests, lengths, strict=True)
        if length > 1
    ]
    each: Mapping[str, list[float]] = {
        "ttft": firsts,
        "tpot": per_token,
        "itl": [time for rest in rests for time in rest],
        "e2el": latencies,
    }
    problems = []
    for kind, seconds in each.items():
        said = {"mean": report.get(f"mean_{kind}_ms")}
        said["p50"] = report.get(f"median_{kind}_ms")
        said |= {f"p{q}": report.get(f"p{q}_{kind}_ms") for q in (90, 95, 99)}
        problems += agreement.of_values(kind, said, [1e3 * time for time in seconds])
    for side in ("input", "output"):
        listed = reading.numbers(report.get(f"{side}_lens"))
        total = f"total_{side}_tokens"
        problems += agreement.equal(
            total,
            reading.number(report.get(total)),
            f"the sum of {side}_lens",
            sum(listed),
        )
    return problems


def _lost(report: Mapping[str, Any]) -> list[str]:
    """Requests that are neither answered nor failed."""
    sent, answered, failed = (
        reading.number(report.get(name))
        for name in ("num_prompts", "completed", "failed")
    )
    if sent is None or answered is None or failed is None or sent == answered + failed:
        return []
    return [f"of {sent:g} requests {answered:g} were answered and {failed:g} failed"]


def _told_otherwise(report: Mapping[str, Any], options: VllmBenchOptions) -> list[str]:
    """Where the client says that it was told another load than it was to be."""
    wanted = {
        "max_concurrency": options.concurrency,
        "request_rate": options.request_rate,
    }
    told = {name: reading.number(report.get(name)) for name in wanted}
    return [
        f"its {name} is {told[name]:g} in place of {value:g}"
        for name, value in wanted.items()
        if value is not None and told[name] is not None and told[name] != value
    ]


def _said_at(report: Mapping[str, Any]) -> datetime | None:
    """When a client wrote its report, in local time: `20261121-160325`."""
    with suppress(ValueError):
        return datetime.fromisoformat(str(report.get("date")).replace("-", "T"))
    return None


def other_lengths(
    observed: Observed, input_tokens: int | None, output_tokens: int
) -> list[str]:
    """Where requests were longer or shorter than asked for; None asks for no length of prompts."""
    lengths = (
        ("prompts", observed.input_tokens_mean, input_tokens),
        ("outputs", observed.output_tokens_mean, output_tokens),
    )
    return [
        f"{what} had {seen:g} tokens on average instead of {asked}"
        for what, seen, asked in lengths
        if seen is not None
        and asked is not None
        and abs(seen - asked) > TOKENS_TOLERANCE * asked
    ]


def _kind(report: Mapping[str, Any]) -> Literal["throughput", "latency", "serve"]:
    """The mode that wrote a report. `latencies` are batches in mode latency, and requests in mode serve since 0.32."""
    if "elapsed_time" in report:
        return "throughput"
    if "completed" not in report and ("latencies" in report or "avg_latency" in report):
        return "latency"
    return "serve"


def _metrics(
    report: Mapping[str, Any], printed: list[str], options: VllmBenchOptions | None
) -> dict[str, MetricValue]:
    kind = _kind(report)
    if kind == "latency":
        return _latency(report, options)
    if kind == "throughput":
        return _throughput(report, printed)
    stems = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "request_latency": "e2el"}
    paths = {
        "output_throughput_tok_s": "output_throughput",
        "total_throughput_tok_s": "total_token_throughput",
        "request_throughput_req_s": "request_throughput",
    }
    for stem, theirs in stems.items():
        paths[f"{stem}_mean_ms"] = f"mean_{theirs}_ms"
        paths[f"{stem}_p50_ms"] = f"median_{theirs}_ms"
        paths |= {f"{stem}_p{q}_ms": f"p{q}_{theirs}_ms" for q in (90, 95, 99)}
    found = reading.metrics_at(report, paths, "report")
    found |= _cache_hits(printed) | llama_server.cache_hits(_measured(printed))
    found |= reading.failed_requests(
        reading.number(report.get("failed")), reading.number(report.get("completed"))
    )
    return found | reading.measured_time(report, "duration")


def _measured(printed: list[str]) -> list[str]:
    """The lines from the beginning of the measurement on; none where the client does not say when that was."""
    begins = (place for place, line in enumerate(printed) if CLIENT_BEGINS in line)
    return printed[next(begins, len(printed)) :]


def _cache_hits(printed: list[str]) -> dict[str, MetricValue]:
    """The hit rate that the server printed last, when at least half of the requests were done: the client's warm-up
    sends one prompt repeatedly, and the rate is over all that the server has seen."""
    hits, is_late = None, False
    for line in _measured(printed):
        done = _PROGRESS.search(line)
        if done is not None:
            is_late = 2 * int(done[1]) >= int(done[2])
        found = _HIT_RATE.search(line)
        if found is not None and is_late:
            hits = found[1]
    return reading.metrics({"prefix_cache_hit_percent": hits}, "log")


def _throughput(
    report: Mapping[str, Any], printed: list[str]
) -> dict[str, MetricValue]:
    """The report counts prompt and output tokens together; only a printed line counts the output alone."""
    found = {}
    output = reading.search(printed, rf"Throughput:.*?{_NUMBER} output tokens/s")
    if output is not None:
        found["output_throughput_tok_s"] = reading.metric(
            "output_throughput_tok_s", output, "log"
        )
    rates = {
        "total_throughput_tok_s": "tokens_per_second",
        "request_throughput_req_s": "requests_per_second",
    }
    found |= reading.metrics_at(report, rates, "report")
    return found | reading.measured_time(report, "elapsed_time")


def printed(log: bytes) -> dict[str, tuple[float, float]]:
    """The table that `vllm bench serve` prints."""
    rates = {
        "output_throughput_tok_s": rf"Output token throughput \(tok/s\):\s+{_NUMBER}",
        "request_throughput_req_s": rf"Request throughput \(req/s\):\s+{_NUMBER}",
    }
    duration = {"measured_time_ms": rf"Benchmark duration \(s\):\s+{_NUMBER}"}
    return reading.printed(log, rates) | reading.printed(log, duration, scale=1e3)


def _latency(
    report: Mapping[str, Any], options: VllmBenchOptions | None
) -> dict[str, MetricValue]:
    """Seconds per batch. The rate needs the size of the batch, which only the matrix knows."""
    seconds = [value for value in reading.numbers(report.get("latencies")) if value]
    found = reading.distribution(
        "request_latency", [1e3 * value for value in seconds], "report"
    )
    if not seconds:
        found |= reading.metrics_at(
            report, {"request_latency_mean_ms": "avg_latency"}, "report", scale=1e3
        )
    if options is not None and seconds:
        rate = options.batch_size * options.output_tokens * len(seconds) / sum(seconds)
        found["output_throughput_tok_s"] = reading.metric(
            "output_throughput_tok_s", rate, "report"
        )
    return found


def _samples(report: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    """The latency of each batch of mode latency, in ms."""
    seconds = reading.numbers(report.get("latencies"))
    batches = reading.durations([1e3 * time for time in seconds if time])
    if len(batches) < 2:
        return {}
    return {"request_latency_mean_ms": tuple(batches)}


def memory(printed: list[str]) -> dict[str, MetricValue]:
    """What the engine printed about weights and KV cache."""
    patterns = {
        "weights_gib": rf"Model loading took {_NUMBER} GiB",
        "kv_cache_gib": rf"Available KV cache memory: {_NUMBER} GiB",
        "kv_cache_tokens": rf"[GC]PU KV cache size: {_NUMBER} tokens",
    }
    found = {
        name: reading.search(printed, pattern) for name, pattern in patterns.items()
    }
    return reading.metrics(found, "log")


def _observed(
    report: Mapping[str, Any], printed: list[str], options: VllmBenchOptions | None
) -> Observed:
    """What the engine's first line and its memory lines say, and what the report counts."""
    requests = _requests(report, options)
    said: dict[str, Any] = {
        **_engine_said(report, printed),
        **_model_said(printed),
        **_memory_said(printed),
        "requests": requests,
        **_tokens(report, printed, requests),
        "batch_size": _batch_size(printed, options),
        "measured_seconds": _measured_seconds(report),
        "settings": _settings(printed) | _foreign_tokenizer(report),
    }
    llama = llama_server.identity(printed)
    if llama:
        known = {name: value for name, value in said.items() if value is not None}
        said = llama_server.merged(known, llama)
        said["model_path"] = llama["model_path"]
    return reading.observed(said)


def _engine_said(report: Mapping[str, Any], printed: list[str]) -> dict[str, Any]:
    """The engine, its version and the model that it loaded, else the one that a client names.

    A client's report alone does not say what served it: its backend `vllm` is the usual protocol of many servers.
    """
    loaded = reading.search(printed, r"with config: model='([^']+)'")
    is_vllm = loaded is not None or (bool(report) and _kind(report) != "serve")
    return {
        "engine": "vLLM" if is_vllm else None,
        "engine_version": reading.search(printed, r"LLM engine \(v([^)\s]+)\)"),
        "model_path": loaded or reading.word(report.get("model_id")),
    }


def _model_said(printed: list[str]) -> dict[str, Any]:
    """Types of weights and cache, and how tokens are made."""
    said: dict[str, Any] = {
        "dtype": reading.search(printed, r"\bdtype=torch\.(\w+)"),
        "kv_cache_dtype": reading.search(printed, r"\bkv_cache_dtype=(\w+)"),
        "quantization": reading.word(reading.search(printed, r"\bquantization=(\w+)")),
    }
    speculative = reading.search(printed, r"\bspeculative_config=(\w+)")
    if speculative is not None:
        said["speculative_decoding"] = speculative != "None"
    load_format = reading.search(printed, r"\bload_format=(?:LoadFormat\.)?['\"]?(\w+)")
    if load_format is not None:
        said["random_weights"] = load_format.lower() == "dummy"
    return said


def _memory_said(printed: list[str]) -> dict[str, int]:
    """Bytes of the weights, and of a token in the KV cache."""
    found = {name: item.value for name, item in memory(printed).items()}
    weights, cache = found.get("weights_gib"), found.get("kv_cache_gib")
    tokens = found.get("kv_cache_tokens")
    said = {}
    if weights:
        said["weight_bytes"] = round(weights * GIB)
    if cache and tokens:
        said["kv_bytes_per_token"] = round(cache * GIB / tokens)
    return said


_SETTINGS = (
    "load_format",
    "enforce_eager",
    "tensor_parallel_size",
    "max_seq_len",
    "enable_prefix_caching",
    "enable_chunked_prefill",
    "revision",
)
"""What the engine's first line says as `name=value`."""
_SAID = {
    "max_num_batched_tokens": r"\bmax_num_batched_tokens=(\d+)",
    "attention_backend": r"Using (\w+) (?:attention )?backend\b",
    "cudagraph_mode": r"\bcudagraph_mode\W+CUDAGraphMode\.(\w+)",
    "async_scheduling": r"\bAsynchronous scheduling is (enabled|disabled)",
}
"""What it says in other words."""
_WORDS = (
    *_SETTINGS,
    "max_num_batched_tokens",
    " backend",
    "cudagraph_mode",
    "Asynchronous scheduling",
    "speculative_config",
)
"""Words that a line has which says one of these. Looked for first, they spare a log of thousands of lines the rest."""


def _settings(printed: list[str]) -> dict[str, str]:
    """How the engine was set, as far as it says so."""
    patterns = {name: rf"\b{name}=['\"]?([\w.-]+)" for name in _SETTINGS}
    lines = [line for line in printed if any(word in line for word in _WORDS)]
    settings = {}
    for name, pattern in (patterns | _SAID).items():
        said = reading.search(lines, pattern)
        if said is not None:
            settings[name] = said
    if reading.search(lines, r"\bspeculative_config=(\w+)") is not None:
        method = r"\bspeculative_config=SpeculativeConfig\(method='([^']+)'"
        settings["speculative_config"] = reading.search(lines, method) or "none"
    return settings


def _foreign_tokenizer(report: Mapping[str, Any]) -> dict[str, str]:
    """The tokenizer that cut the prompts, where it is that of a model whose name has no word in common."""
    used, model = (
        reading.word(report.get(f"{name}_id")) for name in ("tokenizer", "model")
    )
    if used is None or model is None or used.startswith(("/", ".")):
        return {}
    own, other = (set(re.findall("[a-z]{3,}", name.lower())) for name in (model, used))
    return {} if own & other else {"tokenizer": f"{used}, of another model"}


def _requests(
    report: Mapping[str, Any], options: VllmBenchOptions | None
) -> int | None:
    """How many requests were answered; in mode latency those of all batches."""
    counted = reading.positive_int(report.get("completed", report.get("num_requests")))
    if counted is not None or options is None:
        return counted
    batches = reading.numbers(report.get("latencies"))
    return len(batches) * options.batch_size or None


def _measured_seconds(report: Mapping[str, Any]) -> float | None:
    """How long the measurement took: batches of mode latency run one after the other."""
    if _kind(report) == "latency":
        return sum(reading.numbers(report.get("latencies"))) or None
    return reading.number(report.get("duration", report.get("elapsed_time")))


def _tokens(
    report: Mapping[str, Any], printed: list[str], requests: int | None
) -> dict[str, float]:
    """Tokens per request that were really processed: serve reports the sums, throughput prints them."""
    if requests is None:
        return {}
    sums = {
        "input_tokens_mean": report.get("total_input_tokens"),
        "output_tokens_mean": report.get("total_output_tokens"),
    }
    if _kind(report) == "throughput":
        sums = {
            "input_tokens_mean": reading.search(
                printed, rf"Total num prompt tokens:\s+{_NUMBER}"
            ),
            "output_tokens_mean": reading.search(
                printed, rf"Total num output tokens:\s+{_NUMBER}"
            ),
        }
    found = {name: reading.number(total) for name, total in sums.items()}
    return {
        name: total / requests for name, total in found.items() if total is not None
    }


def _batch_size(printed: list[str], options: VllmBenchOptions | None) -> int | None:
    """Most sequences that the engine ran together: as it said itself, else as it was told."""
    said = reading.positive_int(reading.search(printed, r"'max_num_seqs': (\d+)"))
    if said is not None or options is None:
        return said
    if options.mode == "serve" and "batch_size" not in options.model_fields_set:
        return None
    return options.batch_size
