"""What trtllm-bench answers: its JSON report, its printed report, its log and its file of requests.

The JSON report holds no memory: peak, KV cache and weights stand in the log only, and the KV cache is printed once
while profiling and once for real, so that the last line counts. The label `Model:` is what the operator typed;
what was loaded shows in the bytes of KV cache per token and in the weights.

People publish excerpts of the printed report, and tables of several: `Request Throughput (req/sec): | 0.97 | 0.98`,
with or without the headings. `results` tells such tables apart; a figure that stands for several results is never read.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from sparkpub.plan.workloads.base import Answer
from sparkpub.record.metrics import GIB
from sparkpub.record.record import MetricValue, Observed
from sparkpub.tools import reading

_PREFIX = re.compile(
    r"^\s*(?:\[(?:\d\d/\d\d/[\d: -]+|TRT-LLM|TensorRT-LLM|RANK \d+|\d+|[IWEVDF]|INFO|WARNING|ERROR|batchmgr)\]\s*)+"
)
_LABEL = re.compile(r"(?:\[\w+\] )?[A-Z][^:]{0,60}")
_WORDS = {
    "mean": "average",
    "min": "minimum",
    "p50": "p50",
    "p90": "p90",
    "p95": "p95",
    "p99": "p99",
    "max": "maximum",
}

# Metric to where it stands in --report_json and to the label that prints it. Times are milliseconds, whatever the key
# says. `Token Throughput` alone was output tokens, before the total was added.
_FIGURES: dict[str, tuple[str, tuple[str, ...]]] = {
    "output_throughput_tok_s": (
        "performance.system_output_throughput_tok_s",
        ("Total Output Throughput (tokens/sec)", "Token Throughput (tokens/sec)"),
    ),
    "total_throughput_tok_s": (
        "performance.system_total_throughput_tok_s",
        ("Total Token Throughput (tokens/sec)",),
    ),
    "request_throughput_req_s": (
        "performance.request_throughput_req_s",
        ("Request Throughput (req/sec)",),
    ),
    "output_throughput_per_user_tok_s": (
        "performance.output_throughput_per_user_tok_s",
        (
            "Per User Output Throughput [w/ ctx] (tps/user)",
            "Per User Output Throughput (tokens/sec/user)",
        ),
    ),
    "measured_time_ms": ("performance.total_latency_ms", ("Total Latency (ms)",)),
    **{
        f"{stem}_{key}_ms": (f"{path}.{word}", (f"[{label}] {word.upper()}",))
        for stem, path, label in (
            (
                "request_latency",
                "performance.request_latency_percentiles_ms",
                "Latency",
            ),
            ("ttft", "streaming_metrics.ttft_percentiles", "TTFT"),
            ("tpot", "streaming_metrics.tpot_percentiles", "TPOT"),
        )
        for key, word in _WORDS.items()
    },
}
_AVERAGES = {
    "request_latency_mean_ms": (
        "performance.avg_request_latency_ms",
        ("Average request latency (ms)",),
    ),
    "ttft_mean_ms": (
        "streaming_metrics.avg_ttft_ms",
        ("Average time-to-first-token [TTFT] (ms)",),
    ),
    "tpot_mean_ms": (
        "streaming_metrics.avg_tpot_ms",
        ("Average time-per-output-token [TPOT] (ms)",),
    ),
}
"""Where the percentiles are not there: old reports have averages only."""

_ENERGY: dict[str, tuple[str, tuple[str, ...]]] = {
    "gpu_energy_joule": ("energy.total_energy_j", ()),
    "gpu_power_mean_watt": ("energy.average_gpu_power", ()),
}
"""Of newer versions, from NVML's counter over the measured phase; it is not printed."""

_OVERVIEW = frozenset(
    label
    for table in (_FIGURES, _AVERAGES)
    for _, labels in table.values()
    for label in labels
)
"""The labels of the printed figures."""

_PEAK = (
    r"Peak memory during memory usage profiling \(torch \+ non-torch\): ([\d.]+) GiB"
)
_KV_ALLOCATED = re.compile(
    r"\[MemUsageChange\] Allocated ([\d.]+) GiB for max tokens in paged KV cache \((\d+)\)"
)
_TWICE = ("output_throughput_tok_s", "measured_time_ms")
_SETTINGS = (
    "load_format",
    "attn_backend",
    "moe_backend",
    "kv_cache_dtype",
    "enable_block_reuse",
)


def read(log: bytes, files: Mapping[str, bytes], wanted: int | None = None) -> Answer:
    """Everything the evidence says. `wanted` is the number of requests asked for, where that is known.

    Times come from the requests' own records where they were kept, else from the JSON report, else from the printed
    one. `complete` needs a throughput.
    """
    lines = [_PREFIX.sub("", line) for line in reading.lines(log)]
    printed = _printed_words(lines)
    report = reading.json_object(files.get("report"))
    requests = reading.objects(reading.json_value(files.get("requests")))
    memory = _memory(lines)
    in_log, in_report = _printed(printed), _reported(report)
    metrics = in_log | reading.metrics(memory, "log")
    metrics |= in_report | _request_metrics(requests)
    observed = _observed(report or {}, printed, lines, memory)
    complete = reading.known(metrics, "output_throughput_tok_s")
    problems = []
    if not complete:
        problems.append(_why_incomplete(lines))
    if "report" in files and report is None:
        problems.append("the JSON report is cut short or is not JSON")
    if wanted is not None and observed.requests not in (None, wanted):
        problems.append(f"{observed.requests} of {wanted} requests returned")
    problems += _disagreements(in_report, in_log, requests)
    return Answer(metrics, observed, complete=complete, problems=tuple(problems))


def is_excerpt(log: bytes) -> bool:
    """Whether figures of the printed report stand in a text, with whatever heading or none."""
    return any(_is_figure(_row(_PREFIX.sub("", line))) for line in reading.lines(log))


def results(log: bytes) -> list[bytes]:
    """The log of each result in a log: several where the printed report is a table with a column of each."""
    lines = reading.lines(log)
    rows = [_row(_PREFIX.sub("", line)) for line in lines]
    columns = max((len(row.values) for row in rows if _is_figure(row)), default=1)
    if columns == 1:
        return [log]
    logs = []
    for column in range(columns):
        kept = []
        for line, row in zip(lines, rows, strict=True):
            if not _is_figure(row):
                kept.append(line)
            elif len(row.values) == columns:
                kept.append(f"{row.label}: {row.values[column]}")
        logs.append("\n".join(kept).encode())
    return logs


@dataclass(frozen=True)
class _Row:
    """A label of the printed report with its value, or with those of several results."""

    label: str
    values: tuple[str, ...]


def _is_figure(row: "_Row | None") -> TypeGuard["_Row"]:
    return row is not None and row.label in _OVERVIEW


def _row(line: str) -> _Row | None:
    """`Label: value`, or a row of a table whose cells are parted by bars."""
    first, *cells = line.strip().strip("|").split("|")
    label, colon, value = first.partition(":")
    label = " ".join(label.split())
    if not _LABEL.fullmatch(label) or not (colon or cells):
        return None
    texts = (text.strip() for text in (value, *cells))
    values = tuple(text for text in texts if text)
    return _Row(label, values) if values else None


def _printed_words(lines: Sequence[str]) -> dict[str, str]:
    """Label to value; a label that stands for several results has none."""
    printed = {}
    for line in lines:
        row = _row(line)
        if row is not None and len(row.values) == 1:
            printed[row.label] = row.values[0]
    return printed


def _why_incomplete(lines: Sequence[str]) -> str:
    text = "\n".join(lines)
    # Warm-up and measurement each end with this line.
    if (
        re.search(r"Benchmark done\. Reporting|Writing report to", text)
        or text.count("Benchmark complete.") >= 2
    ):
        return "measured but no report: the engine finished measuring and ended before it reported"
    if "Keyboard interrupt, exiting benchmark" in text:
        return "no report: the benchmark was interrupted"
    return "no report: the engine ended before it had measured"


def _memory(lines: Sequence[str]) -> dict[str, float | None]:
    def printed(pattern: str) -> float | None:
        return reading.number(reading.search(lines, pattern))

    allocations = []
    for line in lines:
        for found in _KV_ALLOCATED.finditer(line):
            # AutoDeploy prints 0.00 GiB for a manager that holds no cache of its own: it means nothing, not no cache.
            if float(found[1]) > 0:
                allocations.append((float(found[1]), int(found[2])))
    size = printed(r"KV cache manager v2 device quota set to ([\d.]+)\s*GiB")
    tokens = None
    per_token = printed(r"kv size (?:per token )?is (\d+)")
    if allocations:
        size, tokens = allocations[-1]
        # Old logs do not print it; the allocation gives it to half a unit of its last digit.
        largest = max(allocations)
        per_token = per_token or round(largest[0] * GIB / largest[1])
    return {
        "peak_memory_gib": printed(_PEAK),
        "kv_cache_gib": size,
        "kv_cache_tokens": tokens,
        "kv_bytes_per_token": per_token,
        "weights_gib": printed(r"Use ([\d.]+) GB for model weights"),
    }


def _reported(report: Mapping[str, Any] | None) -> dict[str, MetricValue]:
    """Of the JSON report; a mean beside its percentiles counts before an average that stands alone."""
    found: dict[str, MetricValue] = {}
    for table in (_AVERAGES, _FIGURES, _ENERGY):
        found |= reading.metrics_at(
            report, {name: path for name, (path, _) in table.items()}, "report"
        )
    return found


def _printed(printed: Mapping[str, str]) -> dict[str, MetricValue]:
    """Of the printed report, in the same order."""
    found: dict[str, MetricValue] = {}
    for table in (_AVERAGES, _FIGURES):
        for name, (_, labels) in table.items():
            for label in labels:
                if label in printed:
                    found[name] = reading.metric(name, printed[label], "log")
    seconds = {"measured_time_ms": "Total Latency (seconds)"}
    return found | reading.metrics_at(printed, seconds, "log", scale=1e3)


def printed(log: bytes) -> dict[str, tuple[float, float]]:
    """The figures of the overview that trtllm-bench prints, four decimals each."""
    labels = {
        name: label for name, (_, (label, *_)) in _FIGURES.items() if name in _TWICE
    }
    patterns = {
        name: rf"^{re.escape(label)}\s*:\s*([\d.]+)$" for name, label in labels.items()
    }
    return reading.printed(log, patterns)


def _milliseconds(requests: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    values = (reading.number(item.get(key)) for item in requests)
    return [value / 1e6 for value in values if value is not None and value > 0]


def _request_metrics(requests: Sequence[Mapping[str, Any]]) -> dict[str, MetricValue]:
    """From the requests' records, in nanoseconds. Without streaming there is no first token (-1) and no TPOT."""
    streamed = [
        item
        for item in requests
        if (reading.number(item.get("first_token_timestamp")) or -1) > 0
    ]
    series = {
        "request_latency": _milliseconds(requests, "end_to_end_latency"),
        "ttft": _milliseconds(streamed, "time_to_first_token"),
        "tpot": _milliseconds(streamed, "intertoken_latency"),
    }
    return reading.distributions(series, "report")


def _disagreements(
    report: Mapping[str, MetricValue],
    printed: Mapping[str, MetricValue],
    requests: Sequence[Mapping[str, Any]],
) -> list[str]:
    """Where two pieces of evidence of one run contradict each other beyond rounding."""
    slowest = max(_milliseconds(requests, "end_to_end_latency"), default=None)
    pairs = [
        (name, "log", value.value) for name in _TWICE if (value := printed.get(name))
    ]
    return [
        f"{name}: the report says {one.value:g} and the {other} {two:g}"
        for name, other, two in (
            *pairs,
            ("request_latency_max_ms", "requests", slowest),
        )
        if (one := report.get(name))
        and one.value
        and two
        and abs(one.value - two) > 1e-3 * one.value
    ]


def _observed(
    report: Mapping[str, Any],
    printed: Mapping[str, str],
    lines: Sequence[str],
    memory: Mapping[str, float | None],
) -> Observed:
    """What the run showed, of its log and of its report."""
    facts = {
        **_of_log(lines, memory),
        **_of_engine(report, printed, lines),
        **_of_both(report, printed),
        "settings": _settings(report, printed, lines),
    }
    return reading.observed(facts)


def _of_log(lines: Sequence[str], memory: Mapping[str, float | None]) -> dict[str, Any]:
    """What only the log says: of the weights, of the cache and of the device."""
    weights = memory["weights_gib"]
    total = reading.search(lines, r"device total memory ([\d.]+) GiB")
    loaded = reading.search(lines, r"load_format=<?(?:LoadFormat\.)?['\"]?(\w+)")
    return {
        "weight_bytes": round(weights * GIB) if weights else None,
        "kv_bytes_per_token": reading.positive_int(memory["kv_bytes_per_token"]),
        "device_total_gib": reading.number(total),
        "random_weights": None if loaded is None else loaded.upper() == "DUMMY",
    }


def _of_engine(
    report: Mapping[str, Any], printed: Mapping[str, str], lines: Sequence[str]
) -> dict[str, Any]:
    """Engine, device and decoding, as the report says them, else the log."""
    version = reading.search(lines, r"TensorRT[- ]LLM [Vv]ersion:\s*(\S+)")
    device = reading.search(lines, r"^(\S.*), memory [\d.]+ GB, ")
    heading = reading.search(lines, r"^(?:= )?(DECODING STATISTICS)")
    measured = reading.number(reading.at(report, "performance.total_latency_ms"))
    reported = bool(report) or not _OVERVIEW.isdisjoint(printed)
    speculative = "decoding_stats" in report or heading is not None
    # A log that was cut may have lost the section, and only a JSON report is known to be whole.
    is_known = bool(report) or speculative
    return {
        "engine": "TensorRT-LLM" if reported or version else None,
        "engine_version": reading.word(reading.at(report, "engine.version")) or version,
        "device": reading.word(reading.at(report, "machine.name")) or device,
        "measured_seconds": None if measured is None else measured / 1e3,
        "speculative_decoding": speculative if is_known else None,
    }


_BOTH: Mapping[str, tuple[str, str, Callable[[Any], Any]]] = {
    "model_path": ("engine.model_path", "Model Path", reading.word),
    "dtype": ("engine.dtype", "Dtype", reading.word),
    "kv_cache_dtype": ("engine.kv_cache_dtype", "KV Cache Dtype", reading.word),
    "quantization": ("engine.quantization", "Quantization", reading.word),
    "requests": (
        "request_info.num_requests",
        "Number of requests",
        reading.positive_int,
    ),
    "input_tokens_mean": (
        "request_info.avg_input_length",
        "Average Input Length (tokens)",
        reading.number,
    ),
    "output_tokens_mean": (
        "request_info.avg_output_length",
        "Average Output Length (tokens)",
        reading.number,
    ),
    "batch_size": (
        "world_info.max_batch_size",
        "Max Runtime Batch Size",
        reading.positive_int,
    ),
    "concurrency_mean": (
        "request_info.avg_num_concurrent_requests",
        "Number of concurrent requests",
        reading.number,
    ),
}
"""Fact to its path in the JSON report, its label in the printed one, and what reads it."""


def _of_both(report: Mapping[str, Any], printed: Mapping[str, str]) -> dict[str, Any]:
    """What the JSON report says, else the printed one."""
    found = {}
    for name, (path, label, read) in _BOTH.items():
        found[name] = read(reading.at(report, path))
        if found[name] is None:
            found[name] = read(printed.get(label))
    return found


def _settings(
    report: Mapping[str, Any], printed: Mapping[str, str], lines: Sequence[str]
) -> dict[str, str]:
    """Further settings in the engine's own words."""
    found = {
        "model": reading.word(reading.at(report, "engine.model"))
        or reading.word(printed.get("Model")),
        "backend": reading.word(reading.at(report, "engine.backend")),
        "scheduling_policy": reading.word(
            reading.at(report, "world_info.scheduling_policy")
        ),
        "snapshot": reading.search(lines, r"/snapshots/([0-9a-f]{40})"),
    }
    found |= {
        name: reading.search(lines, rf"\b{name}=<?['\"]?([\w.]+)") for name in _SETTINGS
    }
    return {name: value for name, value in found.items() if value is not None}
