"""Whether the campaign holds what its matrix declares: every cell, every iteration, each once."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.view import View, ids, label, listed
from sparkpub.review.frame import Cell


def duplicate_iteration(view: View) -> Iterator[Finding]:
    """An iteration that stands more than once in a cell. The first good record counts, see `Frame.doubles`."""
    for cell, runs in view.ran.items():
        by_iteration: dict[int, list[Stored]] = defaultdict(list)
        for stored in runs:
            if stored.record.repeat_of is None:
                by_iteration[stored.record.iteration].append(stored)
        for iteration, same in by_iteration.items():
            if len(same) > 1:
                kept, *others = ids(same)
                text = (
                    f"Iteration {iteration} of {label(cell)} was recorded {len(same)} times. "
                    f"The first record counts; the {len(others)} later {'one is' if len(others) == 1 else 'ones are'} "
                    "left out of the figures, so that nobody can choose among results."
                )
                yield view.finding(
                    "duplicate-iteration",
                    "error",
                    text,
                    cell=cell,
                    iteration=iteration,
                    runs=[kept, *others],
                    counted=kept,
                    excluded=others,
                )


def missing_cell(view: View) -> Iterator[Finding]:
    """A declared cell without one good run."""
    for cell, runs in view.recorded.items():
        good = [run for run in runs if run.record.status == "ok"]
        if not good:
            words = (
                "was never run" if not runs else f"has no good run among {len(runs)}"
            )
            yield view.finding(
                "missing-cell",
                "warning",
                f"{label(cell)} is declared in the matrix and {words}.",
                cell=cell,
                recorded=len(runs),
            )


def unbalanced(view: View) -> Iterator[Finding]:
    """Cells with more or fewer good runs than declared; without a matrix, than the other cells."""
    good = {
        cell: sum(
            1
            for run in runs
            if run.record.status == "ok" and run.record.repeat_of is None
        )
        for cell, runs in view.recorded.items()
    }
    matrix = view.campaign.matrix
    if matrix is None and len(set(good.values())) == 1:
        return
    most = max(good.values(), default=0)
    others: dict[int, list[Cell]] = defaultdict(list)
    for cell, number in good.items():
        declared = most if matrix is None else matrix.iterations_of(cell[2])
        if number not in (0, declared):
            others[declared].append(cell)
    against = "other cells have" if matrix is None else "the matrix declares"
    for declared, cells in others.items():
        yield _unbalanced(
            view,
            {cell: good[cell] for cell in cells},
            f"{against} {declared}",
            declared,
        )


def _unbalanced(
    view: View, good: Mapping[Cell, int], against: str, declared: int
) -> Finding:
    """Cells whose number of good runs is not the one that is wanted."""
    if len(good) == 1:
        ((cell, number),) = good.items()
        text = f"{label(cell)} has {number} good runs and {against}."
        return view.finding(
            "unbalanced", "warning", text, cell=cell, good=number, declared=declared
        )
    names = [label(cell) for cell in good]
    text = f"{listed(names, 'cells')} have {min(good.values())} to {max(good.values())} good runs and {against}."
    counts = dict(zip(names, good.values(), strict=True))
    return view.finding(
        "unbalanced", "warning", text, cells=names, good=counts, declared=declared
    )


CHECKS = (
    Check(
        "duplicate-iteration",
        "meaning",
        ("error",),
        "Duplicate iterations?",
        duplicate_iteration,
        implies=frozenset({"unbalanced"}),
    ),
    Check(
        "missing-cell",
        "meaning",
        ("warning",),
        "Was every declared cell run?",
        missing_cell,
    ),
    Check(
        "unbalanced",
        "meaning",
        ("warning",),
        "Has every cell the declared number of runs?",
        unbalanced,
    ),
)
