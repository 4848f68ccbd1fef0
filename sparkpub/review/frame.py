"""What counts, and what was measured: the runs of a campaign are selected in one place.

A frame says of a campaign which runs count and why the rest does not. The tables, the checks and the claims take their
runs from it, so that all of them mean the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from sparkpub.record.errors import ClaimError
from sparkpub.record.metrics import Metric
from sparkpub.record.record import Record, metric_of
from sparkpub.record.store import Stored
from sparkpub.review.dataset import CampaignData
from sparkpub.review.statistics.compare import Comparison, compare, power_to_detect
from sparkpub.review.statistics.describe import Description, describe, variation
from sparkpub.review.statistics.design import Declared, Sample, declared_order
from sparkpub.review.statistics.drift import Trend, trend
from sparkpub.review.statistics.replication import (
    describe_machines,
    levelled,
    over_machines,
)

Cell = tuple[str, str, str]
"""(model, environment, workload)."""
AXES = ("model", "environment", "workload")
Include = Literal["counted", "ran", "all"]
"""Which runs: those in the figures; those that happened properly, further records of one iteration included; or every
recorded run."""


@dataclass(frozen=True, eq=False)
class Series:
    """The values of one metric over runs that are taken together, in the order in which they ran.

    `records` are the runs that have a value, one for each of `values`.
    """

    metric: Metric
    records: tuple[Record, ...]
    values: tuple[float, ...]

    @cached_property
    def description(self) -> Description | None:
        """The values described; None where there are none. Over several machines each of them counts once."""
        if not self.values:
            return None
        if len(self.machines) == 1:
            return describe(self.values)
        return describe_machines([part.values for part in self.by_machine.values()])

    @cached_property
    def variation(self) -> tuple[float | None, float | None]:
        """`sd` and `cv_percent` of the description, without the rest of it where that is cheap."""
        if len(self.values) > 1 and len(self.machines) == 1:
            return variation(self.values)
        if self.description is None:
            return None, None
        return self.description.sd, self.description.cv_percent

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines of the values, the first one used first."""
        return tuple(dict.fromkeys(map(machine_of, self.records)))

    @cached_property
    def by_machine(self) -> Mapping[str, "Series"]:
        """The values of each machine, the first one used first."""
        parts: dict[str, tuple[list[Record], list[float]]] = {}
        for record, value in zip(self.records, self.values, strict=True):
            records, values = parts.setdefault(machine_of(record), ([], []))
            records.append(record)
            values.append(value)
        return {
            machine: Series(self.metric, tuple(records), tuple(values))
            for machine, (records, values) in parts.items()
        }

    @cached_property
    def levelled(self) -> "Series":
        """The series with the machines brought to one level: from each value the distance of its machine's mean from
        the mean of all is taken. What is left is what varies within machines."""
        if len(self.machines) < 2:
            return self
        machines = [machine_of(record) for record in self.records]
        values = levelled(np.array(self.values), machines)
        return Series(self.metric, self.records, tuple(values.tolist()))

    @cached_property
    def trend(self) -> Trend:
        """The values against their run order, within machines."""
        return trend(self.levelled.values)

    @cached_property
    def sample(self) -> Sample:
        """The values with their rounds and times, for comparisons. Raises ValueError where there are none."""
        return Sample.of(self.records, self.values)


@dataclass(frozen=True, eq=False)
class Group:
    """Runs that are taken together: those of `cells` that `include` asks for."""

    frame: "Frame"
    cells: tuple[Cell, ...]
    include: Include = "counted"
    label: str = ""
    machine: str | None = None
    """The machine whose runs these are; None for those of all machines."""

    @cached_property
    def runs(self) -> tuple[Stored, ...]:
        """The runs, in order of time."""
        runs = self.frame.runs_of(self.cells, self.include)
        if self.machine is None:
            return runs
        return tuple(run for run in runs if machine_of(run.record) == self.machine)

    @property
    def records(self) -> tuple[Record, ...]:
        """The records of the runs, in the same order."""
        return tuple(stored.record for stored in self.runs)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics that any of the runs has, in the order met."""
        return tuple(
            dict.fromkeys(name for record in self.records for name in record.metrics)
        )

    def series(self, metric: str) -> Series | None:
        """The values of a metric; None where no run has the metric."""
        if self.machine is None:
            return self.frame.series(self.cells, metric, self.include)
        return _series(metric, self.runs)

    def of_environment(self, name: str) -> "Group":
        """The part that ran in one environment."""
        cells = tuple(cell for cell in self.cells if cell[1] == name)
        return replace(self, cells=cells)

    def of_machine(self, machine: str) -> "Group":
        """The part that ran on one machine."""
        return replace(self, machine=machine)

    @cached_property
    def machines(self) -> tuple[str, ...]:
        """The machines on which these runs ran, the first one used first."""
        return tuple(dict.fromkeys(map(machine_of, self.records)))


@dataclass(frozen=True, eq=False)
class Frame:
    """A campaign with what counts in it. `out` says which runs did not properly happen or are quarantined, and why.

    Whatever is worked out is kept as long as the frame: it is equal to itself alone.
    """

    campaign: CampaignData
    out: Mapping[str, str] = field(default_factory=dict)
    _runs: dict[tuple[tuple[Cell, ...], Include], tuple[Stored, ...]] = field(
        default_factory=dict, repr=False
    )
    _series: dict[tuple[tuple[Cell, ...], str, Include], Series | None] = field(
        default_factory=dict, repr=False
    )
    _compared: dict[tuple[object, ...], Comparison | None] = field(
        default_factory=dict, repr=False
    )

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
        for runs in self.ran.values():
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

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """Every metric recorded in the campaign, by name, in the order met."""
        found: dict[str, Metric] = {}
        for record in self.campaign.records:
            for name, value in record.metrics.items():
                if name not in found:
                    found[name] = metric_of(name, value)
        return found

    # -- what is taken together ------------------------------------------------------------------------------

    def group(self, include: Include = "counted", **axes: Sequence[str]) -> Group:
        """The runs whose `model`, `environment` and `workload` are among those named; all where none is.

        Raises ClaimError for a name that the campaign does not have.
        """
        there = dict(zip(AXES, self.campaign.axes, strict=True))
        for axis, names in axes.items():
            known = there[axis]
            for name in names:
                if name not in known:
                    raise ClaimError(
                        f"campaign {self.campaign.name} has no {axis} {name!r}",
                        remedy=f"there are {', '.join(sorted(known)) or 'none'}",
                    )
        wanted = [axes.get(axis, ()) for axis in AXES]
        cells = [
            cell
            for cell, runs in self.recorded.items()
            if runs and matches(cell, wanted)
        ]
        return Group(self, tuple(cells), include)

    def split(self, group: Group, axes: Sequence[str]) -> list[Group]:
        """A group by the values of `axes`, in the order of the matrix, parts without runs left out.

        A label names the values in that order; the workload is named where there are several.
        """
        workloads = {record.workload for record in self.campaign.records}
        places = [
            AXES.index(axis)
            for axis in axes
            if axis != "workload" or len(workloads) > 1
        ]
        parts: dict[str, list[Cell]] = {}
        for cell in sorted(group.cells, key=self._place):
            if self.runs_of((cell,), group.include):
                parts.setdefault(
                    "/".join(cell[place] for place in places) or "all runs", []
                ).append(cell)
        return [
            Group(self, tuple(cells), group.include, label)
            for label, cells in parts.items()
        ]

    def _place(self, cell: Cell) -> tuple[int, ...]:
        """Where a cell stands in the matrix: workload, model, environment; what is not declared comes last."""
        model, environment, workload = cell
        matrix = self.campaign.matrix
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

    def runs_of(
        self, cells: tuple[Cell, ...], include: Include = "counted"
    ) -> tuple[Stored, ...]:
        """The runs of some cells together, in order of time."""
        by_cell = {"counted": self.counted, "ran": self.ran, "all": self.recorded}[
            include
        ]
        if len(cells) == 1:
            return by_cell.get(cells[0], ())
        if (cells, include) not in self._runs:
            runs = {
                stored.record.run_id
                for cell in cells
                for stored in by_cell.get(cell, ())
            }
            self._runs[cells, include] = tuple(
                run for run in self.campaign.runs if run.record.run_id in runs
            )
        return self._runs[cells, include]

    def series(
        self, cells: tuple[Cell, ...], metric: str, include: Include = "counted"
    ) -> Series | None:
        """The values of a metric over the runs of some cells; None where no run has the metric."""
        runs = self.runs_of(cells, include)
        if len(runs) == len(self.runs_of(cells)):
            include = "counted"  # the same runs under another name
        key = (cells, metric, include)
        if key not in self._series:
            self._series[key] = _series(metric, runs)
        return self._series[key]

    def power_to_detect(
        self, baseline: Cell, candidate: Cell, metric: str
    ) -> float | None:
        """Power against a difference of 10 %, as `compared` has it; None where the runs do not carry it."""
        one = self.series((baseline,), metric)
        other = self.series((candidate,), metric)
        if one is None or other is None or not one.values or not other.values:
            return None
        if len({*one.machines, *other.machines}) > 1:
            groups = Group(self, (baseline,)), Group(self, (candidate,))
            found = self.compared(*groups, metric, self.campaign.margin_percent)
            return None if found is None else found.power_10_percent
        return power_to_detect(
            one.sample,
            other.sample,
            order=declared_order([*one.records, *other.records]),
            unit=other.metric.unit,
        )

    # -- what differs ----------------------------------------------------------------------------------------

    def compared(
        self, baseline: Group, candidate: Group, metric: str, margin_percent: float
    ) -> Comparison | None:
        """A metric of one group against another, p-values uncorrected; None where one side has no values.

        Where the runs are of several machines, they are compared within each machine first.
        """
        key = (
            baseline.cells,
            baseline.include,
            baseline.machine,
            candidate.cells,
            candidate.include,
            candidate.machine,
            metric,
            margin_percent,
        )
        if key not in self._compared:
            self._compared[key] = self._compare(
                baseline, candidate, metric, margin_percent
            )
        return self._compared[key]

    def _compare(
        self, baseline: Group, candidate: Group, metric: str, margin_percent: float
    ) -> Comparison | None:
        one, other = baseline.series(metric), candidate.series(metric)
        if one is None or other is None or not one.values or not other.values:
            return None
        machines = {*one.machines, *other.machines}
        if len(machines) == 1:
            return self._compare_series(one, other, margin_percent)
        within = self.within(baseline, candidate, metric, margin_percent)
        if not within:
            pooled = self._compare_series(one, other, margin_percent, order="blocked")
            return replace(pooled, machines=len(machines))
        if len(within) == 1:
            (found,) = within.values()
        else:
            about = other.metric
            found = over_machines(
                list(within.values()), direction=about.direction, unit=about.unit
            )
        given = len(one.values) + len(other.values)
        return replace(found, left_out=given - found.n_baseline - found.n_candidate)

    def within(
        self, baseline: Group, candidate: Group, metric: str, margin_percent: float
    ) -> Mapping[str, Comparison]:
        """The comparison within each machine on which both sides have values, by machine."""
        found = {}
        for machine in dict.fromkeys((*baseline.machines, *candidate.machines)):
            sides = baseline.of_machine(machine), candidate.of_machine(machine)
            one, other = (side.series(metric) for side in sides)
            if one is not None and other is not None and one.values and other.values:
                found[machine] = self._compare_series(one, other, margin_percent)
        return found

    def _compare_series(
        self,
        baseline: Series,
        candidate: Series,
        margin_percent: float,
        order: Declared | None = None,
    ) -> Comparison:
        """One series against another as the order of their runs allows, or as `order` says."""
        if order is None:
            order = declared_order([*baseline.records, *candidate.records])
        metric = candidate.metric
        return compare(
            baseline.sample,
            candidate.sample,
            order=order,
            margin_percent=margin_percent,
            margin_declared=self.campaign.margin_declared,
            direction=metric.direction,
            unit=metric.unit,
        )


def machine_of(record: Record) -> str:
    """The id of the machine of a run, empty where nothing says which it was."""
    return record.machine.id or ""


def _series(name: str, runs: Sequence[Stored]) -> Series | None:
    metric = None
    records, values = list[Record](), list[float]()
    for stored in runs:
        item = stored.record.metrics.get(name)
        if item is None:
            continue
        metric = metric or metric_of(name, item)
        if item.value is not None:
            records.append(stored.record)
            values.append(item.value)
    return None if metric is None else Series(metric, tuple(records), tuple(values))


def matches(cell: Cell, wanted: Sequence[Sequence[str]]) -> bool:
    """Whether every part of a cell is among the names wanted for its axis; no names want all."""
    return all(
        not names or part in names for part, names in zip(cell, wanted, strict=True)
    )


def _without(
    cells: Mapping[Cell, tuple[Stored, ...]], out: Mapping[str, str]
) -> dict[Cell, tuple[Stored, ...]]:
    return {
        cell: tuple(run for run in runs if run.record.run_id not in out)
        for cell, runs in cells.items()
    }
