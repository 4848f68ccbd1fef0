"""Whether the runs of several machines form whole blocks: only those may be pooled, and compared within machines."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from sparkpub.record.store import Stored
from sparkpub.review.checks.finding import Severity
from sparkpub.review.checks.view import View, listed
from sparkpub.review.reviewed import Cell

Places = Mapping[int, set[str]]
"""Iteration to the machines on which an environment ran it."""


@dataclass(frozen=True)
class Broken:
    """Cells of a model and workload whose machines did not measure the same, and how.

    An error where a machine measured one side alone. Single rounds that are torn, as when a machine went away between
    two runs, are a warning: the comparison within machines leaves them out, and the means of the cells do not.
    """

    cells: tuple[Cell, ...]
    why: str
    severity: Severity = "error"


def several_machines(runs: Sequence[Stored]) -> list[str]:
    """The machines that runs name, in alphabetical order; runs that name none are not counted."""
    return sorted({run.record.machine.id for run in runs if run.record.machine.id})


def broken_blocks(view: View) -> Iterator[Broken]:
    """Models and workloads that ran on several machines, and whose runs must not be pooled over them."""
    groups: dict[tuple[str, str], dict[Cell, Sequence[Stored]]] = defaultdict(dict)
    for cell, runs in view.counted.items():
        if runs:
            groups[cell[0], cell[2]][cell] = runs
    for cells in groups.values():
        machines = several_machines(list(chain.from_iterable(cells.values())))
        if len(machines) > 1:
            why = _why(view, cells, machines)
            torn = _torn([_places(runs) for runs in cells.values()])
            if why:
                yield Broken(tuple(cells), why)
            elif torn:
                rounds = listed([f"round {number}" for number in torn], "rounds")
                text = f"The environments of {rounds} ran on different machines; quarantine those runs."
                yield Broken(tuple(cells), text, "warning")


def _why(
    view: View, cells: Mapping[Cell, Sequence[Stored]], machines: Sequence[str]
) -> str:
    """Why one side of a model and workload was measured alone; empty where none was."""
    if len(cells) == 1:
        if view.reviewed.replicated:
            return ""
        return "Nobody planned to repeat it on each machine."
    for machine in machines:
        there = [cell[1] for cell, runs in cells.items() if _ran_on(runs, machine)]
        if len(there) < len(cells):
            return f"On machine {machine} only {listed(there, 'environments')} ran."
    return ""


def _ran_on(runs: Sequence[Stored], machine: str) -> bool:
    return any(run.record.machine.id == machine for run in runs)


def _places(runs: Sequence[Stored]) -> Places:
    """Where runs ran, without repeats."""
    found: dict[int, set[str]] = defaultdict(set)
    for run in runs:
        machine = run.record.machine.id
        if machine is not None and run.record.repeat_of is None:
            found[run.record.iteration].add(machine)
    return found


def _torn(environments: Sequence[Places]) -> list[int]:
    """The iterations that two environments ran on different machines alone."""
    torn = set()
    for one, other in combinations(environments, 2):
        for iteration in one.keys() & other.keys():
            if not one[iteration] & other[iteration]:
                torn.add(iteration)
    return sorted(torn)


def swept_over_machines(view: View) -> list[str]:
    """Models whose workloads ran on different machines, so that a line through them would join machines."""
    machines: dict[str, dict[str, set[str]]] = defaultdict(dict)
    for (model, _, workload), runs in view.counted.items():
        known = set(several_machines(runs))
        if known:
            machines[model].setdefault(workload, set()).update(known)
    found = []
    for model, by_workload in machines.items():
        each = list(by_workload.values())
        if any(one != each[0] for one in each):
            found.append(model)
    return found


def ranked_over_machines(view: View) -> dict[str, list[str]]:
    """Models to their machines, where models are all that can be set side by side and not all ran on the same ones.

    A campaign of several environments compares those, within each machine.
    """
    machines: dict[str, list[str]] = {}
    environments = set()
    for model in dict.fromkeys(model for model, _, _ in view.counted):
        of_model = [runs for cell, runs in view.counted.items() if cell[0] == model]
        known = several_machines(list(chain.from_iterable(of_model)))
        if known:
            machines[model] = known
    for (_, environment, _), runs in view.counted.items():
        if runs:
            environments.add(environment)
    if len(environments) > 1 or len(set(map(tuple, machines.values()))) < 2:
        return {}
    return machines
