"""The values of a table of runs by metric and cell: what `cells` describes, and what `comparisons` and `repeats` hold
against each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from sparkpub.record.metrics import Metric
from sparkpub.review.reviewed import Include, ReviewedCampaign

Family = Literal["primary", "secondary"]

CELL = ["campaign", "model", "environment", "workload"]
_ABOUT = [*CELL, "metric", "unit", "machine"]


@dataclass(frozen=True, eq=False)
class Values:
    """Rows of a table of runs that have a value: those of a metric of a cell stand together, in order of time.

    They are numbered in the order of the matrix: `starts` says where the values of each number begin, and `sizes` how
    many they are.
    """

    rows: pd.DataFrame
    starts: Any
    sizes: Any
    campaigns: Mapping[str, ReviewedCampaign]
    _columns: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        runs: pd.DataFrame,
        campaigns: Mapping[str, ReviewedCampaign],
        include: Include,
        *,
        by_machine: bool = False,
    ) -> Self:
        """The values that are asked for; with `by_machine` those of each machine by themselves."""
        chosen = runs[runs["value"].notna() if include == "all" else runs["counts"]]
        chosen = chosen.iloc[np.argsort(_places(chosen, campaigns), kind="stable")]
        keys = [*CELL, "metric", "machine"] if by_machine else [*CELL, "metric"]
        numbers = chosen.groupby(keys, observed=True, sort=False, dropna=False).ngroup()
        rows = chosen.iloc[np.argsort(numbers.to_numpy(), kind="stable")]
        sizes = np.bincount(numbers)
        return cls(rows, np.cumsum(sizes) - sizes, sizes, campaigns)

    @cached_property
    def about(self) -> dict[str, Any]:
        """What the values of each number are about, by column: cell, metric, unit, the first machine, and family."""
        first = self.rows.iloc[self.starts]
        columns = {name: texts(first[name]) for name in _ABOUT}
        return {**columns, "family": self._families(columns)}

    def _families(self, columns: Mapping[str, Any]) -> Any:
        known: dict[tuple[str, str], Family] = {}
        pairs = list(zip(columns["campaign"], columns["metric"], strict=True))
        for name, metric in dict.fromkeys(pairs):
            reviewed = self.campaigns[name]
            known[name, metric] = family_of(reviewed.metrics[metric], reviewed)
        return np.array([known[pair] for pair in pairs], dtype=object)

    @cached_property
    def metrics(self) -> list[Metric]:
        """The metric of each number."""
        names = zip(self.about["campaign"], self.about["metric"], strict=True)
        return [self.campaigns[name].metrics[metric] for name, metric in names]

    @cached_property
    def figures(self) -> Any:
        """All values, one number after the other."""
        return self.rows["value"].to_numpy()

    @cached_property
    def runs(self) -> Any:
        """A number for the run of each of `figures`."""
        return self.rows["run"].cat.codes.to_numpy()

    @cached_property
    def times(self) -> Any:
        """When the run of each of `figures` began, in seconds."""
        started = self.rows["started"].cat
        moments = map(datetime.fromisoformat, started.categories)
        seconds = np.array([moment.timestamp() for moment in moments])
        return seconds[started.codes]

    def column(self, name: str) -> Any:
        """A column of text beside `figures`, empty where there is none."""
        if name not in self._columns:
            self._columns[name] = texts(self.rows[name])
        return self._columns[name]

    def part(self, number: int) -> slice:
        """Where the values of a number stand."""
        return slice(self.starts[number], self.starts[number] + self.sizes[number])

    def block(self, numbers: Any, figures: Any = None) -> Any:
        """The values of numbers that have as many of them, a row each; `figures` can stand in place of the values."""
        starts, size = self.starts[numbers], self.sizes[numbers[0]]
        chosen = self.figures if figures is None else figures
        return chosen[starts[:, np.newaxis] + np.arange(size)]


def texts(column: "pd.Series[Any]") -> Any:
    """A column of text as an array, empty where there is none."""
    return column.astype("object").fillna("").to_numpy()


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
