"""A mapping to begin with, for tables and JSON of anybody's: where the rows are, and what the names of the columns say.

People read it, correct it, and import with it. Of a folder it is for the files of the form that says most. What names
mean is data (`guesses.yaml`).
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any

from sparkpub.collect.imports.folder import Folder, is_notes
from sparkpub.record import documents
from sparkpub.record.errors import ImportFormatError
from sparkpub.record.metrics import METRICS
from sparkpub.tools import forms, reading
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
_PARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z0-9%/]+|(?=/s)|/")
_STATISTIC = re.compile(r" (p\d+|median|avg|mean|min|max|runs|values)$")


@cache
def _guesses() -> Mapping[str, Any]:
    file = resources.files("sparkpub.collect.imports") / "guesses.yaml"
    found, _ = documents.parse(file.read_text(), file.name, ImportFormatError)
    return found  # type: ignore[no-any-return] # a file of ours


@dataclass(frozen=True)
class Proposal:
    """A mapping, for files of one form."""

    rows: str
    """Where the rows are; empty: they are the documents."""
    sections: Mapping[str, Mapping[str, str]]
    """Of `run`, `load` and `metrics` the columns by name."""
    left: Sequence[str]
    number: int
    """How many rows the file has."""

    @property
    def form(self) -> object:
        """What files of one form have in common: the place of their rows, else their figures."""
        return self.rows or frozenset(self.sections["metrics"].values())

    @property
    def says(self) -> tuple[int, int, int]:
        """How much the rows themselves say: figures, what was asked for, their number."""
        begin = _begin(self.rows)
        metrics, load = (
            sum(column.startswith(begin) for column in self.sections[name].values())
            for name in ("metrics", "load")
        )
        return metrics, load, self.number

    def lines(self, sources: Sequence[str]) -> Iterator[str]:
        """As YAML, for files that were found at these paths."""
        yield "# A mapping to begin with: correct it, and save it as map.yaml."
        run = dict(self.sections["run"])
        if len(sources) > 1:
            yield f"# For {len(sources)} files like {_in_line(sources[0])}."
            if "model" not in run:
                suffix = Path(sources[0]).suffix
                yield f"path: '{{model}}{suffix}'  # or {{model}}/{{weights}}/…"
                run["model"] = "path.model"
        if self.rows:
            yield f"rows: {json.dumps(self.rows)}"
        if "model" not in run:
            yield "same: {model: ...}"
        sections = {**self.sections, "run": run}
        for title in filter(sections.get, sections):
            yield f"{title}:"
            for name, column in sections[title].items():
                yield f"  {name}: {_place(name, column)}"
        if self.left:
            yield f"# not used: {_in_line(', '.join(self.left[:_MOST_LEFT]))}"


def lines(folder: Folder) -> Iterator[str]:
    """A mapping for the files that say most in one form; nothing where no file has a figure."""
    read = (file for file in folder.files() if isinstance(file, ResultFile))
    files = (file for file in read if not is_notes(file))
    found: dict[object, list[tuple[Proposal, str]]] = defaultdict(list)
    for file in islice(files, _MOST_FILES):
        proposal = _of_file(file)
        if proposal is not None and proposal.says[0]:
            found[proposal.form].append((proposal, file.source))
    if found:
        most = max(found.values(), key=lambda form: len(form) * form[0][0].says[0])
        fullest, _ = max(most, key=lambda item: item[0].says)
        yield from fullest.lines([source for _, source in most])


def _of_file(file: ResultFile) -> Proposal | None:
    """The proposal whose rows say most."""
    if file.suffix not in forms.TABLES:
        return None
    found = []
    with suppress(FileError):
        items = forms.of_table(file)
        places = dict.fromkeys(_rows_in(items[:_MOST_ROWS], "", 0))
        for path in ["", *islice(places, _MOST_PLACES)]:
            steps = path.split(".") if path else []
            spread = (row for item in items for row, _ in forms.spread_out(item, steps))
            found.append(_of_rows([*spread], path))
    return max(found, key=lambda proposal: proposal.says, default=None)


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
    elif isinstance(document, dict):
        parts = [value for value in document.values() if isinstance(value, dict)]
        if len({frozenset(part) for part in parts}) == 1 < len(parts) == len(document):
            document = {"*": parts[0]}
            yield f"{path}.*".removeprefix(".")
        for name, value in document.items():
            if "." not in name:
                inner = f"{path}.{name}".removeprefix(".")
                yield from _rows_in(value, inner, depth + 1)


def _of_rows(rows: Sequence[Mapping[str, Any]], path: str) -> Proposal:
    """What the names of the columns say, of those that hold anything of use."""
    cells: dict[str, list[Any]] = defaultdict(list)
    for row in rows[:_MOST_ROWS]:
        for column, cell in _flat(row, ""):
            cells[column].append(cell)
    figures = [column for column in cells if any(map(_is_figure, cells[column]))]
    plain = [column for column in cells if any(map(_is_plain, cells[column]))]
    metrics = {name: name for name in METRICS if name in figures}
    for column in figures:
        name = _metric(_words(column.removeprefix(_begin(path))))
        if name is not None and column not in metrics.values():
            metrics.setdefault(name, column)
    left = [column for column in plain if column not in metrics.values()]
    load = _taken([column for column in left if column in figures], "load")
    run = _taken([column for column in left if column not in load.values()], "run")
    if "model_id" in run and "model" not in run:
        run["model"] = run.pop("model_id")
    if load:
        run.pop("workload", None)  # the options name it, each load of its own
    taken = {*load.values(), *run.values()}
    return Proposal(
        path,
        {"run": run, "load": load, "metrics": metrics},
        [column for column in left if column not in taken],
        len(rows),
    )


def _flat(cell: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Values by dotted path."""
    if isinstance(cell, Mapping):
        for name, value in cell.items():
            yield from _flat(value, f"{path}.{name}".removeprefix("."))
    else:
        yield path, cell


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


def _taken(columns: Sequence[str], guesses: str) -> dict[str, str]:
    """For each name the column that says it with the fewest words."""
    found: dict[str, str] = {}
    for name, pattern in _guesses()[guesses].items():
        fitting = [
            column
            for column in columns
            if column not in found.values() and _is_called(column, pattern)
        ]
        if fitting:
            found[name] = min(fitting, key=lambda said: (said.count("."), len(said)))
    return found


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


def _place(name: str, column: str) -> str:
    """A column, with its unit where it is a time or a size in another one than ours."""
    said = json.dumps(column, ensure_ascii=False)
    unit = None
    if name.endswith(("_ms", "_gib")):
        unit = _first("units", _STATISTIC.sub("", _words(column)))
    return f"{{at: {said}, unit: {unit}}}" if unit else said


def _in_line(text: str) -> str:
    """Without breaks, for a comment."""
    return " ".join(text.split())
