"""The table of cells: one row per metric of a cell, the runs that count described.

A trend is worked out for primary metrics and for memory; its p-values are corrected (Holm) over the primary metrics of
a campaign. Which metrics are primary: see `values.family_of`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import pandas as pd

from sparkpub.review.reviewed import Include, ReviewedCampaign
from sparkpub.review.statistics.compare import holm
from sparkpub.review.statistics.describe import (
    bootstrap_many,
    describe_blocks,
    describe_many,
    or_none,
)
from sparkpub.review.statistics.design import server_blocks
from sparkpub.review.statistics.drift import Trend, trend_many
from sparkpub.review.statistics.replication import describe_machines, levelled
from sparkpub.review.tables.column import Column, Columns, table
from sparkpub.review.tables.values import Values

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


def cells(
    runs: pd.DataFrame,
    campaigns: Mapping[str, ReviewedCampaign],
    include: Include = "counted",
) -> pd.DataFrame:
    """Every metric of every cell of the table `runs` that has values, cells in the order of the matrix."""
    values = Values.of(runs, campaigns, include)
    if values.rows.empty:
        return table(COLUMNS, {name: [] for name in COLUMNS})
    columns = _described(values) | values.about | _members(values)
    _describe_by_server(columns, values)
    _describe_over_machines(columns, values)
    columns["cv_percent"][columns["unit"] == "°C"] = np.nan  # no true zero
    columns |= _trends(columns, values)
    return table(COLUMNS, columns)


def _described(values: Values) -> dict[str, Any]:
    """The description of each cell. Cells of one size are described at once."""
    columns: dict[str, Any] = {}
    for size in np.unique(values.sizes):
        places = np.flatnonzero(values.sizes == size)
        block = values.block(places)
        found = describe_many(block)
        low, high = bootstrap_many(block)
        found |= {"ci95_bootstrap_low": low, "ci95_bootstrap_high": high}
        for name, column in found.items():
            if name not in columns:
                columns[name] = np.empty(len(values.sizes), dtype=column.dtype)
            columns[name][places] = column
    return columns


def _members(values: Values) -> dict[str, list[tuple[Any, ...]]]:
    """The runs of each cell and, in a campaign that ran on several machines, its machines."""
    runs, machines = values.column("run"), values.column("machine")
    several = {
        name
        for name, reviewed in values.campaigns.items()
        if len(reviewed.machines) > 1
    }
    found: dict[str, list[tuple[Any, ...]]] = {
        "runs": [],
        "machines": [],
        "n_by_machine": [],
    }
    for number, campaign in enumerate(values.about["campaign"]):
        part = values.part(number)
        found["runs"].append(tuple(runs[part]))
        each = Counter(machines[part] if campaign in several else ())
        found["machines"].append(tuple(each))
        found["n_by_machine"].append(tuple(each.values()))
    return found


def _describe_over_machines(columns: dict[str, Any], values: Values) -> None:
    """Describe the cells that ran on several machines again, so that each machine counts once."""
    machines = values.column("machine")
    for place, names in enumerate(columns["machines"]):
        if len(names) < 2:
            continue
        part = values.part(place)
        mine, ran_on = values.figures[part], machines[part]
        found = asdict(describe_machines([mine[ran_on == name] for name in names]))
        for name, interval in (("ci95", found.pop("ci95")), ("ci95_bootstrap", None)):
            low, high = interval or (None, None)
            found |= {f"{name}_low": low, f"{name}_high": high}
        for name, value in found.items():
            columns[name][place] = np.nan if value is None else value


def _describe_by_server(columns: dict[str, Any], values: Values) -> None:
    """Describe the cells whose runs shared servers again, so that the error of their mean comes from the servers."""
    servers = values.column("server")
    if not servers.any():
        return
    for place in range(len(values.sizes)):
        part = values.part(place)
        blocks = server_blocks(servers[part])
        if not blocks:
            continue
        found = describe_blocks(values.figures[part].tolist(), blocks)
        low, high = found.ci95 or (np.nan, np.nan)
        columns["ci95_low"][place], columns["ci95_high"][place] = low, high
        columns["ci95_bootstrap_low"][place] = np.nan
        columns["ci95_bootstrap_high"][place] = np.nan
        columns["autocorrelation"][place] = np.nan
        columns["n_effective"][place] = found.n_effective


def _trends(columns: dict[str, Any], values: Values) -> dict[str, Any]:
    """The trend of primary metrics and of memory in run order, within machines."""
    machines, figures = values.column("machine"), values.figures.copy()
    for place, names in enumerate(columns["machines"]):
        if len(names) > 1:
            part = values.part(place)
            figures[part] = levelled(figures[part], machines[part])
    memory = np.array([metric.memory_of is not None for metric in values.metrics], bool)
    wanted = memory | (columns["family"] == "primary")
    total = len(values.sizes)
    found = {f"trend_{item.name}": np.full(total, np.nan) for item in fields(Trend)}
    for size in np.unique(values.sizes[wanted]):
        places = np.flatnonzero(wanted & (values.sizes == size))
        for name, column in trend_many(values.block(places, figures)).items():
            found[f"trend_{name}"][places] = column
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
