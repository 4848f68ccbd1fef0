"""What was measured: the values of one metric over runs, described, and compared with those of other runs.

Checks and claims describe and compare runs of their choice here; the tables do the same for all cells at once, with
the same arithmetic (`statistics`). Where the runs are of several machines, values are compared within each machine
first, and then over them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from sparkpub.record.derived import value_of
from sparkpub.record.metrics import METRICS, Metric
from sparkpub.record.record import Record, metric_of
from sparkpub.review.statistics.compare import DETECTABLE_PERCENT, Comparison, compare
from sparkpub.review.statistics.compare import power_to_detect as power_of
from sparkpub.review.statistics.describe import (
    Description,
    describe,
    describe_blocks,
    variation,
)
from sparkpub.review.statistics.design import (
    DeclaredOrder,
    Sample,
    declared_order,
    server_blocks,
)
from sparkpub.review.statistics.drift import Trend, trend
from sparkpub.review.statistics.replication import (
    describe_machines,
    levelled,
    over_machines,
)

_ASKED_IN_A_ROW = 64
"""Comparisons that are kept: whoever asks for one figure of a comparison asks for the others next."""


@dataclass(frozen=True, eq=False)
class Measured:
    """The values of one metric over runs that are taken together, in the order in which they ran.

    Equal to itself alone, so that what was worked out of it is found again.

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
            blocks = server_blocks(self.sample.servers)
            if blocks:
                return describe_blocks(self.values, blocks)
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
    def by_machine(self) -> Mapping[str, "Measured"]:
        """The values of each machine, the first one used first."""
        parts: dict[str, tuple[list[Record], list[float]]] = {}
        for record, value in zip(self.records, self.values, strict=True):
            records, values = parts.setdefault(machine_of(record), ([], []))
            records.append(record)
            values.append(value)
        return {
            machine: Measured(self.metric, tuple(records), tuple(values))
            for machine, (records, values) in parts.items()
        }

    @cached_property
    def levelled(self) -> "Measured":
        """The values with the machines brought to one level: from each value the distance of its machine's mean from
        the mean of all is taken. What is left is what varies within machines."""
        if len(self.machines) < 2:
            return self
        machines = [machine_of(record) for record in self.records]
        values = levelled(np.array(self.values), machines)
        return Measured(self.metric, self.records, tuple(values.tolist()))

    @cached_property
    def trend(self) -> Trend:
        """The values against their run order, within machines."""
        return trend(self.levelled.values)

    @cached_property
    def sample(self) -> Sample:
        """The values with their rounds and times, for comparisons. Raises ValueError where there are none."""
        return Sample.of(self.records, self.values)


def measured(name: str, records: Sequence[Record]) -> Measured | None:
    """The values of a metric over these runs, which stand in order of time; None where no run has the metric."""
    metric = None
    with_value, values = list[Record](), list[float]()
    for record in records:
        value = value_of(record, name)
        if name in record.metrics:
            metric = metric or metric_of(name, record.metrics[name])
        elif value is not None:
            metric = METRICS[name]
        if value is not None:
            with_value.append(record)
            values.append(value)
    return (
        None if metric is None else Measured(metric, tuple(with_value), tuple(values))
    )


def machine_of(record: Record) -> str:
    """The id of the machine of a run, empty where nothing says which it was."""
    return record.machine.id or ""


@dataclass(frozen=True)
class Margin:
    """Within how many percent a difference does not matter, and whether that was declared before the first run."""

    percent: float
    declared: bool


@lru_cache(maxsize=_ASKED_IN_A_ROW)
def compared(
    baseline: Measured | None, candidate: Measured | None, margin: Margin
) -> Comparison | None:
    """The values of the candidate against the baseline's, p-values uncorrected; None where one side has none."""
    if baseline is None or candidate is None:
        return None
    if not baseline.values or not candidate.values:
        return None
    machines = {*baseline.machines, *candidate.machines}
    if len(machines) == 1:
        return _compared_as_one(baseline, candidate, margin)
    return over_all(
        list(within_machines(baseline, candidate, margin).values()),
        machines=len(machines),
        runs=len(baseline.values) + len(candidate.values),
        metric=candidate.metric,
        apart=lambda: _compared_as_one(baseline, candidate, margin, order="blocked"),
    )


def over_all(
    within: Sequence[Comparison],
    *,
    machines: int,
    runs: int,
    metric: Metric,
    apart: Callable[[], Comparison],
) -> Comparison:
    """The comparison over several machines, of so many runs, from those within each machine that ran both sides.

    Where none did, `apart` describes all runs as blocks: a difference between machines cannot be told from one between
    the sides.
    """
    if not within:
        return replace(apart(), machines=machines)
    found = within[0]
    if len(within) > 1:
        found = over_machines(within, direction=metric.direction, unit=metric.unit)
    return replace(found, left_out=runs - found.n_baseline - found.n_candidate)


def within_machines(
    baseline: Measured, candidate: Measured, margin: Margin
) -> Mapping[str, Comparison]:
    """The comparison within each machine on which both sides have values, by machine."""
    return {
        machine: _compared_as_one(side, candidate.by_machine[machine], margin)
        for machine, side in baseline.by_machine.items()
        if machine in candidate.by_machine
    }


def _compared_as_one(
    baseline: Measured,
    candidate: Measured,
    margin: Margin,
    order: DeclaredOrder | None = None,
) -> Comparison:
    """One side against the other without regard to machines, as the order of the runs allows or as `order` says."""
    if order is None:
        order = declared_order([*baseline.records, *candidate.records])
    metric = candidate.metric
    return compare(
        baseline.sample,
        candidate.sample,
        order=order,
        margin_percent=margin.percent,
        margin_declared=margin.declared,
        direction=metric.direction,
        unit=metric.unit,
    )


def power_to_detect(
    baseline: Measured | None, candidate: Measured | None
) -> float | None:
    """Power against a difference of 10 %, as `compared` has it; None where the runs do not carry it. No margin of
    equivalence enters it."""
    if baseline is None or candidate is None:
        return None
    if not baseline.values or not candidate.values:
        return None
    if len({*baseline.machines, *candidate.machines}) > 1:
        margin = Margin(DETECTABLE_PERCENT, declared=False)
        found = compared(baseline, candidate, margin)
        return None if found is None else found.power_10_percent
    return power_of(
        baseline.sample,
        candidate.sample,
        order=declared_order([*baseline.records, *candidate.records]),
        unit=candidate.metric.unit,
    )
