"""A mapping to begin with, made from the names of a table's columns: people correct it and fill it in."""

import json
import re
from collections.abc import Iterator, Sequence

from sparkpub.record.metrics import METRICS

_NAMES = {
    "model": r"model([ _]?name)?",
    "model_id": r"(hf[ _]?)?(model[ _]?id|repo)",
    "environment": r"env(ironment)?|where|host",
    "workload": r"workload|test|scenario|task",
    "started": r"date|time|timestamp|started|start|when",
    "iteration": r"iteration|iter|run|repeat",
    "engine": r"engine|backend|server",
    "engine_version": r"(engine[ _]?)?version",
    "quantization": r"quant\w*|precision|weights|dtype",
}
_OPTIONS = {
    "input_tokens": r"(input|prompt)[ _]?(len\w*|tokens|size)?|isl|pp",
    "output_tokens": r"(output|generated)[ _]?(len\w*|tokens|size)?|osl|tg",
    "concurrency": r"concurren\w*|clients|users|c|max[ _]concurrency",
    "batch_size": r"batch([ _]?size)?|bs",
    "request_rate": r"(request[ _]?)?rate|rps|qps",
    "requests": r"(num[ _]?)?(requests|prompts)",
}
_METRICS = {
    "output_throughput_tok_s": r".*(output|gen\w*|decode).*(tok\w*|t)[ _]?(/|per)[ _]?s\w*|tok\w*/s\w*|tps|t/s|.*tok_s",
    "prompt_throughput_tok_s": r".*(prompt|prefill|pp).*(tok\w*|t)[ _]?(/|per)[ _]?s\w*",
    "ttft_mean_ms": r"(mean|avg)?[ _]?ttft.*",
    "tpot_mean_ms": r"(mean|avg)?[ _]?tpot.*",
    "itl_mean_ms": r"(mean|avg)?[ _]?itl.*",
    "request_latency_mean_ms": r".*latency.*|e2e.*",
    "gpu_power_mean_watt": r".*power.*|watts?",
    "peak_memory_gib": r".*peak.*mem.*|.*vram.*",
}
_SECONDS = re.compile(r"(?:[ _(\[]s|sec\w*)[\])]?$")
_REQUIRED = ("model", "environment")


def starter(columns: Sequence[str]) -> Iterator[str]:
    """The lines of a mapping for a table with these columns."""
    left = list(columns)
    metrics = _taken(left, {name: re.escape(name) for name in METRICS})
    names = _taken(left, _NAMES)
    options = _taken(left, _OPTIONS)
    metrics |= _taken(left, _METRICS)
    yield "# A mapping to begin with: correct it, and save it as map.yaml."
    yield from _section("columns", names)
    missing = [name for name in _REQUIRED if name not in names]
    if missing:
        yield f"same: {{{', '.join(f'{name}: ...' for name in missing)}}}"
    yield from _section("options", options)
    yield "metrics:" if metrics else "metrics: {}  # name the columns of the figures"
    for name, column in metrics.items():
        unit = ""
        if name.endswith("_ms") and _SECONDS.search(column.lower()):
            unit = ", unit: s"
        yield f"  {name}: {{column: {json.dumps(column, ensure_ascii=False)}{unit}}}"
    if left:
        yield f"# not used: {', '.join(left)}"


def _taken(left: list[str], patterns: dict[str, str]) -> dict[str, str]:
    """The first column for each name, which is then no longer left."""
    found = {}
    for name, pattern in patterns.items():
        for column in left:
            if re.fullmatch(pattern, column.strip().lower()):
                found[name] = column
                left.remove(column)
                break
    return found


def _section(title: str, entries: dict[str, str]) -> Iterator[str]:
    if entries:
        yield f"{title}:"
    for name, column in entries.items():
        yield f"  {name}: {json.dumps(column, ensure_ascii=False)}"
