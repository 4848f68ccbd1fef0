"""`vllm bench serve`, and what all three modes of `vllm bench` leave: the JSON files of `vllm/benchmarks`.

The throughput file counts prompt and output tokens together; the rate of output tokens is printed only. The
latency file gives seconds per batch and not the size of the batch. None of them says which model was loaded: the
engine's log does.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from sparkpub.plan.workloads import clients, server_pages
from sparkpub.plan.workloads.base import (
    SAID_AT_ONCE,
    WORKDIR,
    Answer,
    ClientOptions,
    Command,
    RunCase,
    flags,
    no_answer,
)
from sparkpub.record.record import MetricValue
from sparkpub.tools import reading
from sparkpub.tools.reader import ReportReading, read

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
_LOAD = {
    "--random-input-len": "input_tokens",
    "--random-output-len": "output_tokens",
    "--num-prompts": "requests",
    "--num-warmups": "warmup",
    "--max-concurrency": "concurrency",
    "--request-rate": "request_rate",
    "--temperature": "temperature",
}
"""Flags, and the options whose values they take."""
_NUMBER = r"([\d.,]+)"
CLIENT_BEGINS = "Starting main benchmark run"
"""What the client prints when its warm-up is over."""
_PROGRESS = re.compile(r"\b(\d+)/(\d+) \[")
_HIT_RATE = re.compile(r"Prefix cache hit rate: ([\d.]+)%")
"""How many of its requests a client has answers to, and what the server says of its prefix cache."""


class VllmBenchOptions(ClientOptions):
    """Random prompts of `input_tokens` tokens, `output_tokens` generated with the end-of-sequence token ignored.

    `serve` is the client of the `server` that its environment keeps, or of one at `url` that runs already. It takes a
    key for that server from the variable `OPENAI_API_KEY` of its environment, if it needs one.

    Example: {type: vllm-bench, mode: serve, requests: 64, input_tokens: 512, output_tokens: 128, concurrency: 8}
    """

    type: Literal["vllm-bench"] = "vllm-bench"
    mode: Literal["serve", "throughput", "latency"] = "throughput"
    """`serve` is a client of a server. The other two are no longer run, and stay readable in campaigns: they are
    programs for the workload `command`."""
    tokenizer: Annotated[str, Field(min_length=1)] | None = None
    """Folder or name of the tokenizer, with which prompts are made and tokens counted; None: the model's
    folder."""
    requests: PositiveInt = 100
    """Prompts that are measured."""
    input_tokens: PositiveInt = 512
    """Tokens of each prompt."""
    output_tokens: PositiveInt = 128
    """Tokens generated per request."""
    concurrency: PositiveInt | None = None
    """Most requests in flight; None submits all at once."""
    request_rate: PositiveFloat | None = None
    """Requests per second, submitted at random intervals (Poisson); None: as many as `concurrency` lets."""
    temperature: Annotated[float, Field(ge=0)] = 0.0
    """0 takes the likeliest token. It is always said to the server, whose own default differs by model."""
    warmup: Annotated[int, Field(ge=0)] | None = None
    """Requests before the measured ones. None: vLLM's own default, which is one request: too few to compile what the
    first full batch needs."""
    extra_args: tuple[str, ...] = ()
    """Appended to the command of the client."""
    executable: Annotated[str, Field(min_length=1)] = "vllm"
    """The program, by name or path."""

    @property
    def programs(self) -> Mapping[str, str]:
        """The client that a driver starts."""
        return {} if self.url is None else {self.executable: "uv tool install vllm"}


def command(case: RunCase, options: VllmBenchOptions) -> Command:
    """The client of a server: of the environment's, or in a driver of one that runs already. Its prompts differ from
    run to run. Raises WorkloadError where the options make none."""
    if options.mode != "serve":
        what = f"mode {options.mode} of vllm-bench is no longer run; its records stay readable"
        raise case.refusal(what, "write mode: serve, or use the workload command")
    url = case.server_url(options.url, "mode serve of vllm-bench")
    model, tokenizer = "{model}", options.tokenizer or case.model_path
    if options.url is None:
        model, tokenizer = case.folder("vllm-bench"), options.tokenizer
    elif tokenizer is None:
        what = "mode serve of vllm-bench needs a tokenizer"
        raise case.refusal(what, "add tokenizer:, or path: of the model")
    argv = flags(
        {"--model": model, "--tokenizer": tokenizer}
        | {"--base-url": url, "--dataset-name": "random"}
        | {flag: getattr(options, name) for flag, name in _LOAD.items()}
        | {"--seed": case.prompt_seed}
        | dict(_REPORTED)
    )
    words = (options.executable, "bench", "serve", *argv, *options.extra_args)
    made = Command(words, SAID_AT_ONCE, dict, {"report": REPORT}, CLIENT_BEGINS)
    if options.url is None:
        return made
    # A tokenizer is a folder, or was fetched before: nothing is fetched while something is measured.
    offline = replace(made, variables={"HF_HUB_OFFLINE": "1"})
    return clients.driven(case, options, offline, client="vllm")


def parse(
    log: bytes, files: Mapping[str, bytes], options: VllmBenchOptions | None
) -> Answer:
    """The kind of report shows in its keys, so that an import needs no options."""
    left = clients.LeftBehind(log, files)
    said = read(left.report, ("vllm-bench",))
    if said is None:
        observed = reading.observed(left.identity)
        return no_answer("no report from vllm bench", observed)
    facts, besides = _beside(left, said)
    settings = {**left.identity["settings"], **_foreign_tokenizer(left.report)}
    observed = reading.observed(facts | left.identity | {"settings": settings})
    if said.mode == "serve" and not said.succeeded:
        # The client ends with exit code 0 then, and reports zeros.
        return no_answer("no request succeeded", observed)
    metrics = {**said.metrics, **besides, **left.printed.metrics}
    if said.mode == "throughput":
        metrics = besides | metrics  # the rate that runs are compared by comes first
    problems = []
    if options is not None:
        # One request tries the server, others warm it up, and the rest is measured.
        warmup = 1 if options.warmup is None else options.warmup
        most = (1 + warmup + options.requests) * options.output_tokens
        problems += server_pages.other_users(left.server, most)
    complete = any(
        reading.known(metrics, name)
        for name in ("output_throughput_tok_s", "request_latency_mean_ms")
    )
    if not complete:
        problems.append(
            "the report holds neither a rate of output tokens nor a latency"
        )
    return left.answer(
        said,
        metrics,
        problems,
        observed=observed,
        complete=complete,
    )


def _beside(
    left: clients.LeftBehind, said: ReportReading
) -> tuple[dict[str, Any], dict[str, MetricValue]]:
    """What was observed, and figures that the report does not say and its log does.

    A client's report alone does not say what served it: its backend `vllm` is the usual protocol of many servers.
    """
    facts = said.facts
    if said.mode == "serve":
        return facts, _cache_hits(left.lines)
    facts["engine"] = "vLLM"
    if said.mode == "throughput":
        # The report counts prompt and output tokens together; only printed lines count each alone.
        for side, word in (("input", "prompt"), ("output", "output")):
            line = rf"Total num {word} tokens:\s+{_NUMBER}"
            total = reading.number(reading.search(left.lines, line))
            if total is not None and facts["requests"]:
                facts[f"{side}_tokens_mean"] = total / facts["requests"]
        line = rf"Throughput:.*?{_NUMBER} output tokens/s"
        rate = reading.search(left.lines, line)
        return facts, reading.metrics({"output_throughput_tok_s": rate}, "log")
    # One batch after the other.
    seconds = sum(reading.numbers(left.report.get("latencies")))
    return facts | {"measured_seconds": seconds or None}, {}


def _measured(printed: list[str]) -> list[str]:
    """The lines from the beginning of the measurement on; none where the client does not say when that was."""
    begins = (place for place, line in enumerate(printed) if CLIENT_BEGINS in line)
    return printed[next(begins, len(printed)) :]


def _cache_hits(printed: list[str]) -> dict[str, MetricValue]:
    """The hit rate that the server printed last, when at least half of the requests were done: the client's warm-up
    sends one prompt repeatedly, and the rate is over all that the server has seen."""
    hits, is_late = None, False
    for line in _measured(printed):
        done, found = _PROGRESS.search(line), _HIT_RATE.search(line)
        if done is not None:
            is_late = 2 * int(done[1]) >= int(done[2])
        if found is not None and is_late:
            hits = found[1]
    return reading.metrics({"prefix_cache_hit_percent": hits}, "log")


def printed(log: bytes) -> dict[str, tuple[float, float]]:
    """The table that `vllm bench serve` prints."""
    rates = {
        "output_throughput_tok_s": rf"Output token throughput \(tok/s\):\s+{_NUMBER}",
        "request_throughput_req_s": rf"Request throughput \(req/s\):\s+{_NUMBER}",
    }
    duration = {"measured_time_ms": rf"Benchmark duration \(s\):\s+{_NUMBER}"}
    return reading.printed(log, rates) | reading.printed(log, duration, scale=1e3)


def _foreign_tokenizer(report: Mapping[str, Any]) -> dict[str, str]:
    """The tokenizer that cut the prompts, where it is that of a model whose name has no word in common."""
    used, model = (
        reading.word(report.get(f"{name}_id")) for name in ("tokenizer", "model")
    )
    if used is None or model is None or used.startswith(("/", ".", "<")):
        return {}  # a folder, which may begin with <home>
    own, other = (set(re.findall("[a-z]{3,}", name.lower())) for name in (model, used))
    return {} if own & other else {"tokenizer": f"{used}, of another model"}
