"""What counts: which runs of a campaign are in the figures, and why the rest is not.

Tables, checks and claims take their runs and values from here, so that all of them mean the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal

import pandas as pd

from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.review.tables.cells import cells
from sparkpub.review.tables.column import TableRows, rows
from sparkpub.review.tables.comparisons import comparisons
from sparkpub.review.tables.runs import runs as table_of_runs

Cell = tuple[str, str, str]
"""(model, environment, workload)."""
Include = Literal["counted", "all"]
"""Which runs are asked for: those in the figures, or every recorded one."""


def _nothing(_name: str) -> None:
    """What is kept of a campaign that was not judged before. A lambda could not be handed to another process."""


@dataclass(frozen=True, eq=False)
class ReviewedCampaign:
    """A campaign with what counts in it. `out` says which runs did not properly happen or are quarantined, and why.

    What follows from them is kept once it was asked for: it is equal to itself alone.
    """

    campaign: CampaignData
    out: Mapping[str, str] = field(default_factory=dict)
    kept: Callable[[str], Any] = _nothing
    """Its tables of `runs`, `cells` and `comparisons` that were made already, of the runs that count, and its `traces`;
    None for what has to be made."""
    made_from: str = ""
    """Digest of its files, its commit and this program; empty where nobody asked for it."""
    is_whole: bool = False
    """Whether further records of an iteration count, too."""

    def __getstate__(self) -> dict[str, Any]:
        """What goes to another process: what follows is worked out there."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    # -- what counts -----------------------------------------------------------------------------------------

    @cached_property
    def recorded(self) -> Mapping[Cell, tuple[Stored, ...]]:
        """All runs by cell, in order of time; cells that the matrix declares and nobody ran are there, empty."""
        declared = () if self.campaign.matrix is None else self.campaign.matrix.cells()
        cells: dict[Cell, list[Stored]] = {cell: [] for cell in declared}
        for stored in self.campaign.runs:
            cells.setdefault(stored.record.cell, []).append(stored)
        return {cell: tuple(runs) for cell, runs in cells.items()}

    @cached_property
    def ran(self) -> Mapping[Cell, tuple[Stored, ...]]:
        """Runs that happened properly, further records of one iteration included: what the machine did."""
        return _without(self.recorded, self.out)

    @cached_property
    def doubles(self) -> Mapping[str, str]:
        """Further records of an iteration that already has a good one: run id to the run id that counts.

        The first good record of an iteration counts. Whoever may measure again and keep the later figure may
        choose the result; the first one was there before anybody could. Repeats that name what they repeat
        (`repeat_of`) are declared and count.
        """
        doubles: dict[str, str] = {}
        for runs in () if self.is_whole else self.ran.values():
            first: dict[tuple[str, int], str] = {}
            for stored in runs:
                record = stored.record
                if record.repeat_of is not None:
                    continue
                counts = first.setdefault(self.slot(record), record.run_id)
                if counts != record.run_id:
                    doubles[record.run_id] = counts
        return doubles

    @cached_property
    def excluded(self) -> Mapping[str, str]:
        """Run id to the reason why a run is not in the figures."""
        doubles = {
            run: f"duplicate-iteration: {counts} counts for this iteration"
            for run, counts in self.doubles.items()
        }
        return {**doubles, **self.out}

    @cached_property
    def counted(self) -> Mapping[Cell, tuple[Stored, ...]]:
        """The runs that enter the figures, by cell."""
        return _without(self.ran, self.doubles)

    @cached_property
    def whole(self) -> "ReviewedCampaign":
        """The same with every recorded run in the figures."""
        return ReviewedCampaign(self.campaign, is_whole=True)

    @property
    def replicated(self) -> bool:
        """Whether each machine was to measure everything."""
        matrix = self.campaign.matrix
        return matrix is not None and matrix.machines == "replicate"

    def slot(self, record: Record) -> tuple[str, int]:
        """Which run of its cell a record is of: the machine, where each of them repeats the cell, and the iteration."""
        if self.replicated:
            return machine_of(record), record.iteration
        return "", record.iteration

    @cached_property
    def machines(self) -> tuple[str, ...]:
        """The machines on which the runs ran that happened properly, the first one used first."""
        ran = [stored for runs in self.ran.values() for stored in runs]
        ran.sort(key=lambda stored: stored.record.started.value)
        return tuple(dict.fromkeys(machine_of(stored.record) for stored in ran))

    # -- what was measured: its three tables, from which every figure is taken -----------------------------------

    @cached_property
    def runs(self) -> pd.DataFrame:
        """See `tables.runs`."""
        return self._as_kept(
            "runs", lambda: table_of_runs(self.campaign, self.excluded)
        )

    @cached_property
    def cells(self) -> pd.DataFrame:
        """See `tables.cells`."""
        return self._as_kept("cells", lambda: cells(self))

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """See `tables.comparisons`: over all machines, and behind them within each of several."""
        return self._as_kept("comparisons", lambda: comparisons(self))

    def _as_kept(self, name: str, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        kept: pd.DataFrame | None = self.kept(name)
        return make() if kept is None else kept

    @cached_property
    def cell_rows(self) -> TableRows:
        """Those of `cells`."""
        return rows(self.cells)

    @cached_property
    def comparison_rows(self) -> TableRows:
        """Those of `comparisons`."""
        return rows(self.comparisons)


@dataclass(frozen=True, eq=False)
class ReviewedDataset:
    """All campaigns of a dataset by name, each with what counts in it, from which every figure is taken."""

    dataset: Dataset
    campaigns: Mapping[str, ReviewedCampaign]

    @cached_property
    def excluded(self) -> Mapping[str, str]:
        """Each run that is in no pooled figure, with the reason in words."""
        found: dict[str, str] = {}
        for reviewed in self.campaigns.values():
            found |= reviewed.excluded
        return found


def machine_of(record: Record) -> str:
    """The id of the machine of a run, empty where nothing says which it was."""
    return record.machine.id or ""


def _without(
    cells: Mapping[Cell, tuple[Stored, ...]], out: Mapping[str, str]
) -> dict[Cell, tuple[Stored, ...]]:
    return {
        cell: tuple(run for run in runs if run.record.run_id not in out)
        for cell, runs in cells.items()
    }
