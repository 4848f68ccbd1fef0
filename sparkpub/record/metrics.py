"""Every metric sparkpub knows, as metrics.toml declares it: unit, direction, definition, and its part in a study.

A unit is part of a metric's name, GiB is 2**30 bytes, and two definitions are two metrics: TensorRT-LLM's
profiled peak, the sampler's and PyTorch's are never compared with each other.
"""

import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from sparkpub.record import text

Direction = Literal["higher", "lower", "neither"]
Role = Literal["primary", "secondary", "state", "derived"]
MemoryOf = Literal["gpu", "host"]

GIB = 2**30
LONG_MS = 10_000
"""Milliseconds from which on a sentence says seconds."""


@dataclass(frozen=True)
class Metric:
    """A quantity that a run can have. The comment at the top of metrics.toml says what each field means.

    A summary of a distribution over requests names both: `request_latency`, `p50`. `minimum` and `maximum` bound
    what is physically possible, in `unit`.
    """

    name: str
    unit: str
    direction: Direction
    label: str
    definition: str
    decimals: int = 2
    role: Role = "primary"
    headline: int | None = None
    memory_of: MemoryOf | None = None
    derived_from: tuple[str, ...] = ()
    distribution: str = ""
    summary: str = ""
    minimum: float = 0.0
    maximum: float = math.inf

    def format(self, value: float | None, *, unit: bool = True) -> str:
        """Text for a reader, e.g. `70.47 GiB`; "not available" where there is no value."""
        if value is None:
            return text.NOT_AVAILABLE
        return text.with_unit(
            text.number(value, self.decimals), self.unit if unit else ""
        )

    def rounded(self, value: float, *, unit: bool = True) -> str:
        """Text for a headline, in three significant digits: `4,108 tok/s`."""
        return text.with_unit(text.rounded(value), self.unit if unit else "")

    def told(self, value: float) -> str:
        """A value that stands alone in a sentence: as `rounded`, a long time in seconds, `2,084 s`."""
        if self.unit == "ms" and value >= LONG_MS:
            return text.with_unit(text.rounded(value / 1000), "s")
        return self.rounded(value)

    @property
    def subject(self) -> str:
        """The label as the subject of a sentence: `Output throughput`, `Median time to first token`."""
        if not self.summary:
            return self.label
        quantity, _, word = self.label.rpartition(", ")
        return f"{word[:1].upper()}{word[1:]} {_lower(quantity)}"

    @property
    def within_sentence(self) -> str:
        """The label within a sentence: `output throughput`, `median time to first token`, and `KV cache` as it is."""
        return _lower(self.subject)


def _lower(label: str) -> str:
    """A label within a sentence; an abbreviation keeps its capitals."""
    if label[1:2].isupper() or label[1:2].isdigit():
        return label
    return label[:1].lower() + label[1:]


_UNITS = {
    "_tok_s": "tok/s",
    "_req_s": "req/s",
    "_gflop_s": "GFLOP/s",
    "_ms": "ms",
    "_gib": "GiB",
    "_tokens": "tokens",
    "_bytes_per_token": "B/token",
    "_celsius": "°C",
    "_watt": "W",
    "_tokens_per_joule": "tok/J",
    "_joule": "J",
    "_wh": "Wh",
    "_percent": "%",
    "_mhz": "MHz",
    "_seconds": "s",
}
"""End of a metric's name to its unit."""
_BOUNDS = {"°C": (-40, 130), "W": (0, 5000), "%": (0, 100), "MHz": (0, 10000)}
"""Unit to what is physically possible; other units only know that nothing is below zero."""
SUMMARIES = {
    "mean": "mean",
    "min": "minimum",
    "p50": "median",
    "p90": "P90",
    "p95": "P95",
    "p99": "P99",
    "max": "maximum",
}
"""Summary of a distribution over requests, as in a metric's name, to its word."""


def unit_of(name: str) -> str:
    """The unit that a name ends in; empty for a name without one."""
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")


FACTORS: Mapping[tuple[str, str], float] = {
    ("s", "ms"): 1e3,
    ("us", "ms"): 1e-3,
    ("µs", "ms"): 1e-3,
    ("ns", "ms"): 1e-6,
    ("min", "s"): 60.0,
    ("ms", "s"): 1e-3,
    ("B", "GiB"): 2**-30,
    ("KiB", "GiB"): 2**-20,
    ("MiB", "GiB"): 2**-10,
    ("TiB", "GiB"): 2**10,
    ("MB", "GiB"): 1e6 / GIB,
    ("GB", "GiB"): 1e9 / GIB,
    ("mW", "W"): 1e-3,
    ("kW", "W"): 1e3,
    ("kJ", "J"): 1e3,
    ("Wh", "J"): 3600.0,
    ("GHz", "MHz"): 1e3,
    ("tokens/s", "tok/s"): 1.0,
    ("t/s", "tok/s"): 1.0,
    ("requests/s", "req/s"): 1.0,
    ("C", "°C"): 1.0,
    ("TFLOP/s", "GFLOP/s"): 1e3,
    ("ratio", "%"): 100.0,
}
"""(unit of a column, unit of a metric) to what the one is multiplied with. A GB is 10**9 bytes, a GiB 2**30."""


def factor(unit: str, wanted: str) -> float | None:
    """What a figure in `unit` is multiplied with; None where the one unit cannot be converted to the other."""
    if unit == wanted:
        return 1.0
    return FACTORS.get((unit, wanted))


_SHORTENED = re.compile(
    r"(?<!_per)_(gib|tok_s|req_s|gflop_s|ms|celsius|watt|joule|wh|percent|mhz)$"
)


_MIXED_UP = {
    "GB was taken for GiB": GIB / 1e9,
    "seconds were taken for milliseconds": 1e3,
}
"""Mistakes with units, and the factor by which they change a figure."""
_MIXED_UP_TOLERANCE = 0.005


TIMED_UNITS = frozenset({"ms", "tok/s", "req/s", "GFLOP/s"})
"""Units of figures that come from a clock."""


def mixed_units(one: float, other: float) -> str:
    """A hint in brackets where two figures that should agree lie apart by the ratio of two units, else nothing."""
    small, large = sorted((abs(one), abs(other)))
    if small > 0:
        for words, ratio in _MIXED_UP.items():
            if math.isclose(large / small, ratio, rel_tol=_MIXED_UP_TOLERANCE):
                return f" ({words})"
    return ""


def slug(metric: str) -> str:
    """What a metric is called in addresses and in prose: its name without the unit, `peak-memory`.

    One that a campaign declared keeps its unit: another campaign may have declared the same quantity in another.
    """
    if metric not in METRICS:
        return metric.replace("_", "-")
    return _SHORTENED.sub("", metric).replace("_", "-")


def declared(
    name: str,
    unit: str,
    direction: Direction,
    label: str,
    definition: str | None = None,
) -> Metric:
    """A metric that a campaign declares for a command or a table of its own. It leads where either way is better: it
    is what the campaign was measured for."""
    answers = direction != "neither"
    return Metric(
        name,
        unit,
        direction,
        label,
        definition or "Declared by its campaign.",
        role="primary" if answers else "state",
        headline=0 if answers else None,
        minimum=-math.inf,
    )


def _known() -> Iterator[Metric]:
    declarations = (
        resources.files(__package__)
        .joinpath("metrics.toml")
        .read_text(encoding="utf-8")
    )
    for name, entry in tomllib.loads(declarations).items():
        if entry.pop("distribution", False):
            yield from _summaries(name, **entry)
        elif positions := entry.pop("positions", None):
            yield from _by_position(name, positions, **entry)
        else:
            yield _single(name, entry)


def _single(name: str, entry: dict[str, Any]) -> Metric:
    unit = unit_of(name)
    minimum, maximum = _BOUNDS.get(unit, (0.0, math.inf))
    derived_from = tuple(entry.pop("derived_from", ()))
    role = entry.pop("role", "derived" if derived_from else "primary")
    direction = entry.pop("better")
    return Metric(
        name,
        unit,
        direction,
        **entry,
        role=role,
        derived_from=derived_from,
        minimum=minimum,
        maximum=maximum,
    )


def _summaries(
    name: str,
    *,
    label: str,
    definition: str,
    primary: list[str],
    headline: int | None = None,
) -> Iterator[Metric]:
    """The seven metrics of a distribution over the requests of a run."""
    for summary, word in SUMMARIES.items():
        yield Metric(
            f"{name}_{summary}_ms",
            "ms",
            "lower",
            f"{label}, {word}",
            f"{definition}; {word} over the requests of a run.",
            role="primary" if summary in primary else "secondary",
            headline=headline if summary == "p50" else None,
            distribution=name,
            summary=summary,
        )


def _by_position(
    name: str, positions: int, *, label: str, definition: str
) -> Iterator[Metric]:
    """A share for each position of a guessed token, counted from 1."""
    for position in range(1, positions + 1):
        yield Metric(
            f"{name}_position_{position}_percent",
            "%",
            "higher",
            f"{label}, position {position}",
            f"{definition}; position {position}.",
            decimals=1,
            role="secondary",
            maximum=100.0,
        )


METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _known()}


def metric_called(name: str, unit: str = "") -> Metric:
    """The metric of that name, or one of which no more than its unit is known."""
    return METRICS.get(name) or Metric(name, unit, "neither", name, "")


TAKEN: Mapping[str, str] = {"index": "index"} | {slug(name): name for name in METRICS}
"""Address to the metric that has it, and the page of a folder: no other metric can be called so."""
DISTRIBUTIONS: tuple[str, ...] = tuple(
    dict.fromkeys(
        metric.distribution for metric in METRICS.values() if metric.distribution
    )
)
"""The distributions over requests that are measured: `request_latency`, `ttft`, ..."""


def ranked(metrics: Iterable[Metric]) -> list[Metric]:
    """Those that lead by their rank, then the others in the order of metrics.toml, then those it does not know."""
    places = {name: place for place, name in enumerate(METRICS)}

    def place(metric: Metric) -> tuple[float, int]:
        rank = math.inf if metric.headline is None else metric.headline
        return rank, places.get(metric.name, len(places))

    return sorted(metrics, key=place)
