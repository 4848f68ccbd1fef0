"""The order in which the runs of a matrix are measured."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from sparkpub.plan.matrix import Matrix

PlannedSlot = tuple[str, str, str, int]
"""(model, environment, workload, iteration)."""


@dataclass(frozen=True, order=True)
class PlannedRun:
    """One run in the order of the plan; `position` is 0-based.

    `machine` is the id of the machine that has to measure it where the campaign is repeated on each machine, and None
    where any machine may. Every machine has the same positions: it takes the plan in the same order.
    """

    position: int
    model: str
    environment: str
    workload: str
    iteration: int
    machine: str | None = None

    @property
    def slot(self) -> PlannedSlot:
        """(model, environment, workload, iteration)."""
        return (self.model, self.environment, self.workload, self.iteration)

    @property
    def cell(self) -> tuple[str, str, str]:
        """(model, environment, workload)."""
        return (self.model, self.environment, self.workload)


def plan(matrix: Matrix, machines: Sequence[str] = ()) -> tuple[PlannedRun, ...]:
    """Every run of the matrix in the order it shall run.

    With `machines: replicate` the whole of it once for each of the `machines` (ids as in a record); where none is
    known yet, and with `machines: split`, once for whichever machine measures.

    Unless runs are blocked, the order of environments is reversed in every second iteration, so that whatever drifts
    with time falls on each environment alike. A random order shuffles runs, or, where a server lives for several runs,
    the groups of runs that one server start serves.
    """
    slots = _in_order(matrix)
    places: Sequence[str | None] = (None,)
    if matrix.machines == "replicate" and machines:
        places = machines
    runs = []
    for machine in places:
        for position, slot in enumerate(slots):
            runs.append(PlannedRun(position, *slot, machine=machine))
    return tuple(runs)


def _in_order(matrix: Matrix) -> list[PlannedSlot]:
    """The slots in the order that the matrix declares."""
    if matrix.order == "blocked":
        return _cell_by_cell(matrix)
    if matrix.order == "random":
        return _shuffled(_round_by_round(matrix), matrix)
    return _round_by_round(matrix)


def _cell_by_cell(matrix: Matrix) -> list[PlannedSlot]:
    """All iterations of a cell, then those of the next."""
    slots = []
    for model, environment, workload in matrix.cells():
        for iteration in range(1, matrix.iterations_of(workload) + 1):
            slots.append((model, environment, workload, iteration))
    return slots


def _round_by_round(matrix: Matrix) -> list[PlannedSlot]:
    """One iteration of every cell, then the next."""
    slots = []
    for iteration in range(1, matrix.most_iterations + 1):
        for model, environment, workload in matrix.cells(backwards=iteration % 2 == 0):
            if iteration <= matrix.iterations_of(workload):
                slots.append((model, environment, workload, iteration))
    return slots


def _shuffled(slots: list[PlannedSlot], matrix: Matrix) -> list[PlannedSlot]:
    """The slots in a random order that the seed of the matrix reproduces."""
    draw = random.Random(matrix.seed)  # noqa: S311 - an order to reproduce, not a secret
    if not matrix.keeps_servers:
        draw.shuffle(slots)
        return slots
    served: dict[tuple[str, str, int], list[PlannedSlot]] = {}
    for slot in slots:
        model, environment, _, iteration = slot
        served.setdefault((model, environment, iteration), []).append(slot)
    groups = list(served.values())
    draw.shuffle(groups)
    return [slot for group in groups for slot in group]
