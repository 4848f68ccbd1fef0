"""Results of llama-benchy (JSON, CSV, Markdown), and of sparkrun, which exports them as YAML: a run for each load.

A load is a length of the prompt, of the answer and of the context before it, at one concurrency. Its figures are lists
of repetitions. A request that failed is missing from them, and nothing else in the file says so; where all failed they
are null. Tables hold means and deviations.

Whether prefixes were cached is part of the load. llama-benchy's JSON says so, sparkrun's YAML has it among the options,
the command says it where it stands in the file or beside it, and in a table the rows of the context's own phase
(`ctx_pp @ d64`) show it. Where there is a context and nothing says it, the record says that.

The tool's rate of the prompt counts the tokens of a prompt that it may have made shorter for the chat template
(version 0.4.0: 46 of 64), and its rate of the answer begins at the first token.
"""

import csv
import io
import itertools
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from sparkpub.collect.importers.base import local_moment, utc_moment
from sparkpub.collect.importers.files import FileError, ResultFile
from sparkpub.collect.importers.files import documents as json_objects
from sparkpub.collect.importers.layout import arguments
from sparkpub.collect.importers.reports import Report, Tool, key_of, positive
from sparkpub.collect.importers.sidecars import Sidecars
from sparkpub.plan.workloads import reading
from sparkpub.plan.workloads.base import Answer
from sparkpub.record import documents
from sparkpub.record.errors import ImportFormatError
from sparkpub.record.outside import UnfitError, unpacked
from sparkpub.record.record import MetricValue, Moment, Observed, Spread

_RATES = {
    "output_throughput_tok_s": "tg_throughput",
    "prompt_throughput_tok_s": "pp_throughput",
}
_SUFFIXES = (".yaml", ".yml", ".json", ".csv", ".md", ".log", ".stdout", ".txt")
"""Of the forms that the results of one call have, the one that says most first."""
_TEST = re.compile(
    r"(?P<kind>pp|tg)(?P<length>\d+)(?: @ d(?P<depth>\d+))?(?: \(c(?P<clients>\d+)\))?"
)
_EXPORT = "results"
"""What sparkrun calls the files that it exports."""
_RUNS = "runs"
"""Where sparkrun keeps llama-benchy's own JSON of each load."""
_CACHED = "prefix_caching_enabled"
_USUAL_RUNS = "3"
"""How often llama-benchy repeats each load where it is not told."""


def _is_result(file: ResultFile) -> bool:
    return file.name != "consolidated.json"


def _twin(file: ResultFile) -> str | None:
    """The results of a call, in a form that says more."""
    if file.suffix not in _SUFFIXES:
        return None
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
        objects = _objects(ResultFile(path, path.name, unpacked(path)))
    except (FileError, OSError, UnfitError):
        return False
    return any(_runs(document) for document in objects)


def _objects(file: ResultFile) -> list[dict[str, Any]]:
    """The results of a file in the form of llama-benchy's JSON. Raises FileError."""
    if file.suffix == ".json":
        return json_objects(file)
    text = reading.text(file.content)
    if file.suffix == ".csv":
        try:
            return _table(list(csv.reader(io.StringIO(text, newline=""))))
        except csv.Error as error:
            raise FileError(f"not CSV, or cut short: {error}") from None
    if file.suffix in (".yaml", ".yml"):
        return _sparkrun(text, file.source)
    said = _said(text)
    return [load | said for block in _blocks(text) for load in _table(block)]


def _blocks(text: str) -> Iterator[list[list[str]]]:
    """The rows of each Markdown table of results."""
    for is_table, lines in itertools.groupby(
        text.splitlines(), lambda line: line.startswith("|")
    ):
        rows = [line.strip("|").split("|") for line in lines if is_table]
        header = {cell.strip() for cell in rows[0]} if rows else set()
        if "test" in header and _OWN_COLUMNS & header:
            yield rows


def _said(text: str) -> dict[str, Any]:
    """What the lines around a table say: the command, the date, how often each load was repeated."""
    lines = text.splitlines()
    said: dict[str, Any] = {}
    date = reading.search(
        lines, r"^[Dd]ate: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", first=True
    )
    runs = reading.search(lines, r"^\s*Run \d+/(\d+)\b", first=True)
    command = reading.search(lines, r"\bllama-benchy(?:==\S+)?\s(.*--.*)", first=True)
    if command is not None:
        options = dict(arguments(command.split()))
        runs = options.get("runs", _USUAL_RUNS)
        said[_CACHED] = "enable_prefix_caching" in options
    return said | positive({"timestamp": date, "runs": runs})


def _sparkrun(text: str, source: str) -> list[dict[str, Any]]:
    """The result that sparkrun exports as YAML. Raises FileError."""
    try:
        document, _ = documents.parse(text, source, ImportFormatError)
    except ImportFormatError as error:
        raise FileError(error.lines()[0]) from None
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


def _table(rows: list[list[str]]) -> list[dict[str, Any]]:
    """The loads of a table, each of a row of its prompt and one of its answer. Raises FileError."""
    cells = [[cell.strip() for cell in row] for row in rows if row]
    if not cells or not {"test", "test_name"} & set(cells[0]):
        return []
    header = [_COLUMNS.get(name, name) for name in cells[0]]
    tests = []
    for row in cells[1:]:
        if len(row) != len(header):
            raise FileError("cut short: a row has other columns than the header")
        tests.append(dict(zip(header, row, strict=True)))
    loads: list[dict[str, Any]] = []
    for prompt, answer in itertools.pairwise(tests):
        load = _load(prompt, answer)
        if load is not None:
            loads.append({"model": prompt.get("model"), "benchmarks": [load]})
    names = [test.get("test_name", "") for test in tests]
    if any(" @ d" in name for name in names):
        cached = any(name.startswith("ctx_") for name in names)
        loads = [load | {_CACHED: cached} for load in loads]
    return loads


_OWN_COLUMNS = {"t/s (total)", "ttfr (ms)", "e2e_ttft (ms)"}
"""Columns of the Markdown table that those of llama-bench do not have."""
_COLUMNS = {
    "test": "test_name",
    "t/s": "t_s",
    "t/s (total)": "t_s",
    "e2e_ttft (ms)": "e2e_ttft",
}
"""Columns of the Markdown table, and what the CSV calls them."""


def _load(prompt: dict[str, str], answer: dict[str, str]) -> dict[str, Any] | None:
    """A load in the form of the JSON, of two rows that follow each other; None where they are no pair of one."""
    first = _TEST.fullmatch(prompt.get("test_name", ""))
    second = _TEST.fullmatch(answer.get("test_name", ""))
    if first is None or second is None or prompt.get("model") != answer.get("model"):
        return None
    load = (first["depth"], first["clients"])
    if (first["kind"], second["kind"]) != ("pp", "tg"):
        return None
    if load != (second["depth"], second["clients"]):
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


def _mean_and_deviation(row: dict[str, str], column: str) -> dict[str, float | None]:
    """Of one cell, `824.06 ± 178.72`, or of the two that the CSV has."""
    mean, _, deviation = row.get(column, "").partition("±")
    cells = {
        "mean": row.get(f"{column}_mean", mean),
        "std": row.get(f"{column}_std", deviation),
    }
    return {name: reading.number(cell.strip()) for name, cell in cells.items()}


def _runs(document: dict[str, Any]) -> list[dict[str, Any]]:
    """An object for each load, with what the file says of all."""
    loads = reading.objects(document.get("benchmarks"))
    if not all("tg_throughput" in load for load in loads):
        return []
    return [{**document, "benchmarks": [load]} for load in loads]


def _report(
    document: dict[str, Any], _content: bytes, beside: Sidecars
) -> Report | None:
    load = document["benchmarks"][0]
    # What stands beside a table, and not in its file, says the same.
    said = _said(reading.text(beside.told)) | _said(reading.text(beside.log)) | document
    cached = said.get(_CACHED)
    is_open = cached is None and bool(load.get("context_size"))
    lengths = {
        "input_tokens": reading.positive_int(load.get("prompt_size")),
        "output_tokens": reading.positive_int(load.get("response_size")),
        "depth": reading.positive_int(load.get("context_size")),
        "concurrency": reading.positive_int(load.get("concurrency")),
    }
    workload = key_of(
        {
            "pp": lengths["input_tokens"],
            "tg": lengths["output_tokens"],
            "d": lengths["depth"],
            "c": lengths["concurrency"],
            "cached": "" if cached is True else None,
            "caching": "-unknown" if is_open else None,
            "prefill": "" if load.get("is_context_prefill_phase") is True else None,
        }
    )
    notes: tuple[str, ...] = ()
    if is_open:
        notes = ("the results do not say whether prefixes were cached",)
    answer = _answer(load)
    return Report(
        answer,
        model=reading.word(document.get("model")),
        workload=workload,
        asked={"type": "llama-benchy"} | positive(lengths),
        started=_moment(said.get("timestamp")),
        failure=None if answer.complete else "no request succeeded",
        notes=notes,
        spreads=_spreads(load, reading.positive_int(said.get("runs")), answer),
    )


def _spreads(
    load: dict[str, Any], runs: int | None, answer: Answer
) -> dict[str, Spread]:
    """The deviations of means whose repetitions the file does not hold: over the runs, or over the requests of all."""
    clients = reading.positive_int(load.get("concurrency")) or 1
    repetitions: dict[str, int | None] = dict.fromkeys(_RATES, runs)
    repetitions["ttft_mean_ms"] = None if runs is None else runs * clients
    found = {}
    for name, theirs in {**_RATES, "ttft_mean_ms": "e2e_ttft"}.items():
        deviation = reading.number(reading.at(load, f"{theirs}.std"))
        has_values = bool(reading.numbers(reading.at(load, f"{theirs}.values")))
        if deviation is None or has_values or not reading.known(answer.metrics, name):
            continue
        found[name] = Spread(
            repetitions=repetitions[name], deviation=deviation, divisor="n"
        )
    return found


def _answer(load: dict[str, Any]) -> Answer:
    metrics: dict[str, MetricValue] = {}
    samples: dict[str, tuple[float, ...]] = {}
    for name, theirs in _RATES.items():
        values = reading.numbers(reading.at(load, f"{theirs}.values"))
        mean = reading.number(reading.at(load, f"{theirs}.mean"))
        if mean is not None:
            metrics[name] = reading.metric(name, mean, "report")
        if len(values) > 1:
            samples[name] = tuple(values)
    metrics |= reading.metrics_at(load, {"ttft_mean_ms": "e2e_ttft.mean"}, "report")
    metrics |= reading.distribution(
        "ttft", reading.numbers(reading.at(load, "e2e_ttft.values")), "report"
    )
    problems = []
    counts = {
        len(reading.numbers(reading.at(load, f"{theirs}.values")))
        for theirs in _RATES.values()
    }
    if len(counts) > 1:
        fewest, most = sorted(counts)
        problems.append(
            f"a rate has {fewest} repetitions and the other {most}: the tool leaves out what failed"
        )
    observed = Observed(
        input_tokens_mean=reading.number(load.get("prompt_size")),
        output_tokens_mean=reading.number(load.get("response_size")),
    )
    complete = reading.known(metrics, "output_throughput_tok_s")
    return Answer(
        metrics, observed, complete=complete, problems=tuple(problems), samples=samples
    )


def _moment(text: Any) -> Moment | None:
    """`2026-11-21 15:22:19Z` of llama-benchy, `2026-11-21T15:27:08.680933+00:00` of sparkrun, `2026-08-08 16:02:24` of
    the lines around a table, which is a local time."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return local_moment(text) if moment.tzinfo is None else utc_moment(moment)


TOOL = Tool("llama-benchy", _report, _is_result, _runs, _SUFFIXES, _objects, _twin)
