"""Reports of clients whose figures the workloads read: which of their fields say the load, as YAML.

What a client was told becomes options in the vocabulary of the matrix, and the name of the workload, in the order of
the terms: `{at: max_concurrency, as: count, option: concurrency, key: c}` makes `concurrency: 8` and `c8`.
"""

import fnmatch
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from sparkpub.collect.importers.base import local_moment, unix_moment
from sparkpub.collect.importers.files import ResultFile
from sparkpub.collect.importers.reports import Report, Tool, key_of
from sparkpub.collect.importers.sidecars import Sidecars
from sparkpub.plan.workloads import WORKLOADS, reading
from sparkpub.record import documents
from sparkpub.record.errors import ImportFormatError
from sparkpub.record.record import Declared, Key, Moment

Where = Annotated[str, StringConstraints(min_length=1, max_length=200)]
"""A dotted path; `phases[kind=profiling].rate` chooses an item of a list."""


class Term(Declared):
    """One thing that a client was told."""

    at: Where
    kind: Literal["word", "count", "number", "path", "mark"] = Field("word", alias="as")
    """`count` is a whole number above zero; `path` is the path of an address, without `/v1/`; `mark` is a thing that is
    so, unless the value is one of `unless`."""
    option: str | None = None
    """The option that it is; a mark makes it false."""
    key: str | None = None
    """The letters before it in the name of the workload."""
    says: str | int | None = None
    """What it is where it counts, in place of what lies there."""
    unless: tuple[str | bool | int | float, ...] = ()
    """Values that go without saying."""
    only: dict[Where, str] = Field(default_factory=dict)
    """It counts where what lies there is like this, with `*` for any letters."""
    never: dict[Where, str] = Field(default_factory=dict)
    """It does not count where what lies there is like this."""

    def value(self, document: Any) -> Any:
        """What a report says of it; None where that goes without saying or is not said."""
        fits = all(_is_like(document, *item) for item in self.only.items())
        if not fits or any(_is_like(document, *item) for item in self.never.items()):
            return None
        found = _at(document, self.at)
        if found in self.unless:
            return None
        if self.says is not None:
            return self.says
        match self.kind:
            case "mark":
                return ""
            case "count":
                return reading.positive_int(found)
            case "number":
                return reading.number(found)
            case "path":
                return None if found is None else str(found).removeprefix("/v1/")
        return reading.word(found)


class ReportMapping(Declared):
    """Where the reports of a client say what it was told, when, and of which model."""

    tool: Key
    reads: str
    """The workload whose reader finds the figures."""
    files: str = "*"
    """Names of the files that are reports, with `*` for any letters; nothing has to be said of others."""
    outside: tuple[str, ...] = ()
    """Folders in which no file is a report."""
    runs: Where | None = None
    """The list of the runs, for a report of several."""
    around: dict[str, Where] = Field(default_factory=dict)
    """What each run takes from around the list: its new name, and its path."""
    when: tuple[str, ...] = ()
    """What a report has: paths, `path=value`, alternatives with `|`."""
    model: Where | None = None
    started: Where | None = None
    """A local time, or seconds since 1970."""
    warnings: Where | None = None
    """A list of objects with a `message`."""
    asked: dict[str, str] = Field(default_factory=dict)
    begins: str | None = None
    """How the names of the workloads begin."""
    load: tuple[Term, ...] = ()
    needs: tuple[Where, ...] = ()
    """What has to be said for the load to be known."""


def tools() -> Iterator[Tool]:
    """The clients whose mappings come with the package."""
    folder = resources.files("sparkpub.collect.importers") / "reports_of"
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        document, _ = documents.parse(file.read_text(), file.name, ImportFormatError)
        mapping = ReportMapping.model_validate(document)
        yield Tool(
            mapping.tool,
            partial(_report, mapping),
            partial(_may_be_report, mapping),
            None if mapping.runs is None else partial(_runs, mapping),
        )


def _may_be_report(mapping: ReportMapping, file: ResultFile) -> bool:
    folders = Path(file.source).parts[:-1]
    is_inside = not set(mapping.outside) & set(folders)
    return is_inside and fnmatch.fnmatch(file.name, mapping.files)


def _runs(mapping: ReportMapping, document: dict[str, Any]) -> list[dict[str, Any]]:
    """The runs of a report, each with what stands around all."""
    around = {name: _at(document, path) for name, path in mapping.around.items()}
    found = reading.objects(_at(document, mapping.runs or ""))
    return [{**run, **around} for run in found]


def _report(
    mapping: ReportMapping,
    document: dict[str, Any],
    content: bytes,
    beside: Sidecars,
) -> Report | None:
    if not all(_has(document, condition) for condition in mapping.when):
        return None
    answer = WORKLOADS[mapping.reads].parse(beside.log, {"report": content}, None)
    parts: dict[str, Any] = {} if mapping.begins is None else {mapping.begins: ""}
    asked: dict[str, Any] = {"type": mapping.reads, **mapping.asked}
    for term in mapping.load:
        value = term.value(document)
        if term.key is not None:
            is_word = isinstance(value, str)
            parts[term.key] = value.replace("/", "-") if is_word else value
        if term.option is not None and value is not None:
            asked[term.option] = False if term.kind == "mark" else value
    is_known = all(_at(document, path) is not None for path in mapping.needs)
    return Report(
        answer,
        model=None
        if mapping.model is None
        else reading.word(_at(document, mapping.model)),
        workload=key_of(parts) if is_known else None,
        asked=asked,
        started=_started(mapping, document),
        notes=tuple(_warnings(mapping, document)),
        failure=None if answer.observed.requests else "no request succeeded",
    )


def _started(mapping: ReportMapping, document: Mapping[str, Any]) -> Moment | None:
    said = None if mapping.started is None else _at(document, mapping.started)
    if isinstance(said, int | float):
        return unix_moment(said)
    return local_moment(said)


def _warnings(mapping: ReportMapping, document: Mapping[str, Any]) -> Iterator[str]:
    """What the tool itself warns of."""
    found = None if mapping.warnings is None else _at(document, mapping.warnings)
    for warning in reading.objects(found):
        text = reading.word(warning.get("message"))
        if text is not None:
            yield f"{mapping.tool} warns: {text}"


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
    """What lies at a path; None where nothing does."""
    for part in path.split("."):
        name, _, condition = part.rstrip("]").partition("[")
        document = reading.at(document, name)
        if condition:
            key, _, wanted = condition.partition("=")
            items = reading.objects(document)
            chosen = (item for item in items if str(item.get(key)) == wanted)
            document = next(chosen, None)
    return document
