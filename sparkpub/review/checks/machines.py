"""Whether runs that are pooled are of one machine, one software and one treatment."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain

from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.blocks import (
    Broken,
    broken_blocks,
    ranked_over_machines,
    several_machines,
    swept_over_machines,
)
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.facts import ABSENT, FACTS, MACHINE, Fact, several
from sparkpub.review.checks.finding import SEVERITIES, Finding, Severity
from sparkpub.review.checks.timing import began, ended_at
from sparkpub.review.checks.view import (
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

Mixed = dict[Cell, dict[str, set[str]]]
"""Cell to the names of a fact in which its runs differ, each with its values."""


def mixed_machines(view: View) -> Iterator[Finding]:
    """Cells that pool runs of different machines, but for whole blocks, or of different software; one finding per
    cause. And models that are ranked, or workloads of a model, on different machines."""
    blocks = list(broken_blocks(view))
    for severity in SEVERITIES:
        alike = [block for block in blocks if block.severity == severity]
        if alike:
            yield _broken(view, alike)
    yield from _one_gpu_of_several(view)
    yield from _one_host_at_once(view)
    errors = [block for block in blocks if block.severity == "error"]
    broken = {cell for block in errors for cell in block.cells}
    told: dict[str, set[Cell]] = {MACHINE.what: broken}
    for fact in FACTS:
        if fact is MACHINE or fact.pooled is None:
            continue
        explained = told.get(fact.follows or "", set())
        mixed = _mixed_cells(view, fact, broken)
        told[fact.what] = mixed.keys() | explained
        new = {cell: names for cell, names in mixed.items() if cell not in explained}
        yield from _mixed(view, fact, fact.pooled, new)
    models = swept_over_machines(view)
    if models:
        yield _swept(view, models)
    apart = ranked_over_machines(view)
    if apart:
        yield _ranked(view, apart)


def _mixed_cells(view: View, fact: Fact, broken: Collection[Cell]) -> Mixed:
    """Cells whose runs have several values of a fact; of what every machine has of its own, on one machine."""
    mixed: Mixed = {}
    for cell, runs in view.counted.items():
        parts = [[run.record for run in runs]]
        if fact.own and cell not in broken:
            parts = _by_machine(runs)
        for part in parts:
            for name, found in several(fact, part).items():
                mixed.setdefault(cell, {}).setdefault(name, set()).update(found)
    return mixed


def _by_machine(runs: Sequence[Stored]) -> list[list[Record]]:
    """Runs by machine; those that name none together."""
    groups = grouped(runs, lambda run: run.record.machine.id).values()
    return [[run.record for run in of_machine] for of_machine in groups]


def _mixed(
    view: View, fact: Fact, severity: Severity, mixed: Mixed
) -> Iterator[Finding]:
    """One finding for values that differ, and a note for names that some runs of a cell lack."""
    lacking: Mixed = {}
    differing: Mixed = {}
    for cell, names in mixed.items():
        for name, found in names.items():
            kind = lacking if ABSENT in found else differing
            kind.setdefault(cell, {})[name] = found
    if differing:
        yield _mixed_finding(view, fact, severity, differing)
    if lacking:
        yield _mixed_finding(view, fact, "info", lacking)


def _mixed_finding(view: View, fact: Fact, severity: Severity, mixed: Mixed) -> Finding:
    together: dict[str, set[str]] = defaultdict(set)
    for names in mixed.values():
        for name, found in names.items():
            together[name] |= found
    sides = named_values(
        fact.what, {name: sorted(found) for name, found in together.items()}
    )
    cells = list(mixed)
    names_of = [label(cell) for cell in cells]
    text = f"Runs of {listed(names_of, 'cells')} are pooled although they differ in {fact.what}: {sides.words}."
    if severity != "info":
        text += " Quarantine those that are not as planned, and re-run them."
    return view.finding(
        "mixed-machines",
        severity,
        text,
        **about_cells(cells),
        runs=ids(_runs_of(view, cells)),
        what=fact.what,
        values=sides.values,
    )


def _one_gpu_of_several(view: View) -> Iterator[Finding]:
    """GPUs that stand under several machines: their runs are of one machine, and say nothing of another."""
    machines: dict[str, dict[str, None]] = defaultdict(dict)
    for run in view.happened:
        machine = run.record.machine
        for gpu in machine.gpus:
            if gpu.id is not None and machine.id is not None:
                machines[gpu.id][machine.id] = None
    for gpu_id, ids_of in machines.items():
        if len(ids_of) < 2:
            continue
        runs = [
            run
            for run in view.happened
            if any(gpu.id == gpu_id for gpu in run.record.machine.gpus)
        ]
        text = (
            f"GPU {gpu_id} is recorded as part of {len(ids_of)} machines ({few(list(ids_of))}): its runs are of one "
            "machine, and do not repeat one another on another one."
        )
        yield view.finding(
            "mixed-machines",
            "error",
            text,
            cells=list(dict.fromkeys(label(run.record.cell) for run in runs)),
            runs=ids(runs),
            what="GPU of several machines",
        )


def _one_host_at_once(view: View) -> Iterator[Finding]:
    """Machines that are containers of one host and measured at the same time: they shared processors, memory and power,
    so one does not repeat the other independently."""
    hosts = grouped(view.happened, lambda run: run.record.machine.boot)
    for boot, runs in hosts.items():
        machines = several_machines(runs)
        if boot is None or len(machines) < 2:
            continue
        at_once = _at_once(runs)
        if not at_once:
            continue
        cells = list(dict.fromkeys(run.record.cell for run in at_once))
        text = (
            f"{len(machines)} machines ({few(machines)}) are parts of one host, and {len(at_once)} of their runs ran "
            "beside another one's: they are not independent. Measure one machine after the other."
        )
        yield view.finding(
            "mixed-machines",
            "error",
            text,
            **about_cells(cells),
            runs=ids(at_once),
            what="host of several machines",
        )


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


def _broken(view: View, blocks: Sequence[Broken]) -> Finding:
    """Machines that did not measure whole blocks, all of one severity."""
    cells = list(chain.from_iterable(block.cells for block in blocks))
    runs = _runs_of(view, cells)
    values = several_machines(runs)
    names = listed([label(cell) for cell in cells], "cells")
    text = f"Runs of {names} are pooled or compared although they differ in machine: {few(values)}. {blocks[0].why}"
    if len(blocks) > 1:
        text += f" {len(blocks) - 1} more models or workloads are concerned."
    return view.finding(
        "mixed-machines",
        blocks[0].severity,
        text,
        **about_cells(cells),
        runs=ids(runs),
        what=MACHINE.what,
        values=values,
    )


def _runs_of(view: View, cells: Iterable[Cell]) -> list[Stored]:
    """The counted runs of some cells."""
    return list(chain.from_iterable(view.counted[cell] for cell in cells))


def _swept(view: View, models: Sequence[str]) -> Finding:
    """The workloads of a model on different machines."""
    cells = [cell for cell, runs in view.counted.items() if cell[0] in models and runs]
    text = (
        f"The workloads of {listed(models, 'models')} ran on different machines: what differs between them may be the "
        "machine."
    )
    return view.finding(
        "mixed-machines",
        "warning",
        text,
        cells=[label(cell) for cell in cells],
        what="machine of a workload",
        values=several_machines(_runs_of(view, cells)),
    )


def _ranked(view: View, machines: Mapping[str, Sequence[str]]) -> Finding:
    """Models that only a ranking sets side by side, each on a machine of its own."""
    cells = [cell for cell, runs in view.counted.items() if runs]
    names = listed(list(machines), "models")
    text = (
        f"Models ran on different machines ({names}): a ranking of them includes the difference between the "
        "machines. To rank models, measure each of them on every machine (machines: replicate)."
    )
    return view.finding(
        "mixed-machines",
        "warning",
        text,
        cells=[label(cell) for cell in cells],
        what="machine of a model",
        values=sorted(set(chain.from_iterable(machines.values()))),
    )


CHECKS = (
    Check(
        "mixed-machines",
        "meaning",
        ("error", "warning", "info"),
        "Same software in all runs of a cell, and whole blocks on each machine?",
        mixed_machines,
        implies=frozenset({"unequal-environments"}),
    ),
)
