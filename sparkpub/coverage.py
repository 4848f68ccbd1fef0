"""Which runs of a campaign are done, failed, quarantined or missing: gap analysis over records, not file names."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sparkpub.errors import CollectError
from sparkpub.matrix import Matrix, PlannedRun, plan
from sparkpub.record import Record

State = Literal["done", "failed", "quarantined", "missing", "retry"]
"""`retry`: it failed, and retries are left. Everything but `missing` and `retry` is finished with."""


@dataclass(frozen=True)
class CellCoverage:
    """Runs of one cell. `done + failed + quarantined + missing == planned`; `extra` counts records beyond the plan."""

    model: str
    environment: str
    workload: str
    planned: int
    done: int
    failed: int
    quarantined: int
    missing: int
    extra: int = 0


def states(matrix: Matrix, records: Iterable[Record], quarantined: Iterable[str] = ()) -> Mapping[PlannedRun, State]:
    """The state of every planned run.

    A run is done when a record of the same specification and iteration has status ok, or when its retries are
    used up (then `failed`). Repeats of outliers are not attempts. Raises CollectError where records of another
    specification lie under the same names: they are refused, not mixed.
    """
    by_slot: dict[tuple[str, str, str, int], list[Record]] = defaultdict(list)
    for record in records:
        if record.repeat_of is None:
            by_slot[(*record.cell, record.iteration)].append(record)
    out = frozenset(quarantined)
    return {run: _state(matrix, by_slot.get(run.slot, []), out, run) for run in plan(matrix)}


def state(matrix: Matrix, records: Iterable[Record], run: PlannedRun, quarantined: Iterable[str] = ()) -> State:
    attempts = [
        record for record in records if record.repeat_of is None and (*record.cell, record.iteration) == run.slot
    ]
    return _state(matrix, attempts, frozenset(quarantined), run)


def _state(matrix: Matrix, attempts: Sequence[Record], quarantined: frozenset[str], run: PlannedRun) -> State:
    fingerprint = matrix.fingerprint(run.model, run.environment, run.workload)
    for record in attempts:
        if record.specification not in (None, fingerprint):
            raise CollectError(
                f"run {record.run_id} was measured with another specification of this cell",
                where=f"cell {run.model}/{run.environment}/{run.workload}",
                remedy="give the changed cell or the campaign a new name",
            )
    if any(record.status == "ok" for record in attempts):
        good = [record for record in attempts if record.status == "ok"]
        return "quarantined" if all(record.run_id in quarantined for record in good) else "done"
    if not attempts:
        return "missing"
    return "failed" if sum(1 for record in attempts if record.status != "interrupted") > matrix.retries else "retry"


def by_cell(matrix: Matrix, records: Sequence[Record], quarantined: Iterable[str] = ()) -> list[CellCoverage]:
    counts: dict[tuple[str, str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for run, state in states(matrix, records, quarantined).items():
        cell = (run.model, run.environment, run.workload)
        counts[cell]["missing" if state == "retry" else state] += 1
        counts[cell]["planned"] += 1
    recorded: dict[tuple[str, str, str], int] = defaultdict(int)
    for record in records:
        if record.status == "ok" and record.repeat_of is None:
            recorded[record.cell] += 1
    return [
        CellCoverage(
            *cell,
            planned=count["planned"],
            done=count["done"],
            failed=count["failed"],
            quarantined=count["quarantined"],
            missing=count["missing"],
            extra=max(0, recorded[cell] - count["done"] - count["quarantined"]),
        )
        for cell, count in counts.items()
    ]
