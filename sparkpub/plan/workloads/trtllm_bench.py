"""trtllm-bench, the benchmark of TensorRT-LLM: throughput and latency, old versions and new.

Formats and their history: NVIDIA/TensorRT-LLM, `tensorrt_llm/bench` and `tensorrt_llm/commands/bench.py`.
"""

import json
import random
import re
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, PositiveInt, model_validator

from sparkpub.plan.workloads.base import (
    WORKDIR,
    Answer,
    Command,
    Options,
    RunCase,
    flags,
)
from sparkpub.record.errors import WorkloadError
from sparkpub.tools import engine, reading
from sparkpub.tools.reader import ReportReading, of_tool
from sparkpub.tools.shapes import trtllm_bench as shape

_DATASET, _API, _REPORT, _REQUESTS = (
    "dataset.jsonl",
    "llm_api_options.yaml",
    "report.json",
    "requests.json",
)
_TOKEN_IDS = 100, 30_000
"""Random prompts are drawn from these; every vocabulary in use is larger."""


class TrtllmBenchOptions(Options):
    """Options of `trtllm-bench throughput` and `trtllm-bench latency`.

    The dataset is generated: `requests` prompts of `input_tokens` random token ids from the seed of the matrix, the
    same in every iteration. `max_batch_size` and `max_num_tokens` are always passed, since the tool's own choice
    reads NVML memory, which GB10 does not offer.

    Example: {type: trtllm-bench, requests: 50, input_tokens: 512, output_tokens: 128, concurrency: 8}
    """

    type: Literal["trtllm-bench"] = "trtllm-bench"
    mode: Literal["throughput", "latency"] = "throughput"
    """`throughput` serves `requests` as fast as it can; `latency` one after the other, at batch 1."""
    requests: PositiveInt = 50
    """Requests measured."""
    input_tokens: PositiveInt | None = None
    """Tokens of each prompt. Required for a run; imports do not know it."""
    output_tokens: PositiveInt = 128
    """Tokens generated per request; the end-of-sequence token is ignored."""
    max_batch_size: PositiveInt = 8
    """Maximum batch size. Mode latency runs batch 1."""
    max_num_tokens: PositiveInt = 8192
    """Most tokens in one step of the engine, prompts included; not the size of the KV cache."""
    concurrency: PositiveInt | None = None
    """Requests in flight; none submits all at once, so that latency includes the queue."""
    warmup: Annotated[int, Field(ge=0)] = 2
    """Requests before the measured ones; they do not count."""
    streaming: bool = True
    """Stream tokens, which TTFT and TPOT need; mode latency always does."""
    kv_cache_tokens: PositiveInt | None = None
    """Pins the KV cache to so many tokens: the fair way to compare environments."""
    llm_api_options: dict[str, Any] = Field(default_factory=dict)
    """Merged last into the YAML that trtllm-bench takes, for options that are not listed here."""
    executable: Annotated[str, Field(min_length=1)] = "trtllm-bench"
    """The program, by name or path."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (
            self.mode == "latency"
            and self.max_batch_size != 1
            and "max_batch_size" in self.model_fields_set
        ):
            raise ValueError(
                "mode latency runs batch 1 whatever max_batch_size says; leave it out"
            )
        return self


def command(case: RunCase, options: TrtllmBenchOptions) -> Command:
    """Dataset, YAML and argv. Raises WorkloadError where the prompts or the model's folder are not declared."""
    if options.input_tokens is None:
        where = "workload option input_tokens"
        raise WorkloadError(
            "trtllm-bench needs the length of its prompts",
            where=where,
            remedy="declare it",
        )
    throughput = options.mode == "throughput"
    api = llm_api_options(case, options)
    outputs = {"report": _REPORT} | ({"requests": _REQUESTS} if throughput else {})
    argv = flags(
        {
            "--dataset": f"{WORKDIR}/{_DATASET}",
            "--num_requests": options.requests,
            "--warmup": options.warmup,
            "--max_batch_size": options.max_batch_size if throughput else None,
            "--max_num_tokens": options.max_num_tokens,
            "--concurrency": options.concurrency,
            "--streaming": throughput and options.streaming,
            "--extra_llm_api_options": f"{WORKDIR}/{_API}" if api else None,
            "--report_json": f"{WORKDIR}/{_REPORT}",
            "--request_json": f"{WORKDIR}/{_REQUESTS}" if throughput else None,
        }
    )
    model = ("--model", case.model_id, "--model_path", case.folder("trtllm-bench"))
    # Said once after the warm-up and once after the measurement; without a warm-up the measurement is all there is.
    begins = r"\bRequest submission complete\."
    if options.warmup:
        begins = r"\bBenchmark complete\."
    prompts = partial(dataset, options, options.input_tokens, case.seed)
    return Command(
        (options.executable, *model, options.mode, *argv),
        {},
        lambda: {_DATASET: prompts()} | _as_file(api),
        outputs,
        begins,
    )


def _as_file(api: Mapping[str, Any]) -> dict[str, bytes]:
    """The YAML of these options; no file where there are none."""
    if not api:
        return {}
    return {_API: yaml.safe_dump(dict(api), sort_keys=True).encode()}


def parse(
    log: bytes, files: Mapping[str, bytes], options: TrtllmBenchOptions | None
) -> Answer:
    """Report first, log for what only the log says, percentiles recomputed from the requests' own records where they
    were kept. `complete` needs a throughput."""
    mapping = of_tool("trtllm-bench")
    report = reading.json_object(files.get("report"))
    requests = reading.objects(reading.json_value(files.get("requests")))
    in_log = ReportReading(mapping, shape.of_log(log), "log")
    in_report = ReportReading(mapping, shape.of_report(report or {}))
    in_requests = ReportReading(mapping, shape.of_requests(requests))
    metrics = in_log.metrics | in_report.metrics | in_requests.metrics
    observed = reading.observed(
        engine.merged(reading.said(in_report.facts), reading.said(in_log.facts))
    )
    complete = reading.known(metrics, "output_throughput_tok_s")
    problems = []
    if not complete:
        problems.append(_why_incomplete("\n".join(shape.plain(log))))
    if "report" in files and report is None:
        problems.append("the JSON report is cut short or is not JSON")
    wanted = None if options is None else options.requests
    if wanted is not None and observed.requests not in (None, wanted):
        problems.append(f"{observed.requests} of {wanted} requests returned")
    return Answer(metrics, observed, complete=complete, problems=tuple(problems))


def _why_incomplete(log: str) -> str:
    # Warm-up and measurement each end with this line.
    is_done = re.search(r"Benchmark done\. Reporting|Writing report to", log)
    if is_done or log.count("Benchmark complete.") >= 2:
        return "measured but no report: the engine finished measuring and ended before it reported"
    if "Keyboard interrupt, exiting benchmark" in log:
        return "no report: the benchmark was interrupted"
    return "no report: the engine ended before it had measured"


def printed(log: bytes) -> dict[str, tuple[float, float]]:
    """The figures of the overview that trtllm-bench prints, four decimals each."""
    patterns = {
        name: rf"^{re.escape(label)}\s*:\s*([\d.]+)$"
        for name, label in shape.TWICE.items()
    }
    return reading.printed(log, patterns)


def dataset(options: TrtllmBenchOptions, input_tokens: int, seed: int) -> bytes:
    """JSON lines of `task_id`, `input_ids` and `output_tokens`, the same for the same seed."""
    draw = random.Random(seed)  # noqa: S311 - prompts to reproduce, not a secret
    requests = (
        {
            "task_id": task,
            "input_ids": [draw.randrange(*_TOKEN_IDS) for _ in range(input_tokens)],
            "output_tokens": options.output_tokens,
        }
        for task in range(options.requests)
    )
    return "".join(
        json.dumps(request, separators=(",", ":")) + "\n" for request in requests
    ).encode()


def llm_api_options(case: RunCase, options: TrtllmBenchOptions) -> dict[str, Any]:
    """The YAML beside the command line: pinned KV cache, random weights, and what the matrix adds.

    Versions differ on whether `kv_cache_config` is merged with the command line or replaces it, so every key
    wanted stands in it.
    """
    api: dict[str, Any] = {}
    if options.kv_cache_tokens is not None:
        api["kv_cache_config"] = {
            "max_tokens": options.kv_cache_tokens,
            "free_gpu_memory_fraction": 0.9,
            "enable_block_reuse": False,
        }
    if case.random_weights:
        api["load_format"] = "dummy"
    return api | options.llm_api_options
