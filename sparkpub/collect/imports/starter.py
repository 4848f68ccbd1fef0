"""A mapping to begin with, for each kind of table or JSON of anybody's: where the rows are, and what the names of the
columns say.

People read it, correct it, and import with it. What names mean is data (`guesses.yaml`).
"""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import islice
from os.path import commonprefix
from pathlib import Path
from statistics import fmean
from typing import Any

from sparkpub.collect.imports.folder import Folder, is_notes
from sparkpub.record import documents
from sparkpub.record.errors import ImportFormatError
from sparkpub.record.metrics import METRICS
from sparkpub.tools import forms, reading
from sparkpub.tools.asked import amount
from sparkpub.tools.forms import FileError, ResultFile
from sparkpub.tools.language import named_in

_MOST_FILES = 300
"""Of a folder, so many files are looked at."""
_MOST_ROWS = 20
"""Of a list, so many items are looked at."""
_DEEPEST = 4
_MOST_PLACES = 12
"""Of a document, so many lists may hold the rows."""
_MOST_LEFT = 30
"""So many columns without use are named."""
_FEW_FIGURES = 3
"""Of a kind of files, so many are told."""
_FEW_MS = 20
"""Below so many milliseconds no first token comes: a time without a unit is taken for seconds."""
_PARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z0-9%/]+|(?=/s)|/")
_SIZED = re.compile(r"\d+(?:\.\d+)?b\b", re.IGNORECASE)
"""A number of parameters, in the name of a model."""
_BETWEEN = "__"
"""What parts the name of a file where people put several things into it."""
_Cells = dict[str, list[Any]]
"""What stands in each column, by its dotted path."""


@cache
def _guesses() -> Mapping[str, Any]:
    file = resources.files("sparkpub.collect.imports") / "guesses.yaml"
    found, _ = documents.parse(file.read_text(), file.name, ImportFormatError)
    return found  # type: ignore[no-any-return] # a file of ours


@dataclass(frozen=True)
class Proposal:
    """What the columns of a file mean."""

    rows: str
    """Where the rows are; empty: they are the documents."""
    sections: Mapping[str, Mapping[str, str]]
    """Of `run`, `load` and `metrics` the columns by name."""
    units: Mapping[str, str]
    """Of times and sizes, where they are others than ours."""
    left: Sequence[str]
    number: int
    """How many rows the file has."""

    @property
    def form(self) -> object:
        """What files of one form have in common: the place of their rows, else their figures."""
        return self.rows or frozenset(self.sections["metrics"].values())

    @property
    def says(self) -> tuple[int, int]:
        """How much the rows say: their figures, of each row where rows are loads, and what was asked for."""
        load = self.sections["load"].values()
        own = sum(column.startswith(_begin(self.rows)) for column in load)
        figures = len(self.sections["metrics"])
        return figures * (self.number if own else 1), own


@dataclass(frozen=True)
class Kind:
    """Files of one form that no tool is known for."""

    proposal: Proposal
    sources: Sequence[str]
    others: Collection[str]
    """All other files of the folder."""

    def __str__(self) -> str:
        files = "file" if len(self.sources) == 1 else f"{len(self.sources)} files like"
        figures = [*self.proposal.sections["metrics"]]
        more = ", …" if len(figures) > _FEW_FIGURES else ""
        told = ", ".join(figures[:_FEW_FIGURES])
        return f"{files} {self.sources[0]} with {told}{more}"

    def _path(self) -> str | None:
        """What the names of the files say, where their rows do not say the model."""
        pattern = _parted(self.sources)
        is_nameless = "model" not in self.proposal.sections["run"]
        if pattern is None and is_nameless and len(self.sources) > 1:
            return f"{{model}}{Path(self.sources[0]).suffix}"
        return pattern

    def lines(self) -> Iterator[str]:
        """A mapping as YAML."""
        proposal, pattern = self.proposal, self._path()
        run = dict(proposal.sections["run"])
        yield f"# {_in_line(str(self))}"
        if self.others:
            yield f"files: {_quoted(_pattern(self.sources))}"
        if pattern is not None:
            yield f"path: {_quoted(pattern)}  # or {{model}}/{{weights}}/…"
            for name in ("model", "variant"):
                if f"{{{name}}}" in pattern:
                    run.setdefault(name, f"path.{name}")
        if proposal.rows:
            yield f"rows: {_quoted(proposal.rows)}"
        if "model" not in run:
            yield "same: {model: ...}"
        yield from _section("run", run, {})
        yield from _section("load", proposal.sections["load"], {})
        yield from _section("metrics", proposal.sections["metrics"], proposal.units)
        if proposal.left:
            yield f"# not used: {_in_line(', '.join(proposal.left[:_MOST_LEFT]))}"


def _section(
    title: str, columns: Mapping[str, str], units: Mapping[str, str]
) -> Iterator[str]:
    if columns:
        yield f"{title}:"
    for name, column in columns.items():
        said = _quoted(column)
        if name in units:
            said = f"{{at: {said}, unit: {units[name]}}}"
        yield f"  {name}: {said}"


def kinds(folder: Folder, unread: Collection[str] | None = None) -> list[Kind]:
    """The kinds of files with figures, of all or of those that were not read; what says most first."""
    found: dict[object, list[tuple[Proposal, str]]] = defaultdict(list)
    there = []
    for file in islice(folder.files(), _MOST_FILES):
        if not isinstance(file, ResultFile) or file.suffix not in forms.TABLES:
            continue
        there.append(file.source)
        if is_notes(file) or (unread is not None and file.source not in unread):
            continue
        proposal = _of_file(file)
        if proposal is not None and proposal.says[0]:
            found[proposal.form].append((proposal, file.source))
    listed = []
    for items in found.values():
        fullest, _ = max(items, key=lambda item: item[0].says)
        sources = [source for _, source in items]
        listed.append(Kind(fullest, sources, {*there} - {*sources}))
    return sorted(listed, key=lambda kind: -len(kind.sources) * kind.proposal.says[0])


def lines(found: Sequence[Kind]) -> Iterator[str]:
    """The mappings of all kinds, as the documents of one file of YAML."""
    yield "# A mapping to begin with: correct it, and save it as map.yaml."
    for number, kind in enumerate(found):
        if number:
            yield "---"
        yield from kind.lines()


def builds(sources: Sequence[str]) -> str | None:
    """The pattern of files of a tool whose names say the build after the model; None where they do not."""
    parted = [source for source in sources if _BETWEEN in Path(source).name]
    pattern = _parted(parted) if 2 * len(parted) > len(sources) else None
    if pattern is None:
        return None
    found = [named_in(pattern, source) or {} for source in sources]
    models = {named.get("model") for named in found}
    variants = {(named.get("model"), named.get("variant")) for named in found}
    return pattern if len(variants) > len(models) else None


def _pattern(sources: Sequence[str]) -> str:
    """The names of some files, with `*` for what differs."""
    if len(sources) == 1:
        return sources[0]
    begin = commonprefix(sources)  # noqa: RUF071 - of letters, not of folders
    ends = [source.removeprefix(begin)[::-1] for source in sources]
    end = commonprefix(ends)[::-1]  # noqa: RUF071
    return f"{begin}*{end}"


def _parted(sources: Sequence[str]) -> str | None:
    """The pattern of files whose names have parts, the first one a model; None for others."""
    parts = [Path(source).name.split(_BETWEEN) for source in sources]
    if not all(len(part) > 1 and _SIZED.search(part[0]) for part in parts):
        return None
    is_longer = all(len(part) > 2 for part in parts)
    names = ["{model}", "{variant}", *["{rest}"] * is_longer]
    return _BETWEEN.join(names) + Path(sources[0]).suffix


def _of_file(file: ResultFile) -> Proposal | None:
    """The proposal whose rows say most."""
    try:
        items = forms.of_table(file)
    except FileError:
        return None
    places = dict.fromkeys(_rows_in(items[:_MOST_ROWS], "", 0))
    found = []
    for path in ["", *islice(places, _MOST_PLACES)]:
        steps = path.split(".") if path else []
        rows = [row for item in items for row, _ in forms.spread_out(item, steps)]
        found.append(_of_rows(rows, path))
    return max(found, key=lambda proposal: proposal.says)


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


def _of_rows(rows: Sequence[Mapping[str, Any]], path: str) -> Proposal:
    """What the names of the columns say, of those that hold anything of use."""
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
    units = {name: _unit(name, column, cells) for name, column in metrics.items()}
    return Proposal(
        path,
        {"run": run | _options(cells, begin), "load": load, "metrics": metrics},
        {name: unit for name, unit in units.items() if unit is not None},
        _without(left, {**load, **run}),
        len(rows),
    )


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
    ours = {"_ms": "ms", "_gib": "GiB"}.get(f"_{name.rpartition('_')[2]}")
    if ours is None:
        return None
    unit = _first("units", _words(column))
    if unit is None and ours == "ms":
        numbers = reading.numbers([*cells[column]])
        is_short = bool(numbers) and fmean(numbers) < _FEW_MS
        unit = "s" if is_short and name.startswith(("ttft", "request")) else None
    return None if unit == ours else unit


def _means_another(column: str, there: Sequence[str]) -> bool:
    """Whether a column means another thing because of one that stands beside it."""
    before, dot, last = column.rpartition(".")
    beside = _guesses()["instead"].get(_words(last))
    names = [_words(name.removeprefix(before + dot)) for name in there]
    return beside is not None and beside in names


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


def _quoted(text: str) -> str:
    """As YAML has it."""
    return json.dumps(text, ensure_ascii=False)


def _in_line(text: str) -> str:
    """Without breaks, for a comment."""
    return " ".join(text.split())
