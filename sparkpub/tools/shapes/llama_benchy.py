"""llama-benchy's results other than JSON (CSV, Markdown, what it printed), sparkrun's YAML, and what our own runs keep
besides, as objects of its JSON. Tables hold means and deviations.

Whether prefixes were cached is part of the load. llama-benchy's JSON says so, sparkrun's YAML has it among the options,
the command says it where it stands in the file or beside it, and in a table the rows of the context's own phase
(`ctx_pp @ d64`) show it.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparkpub.record.outside import UnfitError, unpacked
from sparkpub.tools import agreement, forms, reading
from sparkpub.tools.forms import FileError, ResultFile
from sparkpub.tools.shapes.base import Document, ReportShape, ShapedRun

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
_RATES = ("tg_throughput", "pp_throughput")
_MEAN_TOLERANCE = 1e-3
"""Relative difference between a mean and its values, which some versions of the tool round to two digits."""


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
    return said | {name: value for name, value in known.items() if value is not None}


def fallback_tokenizer(log: str) -> str | None:
    """The tokenizer that the tool took in place of the model's, as its output says."""
    return FALLBACK if "Falling back to 'gpt2'" in log else None


def _exported(document: Any) -> list[Document]:
    """The result that sparkrun exports."""
    exported = reading.at(document, "sparkrun_benchmark")
    results = reading.at(exported, "results.json")
    if not isinstance(results, dict):
        return []
    options = reading.at(exported, "benchmark")
    measured = reading.at(options, "measured_at")
    known = {"timestamp": measured or reading.at(exported, "timestamp")}
    if reading.at(options, "args.prefix_caching") is not None:
        known[_CACHED] = reading.at(options, "args.prefix_caching")
    return [results | known]


def _loads(table: Sequence[Mapping[str, str]]) -> list[Document]:
    """The loads of a table, each of a row of its prompt and one of its answer."""
    tests = [
        {_COLUMNS.get(name, name): cell for name, cell in row.items()} for row in table
    ]
    pairs = itertools.pairwise(tests)
    loads = [load for pair in pairs if (load := _load(*pair)) is not None]
    names = [test.get("test_name", "") for test in tests]
    if any(" @ d" in name for name in names):
        cached = any(name.startswith("ctx_") for name in names)
        return [load | {_CACHED: cached} for load in loads]
    return loads


def _load(prompt: Mapping[str, str], answer: Mapping[str, str]) -> Document | None:
    """A load in the form of the JSON, of two rows that follow each other; None where they are no pair of one."""
    first = _TEST.fullmatch(prompt.get("test_name", ""))
    second = _TEST.fullmatch(answer.get("test_name", ""))
    if first is None or second is None or prompt.get("model") != answer.get("model"):
        return None
    if (first["kind"], second["kind"]) != ("pp", "tg"):
        return None
    if first.group("depth", "clients") != second.group("depth", "clients"):
        return None
    load = {
        "prompt_size": int(first["length"]),
        "response_size": int(second["length"]),
        "context_size": int(first["depth"] or 0),
        "concurrency": int(first["clients"] or 1),
        "pp_throughput": _mean_and_deviation(prompt, "t_s"),
        "tg_throughput": _mean_and_deviation(answer, "t_s"),
        "e2e_ttft": _mean_and_deviation(prompt, "e2e_ttft"),
    }
    return {"model": prompt.get("model"), "benchmarks": [load]}


def _mean_and_deviation(row: Mapping[str, str], column: str) -> Document:
    """Of one cell, `824.06 ± 178.72`, or of the two that the CSV has."""
    mean, _, deviation = row.get(column, "").partition("±")
    cells = {
        "mean": row.get(f"{column}_mean", mean),
        "std": row.get(f"{column}_std", deviation),
    }
    return {name: reading.number(cell.strip()) for name, cell in cells.items()}


# -- runs of ours, which keep the times of each request --------------------------------------------------------


def of_own_run(report: Document, requests: Sequence[Document]) -> Document | None:
    """The one load of a report, with its requests; None where it has none. With prefix caching it is that of the
    prompt, not of the conversation sent before it, which an import has as a run of its own."""
    loads = reading.objects(report.get("benchmarks"))
    alone = loads[:1] if len(loads) == 1 else []
    prompts = (
        load for load in loads if load.get("is_context_prefill_phase") is not True
    )
    load = next(iter([*alone, *prompts]), None)
    if load is None:
        return None
    measured = _measured(requests, load)
    good = [request for request in measured if not request.get("error")]
    said = {
        "requests": _of_requests(good, load) | {"failed": len(measured) - len(good)},
        "problems": [*_failed(measured), *_contradictions(load)],
    }
    return {**report, "benchmarks": load | said}


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


def _of_requests(requests: Sequence[Document], load: Document) -> Document:
    """Their number, mean lengths as the server counted them, times, and how long they took together."""
    rates = reading.numbers(reading.at(load, "tg_req_throughput.values"))
    timed = [(request, _seconds(request)) for request in requests]
    users = [
        tokens / sum(seconds)
        for request, seconds in timed
        if seconds and (tokens := reading.number(request.get("total_tokens")))
    ]
    # By the same clock as the latency: the rates of the report go on for some milliseconds behind the last token, until
    # the stream is closed.
    per_token = [
        1e3 * rest / (tokens - 1)
        for request in requests
        if (tokens := reading.number(request.get("total_tokens"))) and tokens > 1
        if (rest := reading.number(request.get("decode_seconds"))) and rest > 0
    ]
    starts, ends = (
        reading.numbers([request.get(name) for request in requests])
        for name in ("started", "ended")
    )
    return {
        "number": len(requests),
        "prompt_tokens": _mean_of(requests, "prompt_tokens"),
        "total_tokens": _mean_of(requests, "total_tokens"),
        "latency_ms": [1e3 * sum(seconds) for _, seconds in timed if seconds],
        "token_ms": per_token or [1e3 / rate for rate in rates if rate > 0],
        "rate": sum(users) / len(users) if users else None,
        "seconds": max(ends) - min(starts) if starts and ends else None,
    }


def _seconds(request: Document) -> tuple[float, float] | None:
    """Seconds to the first token, and from there to the end of the answer; None where it had no token."""
    first = reading.number(request.get("ttft_s"))
    rest = reading.number(request.get("decode_seconds"))
    if first is None or rest is None or first <= 0 or rest < 0:
        return None
    return first, rest


def _mean_of(requests: Sequence[Document], name: str) -> float | None:
    """The mean of a count that all requests say."""
    counts = [reading.positive_int(request.get(name)) for request in requests]
    known = [count for count in counts if count is not None]
    return sum(known) / len(known) if known and len(known) == len(counts) else None


def _failed(requests: Sequence[Document]) -> Iterator[str]:
    """Requests without an answer."""
    errors = [str(request["error"]) for request in requests if request.get("error")]
    if errors:
        first = " ".join(errors[0].split())[:200]
        yield f"{len(errors)} of {len(requests)} requests failed: {first}"


def _contradictions(load: Document) -> Iterator[str]:
    """Where the means of a load are not those of its repetitions, and requests are missing: the tool leaves out those
    that failed."""
    values = {
        name: reading.numbers(reading.at(said, "values")) for name, said in load.items()
    }
    for name, measured in load.items():
        said = {"mean": reading.at(measured, "mean")}
        yield from agreement.of_values(name, said, values[name], _MEAN_TOLERANCE)
    rounds = max(len(values.get(name, ())) for name in _RATES)
    wanted = (reading.positive_int(load.get("concurrency")) or 0) * rounds
    seen = len(values.get("e2e_ttft", ()))
    if 0 < seen < wanted:
        yield f"{seen} of {wanted} requests have a first token"


SHAPE = ReportShape(runs, _SUFFIXES, twin, beside)
