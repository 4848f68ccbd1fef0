"""What a campaign varies: lines of cells that differ in one thing alone, the load, a length or the depth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any, NamedTuple

from sparkpub.plan.requested import load_of, options_of, without_requests
from sparkpub.record.load import BATCH, IN_FLIGHT, Load
from sparkpub.record.record import Record
from sparkpub.record.store import canonical_json
from sparkpub.review.dataset import CampaignData
from sparkpub.review.names import CampaignNames, told_apart
from sparkpub.review.reviewed import Cell

SHOWS_A_SHAPE = 3
"""Points of a line from which on it has a shape; two only differ."""
AMOUNTS = {
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
"""Options that say how much is measured, and how much room there is: no part of what is measured."""


class Axis(NamedTuple):
    """Something that sweeps vary. `parts` are its names in a load, of which the first one that differs counts; with
    `summed` they go up together, and their sum counts. `word` names it within a sentence, `place` a value of it.
    """

    name: str
    title: str
    word: str
    place: str
    parts: tuple[str, ...]
    summed: bool = False


LOAD = Axis(
    "load",
    "Requests at once",
    "requests at once",
    "{} requests at once",
    ("in_flight", "batch"),
)
AXES = (
    LOAD,
    Axis(
        "rate",
        "Requests per second asked for",
        "request rate",
        "{} requests/s",
        ("request_rate",),
    ),
    Axis("depth", "Tokens already in the KV cache", "depth", "depth {}", ("depth",)),
    Axis(
        "input",
        "Input tokens of a request",
        "input length",
        "{} input tokens",
        ("input_tokens",),
    ),
    Axis(
        "output",
        "Output tokens of a request",
        "output length",
        "{} output tokens",
        ("output_tokens",),
    ),
    Axis(
        "length",
        "Tokens of a request, input and output",
        "length",
        "{} tokens",
        ("input_tokens", "output_tokens"),
        summed=True,
    ),
)
_OPTIONS = {"in_flight": IN_FLIGHT, "batch": BATCH}
"""Part of a load to its names in workloads, where these are others."""
WORDS = {"in_flight": "concurrency", "batch": "batch size"}
"""Part of a load to its word in a sentence, where an axis has several."""
SWITCHED = {"True": "on", "False": "off"}
"""A switch to its word in a sentence."""
_SHORT = {
    "input_tokens": "{:,} in",
    "output_tokens": "{:,} out",
    "depth": "{:,} in context",
}
"""Part of a load to how a reader says it with its value."""
_REST, _RATIO = "", "ratio"
"""In place of an option: what is left of the name of an imported workload; and of parts that go up together, how they
stand to each other."""
_SENT = (_REST, "mode", "backend")
"""Options that say how requests are sent, not what they ask for."""


@dataclass(frozen=True)
class Line:
    """Cells of one model in one environment that differ on an axis alone: (value, cell) by rising value.

    `part` is what of the load varies. `fixed` is what the cells have in common, in words, and `sent` how their requests
    are sent, which parts a line from others and goes without saying.
    """

    axis: Axis
    part: str
    model: str
    environment: str
    points: tuple[tuple[float, Cell], ...]
    fixed: tuple[str, ...] = ()
    sent: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """What varies, within a sentence: `concurrency`."""
        return WORDS.get(self.part, self.axis.word)

    @property
    def title(self) -> str:
        """What varies, beside an axis: `Concurrency`."""
        title = WORDS.get(self.part, self.axis.title)
        return title[:1].upper() + title[1:]

    def place(self, value: float) -> str:
        """A value of what varies, within a sentence: `concurrency 32`, `640 tokens`."""
        words = f"{self.word} {{}}" if self.part in WORDS else self.axis.place
        return words.format(f"{value:,g}")

    @property
    def held(self) -> str:
        """What does not vary, for a reader: `512 in, 128 out`, then the other options."""
        return ", ".join(self.fixed)


class _Asked(NamedTuple):
    """What a cell was asked for. `options` are those that say what it measures, and what only its name says."""

    cell: Cell
    load: Load
    options: Mapping[str, Any]

    def beside(self, axis: Axis) -> dict[str, Any]:
        """What the cells of a line have in common."""
        varied = {name for part in axis.parts for name in _OPTIONS.get(part, (part,))}
        rest = {
            name: value for name, value in self.options.items() if name not in varied
        }
        if axis.summed:
            first, second = (getattr(self.load, part) for part in axis.parts)
            known = first and second
            rest[_RATIO] = f"{first / second:.3f}" if known else f"{first}:{second}"
        return rest


def lines(campaign: CampaignData) -> tuple[Line, ...]:
    """Every line of a campaign, axis by axis."""
    declared = campaign.matrix.workloads.keys() if campaign.matrix else ()
    records = {record.cell: record for record in campaign.records}.values()
    asked = [_asked(record, record.workload in declared) for record in records]
    found = []
    for axis in AXES:
        same: dict[tuple[str, str, str], list[_Asked]] = {}
        for each in asked:
            model, environment, _ = each.cell
            key = model, environment, canonical_json(each.beside(axis))
            same.setdefault(key, []).append(each)
        for (model, environment, _), mine in same.items():
            part, points = _points(axis, mine)
            if points:
                fixed, sent = _in_words(mine[0].beside(axis))
                line = Line(axis, part, model, environment, points, fixed, sent)
                found.append(line)
    return tuple(found)


def has_a_shape(found: Sequence[Line]) -> bool:
    """Whether one of the lines has points enough to show how something grows."""
    return any(len(line.points) >= SHOWS_A_SHAPE for line in found)


def names(found: Sequence[Line], called: CampaignNames) -> dict[Line, str]:
    """Line to what tells it from the others of its axis: model, environment and other options, where they differ."""
    parts = []
    for line in found:
        model = called.short_models.get(line.model, line.model)
        environment = called.environments.get(line.environment, line.environment)
        parts.append((model, environment, *line.fixed, *line.sent))
    return dict(zip(found, told_apart(parts), strict=True))


def _asked(record: Record, is_declared: bool) -> _Asked:
    """What a matrix does not declare was imported, and only the workload's name may say what else it varied:
    `pp64-d16-t2`. What is left of that name, without the parts that end in the value of an option, is an option, too.
    """
    asked = options_of(record)
    options = {name: value for name, value in asked.items() if name not in AMOUNTS}
    if not is_declared:
        values = {
            f"{value:g}" if isinstance(value, float) else str(value)
            for value in options.values()
        }
        parts = without_requests(record.workload).split("-")
        rest = [part for part in parts if part.lstrip(ascii_lowercase) not in values]
        options[_REST] = "-".join(rest)
    return _Asked(record.cell, load_of(record), options)


def _points(
    axis: Axis, asked: Sequence[_Asked]
) -> tuple[str, tuple[tuple[float, Cell], ...]]:
    """The part that varies and its points; none where fewer than two values are known or two loads share one.

    Of cells that differ in the number of their requests alone the one with the fewest is on the line: the others
    measure the same load for longer, beside the sweep.
    """
    for part in axis.parts:
        by_value: dict[float, list[_Asked]] = {}
        for each in asked:
            parts = axis.parts if axis.summed else (part,)
            values = [getattr(each.load, name) for name in parts]
            # A context without tokens is a depth like others; elsewhere zero says that there is none.
            if all(values) or part == "depth":
                by_value.setdefault(float(sum(values)), []).append(each)
        if len(by_value) < 2:
            continue
        if any(len({each.load for each in mine}) > 1 for mine in by_value.values()):
            break
        points = []
        for value, mine in sorted(by_value.items()):
            fewest = min(mine, key=lambda each: each.load.requests or 0)
            points.append((value, fewest.cell))
        return part, tuple(points)
    return "", ()


def _in_words(rest: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Options that are numbers, words or switches for a reader, `512 in`, `CUDA graph on`, lengths first; and apart
    from them how requests are sent."""
    lengths: list[str] = []
    others: list[str] = []
    sent: list[str] = []
    for name, value in sorted(rest.items()):
        if name in (_RATIO, "type") or not isinstance(value, str | int | float):
            continue
        if name in _SHORT and isinstance(value, int):
            lengths.append(_SHORT[name].format(value))
            continue
        words = name.replace("_", " ").replace("cuda", "CUDA")
        words = f"{words} {SWITCHED.get(str(value), value)}".strip()
        (sent if name in _SENT else others).append(words)
    return (*lengths, *others), tuple(filter(None, sent))
