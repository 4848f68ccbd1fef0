"""The runs that a claim or a sentence is about, by the names that its author gives."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial

import pandas as pd

from sparkpub.plan.matrix import Matrix
from sparkpub.record.errors import ClaimError
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.dataset import in_order_of_time
from sparkpub.review.reviewed import Cell, Include, ReviewedCampaign, machine_of

_ASKED_IN_A_ROW = 64
"""Choices whose rows are kept: whoever asks for one figure of some runs asks for the others next."""
AXES = ("model", "environment", "workload")


@dataclass(frozen=True)
class Chosen:
    """Runs that are taken together: those of `cells` that `include` asks for."""

    reviewed: ReviewedCampaign
    cells: tuple[Cell, ...]
    include: Include = "counted"
    label: str = ""
    machine: str | None = None
    """The machine whose runs these are; None for those of all machines."""

    @cached_property
    def runs(self) -> tuple[Stored, ...]:
        """The runs, in order of time."""
        by_cell = self.reviewed.runs_by_cell(self.include)
        runs = [run for cell in self.cells for run in by_cell.get(cell, ())]
        if self.machine is not None:
            runs = [run for run in runs if machine_of(run.record) == self.machine]
        return tuple(sorted(runs, key=in_order_of_time))

    @property
    def records(self) -> tuple[Record, ...]:
        """The records of the runs, in the same order."""
        return tuple(stored.record for stored in self.runs)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics that any of the runs has, in the order met."""
        return tuple(self.table["metric"].unique())

    @property
    def table(self) -> pd.DataFrame:
        """Their rows of the table of runs."""
        return _table(self)

    def rows(self, metric: str) -> pd.DataFrame:
        """The rows that have a value of a metric."""
        return _rows(self, metric)

    def of_environment(self, name: str) -> "Chosen":
        """The part that ran in one environment."""
        cells = tuple(cell for cell in self.cells if cell[1] == name)
        return replace(self, cells=cells)

    def of_machine(self, machine: str) -> "Chosen":
        """The part that ran on one machine."""
        return replace(self, machine=machine)

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines on which these runs ran, the first one used first."""
        return tuple(dict.fromkeys(map(machine_of, self.records)))


@lru_cache(maxsize=_ASKED_IN_A_ROW)
def _table(chosen: Chosen) -> pd.DataFrame:
    table = chosen.reviewed.table
    return table[table["run"].isin([stored.run_id for stored in chosen.runs])]


@lru_cache(maxsize=_ASKED_IN_A_ROW)
def _rows(chosen: Chosen, metric: str) -> pd.DataFrame:
    table = _table(chosen)
    return table[(table["metric"] == metric) & table["value"].notna()]


def choose(
    reviewed: ReviewedCampaign, include: Include = "counted", **axes: Sequence[str]
) -> Chosen:
    """The runs whose `model`, `environment` and `workload` are among those named; all where none is.

    Raises ClaimError for a name that the campaign does not have.
    """
    there = dict(zip(AXES, reviewed.campaign.axes, strict=True))
    for axis, names in axes.items():
        known = there[axis]
        for name in names:
            if name not in known:
                raise ClaimError(
                    f"campaign {reviewed.campaign.name} has no {axis} {name!r}",
                    remedy=f"there are {', '.join(sorted(known)) or 'none'}",
                )
    wanted = [axes.get(axis, ()) for axis in AXES]
    cells = [
        cell
        for cell, runs in reviewed.recorded.items()
        if runs and matches(cell, wanted)
    ]
    return Chosen(reviewed, tuple(cells), include)


def split(chosen: Chosen, axes: Sequence[str]) -> list[Chosen]:
    """What was chosen by the values of `axes`, in the order of the matrix, parts without runs left out.

    A label names the values in that order; the workload is named where there are several.
    """
    in_matrix = partial(_place, chosen.reviewed.campaign.matrix)
    workloads = {record.workload for record in chosen.reviewed.campaign.records}
    places = [
        AXES.index(axis) for axis in axes if axis != "workload" or len(workloads) > 1
    ]
    by_cell = chosen.reviewed.runs_by_cell(chosen.include)
    parts: dict[str, list[Cell]] = {}
    for cell in sorted(chosen.cells, key=in_matrix):
        if by_cell.get(cell):
            parts.setdefault(
                "/".join(cell[place] for place in places) or "all runs", []
            ).append(cell)
    return [
        Chosen(chosen.reviewed, tuple(cells), chosen.include, label)
        for label, cells in parts.items()
    ]


def _place(matrix: Matrix | None, cell: Cell) -> tuple[int, ...]:
    """Where a cell stands in the matrix: workload, model, environment; what is not declared comes last."""
    model, environment, workload = cell
    if matrix is None:
        return (0, 0, 0)
    declared = (
        list(matrix.workloads),
        list(matrix.models),
        list(matrix.environments),
    )
    names = (workload, model, environment)
    return tuple(
        known.index(name) if name in known else len(known)
        for known, name in zip(declared, names, strict=True)
    )


def matches(cell: Cell, wanted: Sequence[Sequence[str]]) -> bool:
    """Whether every part of a cell is among the names wanted for its axis; no names want all."""
    return all(
        not names or part in names for part, names in zip(cell, wanted, strict=True)
    )
