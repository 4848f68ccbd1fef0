"""Whether the campaign holds what its matrix declares: every cell, every iteration, each once."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from sparkpub.plan import coverage
from sparkpub.record.store import Stored
from sparkpub.record.text import counted
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.view import (
    View,
    about_cells,
    capital,
    ids,
    label,
    listed,
)
from sparkpub.review.reviewed import Cell


def duplicate_iteration(view: View) -> Iterator[Finding]:
    """Iterations that stand more than once in their cell. The first good record counts, see
    `ReviewedCampaign.doubles`."""
    again: list[list[Stored]] = []
    for runs in view.ran.values():
        by_slot: dict[tuple[str, int], list[Stored]] = defaultdict(list)
        for stored in runs:
            if stored.record.repeat_of is None:
                by_slot[view.reviewed.slot(stored.record)].append(stored)
        again += [same for same in by_slot.values() if len(same) > 1]
    if not again:
        return
    first = again[0]
    others = ""
    if len(again) > 1:
        more = counted(len(again) - 1, "more iteration")
        were = "was" if len(again) == 2 else "were"
        others = f" {more} {were} recorded repeatedly too."
    text = (
        f"{capital(view.where(first[:1])[0])} was recorded {len(first)} times.{others} Only the first record "
        "of each counts, so that nobody picks the better one."
    )
    cells = dict.fromkeys(same[0].record.cell for same in again)
    yield view.finding(
        "duplicate-iteration",
        "error",
        text,
        **about_cells(cells),
        runs=[run for same in again for run in ids(same)],
        counted=[ids(same)[0] for same in again],
        excluded=[run for same in again for run in ids(same)[1:]],
    )


def missing_cell(view: View) -> Iterator[Finding]:
    """Declared cells without one good run."""
    missing: dict[Cell, int] = {}
    for cell, runs in view.recorded.items():
        if not any(run.record.status == "ok" for run in runs):
            missing[cell] = len(runs)
    if not missing:
        return
    cells = [label(cell) for cell in missing]
    failed = sum(missing.values())
    of_them = (
        f"; {counted(failed, 'recorded run')} ended without a result" if failed else ""
    )
    text = (
        f"No good run of {listed(cells, 'cells')}, which the matrix declares{of_them}."
    )
    yield view.finding(
        "missing-cell",
        "warning",
        text,
        **about_cells(missing),
        recorded=dict(zip(cells, missing.values(), strict=True)),
    )


def unbalanced(view: View) -> Iterator[Finding]:
    """Cells with more or fewer good iterations than declared; without a matrix, than the other cells. Further records
    of an iteration have a finding of their own."""
    doubles = view.reviewed.doubles
    good = {
        cell: sum(
            1
            for run in runs
            if run.record.status == "ok"
            and run.record.repeat_of is None
            and run.run_id not in doubles
        )
        for cell, runs in view.recorded.items()
    }
    matrix = view.campaign.matrix
    if matrix is None and len(set(good.values())) == 1:
        return
    most = max(good.values(), default=0)
    others: dict[int, list[Cell]] = defaultdict(list)
    for cell, number in good.items():
        declared = most
        if matrix is not None:
            declared = matrix.iterations_of(cell[2]) * _repeating(view)
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


def _repeating(view: View) -> int:
    """How many machines measure every cell."""
    if not view.reviewed.replicated:
        return 1
    return max(1, len(coverage.machines_of(view.campaign.records)))


def _unbalanced(
    view: View, good: Mapping[Cell, int], against: str, declared: int
) -> Finding:
    """Cells whose number of good runs is not the one that is wanted."""
    names = [label(cell) for cell in good]
    fewest, most = min(good.values()), max(good.values())
    runs = counted(most, "good run")
    if fewest != most:
        runs = f"{fewest} to {most} good runs"
    elif len(names) > 1:
        runs += " each"
    have = "has" if len(names) == 1 else "have"
    return view.finding(
        "unbalanced",
        "warning",
        f"{listed(names, 'cells')} {have} {runs} and {against}.",
        **about_cells(good),
        good=dict(zip(names, good.values(), strict=True)),
        declared=declared,
    )


CHECKS = (
    Check(
        "duplicate-iteration",
        "meaning",
        ("error",),
        "Duplicate iterations?",
        duplicate_iteration,
        remedy="Quarantine the starts that were given up, with the reason.",
    ),
    Check(
        "missing-cell",
        "meaning",
        ("warning",),
        "Was every declared cell run?",
        missing_cell,
        remedy="Run sparkpub collect again, or take the cell out of the matrix (exclude:).",
    ),
    Check(
        "unbalanced",
        "meaning",
        ("warning",),
        "Has every cell the declared number of runs?",
        unbalanced,
        remedy="Measure what is missing (sparkpub collect), or say in campaign.json why it ended (ended:).",
    ),
)
