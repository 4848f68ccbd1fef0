"""The table of cells: one row per metric of a cell, the runs that count described.

A trend is worked out for primary metrics and for memory; its p-values are corrected (Holm) over the primary metrics of
a campaign. Which metrics are primary: see `family_of`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, Literal

import numpy as np
import pandas as pd

from sparkpub.record.metrics import METRICS, Metric
from sparkpub.review.reviewed import Include, ReviewedCampaign
from sparkpub.review.statistics.compare import holm
from sparkpub.review.statistics.describe import (
    bootstrap_many,
    describe_blocks,
    describe_many,
    or_none,
)
from sparkpub.review.statistics.design import server_blocks, server_of
from sparkpub.review.statistics.drift import Trend, trend
from sparkpub.review.statistics.replication import describe_machines, levelled
from sparkpub.review.tables.column import Column, Columns, table

Family = Literal["primary", "secondary"]

_ABOUT = ("campaign", "model", "environment", "workload", "metric", "unit")
CELL = ["campaign", "model", "environment", "workload"]
COLUMNS: Columns = {
    "campaign": Column("text", "The campaign"),
    "model": Column("text", "Key of the model"),
    "environment": Column("text", "Key of the environment"),
    "workload": Column("text", "Key of the workload"),
    "metric": Column("text", "Name of the metric"),
    "unit": Column("text", "Unit of the figures"),
    "family": Column("text", "primary, or secondary for exploratory metrics"),
    "n": Column("integer", "Runs that count"),
    "mean": Column("number", "Their mean; over several machines, each of which counts with its own error"),
    "sd": Column("number", "Standard deviation, by n - 1; over several machines that within them"),
    "sd_population": Column("number", "Standard deviation, by n"),
    "min": Column("number", "Smallest value"),
    "max": Column("number", "Largest value"),
    "p50": Column("number", "Median"),
    "p95": Column("number", "95th percentile"),
    "p99": Column("number", "99th percentile"),
    "p95_supported": Column("boolean", "Whether n is large enough for the 95th percentile"),
    "p99_supported": Column("boolean", "Whether n is large enough for the 99th percentile"),
    "cv_percent": Column("number", "Standard deviation in percent of the mean"),
    "ci95_low": Column("number", "Lower end of the 95 % interval of the mean"),
    "ci95_high": Column("number", "Upper end of it"),
    "ci95_bootstrap_low": Column("number", "Lower end of the 95 % bootstrap-t interval"),
    "ci95_bootstrap_high": Column("number", "Upper end of it"),
    "autocorrelation": Column("number", "Lag-1 autocorrelation in run order"),
    "n_effective": Column("number", "What n is worth if neighbouring runs are alike or shared a server"),
    "trend_slope": Column("number", "Change per run, in the unit of the metric (Theil-Sen)"),
    "trend_p_value": Column("number", "p of no trend (Mann-Kendall)"),
    "trend_p_adjusted": Column("number", "The same, corrected over the primary metrics"),
    "trend_inflation": Column("number", "Factor on the test's variance where neighbours are alike (Hamed-Rao)"),
    "trend_spearman": Column("number", "Rank correlation with run order"),
    "trend_lag1": Column("number", "Autocorrelation of neighbours, where a trend was looked for"),
    "trend_n": Column("count", "Runs in which a trend was looked for; empty where none was"),
    "runs": Column("list", "Ids of the runs, in order of time"),
    "machines": Column("list", "Ids of the machines, in a campaign that ran on several"),
    "n_by_machine": Column("list", "Runs on each of them"),
}  # fmt: skip


def family_of(metric: Metric, reviewed: ReviewedCampaign) -> Family:
    """The family that a metric's tests belong to: corrected ones, or exploratory ones.

    A matrix that names its `primary` metrics decides. Else tests that answer a question of the study are primary;
    metrics that restate another (`derived_from`), that no direction makes better, that describe the machine's state, or
    that are further summaries of a distribution (its median and P99 stay primary) are secondary.
    """
    matrix = reviewed.campaign.matrix
    if matrix is not None and matrix.primary:
        answers = metric.name in matrix.primary
    elif metric.role == "derived":
        answers = not any(name in reviewed.metrics for name in metric.derived_from)
    else:
        answers = metric.role == "primary"
    if answers:
        return "primary"
    return "secondary"


def cells(
    runs: pd.DataFrame,
    campaigns: Mapping[str, ReviewedCampaign],
    include: Include = "counted",
) -> pd.DataFrame:
    """Every metric of every cell of the table `runs` that has values, cells in the order of the matrix."""
    chosen = included(runs, include)
    if chosen.empty:
        return table(COLUMNS, {name: [] for name in COLUMNS})
    chosen = chosen.iloc[np.argsort(_places(chosen, campaigns), kind="stable")]
    cell = chosen.groupby([*CELL, "metric"], observed=True, sort=False).ngroup()
    chosen = chosen.iloc[np.argsort(cell.to_numpy(), kind="stable")]
    sizes = np.bincount(cell)
    starts = np.cumsum(sizes) - sizes
    first = chosen.iloc[starts]
    columns: dict[str, Any] = {name: first[name].to_numpy() for name in _ABOUT}
    columns["family"] = _families(first, campaigns)
    columns |= _described(chosen["value"].to_numpy(), sizes)
    columns |= _members(chosen, sizes, campaigns)
    _describe_by_server(columns, chosen, starts, campaigns)
    _describe_over_machines(columns, chosen, starts)
    columns["cv_percent"][columns["unit"] == "°C"] = np.nan  # no true zero
    columns |= _trends(columns, chosen, starts, campaigns)
    return table(COLUMNS, columns)


def included(runs: pd.DataFrame, include: Include) -> pd.DataFrame:
    """The rows of a table of runs that have a value and are asked for."""
    if include == "all":
        return runs[runs["value"].notna()]
    return runs[runs["counts"]]


def _places(chosen: pd.DataFrame, campaigns: Mapping[str, ReviewedCampaign]) -> Any:
    """Where the cell of each row stands in the order of its campaign's matrix, campaigns one after the other."""
    order: dict[tuple[str, ...], int] = {}
    for name, reviewed in campaigns.items():
        for cell in reviewed.recorded:
            order[name, *cell] = len(order)
    number = chosen.groupby(CELL, observed=True, sort=False).ngroup().to_numpy()
    _, first = np.unique(number, return_index=True)
    keys = chosen[CELL].iloc[first].itertuples(index=False, name=None)
    places = np.array([order[key] for key in keys], dtype=np.int64)
    return places[number]


def _families(
    first: pd.DataFrame, campaigns: Mapping[str, ReviewedCampaign]
) -> list[Family]:
    """The family of each cell's metric."""
    known: dict[tuple[str, str], Family] = {}
    found = []
    for name, metric in zip(first["campaign"], first["metric"], strict=True):
        if (name, metric) not in known:
            reviewed = campaigns[name]
            known[name, metric] = family_of(_metric(metric, reviewed), reviewed)
        found.append(known[name, metric])
    return found


def _metric(name: str, reviewed: ReviewedCampaign) -> Metric:
    """A metric of a campaign's records, or one that is derived from them."""
    return reviewed.metrics.get(name) or METRICS[name]


def _described(values: Any, sizes: Any) -> dict[str, Any]:
    """The description of each cell; the values of a cell stand together, and `sizes` says how many they are.

    Cells of one size are described at once.
    """
    starts = np.cumsum(sizes) - sizes
    columns: dict[str, Any] = {}
    for n in np.unique(sizes):
        places = np.flatnonzero(sizes == n)
        block = values[starts[places][:, np.newaxis] + np.arange(n)]
        found = describe_many(block)
        low, high = bootstrap_many(block)
        found |= {"ci95_bootstrap_low": low, "ci95_bootstrap_high": high}
        for name, column in found.items():
            if name not in columns:
                columns[name] = np.empty(len(sizes), dtype=column.dtype)
            columns[name][places] = column
    return columns


def _members(
    chosen: pd.DataFrame, sizes: Any, campaigns: Mapping[str, ReviewedCampaign]
) -> dict[str, list[tuple[Any, ...]]]:
    """The runs of each cell and, in a campaign that ran on several machines, its machines."""
    runs, machines = _texts(chosen["run"]), _texts(chosen["machine"])
    several = {
        name for name, reviewed in campaigns.items() if len(reviewed.machines) > 1
    }
    names = _texts(chosen["campaign"])
    found: dict[str, list[tuple[Any, ...]]] = {
        "runs": [],
        "machines": [],
        "n_by_machine": [],
    }
    start = 0
    for size in sizes:
        end = start + size
        found["runs"].append(tuple(runs[start:end]))
        each: Counter[str] = Counter()
        if names[start] in several:
            each = Counter(machines[start:end])
        found["machines"].append(tuple(each))
        found["n_by_machine"].append(tuple(each.values()))
        start = end
    return found


def _texts(column: "pd.Series[Any]") -> Any:
    """A column of text as an array, empty where there is none."""
    return column.astype("object").fillna("").to_numpy()


def _by_machine(machines: Any, values: Any) -> dict[str, list[float]]:
    """The values of each machine, the first one used first."""
    parts: dict[str, list[float]] = {}
    for machine, value in zip(machines, values, strict=True):
        parts.setdefault(machine, []).append(value)
    return parts


def _describe_over_machines(
    columns: dict[str, Any], chosen: pd.DataFrame, starts: Any
) -> None:
    """Describe the cells that ran on several machines again, so that each machine counts once."""
    machines, values = _texts(chosen["machine"]), chosen["value"].to_numpy()
    for place, each in enumerate(columns["n_by_machine"]):
        if len(each) < 2:
            continue
        part = slice(starts[place], starts[place] + columns["n"][place])
        parts = _by_machine(machines[part], values[part])
        found = asdict(describe_machines(list(parts.values())))
        for name in ("ci95", "ci95_bootstrap"):
            low, high = found.pop(name) or (None, None)
            found |= {f"{name}_low": low, f"{name}_high": high}
        for name, value in found.items():
            columns[name][place] = np.nan if value is None else value


def _describe_by_server(
    columns: dict[str, Any],
    chosen: pd.DataFrame,
    starts: Any,
    campaigns: Mapping[str, ReviewedCampaign],
) -> None:
    """Describe the cells whose runs shared servers again, so that the error of their mean comes from the servers."""
    servers = {
        record.run_id: server
        for reviewed in campaigns.values()
        for record in reviewed.campaign.records
        if (server := server_of(record)) is not None
    }
    if not servers:
        return
    values = chosen["value"].to_numpy()
    for place, runs in enumerate(columns["runs"]):
        blocks = server_blocks([servers.get(run) for run in runs])
        if not blocks:
            continue
        mine = values[starts[place] : starts[place] + columns["n"][place]]
        found = describe_blocks(mine.tolist(), blocks)
        low, high = found.ci95 or (np.nan, np.nan)
        columns["ci95_low"][place], columns["ci95_high"][place] = low, high
        columns["ci95_bootstrap_low"][place] = np.nan
        columns["ci95_bootstrap_high"][place] = np.nan
        columns["autocorrelation"][place] = np.nan
        columns["n_effective"][place] = found.n_effective


def _trends(
    columns: dict[str, Any],
    chosen: pd.DataFrame,
    starts: Any,
    campaigns: Mapping[str, ReviewedCampaign],
) -> dict[str, Any]:
    """The trend of primary metrics and of memory in run order, within machines."""
    machines, values = _texts(chosen["machine"]), chosen["value"].to_numpy()
    names = [item.name for item in fields(Trend)]
    found = {f"trend_{name}": np.full(len(starts), np.nan) for name in names}
    for place, name in enumerate(columns["metric"]):
        metric = _metric(name, campaigns[columns["campaign"][place]])
        if columns["family"][place] != "primary" and metric.memory_of is None:
            continue
        part = slice(starts[place], starts[place] + columns["n"][place])
        mine = values[part]
        if len(columns["n_by_machine"][place]) > 1:
            mine = levelled(mine, machines[part])
        for figure, value in asdict(trend(mine.tolist())).items():
            found[f"trend_{figure}"][place] = np.nan if value is None else value
    return found | {"trend_p_adjusted": _adjusted(columns, found["trend_p_value"])}


def _adjusted(columns: dict[str, Any], p_values: Any) -> Any:
    """The p-values of trends with Holm's correction over the primary metrics of each campaign."""
    adjusted = np.full(len(p_values), np.nan)
    primary = np.array([family == "primary" for family in columns["family"]], bool)
    for campaign in dict.fromkeys(columns["campaign"]):
        places = np.flatnonzero(primary & (columns["campaign"] == campaign))
        corrected = holm([or_none(p_values[place]) for place in places])
        for place, p_value in zip(places, corrected, strict=True):
            adjusted[place] = np.nan if p_value is None else p_value
    return adjusted
