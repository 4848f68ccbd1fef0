"""The table of cells: one row per metric of a cell, the runs that count described; and the same of any other rows.

A selection is a mask on a table of runs, whose rows stand in order of time:

    rows = runs[runs["counts"] & (runs["metric"] == "ttft_p50_ms")]
    summary(rows, ["model", "environment"])   # a row for each: n, mean, sd, ..., ci95, n_effective, error and df

A trend is worked out for primary metrics and for memory; its p-values are corrected (Holm) over the primary metrics of
a campaign.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from sparkpub.record.metrics import Metric
from sparkpub.review.reviewed import Include, ReviewedCampaign
from sparkpub.review.statistics.bootstrap import bootstrap
from sparkpub.review.statistics.estimate import (
    Estimate,
    Floats,
    describe,
    holm,
    over,
)
from sparkpub.review.statistics.order import Units, by_unit, server_blocks
from sparkpub.review.statistics.series import trends
from sparkpub.review.tables.column import (
    Columns,
    Places,
    by_size,
    columns,
    groups,
    interval,
    shared,
    table,
    texts,
)

Family = Literal["primary", "secondary"]

CELL = ["campaign", "model", "environment", "workload"]
_BOOTSTRAP = ("ci95_bootstrap_low", "ci95_bootstrap_high")
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
        trend_inflation="Factor on the test's variance where neighbours are alike (Hamed-Rao)",
    ),
    **columns(
        "count",
        trend_n="Runs in which a trend was looked for; empty where none was",
    ),
    **columns(
        "list",
        runs="Ids of the runs, in order of time",
        machines="Ids of the machines, in a campaign that ran on several",
        n_by_machine="Runs on each of them",
    ),
}


def cells(
    runs: pd.DataFrame,
    campaigns: Mapping[str, ReviewedCampaign],
    include: Include = "counted",
    *,
    resampled: bool = True,
) -> pd.DataFrame:
    """Every metric of every cell of the table `runs` that has values, cells in the order of the matrix. Unless they are
    `resampled`, the bootstrap is empty: it takes a third of the time."""
    rows = in_matrix_order(rows_with_values(runs, include), campaigns)
    parts = groups(rows, [*CELL, "metric"])
    if not parts:
        return table(COLUMNS, {name: [] for name in COLUMNS})
    about = about_metrics(rows.iloc[[part[0] for part in parts]], campaigns)
    columns = _described(rows, parts) | about | _members(rows, parts, campaigns)
    columns["cv_percent"][columns["unit"] == "°C"] = np.nan  # no true zero
    columns |= _trends(rows, parts, about, campaigns)
    columns |= dict.fromkeys(_BOOTSTRAP, np.full(len(parts), np.nan))
    columns |= _resampled(rows, parts) if resampled else {}
    return table(COLUMNS, columns)


def summary(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Rows of a table of runs that have a value described, a row for each combination of the columns `by`, in the order
    met: these columns, those of `COLUMNS` from `n` to `n_effective` but for the bootstrap, and `error` and `df` of the
    mean.

    Where runs shared servers, the error of their mean comes from the servers. Where they ran on several machines each
    of these counts once, with its own error: the interval holds for machines like these, and the spread is that within
    them."""
    parts = groups(rows, by)
    first = rows.iloc[[part[0] for part in parts]][list(by)]
    return pd.concat(
        [first.reset_index(drop=True), pd.DataFrame(_described(rows, parts))],
        axis="columns",
    )


def rows_with_values(runs: pd.DataFrame, include: Include) -> pd.DataFrame:
    """The rows of a table of runs that have a value, of those that count or of all."""
    return runs[runs["value"].notna() if include == "all" else runs["counts"]]


def in_matrix_order(
    rows: pd.DataFrame, campaigns: Mapping[str, ReviewedCampaign]
) -> pd.DataFrame:
    """Rows by their cells in the order of each campaign's matrix, those of a cell in order of time."""
    order: dict[tuple[str, ...], int] = {}
    for name, reviewed in campaigns.items():
        for cell in reviewed.recorded:
            order[name, *cell] = len(order)
    places = np.empty(len(rows), dtype=np.int64)
    columns = [rows[name].to_numpy(object) for name in CELL]
    for part in groups(rows, CELL):
        places[part] = order[tuple(column[part[0]] for column in columns)]
    return rows.iloc[np.argsort(places, kind="stable")]


def about_metrics(
    rows: pd.DataFrame, campaigns: Mapping[str, ReviewedCampaign]
) -> dict[str, Any]:
    """What rows are about, by column: cell, metric, unit and family."""
    about = {name: texts(rows[name]) for name in (*CELL, "metric", "unit")}
    pairs = list(zip(about["campaign"], about["metric"], strict=True))
    known = {
        (name, metric): family_of(
            campaigns[name].campaign.metrics[metric], campaigns[name]
        )
        for name, metric in dict.fromkeys(pairs)
    }
    return {**about, "family": np.array([known[pair] for pair in pairs], dtype=object)}


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
        answers = not any(
            name in reviewed.campaign.metrics for name in metric.derived_from
        )
    else:
        answers = metric.role == "primary"
    if answers:
        return "primary"
    return "secondary"


def levelled(rows: pd.DataFrame, parts: Sequence[Places]) -> Floats:
    """The values of rows, the machines of each part brought to one level: from each the distance of its machine's mean
    from the mean of all is taken. What is left is what varies within machines."""
    values = rows["value"].to_numpy()
    found = values.copy()
    for number, machines in _on_several_machines(rows, parts):
        for mine in machines:
            found[mine] += values[parts[number]].mean() - values[mine].mean()
    return found


def _on_several_machines(
    rows: pd.DataFrame, parts: Sequence[Places]
) -> list[tuple[int, list[Places]]]:
    """The parts whose runs ran on several machines, by number, with the places of each machine, the first one used
    first."""
    machines = rows["machine"].cat.codes.to_numpy()
    found = []
    for number, part in enumerate(parts):
        mine = machines[part]
        if (mine != mine[0]).any():
            names = dict.fromkeys(mine.tolist())
            found.append((number, [part[mine == name] for name in names]))
    return found


def _on_shared_servers(
    rows: pd.DataFrame, parts: Sequence[Places]
) -> list[tuple[int, Units]]:
    """The parts of which several runs were served by one server, by number, and their runs by server."""
    servers = texts(rows["server"])
    if not servers.any():
        return []
    units = [
        (number, server_blocks(servers[part])) for number, part in enumerate(parts)
    ]
    return [(number, each) for number, each in units if each]


def _described(rows: pd.DataFrame, parts: Sequence[Places]) -> dict[str, Any]:
    """The columns of `summary` for each part of the rows."""
    values = rows["value"].to_numpy()
    samples = [values[part] for part in parts]
    columns = by_size(samples, describe)
    for number, units in _on_shared_servers(rows, parts):
        between = describe(by_unit(samples[number][np.newaxis], units))
        for name in ("ci95_low", "ci95_high", "n_effective", "error", "df"):
            columns[name][number] = between[name][0]
        columns["autocorrelation"][number] = np.nan
    for number, machines in _on_several_machines(rows, parts):
        for name, value in _over_machines([values[mine] for mine in machines]).items():
            columns[name][number] = value
    return columns


def _over_machines(within: Sequence[Floats]) -> dict[str, Any]:
    """What the values of several machines show, where each machine counts once; `within` are those of each, in run
    order. There is no interval where one of them has none."""
    parts = [describe(values[np.newaxis]) for values in within]
    known = [
        Estimate(*(part[name].item() for name in ("mean", "error", "df")))
        for part in parts
        if not np.isnan(part["ci95_low"]).any()
    ]
    mean = Estimate(np.concatenate(within).mean(), np.nan, np.nan)
    if len(known) == len(parts):
        mean = over(known)
    low, high = mean.ends()
    # Of n runs n - 1 distances from their machine's mean are free.
    apart = np.concatenate([values - values.mean() for values in within])
    df = len(apart) - len(within)
    sd = np.sqrt((apart**2).sum() / df) if df else np.nan
    return {
        "mean": mean.value,
        "sd": sd,
        "cv_percent": 100 * sd / abs(mean.value) if mean.value else np.nan,
        "ci95_low": low,
        "ci95_high": high,
        "autocorrelation": np.nan,
        "n_effective": sum(part["n_effective"].item() for part in parts),
        "error": mean.error,
        "df": mean.df,
    }


def _members(
    rows: pd.DataFrame,
    parts: Sequence[Places],
    campaigns: Mapping[str, ReviewedCampaign],
) -> dict[str, list[tuple[Any, ...]]]:
    """The runs of each cell and, in a campaign that ran on several machines, its machines."""
    runs, machines, names = (
        texts(rows[name]) for name in ("run", "machine", "campaign")
    )
    several = {
        name for name, reviewed in campaigns.items() if len(reviewed.machines) > 1
    }
    each = [
        Counter(machines[part] if names[part[0]] in several else ()) for part in parts
    ]
    return {
        "runs": [tuple(runs[part]) for part in parts],
        "machines": [tuple(counts) for counts in each],
        "n_by_machine": [tuple(counts.values()) for counts in each],
    }


def _resampled(rows: pd.DataFrame, parts: Sequence[Places]) -> dict[str, Any]:
    """The bootstrap-t intervals of cells whose runs are independent: on one machine, and each with its server."""
    values = rows["value"].to_numpy()
    found = by_size([values[part] for part in parts], bootstrap)
    apart = (*_on_several_machines(rows, parts), *_on_shared_servers(rows, parts))
    for column in found.values():
        column[[number for number, _ in apart]] = np.nan
    return found


def _trends(
    rows: pd.DataFrame,
    parts: Sequence[Places],
    about: Mapping[str, Any],
    campaigns: Mapping[str, ReviewedCampaign],
) -> dict[str, Any]:
    """The trend of primary metrics and of memory in run order, within machines, and its p-values with Holm's correction
    over the primary metrics of each campaign."""
    names = zip(about["campaign"], about["metric"], strict=True)
    memory = [campaigns[name].campaign.metrics[of].memory_of for name, of in names]
    primary = about["family"] == "primary"
    is_memory = np.array([of is not None for of in memory], dtype=bool)
    wanted = np.flatnonzero(primary | is_memory).tolist()
    values = levelled(rows, parts)
    found = by_size([values[parts[number]] for number in wanted], trends)
    columns = {}
    for name in ("n", "slope", "p_value", "inflation", "p_adjusted"):
        column = columns[f"trend_{name}"] = np.full(len(parts), np.nan)
        if name in found:
            column[wanted] = found[name]
    columns["trend_n"][wanted] = [len(parts[number]) for number in wanted]
    for campaign in dict.fromkeys(about["campaign"]):
        mine = np.flatnonzero(primary & (about["campaign"] == campaign))
        p_values = columns["trend_p_value"][mine]
        columns["trend_p_adjusted"][mine] = holm(p_values)
    return columns
