"""`vllm bench`: throughput, latency and serve, from the JSON files that vLLM writes (`vllm/benchmarks`).

The throughput file counts prompt and output tokens together; the rate of output tokens is printed only. The
latency file gives seconds per batch and not the size of the batch. None of them says which model was loaded: the
engine's log does.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from sparkpub.plan.workloads import reading
from sparkpub.plan.workloads.base import PYTHON, WORKDIR, Answer, Case, Command, Options, flags
from sparkpub.record.metrics import GIB
from sparkpub.record.record import MetricValue, Observed

_REPORT, _DRIVER = "report.json", "vllm_serve.py"
_NUMBER = r"([\d.,]+)"
_SAID_AT_ONCE = {"PYTHONUNBUFFERED": "1"}
"""Without it the line that begins the measurement would come when it is over."""


class VllmBenchOptions(Options):
    """Random prompts of `input_tokens` tokens, `output_tokens` generated with the end-of-sequence token ignored.

    `serve` starts a server, waits until it is healthy, measures, and stops it.
    """

    mode: Literal["throughput", "latency", "serve"] = "throughput"
    """`throughput` and `latency` run in one process; `serve` is a server and a client."""
    requests: PositiveInt = 100
    """Prompts of throughput and serve; in mode latency the number of measured batches."""
    input_tokens: PositiveInt = 512
    """Tokens of each prompt."""
    output_tokens: PositiveInt = 128
    """Tokens generated per request."""
    batch_size: PositiveInt = 8
    """Mode latency: requests in each batch; else the most sequences that vLLM runs together."""
    concurrency: PositiveInt | None = None
    """Mode serve: most requests in flight; None submits all at once."""
    warmup: Annotated[int, Field(ge=0)] | None = None
    """Mode latency: batches before the measured ones; vLLM's own default where it is left out."""
    port: Annotated[int, Field(ge=1024, le=65535)] = 8137
    """Mode serve: TCP port on 127.0.0.1."""
    start_seconds: PositiveInt = 900
    """Mode serve: how long the server may take to become healthy, in seconds."""
    extra_args: tuple[str, ...] = ()
    """Appended to the command of the engine, e.g. `--gpu-memory-utilization`, `"0.8"`, `--max-model-len`, `"4096"`."""
    executable: Annotated[str, Field(min_length=1)] = "vllm"
    """The program, by name or path."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for names, mode in ((("concurrency", "port", "start_seconds"), "serve"), (("warmup",), "latency")):
            for name in names:
                if name in self.model_fields_set and self.mode != mode:
                    raise ValueError(f"{name} is for mode {mode}")
        return self


def command(case: Case, options: VllmBenchOptions) -> Command:
    """One command; in mode serve a driver of server and client. Raises WorkloadError without a folder."""
    model, weights = case.folder("vllm-bench"), "dummy" if case.random_weights else None
    engine = [*flags({"--seed": case.seed, "--load-format": weights}), *options.extra_args]
    if options.mode == "serve":
        return _serve(case, model, options, engine)
    throughput = options.mode == "throughput"
    argv = flags({
        "--model": model, "--input-len": options.input_tokens, "--output-len": options.output_tokens,
        "--dataset-name": "random" if throughput else None,
        "--num-prompts" if throughput else "--num-iters": options.requests,
        "--max-num-seqs" if throughput else "--batch-size": options.batch_size,
        "--num-iters-warmup": options.warmup, "--output-json": f"{WORKDIR}/{_REPORT}",
    })  # fmt: skip
    begins = "Processed prompts" if throughput else "(?:Profiling|Bench) iterations"
    argv = [options.executable, "bench", options.mode, *argv, *engine]
    return Command(tuple(argv), _SAID_AT_ONCE, {}, {"report": _REPORT}, begins)


def parse(log: bytes, files: Mapping[str, bytes], options: VllmBenchOptions | None) -> Answer:
    """The kind of report shows in its keys, so that an import needs no options."""
    printed = reading.lines(log)
    report = reading.json_object(files.get("report"))
    if report is None:
        return Answer({}, _observed({}, printed, options), complete=False, problems=("no report from vllm bench",))
    metrics = _memory(printed) | _metrics(report, printed, options)
    problems = []
    if failed := reading.number(report.get("failed")):
        problems.append(f"{failed:g} requests failed")
    complete = any(reading.known(metrics, name) for name in ("output_throughput_tok_s", "request_latency_mean_ms"))
    if not complete:
        problems.append("the report holds neither a rate of output tokens nor a latency")
    return Answer(metrics, _observed(report, printed, options), complete=complete, problems=tuple(problems))


def _serve(case: Case, model: str, options: VllmBenchOptions, engine: list[str]) -> Command:
    """A driver starts the server, waits for it, runs the client and stops the server."""
    address = {"--host": "127.0.0.1", "--port": options.port}
    server = [model, *flags(address | {"--max-num-seqs": options.batch_size}), *engine]
    client = flags({
        "--model": model, **address, "--dataset-name": "random", "--num-prompts": options.requests,
        "--seed": case.seed, "--random-input-len": options.input_tokens,
        "--random-output-len": options.output_tokens, "--max-concurrency": options.concurrency, "--ignore-eos": True,
        "--percentile-metrics": "ttft,tpot,itl,e2el", "--metric-percentiles": "50,90,95,99", "--save-result": True,
        "--result-dir": WORKDIR, "--result-filename": _REPORT,
    })  # fmt: skip
    driver = (PYTHON, f"{WORKDIR}/{_DRIVER}", str(options.port), str(options.start_seconds))
    argv = (*driver, "--", options.executable, "serve", *server, "--", options.executable, "bench", "serve", *client)
    files = {_DRIVER: reading.payload(_DRIVER)}
    return Command(argv, _SAID_AT_ONCE, files, {"report": _REPORT}, "Starting main benchmark run")


def _metrics(report: Mapping[str, Any], printed: list[str], options: VllmBenchOptions | None) -> dict[str, MetricValue]:
    if "latencies" in report or "avg_latency" in report:
        return _latency(report, options)
    if "elapsed_time" in report:
        rates = {"total_throughput_tok_s": "tokens_per_second", "request_throughput_req_s": "requests_per_second"}
        found = reading.metrics_at(report, rates, "report")
        found |= reading.metrics_at(report, {"measured_time_ms": "elapsed_time"}, "report", scale=1e3)
        output = reading.search(printed, rf"Throughput:.*?{_NUMBER} output tokens/s")
        if output is not None:
            found["output_throughput_tok_s"] = reading.metric("output_throughput_tok_s", output, "log")
        return found
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
    return found | reading.metrics_at(report, {"measured_time_ms": "duration"}, "report", scale=1e3)


def _latency(report: Mapping[str, Any], options: VllmBenchOptions | None) -> dict[str, MetricValue]:
    """Seconds per batch. The rate needs the size of the batch, which only the matrix knows."""
    seconds = [value for value in reading.numbers(report.get("latencies")) if value]
    found = reading.distribution("request_latency", [1e3 * value for value in seconds], "report")
    if not seconds:
        found |= reading.metrics_at(report, {"request_latency_mean_ms": "avg_latency"}, "report", scale=1e3)
    if options is not None and seconds:
        rate = options.batch_size * options.output_tokens * len(seconds) / sum(seconds)
        found["output_throughput_tok_s"] = reading.metric("output_throughput_tok_s", rate, "report")
    return found


def _memory(printed: list[str]) -> dict[str, MetricValue]:
    patterns = {
        "weights_gib": rf"Model loading took {_NUMBER} GiB",
        "kv_cache_gib": rf"Available KV cache memory: {_NUMBER} GiB",
        "kv_cache_tokens": rf"GPU KV cache size: {_NUMBER} tokens",
    }
    found = {name: reading.search(printed, pattern) for name, pattern in patterns.items()}
    return {name: reading.metric(name, value, "log") for name, value in found.items() if value is not None}


def _observed(report: Mapping[str, Any], printed: list[str], options: VllmBenchOptions | None) -> Observed:
    """What the engine's first line and its memory lines say."""
    memory = {name: value.value for name, value in _memory(printed).items()}
    weights, cache, tokens = (memory.get(name) for name in ("weights_gib", "kv_cache_gib", "kv_cache_tokens"))
    load_format = reading.search(printed, r"\bload_format=(?:LoadFormat\.)?['\"]?(\w+)")
    requests = reading.positive_int(report.get("completed", report.get("num_requests")))
    if requests is None and options is not None:
        requests = len(reading.numbers(report.get("latencies"))) * options.batch_size or None
    settings = {
        name: reading.search(printed, rf"\b{name}=['\"]?([\w.-]+)")
        for name in ("load_format", "enforce_eager", "tensor_parallel_size", "max_seq_len")
    }
    path = reading.search(printed, r"with config: model='([^']+)'") or reading.word(report.get("model_id"))
    return reading.observed(
        {
            "engine": "vLLM" if report or path else None,
            "engine_version": reading.search(printed, r"LLM engine \(v([^)\s]+)\)"),
            "model_path": path,
            "random_weights": None if load_format is None else load_format.lower() == "dummy",
            "weight_bytes": round(weights * GIB) if weights else None,
            "kv_bytes_per_token": round(cache * GIB / tokens) if cache and tokens else None,
            "dtype": reading.search(printed, r"\bdtype=torch\.(\w+)"),
            "kv_cache_dtype": reading.search(printed, r"\bkv_cache_dtype=(\w+)"),
            "quantization": reading.word(reading.search(printed, r"\bquantization=(\w+)")),
            "requests": requests,
            "batch_size": options.batch_size if options else None,
            "measured_seconds": reading.number(report.get("duration", report.get("elapsed_time"))),
            "settings": {name: value for name, value in settings.items() if value is not None},
        }
    )
