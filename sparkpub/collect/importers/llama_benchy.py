"""llama-benchy's results other than JSON (CSV, Markdown, what it printed), and sparkrun's YAML, as objects of its JSON.

What the JSON means is data (`tools/llama-benchy.yaml`). Tables hold means and deviations.

Whether prefixes were cached is part of the load. llama-benchy's JSON says so, sparkrun's YAML has it among the options,
the command says it where it stands in the file or beside it, and in a table the rows of the context's own phase
(`ctx_pp @ d64`) show it.
"""

import csv
import io
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparkpub.collect.importers.files import FileError, ResultFile
from sparkpub.collect.importers.files import documents as json_objects
from sparkpub.collect.importers.formats import Form
from sparkpub.collect.importers.layout import arguments
from sparkpub.collect.importers.sidecars import Sidecars
from sparkpub.plan.workloads.llama_benchy import fallback_tokenizer
from sparkpub.record import documents
from sparkpub.record.errors import ImportFormatError
from sparkpub.record.outside import UnfitError, unpacked
from sparkpub.tools import reading

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
    return any(
        "tg_throughput" in load
        for document in objects
        for load in reading.objects(document.get("benchmarks"))
    )


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
    tokenizer = fallback_tokenizer(text)
    if tokenizer is not None:
        said["client"] = {"tokenizer": tokenizer}
    known = {"timestamp": date, "runs": runs}
    return said | {name: value for name, value in known.items() if value is not None}


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


def _beside(beside: Sidecars) -> dict[str, Any]:
    """What stands beside a table, and not in its file."""
    log = beside.log or beside.log_of_call
    return _said(reading.text(beside.told)) | _said(reading.text(log))


FORM = Form(_SUFFIXES, _objects, _twin, _beside)
