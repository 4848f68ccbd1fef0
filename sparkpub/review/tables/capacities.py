"""The table of capacities: how many requests a second a server bears before users wait too long for the first token.

In an open loop requests arrive at a rate, whether or not the server keeps up. Below saturation its output throughput is
what arrives, so it ranks nothing. What ranks is the highest rate at which the 95th percentile of the time to first
token stays below a limit, at most 1 % of the requests fail, and every lower rate that was measured holds, too.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from sparkpub.plan.requested import load_of
from sparkpub.plan.workloads.load import Load
from sparkpub.review.names import lengths_name
from sparkpub.review.reviewed import Cell, ReviewedCampaign
from sparkpub.review.tables.column import Column, Columns, rows, table_of

LIMITS_SECONDS = (2.0, 5.0, 10.0)
"""How long users may wait for the first token."""
TOLD_SECONDS = 10.0
"""The limit of these of which sentences and the leaderboard speak."""
MOST_FAILED_PERCENT = 1.0
"""Share of requests that may fail."""
TTFT = "ttft_p95_ms"
FAILED = "failed_requests_percent"
OUTPUT = "output_throughput_tok_s"
COLUMNS: Columns = {
    "campaign": Column("text", "The campaign"),
    "model": Column("text", "Key of the model"),
    "environment": Column("text", "Key of the environment"),
    "load": Column("text", "What was asked for, without the rate, in words"),
    "limit_seconds": Column("number", "How long users may wait for the first token"),
    "rate": Column("number", "Requests per second at the highest rate that holds; empty where the lowest does not"),
    "at_least": Column("boolean", "Whether the highest rate that was measured holds: the capacity may be higher"),
    "text": Column("text", "The rate for readers: 0.7, at least 1, below 0.1"),
    "ttft_p95_ms": Column("number", "95th percentile of the time to first token at that rate, else at the lowest"),
    "output_throughput_tok_s": Column("number", "Output throughput there"),
    "workload": Column("text", "Key of a workload with that rate, else with the lowest"),
    "rates": Column("list", "The rates that were measured, rising"),
}  # fmt: skip
_RATE = re.compile(r"-rate[\d.]+")
"""The rate in the key of an imported workload."""
_Means = Mapping[tuple[str, str, str, str, str], float]
"""Campaign, model, environment, workload and metric to the mean."""


@dataclass(frozen=True)
class RateStep:
    """One arrival rate of a sweep: the worst of the cells that were measured at it."""

    rate: float
    ttft_p95_ms: float
    failed_percent: float
    output_throughput_tok_s: float | None
    workload: str

    def holds(self, limit_seconds: float) -> bool:
        """Whether users wait less than so long, and at most 1 % of the requests fail."""
        waits = self.ttft_p95_ms < 1000 * limit_seconds
        return waits and self.failed_percent <= MOST_FAILED_PERCENT


def capacities(
    cells: pd.DataFrame, campaigns: Mapping[str, ReviewedCampaign]
) -> pd.DataFrame:
    """The capacity of every sweep over at least two arrival rates, at each limit."""
    wanted = cells[cells["metric"].isin([TTFT, FAILED, OUTPUT])]
    means = {(row.campaign, *row.cell, row.metric): row.mean for row in rows(wanted)}
    found: list[dict[str, Any]] = []
    for name, reviewed in campaigns.items():
        for (model, environment, load), rates in _sweeps(reviewed).items():
            tried = [
                _step(name, rate, members, means)
                for rate, members in sorted(rates.items())
            ]
            steps = [step for step in tried if step is not None]
            about = {"campaign": name, "model": model, "environment": environment}
            if len(steps) > 1:
                found += [about | row for row in _of_sweep(load, steps)]
    return table_of(COLUMNS, found)


def _sweeps(
    reviewed: ReviewedCampaign,
) -> dict[tuple[str, str, Load], dict[float, list[Cell]]]:
    """Model, environment and load without its rate, to the cells at each rate. The number of requests is no part of a
    load: at a higher rate a sweep sends more."""
    sweeps: dict[tuple[str, str, Load], dict[float, list[Cell]]] = {}
    for cell, runs in reviewed.counted.items():
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
    campaign: str, rate: float, cells: Sequence[Cell], means: _Means
) -> RateStep | None:
    """The step of a rate; None where no cell at it has the percentile."""
    known = [cell for cell in cells if (campaign, *cell, TTFT) in means]
    if not known:
        return None
    outputs = [means.get((campaign, *cell, OUTPUT)) for cell in known]
    measured = [output for output in outputs if output is not None]
    failed = [means.get((campaign, *cell, FAILED), 0.0) for cell in known]
    return RateStep(
        rate=rate,
        ttft_p95_ms=max(means[campaign, *cell, TTFT] for cell in known),
        failed_percent=max(failed),
        output_throughput_tok_s=min(measured, default=None),
        workload=known[0][2],
    )


def _of_sweep(load: Load, steps: Sequence[RateStep]) -> Iterator[dict[str, Any]]:
    """The capacity at each limit."""
    words = [lengths_name(load)]
    if load.burstiness is not None:
        words.append(f"burstiness {load.burstiness:g}")
    if load.in_flight is not None:
        words.append(f"at most {load.in_flight:,} at once")
    for limit in LIMITS_SECONDS:
        best = _highest(steps, limit)
        shown = best or steps[0]
        yield {
            "load": ", ".join(filter(None, words)),
            "limit_seconds": limit,
            "rate": None if best is None else best.rate,
            "at_least": best is steps[-1],
            "text": _text(best, steps),
            "ttft_p95_ms": shown.ttft_p95_ms,
            "output_throughput_tok_s": shown.output_throughput_tok_s,
            "workload": shown.workload,
            "rates": tuple(step.rate for step in steps),
        }


def _highest(steps: Sequence[RateStep], limit_seconds: float) -> RateStep | None:
    """The last step before the first one that does not hold."""
    best = None
    for step in steps:
        if not step.holds(limit_seconds):
            break
        best = step
    return best


def _text(best: RateStep | None, steps: Sequence[RateStep]) -> str:
    """`0.7`; `at least 1` where no measured rate was too high, `below 0.1` where each was."""
    if best is None:
        return f"below {steps[0].rate:g}"
    if best is steps[-1]:
        return f"at least {best.rate:g}"
    return f"{best.rate:g}"
