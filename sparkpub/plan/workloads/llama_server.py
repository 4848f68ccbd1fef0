"""What `llama-server` of llama.cpp prints about itself: slots, batch, attention, KV cache, layers on the GPU, cached
prompts.

Lines of build 11434 (`tools/server/server-context.cpp`, `src/llama-context.cpp`, `src/llama-kv-cache.cpp`,
`src/llama-model.cpp`). By default this build prints slots, threads and tasks alone, and with `-lv 4` everything; older
ones print everything by default.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sparkpub.record.record import MetricValue
from sparkpub.tools import reading
from sparkpub.tools.shapes.llama_bench import weights_format

_SETTINGS = {
    "n_slots": r"initializing(?: slots)?, n_slots = (\d+)",
    "n_ctx_slot": r"n_ctx_slot = (\d+), kv_unified",
    "kv_unified": r"kv_unified = '(\w+)'",
    "n_batch": r"llama_context: n_batch\s+= (\d+)",
    "n_ubatch": r"llama_context: n_ubatch\s+= (\d+)",
    "flash_attn": r"llama_context: flash_attn\s+= (\w+)",
    "type_k": r"\bK \((\w+)\):",
    "type_v": r"\bV \((\w+)\):",
    "gpu_layers": r"offloaded (\d+/\d+) layers to GPU",
    "n_threads": r"(?:threadpool init|system_info:).*? n_threads = (\d+)",
    "load_mode": r"\(load_mode = (\w+)\)",
}
"""Setting to the line that says it."""
_LOADS = r"load_model: loading model '([^']+)'"
_BUILD = r"\bbuild:? (\d+) \((\w+)\) with"
_FORMAT = r"print_info: file type\s+= (.+)"
_SIZE = r"print_info: file size\s+= ([\d.]+) (MiB|GiB)"
_UNITS = {"MiB": 2**20, "GiB": 2**30}
_TASK = re.compile(r"\| task (\d+) \| ")
_TOKENS = re.compile(r"(prompt eval|eval) time = .*?/ +(\d+) tokens")
_RELEASED = re.compile(r"stop processing: n_tokens = (\d+), truncated = 0")
_REUSED = re.compile(r"graphs reused = +(\d+)")


def identity(printed: Sequence[str]) -> dict[str, Any]:
    """What the lines say of engine, model and settings, as fields of `Observed`; empty for another program's log."""
    lines = list(printed)
    path = reading.search(lines, _LOADS)
    if path is None:
        return {}
    settings = {name: reading.search(lines, line) for name, line in _SETTINGS.items()}
    settings["graph_reuse"] = _graph_reuse(lines)
    found: dict[str, Any] = {
        "engine": "llama.cpp",
        "model_path": path,
        "engine_version": _build(lines),
        "batch_size": reading.positive_int(settings["n_slots"]),
        "weight_bytes": _weight_bytes(lines),
        "kv_cache_dtype": settings["type_k"],
        "settings": {
            name: value for name, value in settings.items() if value is not None
        },
    }
    form = reading.search(lines, _FORMAT)
    if form is not None:
        found |= weights_format(form.strip())
    return {name: value for name, value in found.items() if value is not None}


def cache_hits(printed: Sequence[str]) -> dict[str, MetricValue]:
    """The share of the prompts' tokens that were in a slot already. A task that ends holds its prompt and its answer
    less the last token, and evaluated the part of its prompt that was not there."""
    prompts = evaluated = 0
    tasks: dict[str, dict[str, int]] = {}
    for line in printed:
        task = _TASK.search(line)
        if task is None:
            continue
        counts = tasks.setdefault(task[1], {})
        tokens = _TOKENS.search(line)
        if tokens is not None:
            counts[tokens[1]] = int(tokens[2])
        released = _RELEASED.search(line)
        if released is not None and counts.keys() == {"prompt eval", "eval"}:
            prompts += int(released[1]) - counts["eval"] + 1
            evaluated += counts["prompt eval"]
    if prompts <= 0 or evaluated > prompts:
        return {}
    share = 100 * (prompts - evaluated) / prompts
    return reading.metrics({"prefix_cache_hit_percent": share}, "log")


def _build(lines: list[str]) -> str | None:
    """`b6710 (8e6f8bc8)`; a build outside git knows no commit."""
    for line in lines:
        found = re.search(_BUILD, line)
        if found is not None and found[2] == "unknown":
            return f"b{found[1]}"
        if found is not None:
            return f"b{found[1]} ({found[2]})"
    return None


def _weight_bytes(lines: list[str]) -> int | None:
    """The size of the model's file, to the two digits that are printed of it."""
    for line in lines:
        found = re.search(_SIZE, line)
        if found is not None:
            return round(float(found[1]) * _UNITS[found[2]])
    return None


def _graph_reuse(lines: list[str]) -> str | None:
    """Whether compute graphs were used again from step to step."""
    counts = [int(found[1]) for line in lines if (found := _REUSED.search(line))]
    if not counts:
        return None
    return "on" if max(counts) else "off"


def merged(said: Mapping[str, Any], printed: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `Observed` by what the server's pages say, and by what it printed where they say nothing."""
    settings = dict(printed.get("settings", {})) | dict(said.get("settings", {}))
    return dict(printed) | dict(said) | {"settings": settings}
