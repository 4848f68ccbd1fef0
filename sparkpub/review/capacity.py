"""Capacity: how many requests a second a server bears before users wait too long for the first token.

In an open loop requests arrive at a rate, whether or not the server keeps up. Below saturation its output throughput is
what arrives, so it ranks nothing. What ranks is the highest rate at which the 95th percentile of the time to first
token stays below a limit, at most 1 % of the requests fail, and every lower rate that was measured holds, too.

    capacities(frames, cells)  ->  a row for each model, environment, load without its rate, and limit
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sparkpub.plan.requested import load_of
from sparkpub.plan.workloads.load import Load
from sparkpub.review.frame import Cell, Frame
from sparkpub.review.tables.cells import CellStatistic

LIMITS_SECONDS = (2.0, 5.0, 10.0)
"""How long users may wait for the first token."""
MOST_FAILED_PERCENT = 1.0
"""Share of requests that may fail."""
TTFT = "ttft_p95_ms"
FAILED = "failed_requests_percent"
OUTPUT = "output_throughput_tok_s"
_RATE = re.compile(r"-rate[\d.]+")
"""The rate in the key of an imported workload."""


@dataclass(frozen=True)
class Step:
    """One arrival rate of a sweep: the worst of the cells that were measured at it."""

    rate: float
    """Requests per second."""
    ttft_p95_ms: float
    failed_percent: float
    output_throughput_tok_s: float | None
    cells: tuple[Cell, ...]

    def holds(self, limit_seconds: float) -> bool:
        """Whether users wait less than so long, and at most 1 % of the requests fail."""
        waits = self.ttft_p95_ms < 1000 * limit_seconds
        return waits and self.failed_percent <= MOST_FAILED_PERCENT


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """The highest rate of a sweep that a server bears within a limit; the sweep has at least two rates."""

    campaign: str
    model: str
    environment: str
    load: Load
    """Without its rate."""
    limit_seconds: float
    steps: tuple[Step, ...]
    """The rates that were measured, rising."""
    best: Step | None
    """The highest that holds; None where not even the lowest does."""

    @property
    def rate(self) -> float | None:
        """Requests per second at the highest rate that holds; None where none does."""
        return None if self.best is None else self.best.rate

    @property
    def is_at_least(self) -> bool:
        """Whether the highest measured rate still holds, so that the capacity may be higher."""
        return self.best is self.steps[-1]

    @property
    def text(self) -> str:
        """`0.7`; `at least 1` where no measured rate was too high, `below 0.1` where each was. In requests/s."""
        if self.best is None:
            return f"below {self.steps[0].rate:g}"
        if self.is_at_least:
            return f"at least {self.best.rate:g}"
        return f"{self.best.rate:g}"

    @property
    def place(self) -> tuple[float, float]:
        """Sorts capacities, the highest last: by rate, then by how long users wait at it."""
        if self.best is None:
            return 0.0, -self.steps[0].ttft_p95_ms
        return self.best.rate, -self.best.ttft_p95_ms


def capacities(
    frames: Mapping[str, Frame], cells: Iterable[CellStatistic]
) -> tuple[Capacity, ...]:
    """The capacity of every sweep over arrival rates, at each limit."""
    means = {
        (row.campaign, row.cell, row.metric): row.mean
        for row in cells
        if row.metric in (TTFT, FAILED, OUTPUT)
    }
    found: list[Capacity] = []
    for name, frame in frames.items():
        for (model, environment, load), rates in _sweeps(frame).items():
            tried = [
                _step(name, rate, members, means)
                for rate, members in sorted(rates.items())
            ]
            steps = tuple(step for step in tried if step is not None)
            if len(steps) < 2:
                continue
            for limit in LIMITS_SECONDS:
                capacity = Capacity(
                    campaign=name,
                    model=model,
                    environment=environment,
                    load=load,
                    limit_seconds=limit,
                    steps=steps,
                    best=_highest(steps, limit),
                )
                found.append(capacity)
    return tuple(found)


def _highest(steps: Sequence[Step], limit_seconds: float) -> Step | None:
    """The last step before the first one that does not hold."""
    best = None
    for step in steps:
        if not step.holds(limit_seconds):
            break
        best = step
    return best


def _sweeps(
    frame: Frame,
) -> dict[tuple[str, str, Load], dict[float, list[Cell]]]:
    """Model, environment and load without its rate, to the cells at each rate. The number of requests is no part of a
    load: at a higher rate a sweep sends more."""
    sweeps: dict[tuple[str, str, Load], dict[float, list[Cell]]] = {}
    for cell, runs in frame.counted.items():
        if not runs:
            continue
        load = load_of(runs[0].record)
        if load.request_rate is None:
            continue
        model, environment, _ = cell
        named = _RATE.sub("", load.named)
        without = replace(load, request_rate=None, named=named)
        rates = sweeps.setdefault((model, environment, without), {})
        rates.setdefault(load.request_rate, []).append(cell)
    return sweeps


def _step(
    campaign: str,
    rate: float,
    cells: Sequence[Cell],
    means: Mapping[tuple[str, Cell, str], float],
) -> Step | None:
    """The step of a rate; None where no cell at it has the percentile."""
    known = [cell for cell in cells if (campaign, cell, TTFT) in means]
    if not known:
        return None
    outputs = [means.get((campaign, cell, OUTPUT)) for cell in known]
    measured = [output for output in outputs if output is not None]
    return Step(
        rate=rate,
        ttft_p95_ms=max(means[campaign, cell, TTFT] for cell in known),
        failed_percent=max(means.get((campaign, cell, FAILED), 0.0) for cell in known),
        output_throughput_tok_s=min(measured, default=None),
        cells=tuple(known),
    )
