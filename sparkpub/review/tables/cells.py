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
from sparkpub.review.statistics.drift import Trend, trend_many
from sparkpub.review.statistics.replication import describe_machines
from sparkpub.review.tables.column import Column, Columns, table
from sparkpub.review.tables.values import Values, rows_with_values

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
    values = Values.of_cells(rows_with_values(runs, include), campaigns)
    if values.rows.empty:
        return table(COLUMNS, {name: [] for name in COLUMNS})
    columns = described(values) | values.about | _members(values)
    columns["cv_percent"][columns["unit"] == "°C"] = np.nan  # no true zero
    columns |= _resampled(values)
    columns |= _trends(columns, values)
    return table(COLUMNS, columns)


def described(values: Values) -> dict[str, Any]:
    """Every number described: the fields of `Description` but for the bootstrap, a column each. Numbers of one size are
    described at once."""
    columns: dict[str, Any] = {}
    for size in np.unique(values.sizes):
        places = np.flatnonzero(values.sizes == size)
        for name, column in describe_many(values.block(places)).items():
            if name not in columns:
                columns[name] = np.empty(len(values.sizes), dtype=column.dtype)
            columns[name][places] = column
    _describe_by_server(columns, values)
    _describe_over_machines(columns, values)
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
    """Describe the numbers whose runs ran on several machines again, so that each machine counts once."""
    machines = values.column("machine")
    for number, names in values.on_several_machines:
        part = values.part(number)
        mine, ran_on = values.figures[part], machines[part]
        found = asdict(describe_machines([mine[ran_on == name] for name in names]))
        low, high = found.pop("ci95") or (None, None)
        found |= {"ci95_low": low, "ci95_high": high}
        for name, value in found.items():
            columns[name][number] = np.nan if value is None else value


def _describe_by_server(columns: dict[str, Any], values: Values) -> None:
    """Describe the numbers whose runs shared servers again, so that the error of their mean comes from the servers."""
    for number, blocks in values.on_shared_servers:
        figures = values.figures[values.part(number)]
        found = describe_blocks(figures.tolist(), blocks)
        low, high = found.ci95 or (np.nan, np.nan)
        columns["ci95_low"][number], columns["ci95_high"][number] = low, high
        columns["autocorrelation"][number] = np.nan
        columns["n_effective"][number] = found.n_effective


def _resampled(values: Values) -> dict[str, Any]:
    """The bootstrap-t intervals of cells whose runs are independent: on one machine, and each with its server."""
    total = len(values.sizes)
    alone = np.full(total, True)
    for number, _ in (*values.on_several_machines, *values.on_shared_servers):
        alone[number] = False
    low, high = np.full(total, np.nan), np.full(total, np.nan)
    for size in np.unique(values.sizes[alone]):
        places = np.flatnonzero(alone & (values.sizes == size))
        low[places], high[places] = bootstrap_many(values.block(places))
    return {"ci95_bootstrap_low": low, "ci95_bootstrap_high": high}


def trends(values: Values, wanted: Any) -> dict[str, Any]:
    """The fields of `Trend` for the numbers that are wanted, within machines, a column each; NaN for the others."""
    total = len(values.sizes)
    found = {item.name: np.full(total, np.nan) for item in fields(Trend)}
    for size in np.unique(values.sizes[wanted]):
        places = np.flatnonzero(wanted & (values.sizes == size))
        columns = trend_many(values.block(places, values.levelled))
        for name, column in columns.items():
            found[name][places] = column
    return found


def _trends(columns: dict[str, Any], values: Values) -> dict[str, Any]:
    """The trend of primary metrics and of memory in run order."""
    memory = np.array([metric.memory_of is not None for metric in values.metrics], bool)
    wanted = memory | (columns["family"] == "primary")
    found = {f"trend_{name}": each for name, each in trends(values, wanted).items()}
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
