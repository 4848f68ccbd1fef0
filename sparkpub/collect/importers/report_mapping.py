"""Reports of clients whose figures the workloads read: which of their fields say the load, as YAML.

What a client was told becomes options in the vocabulary of the matrix, and the name of the workload, in the order of
the terms: `{at: max_concurrency, as: count, option: concurrency, key: c}` makes `concurrency: 8` and `c8`.
"""

import fnmatch
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from sparkpub.collect.importers import llama_benchy, printed
from sparkpub.collect.importers.base import local_moment, unix_moment, utc_moment
from sparkpub.collect.importers.files import ResultFile
from sparkpub.collect.importers.reports import Report, Tool, key_of
from sparkpub.collect.importers.sidecars import Sidecars
from sparkpub.plan.workloads import WORKLOADS, reading
from sparkpub.plan.workloads.base import Answer
from sparkpub.record import documents
from sparkpub.record.errors import ImportFormatError
from sparkpub.record.record import (
    Declared,
    Key,
    MetricName,
    MetricValue,
    Moment,
    Spread,
)

_FORMS = {"printed": printed.FORMS, "llama-benchy": llama_benchy.FORMS}
Where = Annotated[str, StringConstraints(min_length=1, max_length=200)]
"""A dotted path; `phases[kind=profiling].rate` chooses an item of a list, and `a|b` is the first that is there."""
NO_SUCCESS = "no request succeeded"


class Term(Declared):
    """One thing that a client was told."""

    at: Where
    kind: Literal["word", "count", "length", "number", "path", "mark", "there"] = Field(
        "word", alias="as"
    )
    """`count` is a whole number above zero; `length` is how many a list has; `path` is the path of an address, without
    `/v1/`; `mark` is a thing that is so, unless the value is one of `unless`; `there` is one that the report has."""
    option: str | None = None
    """The option that it is; a mark makes it false."""
    key: str | None = None
    """The letters before it in the name of the workload."""
    says: str | int | None = None
    """What it is where it counts, in place of what lies there."""
    unless: tuple[str | bool | int | float, ...] = ()
    """Values that go without saying."""
    join: tuple[Where, ...] = ()
    """What follows it, after hyphens."""
    unlimited: bool = False
    """Whether null and `inf` say that the client was to do without it."""
    only: dict[Where, str] = Field(default_factory=dict)
    """It counts where what lies there is like this, with `*` for any letters."""
    never: dict[Where, str] = Field(default_factory=dict)
    """It does not count where what lies there is like this."""
    note: str | None = None
    """What is to be said of a run where it counts."""

    def value(self, document: Any) -> Any:
        """What a report says of it; None where that goes without saying or is not said."""
        fits = all(_is_like(document, *item) for item in self.only.items())
        if not fits or any(_is_like(document, *item) for item in self.never.items()):
            return None
        found = _at(document, self.at)
        value = self._read(found)
        if found in self.unless or value in self.unless:
            return None
        if value is not None and self.says is not None:
            return self.says
        if value is not None and self.join:
            more = [_at(document, path) for path in self.join]
            return "-".join(map(str, (value, *more)))
        return value

    def _read(self, found: Any) -> Any:
        """What lies there, as it counts."""
        match self.kind:
            case "mark":
                return ""
            case "there":
                return None if found is None else ""
            case "count":
                return reading.positive_int(found)
            case "length":
                return len(found) if isinstance(found, list) else None
            case "number":
                return reading.number(found)
            case "path":
                return None if found is None else str(found).removeprefix("/v1/")
        return reading.word(found)

    def is_unlimited(self, document: Any) -> bool:
        """Whether the client was told to do without it, and says so."""
        around, _, name = self.at.rpartition(".")
        fields = _at(document, around) if around else document
        is_said = isinstance(fields, Mapping) and name in fields
        return self.unlimited and is_said and fields[name] in (None, "inf")


class MetricPlace(Declared):
    """Where a metric lies, for reports whose figures no workload reads."""

    at: Where
    values: Where | None = None
    """Its repetitions, of which it is the mean. A tool that leaves out what failed has fewer of one metric."""
    requests: Where | None = None
    """The milliseconds of all requests, for the mean of a time of a request."""
    deviation: Where | None = None
    """Its standard deviation, which counts where the repetitions or requests are not there."""
    over: tuple[Where, ...] = ()
    """Over how many the deviation is: the product of these."""


class ReportMapping(Declared):
    """Where the reports of a client say what it was told, when, and of which model."""

    tool: Key
    reads: str
    """The workload that it is, whose reader finds the figures where `metrics` names none."""
    metrics: dict[MetricName, MetricPlace] = Field(default_factory=dict)
    """Where the figures lie; no run without the first one is complete."""
    divisor: Literal["n", "n-1"] | None = None
    """What the sum is divided by in its deviations."""
    observed: dict[str, Where] = Field(default_factory=dict)
    """Where the facts of a run lie, besides its figures."""
    files: str = "*"
    """Names of the files that are reports, with `*` for any letters; nothing has to be said of others."""
    outside: tuple[str, ...] = ()
    """Folders in which no file is a report, and files that are none."""
    runs: Where | None = None
    """The list of the runs, for a report of several."""
    around: dict[str, Where] = Field(default_factory=dict)
    """What each run takes from around the list: its new name, and its path."""
    when: tuple[str, ...] = ()
    """What a report has: paths, `path=value`, alternatives with `|`."""
    model: Where | None = None
    started: Where | None = None
    """A local time, or seconds since 1970."""
    took: Where | None = None
    """The seconds that lie between the start and the time that the report says, where that is its end."""
    succeeded: Where | None = None
    """What is there, and not 0, where any request succeeded; without it, the number of requests."""
    sizes: tuple[Where, ...] = ()
    """Tokens of all requests, for reports that do not say which lengths were asked for."""
    divided_by: Where | None = None
    """The number of requests that the sizes are of."""
    command: bool = False
    """Whether the client's options may stand in a log or text beside the report: `told.random_input_len`. What notes
    beside it say is `noted.input_tokens`."""
    forms: Literal["printed", "llama-benchy"] | None = None
    """What is read besides JSON: the table that a client prints, or the tables of llama-benchy."""
    warnings: Where | None = None
    """A list of objects with a `message`."""
    counts: dict[Where, str] = Field(default_factory=dict)
    """Numbers that are worth a note where they are not 0: `3 requests were cut off at the end`."""
    asked: dict[str, str] = Field(default_factory=dict)
    begins: str | None = None
    """How the names of the workloads begin."""
    load: tuple[Term, ...] = ()
    needs: tuple[Where, ...] = ()
    """What has to be said for the load to be known."""

    @property
    def is_of_some_files(self) -> bool:
        """Whether the names of files say which are reports."""
        return self.files != "*" or bool(self.outside)


def tools() -> Iterator[Tool]:
    """The clients whose mappings come with the package; one with several forms of reports has a mapping of each."""
    folder = resources.files("sparkpub.collect.importers") / "reports_of"
    forms: dict[str, list[ReportMapping]] = {}
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        document, _ = documents.parse(file.read_text(), file.name, ImportFormatError)
        mapping = ReportMapping.model_validate(document)
        forms.setdefault(mapping.tool, []).append(mapping)
    for tool, mappings in forms.items():
        yield _tool(tool, mappings)


def _tool(name: str, mappings: Sequence[ReportMapping]) -> Tool:
    first = mappings[0]
    forms = next((_FORMS[item.forms] for item in mappings if item.forms), None)
    tool = Tool(
        name,
        partial(_report_of, mappings),
        partial(_may_be_report, first) if first.is_of_some_files else None,
        None if first.runs is None else partial(_runs, first),
    )
    if forms is None:
        return tool
    return replace(
        tool,
        suffixes=forms.suffixes,
        objects=forms.objects,
        twin=forms.twin,
        runs=forms.runs or tool.runs,
    )


def _may_be_report(mapping: ReportMapping, file: ResultFile) -> bool:
    names = {*Path(file.source).parts[:-1], file.name}
    is_inside = names.isdisjoint(mapping.outside)
    return is_inside and fnmatch.fnmatch(file.name, mapping.files)


def _runs(mapping: ReportMapping, document: dict[str, Any]) -> list[dict[str, Any]]:
    """The runs of a report, each with what stands around all."""
    around = {name: _at(document, path) for name, path in mapping.around.items()}
    found = reading.objects(_at(document, mapping.runs or ""))
    return [{**run, **around} for run in found]


def _report_of(
    mappings: Sequence[ReportMapping],
    document: dict[str, Any],
    content: bytes,
    beside: Sidecars,
) -> Report | None:
    """As the first mapping reads it that the report is of."""
    for mapping in mappings:
        if all(_has(document, condition) for condition in mapping.when):
            return _report(mapping, document, content, beside)
    return None


def _report(
    mapping: ReportMapping,
    document: dict[str, Any],
    content: bytes,
    beside: Sidecars,
) -> Report:
    if mapping.forms is not None:
        document = _FORMS[mapping.forms].beside(beside) | document
    if mapping.command:
        document = {printed.TOLD: _told(beside), **document, "noted": beside.notes}
    answer = _answer(mapping, document, content, beside)
    parts: dict[str, Any] = {} if mapping.begins is None else {mapping.begins: ""}
    asked: dict[str, Any] = {"type": mapping.reads, **mapping.asked}
    fits: dict[str, tuple[object, ...]] = {}
    notes = list(_warnings(mapping, document))
    for term in mapping.load:
        value = term.value(document)
        if term.note is not None and value is not None:
            notes.append(term.note)
        if term.key is not None and parts.get(term.key) is None:
            is_word = isinstance(value, str)
            parts[term.key] = value.replace("/", "-") if is_word else value
        if term.option is not None and value is not None:
            asked.setdefault(term.option, False if term.kind == "mark" else value)
        if term.option is not None and term.is_unlimited(document):
            fits[term.option] = (None,)
    is_known = all(_at(document, path) is not None for path in mapping.needs)
    return Report(
        answer,
        model=None
        if mapping.model is None
        else reading.word(_at(document, mapping.model)),
        workload=key_of(parts) if is_known else None,
        partly=key_of(parts),
        asked=asked,
        started=_started(mapping, document),
        notes=tuple(notes),
        spreads=dict(_spreads(mapping, document, answer)),
        sizes=_sizes(mapping, document, asked),
        fits=fits,
        failure=None if _succeeded(mapping, document, answer) else NO_SUCCESS,
    )


def _answer(
    mapping: ReportMapping, document: dict[str, Any], content: bytes, beside: Sidecars
) -> Answer:
    """As the workload's reader finds it, or as the mapping says where the figures lie."""
    if not mapping.metrics:
        return WORKLOADS[mapping.reads].parse(beside.log, {"report": content}, None)
    paths = {name: figure.at for name, figure in mapping.metrics.items()}
    metrics: dict[str, MetricValue] = reading.metrics_at(document, paths, "report")
    samples: dict[str, tuple[float, ...]] = {}
    counts: set[int] = set()
    for name, figure in mapping.metrics.items():
        if figure.values is not None:
            values = reading.numbers(_at(document, figure.values))
            counts.add(len(values))
            if len(values) > 1:
                samples[name] = tuple(values)
        if figure.requests is not None:
            times = reading.numbers(_at(document, figure.requests))
            stem = name.removesuffix("_mean_ms")
            metrics |= reading.distribution(stem, times, "report")
    problems = []
    if len(counts) > 1:
        problems.append(
            f"a rate has {min(counts)} repetitions and the other {max(counts)}: the tool leaves out what failed"
        )
    facts = {name: _at(document, path) for name, path in mapping.observed.items()}
    return Answer(
        metrics,
        reading.observed(facts),
        complete=reading.known(metrics, next(iter(paths))),
        problems=tuple(problems),
        samples=samples,
    )


def _spreads(
    mapping: ReportMapping, document: dict[str, Any], answer: Answer
) -> Iterator[tuple[str, Spread]]:
    """The deviations of means whose repetitions or requests the report does not hold."""
    for name, figure in mapping.metrics.items():
        found = None if figure.deviation is None else _at(document, figure.deviation)
        deviation = reading.number(found)
        held = figure.values or figure.requests
        has_values = held is not None and bool(reading.numbers(_at(document, held)))
        if deviation is None or has_values or not reading.known(answer.metrics, name):
            continue
        counts = [reading.positive_int(_at(document, path)) for path in figure.over]
        known = [count for count in counts if count is not None]
        is_known = bool(counts) and len(known) == len(counts)
        yield (
            name,
            Spread(
                repetitions=math.prod(known) if is_known else None,
                deviation=deviation,
                divisor=mapping.divisor,
            ),
        )


def _told(beside: Sidecars) -> dict[str, str]:
    """The client's options: as it printed them, else as the text beside the report says."""
    return (
        printed.told_first(beside.log)
        or printed.told(reading.text(beside.told))
        or printed.told(reading.text(beside.log))
    )


def _succeeded(
    mapping: ReportMapping, document: Mapping[str, Any], answer: Answer
) -> bool:
    if mapping.succeeded is None:
        return bool(answer.observed.requests)
    found = _at(document, mapping.succeeded)
    return bool(reading.number(found)) or (isinstance(found, list) and bool(found))


def _sizes(
    mapping: ReportMapping, document: Mapping[str, Any], asked: Mapping[str, Any]
) -> tuple[float, ...]:
    """Mean tokens of a request, where nothing says what was asked for."""
    if mapping.divided_by is None or {"dataset", "input_tokens"} & set(asked):
        return ()
    requests = reading.number(_at(document, mapping.divided_by))
    if not requests:
        return ()
    totals = [reading.number(_at(document, path)) for path in mapping.sizes]
    return tuple((total or 0) / requests for total in totals)


def _started(mapping: ReportMapping, document: Mapping[str, Any]) -> Moment | None:
    said = None if mapping.started is None else _at(document, mapping.started)
    if isinstance(said, int | float):
        return unix_moment(said)
    ended = _moment(said)
    took = None if mapping.took is None else reading.number(_at(document, mapping.took))
    if ended is None or took is None:
        return ended
    try:
        began = datetime.fromisoformat(ended.value) - timedelta(seconds=round(took))
    except OverflowError:
        return ended
    return local_moment(began) or ended


def _moment(said: Any) -> Moment | None:
    """A time with its zone, where it has one; else a local time."""
    try:
        moment = datetime.fromisoformat(str(said))
    except ValueError:
        return local_moment(said)
    return local_moment(said) if moment.tzinfo is None else utc_moment(moment)


def _warnings(mapping: ReportMapping, document: Mapping[str, Any]) -> Iterator[str]:
    """What the tool itself warns of, and what it counts."""
    found = None if mapping.warnings is None else _at(document, mapping.warnings)
    for warning in reading.objects(found):
        text = reading.word(warning.get("message"))
        if text is not None:
            yield f"{mapping.tool} warns: {text}"
    for path, what in mapping.counts.items():
        number = reading.number(_at(document, path))
        if number:
            yield f"{number:g} {what}"


def _has(document: Any, condition: str) -> bool:
    """Whether one of the alternatives holds."""
    for alternative in condition.split("|"):
        path, equals, wanted = alternative.partition("=")
        found = _at(document, path)
        if found is not None and (not equals or str(found) == wanted):
            return True
    return False


def _is_like(document: Any, path: str, pattern: str) -> bool:
    return fnmatch.fnmatch(str(_at(document, path)), pattern)


def _at(document: Any, path: str) -> Any:
    """What lies at a path, or at the first of several with `|` between them; None where nothing does."""
    path, _, others = path.partition("|")
    found = _at_one(document, path)
    if found is None and others:
        return _at(document, others)
    return found


def _at_one(document: Any, path: str) -> Any:
    for part in path.split("."):
        name, _, condition = part.rstrip("]").partition("[")
        document = reading.at(document, name)
        if condition:
            key, _, wanted = condition.partition("=")
            items = reading.objects(document)
            chosen = (item for item in items if str(item.get(key)) == wanted)
            document = next(chosen, None)
    return document
