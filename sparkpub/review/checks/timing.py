"""Whether the times of runs can be: order of start and end, duration, overlap, clocks that disagree, gaps."""

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import chain, count, islice, pairwise

from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import Case, View, by_gpu, ids, label
from sparkpub.review.grouping import grouped

CLOCK_SECONDS = Threshold(
    "clock seconds",
    3.0,
    "Allowed difference between times, which are recorded to the second.",
)
CLOCK_SHARE = Threshold(
    "clock share",
    0.01,
    "Allowed relative difference between a run's duration and its wall-clock time, because clocks are corrected.",
)

ZONE_SECONDS = 14 * 3600.0
"""Local time lies up to so far off UTC."""
QUARTER_SECONDS = 900.0
"""And a whole number of these."""
MOST_MISSING = 1000
"""Places without a record that a finding lists."""
_TIME_IN_ID = re.compile(r"_(\d{8}T\d{6}Z?)$")


def time_consistency(view: View) -> Iterator[Finding]:
    """Runs whose times contradict each other, the evidence or another run, and records that are gone."""
    impossible = [
        (run, problem)
        for run in view.happened
        if (problem := _problem(view, run)) is not None
    ]
    yield from view.cases(
        "time-consistency",
        "error",
        impossible,
        "has impossible times",
        "have impossible times",
    )
    yield from view.cases(
        "time-consistency",
        "error",
        [(after, detail) for _, after, detail in overlapping(view.happened)],
        "ran at the same time as another on one GPU",
    )
    yield from _zones(view)
    yield from _gone(view)


def _problem(view: View, stored: Stored) -> str | None:
    """What cannot be in the times of one run, in words."""
    record = stored.record
    start, end, lasted = began(record), ended_at(record), record.duration_seconds
    if end is not None and end < start:
        return f"it ended {_ago(start - end)} before it started"
    if record.ended is not None and lasted is not None and end is not None:
        wall = (end - start).total_seconds()
        if abs(wall - lasted) > CLOCK_SECONDS + CLOCK_SHARE * lasted:
            return f"it lasted {lasted:.1f} s by the monotonic clock but {wall:.0f} s from start to end"
    measured = _measured_seconds(record)
    if lasted is not None and measured > lasted + CLOCK_SECONDS:
        return f"it lasted {lasted:.1f} s but measured for {measured:.1f} s"
    named = _TIME_IN_ID.search(record.run_id)
    if named is not None and named[1].rstrip("Z") != record.started.compact.rstrip("Z"):
        return f"it started at {named[1]} according to its id, and at {record.started.compact} according to its record"
    return _other_clock(view, stored)


def _other_clock(view: View, stored: Stored) -> str | None:
    """Where the tool's own clock says another time than the record."""
    record, answer = stored.record, view.evidence.of(stored).answer
    if answer is None or record.started.zone != "utc":
        return None
    start = began(record)
    if answer.epoch is not None:
        said, what = datetime.fromtimestamp(answer.epoch, start.tzinfo), "was begun at"
    elif answer.said_at is not None:
        said, what = answer.said_at, "says"
        if said.tzinfo is None:
            said = _in_the_nearest_zone(said.replace(tzinfo=start.tzinfo), start)
    else:
        return None
    late = (said - start).total_seconds()
    if -CLOCK_SECONDS <= late <= (record.duration_seconds or 0.0) + CLOCK_SECONDS:
        return None
    off = _ago(timedelta(seconds=abs(late)))
    return f"its report {what} {said:%Y-%m-%dT%H:%M:%SZ}, {off} off its start"


def _in_the_nearest_zone(said: datetime, start: datetime) -> datetime:
    """A time without a zone as the zone has it in which it lies closest behind a start: zones are whole quarters of an
    hour apart, and no zone explains a clock that is seven minutes off."""
    off = (said - start).total_seconds()
    quarters = (off + CLOCK_SECONDS) // QUARTER_SECONDS
    if abs(quarters * QUARTER_SECONDS) > ZONE_SECONDS:
        return said
    return said - timedelta(seconds=quarters * QUARTER_SECONDS)


def began(record: Record) -> datetime:
    return datetime.fromisoformat(record.started.value)


def ended_at(record: Record) -> datetime | None:
    """When a run ended, by its record or else by how long it took. An end without the start's zone tells nothing."""
    if record.ended is not None and record.ended.zone == record.started.zone:
        return datetime.fromisoformat(record.ended.value)
    if record.duration_seconds is not None:
        return began(record) + timedelta(seconds=record.duration_seconds)
    return None


def _measured_seconds(record: Record) -> float:
    measured = (record.value("measured_time_ms") or 0.0) / 1e3
    phases = [phase.end_seconds for phase in record.phases]
    return max(measured, record.observed.measured_seconds or 0.0, *phases, 0.0)


def _ago(span: timedelta) -> str:
    seconds = span.total_seconds()
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds:.0f} s"


def overlapping(happened: Iterable[Stored]) -> Iterator[tuple[Stored, Stored, str]]:
    """Runs that began before the one before them on the same GPU was over: that one, the later one, and how early."""
    ended = [run for run in happened if ended_at(run.record) is not None]
    zones = grouped(ended, lambda run: run.record.started.zone).values()
    for runs in chain.from_iterable(map(by_gpu, zones)):
        runs.sort(key=lambda run: began(run.record))
        for before, after in pairwise(runs):
            end = ended_at(before.record)
            assert end is not None
            early = (end - began(after.record)).total_seconds()
            if early > CLOCK_SECONDS:
                detail = f"it started {early:.0f} s before {before.run_id} was over"
                yield before, after, detail


def _slot(record: Record) -> tuple[object, ...]:
    """What the attempts of a run have in common."""
    return *record.cell, record.iteration, record.repeat_of


def _zones(view: View) -> Iterator[Finding]:
    unknown = [run for run in view.happened if run.record.started.zone == "unknown"]
    if unknown and len(unknown) < len(view.happened):
        yield from view.together(
            "time-consistency",
            "warning",
            unknown,
            lambda runs: (
                f"The time zone of {runs} is unknown, and that of the others is UTC, so their order is unknown."
            ),
        )


def _gone(view: View) -> Iterator[Finding]:
    """Records that are missing: attempts, iterations, what was committed, and without a matrix, places."""
    attempts = {(*_slot(run.record), run.record.plan.attempt) for run in view.runs}
    yield from view.cases(
        "time-consistency",
        "error",
        [
            (
                run,
                f"it is attempt {run.record.plan.attempt}, and attempt {lost} is missing",
            )
            for run in view.runs
            if (lost := _lost_attempt(run.record, attempts))
        ],
        "was repeated, but the first record is missing",
    )
    yield from view.cases(
        "time-consistency",
        "error",
        _holes(view),
        "follows an iteration without a record: it was deleted, or never committed",
        "follow iterations without a record: they were deleted, or never committed",
    )
    yield from _altered(view)
    if view.campaign.matrix is None:
        yield from _empty_places(view)


def _lost_attempt(record: Record, attempts: Collection[object]) -> int | None:
    """The first of a run's attempts that has no record."""
    earlier = range(1, record.plan.attempt)
    return next((one for one in earlier if (*_slot(record), one) not in attempts), None)


def _empty_places(view: View) -> Iterator[Finding]:
    """Places in the order of runs of which nothing is there."""
    positions = {stored.record.plan.position for stored in view.runs}
    places = max(positions, default=-1) + 1
    lacking = places - len(positions)
    if not lacking:
        return
    # Whoever wrote a record chose its place: only so many are looked for as can be read.
    gaps = (place for place in count() if place not in positions)
    missing = list(islice(gaps, min(lacking, MOST_MISSING)))
    text = (
        f"{lacking} of {places} places in the order of runs have no record, the first of them number {missing[0]}: "
        "runs were removed, or never imported."
    )
    cells = [label(cell) for cell in view.recorded]
    yield view.finding(
        "time-consistency",
        "warning",
        text,
        missing=missing,
        runs=ids(view.runs),
        cells=cells,
    )


_RECORD = re.compile(r".+_iter\d+_[^.]+\.json")


def _altered(view: View) -> Iterator[Finding]:
    """Records that we collected, that were committed once and are gone, or say something else. Nobody has to touch one:
    a quarantine takes it out in sight. Who imports results again may get other names for them."""
    if all(run.record.plan.order == "as-published" for run in view.runs):
        return
    history = view.campaign.history
    for names, what, is_so in (
        (history.removed, "is there", "deleted"),
        (history.changed, "is as it was", "changed afterwards"),
    ):
        records = [name for name in names if _RECORD.fullmatch(name)]
        if not records:
            continue
        which = f"{records[0]} was"
        if len(records) > 1:
            which = f"{records[0]} and {len(records) - 1} more were"
        yield view.finding(
            "time-consistency",
            "error",
            f"Not every record that was committed {what}: {which} {is_so}.",
            cells=[label(cell) for cell in view.recorded],
            files=records,
            what=f"records that were {is_so}",
        )


def _holes(view: View) -> list[Case]:
    """Runs of which an earlier iteration, on the same machine, left no record, not even of a failure. Whoever collects
    some cells only leaves out whole cells; machines that share a campaign share its iterations too, in any order."""
    cases: list[Case] = []
    ours = [run for run in view.runs if run.record.plan.order != "as-published"]
    machines = {run.record.machine.id for run in ours}
    shared = len(machines) > 1 and not view.reviewed.replicated
    if view.campaign.matrix is None or shared or view.damage:
        return cases  # a damaged record is told of as such
    series = grouped(ours, lambda run: (*run.record.cell, run.record.machine.id))
    for runs in series.values():
        have = {run.record.iteration for run in runs}
        every = range(min(have), max(have))
        lost = next((number for number in every if number not in have), None)
        if lost is not None:
            after = min(
                (run for run in runs if run.record.iteration > lost),
                key=lambda run: run.record.iteration,
            )
            cases.append((after, f"iteration {lost} has none"))
    return cases


CHECKS = (
    Check(
        "time-consistency",
        "meaning",
        ("error", "warning"),
        "Are the times of the runs possible?",
        time_consistency,
        implies=frozenset({"order-confound", "unbalanced"}),
        thresholds=(CLOCK_SECONDS, CLOCK_SHARE),
        remedy="Restore deleted and changed records from git; where clocks differ, synchronise them and re-run.",
    ),
)
