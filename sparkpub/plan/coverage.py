"""Which runs of a campaign are done, failed, quarantined or missing: gap analysis over records, not file names."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import PlannedRun, Slot, plan
from sparkpub.record.errors import CollectError
from sparkpub.record.record import Record

State = Literal["done", "failed", "quarantined", "missing", "retry"]
"""`retry`: it failed, and retries are left. Everything but `missing` and `retry` is finished with."""


@dataclass(frozen=True)
class CellCoverage:
    """Runs of one cell: `done + failed + quarantined + missing == planned`."""

    model: str
    environment: str
    workload: str
    planned: int
    done: int
    failed: int
    quarantined: int
    missing: int


def states(
    matrix: Matrix, records: Iterable[Record], quarantined: Iterable[str] = ()
) -> Mapping[PlannedRun, State]:
    """The state of every planned run.

    A run is done when a record of the same specification and iteration has status ok, or when its retries are
    used up (then `failed`). Repeats of outliers are not attempts. Raises CollectError where records of another
    specification lie under the same names: they are refused, not mixed.
    """
    by_slot: dict[Slot, list[Record]] = defaultdict(list)
    for record in records:
        by_slot[_slot(record)].append(record)
    out = frozenset(quarantined)
    return {run: state(matrix, by_slot[run.slot], run, out) for run in plan(matrix)}


def state(
    matrix: Matrix,
    records: Iterable[Record],
    run: PlannedRun,
    quarantined: Collection[str] = frozenset(),
) -> State:
    """The state of one planned run; see `states`."""
    attempts = [
        record
        for record in records
        if record.repeat_of is None and _slot(record) == run.slot
    ]
    _refuse_others(matrix, attempts, run)
    good = [record.run_id for record in attempts if record.status == "ok"]
    if good:
        return (
            "quarantined" if all(run_id in quarantined for run_id in good) else "done"
        )
    if not attempts:
        return "missing"
    failures = [record for record in attempts if record.status != "interrupted"]
    return "failed" if len(failures) > matrix.retries else "retry"


def _refuse_others(matrix: Matrix, attempts: Iterable[Record], run: PlannedRun) -> None:
    """Raise CollectError where an attempt was of another specification than the matrix declares."""
    fingerprint = matrix.fingerprint(run.model, run.environment, run.workload)
    for record in attempts:
        if record.specification not in (None, fingerprint):
            what = f"run {record.run_id} was measured with another specification of this cell"
            remedy = "give the changed cell or the campaign a new name"
            raise CollectError(
                what, where=f"cell {'/'.join(run.slot[:3])}", remedy=remedy
            )


def _slot(record: Record) -> Slot:
    return (*record.cell, record.iteration)


def by_cell(
    matrix: Matrix, records: Sequence[Record], quarantined: Iterable[str] = ()
) -> list[CellCoverage]:
    """Coverage of every cell, in the order of the matrix."""
    counts: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for run, found in states(matrix, records, quarantined).items():
        counts[run.slot[:3]]["missing" if found == "retry" else found] += 1
    return [
        CellCoverage(
            *cell,
            planned=count.total(),
            done=count["done"],
            failed=count["failed"],
            quarantined=count["quarantined"],
            missing=count["missing"],
        )
        for cell, count in counts.items()
    ]
