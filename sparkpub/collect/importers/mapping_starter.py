"""A mapping to begin with, for tables and JSON of anybody's: where the rows are, and what the names of the columns say.

People read it, correct it, and import with it. Of a folder it is for the files of the form that says most.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sparkpub.collect.importers.rows import SUFFIXES, SourceTable, read_table
from sparkpub.record.metrics import METRICS
from sparkpub.tools import reading
from sparkpub.tools.forms import FileError, ResultFile

_MOST_FILES = 300
"""Of a folder, so many files are looked at."""
_MOST_ROWS = 20
"""Of a list, so many items are looked at."""
_DEEPEST = 4
_MOST_PLACES = 12
"""Of a document, so many lists may hold the rows."""
_MOST_LEFT = 30
"""So many columns without use are named."""
_WORD = re.compile(r"[^a-z0-9%/]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NAMES = {
    "model": r"(served )?(model|llm)( name| key)?",
    "model_id": r"(hf )?(model id|model repo|repo)",
    "environment": r"env(ironment)?|where",
    "workload": r"workload( name)?|scenario|task|prompt name|test name",
    "started": r"(run )?(date|timestamp|started( at)?|start( time)?|when|measured at|created( at)?|benchmarked at)",
    "iteration": r"iteration|iter|run|repeat|trial",
    "engine": r"engine( name)?|backend|server|runtime|framework",
    "engine_version": r"(engine |vllm |server )?version",
    "weights": r"quant\w*|precision|weights|dtype",
    "machine": r"machine|hardware( name)?|gpu( name)?|device",
    "nodes": r"nodes|num nodes|node count|machines|sparks",
    "image": r"(container |docker )?image",
}
_OPTIONS = {
    "input_tokens": r"(target |mean )?(input|prompt)( len\w*| tokens?| size)?|isl|pp|prompt tokens target",
    "output_tokens": r"(target |max )?(output|gen\w*|response)( len\w*| tokens| size)|max tokens|osl|tg",
    "depth": r"(context |target )?depth|context( len\w*| tokens| size)?",
    "concurrency": r"(max )?concurren\w*|(num )?(clients|users|streams|sessions)|c",
    "batch_size": r"batch( size)?|bs",
    "request_rate": r"(request |arrival )?rate|rps|qps",
    "requests": r"(num |n )?(requests|prompts)",
}
_TIMES = {
    "ttft": r"\bttft|time to first|first token",
    "tpot": r"\btpot|time per output",
    "itl": r"\bitl\b|inter token",
    "request_latency": r"latency|\be2el?\b|end to end|request time",
}
_STATISTICS = {
    "p50": r"\b(p50|median)\b",
    "p90": r"\bp90\b",
    "p95": r"\bp95\b",
    "p99": r"\bp99\b",
    "min": r"\bmin\b",
    "max": r"\bmax\b",
    "mean": "",
}
_TOKEN_RATE = re.compile(
    r"\b(tok\w*|t) (per )?s(ec\w*)?\b|\btps\b|\b(throughput|speed)\b(?!.*\breq)"
)
_RATES = {
    "prompt_throughput_tok_s": r"\b(prompt|prefill|pp|input)\b",
    "output_throughput_per_user_tok_s": r"\bper (user|session|stream|request|client)\b|\b(session|stream|user)\b",
    "total_throughput_tok_s": r"\btotal tok\w*\b",
    "output_throughput_tok_s": "",
}
_OTHERS = {
    "request_throughput_req_s": r"\breq\w* s(ec)?\b|\breq\w* per s(ec\w*)?\b|\brequest throughput",
    "gpu_power_mean_watt": r"\bpower\b(?!.*\b(peak|max|limit)\b)|\bwatts?\b",
    "gpu_temp_max_celsius": r"\bgpu temp\w*\b|\btemp\w* (c|celsius)\b",
    "peak_memory_gib": r"peak.*\b(mem\w*|vram)\b|\b(mem\w*|vram)\b.*peak",
}
_NEVER = re.compile(
    r"\b(std\w*|stdev|sd|stderr|norm|delta|ratio|rank|target|limit|baselines?|timeout|override\w*|warm ?up)\b"
)
"""Words of columns that are no figures of a run, whatever else they say."""
_BEST = ("agg", "aggregate", "aggregated", "output", "gen", "generation")
"""Of several rates of one kind, the words of the one over all requests."""
_UNITS = {
    "s": r"\b(s|sec|secs|seconds)$",
    "us": r"\b(us|µs)$",
}


@dataclass
class Proposal:
    """A mapping, for files of one form."""

    rows: str | None
    names: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, str] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    stems: list[str] = field(default_factory=list)
    """Paths, within the folder, of the files of that form."""
    number: int = 0
    """How many rows the first file has."""

    @property
    def figures(self) -> int:
        """How many figures it finds in a row."""
        return len(self.metrics) + len(self.requests)

    @property
    def begin(self) -> str:
        """How the columns of the rows themselves begin."""
        inner = (self.rows or "").replace("*", "").strip(".")
        return f"{inner}." if inner else ""

    @property
    def form(self) -> object:
        """What files of one form have in common: the place of their rows, else their figures."""
        return self.rows or frozenset(self.metrics.values())

    def lines(self) -> Iterator[str]:
        """As YAML."""
        yield "# A mapping to begin with: correct it, and save it as map.yaml."
        if len(self.stems) > 1:
            yield f"# For {len(self.stems)} files like {_in_line(self.stems[0])}."
        if self.rows is not None:
            yield f"rows: {_quoted(self.rows)}"
        names = dict(self.names)
        if not {"model", "model_id"} & set(names) and len(self.stems) > 1:
            yield (
                "path: '{model}"
                + Path(self.stems[0]).suffix
                + "'  # or {model}/{weights}/…"
            )
            names["model"] = "path.model"
        elif "model" not in names and "model_id" in names:
            names["model"] = names.pop("model_id")
        yield from _section("run", names)
        if "model" not in names:
            yield "same: {model: ...}"
        yield from _section("load", self.options)
        yield (
            "metrics:"
            if self.metrics
            else "metrics: {}"
            if self.requests
            else "metrics: {}  # name the columns of the figures"
        )
        for name, column in self.metrics.items():
            yield f"  {name}: {_place(column, _unit(name, column))}"
        if self.requests:
            yield "requests:"
        for name, column in self.requests.items():
            yield f"  {name}: {_place(column, _unit(f'{name}_ms', column))}"
        if self.left:
            more = ", …" if len(self.left) > _MOST_LEFT else ""
            yield f"# not used: {_in_line(', '.join(self.left[:_MOST_LEFT]))}{more}"


def proposed(files: Iterator[ResultFile]) -> Proposal | None:
    """A mapping for the files that say most in one form; None where no file has a figure."""
    forms: dict[object, Proposal] = {}
    for _, file in zip(range(_MOST_FILES), files, strict=False):
        if file.suffix not in SUFFIXES:
            continue
        found = _of_file(file)
        if found is None:
            continue
        known = forms.setdefault(found.form, found)
        stems = [*known.stems, file.source]
        fuller = max(known, found, key=_says)
        forms[found.form] = replace(fuller, stems=stems)
    if not forms:
        return None
    most = max(forms.values(), key=lambda form: len(form.stems) * form.figures)
    return most if most.figures or len(forms) == 1 else None


def _of_file(file: ResultFile) -> Proposal | None:
    """The proposal whose rows say most."""
    paths: list[str | None] = [None]
    if file.suffix == ".json":
        places = dict.fromkeys(_rows_in(reading.json_value(file.content), "", 0))
        paths += list(places)[:_MOST_PLACES]
    best: Proposal | None = None
    for path in paths:
        with suppress(FileError):
            found = _of_table(read_table(file, path), path)
            if best is None or _says(found) > _says(best):
                best = found
    return best


def _says(proposal: Proposal) -> tuple[int, int, int]:
    """How much the rows themselves say: figures, what was asked for, their number."""

    def own(columns: Mapping[str, str]) -> int:
        return sum(column.startswith(proposal.begin) for column in columns.values())

    figures = own(proposal.metrics) + own(proposal.requests)
    return figures, own(proposal.options), proposal.number


def _rows_in(document: Any, path: str, depth: int) -> Iterator[str]:
    """The paths of lists of objects, and of mappings whose values are objects of one form."""
    if depth > _DEEPEST:
        return
    if isinstance(document, list):
        items = reading.objects(document)[:_MOST_ROWS]
        if items and path:
            yield path
        for item in items:
            yield from _rows_in(item, path, depth)
        return
    if not isinstance(document, dict):
        return
    parts = [value for value in document.values() if isinstance(value, dict)]
    forms = {frozenset(part) for part in parts}
    if len(parts) > 1 and len(forms) == 1 and len(parts) == len(document):
        inner = f"{path}.*".removeprefix(".")
        yield inner
        yield from _rows_in(parts[0], inner, depth + 1)
        return
    for name, value in document.items():
        if "." not in name:
            yield from _rows_in(value, f"{path}.{name}".removeprefix("."), depth + 1)


def _of_table(table: SourceTable, rows: str | None) -> Proposal:
    """What the names of the columns say, of those that hold anything of use."""
    cells = {
        column: [row.cells.get(column) for row in table.rows[:_MOST_ROWS]]
        for column in table.columns
    }
    found = Proposal(rows, number=len(table.rows))
    words = {column: _words(column, found.begin) for column in table.columns}
    figures = [
        column for column in table.columns if any(map(_is_figure, cells[column]))
    ]
    found.metrics = {name: name for name in METRICS if name in figures}
    for column in figures:
        name = _metric(words[column])
        if ".*." in column:
            continue  # of each request
        known = found.metrics.get(name or "")
        if name is None or column in found.metrics.values():
            continue
        if known is None or _rank(words[column]) > _rank(words.get(known, "")):
            found.metrics[name] = column
    found.requests = dict(_of_each(found, figures, words))
    left = [
        column
        for column in table.columns
        if column not in found.metrics.values() and any(map(_is_plain, cells[column]))
    ]
    found.options = _taken([column for column in left if column in figures], _OPTIONS)
    left = [column for column in left if column not in found.options.values()]
    found.names = _taken(left, _NAMES)
    if found.options:
        found.names.pop("workload", None)  # the options name it, each load of its own
    found.left = [column for column in left if column not in found.names.values()]
    return found


def _of_each(
    found: Proposal, figures: Sequence[str], words: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """The lists with a time of each request, where nothing says the statistics."""
    for column in figures:
        stem = (_metric(words[column]) or "").removesuffix("_mean_ms")
        is_said = any(name.startswith(stem) for name in found.metrics)
        if ".*." in column and stem in _TIMES and not is_said:
            yield stem, column


def _words(column: str, begin: str) -> str:
    """`series.points.ttft_ms.p50` below `series.points` as `ttft ms p50`."""
    own = column.removeprefix(begin).removeprefix("path.")
    return " ".join(
        _WORD.split(_CAMEL.sub(" ", own).lower().replace("/s", " s"))
    ).strip()


def _metric(words: str) -> str | None:
    """The metric that a column's words speak of."""
    if _NEVER.search(words):
        return None
    for name, pattern in _OTHERS.items():
        if re.search(pattern, words):
            return name
    if _TOKEN_RATE.search(words):
        return next(
            name for name, pattern in _RATES.items() if re.search(pattern, words)
        )
    for stem, pattern in _TIMES.items():
        if re.search(pattern, words):
            statistics = _STATISTICS.items()
            said = next(name for name, mark in statistics if re.search(mark, words))
            name = f"{stem}_{said}_ms"
            return name if name in METRICS else None
    return None


def _rank(words: str) -> int:
    """How sure it is that a rate is that of all requests, as a mean."""
    said = words.split()
    better = sum(word in said for word in _BEST)
    worse = sum(word in said for word in ("min", "max", "peak", "cold"))
    return 2 * (better - worse) - ("median" in said)


def _taken(columns: Sequence[str], patterns: Mapping[str, str]) -> dict[str, str]:
    """For each name the column that says it with the fewest words."""
    found: dict[str, str] = {}
    for name, pattern in patterns.items():
        fitting = [
            column
            for column in columns
            if column not in found.values() and _is_called(column, pattern)
        ]
        if fitting:
            found[name] = min(
                fitting, key=lambda column: (column.count("."), len(column))
            )
    return found


def _is_called(column: str, pattern: str) -> bool:
    """By its last names, `timestamp` of `run.timestamp`, or several of them."""
    names = column.removeprefix("path.").split(".")
    return any(
        re.fullmatch(pattern, _words(".".join(names[number:]), ""))
        for number in range(len(names))
    )


def _is_figure(cell: Any) -> bool:
    """A number, or a list of numbers; not a truth."""
    if isinstance(cell, list):
        there = [item for item in cell if item is not None]
        return bool(there) and len(reading.numbers(there)) == len(there)
    if isinstance(cell, str):
        cell = cell.partition("±")[0].strip()
    return not isinstance(cell, bool) and reading.number(cell) is not None


def _is_plain(cell: Any) -> bool:
    return cell is not None and not isinstance(cell, list | dict)


def _unit(name: str, column: str) -> str:
    """`s` for a time whose column says that it is in seconds; empty where the unit is ours."""
    said = _words(column, "").removesuffix(" mean")
    bare = re.sub(r" (p\d+|median|avg|mean|min|max|runs|values)$", "", said)
    for unit, pattern in _UNITS.items():
        if name.endswith("_ms") and re.search(pattern, bare):
            return unit
    if name.endswith("_gib") and re.search(r"\bmb$", bare):
        return "MB"
    if name.endswith("_gib") and re.search(r"\bgb$", bare):
        return "GB"
    return ""


def _place(column: str, unit: str) -> str:
    """A column, with its unit where that is another one than ours."""
    return f"{{at: {_quoted(column)}, unit: {unit}}}" if unit else _quoted(column)


def _section(title: str, entries: Mapping[str, str]) -> Iterator[str]:
    if entries:
        yield f"{title}:"
    for name, column in entries.items():
        yield f"  {name}: {_quoted(column)}"


def _in_line(text: str) -> str:
    """Without breaks, for a comment."""
    return " ".join(text.split())


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
