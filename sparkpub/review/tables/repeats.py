"""The table of repeats: one row per metric of each cell that an earlier campaign has, too.

Time is what the campaigns differ in, so blocks of time are no fault. The margin is the methodology's 5 %.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from sparkpub.review.reviewed import Include, ReviewedCampaign
from sparkpub.review.tables.column import Column, Columns
from sparkpub.review.tables.comparisons import (
    FIGURES,
    Margin,
    Pair,
    adjusted,
    compare_pairs,
    compared_table,
)
from sparkpub.review.tables.values import Values, rows_with_values

REPEAT_PERCENT = 5.0
"""The methodology's margin for a repeated campaign."""
COLUMNS: Columns = {
    "campaign": Column("text", "The campaign"),
    "model": Column("text", "Key of the model"),
    "workload": Column("text", "Key of the workload"),
    "metric": Column("text", "Name of the metric"),
    "unit": Column("text", "Unit of means and differences"),
    "family": Column("text", "primary, or secondary for exploratory metrics"),
    "against": Column("text", "The earlier campaign"),
    "environment": Column("text", "Key of the environment"),
    "same_specification": Column("answer", "Whether both measured the same; empty where records do not say"),
    **FIGURES,
}  # fmt: skip


def repeats(
    runs: pd.DataFrame,
    campaigns: Mapping[str, ReviewedCampaign],
    against: str,
    include: Include = "counted",
) -> pd.DataFrame:
    """Each cell of a table of runs against the same cell of an earlier campaign, whose runs are there, too."""
    values = Values.of_cells(rows_with_values(runs, include), campaigns)
    pairs = _pairs(values, against)
    margins = dict.fromkeys(campaigns, Margin(REPEAT_PERCENT, declared=False))
    found = compare_pairs(values, pairs, margins, in_rounds=False)
    about = [_about(pair, values) for pair in pairs]
    return compared_table(COLUMNS, adjusted(list(zip(about, found, strict=True))))


def _pairs(values: Values, against: str) -> list[Pair]:
    """The same metric of the same cell in the earlier campaign and in the others."""
    names = ("model", "environment", "workload", "metric")
    keys = list(zip(*map(values.about.get, names), strict=True))
    earlier, later = dict[Any, int](), dict[Any, int]()
    for number, campaign in enumerate(values.about["campaign"]):
        side = earlier if campaign == against else later
        side[keys[number]] = number
    return [(earlier[key], number) for key, number in later.items() if key in earlier]


def _about(pair: Pair, values: Values) -> dict[str, Any]:
    """What a row of a repeat is about."""
    earlier, later = pair
    of_cell = ("campaign", "model", "environment", "workload", "metric", "unit")
    return {
        **{name: values.about[name][later] for name in (*of_cell, "family")},
        "against": values.about["campaign"][earlier],
        "same_specification": _same_specification(pair, values),
    }


def _same_specification(pair: Pair, values: Values) -> bool | None:
    """Whether all runs of both measured the same; None where a record does not say what it measured."""
    column = values.column("specification")
    found = {text for number in pair for text in column[values.part(number)]}
    return None if "" in found else len(found) == 1
