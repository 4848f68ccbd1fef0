"""What the names of columns mean, of a table or JSON of anybody's: where the rows are, and what is said of each.

Which words mean what is data (`guesses.yaml`).
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from statistics import fmean
from typing import Any

from sparkpub.record import documents
from sparkpub.record.metrics import METRICS
from sparkpub.tools import forms, reading
from sparkpub.tools.asked import amount
from sparkpub.tools.forms import FileError, ResultFile

_MOST_ROWS = 20
"""Of a list, so many items are looked at."""
_DEEPEST = 4
_MOST_PLACES = 12
"""Of a document, so many lists may hold the rows."""
_FEW_MS = 20
"""Below so many milliseconds no first token comes: a time without a unit is taken for seconds."""
_PARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z0-9%/]+|(?=/s)|/")
_PROMPT, _OUTPUT = "prompt_throughput_tok_s", "output_throughput_tok_s"
_Cells = dict[str, list[Any]]
"""What stands in each column, by its dotted path."""


@cache
def _guesses() -> Mapping[str, Any]:
    (found,) = documents.shipped("collect/imports", "guesses.yaml")
    return found  # type: ignore[no-any-return] # a file of ours


@dataclass(frozen=True)
class Proposal:
    """What the columns of a file mean."""

    rows: str
    """Where the rows are; empty: they are the documents."""
    run: Mapping[str, str]
    load: Mapping[str, str]
    columns: Mapping[str, str]
    """Of the metrics."""
    metrics: Mapping[str, Any]
    """The same as a mapping has them: of times and sizes the units, where they are others than ours; of rates that one
    column holds in turns, what another column says of each (`metric=pp*`)."""
    left: Sequence[str]
    number: int
    """How many rows the file has."""

    @property
    def form(self) -> object:
        """What files of one form have in common: the place of their rows, else their figures."""
        return self.rows or frozenset(self.columns.values())

    @property
    def says(self) -> tuple[int, int]:
        """How much the rows say: their figures, of each row where rows are loads, and what was asked for."""
        begin = _begin(self.rows)
        own = sum(column.startswith(begin) for column in self.load.values())
        return len(self.columns) * (self.number if own else 1), own


def proposal(file: ResultFile) -> Proposal | None:
    """What the columns of a file mean, its rows being those that say most; None for a file that cannot be read."""
    try:
        items = forms.of_table(file)
    except FileError:
        return None
    places = dict.fromkeys(_rows_in(items[:_MOST_ROWS], "", 0))
    proposals = []
    for path in ["", *islice(places, _MOST_PLACES)]:
        steps = path.split(".") if path else []
        rows = [row for item in items for row, _ in forms.spread_out(item, steps)]
        proposals.append(_of_rows(rows, path, _words(file.stem)))
    return max(proposals, key=lambda found: found.says)


def _rows_in(document: Any, path: str, depth: int) -> Iterator[str]:
    """The paths of lists of objects, and of mappings whose values are objects that share a name."""
    if depth > _DEEPEST:
        return
    if isinstance(document, list):
        items = reading.objects(document)[:_MOST_ROWS]
        if items and path:
            yield path
        for item in items:
            yield from _rows_in(item, path, depth)
    elif isinstance(document, dict):
        parts = [value for value in document.values() if isinstance(value, dict)]
        shared = set(parts[0]).intersection(*parts) if parts else set()
        if shared and 1 < len(parts) == len(document):
            document = {"*": parts[0]}
            yield f"{path}.*".removeprefix(".")
        for name, value in document.items():
            if "." not in name:
                inner = f"{path}.{name}".removeprefix(".")
                yield from _rows_in(value, inner, depth + 1)


def _of_rows(rows: Sequence[Mapping[str, Any]], path: str, named: str) -> Proposal:
    """What the names of the columns say, of those that hold anything of use, in a file that is `named` so."""
    cells: _Cells = defaultdict(list)
    for row in rows[:_MOST_ROWS]:
        for column, cell in _flat(row, ""):
            cells[column].append(cell)
    begin = _begin(path)
    figures = [column for column in cells if any(map(_is_figure, cells[column]))]
    own = figures
    if len(rows) > 1:  # what stands around several rows is a figure of none of them
        own = [column for column in figures if column.startswith(begin)]
    metrics = _metrics(own, begin)
    when = {} if _PROMPT in metrics else _turns(rows)
    if _PROMPT not in metrics and _is_of_prompts(named, metrics.get(_OUTPUT, "")):
        metrics[_PROMPT] = metrics.pop(_OUTPUT)
    if _OUTPUT in metrics and when:
        metrics[_PROMPT] = metrics[_OUTPUT]
    left = [column for column in cells if any(map(_is_plain, cells[column]))]
    left = _without(left, metrics)
    load = _of_keys(path, cells)
    asked = [column for column in left if not _means_another(column, left)]
    load |= _taken([name for name in asked if name in figures], "load", without=load)
    run = _taken(_without(asked, load), "run")
    if "model" not in run and "model_id" in run:
        run["model"] = run.pop("model_id")
    if load:
        run.pop("workload", None)  # the options name it, each load of its own
    described: dict[str, Any] = {}
    for name, column in metrics.items():
        more = {"unit": _unit(name, column, cells), "when": when.get(name)}
        described[name] = (
            {"at": column, **reading.said(more)} if any(more.values()) else column
        )
    left = _without(left, {**load, **run})
    run |= _options(cells, begin)
    return Proposal(path, run, load, metrics, described, left, len(rows))


def _without(columns: Sequence[str], taken: Mapping[str, str]) -> list[str]:
    """The columns that nothing was said of yet."""
    return [column for column in columns if column not in taken.values()]


def _metrics(columns: Sequence[str], begin: str) -> dict[str, str]:
    """The column of each metric: one of its name, else the first that speaks of it."""
    found = {name: name for name in METRICS if name in columns}
    for column in _without(columns, found):
        name = _metric(_words(column.removeprefix(begin)))
        if name is not None:
            found.setdefault(name, column)
    return found


def _is_of_prompts(named: str, column: str) -> bool:
    """Whether a rate that does not say what it is of is in a file that is named after the work on prompts."""
    of_file, of_column = _guesses()["of_prompts"], _guesses()["of_answers"]
    is_named = re.search(of_file, named) and not re.search(of_column, named)
    return bool(column and is_named) and not re.search(of_column, _words(column))


def _turns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Of rows that are of the prompt and of the answer by turns, how a column says which they are."""
    for column in rows[0] if rows else ():
        words = {str(row.get(column)) for row in rows}
        for prompt, output in _guesses()["turns"].items():
            begins = {word.startswith(prompt) for word in words}
            if len(begins) == 2 and all(
                word.startswith((prompt, output)) for word in words
            ):
                return {
                    _PROMPT: [f"{column}={prompt}*"],
                    _OUTPUT: [f"{column}={output}*"],
                }
    return {}


def _of_keys(path: str, cells: _Cells) -> dict[str, str]:
    """The load that the names of a mapping of rows are: `by_load.key` of `by_load.*`."""
    *around, last = path.split(".")
    column = ".".join([*around, "key"])
    keys = map(str, cells.get(column, ()))
    if last != "*" or any(amount(key) is None for key in keys):
        return {}
    name = _first("keys", _words(around[-1] if around else ""))
    return {} if name is None else {name: column}


def _options(cells: _Cells, begin: str) -> dict[str, str]:
    """The mapping of the server's options that is nearest to the row: in it, or around it."""
    nearest = ""
    for column, there in cells.items():
        around, dot, name = column.rpartition(".")
        is_called = re.fullmatch(_guesses()["options"], _words(name))
        is_mapping = any(isinstance(cell, Mapping) for cell in there)
        is_near = column.count(".") >= nearest.count(".")
        if is_called and is_mapping and is_near and begin.startswith(around + dot):
            nearest = column
    return {"options": nearest} if nearest else {}


def _flat(cell: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Values by dotted path, mappings among them."""
    if path:
        yield path, cell
    for name, value in cell.items() if isinstance(cell, Mapping) else ():
        yield from _flat(value, f"{path}.{name}".removeprefix("."))


def _begin(rows: str) -> str:
    """How the columns of the rows themselves begin."""
    inner = rows.replace("*", "").strip(".")
    return f"{inner}." if inner else ""


def _words(column: str) -> str:
    """`points.ttft_ms.p50` as `points ttft ms p50`."""
    return " ".join(filter(None, _PARTS.split(column))).lower()


def _first(guesses: str, words: str) -> str | None:
    """The first name whose pattern stands in some words."""
    patterns = _guesses()[guesses].items()
    return next((name for name, said in patterns if re.search(said, words)), None)


def _metric(words: str) -> str | None:
    """The metric that a column's words speak of."""
    if re.search(_guesses()["never"], words):
        return None
    name = f"{_first('times', words)}_{_first('statistics', words)}_ms"
    return _first("metrics", words) or (name if name in METRICS else None)


def _unit(name: str, column: str, cells: _Cells) -> str | None:
    """The unit of a time or a size, where it is another one than ours."""
    ours = METRICS[name].unit
    if ours not in ("ms", "GiB"):
        return None
    stated = cells.get(f"{column.rpartition('.')[0]}.unit")
    unit = _first("units", _words(str(stated[0]) if stated else column))
    if unit is None and ours == "ms" and not stated:
        numbers = reading.numbers([*cells[column]])
        is_short = bool(numbers) and fmean(numbers) < _FEW_MS
        unit = "s" if is_short and name.startswith(("ttft", "request")) else None
    return None if unit == ours else unit


def _means_another(column: str, there: Sequence[str]) -> bool:
    """Whether a column means another thing because of one that stands beside it."""
    around, _, last = column.rpartition(".")
    beside = _guesses()["instead"].get(_words(last))
    named = f"{_words(around)} {beside}".strip()
    return beside is not None and named in map(_words, there)


def _taken(
    columns: Sequence[str], guesses: str, without: Collection[str] = ()
) -> dict[str, str]:
    """For each name the column that says it best: by the first of its patterns, and with the fewest words."""
    found: dict[str, str] = {}
    for name, patterns in _guesses()[guesses].items():
        free = [] if name in without else _without(columns, found)
        for pattern in patterns:
            fitting = [column for column in free if _is_called(column, pattern)]
            if fitting:
                found[name] = min(fitting, key=_length)
                break
    return found


def _length(column: str) -> tuple[int, int, str]:
    """Of several columns the shortest comes first."""
    return column.count("."), len(column), column


def _is_called(column: str, pattern: str) -> bool:
    """By its last names, `timestamp` of `run.timestamp`, or several of them."""
    names = column.split(".")
    ends = (_words(".".join(names[number:])) for number in range(len(names)))
    return any(re.fullmatch(pattern, end) for end in ends)


def _is_figure(cell: Any) -> bool:
    """A number, or a list of numbers; not a truth."""
    if isinstance(cell, list):
        there = [item for item in cell if item is not None]
        return bool(there) and len(reading.numbers(there)) == len(there)
    if isinstance(cell, str):
        cell = cell.partition("±")[0].strip()
    return reading.number(cell) is not None


def _is_plain(cell: Any) -> bool:
    return cell is not None and not isinstance(cell, list | dict)
