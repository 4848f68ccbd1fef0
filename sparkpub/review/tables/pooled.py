"""The table of effects pooled over cells: one row per metric of a campaign that compares two environments in several
cells.

Cells are combined as machines are, see `statistics.replication`. Exploratory: p-values are not corrected.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from sparkpub.review.statistics.compare import Comparison
from sparkpub.review.statistics.describe import MINIMUM_RUNS
from sparkpub.review.statistics.estimate import Combined, over
from sparkpub.review.tables.column import Column, Columns, TableRow, rows_by, table_of
from sparkpub.review.tables.comparisons import found_in

MEMORY_UNIT = "GiB"
"""Of metrics whose differences are pooled as they are: what an environment takes does not grow with the model."""
COLUMNS: Columns = {
    "campaign": Column("text", "The campaign"),
    "metric": Column("text", "Name of the metric"),
    "unit": Column("text", "Unit of the effect: the metric's own for memory, else % of each cell's baseline"),
    "family": Column("text", "primary, or secondary for exploratory metrics"),
    "baseline": Column("text", "The environment that is compared with"),
    "candidate": Column("text", "The environment that is compared"),
    "cells": Column("integer", "Cells that are pooled"),
    "left_out": Column("integer", "Cells whose runs are worth too few"),
    "effect": Column("number", "The difference that the cells show together"),
    "ci95_effect_low": Column("number", "Lower end of its 95 % interval"),
    "ci95_effect_high": Column("number", "Upper end of it"),
    "error": Column("number", "Standard error of the effect"),
    "df": Column("number", "Degrees of freedom behind the error"),
    "t": Column("number", "Their quotient"),
    "p_value": Column("number", "p of no difference"),
    "q": Column("number", "Cochran's Q"),
    "heterogeneity_p": Column("number", "p of the cells having one difference"),
}  # fmt: skip
_BY = ["campaign", "metric", "baseline", "candidate"]


def pooled_effects(comparisons: pd.DataFrame) -> pd.DataFrame:
    """Every metric over the cells of a campaign, where there are several cells to pool."""
    found: list[dict[str, Any]] = []
    for cells in rows_by(comparisons, _BY):
        found += _over(cells)
    return table_of(COLUMNS, found)


def _over(cells: Sequence[TableRow]) -> Iterator[dict[str, Any]]:
    first = cells[0]
    absolute = first.unit == MEMORY_UNIT
    together = over_cells(map(found_in, cells), percent=not absolute)
    if together is None:
        return
    low, high = together.interval() or (None, None)
    yield {
        **vars(together),
        "cells": together.count,
        "df": together.df,
        "t": together.value / together.error,
        "p_value": float(together.p_value),
        "campaign": first.campaign,
        "metric": first.metric,
        "unit": first.unit if absolute else "%",
        "family": first.family,
        "baseline": first.baseline,
        "candidate": first.candidate,
        "left_out": len(cells) - together.count,
        "effect": together.value,
        "ci95_effect_low": low,
        "ci95_effect_high": high,
    }


def over_cells(found: Iterable[Comparison], *, percent: bool) -> Combined | None:
    """What comparisons show together, in percent of their baselines or in their unit. Cells worth fewer than four runs
    are left out; None for fewer than two, or where one has no spread at all."""
    estimates = [one.estimate_percent if percent else one.estimate for one in found]
    known = [
        estimate
        for estimate in estimates
        if estimate is not None and estimate.df >= MINIMUM_RUNS - 1
    ]
    if len(known) < 2 or not all(estimate.error > 0 for estimate in known):
        return None
    return over(known)
