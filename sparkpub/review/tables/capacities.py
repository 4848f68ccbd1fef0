"""The table of capacities: how many requests a second a server bears before its users wait too long.

In an open loop requests arrive at a rate, whether or not the server keeps up. Below saturation its output throughput is
what arrives, so it ranks nothing. What ranks is the highest rate that holds: the 95th percentiles of the time to first
token and of the time per output token are within their limits, at most 1 % of the requests fail, and every lower rate
that was measured holds, too. Both times decide, as in MLPerf's server scenario and in the goodput of vLLM, AIPerf and
DistServe: a server that takes all requests at once answers first tokens in time, and none of its users can read.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from sparkpub.plan.requested import load_of
from sparkpub.record.load import Load
from sparkpub.record.record import Record
from sparkpub.record.text import SPACE
from sparkpub.review.checks.rules import ANSWERS, DRAINED, breaches
from sparkpub.review.names import lengths_name
from sparkpub.review.reviewed import ReviewedCampaign
from sparkpub.review.tables.cells import CELL
from sparkpub.review.tables.column import Columns, TableRow, columns, shared, table

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
    **shared("campaign", "model", "environment"),
    **columns(
        "text",
        load="What was asked for, without the rate, in words",
    ),
    **columns(
        "number",
        limit_seconds="How long users may wait for the first token",
        rate="Requests per second at the highest rate that holds; empty where the lowest does not",
    ),
    **columns(
        "boolean",
        at_least="Whether the highest rate that was measured holds: the capacity may be higher",
    ),
    **columns(
        "text",
        text="The rate for readers: 0.7, limit not reached (up to 1.0), below 0.1, not ranked",
    ),
    **columns(
        "number",
        ttft_p95_ms="95th percentile of the time to first token at that rate, else at the lowest",
        tpot_p95_ms="95th percentile of the time per output token there",
        served_req_s="Requests per second that were completed there",
        in_flight="Requests in flight there on average: those completed times their mean latency",
        user_tok_s="Tokens per second for each user there: 1 by the mean time per output token",
        output_throughput_tok_s="Output throughput there",
    ),
    **columns(
        "text",
        workload="Key of a workload with that rate, else with the lowest",
    ),
    **columns(
        "list",
        rates="The rates that were measured, rising",
    ),
    **columns(
        "text",
        note="What readers have to know of the measurement at that rate",
    ),
}
_METRICS = {
    "ttft_p95_ms": "max",
    "tpot_p95_ms": "max",
    "failed_requests_percent": "max",
    SERVED: "min",
    "in_flight": "max",
    "tpot_mean_ms": "max",
    "output_throughput_tok_s": "min",
}
"""What decides, and what is told beside it, with the worse of two values."""
_RATE = re.compile(r"-rate[\d.]+")
"""The rate in the key of an imported workload."""
_SWEEP = ["campaign", "model", "environment", "without_rate"]


def capacities(
    cells: pd.DataFrame, campaigns: Mapping[str, ReviewedCampaign]
) -> pd.DataFrame:
    """The capacity of every sweep over at least two arrival rates, at each limit. A rate without one of the two
    percentiles says nothing of both limits, and is left out."""
    found: list[dict[str, Any]] = []
    tried = _at_rates(cells, campaigns)
    if not tried.empty:
        worst = dict.fromkeys(("workload", "apart", "emptied"), "first") | _METRICS
        steps = tried.groupby([*_SWEEP, "rate"], sort=False).agg(worst).reset_index()
        for key, sweep in steps.groupby(_SWEEP, sort=False):
            about = dict(zip(_SWEEP, key, strict=True))
            if len(sweep) > 1:
                rising = sweep.sort_values("rate", ignore_index=True)
                found += [about | _at_limit(rising, limit) for limit in LIMITS_SECONDS]
    for row in found:
        row["load"] = _in_words(row["without_rate"])
    return table(COLUMNS, found)


def _at_rates(
    cells: pd.DataFrame, campaigns: Mapping[str, ReviewedCampaign]
) -> pd.DataFrame:
    """The cells whose requests arrived at a rate, with the means of `_METRICS` there and what is wrong with them. In
    flight are, by Little's law, the requests that are completed in the time of one."""
    wide = cells[cells["metric"].isin([*_METRICS, LATENCY])].pivot(
        index=CELL, columns="metric", values="mean"
    )
    wide = wide.reindex(columns=[*_METRICS, LATENCY])
    wide["in_flight"] = wide[SERVED] * wide[LATENCY] / 1000
    found: list[dict[str, Any]] = []
    records: list[Record] = []
    for name, reviewed in campaigns.items():
        for cell, runs in reviewed.counted.items():
            load = load_of(runs[0].record) if runs else None
            if load is None or load.request_rate is None:
                continue
            # The number of requests is no part of a load: at a higher rate a sweep sends more.
            named = _RATE.sub("", load.named)
            about: dict[str, Any] = dict(zip(CELL, (name, *cell), strict=True))
            about["without_rate"] = replace(load, request_rate=None, named=named)
            about["rate"] = load.request_rate
            about["runs"] = range(len(records), len(records) + len(runs))
            records += [run.record for run in runs]
            found.append(about)
    if not found:
        return pd.DataFrame()
    wrong = zip(("apart", "emptied"), breaches(records, ANSWERS, DRAINED), strict=True)
    for name, broken in wrong:
        for about in found:
            about[name] = next(
                (broken[run] for run in about["runs"] if run in broken), None
            )
    each = pd.DataFrame(found).join(wide, on=CELL)
    return each.dropna(subset=["ttft_p95_ms", "tpot_p95_ms"])


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


def _at_limit(steps: pd.DataFrame, limit_seconds: float) -> dict[str, Any]:
    """The capacity of a sweep, of which `steps` are the rates, rising: the last before the first that does not hold."""
    holds = (
        (steps["ttft_p95_ms"] <= 1000 * limit_seconds)
        & (steps["tpot_p95_ms"] <= LIMIT_TPOT_MS)
        & ~(steps["failed_requests_percent"] > MOST_FAILED_PERCENT)
    )
    rates = steps["rate"].tolist()
    held = int(holds.cumprod().sum())
    best: float | None = rates[held - 1]
    shown, text = held - 1, f"{best:g}"
    if held == len(rates):
        text = f"limit not reached (up to {best})"
    if held == 0:
        best, shown, text = None, 0, f"below {rates[0]:g}"
    apart = np.flatnonzero(steps["apart"][: held + 1].notna())
    if len(apart):
        best, shown, text = None, apart[0], NOT_RANKED
    step = steps.iloc[shown]
    notes = step[["apart", "emptied"]].dropna()
    return {
        **step,
        "served_req_s": step[SERVED],
        "user_tok_s": 1000 / step["tpot_mean_ms"],
        "limit_seconds": limit_seconds,
        "rate": best,
        "at_least": best == rates[-1],
        "text": text,
        "rates": tuple(rates),
        "note": "; ".join(notes) or None,
    }


def _in_words(load: Load) -> str:
    words = [lengths_name(load)]
    if load.burstiness is not None:
        words.append(f"burstiness {load.burstiness:g}")
    if load.in_flight is not None:
        words.append(f"at most {load.in_flight:,} at once")
    return ", ".join(filter(None, words))
