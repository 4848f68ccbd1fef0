"""The values of any rows of a table of runs: what is described, compared and looked at for trends.

`cells`, `comparisons` and `repeats` do so for all cells at once, checks for the cells of a campaign, claims and
sentences for the runs that they are about.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from sparkpub.record.metrics import Metric
from sparkpub.review.reviewed import Cell, Include, ReviewedCampaign
from sparkpub.review.statistics.design import ServerBlocks, server_blocks
from sparkpub.review.statistics.replication import levelled

Family = Literal["primary", "secondary"]

CELL = ["campaign", "model", "environment", "workload"]
_ABOUT = [*CELL, "metric", "unit", "machine"]
_ROUND = ["model", "workload", "iteration"]


@dataclass(frozen=True, eq=False)
class Values:
    """Rows of a table of runs that have a value, numbered by what they are values of: those of a number stand together,
    in order of time.

    `starts` says where the values of each number begin, and `sizes` how many they are.
    """

    rows: pd.DataFrame
    starts: Any
    sizes: Any
    campaigns: Mapping[str, ReviewedCampaign]
    _columns: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        rows: pd.DataFrame,
        campaigns: Mapping[str, ReviewedCampaign],
        by: Sequence[str],
    ) -> Self:
        """Rows that stand in order of time, a number for each combination of the columns `by`, in the order met."""
        return cls._numbered(rows, campaigns, _numbers(rows, by))

    @classmethod
    def of_cells(
        cls,
        rows: pd.DataFrame,
        campaigns: Mapping[str, ReviewedCampaign],
        *,
        by_machine: bool = False,
    ) -> Self:
        """A number for each metric of each cell, cells in the order of the matrix; with `by_machine` one for each of
        its machines."""
        keys = [*CELL, "metric", "machine"] if by_machine else [*CELL, "metric"]
        as_met = _numbers(rows, keys)
        _, first = np.unique(as_met, return_index=True)
        in_matrix = np.argsort(_places(rows.iloc[first], campaigns), kind="stable")
        numbers = np.empty_like(in_matrix)
        numbers[in_matrix] = np.arange(len(in_matrix))
        return cls._numbered(rows, campaigns, numbers[as_met])

    @classmethod
    def _numbered(
        cls,
        rows: pd.DataFrame,
        campaigns: Mapping[str, ReviewedCampaign],
        numbers: Any,
    ) -> Self:
        ordered = rows.iloc[np.argsort(numbers, kind="stable")]
        sizes = np.bincount(numbers)
        return cls(ordered, np.cumsum(sizes) - sizes, sizes, campaigns)

    @cached_property
    def about(self) -> dict[str, Any]:
        """What the values of each number are about, by column: cell, metric, unit, the first machine, and family."""
        columns = {name: self.first(name) for name in _ABOUT}
        return {**columns, "family": self._families(columns)}

    def first(self, name: str) -> Any:
        """A column of text in the first row of each number, empty where there is none."""
        return texts(self.rows[name].iloc[self.starts])

    def _families(self, columns: Mapping[str, Any]) -> Any:
        known: dict[tuple[str, str], Family] = {}
        pairs = list(zip(columns["campaign"], columns["metric"], strict=True))
        for name, metric in dict.fromkeys(pairs):
            reviewed = self.campaigns[name]
            known[name, metric] = family_of(reviewed.campaign.metrics[metric], reviewed)
        return np.array([known[pair] for pair in pairs], dtype=object)

    @cached_property
    def metrics(self) -> list[Metric]:
        """The metric of each number."""
        names = zip(self.first("campaign"), self.first("metric"), strict=True)
        return [self.campaigns[name].campaign.metrics[metric] for name, metric in names]

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

    @cached_property
    def rounds(self) -> Any:
        """A number for the round of each of `figures`: the iteration of a model and workload. None for a repeat, which
        stands outside of the rounds."""
        numbers = self.rows.groupby(_ROUND, observed=True, sort=False).ngroup()
        repeats = self.rows["repeat_of"].notna()
        return numbers.astype(object).mask(repeats, None).to_numpy()

    @cached_property
    def levelled(self) -> Any:
        """All values, with the machines of each number brought to one level: what is left is what varies within
        machines."""
        found = self.figures.copy()
        for number, _ in self.on_several_machines:
            part = self.part(number)
            found[part] = levelled(found[part], self.column("machine")[part])
        return found

    @cached_property
    def on_several_machines(self) -> Sequence[tuple[int, tuple[str, ...]]]:
        """The numbers whose values are of several machines, and these, the first one used first."""
        machines = self.column("machine")
        if len(set(machines)) < 2:
            return ()
        names = [
            tuple(dict.fromkeys(machines[self.part(number)]))
            for number in range(len(self.sizes))
        ]
        return [(number, each) for number, each in enumerate(names) if len(each) > 1]

    @cached_property
    def on_shared_servers(self) -> Sequence[tuple[int, ServerBlocks]]:
        """The numbers of which several runs were served by one server, and their runs by server."""
        servers = self.column("server")
        if not servers.any():
            return ()
        blocks = [
            server_blocks(servers[self.part(number)])
            for number in range(len(self.sizes))
        ]
        return [(number, each) for number, each in enumerate(blocks) if each]

    @cached_property
    def cells_and_metrics(self) -> Sequence[tuple[Cell, str]]:
        """The cell and the metric of each number."""
        names = ("model", "environment", "workload", "metric")
        return [
            ((model, environment, workload), metric)
            for model, environment, workload, metric in zip(
                *map(self.first, names), strict=True
            )
        ]

    @cached_property
    def within_machines(self) -> Mapping[tuple[Cell, str], tuple[float, ...]]:
        """The values of each cell and metric, machines brought to one level, in order of time."""
        return {
            key: tuple(self.levelled[self.part(number)].tolist())
            for key, number in self.number_of.items()
        }

    @cached_property
    def number_of(self) -> Mapping[tuple[Cell, str], int]:
        """The number of each cell and metric, where they are of one campaign and not apart by machine."""
        return {key: number for number, key in enumerate(self.cells_and_metrics)}

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


def rows_with_values(runs: pd.DataFrame, include: Include) -> pd.DataFrame:
    """The rows of a table of runs that have a value, of those that count or of all."""
    return runs[runs["value"].notna() if include == "all" else runs["counts"]]


def texts(column: "pd.Series[Any]") -> Any:
    """A column of text as an array, empty where there is none."""
    known = [*column.cat.categories, ""]
    return np.array(known, dtype=object)[column.cat.codes]


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


def _numbers(rows: pd.DataFrame, by: Sequence[str]) -> Any:
    """A number for each combination of some columns, in the order met."""
    groups = rows.groupby(list(by), observed=True, sort=False, dropna=False)
    return groups.ngroup().to_numpy()


def _places(rows: pd.DataFrame, campaigns: Mapping[str, ReviewedCampaign]) -> Any:
    """Where the cell of each row stands in the order of its campaign's matrix, campaigns one after the other."""
    order: dict[tuple[str, ...], int] = {}
    for name, reviewed in campaigns.items():
        for cell in reviewed.recorded:
            order[name, *cell] = len(order)
    cells = zip(*(texts(rows[name]) for name in CELL), strict=True)
    return np.array([order[cell] for cell in cells], dtype=np.int64)
