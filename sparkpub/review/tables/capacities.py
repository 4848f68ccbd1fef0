"""The table of capacities: how many requests a second a server bears before its users wait too long.

In an open loop requests arrive at a rate, whether or not the server keeps up. Below saturation its output throughput is
what arrives, so it ranks nothing. What ranks is the highest rate that holds: the 95th percentiles of the time to first
token and of the time per output token are within their limits, at most 1 % of the requests fail, and every lower rate
that was measured holds, too. Both times decide, as in MLPerf's server scenario and in the goodput of vLLM, AIPerf and
DistServe: a server that takes all requests at once answers first tokens in time, and none of its users can read.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import pandas as pd

from sparkpub.plan.requested import load_of
from sparkpub.record.load import Load
from sparkpub.record.text import SPACE
from sparkpub.review.names import lengths_name
from sparkpub.review.offered import answers_apart, emptied_queue
from sparkpub.review.reviewed import Cell, ReviewedCampaign
from sparkpub.review.tables.column import Column, Columns, TableRow, rows, table_of

LIMITS_SECONDS = (2.0, 5.0, 10.0)
"""How long users may wait for the first token."""
TOLD_SECONDS = 10.0
"""The limit of these of which sentences and the leaderboard speak."""
LIMIT_TPOT_MS = 100.0
"""How long each further token may take: users read ten a second. It is the limit of Llama 3.1 8B's server scenario in
`mlperf.conf` of mlcommons/inference; that of DeepSeek-R1 is 80."""
MOST_FAILED_PERCENT = 1.0
"""Share of requests that may fail."""
LIMITS = (
    f"95{SPACE}% of the first tokens within {TOLD_SECONDS:g}{SPACE}s "
    f"and 95{SPACE}% of the times per output token within {LIMIT_TPOT_MS:g}{SPACE}ms"
)
NOT_RANKED = "not ranked"
"""Text of a sweep that answers of another length than declared decide: its rates are not the same work."""
SERVED, LATENCY = "request_throughput_req_s", "request_latency_mean_ms"
COLUMNS: Columns = {
    "campaign": Column("text", "The campaign"),
    "model": Column("text", "Key of the model"),
    "environment": Column("text", "Key of the environment"),
    "load": Column("text", "What was asked for, without the rate, in words"),
    "limit_seconds": Column(
        "number", "How long users may wait for the first token", heading="limit in s"
    ),
    "limit_tpot_ms": Column(
        "number", "How long each further token may take", heading="per token in ms"
    ),
    "rate": Column(
        "number",
        "Requests per second at the highest rate that holds; empty where the lowest does not",
    ),
    "at_least": Column(
        "boolean",
        "Whether the highest rate that was measured holds: the capacity may be higher",
    ),
    "text": Column(
        "text",
        "The rate for readers: 0.7, limit not reached (up to 1.0), below 0.1, not ranked",
        heading="requests/s",
    ),
    "ttft_p95_ms": Column(
        "number",
        "95th percentile of the time to first token at that rate, else at the lowest",
    ),
    "tpot_p95_ms": Column(
        "number", "95th percentile of the time per output token there"
    ),
    "served_req_s": Column(
        "number", "Requests per second that were completed there", heading="completed/s"
    ),
    "in_flight": Column(
        "number",
        "Requests in flight there on average: those completed times their mean latency",
        heading="in flight",
    ),
    "user_tok_s": Column(
        "number",
        "Tokens per second for each user there: 1 by the mean time per output token",
        heading="tok/s each",
    ),
    "output_throughput_tok_s": Column(
        "number", "Output throughput there", heading="tok/s"
    ),
    "workload": Column(
        "text", "Key of a workload with that rate, else with the lowest"
    ),
    "rates": Column("list", "The rates that were measured, rising"),
    "note": Column("text", "What readers have to know of the measurement at that rate"),
}
_METRICS = {
    "ttft_p95_ms": max,
    "tpot_p95_ms": max,
    "failed_requests_percent": max,
    SERVED: min,
    "in_flight": max,
    "tpot_mean_ms": max,
    "output_throughput_tok_s": min,
}
"""What decides, and what is told beside it, with the worse of two values."""
_RATE = re.compile(r"-rate[\d.]+")
"""The rate in the key of an imported workload."""
_Sweep = tuple[str, str, Load]
"""Model, environment, and load without its rate."""


@dataclass(frozen=True)
class RateStep:
    """One arrival rate of a sweep: the worst of the cells that were measured at it. `figures` are of `_METRICS`."""

    rate: float
    workload: str
    figures: Mapping[str, float]
    notes: tuple[str, str]
    """That the answers had another length than declared, and that a queue was emptied; empty where it is not so."""

    def holds(self, limit_seconds: float) -> bool:
        """Whether both times are within their limits, and at most 1 % of the requests fail."""
        waits = self.figures["ttft_p95_ms"] <= 1000 * limit_seconds
        reads = self.figures["tpot_p95_ms"] <= LIMIT_TPOT_MS
        failed = self.figures.get("failed_requests_percent", 0.0)
        return waits and reads and failed <= MOST_FAILED_PERCENT

    @property
    def told(self) -> dict[str, Any]:
        """What the rate means for the server and its users."""
        each = self.figures.get("tpot_mean_ms")
        return {
            "ttft_p95_ms": self.figures["ttft_p95_ms"],
            "tpot_p95_ms": self.figures["tpot_p95_ms"],
            "served_req_s": self.figures.get(SERVED),
            "in_flight": self.figures.get("in_flight"),
            "user_tok_s": 1000 / each if each else None,
            "output_throughput_tok_s": self.figures.get("output_throughput_tok_s"),
            "workload": self.workload,
            "note": "; ".join(filter(None, self.notes)) or None,
        }


def capacities(
    cells: pd.DataFrame, campaigns: Mapping[str, ReviewedCampaign]
) -> pd.DataFrame:
    """The capacity of every sweep over at least two arrival rates, at each limit. A rate without one of the two
    percentiles says nothing of both limits, and is left out."""
    means = _means(cells)
    found: list[dict[str, Any]] = []
    for name, reviewed in campaigns.items():
        for (model, environment, load), rates in _sweeps(reviewed).items():
            tried = [
                _step(
                    rate,
                    {cell: means.get((name, cell), {}) for cell in members},
                    reviewed,
                )
                for rate, members in sorted(rates.items())
            ]
            steps = [step for step in tried if step is not None]
            about = {"campaign": name, "model": model, "environment": environment}
            if len(steps) > 1:
                found += [about | row for row in _of_sweep(load, steps)]
    return table_of(COLUMNS, found)


def _means(cells: pd.DataFrame) -> dict[tuple[str, Cell], dict[str, float]]:
    """Campaign and cell to the means of `_METRICS` there. In flight are, by Little's law, the requests that are
    completed in the time of one."""
    wanted = cells[cells["metric"].isin([*_METRICS, LATENCY])]
    found: dict[tuple[str, Cell], dict[str, float]] = {}
    for row in rows(wanted):
        found.setdefault((row.campaign, row.cell), {})[row.metric] = row.mean
    for means in found.values():
        if SERVED in means and LATENCY in means:
            means["in_flight"] = means[SERVED] * means[LATENCY] / 1000
    return found


def in_order(found: Iterable[TableRow]) -> list[TableRow]:
    """The rows of one load and limit as they are ranked: before the ranking, in no order of their own, those that bear
    the highest rate of all; behind it those that cannot be placed."""
    known = list(found)
    highest = max((row.rates[-1] for row in known), default=0.0)

    def place(row: TableRow) -> tuple[bool, float, float]:
        # Of those that bear the same rate, the one whose users wait least comes first.
        waits = 0.0 if row.at_least else row.ttft_p95_ms
        return not is_placed(row, highest), -(row.rate or 0.0), waits

    return sorted(known, key=place)


def is_placed(row: TableRow, highest: float) -> bool:
    """Whether a sweep has a place among others: one that ended early, below the highest rate of all, may bear more."""
    ended_early = row.at_least and row.rates[-1] < highest
    return row.text != NOT_RANKED and not ended_early


def _sweeps(
    reviewed: ReviewedCampaign,
) -> dict[_Sweep, dict[float, list[Cell]]]:
    """Each sweep with the cells at each of its rates. The number of requests is no part of a load: at a higher rate a
    sweep sends more."""
    sweeps: dict[_Sweep, dict[float, list[Cell]]] = {}
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
    rate: float,
    cells: Mapping[Cell, Mapping[str, float]],
    reviewed: ReviewedCampaign,
) -> RateStep | None:
    """The step of a rate; None where no cell at it has both percentiles."""
    known = [
        cell
        for cell, means in cells.items()
        if {"ttft_p95_ms", "tpot_p95_ms"} <= means.keys()
    ]
    if not known:
        return None
    figures = {}
    for name, worse in _METRICS.items():
        values = [cells[cell][name] for cell in known if name in cells[cell]]
        if values:
            figures[name] = worse(values)
    records = [run.record for cell in known for run in reviewed.counted[cell]]
    return RateStep(
        rate=rate,
        workload=known[0][2],
        figures=figures,
        notes=(
            next(filter(None, map(answers_apart, records)), ""),
            next(filter(None, map(emptied_queue, records)), ""),
        ),
    )


def _of_sweep(load: Load, steps: Sequence[RateStep]) -> Iterator[dict[str, Any]]:
    """The capacity at each limit."""
    words = [lengths_name(load)]
    if load.burstiness is not None:
        words.append(f"burstiness {load.burstiness:g}")
    if load.in_flight is not None:
        words.append(f"at most {load.in_flight:,} at once")
    for limit in LIMITS_SECONDS:
        held = _held(steps, limit)
        decisive = steps[: len(held) + 1]
        other = next((step for step in decisive if step.notes[0]), None)
        if other is not None:
            held = []
        best = held[-1] if held else None
        shown = best or other or steps[0]
        yield shown.told | {
            "load": ", ".join(filter(None, words)),
            "limit_seconds": limit,
            "limit_tpot_ms": LIMIT_TPOT_MS,
            "rate": None if best is None else best.rate,
            "at_least": best is steps[-1],
            "text": NOT_RANKED if other else _text(best, steps),
            "rates": tuple(step.rate for step in steps),
        }


def _held(steps: Sequence[RateStep], limit_seconds: float) -> list[RateStep]:
    """The steps before the first one that does not hold."""
    return list(takewhile(lambda step: step.holds(limit_seconds), steps))


def _text(best: RateStep | None, steps: Sequence[RateStep]) -> str:
    """`0.7`; `limit not reached (up to 1.0)` where no measured rate was too high, `below 0.1` where each was."""
    if best is None:
        return f"below {steps[0].rate:g}"
    if best is steps[-1]:
        return f"limit not reached (up to {best.rate})"
    return f"{best.rate:g}"
