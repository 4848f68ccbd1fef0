"""What people declare of a table of theirs: which column says what, in which unit, and metrics of their own.

A table has a row for each run, with a column for each metric (`columns`, `metrics`), or a row for each run and metric
(`columns`, `long`), as `sparkpub export` writes it. A mapping that names no columns is for such an exported table.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationError

from sparkpub.record import documents
from sparkpub.record.errors import ImportFormatError
from sparkpub.record.metrics import DISTRIBUTIONS, METRICS, factor, unit_of
from sparkpub.record.record import Declared, Key, MetricName, Title, Unit

Column = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Option = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]


class RunColumns(Declared):
    """The names of a run, and what it was. `columns` and `same` both have them."""

    model: Column | None = None
    """Key or name of the model."""
    model_id: Column | None = None
    """Its name on Hugging Face, where `model` is a short one."""
    environment: Column | None = None
    """Where it ran: native, container, ..."""
    workload: Column | None = None
    """What was asked for. Without it the workload is named after the options."""
    started: Column | None = None
    """When the run began, as 2026-11-21T18:30:00Z; without a zone it is a local time."""
    engine: Column | None = None
    engine_version: Column | None = None
    quantization: Column | None = None
    machine: Column | None = None
    """What it ran on, by a key or GPU of the catalogue: `2x DGX Spark` says how many, too."""
    nodes: Column | None = None
    """How many machines served the model together."""
    image: Column | None = None
    driver: Column | None = None


class TableColumns(RunColumns):
    """Which column says what of a run."""

    iteration: Column | None = None
    """Number of the run within its cell, from 1; without it the order of the rows."""
    status: Column | None = None
    """`ok`, `failed`, `timeout`, `interrupted` or `invalid`; without it every run is `ok`."""
    quarantined: Column | None = None
    """Whether the run was excluded where the table comes from: it becomes an invalid run."""
    repeat_of: Column | None = None
    """The run that this one repeats: repeats are passed over."""


class Long(Declared):
    """The columns of a table with a row for each run and metric."""

    metric: Column
    value: Column
    unit: Column | None = None
    reason: Column | None = None
    """Why there is no value."""
    run: Column | None = None
    """What tells runs apart; without it, their cell and iteration."""


class MetricColumn(Declared):
    """Where a metric stands, in which unit, and what it is where sparkpub does not know it."""

    column: Column | None = None
    """Name of the column; in a long table the metric's own name finds it. A cell may hold a list of repetitions,
    or a mean and its deviation, as `32.3 ± 0.5`."""
    deviation: Column | None = None
    """The column of the standard deviation, in the unit of the figures."""
    repetitions: Column | None = None
    """The column that says over how many repetitions the figure is a mean."""
    unit: Unit | None = None
    """Of a known metric: the unit of the column, which is converted. Of a metric of one's own: its unit."""
    scale: Annotated[float, Field(gt=0)] | None = None
    """What the figures of the column are multiplied with, in place of a conversion."""
    label: Title | None = None
    direction: Literal["higher", "lower", "neither"] | None = None
    """Which way is better."""
    definition: Title | None = None
    """What it is, in one sentence."""


class TableMapping(Declared):
    """What the columns of a table mean."""

    tool: Key | None = None
    """What writes such results, where it is a tool that others use, too."""
    when: tuple[Column, ...] = ()
    """Dotted paths that a document of the tool has: by them its files are found."""
    columns: TableColumns | None = None
    same: RunColumns = RunColumns()
    """What holds for every row."""
    options: dict[Option, Column] = Field(default_factory=dict)
    """Columns of what was asked for: `input_tokens`, `output_tokens`, `concurrency`, `batch_size`, ..."""
    metrics: dict[MetricName, MetricColumn] = Field(default_factory=dict)
    long: Long | None = None
    only: dict[Column, tuple[str, ...]] = Field(default_factory=dict)
    """Columns with the words that rows must have there; other rows are passed over."""
    rows: Column | None = None
    """In JSON, where the rows are: `results.points` for a list within a mapping, `by_model.*` for the values of a
    mapping, whose names are the column `by_model.key`. What stands around the rows is in every row."""
    path: Annotated[str, Field(pattern=r"\{[a-z_]+\}")] | None = None
    """What the path of a file says, as `{model}/{weights}/c{clients}.json`: columns `path.model`, `path.weights`, …"""
    requests: dict[MetricName, MetricColumn] = Field(default_factory=dict)
    """Columns with a list of the requests' times, by what they are: `ttft`, `tpot`, `itl` or `request_latency`."""
    repeats: bool = False
    """Whether rows that are the same in every cell are runs of their own; otherwise they are one run."""

    @property
    def is_wide(self) -> bool:
        """Whether a row is a run."""
        return self.columns is not None and self.long is None

    @cached_property
    def path_pattern(self) -> re.Pattern[str] | None:
        """The end of a path with a group for each name."""
        if self.path is None:
            return None
        parts = re.split(r"\{([a-z_]+)\}", self.path)
        pattern = ""
        for text, name in zip_longest(parts[::2], parts[1::2]):
            pattern += re.escape(text)
            if name is not None:
                pattern += f"(?P<{name}>[^/]+?)"
        return re.compile(f"(?:^|/){pattern}$")

    def factor(self, name: str, unit: str | None) -> float | None:
        """What a figure in `unit` is multiplied with; None where nothing is known of that unit."""
        own = self.metrics.get(name)
        if own is not None and own.scale is not None:
            return own.scale
        wanted = METRICS[name].unit if name in METRICS else None
        if wanted is None and own is not None:
            wanted = own.unit
        return factor(unit or wanted, wanted) if wanted else 1.0


Fault = tuple[tuple[str, ...], str, str]
"""A mistake: the path of the key, what is wrong, what to do."""


def _faults(mapping: TableMapping) -> Iterator[Fault]:
    """What no single key shows."""
    if mapping.is_wide and not mapping.metrics and not mapping.requests:
        yield ("metrics",), "no metrics are declared", "name the columns of the figures"
    for name in RunColumns.model_fields if mapping.columns is not None else ():
        if getattr(mapping.columns, name) and getattr(mapping.same, name):
            what = f"same.{name} says what columns.{name} says for each row"
            yield ("same", name), what, "keep one"
    yield from _faults_of_requests(mapping)
    for name, metric in mapping.metrics.items():
        path = ("metrics", name)
        if mapping.is_wide and metric.column is None:
            yield path, f"metrics.{name} has no column", "add column:"
        if name in METRICS:
            yield from _faults_of_known(name, metric)
        else:
            yield from _faults_of_own(name, metric)


def _faults_of_requests(mapping: TableMapping) -> Iterator[Fault]:
    for name, times in mapping.requests.items():
        path = ("requests", name)
        if name not in DISTRIBUTIONS:
            what = f"requests.{name} is no time of a request"
            yield path, what, f"write one of {', '.join(DISTRIBUTIONS)}"
        if times.column is None:
            yield path, f"requests.{name} has no column", "add column:"
        converts = times.unit is None or factor(times.unit, "ms") is not None
        if times.scale is None and not converts:
            what = f"{times.unit} cannot be converted to ms"
            yield (*path, "unit"), what, "give scale: in place of unit:"


def _faults_of_known(name: str, metric: MetricColumn) -> Iterator[Fault]:
    path = ("metrics", name)
    for word in ("label", "direction", "definition"):
        if getattr(metric, word) is not None:
            what = f"sparkpub knows {name}, and its {word} is fixed"
            yield (*path, word), what, "leave it out, or give the metric another name"
    unit = METRICS[name].unit
    converts = metric.unit is None or factor(metric.unit, unit) is not None
    if metric.scale is None and not converts:
        what = f"{name} is in {unit}, and {metric.unit} cannot be converted to it"
        yield (*path, "unit"), what, "give scale: in place of unit:"


def _faults_of_own(name: str, metric: MetricColumn) -> Iterator[Fault]:
    path = ("metrics", name)
    words = ("unit", "label", "direction", "definition")
    missing = [word for word in words if getattr(metric, word) is None]
    if missing:
        near = difflib.get_close_matches(name, METRICS, n=1, cutoff=0.8)
        remedy = f"add {', '.join(missing)}"
        if near:
            remedy = f"did you mean {near[0]}? Otherwise {remedy}"
        yield path, f"sparkpub does not know the metric {name}", remedy
    named = unit_of(name)
    if metric.unit is not None and named and named != metric.unit:
        what = f"the name {name} ends as if in {named}, and its unit is {metric.unit}"
        yield (*path, "unit"), what, "rename the metric or correct the unit"


EXPORTED = TableMapping(
    columns=TableColumns(
        model="model",
        environment="environment",
        workload="workload",
        iteration="iteration",
        started="started",
        status="status",
        quarantined="quarantined",
        repeat_of="repeat_of",
    ),
    long=Long(metric="metric", value="value", unit="unit", reason="reason", run="run"),
)
"""What the columns of `sparkpub export` mean."""


@dataclass(frozen=True)
class MappingFile:
    """A mapping with its columns, and the file that declares it."""

    declared: TableMapping
    columns: TableColumns
    long: Long | None
    name: str
    content: bytes = b""
    lines: documents.Lines | None = None

    def needed(self) -> dict[str, tuple[str, ...]]:
        """Every column that a table must have, and the key that names it."""
        found: dict[str, tuple[str, ...]] = {}
        for field, column in self.columns.model_dump(exclude_none=True).items():
            found[column] = ("columns", field)
        if self.long is not None:
            for field, column in self.long.model_dump(exclude_none=True).items():
                found[column] = ("long", field)
        for option, column in self.declared.options.items():
            found[column] = ("options", option)
        for column in self.declared.only:
            found[column] = ("only", column)
        for key in ("metrics", "requests"):
            for name, metric in getattr(self.declared, key).items():
                for field in ("column", "deviation", "repetitions"):
                    column = getattr(metric, field)
                    if self.long is None and column is not None:
                        found[column] = (key, name, field)
        return found

    def where(self, path: tuple[str, ...]) -> str:
        """`file:line` of a key; the mapping's name where it is no file."""
        return self.name if self.lines is None else self.lines.where(path)


@cache
def of_tools() -> tuple[MappingFile, ...]:
    """The mappings that come with the package."""
    folder = resources.files("sparkpub.collect.importers") / "mappings"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return tuple(_mapped(file.read_text(), file.name) for file in files)


def read_mapping(path: Path | None) -> MappingFile:
    """The mapping in a YAML file; without one, that of an exported table. Raises ImportFormatError with file, line
    and every mistake."""
    if path is None:
        return _with_columns(EXPORTED, "the columns of sparkpub export")
    return _mapped(documents.text_of(path, ImportFormatError), str(path))


def _mapped(text: str, name: str) -> MappingFile:
    document, lines = documents.parse(text, name, ImportFormatError)
    if not isinstance(document, Mapping):
        remedy = "begin with columns: and metrics:"
        raise ImportFormatError("no mapping", where=name, remedy=remedy)
    documents.refuse(lines.duplicates, ImportFormatError)
    try:
        declared = TableMapping.model_validate_json(json.dumps(document, default=str))
    except ValidationError as error:
        first, *others = lines.described(error, (), TableMapping, "mapping")
        raise ImportFormatError(first, others=others) from None
    faults = [lines.problem(*fault) for fault in _faults(declared)]
    documents.refuse(faults, ImportFormatError)
    return _with_columns(declared, name, text.encode(), lines)


def _with_columns(
    declared: TableMapping,
    name: str,
    content: bytes = b"",
    lines: documents.Lines | None = None,
) -> MappingFile:
    """A mapping that names no columns is for a table that `sparkpub export` wrote."""
    columns, long = declared.columns, declared.long
    if columns is None:
        assert EXPORTED.columns is not None
        exported: dict[str, Any] = EXPORTED.columns.model_dump(exclude_none=True)
        for told in declared.same.model_dump(exclude_none=True):
            exported.pop(told, None)
        columns, long = TableColumns.model_validate(exported), long or EXPORTED.long
    return MappingFile(declared, columns, long, name, content, lines)
