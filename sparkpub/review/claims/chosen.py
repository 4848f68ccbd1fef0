"""The runs that a claim or a sentence is about, by the names that its author gives: some of the table of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import pandas as pd

from sparkpub.record.errors import ClaimError
from sparkpub.record.record import Record
from sparkpub.review.dataset import in_order_of_time
from sparkpub.review.reviewed import Cell, Include, ReviewedCampaign
from sparkpub.review.tables.cells import summary
from sparkpub.review.tables.column import TableRow, rows, texts
from sparkpub.review.tables.runs import of_all

AXES = ("model", "environment", "workload")
_ASKED_IN_A_ROW = 64
"""Choices that are kept: whoever asks for one figure of some runs asks for the others next."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """Runs that are taken together: those of `cells` that `include` asks for, and those of `repeats`."""

    reviewed: ReviewedCampaign
    cells: tuple[Cell, ...]
    include: Include = "counted"
    label: str = ""
    repeats: tuple["Chosen", ...] = ()
    """The same of campaigns that repeat this one."""

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """The records of its own campaign, in order of time."""
        by_cell = self.reviewed.runs_by_cell(self.include)
        runs = [run for cell in self.cells for run in by_cell.get(cell, ())]
        runs.sort(key=in_order_of_time)
        return tuple(run.record for run in runs)

    @property
    def run_ids(self) -> list[str]:
        """The ids of their runs, in the same order."""
        return [record.run_id for record in self.records]

    @cached_property
    def table(self) -> pd.DataFrame:
        """Their rows of the table of runs. Over several campaigns each machine of each of them is one of its own."""
        if self.repeats:
            return of_all([_with_sessions(one) for one in (self, *self.repeats)])
        table = self.reviewed.table
        return table[table["run"].isin(self.run_ids)]

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics that any of the runs has, in the order met."""
        return tuple(self.table["metric"].unique())

    def rows(self, metric: str) -> pd.DataFrame:
        """The rows that have a value of a metric."""
        return self._by_metric.get(metric, self._valued.iloc[:0])

    @cached_property
    def described(self) -> dict[str, TableRow]:
        """What `summary` says of each metric that has values."""
        found = rows(summary(self._valued, ["metric"]))
        return {row.metric: row for row in found}

    @cached_property
    def _valued(self) -> pd.DataFrame:
        return self.table[self.table["value"].notna()]

    @cached_property
    def _by_metric(self) -> dict[str, pd.DataFrame]:
        return {
            str(name): rows
            for name, rows in self._valued.groupby("metric", observed=True)
        }


def _with_sessions(chosen: Chosen) -> pd.DataFrame:
    """The rows of one campaign, with its name before that of each machine."""
    table, name = chosen.reviewed.table, chosen.reviewed.campaign.name
    machines = [f"{name}/{machine}" for machine in texts(table["machine"])]
    own = table.assign(machine=pd.Categorical(machines))
    return own[own["run"].isin(chosen.run_ids)]


@lru_cache(maxsize=_ASKED_IN_A_ROW)
def choose(
    reviewed: ReviewedCampaign, include: Include = "counted", **axes: tuple[str, ...]
) -> Chosen:
    """The runs whose `model`, `environment` and `workload` are among those named; all where none is.

    Raises ClaimError for a name that the campaign does not have.
    """
    there = dict(zip(AXES, reviewed.campaign.axes, strict=True))
    for axis, names in axes.items():
        for name in names:
            if name not in there[axis]:
                raise ClaimError(
                    f"campaign {reviewed.campaign.name} has no {axis} {name!r}",
                    remedy=f"there are {', '.join(sorted(there[axis])) or 'none'}",
                )
    wanted = [axes.get(axis, ()) for axis in AXES]
    cells = tuple(
        cell
        for cell, runs in reviewed.recorded.items()
        if runs and matches(cell, wanted)
    )
    return Chosen(reviewed, cells, include)


def split(chosen: Chosen, axes: Sequence[str]) -> list[Chosen]:
    """What was chosen by the values of `axes`, in the order of the matrix, parts without runs left out.

    A label names the values in that order; the workload is named where there are several.
    """
    workloads = {record.workload for record in chosen.reviewed.campaign.records}
    by_cell = chosen.reviewed.runs_by_cell(chosen.include)
    parts: dict[str, list[Cell]] = {}
    for cell in filter(by_cell.get, chosen.cells):
        named = dict(zip(AXES, cell, strict=True))
        if len(workloads) < 2:
            del named["workload"]
        label = "/".join(named[axis] for axis in axes if axis in named)
        parts.setdefault(label or "all runs", []).append(cell)
    return [
        Chosen(chosen.reviewed, tuple(cells), chosen.include, label)
        for label, cells in parts.items()
    ]


def matches(cell: Cell, wanted: Sequence[Sequence[str]]) -> bool:
    """Whether every part of a cell is among the names wanted for its axis; no names want all."""
    pairs = zip(cell, wanted, strict=True)
    return all(not names or part in names for part, names in pairs)
