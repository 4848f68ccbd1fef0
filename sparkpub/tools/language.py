"""The language that says what results mean: of anybody's table or JSON, and of the tools that sparkpub knows.

`run` says where the names and facts of a run stand, `load` what was asked for, `metrics` and `requests` the figures. A
row of a table is a run, or a document is, or each item of a list within it (`rows`).
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema

from sparkpub.record import documents
from sparkpub.record.errors import ImportFormatError
from sparkpub.record.metrics import DISTRIBUTIONS, METRICS, factor
from sparkpub.record.record import Declared, Key, MetricName, Title, Unit
from sparkpub.tools.where import Where, at, looked_at

TABLE = "table"
"""The tool of a mapping that names none: a table of anybody's, whose figures count as published."""
Option = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]


class SetupPlaces(Declared):
    """What served the model, and on what."""

    model_id: Where | None = None
    """Its name on Hugging Face, where `model` is a short one."""
    served_name: Where | None = None
    """What the results call the model."""
    variant: Where | None = None
    """What people call this build: `bf16-spec`."""
    weights: Where | None = None
    """The format of the weights."""
    engine: Where | None = None
    engine_version: Where | None = None
    backend: Where | None = None
    """What the engine computes with: `ROCm`, `Vulkan`."""
    image: Where | None = None
    machine: Where | None = None
    """What it ran on: a machine or GPU of the catalogue, or any name. `2x DGX Spark` says how many, too."""
    nodes: Where | None = None
    """How many machines served the model together."""
    driver: Where | None = None
    vbios: Where | None = None
    options: Where | None = None
    """The server's options, as a mapping."""
    arguments: Where | None = None
    """The server's command line, as text or a list."""
    variables: Where | None = None
    """Its environment variables, as a mapping, or as `NAME=value`."""


class Same(SetupPlaces):
    """What can hold for every run."""

    model: Where | None = None
    """Key or name of the model."""
    model_path: Where | None = None
    """Its file or folder, as the tool was told."""
    environment: Where | None = None
    """Where it ran: native, container, ..."""
    workload: Where | None = None
    """What was asked for. Without it the workload is named after the load."""
    started: Where | None = None
    """When the run began, as 2026-11-21T18:30:00Z; without a zone it is a local time."""


class RunPlaces(Same):
    """Where the names and facts of a run stand."""

    ended: Where | None = None
    """When it was over, where nothing says when it began; `seconds` lie between."""
    seconds: Where | None = None
    iteration: Where | None = None
    """Number of the run within its cell, from 1; without it the order of the rows."""
    exit_code: Where | None = None
    """Of the tool; any but 0 is a failed run."""
    succeeded: Where | None = None
    """What is there, and not 0, where any request succeeded."""
    input_tokens_mean: Where | None = None
    output_tokens_mean: Where | None = None


class ValuePlace(Declared):
    """Where a value stands; `{at: x}` may be written as `x`."""

    at: Where | None = None
    """Its column, or its dotted path. A cell may hold a list, or a mean and its deviation, as `32.3 ± 0.5`."""

    @model_validator(mode="before")
    @classmethod
    def _written_short(cls, said: Any) -> Any:
        return {"at": said} if isinstance(said, str) else said

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {
            "anyOf": [{"type": "string"}, handler.resolve_ref_schema(handler(core))]
        }


class FigurePlace(ValuePlace):
    """Where a figure stands, and in which unit."""

    unit: Unit | None = None
    """Of a known metric: the unit of the figures, which are converted. Of a metric of one's own: its unit."""
    scale: Annotated[float, Field(gt=0)] | None = None
    """What the figures are multiplied with, in place of a conversion."""
    unit_at: Where | None = None
    """Where the unit stands; figures in one that cannot be converted are left out."""
    per: Where | None = None
    """What the figure is divided by: tokens by requests, or by seconds; of lists the sums."""
    otherwise: float | None = None
    """What it is where nothing stands there."""
    when: tuple[str, ...] = ()
    """It counts where all of this holds."""

    def scale_to(self, wanted: str | None, document: Any) -> float | None:
        """What a figure is multiplied with to be in a unit, None for its own; None for a unit that cannot be
        converted, or is not said."""
        if self.scale is not None or wanted is None:
            return self.scale or 1.0
        unit = self.unit or self._size_of_name() or wanted
        if self.unit_at is not None:
            said = str(at(document, self.unit_at))
            unit = _SPELLED.get(said, said)
        return factor(unit, wanted)

    def _size_of_name(self) -> str | None:
        """The unit of a size that its name ends with: `MiB` of `vram_peak_mib`."""
        return _SIZES.get(re.split(r"[^A-Za-z]", str(self.at))[-1].lower())


_SIZES = {unit.lower(): unit for unit in ("KiB", "MiB", "GiB", "MB", "GB")}
_SPELLED = {"sec": "s"}
"""Units as tools spell them."""


class TimesPlace(FigurePlace):
    """Times of requests: a list of each one's, or the tool's own statistics."""

    each: Where | None = None
    """Where the requests are; `at` is then within each."""
    having: tuple[str, ...] = ()
    """What those of them have that count, as in `when`."""
    statistics: dict[str, str] = Field(default_factory=dict)
    """Our name of a statistic, and what stands for it in the place of `{}` in `at`."""

    def statistics_of(self, stem: str) -> dict[str, str]:
        """Where the tool's own statistics stand, by the names of the metrics that they are."""
        return {
            name: str(self.at).replace("{}", theirs)
            for ours, theirs in self.statistics.items()
            if (name := f"{stem}_{ours}_ms") in METRICS
        }


class Agreement(Declared):
    """Figures of one report that must be equal, but for what adding and printing change."""

    sums: dict[Where, tuple[Where, ...]] = Field(default_factory=dict)
    """A sum, and its parts; a part may be a list."""
    means: dict[Where, Where | tuple[Where, Where]] = Field(default_factory=dict)
    """A mean, and the list of its values, or the sum and the count behind it."""
    values: dict[str, TimesPlace] = Field(default_factory=dict)
    """Times of `requests` with statistics, and the times of each request; or with the paths of statistics that are in
    the same unit."""


class MetricPlace(FigurePlace):
    """A metric."""

    values: Where | None = None
    """Its repetitions, where `at` is their mean as the tool gives it."""
    deviation: Where | None = None
    """The standard deviation, in the unit of the figures; it counts where the repetitions are not there."""
    repetitions: Where | tuple[Where, ...] | None = None
    """Over how many repetitions the figure is a mean; of several the product."""
    label: Title | None = None
    direction: Literal["higher", "lower", "neither"] | None = None
    """Which way is better."""
    definition: Title | None = None
    """What it is, in one sentence."""


class Term(ValuePlace):
    """One thing that was asked for: an option in the matrix's vocabulary, a part of the workload's name, or both."""

    kind: Literal[
        "value", "amount", "count", "number", "path", "file", "mark", "words"
    ] = Field("value", alias="as")
    """`value` is a number or a word as it stands; `amount` may have letters around its number; `count` is a whole
    number above zero, or how many a list has; `path` is that of an address, without `/v1/`; `file` is a file's name
    without its folders; `mark` is a thing that is so, unless `unless` says otherwise; `words` are a list of them, for
    notes."""
    option: Option | None = None
    """The option that it is; a mark makes it false."""
    key: str | None = None
    """The letters before it in the name of the workload."""
    says: str | int | None = None
    """What it is where it counts, in place of what stands there."""
    unless: tuple[str | bool | int | float | None, ...] = ()
    """Values that go without saying, with `*` for any letters."""
    join: tuple[Where, ...] = ()
    """What follows it, after hyphens."""
    when: tuple[str, ...] = ()
    """It counts where all of this holds."""
    needed: bool = False
    """Whether the load is unknown without it."""
    note: str | None = None
    """What is to be said of a run where it counts; `{}` is its value."""


_AMOUNTS = (
    *("concurrency", "requests", "batch_size"),
    *("input_tokens", "output_tokens", "depth"),
)


def _terms(said: Any) -> Any:
    """`{concurrency: clients}` as terms."""
    if not isinstance(said, Mapping):
        return said
    wrong = [name for name, where in said.items() if not isinstance(where, str)]
    if wrong:
        raise ValueError(f"{wrong[0]} needs the name of a column, or its path")
    return [
        {
            "option": name,
            "key": name.replace("_", "-"),
            "at": where,
            "as": "amount" if name in _AMOUNTS else "value",
        }
        for name, where in said.items()
    ]


_TERMS = BeforeValidator(
    _terms, json_schema_input_type=dict[str, str] | tuple[Term, ...]
)
"""A load, which may be a mapping, too."""


def named_in(pattern: str, source: str) -> dict[str, str] | None:
    """What a path says by the names of a pattern that its end fits; None where it does not."""
    parts = re.sub(r"\\\{([a-z_]+)\\\}", r"(?P<\1>[^/]+?)", re.escape(pattern))
    named = re.search(f"(?:^|/){parts}$", source)
    return None if named is None else named.groupdict()


PathPattern = Annotated[str, Field(pattern=r"\{[a-z_]+\}")]
"""A path with names in it: `{model}/{weights}/c{clients}.json`."""


class ResultMapping(Declared):
    """What results mean."""

    tool: Key = TABLE
    """What writes such results, where it is a tool that others use, too."""
    reads: str | None = None
    """The workload that it is: its reader adds what logs beside a report say."""
    shape: (
        Literal[
            "benchmark-spark",
            "llama-bench",
            "llama-benchy",
            "printed",
            "table",
            "trtllm-bench",
        ]
        | None
    ) = None
    """How files become runs where a run is not a JSON object: `printed` reads the table that a client prints, too, and
    `table` CSV and Parquet."""
    files: str = "*"
    """Names or paths of the files that are results, with `*` for any letters; nothing has to be said of others."""
    others: tuple[str, ...] = ()
    """Files that are none, and folders in which none is."""
    lines: str | None = None
    """The name of a file beside the report with a JSON object of each request, which is kept with the run: `each` finds
    them as `lines`."""
    when: tuple[Where, ...] = ()
    """What results have: `path`, `path=word`, alternatives with `|`. Other rows and documents are passed over; without
    it, files without a model or a figure."""
    rows: Where | None = None
    """In JSON, where the runs are: `results.points` for a list within a mapping, `by_model.*` for the values of a
    mapping, whose names are `by_model.key`. What stands around them counts for each."""
    around: dict[str, Where] = Field(default_factory=dict)
    """What is kept with the row of a run, by its new name; without it the whole document is, with that row alone."""
    path: PathPattern | None = None
    """What the path of a file says, as `{model}/{weights}/c{clients}.json`: `path.model`, `path.weights`, …"""
    run: RunPlaces = RunPlaces()
    same: Same = Same()
    """What holds for every run."""
    load: Annotated[tuple[Term, ...], _TERMS] = ()
    """What was asked for, in the order of the workload's name: `{concurrency: clients}`, or terms."""
    sizes: tuple[Where, ...] = ()
    """Tokens of all requests, for results that do not say which lengths were asked for."""
    metrics: dict[MetricName, MetricPlace] = Field(default_factory=dict)
    requests: dict[MetricName, TimesPlace] = Field(default_factory=dict)
    """Lists of the requests' times, by what they are: `ttft`, `tpot`, `itl` or `request_latency`."""
    facts: dict[str, FigurePlace] = Field(default_factory=dict)
    """What the run showed besides, by the names of the record: `requests`, `input_tokens_mean`."""
    failed: tuple[Where, Where] | None = None
    """How many requests failed, or a list with something for each that did; and how many went well."""
    deviations: dict[str, FigurePlace] = Field(default_factory=dict)
    """Standard deviations over requests: of times, and of `output_tokens`."""
    agree: Agreement = Agreement()
    problems: tuple[Term, ...] = ()
    """What is wrong with a run where it counts, as a note."""
    divisor: Literal["n", "n-1"] | None = None
    """What the sum is divided by in the deviations."""

    @property
    def figures(self) -> Mapping[str, FigurePlace]:
        """Where figures stand, by what they are."""
        return {**self.metrics, **self.requests}

    def named_by(self, source: str) -> dict[str, str] | None:
        """What the path of a file says by name; None for a file that the mapping does not speak of."""
        return {} if self.path is None else named_in(self.path, source)

    def needed(self) -> dict[str, tuple[str, ...]]:
        """Every place that a table must have somewhere, and the key that names it."""
        found: dict[str, tuple[str, ...]] = {}
        run = self.run.model_dump(exclude_none=True)
        found |= {place: ("run", key) for key, place in run.items()}
        for term in self.load:
            if term.at is not None:
                found[term.at] = ("load", str(term.option))
        for condition in self.when:
            found[looked_at(condition)] = ("when",)
        for kind in ("metrics", "requests"):
            for name, figure in getattr(self, kind).items():
                if figure.at is not None:
                    found[figure.at] = (kind, name, "at")
        return found


Fault = tuple[tuple[str, ...], str, str]
"""A mistake: the path of the key, what is wrong, what to do."""


def _faults(mapping: ResultMapping) -> Iterator[Fault]:
    """What no single key shows."""
    if not (mapping.figures or mapping.reads):
        yield ("metrics",), "no metrics are declared", "name the columns of the figures"
    for name in Same.model_fields:
        if getattr(mapping.run, name) and getattr(mapping.same, name):
            what = f"same.{name} says what run.{name} says for each row"
            yield ("same", name), what, "keep one"
    for name in mapping.requests.keys() - DISTRIBUTIONS:
        what = f"requests.{name} is no time of a request"
        yield ("requests", name), what, f"write one of {', '.join(DISTRIBUTIONS)}"
    for part in ("metrics", "requests"):
        for name, figure in getattr(mapping, part).items():
            yield from _faults_of((part, name), figure)


def _faults_of(path: tuple[str, str], figure: FigurePlace) -> Iterator[Fault]:
    name = path[1]
    if figure.at is None:
        yield path, f"{'.'.join(path)} has no column", "add at:"
    if isinstance(figure, MetricPlace) and name not in METRICS:
        words = ("unit", "label", "direction", "definition")
        missing = [word for word in words if getattr(figure, word) is None]
        if missing:
            near = documents.suggestion(name, METRICS)
            remedy = f"{near} For one of your own add {', '.join(missing)}"
            yield path, f"sparkpub does not know the metric {name}", remedy
        return
    wanted = METRICS[name].unit if name in METRICS else "ms"
    if figure.unit and figure.scale is None and factor(figure.unit, wanted) is None:
        what = f"{name} is in {wanted}, and {figure.unit} cannot be converted to it"
        yield (*path, "unit"), what, "give scale: in place of unit:"


@dataclass(frozen=True)
class MappingFile:
    """A mapping of somebody's, and the file that declares it."""

    declared: ResultMapping
    content: bytes
    lines: documents.Lines


@cache
def of_tools() -> Mapping[str, tuple[ResultMapping, ...]]:
    """The mappings that come with the package; a tool with several forms of results has one of each."""
    folder = resources.files("sparkpub.tools")
    found: dict[str, tuple[ResultMapping, ...]] = {}
    files = [file for file in folder.iterdir() if file.name.endswith(".yaml")]
    for file in sorted(files, key=lambda file: file.name):
        mapping = _mapped(file.read_text(), file.name).declared
        found[mapping.tool] = (*found.get(mapping.tool, ()), mapping)
    return found


def read_mappings(path: Path) -> list[MappingFile]:
    """The mappings in a YAML file: one, or one in each of its documents, for files of different forms. Raises
    ImportFormatError with file, line and every mistake."""
    text = documents.text_of(path, ImportFormatError)
    found = []
    lines_before = 0
    for part in re.split(r"(?m)^---\s*?$\n?", text):
        if part.strip():
            found.append(_mapped("\n" * lines_before + part, str(path)))
        lines_before += part.count("\n") + 1
    return found or [_mapped(text, str(path))]


def _mapped(text: str, name: str) -> MappingFile:
    document, lines = documents.parse(text, name, ImportFormatError)
    if not isinstance(document, Mapping):
        remedy = "begin with run: and metrics:"
        raise ImportFormatError("no mapping", where=name, remedy=remedy)
    documents.refuse(lines.duplicates, ImportFormatError)
    try:
        said = json.dumps(document, default=str)
        declared = ResultMapping.model_validate_json(said)
    except ValidationError as error:
        problems = lines.described(error, (), ResultMapping, "mapping")
        documents.refuse(problems, ImportFormatError)
        raise
    faults = [lines.problem(*fault) for fault in _faults(declared)]
    documents.refuse(faults, ImportFormatError)
    return MappingFile(declared, text.encode(), lines)
