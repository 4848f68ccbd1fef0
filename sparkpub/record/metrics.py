"""Every metric sparkpub knows: the one place that knows units, directions and definitions (metrics.toml).

A unit is part of a metric's name, GiB is 2**30 bytes, and two definitions are two metrics: TensorRT-LLM's
profiled peak, the sampler's and PyTorch's are never compared with each other.
"""

import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Literal

Direction = Literal["higher", "lower", "neither"]

GIB = 2**30


@dataclass(frozen=True)
class Metric:
    """A quantity that a run can have.

    `direction` says which way is better. `decimals` is how many digits a reader needs. `derived_from`
    names the metrics this one is computed from, so that it is never read as a second piece of evidence.
    `minimum` and `maximum` bound what is physically possible, in `unit`.
    """

    name: str
    unit: str
    direction: Direction
    label: str
    definition: str
    decimals: int = 2
    derived_from: tuple[str, ...] = ()
    minimum: float = 0.0
    maximum: float = math.inf

    def format(self, value: float | None, *, unit: bool = True) -> str:
        """Text for a reader, e.g. `70.47 GiB`; "not available" where there is no value."""
        if value is None:
            return "not available"
        text = f"{value:z,.{self.decimals}f}".replace("-", "\N{MINUS SIGN}")
        return f"{text} {self.unit}" if unit and self.unit else text


_UNITS = {
    "_tok_s": "tok/s", "_req_s": "req/s", "_gflop_s": "GFLOP/s", "_ms": "ms", "_gib": "GiB", "_tokens": "tokens",
    "_bytes_per_token": "B/token", "_celsius": "°C", "_watt": "W", "_joule": "J", "_percent": "%", "_mhz": "MHz",
    "_seconds": "s",
}  # fmt: skip
"""End of a metric's name to its unit."""
_BOUNDS = {"°C": (-40, 130), "W": (0, 5000), "%": (0, 100), "MHz": (0, 10000)}
"""Unit to what is physically possible; other units only know that nothing is below zero."""
_SUMMARIES = {
    "mean": "mean", "min": "minimum", "p50": "median", "p90": "P90", "p95": "P95", "p99": "P99", "max": "maximum",
}  # fmt: skip


def unit_of(name: str) -> str:
    """The unit that a name ends in; empty for a name without one."""
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")


def _known() -> Iterator[Metric]:
    """The metrics of metrics.toml; a distribution over requests is seven of them."""
    text = resources.files(__package__).joinpath("metrics.toml").read_text(encoding="utf-8")
    for name, entry in tomllib.loads(text).items():
        if entry.pop("distribution", False):
            for key, word in _SUMMARIES.items():
                definition = f"{entry['definition']}; {word} over the requests of a run."
                yield Metric(f"{name}_{key}_ms", "ms", "lower", f"{entry['label']}, {word}", definition)
            continue
        unit = unit_of(name)
        low, high = _BOUNDS.get(unit, (0.0, math.inf))
        derived = tuple(entry.pop("derived_from", ()))
        yield Metric(name, unit, entry.pop("better"), **entry, derived_from=derived, minimum=low, maximum=high)


METRICS: dict[str, Metric] = {metric.name: metric for metric in _known()}
