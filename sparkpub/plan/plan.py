"""The order in which the runs of a matrix are measured."""

import random
from dataclasses import dataclass

from sparkpub.plan.matrix import Matrix

Slot = tuple[str, str, str, int]
"""(model, environment, workload, iteration)."""


@dataclass(frozen=True, order=True)
class PlannedRun:
    """One run in the order of the plan; `position` is 0-based."""

    position: int
    model: str
    environment: str
    workload: str
    iteration: int

    @property
    def slot(self) -> Slot:
        """(model, environment, workload, iteration)."""
        return (self.model, self.environment, self.workload, self.iteration)


def plan(matrix: Matrix) -> tuple[PlannedRun, ...]:
    """Every run of the matrix in the order it shall run.

    Unless runs are blocked, the order of environments is reversed in every second iteration, so that whatever drifts
    with time falls on each environment alike. A random order shuffles runs, or, where a server lives for several runs,
    the groups of runs that one server start serves.
    """
    slots = (
        _cell_by_cell(matrix) if matrix.order == "blocked" else _round_by_round(matrix)
    )
    if matrix.order == "random":
        slots = _shuffled(slots, matrix)
    return tuple(PlannedRun(position, *slot) for position, slot in enumerate(slots))


def _cell_by_cell(matrix: Matrix) -> list[Slot]:
    """All iterations of a cell, then those of the next."""
    slots = []
    for model, environment, workload in matrix.cells():
        for iteration in range(1, matrix.iterations_of(workload) + 1):
            slots.append((model, environment, workload, iteration))
    return slots


def _round_by_round(matrix: Matrix) -> list[Slot]:
    """One iteration of every cell, then the next."""
    slots = []
    for iteration in range(1, matrix.most_iterations + 1):
        for model, environment, workload in matrix.cells(backwards=iteration % 2 == 0):
            if iteration <= matrix.iterations_of(workload):
                slots.append((model, environment, workload, iteration))
    return slots


def _shuffled(slots: list[Slot], matrix: Matrix) -> list[Slot]:
    """The slots in a random order that the seed of the matrix reproduces."""
    draw = random.Random(matrix.seed)  # noqa: S311 - an order to reproduce, not a secret
    if not matrix.keeps_servers:
        draw.shuffle(slots)
        return slots
    served: dict[tuple[str, str, int], list[Slot]] = {}
    for slot in slots:
        model, environment, _, iteration = slot
        served.setdefault((model, environment, iteration), []).append(slot)
    groups = list(served.values())
    draw.shuffle(groups)
    return [slot for group in groups for slot in group]
