"""The runs that a claim or a sentence is about, by the names that its author gives: some of the table of runs."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import pandas as pd

from sparkpub.record.errors import ClaimError
from sparkpub.record.record import Record
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Cell, Include, ReviewedCampaign
from sparkpub.review.tables.cells import summary
from sparkpub.review.tables.column import TableRows, rows, texts
from sparkpub.review.tables.runs import of_all

AXES = ("model", "environment", "workload")
_ASKED_IN_A_ROW = 64
"""Choices that are kept: whoever asks for one figure of some runs asks for the others next."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """Runs that are taken together, in order of time: of one campaign, or of several that repeat the first."""

    campaigns: tuple[ReviewedCampaign, ...]
    records: tuple[Record, ...]
    label: str = ""

    @property
    def campaign(self) -> CampaignData:
        """The campaign, or the first."""
        return self.campaigns[0].campaign

    @cached_property
    def table(self) -> pd.DataFrame:
        """Their rows of the table of runs. Over several campaigns each machine of each of them is one of its own."""
        table = of_all([reviewed.runs for reviewed in self.campaigns])
        table = table[table["run"].isin([record.run_id for record in self.records])]
        if len(self.campaigns) > 1:
            places = zip(texts(table["campaign"]), texts(table["machine"]), strict=True)
            table = table.assign(machine=pd.Categorical(list(map("/".join, places))))
        return table

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics that any of the runs has, in the order met."""
        return tuple(self.table["metric"].unique())

    @cached_property
    def valued(self) -> pd.DataFrame:
        """The rows that have a value."""
        return self.table[self.table["value"].notna()]

    @cached_property
    def whole(self) -> Set[Cell]:
        """The cells whose runs these are, where they are all that count in the one campaign; else none."""
        cells, counted = {run.cell for run in self.records}, self.campaigns[0].counted
        theirs = {run.run_id for cell in cells for run in counted.get(cell, ())}
        is_all = theirs == {run.run_id for run in self.records}
        return cells if is_all and len(self.campaigns) == 1 else set()

    @cached_property
    def described(self) -> TableRows:
        """What `summary` says of each metric that has values: of all runs of a cell, what the table of cells says."""
        if len(self.whole) != 1:
            return rows(summary(self.valued, ["metric"]))
        (cell,) = self.whole
        return TableRows(self.campaigns[0].cell_rows.where(cell=cell))


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
    out = {} if include == "all" else reviewed.excluded
    chosen = (
        record
        for record in reviewed.campaign.records
        if record.run_id not in out and matches(record.cell, wanted)
    )
    return Chosen((reviewed,), tuple(chosen))


def split(chosen: Chosen, axes: Sequence[str]) -> list[Chosen]:
    """What was chosen by the values of `axes`, in the order of the matrix, parts without runs left out.

    A label names the values in that order; the workload is named where there are several.
    """
    workloads = {record.workload for record in chosen.campaign.records}
    named = [axis for axis in axes if axis != "workload" or len(workloads) > 1]
    places = {cell: place for place, cell in enumerate(chosen.campaigns[0].recorded)}
    known = [record for record in chosen.records if record.cell in places]
    known.sort(key=lambda record: places[record.cell])
    parts = grouped(
        known, lambda record: "/".join(getattr(record, axis) for axis in named)
    )
    return [
        replace(chosen, records=tuple(mine), label=label or "all runs")
        for label, mine in parts.items()
    ]


def matches(cell: Cell, wanted: Sequence[Sequence[str]]) -> bool:
    """Whether every part of a cell is among the names wanted for its axis; no names want all."""
    pairs = zip(cell, wanted, strict=True)
    return all(not names or part in names for part, names in pairs)
