"""The table of repeats: one row per metric of each cell that an earlier campaign has, too.

Time is what the campaigns differ in, so blocks of time are no fault. The margin is the methodology's 5 %.
"""

from collections.abc import Iterator

import pandas as pd

from sparkpub.review.measured import Measured
from sparkpub.review.reviewed import Include, ReviewedCampaign
from sparkpub.review.statistics.compare import compare
from sparkpub.review.tables.cells import family_of
from sparkpub.review.tables.column import Column, Columns
from sparkpub.review.tables.comparisons import (
    FIGURES,
    Found,
    adjusted,
    compared_table,
)

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
    reviewed: ReviewedCampaign, against: ReviewedCampaign, include: Include = "counted"
) -> pd.DataFrame:
    """Each cell of a campaign against the same cell of an earlier one."""
    return compared_table(COLUMNS, adjusted(list(_found(reviewed, against, include))))


def _found(
    reviewed: ReviewedCampaign, against: ReviewedCampaign, include: Include
) -> Iterator[Found]:
    for cell, series in reviewed.measurements(include):
        earlier = against.series((cell,), series.metric.name, include)
        if earlier is None or not earlier.values:
            continue
        model, environment, workload = cell
        about = {
            "campaign": reviewed.campaign.name,
            "model": model,
            "workload": workload,
            "metric": series.metric.name,
            "unit": series.metric.unit,
            "family": family_of(series.metric, reviewed),
            "against": against.campaign.name,
            "environment": environment,
            "same_specification": _same_specification(series, earlier),
        }
        yield (
            about,
            compare(
                earlier.values,
                series.values,
                order="as-published",
                margin_percent=REPEAT_PERCENT,
                margin_declared=False,
                direction=series.metric.direction,
                unit=series.metric.unit,
            ),
        )


def _same_specification(one: Measured, other: Measured) -> bool | None:
    """Whether all runs of both measured the same; None where a record does not say what it measured."""
    found = {record.specification for record in (*one.records, *other.records)}
    return None if None in found else len(found) == 1
