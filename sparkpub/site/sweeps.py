"""What a campaign varies: lines of cells that differ in one thing alone, the load, a length or the depth."""

import json
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparkpub.plan.requested import load_of, options_of, without_requests
from sparkpub.record.load import BATCH, IN_FLIGHT, Load
from sparkpub.record.record import Record
from sparkpub.review.dataset import CampaignData
from sparkpub.review.names import CampaignNames
from sparkpub.review.reviewed import Cell

OptionValues = Mapping[str, Any]
"""What a run's workload was asked for."""

SHOWS_A_SHAPE = 3
"""Points of a line from which on it has a shape; two only differ."""
AMOUNTS = frozenset(
    {
        "requests",
        "batches",
        "repetitions",
        "iterations",
        "runs",
        "warmup",
        "max_num_tokens",
        "max_seq_len",
        "kv_cache_tokens",
        "executable",
        "port",
        "start_seconds",
    }
)
"""Options that say how much is measured, and how much room there is: no part of what is measured."""


@dataclass(frozen=True)
class Axis:
    """Something that sweeps vary. `parts` are its names in a load, of which the first one that differs counts; with
    `summed` they go up together, and their sum counts. `options` are their names in workloads. `word` names it within
    a sentence, `place` a value of it.
    """

    name: str
    title: str
    word: str
    place: str
    parts: tuple[str, ...]
    options: tuple[str, ...]
    summed: bool = False
    from_zero: bool = False
    """Whether 0 is a value like others, and does not say that there is none."""


LOAD = Axis(
    "load",
    "Requests at once",
    "requests at once",
    "{} requests at once",
    ("in_flight", "batch"),
    (*IN_FLIGHT, *BATCH),
)
AXES = (
    LOAD,
    Axis(
        "rate",
        "Requests per second asked for",
        "request rate",
        "{} requests/s",
        ("request_rate",),
        ("request_rate",),
    ),
    Axis(
        "depth",
        "Tokens already in the KV cache",
        "depth",
        "depth {}",
        ("depth",),
        ("depth",),
        from_zero=True,
    ),
    Axis(
        "input",
        "Input tokens of a request",
        "input length",
        "{} input tokens",
        ("input_tokens",),
        ("input_tokens",),
    ),
    Axis(
        "output",
        "Output tokens of a request",
        "output length",
        "{} output tokens",
        ("output_tokens",),
        ("output_tokens",),
    ),
    Axis(
        "length",
        "Tokens of a request, input and output",
        "length",
        "{} tokens",
        ("input_tokens", "output_tokens"),
        ("input_tokens", "output_tokens"),
        summed=True,
    ),
)
SWITCHED = {"True": "on", "False": "off"}
"""A switch to its word in a sentence."""
RATIO = "ratio"
"""In place of parts that go up together: how they stand to each other."""
REST = ""
"""In place of an option: what is left of the name of an imported workload."""
_SHORT = {
    "input_tokens": "{:,} in",
    "output_tokens": "{:,} out",
    "depth": "{:,} in context",
}
"""Part of a load to how a reader says it with its value."""
_OF_THE_CLIENT = (REST, "mode", "backend")
"""Options that say how requests are sent, not what they ask for."""
WORDS = {"in_flight": "concurrency", "batch": "batch size"}
"""Part of a load to its word in a sentence, where an axis has several."""


@dataclass(frozen=True)
class Line:
    """Cells of one model in one environment that differ on an axis alone: (value, cell) by rising value.

    `part` is what of the load varies, `fixed` are the options that the cells have in common.
    """

    axis: Axis
    part: str
    model: str
    environment: str
    points: tuple[tuple[float, Cell], ...]
    fixed: tuple[tuple[str, str], ...] = ()

    @property
    def word(self) -> str:
        """What varies, within a sentence: `concurrency`."""
        return WORDS.get(self.part, self.axis.word)

    @property
    def title(self) -> str:
        """What varies, beside an axis: `Concurrency`."""
        word = WORDS.get(self.part, self.axis.title)
        return word[:1].upper() + word[1:]

    def place(self, value: float) -> str:
        """A value of what varies, within a sentence: `concurrency 32`, `640 tokens`."""
        if self.part in WORDS:
            return f"{self.word} {value:,g}"
        return self.axis.place.format(f"{value:,g}")

    @property
    def held(self) -> str:
        """What does not vary, for a reader: `512 in, 128 out`, then the other options but for those of the client."""
        said = [
            option
            for option in self.fixed
            if option[1] and option[0] not in _OF_THE_CLIENT
        ]
        said.sort(key=lambda option: option[0] not in _SHORT)
        return ", ".join(_in_words(*option) for option in said)


def lines(campaign: CampaignData) -> tuple[Line, ...]:
    """Every line of a campaign, axis by axis."""
    found: list[Line] = []
    of_cells = {record.cell: record for record in campaign.records}
    loads = {cell: load_of(record) for cell, record in of_cells.items()}
    options = {cell: _options(record) for cell, record in of_cells.items()}
    declared = campaign.matrix.workloads.keys() if campaign.matrix else frozenset()
    for axis in AXES:
        groups = _groups(axis, options, loads, declared)
        for (model, environment, rest), cells in groups.items():
            for part, points in _line(axis, {cell: loads[cell] for cell in cells}):
                found.append(Line(axis, part, model, environment, points, _fixed(rest)))
    return tuple(found)


def has_a_shape(found: Sequence[Line]) -> bool:
    """Whether one of the lines has points enough to show how something grows."""
    return any(len(line.points) >= SHOWS_A_SHAPE for line in found)


def names(found: Sequence[Line], called: CampaignNames) -> dict[Line, str]:
    """Line to what tells it from the others of its axis: model, environment and other options, where they differ."""
    several_models = len({line.model for line in found}) > 1
    builds = {(line.model, line.environment) for line in found}
    times = Counter(model for model, _ in builds)
    named = {}
    for line in found:
        model = called.short_models.get(line.model, line.model)
        parts = [model] if several_models else []
        if times[line.model] > 1:
            parts.append(called.environments.get(line.environment, ""))
        told = [*filter(None, parts), *_differing(line, found)]
        named[line] = ", ".join(told) or model
    return named


def _differing(line: Line, found: Sequence[Line]) -> Iterator[str]:
    """The options of a line that others of its model and environment have otherwise."""
    build = line.model, line.environment
    beside = [other for other in found if (other.model, other.environment) == build]
    for option in line.fixed:
        if any(option not in other.fixed for other in beside):
            yield _in_words(*option)


def _in_words(option: str, value: str) -> str:
    """An option for a reader: `512 in`, `CUDA graph on`."""
    if option in _SHORT and value.isdecimal():
        return _SHORT[option].format(int(value))
    words = SWITCHED.get(value, value)
    name = option.replace("_", " ").replace("cuda", "CUDA")
    return f"{name} {words}".strip()


def _options(record: Record) -> OptionValues:
    """The options that say what a run measured."""
    asked = options_of(record)
    return {name: value for name, value in asked.items() if name not in AMOUNTS}


def _groups(
    axis: Axis,
    options: Mapping[Cell, OptionValues],
    loads: Mapping[Cell, Load],
    declared: Container[str],
) -> dict[tuple[str, str, str], list[Cell]]:
    """(model, environment, everything else as JSON) to the cells that have these in common.

    What a matrix does not declare was imported, and only the workload's name may say what else it varied:
    `pp64-d16-t2`. What is left of that name, without the parts that the options explain, is part of everything else.
    """
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for cell, asked in options.items():
        model, environment, workload = cell
        rest = {
            name: value for name, value in asked.items() if name not in axis.options
        }
        if axis.summed:
            rest[RATIO] = _ratio(*(getattr(loads[cell], name) for name in axis.parts))
        if workload not in declared:
            rest[REST] = _rest_of_name(workload, asked)
        key = (model, environment, json.dumps(rest, sort_keys=True, default=str))
        groups.setdefault(key, []).append(cell)
    return groups


def _ratio(first: int | None, second: int | None) -> str:
    """How the summed parts stand to each other; the parts themselves where one is missing."""
    return f"{first / second:.3f}" if first and second else f"{first}:{second}"


def _rest_of_name(workload: str, asked: OptionValues) -> str:
    """The parts of a workload's name that say more than the options do, and more than the number of requests, which may
    grow along an axis: a part that ends in the value of an option says that option."""
    values = {
        f"{value:g}" if isinstance(value, float) else str(value)
        for value in asked.values()
    }
    letters = "abcdefghijklmnopqrstuvwxyz"
    parts = without_requests(workload).split("-")
    return "-".join(part for part in parts if part.lstrip(letters) not in values)


def _line(
    axis: Axis, loads: Mapping[Cell, Load]
) -> Iterator[tuple[str, tuple[tuple[float, Cell], ...]]]:
    """What varies and the points; nothing where fewer than two values are known or two cells share one.

    Of two that differ in the number of their requests alone the one with fewer is on the line: the other one measures
    the same load for longer, beside the sweep.
    """
    for part in axis.parts:
        by_value: dict[float, list[Cell]] = {}
        for cell, load in loads.items():
            wanted = axis.parts if axis.summed else (part,)
            values = [getattr(load, name) for name in wanted]
            if None not in values and (axis.from_zero or min(values) > 0):
                by_value.setdefault(float(sum(values)), []).append(cell)
        if len(by_value) > 1:
            points = []
            for value, cells in sorted(by_value.items()):
                if len({loads[cell] for cell in cells}) == 1:
                    fewest = min(cells, key=lambda cell: loads[cell].requests or 0)
                    points.append((value, fewest))
            if len(points) == len(by_value):
                yield part, tuple(points)
            return


def _fixed(rest: str) -> tuple[tuple[str, str], ...]:
    """Name and value of the options that are numbers, words or switches."""
    return tuple(
        (name, str(value))
        for name, value in json.loads(rest).items()
        if isinstance(value, str | int | float) and name not in (RATIO, "type")
    )
