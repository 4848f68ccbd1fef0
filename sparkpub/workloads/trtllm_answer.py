"""What trtllm-bench answers: its JSON report, its printed report, its log and its file of requests.

The JSON report holds no memory: peak, KV cache and weights stand in the log only, and the KV cache is printed once
while profiling and once for real, so that the last line counts. The label `Model:` is what the operator typed;
what was loaded shows in the bytes of KV cache per token and in the weights.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sparkpub.metrics import GIB
from sparkpub.record import MetricValue, Observed
from sparkpub.workloads import reading
from sparkpub.workloads.base import Answer

_NUMBER = r"([-+]?[\d.]+(?:[eE][-+]?\d+)?|nan|inf)"
_PREFIX = re.compile(
    r"^\s*(?:\[(?:\d\d/\d\d/[\d: -]+|TRT-LLM|TensorRT-LLM|RANK \d+|\d+|[IWEVDF]|INFO|WARNING|ERROR|batchmgr)\]\s*)+"
)

# Metric to dotted path in --report_json; times there are milliseconds, whatever the key says.
_PERCENTILES = {
    "mean": "average", "min": "minimum", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "max": "maximum",
}  # fmt: skip
_REPORT = {
    "output_throughput_tok_s": "performance.system_output_throughput_tok_s",
    "total_throughput_tok_s": "performance.system_total_throughput_tok_s",
    "request_throughput_req_s": "performance.request_throughput_req_s",
    "output_throughput_per_user_tok_s": "performance.output_throughput_per_user_tok_s",
    "measured_time_ms": "performance.total_latency_ms",
    **{f"request_latency_{key}_ms": f"performance.request_latency_percentiles_ms.{word}"
       for key, word in _PERCENTILES.items()},
    **{f"{stem}_{key}_ms": f"streaming_metrics.{stem}_percentiles.{word}"
       for stem in ("ttft", "tpot") for key, word in _PERCENTILES.items()},
}  # fmt: skip

# Metric to the line that prints it. `Token Throughput` alone was output tokens, before the total was added.
_PRINTED = {
    "output_throughput_tok_s": r"^(?:Total Output|Token) Throughput \(tokens/sec\):",
    "total_throughput_tok_s": r"^Total Token Throughput \(tokens/sec\):",
    "request_throughput_req_s": r"^Request Throughput \(req/sec\):",
    "output_throughput_per_user_tok_s": r"^Per User Output Throughput.*\((?:tps/user|tokens/sec/user)\):",
    "measured_time_ms": r"^Total Latency \(ms\):",
    "request_latency_mean_ms": r"^Average request latency \(ms\):",
    "ttft_mean_ms": r"^Average time-to-first-token \[TTFT\] \(ms\):",
    "tpot_mean_ms": r"^Average time-per-output-token \[TPOT\] \(ms\):",
    **{f"{stem}_{key}_ms": rf"^\[{label}\] {word.upper()}\s*:"
       for stem, label in (("request_latency", "Latency"), ("ttft", "TTFT"), ("tpot", "TPOT"))
       for key, word in _PERCENTILES.items()},
}  # fmt: skip

_PEAK = re.compile(
    r"Peak memory during memory usage profiling \(torch \+ non-torch\): ([\d.]+) GiB, "
    r"available KV cache memory when calculating max tokens: ([\d.]+) GiB"
)
_KV_SIZE = re.compile(r"kv size (?:per token )?is (\d+)")
_TOTAL = re.compile(r"device total memory ([\d.]+) GiB")
_KV_ALLOCATED = re.compile(r"\[MemUsageChange\] Allocated ([\d.]+) GiB for max tokens in paged KV cache \((\d+)\)")
_KV_QUOTA = re.compile(r"KV cache manager v2 device quota set to ([\d.]+)\s*GiB")
_WEIGHTS = re.compile(r"Use ([\d.]+) GB for model weights")
_VERSION = re.compile(r"TensorRT[- ]LLM [Vv]ersion:\s*(\S+)")
_SETTINGS = ("load_format", "attn_backend", "moe_backend", "kv_cache_dtype", "enable_block_reuse")
_MEASURED = re.compile(r"Benchmark done\. Reporting results|Writing report to")
_COMPLETE = re.compile(r"Benchmark complete\.")


def read(log: bytes, files: Mapping[str, bytes], wanted: int | None = None) -> Answer:
    """Everything the evidence says. `wanted` is the number of requests asked for, where that is known.

    Times come from the requests' own records where they were kept, else from the JSON report, else from the printed
    one. `complete` needs a throughput.
    """
    printed = [_PREFIX.sub("", line) for line in reading.lines(log)]
    report = reading.json_object(files.get("report"))
    memory = _Memory.of(printed)
    requests = reading.objects(reading.json_value(files.get("requests")))
    metrics = _printed_metrics(printed) | memory.metrics()
    if report is not None:
        metrics |= _reported(report)
    metrics |= _request_metrics(requests)
    observed = _observed(report or {}, printed, memory)
    throughput = metrics.get("output_throughput_tok_s")
    complete = throughput is not None and throughput.value is not None
    problems = [] if complete else [_why_incomplete(printed)]
    if "report" in files and report is None:
        problems.append("the JSON report is cut short or is not JSON")
    if wanted is not None and observed.requests is not None and observed.requests != wanted:
        problems.append(f"{observed.requests} of {wanted} requests returned")
    problems += _disagreements(report, printed, requests)
    return Answer(metrics, observed, complete=complete, problems=tuple(problems))


def _why_incomplete(printed: Sequence[str]) -> str:
    done = any(_MEASURED.search(line) for line in printed)
    # Warm-up and measurement each end with this line.
    if done or sum(1 for line in printed if _COMPLETE.search(line)) >= 2:
        return "measured but no report: the engine finished measuring and ended before it reported"
    if any("Keyboard interrupt, exiting benchmark" in line for line in printed):
        return "no report: the benchmark was interrupted"
    return "no report: the engine ended before it had measured"


def _last(pattern: re.Pattern[str], printed: Iterable[str]) -> re.Match[str] | None:
    found = None
    for line in printed:
        found = pattern.search(line) or found
    return found


@dataclass(frozen=True)
class _Memory:
    """The memory lines of a log, in GiB, tokens and bytes."""

    peak_gib: float | None = None
    kv_gib: float | None = None
    kv_tokens: int | None = None
    kv_bytes_per_token: int | None = None
    total_gib: float | None = None
    weights_gib: float | None = None
    notes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, printed: Sequence[str]) -> "_Memory":
        peak, kv_size, quota = _last(_PEAK, printed), _last(_KV_SIZE, printed), _last(_KV_QUOTA, printed)
        total, weights = _last(_TOTAL, printed), _last(_WEIGHTS, printed)
        allocations = [(float(found[1]), int(found[2])) for line in printed for found in _KV_ALLOCATED.finditer(line)]
        # AutoDeploy prints 0.00 GiB for a manager that holds no cache of its own: it means nothing, not no cache.
        real = [allocation for allocation in allocations if allocation[0] > 0]
        kv_gib, kv_tokens = real[-1] if real else (None, None)
        notes = {}
        per_token = int(kv_size[1]) if kv_size else None
        if per_token is None and real:
            gib, tokens = max(real)
            per_token = round(gib * GIB / tokens)
            notes["kv_bytes_per_token"] = f"from {gib} GiB for {tokens} tokens, so good to {0.5 / gib:.1f} %"
        if kv_gib is None and quota:
            kv_gib = float(quota[1])
        return cls(
            float(peak[1]) if peak else None,
            kv_gib,
            kv_tokens,
            per_token,
            float(total[1]) if total else None,
            float(weights[1]) if weights else None,
            notes,
        )

    def metrics(self) -> dict[str, MetricValue]:
        found = {
            "peak_memory_gib": self.peak_gib,
            "kv_cache_gib": self.kv_gib,
            "kv_cache_tokens": self.kv_tokens,
            "kv_bytes_per_token": self.kv_bytes_per_token,
            "weights_gib": self.weights_gib,
        }
        return {name: reading.metric(name, value, "log") for name, value in found.items() if value is not None}


def _reported(report: Mapping[str, Any]) -> dict[str, MetricValue]:
    found = reading.metrics_at(report, _REPORT, "report")
    # Older reports carry averages beside the percentiles.
    for name, path in (
        ("request_latency_mean_ms", "performance.avg_request_latency_ms"),
        ("ttft_mean_ms", "streaming_metrics.avg_ttft_ms"),
        ("tpot_mean_ms", "streaming_metrics.avg_tpot_ms"),
    ):
        if name not in found:
            found |= reading.metrics_at(report, {name: path}, "report")
    return found


def _printed_metrics(printed: Sequence[str]) -> dict[str, MetricValue]:
    found = {}
    for name, pattern in _PRINTED.items():
        value = reading.search(printed, rf"{pattern}\s*{_NUMBER}")
        if value is not None:
            found[name] = reading.metric(name, value, "log")
    seconds = reading.search(printed, rf"^Total Latency \(seconds\):\s*{_NUMBER}")
    if seconds is not None and "measured_time_ms" not in found:
        found["measured_time_ms"] = reading.metric("measured_time_ms", seconds, "log", scale=1e3)
    return found


def _milliseconds(requests: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    values = (reading.number(item.get(key)) for item in requests)
    return [value / 1e6 for value in values if value is not None and value > 0]


def _request_metrics(requests: Sequence[Mapping[str, Any]]) -> dict[str, MetricValue]:
    """From the requests' records, in nanoseconds. Without streaming there is no first token (-1) and no TPOT."""
    found: dict[str, MetricValue] = {}
    streamed = [item for item in requests if (reading.number(item.get("first_token_timestamp")) or -1) > 0]
    for stem, key, records in (
        ("request_latency", "end_to_end_latency", requests),
        ("ttft", "time_to_first_token", streamed),
        ("tpot", "intertoken_latency", streamed),
    ):
        found |= reading.distribution(stem, _milliseconds(records, key), "report")
    return found


def _disagreements(
    report: Mapping[str, Any] | None, printed: Sequence[str], requests: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Where two pieces of evidence of one run contradict each other beyond rounding."""
    problems = []
    if report is not None:
        in_report, in_log = _reported(report), _printed_metrics(printed)
        for name in ("output_throughput_tok_s", "measured_time_ms"):
            one, two = in_report.get(name), in_log.get(name)
            if one and two and one.value and two.value and abs(one.value - two.value) > 1e-3 * one.value:
                problems.append(f"{name}: the report says {one.value:g} and the log {two.value:g}")
        slowest = reading.number(reading.at(report, "performance.request_latency_percentiles_ms.maximum"))
        recorded = _milliseconds(requests, "end_to_end_latency")
        if slowest and recorded and abs(max(recorded) - slowest) > 1e-3 * slowest:
            problems.append(f"slowest request: the report says {slowest:g} ms and the requests {max(recorded):g} ms")
    return problems


def _observed(report: Mapping[str, Any], printed: Sequence[str], memory: _Memory) -> Observed:
    def fact(path: str, label: str, convert: Callable[[Any], Any]) -> Any:
        """From the JSON report, else from the printed one."""
        found = convert(reading.at(report, path)) if path else None
        return found if found is not None else convert(reading.search(printed, rf"^{label}:\s*(.+)$"))

    version = _last(_VERSION, printed)
    measured = reading.number(reading.at(report, "performance.total_latency_ms"))
    finished = bool(report) or any(line.startswith("= PERFORMANCE OVERVIEW") for line in printed)
    speculative = "decoding_stats" in report or any(line.startswith("= DECODING STATISTICS") for line in printed)
    return Observed(
        engine="TensorRT-LLM" if finished or version else None,
        engine_version=reading.word(reading.at(report, "engine.version")) or (version[1] if version else None),
        model_path=fact("engine.model_path", "Model Path", reading.word),
        random_weights=_random_weights(printed),
        weight_bytes=round(memory.weights_gib * GIB) if memory.weights_gib else None,
        kv_bytes_per_token=memory.kv_bytes_per_token,
        dtype=fact("engine.dtype", "Dtype", reading.word),
        kv_cache_dtype=fact("engine.kv_cache_dtype", "KV Cache Dtype", reading.word),
        quantization=fact("engine.quantization", "Quantization", reading.word),
        device=reading.word(reading.at(report, "machine.name")),
        device_total_gib=memory.total_gib,
        requests=fact("request_info.num_requests", "Number of requests", reading.positive_int),
        input_tokens_mean=fact("request_info.avg_input_length", r"Average Input Length \(tokens\)", reading.number),
        output_tokens_mean=fact("request_info.avg_output_length", r"Average Output Length \(tokens\)", reading.number),
        batch_size=fact("world_info.max_batch_size", "Max Runtime Batch Size", reading.positive_int),
        concurrency_mean=fact(
            "request_info.avg_num_concurrent_requests", "Number of concurrent requests", reading.number
        ),
        speculative_decoding=speculative if finished else None,
        measured_seconds=measured / 1e3 if measured is not None else None,
        settings=_settings(report, printed) | dict(memory.notes),
    )


def _random_weights(printed: Sequence[str]) -> bool | None:
    load_format = reading.search(printed, r"load_format=<?(?:LoadFormat\.)?['\"]?(\w+)")
    return None if load_format is None else load_format.upper() == "DUMMY"


def _settings(report: Mapping[str, Any], printed: Sequence[str]) -> dict[str, str]:
    """Further settings in the engine's own words."""
    found = {
        "model": reading.word(reading.at(report, "engine.model")) or reading.search(printed, r"^Model:\s*(.+)$"),
        "backend": reading.word(reading.at(report, "engine.backend")),
        "scheduling_policy": reading.word(reading.at(report, "world_info.scheduling_policy")),
        "snapshot": reading.search(printed, r"/snapshots/([0-9a-f]{40})"),
    }
    for name in _SETTINGS:
        found[name] = reading.search(printed, rf"\b{name}=<?['\"]?([\w.]+)")
    for name in ("max_num_tokens", "kv_cache_percentage"):
        value = reading.number(reading.at(report, f"world_info.{name}"))
        found[name] = None if value is None else f"{value:g}"
    return {name: value for name, value in found.items() if value is not None}
