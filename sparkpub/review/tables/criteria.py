"""The table of success criteria: the methodology's, applied to each primary metric of a cell or to a whole campaign.

Variation, power and completeness have the limits of the checks that ask for them, repeatability that of `over`.
"""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from sparkpub.review.checks.spread import HIGH_VARIATION_PERCENT
from sparkpub.review.dataset import CampaignData
from sparkpub.review.statistics.estimate import DETECTABLE_PERCENT, WANTED_POWER
from sparkpub.review.tables.column import Columns, TableRow, columns, rows, table
from sparkpub.review.tables.over import REPEAT_PERCENT

COLUMNS: Columns = {
    **columns(
        "text",
        campaign="The campaign",
        criterion="variation, power, repeatability or completeness",
        cell="model/environment/workload, for power the candidate's; empty for a whole campaign",
        metric="Name of the metric",
    ),
    **columns(
        "number",
        value="What is held against the limit",
        threshold="The limit",
    ),
    **columns(
        "answer",
        met="Whether it is met; empty where the data do not decide",
    ),
    **columns(
        "text",
        why="What this rests on",
    ),
}


def criteria(
    campaigns: Iterable[CampaignData],
    cells: pd.DataFrame,
    comparisons: pd.DataFrame,
    repeats: pd.DataFrame,
) -> pd.DataFrame:
    """Every criterion of these campaigns. `repeats` are their cells held against those of an earlier one."""
    found = [_variation(row) for row in _primary(cells[cells["unit"] != "°C"])]
    found += map(_power, _primary(comparisons))
    found += map(_repeatability, _primary(repeats))
    data = list(campaigns)
    for campaign in data if repeats.empty else ():
        why = "no cell of it was compared with a repeat (--against)"
        about = (campaign.name, "repeatability", None, None)
        found.append((*about, None, REPEAT_PERCENT, None, why))
    found += map(_completeness, data)
    return table(COLUMNS, found)


_Criterion = tuple[Any, ...]
"""A row of the table."""


def _primary(found: pd.DataFrame) -> list[TableRow]:
    return rows(found[found["family"] == "primary"])


def _variation(row: TableRow) -> _Criterion:
    """Whether the runs of a cell vary by less than the methodology allows."""
    value, limit = row.cv_percent, HIGH_VARIATION_PERCENT
    met = None if value is None else value < limit
    why = f"coefficient of variation in percent, n = {row.n}"
    about = (row.campaign, "variation", "/".join(row.cell), row.metric)
    return *about, value, limit, met, why


def _power(row: TableRow) -> _Criterion:
    """Whether a comparison would have shown a difference of ten percent."""
    value = row.power_10_percent
    met = None if value is None else value >= WANTED_POWER
    runs = f"n = {row.n_baseline} and {row.n_candidate}"
    why = f"power against {DETECTABLE_PERCENT:g} % at 5 %, {runs}"
    cell = f"{row.model}/{row.candidate}/{row.workload}"
    return row.campaign, "power", cell, row.metric, value, WANTED_POWER, met, why


def _repeatability(row: TableRow) -> _Criterion:
    """Whether a cell was the same in another campaign: where the difference is shown to lie within the margin, and not
    where its interval lies wholly beyond it."""
    margin = REPEAT_PERCENT / 100 * abs(row.mean_baseline)
    low, high = row.ci95_difference or (0.0, 0.0)
    met = True if row.verdict == "equivalent" else None
    if row.verdict in ("higher", "lower") and (low > margin or high < -margin):
        met = False
    why = f"difference in percent from campaign {row.against}: {row.why}"
    about = (row.campaign, "repeatability", "/".join(row.cell), row.metric)
    return *about, row.difference_percent, REPEAT_PERCENT, met, why


def _completeness(data: CampaignData) -> _Criterion:
    """How much of what was planned is done."""
    about = (data.name, "completeness", None, None)
    planned, done = data.planned_and_done
    if planned:
        return *about, 100 * done / planned, 100.0, done == planned, data.progress
    return *about, None, 100.0, None, "no matrix of these runs says what was planned"
