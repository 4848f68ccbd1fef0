"""What clients print, as the objects that they would have saved, and the options that they were told.

`vllm bench serve`, `benchmark_serving.py` and SGLang's `bench_serving` end with a table under "Serving Benchmark
Result", which people keep as a log or paste into Markdown. The options of a table are those that stand before it: as
the client prints them (`Namespace(…)`), or in a command. Figures of a table have two decimals.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparkpub.record.outside import UnfitError, unpacked
from sparkpub.tools import forms, reading
from sparkpub.tools.forms import ResultFile
from sparkpub.tools.shapes.base import Document, ReportShape, ShapedRun

TOLD = "told"
"""The key of the options in an object that was made of text."""
_TITLE = "Serving Benchmark Result"
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


def runs(file: ResultFile) -> list[ShapedRun]:
    """Of a report, or of a text: its tables, each in the form of the JSON that its client saves. Raises FileError."""
    if file.suffix in forms.JSON:
        return [ShapedRun(document) for document in forms.of_json(file.content)]
    if _TITLE.encode() not in file.content:
        return []
    date = _DATE.search(file.text)
    before, *tables = re.split(rf"(?m)^.*{_TITLE}.*$", _joined(file.text))
    found = []
    options: dict[str, str] = {}
    for table in tables:
        options = told(before) or options
        figures = dict(_figures(table))
        if date is not None:
            figures["date"] = date[1]
        found.append(_of_sglang(figures, options) or _of_vllm(figures, options))
        before = table
    return [ShapedRun(document) for document in found]


def told(text: str) -> dict[str, str]:
    """The options that stand last in a text; none where it names no client."""
    found: dict[str, str] = {}
    for line in _joined(text).splitlines():
        command = _COMMAND.search(line)
        if "Namespace(" in line:
            found = dict(_OPTION.findall(line.partition("Namespace(")[2]))
        elif command is not None:
            found = dict(forms.arguments(command[1].split()))
    return found


def beside(written: bytes, log: bytes) -> Document:
    """The options of a report: as the client printed them first, else as the text beside it says."""
    begin = "\n".join(reading.lines(log)[:_FIRST_LINES])
    texts = (begin, reading.text(written), reading.text(log))
    return {TOLD: next(filter(None, map(told, texts)), {})}


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


def _of_sglang(figures: Document, options: dict[str, str]) -> Document | None:
    """In the form of `bench_serving`; None for the table of another client."""
    if "mean_e2e_latency_ms" not in figures:
        return None
    figures["total_throughput"] = figures.pop("total_token_throughput", None)
    if figures.get("max_concurrency") == "not":
        figures["max_concurrency"] = None
    return {**options, **figures}


def _of_vllm(figures: Document, options: dict[str, str]) -> Document:
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
    return reading.said(known) | figures | {TOLD: options}


def twin(file: ResultFile) -> str | None:
    """The report beside a text that says the same with more, or a text that does. Those of a sweep begin with the name
    of its text: `sweep-0.1.json` with `sweep.log`."""
    if file.suffix not in forms.TEXTS:
        return None
    before = forms.TEXTS[: forms.TEXTS.index(file.suffix)]
    for path in sorted(file.path.parent.iterdir()):
        name = path.name.removesuffix(".gz")
        is_text = name in [file.stem + suffix for suffix in before]
        is_json = name.endswith(forms.JSON) and forms.begins(name, file.stem)
        if (is_json or is_text) and _has_rate(path):
            return path.name
    return None


def _has_rate(path: Path) -> bool:
    """Whether a file holds what a client of a server reports."""
    try:
        content = unpacked(path)
    except (OSError, UnfitError):
        return False
    return b'"output_throughput"' in content or _TITLE.encode() in content


SHAPE = ReportShape(runs, (*forms.JSON, *forms.TEXTS), twin, beside)
