"""The table of cells: one row per metric of a cell, the runs that count described; and the same of any other rows.

A selection is a mask on a table of runs, whose rows stand in order of time:

    rows = runs[runs["counts"] & (runs["metric"] == "ttft_p50_ms")]
    summary(rows, ["model", "environment"])   # a row for each: n, mean, sd, ..., ci95, n_effective, error and df

A trend is worked out for primary metrics and for memory; its p-values are corrected (Holm) over the primary metrics of
a campaign.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from sparkpub.record.metrics import Metric
from sparkpub.review.statistics.bootstrap import bootstrap
from sparkpub.review.statistics.estimate import (
    Estimate,
    Floats,
    described,
    mean_of,
    together,
)
from sparkpub.review.statistics.order import by_server, by_unit
from sparkpub.review.statistics.series import trends
from sparkpub.review.tables.column import (
    Columns,
    Places,
    by_size,
    columns,
    corrected,
    groups,
    interval,
    shared,
    table,
    texts,
)

if TYPE_CHECKING:
    from sparkpub.review.reviewed import ReviewedCampaign

Family = Literal["primary", "secondary"]

CELL = ["campaign", "model", "environment", "workload"]
CELL_METRIC = [*CELL, "metric"]
COLUMNS: Columns = {
    **shared(
        "campaign", "model", "environment", "workload", "metric", "unit", "family"
    ),
    **columns(
        "integer",
        n="Runs that count",
    ),
    **columns(
        "number",
        mean="Their mean; over several machines, each of which counts with its own error",
        sd="Standard deviation, by n - 1; over several machines that within them",
        sd_population="Standard deviation, by n",
        min="Smallest value",
        max="Largest value",
        p50="Median",
        p95="95th percentile",
        p99="99th percentile",
    ),
    **columns(
        "boolean",
        p95_supported="Whether n is large enough for the 95th percentile",
        p99_supported="Whether n is large enough for the 99th percentile",
    ),
    **columns(
        "number",
        cv_percent="Standard deviation in percent of the mean",
        error="Standard error of the mean",
        df="Degrees of freedom of the mean's error",
    ),
    **interval(
        ci95="the 95 % interval of the mean",
        ci95_bootstrap="the 95 % bootstrap-t interval",
    ),
    **columns(
        "number",
        autocorrelation="Lag-1 autocorrelation in run order",
        n_effective="What n is worth if neighbouring runs are alike or shared a server",
        trend_slope="Change per run, in the unit of the metric (Theil-Sen)",
        trend_p_value="p of no trend (Mann-Kendall)",
        trend_p_adjusted="The same, corrected over the primary metrics",
    ),
    **columns(
        "list",
        runs="Ids of the runs, in order of time",
        machines="Ids of the machines, in a campaign that ran on several",
        n_by_machine="Runs on each of them",
    ),
}


def cells(reviewed: "ReviewedCampaign") -> pd.DataFrame:
    """Every metric of every cell of a campaign that has values, cells in the order of the matrix."""
    found = plain_cells(reviewed, reviewed.runs)
    ends = by_size([*map(np.array, found["levels"])], bootstrap)
    return table(COLUMNS, found.join(ends[found["is_independent"]]))


def plain_cells(reviewed: "ReviewedCampaign", runs: pd.DataFrame) -> pd.DataFrame:
    """The same of some of its rows without the bootstrap, for which no check asks, and with the values of each cell in
    order of time, machines brought to one level: `levels`."""
    rows, parts, found = by_cell([reviewed], runs)
    found = found.join(_described(rows, parts))
    values = levelled(rows, CELL_METRIC)
    found["levels"] = [tuple(values[part].tolist()) for part in parts]
    found = found.join(_trends(found))
    primary = found[found["family"] == "primary"]
    found["trend_p_adjusted"] = corrected(primary, "trend_p_value", ["family"])
    names = texts(rows["run"])
    found["runs"] = [tuple(names[part]) for part in parts]
    if len(reviewed.machines) < 2:
        found["machines"] = found["n_by_machine"] = [()] * len(found)
    return found


def summary(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Rows of a table of runs that have a value described, a row for each combination of the columns `by`, in the order
    met: these columns, and those of `COLUMNS` from `n` to `n_effective` but for the bootstrap.

    Where runs shared servers, the error of their mean comes from the servers. Where they ran on several machines each
    of these counts once, with its own error: the interval holds for machines like these, and the spread is that within
    them."""
    parts = groups(rows, by)
    first = rows.iloc[[part[0] for part in parts]][list(by)]
    found = first.reset_index(drop=True).join(_described(rows, parts))
    return found.drop(columns="is_independent")


def by_cell(
    campaigns: Sequence["ReviewedCampaign"], runs: pd.DataFrame
) -> tuple[pd.DataFrame, list[Places], pd.DataFrame]:
    """The rows of campaigns' runs that count, by cell in the order of each matrix and then in order of time; where
    those of each metric of a cell stand; and what these are about: cell, metric, unit, family and direction, and
    whether it is of memory."""
    names = [each.campaign.name for each in campaigns]
    pairs = list(zip(names, campaigns, strict=True))
    order = [(name, *cell) for name, each in pairs for cell in each.recorded]
    counted = runs[runs["counts"]]
    places = pd.MultiIndex.from_frame(counted[CELL]).map(
        {cell: place for place, cell in enumerate(order)}
    )
    rows = counted.iloc[np.argsort(places, kind="stable")]
    parts = groups(rows, CELL_METRIC)
    first = rows.iloc[[part[0] for part in parts]]
    about = first[[*CELL_METRIC, "unit"]].astype(object).reset_index(drop=True)
    known = {
        (name, metric.name): (
            family_of(metric, each),
            metric.direction,
            metric.memory_of is not None,
        )
        for name, each in pairs
        for metric in each.campaign.metrics.values()
    }
    keys = zip(about["campaign"], about["metric"], strict=True)
    columns = ["family", "direction", "is_memory"]
    beside = pd.DataFrame([known[key] for key in keys], columns=columns)
    return rows, parts, about.join(beside)


def family_of(metric: Metric, reviewed: "ReviewedCampaign") -> Family:
    """The family that a metric's tests belong to: corrected ones, or exploratory ones.

    A matrix that names its `primary` metrics decides. Else tests that answer a question of the study are primary;
    metrics that restate another (`derived_from`), that no direction makes better, that describe the machine's state, or
    that are further summaries of a distribution (its median and P99 stay primary) are secondary.
    """
    matrix = reviewed.campaign.matrix
    if matrix is not None and matrix.primary:
        answers = metric.name in matrix.primary
    elif metric.role == "derived":
        answers = not set(metric.derived_from) & reviewed.campaign.metrics.keys()
    else:
        answers = metric.role == "primary"
    return "primary" if answers else "secondary"


def levelled(rows: pd.DataFrame, by: Sequence[str]) -> Floats:
    """The values of rows, the machines of each combination of the columns `by` brought to one level: from each the
    distance of its machine's mean from the mean of all is taken. What is left is what varies within machines."""
    of_all, of_machine = (
        rows.groupby(names, observed=True, dropna=False)["value"].transform("mean")
        for names in ([*by], [*by, "machine"])
    )
    found: Floats = (rows["value"] + (of_all - of_machine)).to_numpy()
    return found


def _described(rows: pd.DataFrame, parts: Sequence[Places]) -> pd.DataFrame:
    """The columns of `summary` for each part of the rows, and whether its runs are independent: on one machine, and
    each with its server."""
    values = rows["value"].to_numpy()
    servers, machines = texts(rows["server"]), texts(rows["machine"])
    samples = [values[part] for part in parts]
    units = [
        by_unit(sample, by_server(servers[part])) if any(servers[part]) else sample
        for sample, part in zip(samples, parts, strict=True)
    ]
    found = by_size(samples, described).join(by_size(units, mean_of))
    found["is_independent"] = found["n"] == list(map(len, units))
    on_each = [Counter(machines[part]) for part in parts]
    found["machines"] = list(map(tuple, on_each))
    found["n_by_machine"] = [tuple(count.values()) for count in on_each]
    for number, (part, on) in enumerate(zip(parts, on_each, strict=True)):
        if len(on) > 1:
            within = [part[machines[part] == name] for name in on]
            together = _over_machines(_described(rows, within))
            found.loc[number, list(together)] = list(together.values())
    found.loc[~found["is_independent"], "autocorrelation"] = np.nan
    mean = found["mean"].abs()
    has_zero = rows["unit"].to_numpy()[[part[0] for part in parts]] != "°C"
    found["cv_percent"] = 100 * found["sd"] / mean.where((mean > 0) & has_zero)
    # At least one value lies wholly above the percentile.
    found["p95_supported"], found["p99_supported"] = found["n"] > 20, found["n"] > 100
    return found


def _over_machines(within: pd.DataFrame) -> dict[str, Any]:
    """What several machines, of which each is described, show together: each counts once. There is no interval where
    one of them has none."""
    n, sd = within["n"], within["sd"].fillna(0)
    mean = together(Estimate(*within[["mean", "error", "df"]].to_numpy().T))
    low, high = mean.ends()
    # Of n runs n - 1 distances from their machine's mean are free.
    df = n.sum() - len(n)
    return {
        "mean": mean.value,
        "sd": np.sqrt((sd**2 * (n - 1)).sum() / df) if df else np.nan,
        "ci95_low": low,
        "ci95_high": high,
        "n_effective": within["n_effective"].sum(),
        "error": mean.error,
        "df": mean.df,
        "is_independent": False,
    }


def _trends(found: pd.DataFrame) -> pd.DataFrame:
    """The trend of primary metrics and of memory in run order, within machines."""
    is_wanted = (found["family"] == "primary") | found["is_memory"].astype(bool)
    wanted = found.loc[is_wanted, "levels"]
    of_each = by_size([*map(np.array, wanted)], trends)
    return of_each.set_axis(wanted.index).add_prefix("trend_").reindex(found.index)
