"""The table of success criteria: the methodology's, applied to each primary metric of a cell or to a whole campaign.

Variation, power and completeness have the limits of the checks that ask for them, repeatability that of `over`.
"""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from sparkpub.review.checks.spread import HIGH_VARIATION_PERCENT
from sparkpub.review.dataset import CampaignData
from sparkpub.review.statistics.estimate import DETECTABLE_PERCENT, WANTED_POWER
from sparkpub.review.tables.column import Column, Columns, TableRow, rows, table_of
from sparkpub.review.tables.over import REPEAT_PERCENT

COLUMNS: Columns = {
    "campaign": Column("text", "The campaign"),
    "criterion": Column("text", "variation, power, repeatability or completeness"),
    "cell": Column("text", "model/environment/workload, for power the candidate's; empty for a whole campaign"),
    "metric": Column("text", "Name of the metric"),
    "value": Column("number", "What is held against the limit"),
    "threshold": Column("number", "The limit"),
    "met": Column("answer", "Whether it is met; empty where the data do not decide"),
    "why": Column("text", "What this rests on"),
}  # fmt: skip


def criteria(
    campaigns: Iterable[CampaignData],
    cells: pd.DataFrame,
    comparisons: pd.DataFrame,
    repeats: pd.DataFrame,
    against: str | None,
) -> pd.DataFrame:
    """Every criterion of these campaigns. `repeats` are their cells held against those of the campaign `against`."""
    found: list[dict[str, Any]] = []
    has_true_zero = cells["unit"] != "°C"
    found += map(_variation, rows(_primary(cells[has_true_zero])))
    found += map(_power, rows(_primary(comparisons)))
    found += map(_repeatability, rows(_primary(repeats)))
    data = list(campaigns)
    if repeats.empty:
        found += (_not_repeated(campaign, against) for campaign in data)
    found += map(_completeness, data)
    return table_of(COLUMNS, found)


def _primary(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["family"] == "primary"]


def _variation(row: TableRow) -> dict[str, Any]:
    """Whether the runs of a cell vary by less than the methodology allows."""
    met = None
    if row.cv_percent is not None:
        met = row.cv_percent < HIGH_VARIATION_PERCENT
    return {
        "campaign": row.campaign,
        "criterion": "variation",
        "cell": "/".join(row.cell),
        "metric": row.metric,
        "value": row.cv_percent,
        "threshold": HIGH_VARIATION_PERCENT,
        "met": met,
        "why": f"coefficient of variation in percent, n = {row.n}",
    }


def _power(row: TableRow) -> dict[str, Any]:
    """Whether a comparison would have shown a difference of ten percent."""
    met = None
    if row.power_10_percent is not None:
        met = row.power_10_percent >= WANTED_POWER
    runs = f"n = {row.n_baseline} and {row.n_candidate}"
    return {
        "campaign": row.campaign,
        "criterion": "power",
        "cell": f"{row.model}/{row.candidate}/{row.workload}",
        "metric": row.metric,
        "value": row.power_10_percent,
        "threshold": WANTED_POWER,
        "met": met,
        "why": f"power against {DETECTABLE_PERCENT:g} % at 5 %, {runs}",
    }


def _repeatability(row: TableRow) -> dict[str, Any]:
    """Whether a cell was the same in another campaign."""
    return {
        "campaign": row.campaign,
        "criterion": "repeatability",
        "cell": "/".join(row.cell),
        "metric": row.metric,
        "value": row.difference_percent,
        "threshold": REPEAT_PERCENT,
        "met": _repeats_within(row),
        "why": f"difference in percent from campaign {row.against}: {row.why}",
    }


def _repeats_within(row: TableRow) -> bool | None:
    """True where the difference is shown to lie within the margin, False where its interval lies wholly beyond it."""
    if row.verdict == "equivalent":
        return True
    margin = REPEAT_PERCENT / 100 * abs(row.mean_baseline)
    beyond = row.ci95_difference is not None and (
        row.ci95_difference[0] > margin or row.ci95_difference[1] < -margin
    )
    return False if beyond and row.verdict != "undecided" else None


def _not_repeated(data: CampaignData, against: str | None) -> dict[str, Any]:
    """That nobody knows whether a campaign can be repeated."""
    why = "no repeat was compared (--against)"
    if against:
        why = f"no cell in common with {against}"
    return {
        "campaign": data.name,
        "criterion": "repeatability",
        "cell": None,
        "metric": None,
        "value": None,
        "threshold": REPEAT_PERCENT,
        "met": None,
        "why": why,
    }


def _completeness(data: CampaignData) -> dict[str, Any]:
    """How much of what was planned is done."""
    share: float | None = None
    met: bool | None = None
    why = "no matrix says what was planned"
    planned, done = data.planned_and_done
    if planned:
        share = 100 * done / planned
        met = done == planned
        why = data.progress
    elif data.matrix is not None:
        why = "the runs are of another specification than that of campaign.json"
    return {
        "campaign": data.name,
        "criterion": "completeness",
        "cell": None,
        "metric": None,
        "value": share,
        "threshold": 100.0,
        "met": met,
        "why": why,
    }
