"""Whether runs that are set side by side are of one machine, or whole blocks on each: what differs otherwise may be the
machine."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, combinations
from typing import Any

from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.equality import (
    OWN_PROCESSORS,
    PROCESSOR_DIFFERENCE_PERCENT,
    START_RANGE_CELSIUS,
    SWAP_DIFFERENCE_GIB,
    mixed_runs,
)
from sparkpub.review.checks.facts import MACHINE, machines_of
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.timing import began, ended_at
from sparkpub.review.checks.view import View, about_cells, few, ids, label, listed
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Cell


def mixed_machines(view: View) -> Iterator[Finding]:
    """Runs that are pooled, compared or ranked although their machines or their software differ, one finding per
    cause."""
    found = grouped(_blocks(view), lambda block: block[0])
    for severity, blocks in found.items():
        cells = [cell for _, some, _ in blocks for cell in some]
        yield _not_whole(view, severity, cells, blocks[0][2], len(blocks) - 1)
    yield from _one_host_at_once(view)
    yield from mixed_runs(
        view, {cell for _, some, _ in found.get("error", ()) for cell in some}
    )
    yield from _workloads_apart(view)


# -- whole blocks ------------------------------------------------------------------------------------------------


def _blocks(view: View) -> Iterator[tuple[Severity, list[Cell], str]]:
    """The cells of models and workloads that several machines ran, where what is compared is not of the same machines:
    how bad it is, and why. What the comparison within machines leaves out, the means of cells do not."""
    sides = grouped(_counted(view), lambda cell: (cell[0], cell[2]))
    for cells in sides.values():
        runs = _runs_of(view, cells)
        machines = machines_of(runs)
        if len(machines) < 2:
            continue
        at = {
            name: {cell[1] for cell in cells if name in machines_of(view.counted[cell])}
            for name in machines
        }
        lone = next((name for name in machines if len(at[name]) < len(cells)), None)
        torn = _torn(runs)
        if len(cells) == 1 and not view.reviewed.replicated:
            yield "error", cells, "Nobody planned to repeat it on each machine."
        elif lone is not None:
            there = [cell[1] for cell in cells if cell[1] in at[lone]]
            yield (
                "error",
                cells,
                f"On machine {lone} only {listed(there, 'environments')} ran.",
            )
        elif torn:
            rounds = listed([f"round {number}" for number in torn], "rounds")
            yield (
                "warning",
                cells,
                f"The environments of {rounds} ran on different machines; quarantine those runs.",
            )


def _torn(runs: Iterable[Stored]) -> list[int]:
    """The iterations that two environments ran on different machines alone, repeats left out."""
    places: dict[int, dict[str, set[str]]] = {}
    for run in runs:
        record = run.record
        if record.repeat_of is None and record.machine.id is not None:
            sides = places.setdefault(record.iteration, {})
            sides.setdefault(record.environment, set()).add(record.machine.id)
    return sorted(
        iteration
        for iteration, sides in places.items()
        if any(one.isdisjoint(other) for one, other in combinations(sides.values(), 2))
    )


def _not_whole(
    view: View, severity: Severity, cells: Sequence[Cell], why: str, others: int
) -> Finding:
    """Cells with one kind of fault; the first of them is told."""
    runs = _runs_of(view, cells)
    values = machines_of(runs)
    names = listed([label(cell) for cell in cells], "cells")
    text = f"Runs of {names} are averaged or compared although they differ in machine: {few(values)}. {why}"
    if others:
        text += f" {others} more models or workloads are concerned."
    return _finding(view, severity, text, cells, MACHINE, values, runs=ids(runs))


# -- one machine under several names -----------------------------------------------------------------------------


def _one_host_at_once(view: View) -> Iterator[Finding]:
    """Machines that are containers of one host and measured at the same time: they shared processors, memory and power,
    so one does not repeat the other independently."""
    hosts = grouped(view.happened, lambda run: run.record.machine.boot)
    for boot, runs in hosts.items():
        at_once = [] if boot is None else _at_once(runs)
        if at_once:
            machines = machines_of(runs)
            text = (
                f"{len(machines)} machines ({few(machines)}) are parts of one host, and {len(at_once)} of their runs "
                "ran beside another one's: they are not independent. Measure one machine after the other."
            )
            yield _of_runs(view, text, at_once, "host of several machines")


def _at_once(runs: Sequence[Stored]) -> list[Stored]:
    """Runs that began while one of another machine was running."""
    over: dict[str | None, datetime] = {}
    found = []
    for run in sorted(runs, key=lambda run: began(run.record)):
        here, start = run.record.machine.id, began(run.record)
        if any(end > start for machine, end in over.items() if machine != here):
            found.append(run)
        over[here] = max(ended_at(run.record) or start, over.get(here, start))
    return found


# -- what readers set side by side -------------------------------------------------------------------------------


def _workloads_apart(view: View) -> Iterator[Finding]:
    """Workloads of a model that ran on different machines, so that a line through them would join machines."""
    table = view.reviewed.table
    rows = table[table["counts"] & table["machine"].notna()]
    by = rows.groupby(["model", "workload"], observed=True, sort=False)
    machines = by["machine"].agg(frozenset)
    sets = machines.groupby(level="model", sort=False, observed=True).nunique()
    models = list(sets.index[sets > 1])
    if models:
        cells = [cell for cell in _counted(view) if cell[0] in models]
        text = (
            f"The workloads of {listed(models, 'models')} ran on different machines: what differs between them may be "
            "the machine."
        )
        values = machines_of(_runs_of(view, cells))
        yield _finding(view, "warning", text, cells, "machine of a workload", values)


def _counted(view: View) -> list[Cell]:
    return [cell for cell, runs in view.counted.items() if runs]


# -- words -------------------------------------------------------------------------------------------------------


def _runs_of(view: View, cells: Iterable[Cell]) -> list[Stored]:
    """The counted runs of some cells."""
    return list(chain.from_iterable(view.counted[cell] for cell in cells))


def _of_runs(view: View, text: str, runs: Sequence[Stored], what: str) -> Finding:
    cells = dict.fromkeys(run.record.cell for run in runs)
    return _finding(view, "error", text, cells, what, machines_of(runs), runs=ids(runs))


def _finding(
    view: View,
    severity: Severity,
    text: str,
    cells: Iterable[Cell],
    what: str,
    machines: Sequence[str],
    **evidence: Any,
) -> Finding:
    return view.finding(
        "mixed-machines",
        severity,
        text,
        **about_cells(cells),
        what=what,
        values=list(machines),
        **evidence,
    )


CHECKS = (
    Check(
        "mixed-machines",
        "meaning",
        ("error", "warning", "info"),
        "Same software and conditions in all runs of a cell, and whole blocks on each machine?",
        mixed_machines,
        thresholds=(
            START_RANGE_CELSIUS,
            PROCESSOR_DIFFERENCE_PERCENT,
            OWN_PROCESSORS,
            SWAP_DIFFERENCE_GIB,
        ),
    ),
)
