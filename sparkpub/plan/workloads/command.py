"""Any program: its argv, and where its metrics stand in what it prints or writes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from sparkpub.plan.address import base_of
from sparkpub.plan.workloads import clients
from sparkpub.plan.workloads.base import (
    Answer,
    ClientOptions,
    Command,
    RunCase,
    no_answer,
)
from sparkpub.record import patterns
from sparkpub.record.metrics import METRICS
from sparkpub.record.record import Declared, MetricName, MetricValue, Title, Unit
from sparkpub.tools import reading
from sparkpub.tools.language import TABLE, of_tools
from sparkpub.tools.where import at

FileRole = Literal["report", "requests", "iterations", "output"]
FileName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,100}$")
]

SPANS = {
    "aiperf": (r"Phase .*\(profiling\) started", r"Phase .*\(profiling\) complete")
}
"""What tools print when their warm-up is over, and when the measurement is."""


def _usable(pattern: str) -> str:
    patterns.compiled(pattern)
    return pattern


Pattern = Annotated[str, AfterValidator(_usable)]
"""A regular expression of RE2: like Python's, without look-around and back-references."""


class Extraction(Declared):
    """Where one metric stands: the first group of the last match of `regex` in the log, or `json`, a dotted path in the
    report.

    A metric that sparkpub does not know needs unit, label and direction, and may have a definition. `scale` converts
    what was read to the unit.
    """

    regex: Pattern | None = None
    json_path: str | None = Field(default=None, alias="json")
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    unit: Unit | None = None
    label: Title | None = None
    direction: Literal["higher", "lower", "neither"] | None = None
    definition: Title | None = None

    @property
    def place(self) -> Literal["log", "report"]:
        """Where to look."""
        return "log" if self.json_path is None else "report"

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.regex is None) == (self.json_path is None):
            raise ValueError("give either regex or json")
        if self.regex is not None:
            groups = patterns.compiled(self.regex).groups
            if groups != 1:
                raise ValueError(
                    f"the regular expression needs one group around the number, it has {groups}"
                )
        return self


class CommandOptions(ClientOptions):
    """Any program, and where its metrics stand; or any tool whose reports sparkpub knows, by the name in `reads`.

    Example: {type: command, argv: [python3, bench.py, --model, "{model_path}"], metrics: {output_throughput_tok_s:
    {regex: 'rate: ([0-9.]+) tok/s'}}}
    """

    type: Literal["command"] = "command"
    argv: Annotated[tuple[str, ...], Field(min_length=1)]
    """The program and its arguments, word by word; no shell is involved. `{workdir}`, `{python}`, `{model_path}`,
    `{model_id}`, `{seed}`, `{iteration}` and `{port}` are filled in; with `url` also `{url}`, and `{model}` with the
    model's name on that server."""
    reads: str | None = None
    """The tool whose report the program leaves in `outputs.report`, e.g. `aiperf`: its figures are read, and what load
    it was told to make. A tool that `sparkpub import` knows."""
    variables: dict[str, str] = Field(default_factory=dict)
    """Environment variables of the program."""
    outputs: dict[FileRole, FileName] = Field(default_factory=dict)
    """Files that the program writes into `{workdir}`, as role: name, kept as evidence. Roles are report, requests,
    iterations and output."""
    metrics: dict[MetricName, Extraction] = Field(default_factory=dict)
    """Metric to where it stands: `regex` with one group (the last match counts) in the log, or `json`, a dotted
    path, in the report. `scale` multiplies. A metric that sparkpub does not know needs `unit`, `label` and
    `direction`, and `definition` says in a sentence what it is. Regular expressions are those of RE2, without look-
    around and back-references."""
    measured_from: Pattern | None = None
    """Regular expression of the printed line with which the measurement begins: growing memory is a leak from there
    on. None: memory may grow as it likes."""

    @property
    def programs(self) -> Mapping[str, str]:
        """The program that a driver starts, where it is the tool that is read."""
        if self.url is None or self.argv[0] != self.reads:
            return {}
        return {self.reads: f"uv tool install {self.reads}"}

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.reads is None and not self.metrics:
            raise ValueError("give reads or metrics")
        tools = [tool for tool in of_tools() if tool != TABLE]
        if self.reads not in (None, *tools):
            raise ValueError(f"reads names one of {', '.join(tools)}")
        if self.reads is not None and "report" not in self.outputs:
            raise ValueError("reads needs outputs: {report: the file's name}")
        if self.url is not None and "output" in self.outputs:
            raise ValueError("with url the role output is for what the server says")
        for name, item in self.metrics.items():
            own = (item.unit, item.label, item.direction)
            what = ""
            if name not in METRICS and None in own:
                what = "a metric of one's own needs unit, label and direction"
            elif name in METRICS and (*own, item.definition) != (None,) * 4:
                what = (
                    "unit, label, direction and definition are fixed for a known metric"
                )
            elif item.place != "log" and item.place not in self.outputs:
                what = f"reads {item.place}, which outputs does not name"
            if what:
                raise ValueError(f"metrics.{name}: {what}")
        return self


def command(case: RunCase, options: CommandOptions) -> Command:
    """The argv with its placeholders filled in; where the server runs already, in a driver that asks it."""
    url = "" if options.url is None else base_of(options.url)
    begins, ends = SPANS.get(options.reads or "", (None, None))
    made = Command(
        tuple(case.filled(word.replace("{url}", url)) for word in options.argv),
        variables=options.variables,
        outputs={str(role): name for role, name in options.outputs.items()},
        measured_from=options.measured_from or begins,
        measured_until=ends,
    )
    return made if options.url is None else clients.driven(case, options, made)


def parse(
    log: bytes, files: Mapping[str, bytes], options: CommandOptions | None
) -> Answer:
    """What the tool's report says, and every metric declared; one that cannot be found makes the answer
    incomplete."""
    if options is None:
        return no_answer("without its matrix nothing says what the command printed")
    tools = () if options.reads is None else (options.reads,)
    said = clients.answer_of(tools, log, files)
    metrics = dict(said.metrics)
    problems: list[str] = []
    for name, item in options.metrics.items():
        value = _value(log, files, item)
        metrics[name] = _metric(name, item, value)
        if value is None:
            problems.append(f"{name} was not found in the {item.place}")
    if options.reads is None:
        said = replace(said, problems=(), complete=True)
    return replace(
        said,
        metrics=metrics,
        complete=said.complete and not problems,
        problems=(*said.problems, *problems),
    )


def _value(log: bytes, files: Mapping[str, bytes], item: Extraction) -> float | None:
    if item.json_path is not None:
        return reading.number(
            at(reading.json_value(files.get("report")), item.json_path)
        )
    assert item.regex is not None
    pattern = patterns.compiled(item.regex)
    found = reading.search(reading.lines(log), pattern)
    return reading.number(found)


def _metric(name: str, item: Extraction, value: float | None) -> MetricValue:
    missing = "not found in what the command printed or wrote"
    if name in METRICS:
        return reading.metric(name, value, item.place, scale=item.scale, reason=missing)
    own = item.model_dump(include={"unit", "label", "direction", "definition"})
    if value is None:
        return MetricValue(value=None, reason=missing, source=item.place, **own)
    return MetricValue(value=value * item.scale, source=item.place, **own)
