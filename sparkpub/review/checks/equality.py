"""Whether environments that are compared differ in nothing else: in facts that runs state, and in conditions read."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, variance

from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.facts import FACTS, Fact, apart
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.ratios import resources
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import (
    Sides,
    View,
    few,
    label,
    listed,
    named_values,
)
from sparkpub.review.reviewed import Cell

START_DIFFERENCE_CELSIUS = Threshold(
    "start difference celsius",
    5.0,
    "Maximum difference between the mean start temperatures of environments: a warmer GPU boosts less.",
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

CONDITION_RUNS = 3
"""Runs on each side below which means say nothing."""


Group = tuple[str, str]
"""A model and a workload."""
Groups = Mapping[Group, Mapping[Cell, Sequence[Record]]]
"""What is compared: the cells of the environments of each, with their runs."""


def unequal_environments(view: View) -> Iterator[Finding]:
    """Comparisons that are not only between environments: what else differs, one finding per cause."""
    groups = _compared(view)
    told: dict[str, set[Group]] = defaultdict(set)
    for fact in FACTS:
        if fact.compared is None:
            continue
        differing, cells = _differing(fact, groups, told[fact.follows or ""])
        told[fact.what] = differing.keys() | told[fact.follows or ""]
        if differing:
            names = {
                name: words for of in differing.values() for name, words in of.items()
            }
            sides = named_values(fact.what, names)
            yield _unequal(
                view, fact.what, fact.compared, list(differing), cells, sides
            )
    yield from _conditions(view, groups)


def _compared(view: View) -> Groups:
    """The groups of several environments with runs, and what their evidence says of the engine's settings today: a
    record may be older than a setting."""
    groups: dict[Group, dict[Cell, Sequence[Stored]]] = defaultdict(dict)
    for cell, runs in view.counted.items():
        if runs:
            groups[cell[0], cell[2]][cell] = runs
    return {
        group: {
            cell: [_with_settings(view, run) for run in runs]
            for cell, runs in cells.items()
        }
        for group, cells in groups.items()
        if len(cells) > 1
    }


def _with_settings(view: View, run: Stored) -> Record:
    record, answer = run.record, view.evidence.of(run).answer
    if answer is None:
        return record
    settings = answer.observed.settings | record.observed.settings
    observed = record.observed.model_copy(update={"settings": settings})
    return record.model_copy(update={"observed": observed})


def _differing(
    fact: Fact, groups: Groups, explained: set[Group]
) -> tuple[dict[Group, dict[str, list[str]]], list[Cell]]:
    """Groups whose environments differ in a fact that no other one explains, with the values of each name, in words;
    and the cells that do."""
    found: dict[Group, dict[str, list[str]]] = {}
    concerned: dict[Cell, None] = {}
    for group, places in groups.items():
        if group in explained:
            continue
        for one, other in combinations(places, 2):
            for name, first, then in apart(fact, places[one], places[other]):
                words = [
                    f"{few(sorted(first))} ({one[1]})",
                    f"{few(sorted(then))} ({other[1]})",
                ]
                found.setdefault(group, {})[name] = words
                concerned |= {one: None, other: None}
    return found, list(concerned)


def _unequal(
    view: View,
    what: str,
    severity: Severity,
    groups: Sequence[Group],
    cells: Sequence[Cell],
    sides: Sides,
) -> Finding:
    which = listed(["/".join(group) for group in groups], "comparisons")
    text = (
        f"The environments of {which} differ in more than the environment: {what} is {sides.words}. The comparison "
        "includes that difference."
    )
    return view.finding(
        "unequal-environments",
        severity,
        text,
        cells=[label(cell) for cell in cells],
        what=what,
        values=sides.values,
    )


@dataclass(frozen=True)
class MeasuredCondition:
    """Something that was read of each run and should be the same on average: apart from `least` on, in its unit, or
    from that share of the mean where `relative`."""

    name: str
    unit: str
    read: Callable[[View, Stored], float | None]
    least: Threshold
    relative: bool = False
    of_resources: bool = False
    """Whether it follows from the processors that an environment is given."""


def _start(_view: View, stored: Stored) -> float | None:
    return stored.record.value("gpu_temp_start_celsius")


def _clock(view: View, stored: Stored) -> float | None:
    samples = view.evidence.of(stored).samples
    if samples is None:
        return stored.record.value("gpu_clock_sm_mean_mhz")
    return samples.clock_under_load_mhz


def _memory_clock(view: View, stored: Stored) -> float | None:
    samples = view.evidence.of(stored).samples
    return None if samples is None else samples.memory_clock_under_load_mhz


def _processors(view: View, stored: Stored) -> float | None:
    samples = view.evidence.of(stored).samples
    return None if samples is None else samples.cpu_percent


def _swapped(view: View, stored: Stored) -> float | None:
    samples = view.evidence.of(stored).samples
    return None if samples is None else samples.swap_used_gib


CONDITIONS = (
    MeasuredCondition("start temperature", "°C", _start, START_DIFFERENCE_CELSIUS),
    MeasuredCondition(
        "SM clock under load", "MHz", _clock, CLOCK_DIFFERENCE_SHARE, relative=True
    ),
    MeasuredCondition(
        "memory clock under load",
        "MHz",
        _memory_clock,
        CLOCK_DIFFERENCE_SHARE,
        relative=True,
    ),
    MeasuredCondition(
        "processor load",
        "%",
        _processors,
        PROCESSOR_DIFFERENCE_PERCENT,
        of_resources=True,
    ),
    MeasuredCondition("swap in use", "GiB", _swapped, SWAP_DIFFERENCE_GIB),
)


def _conditions(view: View, groups: Groups) -> Iterator[Finding]:
    """Conditions whose means lie apart between environments, one finding per condition."""
    for condition in CONDITIONS:
        unequal: dict[tuple[str, str], str] = {}
        cells: list[Cell] = []
        for group, places in groups.items():
            for one, other in combinations(places, 2):
                words = _means_apart(view, condition, one, other)
                if words is not None:
                    unequal[group] = words
                    cells += [one, other]
        if unequal:
            told = Sides(next(iter(unequal.values())), list(unequal.values()))
            yield _unequal(view, condition.name, "warning", list(unequal), cells, told)


def _means_apart(
    view: View, condition: MeasuredCondition, one: Cell, other: Cell
) -> str | None:
    """The means of a condition in two cells, in words, where they lie apart and nobody wanted them to."""
    if condition.of_resources and resources(view, one) != resources(view, other):
        return None
    first, then = _read(view, condition, one), _read(view, condition, other)
    if min(len(first), len(then)) < CONDITION_RUNS:
        return None
    least = float(condition.least)
    if condition.relative:
        least *= fmean(first)
    if not _lie_apart(first, then, least):
        return None
    unit = f"{condition.unit} on average in"
    return f"{fmean(first):.0f} {unit} {one[1]} and {fmean(then):.0f} {unit} {other[1]}"


def _read(view: View, condition: MeasuredCondition, cell: Cell) -> list[float]:
    values = [condition.read(view, run) for run in view.counted[cell]]
    return [value for value in values if value is not None]


def _lie_apart(one: Sequence[float], other: Sequence[float], least: float) -> bool:
    """Whether two means differ by more than `least` and by several standard errors."""
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
