"""llama-benchy's results other than JSON (CSV, Markdown, what it printed), sparkrun's YAML, and what our own runs keep
besides, as objects of its JSON. Tables hold means and deviations.

Whether prefixes were cached is part of the load. llama-benchy's JSON says so, sparkrun's YAML has it among the options,
the command says it where it stands in the file or beside it, and in a table the rows of the context's own phase
(`ctx_pp @ d64`) show it.
"""

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from sparkpub.record.outside import UnfitError, unpacked
from sparkpub.tools import forms, reading
from sparkpub.tools.forms import FileError, ResultFile
from sparkpub.tools.shapes.base import Document, ReportShape, ShapedRun
from sparkpub.tools.where import at

_SUFFIXES = (".yaml", ".yml", ".json", ".csv", ".md", ".log", ".stdout", ".txt")
"""Of the forms that the results of one call have, the one that says most first."""
_TEST = re.compile(
    r"(?P<kind>pp|tg)(?P<length>\d+)(?: @ d(?P<depth>\d+))?(?: \(c(?P<clients>\d+)\))?"
)
_OWN_COLUMNS = {"t/s (total)", "ttfr (ms)", "e2e_ttft (ms)"}
"""Columns of the Markdown table that those of llama-bench do not have."""
_COLUMNS = {
    "test": "test_name",
    "t/s": "t_s",
    "t/s (total)": "t_s",
    "e2e_ttft (ms)": "e2e_ttft",
}
"""Columns of the Markdown table, and what the CSV calls them."""
_EXPORT, _RUNS = "results", "runs"
"""What sparkrun calls the files that it exports, and where it keeps llama-benchy's own JSON of each load."""
_CACHED = "prefix_caching_enabled"
_USUAL_RUNS = "3"
"""How often llama-benchy repeats each load where it is not told."""
FALLBACK = "gpt2, since that of the model could not be loaded"
"""What records say of the tokenizer that the tool takes in place of the model's: then nobody knows how many tokens of
its own the model read."""


def runs(file: ResultFile) -> list[ShapedRun]:
    """The results of a file in the form of llama-benchy's JSON. Raises FileError."""
    return [ShapedRun(document) for document in _documents(file)]


def _documents(file: ResultFile) -> list[Document]:
    if file.suffix == ".json":
        return forms.of_json(file.content)
    if file.suffix == ".csv":
        return _loads(forms.of_csv(file.text))
    if file.suffix in (".yaml", ".yml"):
        return _exported(forms.of_yaml(file))
    loads = [
        load
        for table in forms.tables(file.text, "test")
        if table and _OWN_COLUMNS & set(table[0])
        for load in _loads(table)
    ]
    said = _said(file.text) if loads else {}
    return [load | said for load in loads]


def twin(file: ResultFile) -> str | None:
    """The results of a call, in a form that says more."""
    if file.stem == _EXPORT and any((file.path.parent / _RUNS).glob("*.json")):
        return f"the files of the folder {_RUNS}"
    for suffix in _SUFFIXES[: _SUFFIXES.index(file.suffix)]:
        other = file.path.with_name(file.stem + suffix)
        if other.is_file() and _holds_results(other):
            return other.name
    return None


def _holds_results(path: Path) -> bool:
    """Whether a file that is called like results holds any."""
    try:
        found = _documents(ResultFile(path, path.name, unpacked(path)))
    except (FileError, OSError, UnfitError):
        return False
    loads = (load for item in found for load in reading.objects(item.get("benchmarks")))
    return any("tg_throughput" in load for load in loads)


def beside(told: bytes, log: bytes) -> Document:
    """What stands beside a table, and not in its file."""
    return _said(reading.text(told)) | _said(reading.text(log))


def _said(text: str) -> Document:
    """What the lines around a table say: the command, the date, how often each load was repeated."""
    lines = text.splitlines()
    date = reading.search(
        lines, r"^[Dd]ate: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", first=True
    )
    runs = reading.search(lines, r"^\s*Run \d+/(\d+)\b", first=True)
    command = reading.search(lines, r"\bllama-benchy(?:==\S+)?\s(.*--.*)", first=True)
    said: Document = {}
    if command is not None:
        options = dict(forms.arguments(command.split()))
        runs = options.get("runs", _USUAL_RUNS)
        said[_CACHED] = "enable_prefix_caching" in options
    tokenizer = fallback_tokenizer(text)
    if tokenizer is not None:
        said["client"] = {"tokenizer": tokenizer}
    known = {"timestamp": date, "runs": runs}
    return said | reading.said(known)


def fallback_tokenizer(log: str) -> str | None:
    """The tokenizer that the tool took in place of the model's, as its output says."""
    return FALLBACK if "Falling back to 'gpt2'" in log else None


def _exported(document: Any) -> list[Document]:
    """The result that sparkrun exports."""
    exported = at(document, "sparkrun_benchmark")
    results = at(exported, "results.json")
    if not isinstance(results, dict):
        return []
    options = at(exported, "benchmark")
    measured = at(options, "measured_at")
    known = {"timestamp": measured or at(exported, "timestamp")}
    if at(options, "args.prefix_caching") is not None:
        known[_CACHED] = at(options, "args.prefix_caching")
    return [results | known]


def _loads(table: Sequence[Mapping[str, Any]]) -> list[Document]:
    """The loads of a table, each of a row of its prompt and one of its answer."""
    rows = [
        {_COLUMNS.get(name, name): cell or "" for name, cell in row.items()}
        for row in table
    ]
    names = [row.get("test_name", "") for row in rows]
    said: Document = {}
    if any(" @ d" in name for name in names):
        said[_CACHED] = any(name.startswith("ctx_") for name in names)
    found = []
    for prompt, answer in itertools.pairwise(rows):
        load = _load(prompt, answer)
        if load is not None and prompt.get("model") == answer.get("model"):
            loads = {"model": prompt.get("model"), "benchmarks": [load]}
            found.append(loads | said)
    return found


def _load(prompt: Mapping[str, str], answer: Mapping[str, str]) -> Document | None:
    """A load of the JSON, of two rows that follow each other; None where they are no pair of one."""
    first, second = (
        _TEST.fullmatch(row.get("test_name", "")) for row in (prompt, answer)
    )
    if first is None or second is None:
        return None
    same = first.group("depth", "clients") == second.group("depth", "clients")
    if not same or (first["kind"], second["kind"]) != ("pp", "tg"):
        return None
    return {
        "prompt_size": int(first["length"]),
        "response_size": int(second["length"]),
        "context_size": int(first["depth"] or 0),
        "concurrency": int(first["clients"] or 1),
        "pp_throughput": _mean_and_deviation(prompt, "t_s"),
        "tg_throughput": _mean_and_deviation(answer, "t_s"),
        "e2e_ttft": _mean_and_deviation(prompt, "e2e_ttft"),
    }


def _mean_and_deviation(row: Mapping[str, str], column: str) -> Document:
    """Of one cell, `824.06 ± 178.72`, or of the two that the CSV has."""
    mean, _, deviation = row.get(column, "").partition("±")
    cells = {
        "mean": row.get(f"{column}_mean", mean),
        "std": row.get(f"{column}_std", deviation),
    }
    return {name: reading.number(cell) for name, cell in cells.items()}


# -- runs of ours, which keep the times of each request --------------------------------------------------------


def of_own_run(report: Document, requests: Sequence[Document]) -> Document | None:
    """The one load of a report, with its requests; None where it has none. With prefix caching it is that of the
    prompt, not of the conversation sent before it, which an import has as a run of its own."""
    loads = reading.objects(report.get("benchmarks"))
    prompts = [load for load in loads if not load.get("is_context_prefill_phase")]
    if not loads:
        return None
    load = (prompts or loads)[0]
    measured = _measured(requests, load)
    good = [request for request in measured if not request.get("error")]
    errors = [str(request["error"]) for request in measured if request.get("error")]
    problems = []
    if errors:
        first = " ".join(errors[0].split())[:200]
        problems.append(f"{len(errors)} of {len(measured)} requests failed: {first}")
    said = _of_requests(good) | {"failed": len(errors)}
    return {**report, "benchmarks": load | {"requests": said, "problems": problems}}


def _measured(requests: Sequence[Document], load: Document) -> list[Document]:
    """The requests of a load. With prefix caching, the first ones of each round only sent the conversation."""
    each = reading.positive_int(load.get("concurrency")) or 1
    rounds: dict[str, list[Document]] = {}
    for request in requests:
        rounds.setdefault(str(request.get("run_index")), []).append(request)
    return [
        request
        for of_round in rounds.values()
        for request in (of_round[each:] if len(of_round) == 2 * each else of_round)
    ]


def _of_requests(requests: Sequence[Document]) -> Document:
    """Their number, mean lengths as the server counted them, times, and how long they took together.

    All times are by one clock: the rates of the report go on for some milliseconds behind the last token, until the
    stream is closed.
    """
    latencies, per_token, rates = [], [], []
    for request in requests:
        first, rest, tokens = (
            reading.number(request.get(name)) or 0.0
            for name in ("ttft_s", "decode_seconds", "total_tokens")
        )
        if first > 0 <= rest:
            latencies.append(1e3 * (first + rest))
            if tokens:
                rates.append(tokens / (first + rest))
        if rest > 0 and tokens > 1:
            per_token.append(1e3 * rest / (tokens - 1))
    starts, ends = (
        reading.numbers([request.get(name) for request in requests])
        for name in ("started", "ended")
    )
    return {
        "number": len(requests),
        "prompt_tokens": _mean_of(requests, "prompt_tokens"),
        "total_tokens": _mean_of(requests, "total_tokens"),
        "latency_ms": latencies,
        "token_ms": per_token,
        "rate": fmean(rates) if rates else None,
        "seconds": max(ends) - min(starts) if starts and ends else None,
    }


def _mean_of(requests: Sequence[Document], name: str) -> float | None:
    """The mean of a count that all requests say."""
    counts = [reading.positive_int(request.get(name)) or 0 for request in requests]
    return fmean(counts) if counts and all(counts) else None


SHAPE = ReportShape(runs, _SUFFIXES, twin, beside)
