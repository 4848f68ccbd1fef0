"""What trtllm-bench leaves, as objects of its JSON report: the report, what it printed, its log and its requests.

The JSON report holds no memory: peak, KV cache and weights stand in the log only, and the KV cache is printed once
while profiling and once for real, so that the last line counts. The label `Model:` is what the operator typed;
what was loaded shows in the bytes of KV cache per token and in the weights.

Files of one run share their name up to the role: `a.log`, `a.report.json` (or `a_report.json`, `a.json`),
`a.requests.json`; what they are is told by their content. People publish tables of several printed reports:
`Request Throughput (req/sec): | 0.97 | 0.98`. Each column is a run and a cell of
its own, since no file says what tells them apart. The tool does not say where it ran.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sparkpub.record.metrics import GIB
from sparkpub.record.outside import UnfitError, unpacked
from sparkpub.tools import reading
from sparkpub.tools.forms import ResultFile
from sparkpub.tools.shapes.base import Document, ReportShape, ShapedRun
from sparkpub.tools.where import at

_PREFIX = re.compile(
    r"^\s*(?:\[(?:\d\d/\d\d/[\d: -]+|TRT-LLM|TensorRT-LLM|RANK \d+|\d+|[IWEVDF]|INFO|WARNING|ERROR|batchmgr)\]\s*)+"
)
_LABEL = re.compile(r"(?:\[\w+\] )?[A-Z][^:]{0,60}")
_WORDS = ("average", "minimum", "p50", "p90", "p95", "p99", "maximum")
_PER_USER = "performance.output_throughput_per_user_tok_s"
_FIGURES = {
    # `Token Throughput` alone was output tokens, before the total was added.
    "Token Throughput (tokens/sec)": "performance.system_output_throughput_tok_s",
    "Total Output Throughput (tokens/sec)": "performance.system_output_throughput_tok_s",
    "Total Token Throughput (tokens/sec)": "performance.system_total_throughput_tok_s",
    "Request Throughput (req/sec)": "performance.request_throughput_req_s",
    "Per User Output Throughput [w/ ctx] (tps/user)": _PER_USER,
    "Per User Output Throughput (tokens/sec/user)": _PER_USER,
    "Total Latency (ms)": "performance.total_latency_ms",
    "Average request latency (ms)": "performance.avg_request_latency_ms",
    "Average time-to-first-token [TTFT] (ms)": "streaming_metrics.avg_ttft_ms",
    "Average time-per-output-token [TPOT] (ms)": "streaming_metrics.avg_tpot_ms",
    **{
        f"[{label}] {word.upper()}": f"{path}.{word}"
        for label, path in (
            ("Latency", "performance.request_latency_percentiles_ms"),
            ("TTFT", "streaming_metrics.ttft_percentiles"),
            ("TPOT", "streaming_metrics.tpot_percentiles"),
        )
        for word in _WORDS
    },
}
"""The labels of the printed figures, and where the JSON report has them."""
_FACTS = {
    "Model": "engine.model",
    "Model Path": "engine.model_path",
    "Dtype": "engine.dtype",
    "KV Cache Dtype": "engine.kv_cache_dtype",
    "Quantization": "engine.quantization",
    "Number of requests": "request_info.num_requests",
    "Average Input Length (tokens)": "request_info.avg_input_length",
    "Average Output Length (tokens)": "request_info.avg_output_length",
    "Number of concurrent requests": "request_info.avg_num_concurrent_requests",
    "Max Runtime Batch Size": "world_info.max_batch_size",
}
TWICE = {
    "output_throughput_tok_s": "Total Output Throughput (tokens/sec)",
    "measured_time_ms": "Total Latency (ms)",
}
"""Metrics that report and log both say, and their labels."""
_PRINTED = {
    "engine.version": r"TensorRT[- ]LLM [Vv]ersion:\s*(\S+)",
    "machine.name": r"^(\S.*), memory [\d.]+ GB, ",
    "device.total_gib": r"device total memory ([\d.]+) GiB",
    "memory.peak_gib": r"Peak memory during memory usage profiling \(torch \+ non-torch\): ([\d.]+) GiB",
    "memory.kv_cache_gib": r"KV cache manager v2 device quota set to ([\d.]+)\s*GiB",
    "memory.kv_bytes_per_token": r"kv size (?:per token )?is (\d+)",
    "memory.weights_gib": r"Use ([\d.]+) GB for model weights",
}
"""Lines of the log, by the paths of what they say."""
_KV_ALLOCATED = re.compile(
    r"\[MemUsageChange\] Allocated ([\d.]+) GiB for max tokens in paged KV cache \((\d+)\)"
)
_SETTINGS = (
    "load_format",
    "attn_backend",
    "moe_backend",
    "kv_cache_dtype",
    "enable_block_reuse",
)
_ROLE = re.compile(r"[._-](?:report|requests?|request_json|report_json)$")
_ROLES = ("report", "requests", "log")
_ITERATION = re.compile(r"(?:iter|run)[_-]?(\d+)")
_SPOKEN = re.compile("TensorRT[- ]?LLM|TRT-LLM|PERFORMANCE OVERVIEW")
_SURE = (b"PERFORMANCE OVERVIEW", b'"performance"', b'"end_to_end_latency"')
_STAMP = re.compile(r"\[(\d\d)/(\d\d)/(\d{4})-(\d\d:\d\d:\d\d)\]")


# -- one run's evidence ----------------------------------------------------------------------------------------


def of_report(report: Document) -> Document:
    """The JSON report, with what follows from it."""
    measured = reading.number(at(report, "performance.total_latency_ms"))
    settings = {
        "model": at(report, "engine.model"),
        "backend": at(report, "engine.backend"),
        "scheduling_policy": at(report, "world_info.scheduling_policy"),
    }
    said: Document = {
        "engine.name": "TensorRT-LLM",
        "settings": _known(settings),
        # Only a JSON report is known to be whole: a log that was cut may have lost the section.
        "speculative": "decoding_stats" in report,
        "measured_seconds": None if measured is None else measured / 1e3,
    }
    return {**report, **said} if report else {}


def _known(settings: Mapping[str, Any]) -> dict[str, str]:
    return reading.said({name: reading.word(settings[name]) for name in settings})


def of_log(log: bytes) -> Document:
    """What was printed, by the paths of the JSON report; a label that stands for several results has no figure."""
    lines = plain(log)
    rows = [_row(line) for line in lines]
    printed = {label: values[0] for label, values in rows if len(values) == 1}
    said: Document = {
        path: printed[label]
        for label, path in {**_FIGURES, **_FACTS}.items()
        if label in printed
    }
    seconds = reading.number(printed.get("Total Latency (seconds)"))
    if seconds is not None:
        said["performance.total_latency_ms"] = 1e3 * seconds
    said |= {path: reading.search(lines, line) for path, line in _PRINTED.items()}
    is_reported = not _FIGURES.keys().isdisjoint(printed)
    settings = {name: rf"\b{name}=<?['\"]?([\w.]+)" for name in _SETTINGS}
    settings["snapshot"] = r"/snapshots/([0-9a-f]{40})"
    found = {name: reading.search(lines, line) for name, line in settings.items()}
    loaded = reading.search(lines, r"load_format=<?(?:LoadFormat\.)?['\"]?(\w+)")
    decoding = reading.search(lines, r"^(?:= )?(DECODING STATISTICS)")
    weights = reading.number(said["memory.weights_gib"])
    if is_reported or said["engine.version"]:
        said["engine.name"] = "TensorRT-LLM"
    said |= {
        "weights.bytes": round(weights * GIB) if weights else None,
        "weights.random": None if loaded is None else loaded.upper() == "DUMMY",
        "speculative": True if decoding is not None else None,
        "settings": _known(found | {"model": printed.get("Model")}),
    }
    # AutoDeploy prints 0.00 GiB for a manager that holds no cache of its own: it means nothing, not no cache.
    allocations = [
        (float(found[1]), int(found[2]))
        for found in map(_KV_ALLOCATED.search, lines)
        if found is not None and float(found[1]) > 0
    ]
    if allocations:
        size, tokens = allocations[-1]
        said |= {"memory.kv_cache_gib": size, "memory.kv_cache_tokens": tokens}
        if not said["memory.kv_bytes_per_token"]:
            # Old logs do not print it; the allocation gives it to half a unit of its last digit.
            size, tokens = max(allocations)
            said["memory.kv_bytes_per_token"] = round(size * GIB / tokens)
    return said


def plain(log: bytes) -> list[str]:
    """The lines of a log without times, ranks and levels."""
    return [_PREFIX.sub("", line) for line in reading.lines(log)]


def of_requests(requests: Sequence[Document]) -> Document:
    """Milliseconds of the requests' records, which are in nanoseconds. Without streaming there is no first token (-1)
    and no TPOT."""
    names = {
        "request_latency_ms": "end_to_end_latency",
        "ttft_ms": "time_to_first_token",
        "tpot_ms": "intertoken_latency",
    }
    said: Document = {ours: [] for ours in names}
    for item in requests:
        first = reading.number(item.get("first_token_timestamp")) or -1
        for ours, theirs in names.items():
            value = reading.number(item.get(theirs)) or 0
            if value > 0 and (first > 0 or ours == "request_latency_ms"):
                said[ours].append(value / 1e6)
    return said


# -- the printed report ----------------------------------------------------------------------------------------


def _row(line: str) -> tuple[str, list[str]]:
    """The label and values of `Label: value`, or of a row of a table whose cells are parted by bars; no value in any
    other line."""
    first, *cells = line.strip().strip("|").split("|")
    label, colon, value = first.partition(":")
    label = " ".join(label.split())
    if not _LABEL.fullmatch(label) or not (colon or cells):
        return label, []
    return label, [text for cell in (value, *cells) if (text := cell.strip())]


def _columns(log: bytes) -> list[bytes]:
    """The log of each result in a log: several where the printed report is a table with a column of each."""
    lines = reading.lines(log)
    rows = [_row(line) for line in plain(log)]
    widths = [len(values) for label, values in rows if label in _FIGURES]
    number = max(widths, default=1)
    if number <= 1:
        return [log]
    logs = []
    for column in range(number):
        kept = []
        for line, (label, values) in zip(lines, rows, strict=True):
            if label not in _FIGURES or not values:
                kept.append(line)
            elif len(values) == number:
                kept.append(f"{label}: {values[column]}")
        logs.append("\n".join(kept).encode())
    return logs


# -- the files of a run ----------------------------------------------------------------------------------------


def runs(file: ResultFile) -> list[ShapedRun]:
    """The run of a file and of those that share its name, or the run of each column of a table; none where nothing in
    them can only be of this tool."""
    if _role(file) is None:
        return []
    files, names = _of_one_name(file)
    if not any(mark in part for part in files.values() for mark in _SURE):
        return []
    first = next(role for role in _ROLES if role in files)
    if names[first] != file.name:
        role = _role(file)
        what = f"it is read with {names[first]}"
        if role is not None and names[role] != file.name:
            what = f"a second {role} beside {names[role]}"
        return [ShapedRun({}, omitted=what)]
    log = files.get("log", b"")
    logs = _columns(log)
    if len(logs) == 1:
        return [ShapedRun(_said(file, files), files)]
    return [
        ShapedRun(_said(file, {**files, "log": part}, number), {**files, "log": part})
        for number, part in enumerate(logs, 1)
    ]


def _of_one_name(file: ResultFile) -> tuple[dict[str, bytes], dict[str, str]]:
    """The content of the files of a run, and their names, by role; of two of a role the first by name."""
    files: dict[str, bytes] = {}
    names: dict[str, str] = {}
    for path in sorted(file.path.parent.iterdir()):
        other = ResultFile(path, path.name, b"")
        if path.is_symlink() or not path.is_file() or _stem(other) != _stem(file):
            continue
        try:
            other = ResultFile(path, path.name, unpacked(path))
        except (OSError, UnfitError):
            continue
        role = _role(other)
        if role is not None and role not in files:
            files[role], names[role] = other.content, other.name
    return files, names


def _stem(file: ResultFile) -> str:
    return _ROLE.sub("", file.name.removesuffix(file.suffix))


def _role(file: ResultFile) -> str | None:
    """What a file is, from what it holds."""
    document = None
    if any(mark in file.content for mark in (*_SURE, b'"engine"')):
        document = reading.json_value(file.content)
    if isinstance(document, dict) and "performance" in document:
        return "report"
    if any("end_to_end_latency" in item for item in reading.objects(document)[:1]):
        return "requests"
    if file.suffix == ".json":
        cut_short = document is None and b'"engine"' in file.content
        return "report" if cut_short else None
    rows = map(_row, plain(file.content))
    is_log = any(values and label in _FIGURES for label, values in rows)
    return "log" if is_log or _SPOKEN.search(file.text) else None


def _said(
    file: ResultFile, files: Mapping[str, bytes], column: int | None = None
) -> Document:
    """What names the run, and what was asked for."""
    log = files.get("log", b"")
    named = _ITERATION.search(_stem(file))
    stamp = _STAMP.search(reading.text(log))
    workload = "throughput" if column is None else f"throughput-column-{column}"
    return {
        "report": reading.json_object(files.get("report")),
        "printed": of_log(log),
        "workload": workload,
        "column": column,
        "iteration": None if named is None else int(named[1]),
        "started": stamp and "{2}-{0}-{1}T{3}".format(*stamp.groups()),
    }


SHAPE = ReportShape(runs, None)
