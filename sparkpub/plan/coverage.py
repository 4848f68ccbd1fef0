"""Which runs of a campaign are done, failed, quarantined or missing: gap analysis over records, not file names."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import PlannedRun, plan
from sparkpub.record.errors import CollectError
from sparkpub.record.record import Record

State = Literal["done", "failed", "quarantined", "missing", "retry"]
"""`retry`: it failed, and retries are left. Everything but `missing` and `retry` is finished with."""


@dataclass(frozen=True)
class Coverage:
    """Runs of a cell, or of a machine that repeats the campaign: `done + failed + quarantined + missing == planned`."""

    planned: int
    done: int
    failed: int
    quarantined: int
    missing: int


def machines_of(records: Iterable[Record]) -> list[str]:
    """Ids of the machines that have measured, in alphabetical order: one whose runs were all interrupted has not."""
    ended = [record for record in records if record.status != "interrupted"]
    return sorted({record.machine.id for record in ended if record.machine.id})


def states(
    matrix: Matrix,
    records: Sequence[Record],
    quarantined: Iterable[str] = (),
    machines: Sequence[str] | None = None,
) -> Mapping[PlannedRun, State]:
    """The state of every planned run. `machines` are those that repeat the campaign where the matrix says `machines:
    replicate`: by default those that the records name.

    A run is done when a record of the same specification and iteration has status ok, or when its retries are
    used up (then `failed`). Repeats of outliers are not attempts. Raises CollectError where good records of another
    specification lie under the names of a cell: they are refused, not mixed. A cell without one may be respecified:
    what failed under another specification is no attempt at this one.
    """
    by_cell: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in records:
        by_cell[record.cell].append(record)
    out = frozenset(quarantined)
    if machines is None:
        machines = machines_of(records)
    found = {}
    for run in plan(matrix, machines):
        found[run] = state(matrix, by_cell[run.cell], run, out)
    return found


def state(
    matrix: Matrix,
    records: Iterable[Record],
    run: PlannedRun,
    quarantined: Collection[str] = frozenset(),
) -> State:
    """The state of one planned run; see `states`. `records` are at least those of its cell."""
    attempts = _attempts(matrix, records, run)
    good = [record.run_id for record in attempts if record.status == "ok"]
    if good and all(run_id in quarantined for run_id in good):
        return "quarantined"
    if good:
        return "done"
    if not attempts:
        return "missing"
    failures = [record for record in attempts if record.status != "interrupted"]
    if len(failures) > matrix.retries:
        return "failed"
    return "retry"


def _attempts(
    matrix: Matrix, records: Iterable[Record], run: PlannedRun
) -> list[Record]:
    """The attempts at a run as the matrix specifies it. Raises CollectError where its cell has a good run of another
    specification."""
    fingerprint = matrix.fingerprint(run.model, run.environment, run.workload)
    attempts = []
    for record in records:
        if record.repeat_of is not None or record.cell != run.cell:
            continue
        if run.machine is not None and record.machine.id != run.machine:
            continue
        same = record.specification in (None, fingerprint)
        if not same and record.status == "ok":
            what = f"run {record.run_id} was measured with another specification of this cell"
            remedy = "give the changed cell or the campaign a new name"
            raise CollectError(what, where=f"cell {'/'.join(run.cell)}", remedy=remedy)
        if same and record.iteration == run.iteration:
            attempts.append(record)
    return attempts


def by_cell(
    matrix: Matrix, records: Sequence[Record], quarantined: Iterable[str] = ()
) -> dict[tuple[str, str, str], Coverage]:
    """Coverage of every cell, in the order of the matrix; where each machine repeats the campaign, over all of them."""
    found = states(matrix, records, quarantined)
    return _counted((run.cell, state) for run, state in found.items())


def by_machine(
    matrix: Matrix, records: Sequence[Record], quarantined: Iterable[str] = ()
) -> dict[str, Coverage]:
    """Coverage of every machine that has runs, where each repeats the campaign; elsewhere none."""
    found = states(matrix, records, quarantined)
    return _counted((run.machine, state) for run, state in found.items() if run.machine)


Group = TypeVar("Group")


def _counted(states: Iterable[tuple[Group, State]]) -> dict[Group, Coverage]:
    """Runs by group, counted by state."""
    counts: dict[Group, Counter[str]] = defaultdict(Counter)
    for group, state in states:
        counts[group][state] += 1
    return {
        group: Coverage(
            planned=count.total(),
            done=count["done"],
            failed=count["failed"],
            quarantined=count["quarantined"],
            missing=count["missing"] + count["retry"],
        )
        for group, count in counts.items()
    }
