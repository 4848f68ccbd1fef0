"""What clients print, as the objects that they would have saved, and the options that they were told.

`vllm bench serve`, `benchmark_serving.py` and SGLang's `bench_serving` end with a table under "Serving Benchmark
Result", which people keep as a log or paste into Markdown. The options of a table are those that stand before it: as
the client prints them (`Namespace(…)`), or in a command. Figures of a table have two decimals.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparkpub.collect.importers.files import ResultFile
from sparkpub.collect.importers.files import documents as json_objects
from sparkpub.collect.importers.formats import Form
from sparkpub.collect.importers.layout import arguments
from sparkpub.collect.importers.sidecars import Sidecars, begins
from sparkpub.record.outside import UnfitError, unpacked
from sparkpub.tools import reading

SUFFIXES = (".log", ".stdout", ".out", ".txt", ".md")
"""Of texts, the one that says most first."""
TOLD = "told"
"""The key of the options in an object that was made of text."""
TITLE = "Serving Benchmark Result"
_LABELS = {
    "backend": "backend",
    "successful requests": "completed",
    "failed requests": "failed",
    "maximum request concurrency": "max_concurrency",
    "max request concurrency": "max_concurrency",
    "request rate configured (rps)": "request_rate",
    "traffic request rate": "request_rate",
    "benchmark duration (s)": "duration",
    "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens",
    "request throughput (req/s)": "request_throughput",
    "output token throughput (tok/s)": "output_throughput",
    "total token throughput (tok/s)": "total_token_throughput",
}
"""Labels of the table, in small letters, and what the reports call them."""
_TIME = re.compile(r"(mean|median|p\d+) (ttft|tpot|itl|e2el|e2e latency) \(ms\)")
_ROW = re.compile(r"^\W*?([A-Z][^:]*?):\s+(\S+)\s*$")
_ROWS_END = re.compile(r"^\W*=+\W*$")
_DATE = re.compile(
    r"(?im)^\W*(?:date|generated|timestamp)\W+(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)"
)
_OPTION = re.compile(r"\b(\w+)='?([^',)]*)'?")
"""`random_input_len=4000` and `dataset_name='random'` of the options that the client prints."""
_COMMAND = re.compile(
    r"(?:vllm bench serve|benchmark_serving(?:\.py)?|bench_serving(?:\.py)?)\s+(--.*)"
)
_FIRST_LINES = 20


def results(file: ResultFile) -> list[dict[str, Any]]:
    """The tables of a text, each in the form of the JSON that its client saves."""
    if TITLE.encode() not in file.content:
        return []
    said = reading.text(file.content)
    date = _DATE.search(said)
    before, *tables = re.split(rf"(?m)^.*{TITLE}.*$", _joined(said))
    found = []
    options: dict[str, str] = {}
    for table in tables:
        options = told(before) or options
        figures = dict(_figures(table))
        if date is not None:
            figures["date"] = date[1]
        found.append(_of_sglang(figures, options) or _of_vllm(figures, options))
        before = table
    return found


def told(text: str) -> dict[str, str]:
    """The options that stand last in a text; none where it names no client."""
    found: dict[str, str] = {}
    for line in _joined(text).splitlines():
        command = _COMMAND.search(line)
        if "Namespace(" in line:
            found = dict(_OPTION.findall(line.partition("Namespace(")[2]))
        elif command is not None:
            found = dict(arguments(command[1].split()))
    return found


def told_beside(beside: Sidecars) -> dict[str, str]:
    """The options of a report: as the client printed them first, else as the text beside it says."""
    begin = "\n".join(reading.lines(beside.log)[:_FIRST_LINES])
    return (
        told(begin) or told(reading.text(beside.told)) or told(reading.text(beside.log))
    )


def _joined(text: str) -> str:
    """With the lines of a command, which a backslash goes on, as one."""
    return re.sub(r"\\\r?\n\s*", " ", text)


def _figures(table: str) -> Iterator[tuple[str, Any]]:
    """The figures of a table, up to its end."""
    for line in reading.lines(table.encode()):
        if _ROWS_END.match(line):
            return
        row = _ROW.match(line)
        if row is None:
            continue
        label = row[1].lower()
        value = reading.number(row[2])
        time = _TIME.fullmatch(label)
        if time is not None:
            yield f"{time[1]}_{time[2].replace(' ', '_')}_ms", value
        elif label in _LABELS:
            yield _LABELS[label], row[2] if value is None else value


def _of_sglang(
    figures: dict[str, Any], options: dict[str, str]
) -> dict[str, Any] | None:
    """In the form of `bench_serving`; None for the table of another client."""
    if "mean_e2e_latency_ms" not in figures:
        return None
    figures["total_throughput"] = figures.pop("total_token_throughput", None)
    if figures.get("max_concurrency") == "not":
        figures["max_concurrency"] = None
    return {**options, **figures}


def _of_vllm(figures: dict[str, Any], options: dict[str, str]) -> dict[str, Any]:
    """In the form of `vllm bench serve`. A table without options does not say the protocol: most send completions."""
    asked: Any = options.get("num_prompts")
    ended = [reading.number(figures.get(name)) for name in ("completed", "failed")]
    if asked is None and ended[0] is not None:
        asked = ended[0] + (ended[1] or 0)
    known = {
        "backend": options.get("backend", "openai"),
        "num_prompts": asked,
        "model_id": options.get("model"),
        "max_concurrency": options.get("max_concurrency"),
        "request_rate": options.get("request_rate"),
        "burstiness": reading.number(options.get("burstiness")),
    }
    return (
        {name: value for name, value in known.items() if value is not None}
        | figures
        | {TOLD: options}
    )


def _objects(file: ResultFile) -> list[dict[str, Any]]:
    """Of a report or of a text. Raises FileError."""
    if file.suffix in SUFFIXES:
        return results(file)
    return json_objects(file)


def _twin(file: ResultFile) -> str | None:
    """The report beside a text that says the same with more, or a text that does. Those of a sweep begin with the name
    of its text: `sweep-0.1.json` with `sweep.log`."""
    if file.suffix not in SUFFIXES:
        return None
    before = SUFFIXES[: SUFFIXES.index(file.suffix)]
    for path in sorted(file.path.parent.iterdir()):
        name = path.name.removesuffix(".gz")
        is_text = name in [file.stem + suffix for suffix in before]
        is_json = name.endswith((".json", ".jsonl")) and begins(name, file.stem)
        if (is_json or is_text) and _has_rate(path):
            return path.name
    return None


def _has_rate(path: Path) -> bool:
    """Whether a file holds what a client of a server reports."""
    try:
        content = unpacked(path)
    except (OSError, UnfitError):
        return False
    return b'"output_throughput"' in content or TITLE.encode() in content


FORM = Form((".json", ".jsonl", *SUFFIXES), _objects, _twin)
