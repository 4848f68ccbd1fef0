"""Whether runs that are pooled, and environments that are compared, differ in nothing that they must share."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, variance
from typing import TypeVar

from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.evidence import Samples, while_measuring
from sparkpub.review.checks.facts import (
    ABSENT,
    FACTS,
    MACHINE,
    Common,
    Groups,
    Seen,
    apart,
    machines_of,
)
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import (
    NamedValues,
    View,
    about_cells,
    few,
    ids,
    label,
    listed,
    named_values,
)
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Cell

START_DIFFERENCE_CELSIUS = Threshold(
    "start difference celsius",
    5.0,
    "Maximum difference between the mean start temperatures of environments: a warmer GPU boosts less.",
)
START_RANGE_CELSIUS = Threshold(
    "start range celsius",
    20.0,
    "Maximum difference between the start temperatures of a cell's runs: it was 12 at most in real campaigns.",
)
CLOCK_DIFFERENCE_SHARE = Threshold(
    "clock difference share",
    0.02,
    "Maximum relative difference between the mean clocks of environments: compute-bound throughput follows the SM "
    "clock, and decoding that of the memory.",
)
PROCESSOR_DIFFERENCE_PERCENT = Threshold(
    "processor difference percent",
    25.0,
    "Maximum difference between the mean CPU loads of environments: more means that another program was running.",
)
OWN_PROCESSORS = Threshold(
    "own processors",
    2.0,
    "Processors by whose load the runs of a cell may differ in any case: an engine and its client keep two busy.",
)
SWAP_DIFFERENCE_GIB = Threshold(
    "swap difference gib",
    0.5,
    "Maximum difference in swap use between environments: more means that one of them waited for the disk.",
)
CONDITION_SD = Threshold(
    "condition standard errors",
    4.0,
    "Minimum distance of two means of a condition in standard errors: less than 1 in 10,000 by chance.",
)

_RESOURCE = re.compile("THREADS|VISIBLE_DEVICES")
CONDITION_RUNS = 3
"""Runs on each side below which means say nothing."""


@dataclass(frozen=True)
class MeasuredCondition:
    """Something that was read of each run and should be the same on average: apart from `least` on, in its unit, or
    from that share of the mean where `relative`. It is read from the samples, else it is a metric of the record."""

    name: str
    unit: str
    least: Threshold
    sampled: Callable[[Record, Samples], float | None] | None = None
    metric: str | None = None
    relative: bool = False
    of_resources: bool = False
    """Whether it follows from the processors that an environment is given."""
    within: Threshold | None = None
    """How far the runs of one cell may be apart; None where the figures themselves would show it."""

    def read(self, view: View, runs: Iterable[Stored]) -> list[float]:
        """Its value in those runs of which it is known."""
        values = []
        for run in runs:
            samples = view.evidence.of(run).samples
            if samples is not None and self.sampled is not None:
                values.append(self.sampled(run.record, samples))
            elif self.metric is not None:
                values.append(run.record.value(self.metric))
        return [value for value in values if value is not None]


def _processor_load(record: Record, samples: Samples) -> float | None:
    load = while_measuring(record, samples, "cpu_percent")
    return fmean(load) if load else None


def _most_swapped(record: Record, samples: Samples) -> float | None:
    return max(while_measuring(record, samples, "swap_used_gib"), default=None)


CONDITIONS = (
    MeasuredCondition(
        "start temperature",
        "°C",
        START_DIFFERENCE_CELSIUS,
        metric="gpu_temp_start_celsius",
        within=START_RANGE_CELSIUS,
    ),
    MeasuredCondition(
        "SM clock under load",
        "MHz",
        CLOCK_DIFFERENCE_SHARE,
        sampled=lambda _, samples: samples.clock("gpu_clock_sm_mhz"),
        metric="gpu_clock_sm_mean_mhz",
        relative=True,
    ),
    MeasuredCondition(
        "memory clock under load",
        "MHz",
        CLOCK_DIFFERENCE_SHARE,
        sampled=lambda _, samples: samples.clock("gpu_clock_mem_mhz"),
        relative=True,
    ),
    MeasuredCondition(
        "processor load",
        "%",
        PROCESSOR_DIFFERENCE_PERCENT,
        sampled=_processor_load,
        of_resources=True,
        within=PROCESSOR_DIFFERENCE_PERCENT,
    ),
    MeasuredCondition(
        "swap in use",
        "GiB",
        SWAP_DIFFERENCE_GIB,
        sampled=_most_swapped,
        within=SWAP_DIFFERENCE_GIB,
    ),
)


Group = tuple[str, str]
"""A model and a workload."""
CellOrGroup = TypeVar("CellOrGroup", Cell, Group)
Differing = dict[str, dict[str, set[str]]]
"""Name to the values of each run of a cell, or of each environment of a group."""


def _seen(view: View, runs: Iterable[Stored]) -> list[Seen]:
    return [Seen(run.record, view.evidence.of(run).answer) for run in runs]


def _differing(
    facts: Iterable[Common],
    places: Mapping[CellOrGroup, Groups],
    elsewhere: Collection[CellOrGroup],
) -> Iterator[tuple[Common, dict[CellOrGroup, Differing]]]:
    """Each fact with the places in which it differs and no other fact explains that. `elsewhere` are those in which the
    machine differs, which is told by itself."""
    told: dict[str, Collection[CellOrGroup]] = {MACHINE: elsewhere}
    for fact in facts:
        explained: Collection[CellOrGroup] = told.get(fact.follows or "", ())
        new: dict[CellOrGroup, Differing] = {}
        for place, groups in places.items():
            names = apart(fact, groups)
            if names and place not in explained:
                new[place] = names
        told[fact.what] = set(new).union(explained)
        yield fact, new


# -- within a cell -----------------------------------------------------------------------------------------------


def mixed_runs(view: View, elsewhere: Collection[Cell]) -> Iterator[Finding]:
    """Cells that pool runs which differ in something, one finding per fact; those of `elsewhere` are of several
    machines that did not measure the same."""
    cells = {
        cell: {run.run_id: _seen(view, [run]) for run in runs}
        for cell, runs in view.counted.items()
    }
    facts = [fact for fact in FACTS if fact.pooled is not None]
    for fact, found in _differing(facts, cells, elsewhere):
        by_severity: dict[Severity, dict[Cell, dict[str, set[str]]]] = defaultdict(dict)
        for cell, names in found.items():
            for name, values in names.items():
                seen = set().union(*values.values())
                severity = fact.lacked if ABSENT in seen else fact.pooled
                if severity is not None:
                    by_severity[severity].setdefault(cell, {})[name] = seen
        for severity, mixed in by_severity.items():
            yield _mixed(view, fact, severity, mixed)
    for condition in CONDITIONS:
        yield from _mixed_condition(view, condition)


def _mixed(
    view: View,
    fact: Common,
    severity: Severity,
    mixed: Mapping[Cell, Mapping[str, set[str]]],
) -> Finding:
    together: dict[str, set[str]] = defaultdict(set)
    for names in mixed.values():
        for name, found in names.items():
            together[name] |= found
    values = {name: sorted(found) for name, found in together.items()}
    sides = named_values(fact.what, values)
    return _averaged(view, fact.what, severity, list(mixed), sides)


def _averaged(
    view: View, what: str, severity: Severity, cells: Sequence[Cell], told: NamedValues
) -> Finding:
    names = listed([label(cell) for cell in cells], "cells")
    text = f"Runs of {names} are averaged although they differ in {what}: {told.words}."
    if severity != "info":
        text += " Quarantine those that are not as planned, and re-run them."
    return view.finding(
        "mixed-machines",
        severity,
        text,
        **about_cells(cells),
        runs=[run for cell in cells for run in ids(view.counted[cell])],
        what=what,
        values=told.values,
    )


def _mixed_condition(view: View, condition: MeasuredCondition) -> Iterator[Finding]:
    """Cells whose runs lie further apart in a condition than repetitions of one measurement do."""
    ranges: dict[Cell, str] = {}
    for cell, runs in view.counted.items():
        for of_machine in grouped(runs, lambda run: run.record.machine.id).values():
            read = condition.read(view, of_machine)
            if not read or condition.within is None:
                continue
            allowed = float(condition.within)
            if condition.of_resources:
                allowed = max(allowed, OWN_PROCESSORS * 100 / _processors(of_machine))
            if max(read) - min(read) > allowed:
                ranges[cell] = f"{min(read):.0f} to {max(read):.0f} {condition.unit}"
    if ranges:
        told = NamedValues(next(iter(ranges.values())), list(ranges.values()))
        yield _averaged(view, condition.name, "warning", list(ranges), told)


def _processors(runs: Sequence[Stored]) -> int:
    """How many processors the machine of some runs has; no limit where they do not say it."""
    return max(run.record.machine.cpu_count or 100 for run in runs)


# -- between environments ----------------------------------------------------------------------------------------


def unequal_environments(view: View) -> Iterator[Finding]:
    """Comparisons that are not only between environments: what else differs, one finding per cause."""
    groups: dict[Group, dict[str, Sequence[Stored]]] = defaultdict(dict)
    for (model, environment, workload), runs in view.counted.items():
        if runs:
            groups[model, workload][environment] = runs
    compared = {group: sides for group, sides in groups.items() if len(sides) > 1}
    yield from _unequal_facts(view, compared)
    for condition in CONDITIONS:
        yield from _unequal_condition(view, condition, compared)


Environments = Mapping[str, Sequence[Stored]]
"""The runs of each environment that is compared."""


def _unequal_facts(
    view: View, compared: Mapping[Group, Environments]
) -> Iterator[Finding]:
    elsewhere = [
        group
        for group, sides in compared.items()
        if len({machines_of(runs) for runs in sides.values()}) > 1
    ]
    seen = {
        group: {environment: _seen(view, runs) for environment, runs in sides.items()}
        for group, sides in compared.items()
    }
    facts = [fact for fact in FACTS if fact.compared is not None]
    for fact, found in _differing(facts, seen, elsewhere):
        names: dict[str, list[str]] = {}
        cells: dict[Cell, None] = {}
        for (model, workload), apart_in in found.items():
            for name, values in apart_in.items():
                known = {
                    environment: few(sorted(has))
                    for environment, has in values.items()
                    if fact.absence_counts or ABSENT not in has
                }
                if len(set(known.values())) > 1:
                    names[name] = [f"{has} ({of})" for of, has in known.items()]
                    cells |= dict.fromkeys((model, of, workload) for of in known)
        if fact.compared is not None and names:
            told = named_values(fact.what, names)
            yield _unequal(view, fact.what, fact.compared, list(cells), told)


def _unequal(
    view: View, what: str, severity: Severity, cells: Sequence[Cell], told: NamedValues
) -> Finding:
    groups = dict.fromkeys(f"{model}/{workload}" for model, _, workload in cells)
    text = (
        f"More than the environment differs in {listed(list(groups), 'comparisons')}: {what} {told.words}. The "
        "comparison includes that difference."
    )
    return view.finding(
        "unequal-environments",
        severity,
        text,
        cells=[label(cell) for cell in cells],
        what=what,
        values=told.values,
    )


def _unequal_condition(
    view: View, condition: MeasuredCondition, compared: Mapping[Group, Environments]
) -> Iterator[Finding]:
    """A condition whose means lie apart between environments that are given the same resources."""
    words: list[str] = []
    cells: dict[Cell, None] = {}
    for (model, workload), sides in compared.items():
        for one, other in combinations(sides, 2):
            pair = [(model, environment, workload) for environment in (one, other)]
            first, then = (condition.read(view, sides[name]) for name in (one, other))
            given = [_resources(view, cell) for cell in pair]
            if condition.of_resources and given[0] != given[1]:
                continue
            if _lie_apart(condition, first, then):
                unit = f"{condition.unit} on average in"
                words.append(
                    f"{fmean(first):.0f} {unit} {one} and {fmean(then):.0f} {unit} {other}"
                )
                cells |= dict.fromkeys(pair)
    if words:
        told = NamedValues(words[0], words)
        yield _unequal(view, condition.name, "warning", list(cells), told)


def _resources(view: View, cell: Cell) -> dict[str, object]:
    """What an environment sets that gives its runs more or fewer processors, GPUs or memory: two that differ in it may
    well differ in speed."""
    declared = view.counted[cell][0].record.requested.environment
    variables = declared.get("env") or {}
    given = {name: value for name, value in variables.items() if _RESOURCE.search(name)}
    return given | {
        name: declared[name] for name in ("cpuset", "memory") if name in declared
    }


def _lie_apart(
    condition: MeasuredCondition, one: Sequence[float], other: Sequence[float]
) -> bool:
    """Whether two means differ by more than may be, and by several standard errors."""
    if min(len(one), len(other)) < CONDITION_RUNS:
        return False
    least = condition.least * (fmean(one) if condition.relative else 1.0)
    difference = abs(fmean(one) - fmean(other))
    error = math.sqrt(variance(one) / len(one) + variance(other) / len(other))
    return difference > least and difference > CONDITION_SD * error


CHECKS = (
    Check(
        "unequal-environments",
        "meaning",
        ("error", "warning"),
        "Do compared environments differ in the environment only?",
        unequal_environments,
        thresholds=(
            *dict.fromkeys(condition.least for condition in CONDITIONS),
            CONDITION_SD,
        ),
        remedy="Make the environments alike, and re-run.",
    ),
)
