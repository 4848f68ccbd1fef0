"""The books of a collection: what is counted, what is next, and what is said, over records that are made up."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect.bench import Order
from sparkpub.collect.books import (
    Books,
    Outcome,
)
from sparkpub.collect.choice import Choice
from sparkpub.collect.git import Committer
from sparkpub.collect.progress import Progress
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import PlannedRun, plan
from sparkpub.record.record import (
    Event,
    Evidence,
    Machine,
    Moment,
    Record,
)
from sparkpub.record.store import Stored
from tests.building import a_record
from tests.collect.collecting import a_matrix

RUN, SECOND = plan(a_matrix())
FAILED: dict[str, Any] = {
    "status": "failed",
    "status_reason": "exit status 7",
    "exit_code": 7,
}


def a_run(
    run: PlannedRun = RUN, number: int = 1, rate: float = 5.0, **fields: Any
) -> Record:
    """A record of a planned run, whose id ends in a number of its own."""
    place = {
        "campaign": "small",
        "run_id": f"small-{run.environment}_{run.workload}_{run.iteration}_{number}",
        "model": run.model,
        "environment": run.environment,
        "workload": run.workload,
        "iteration": run.iteration,
    }
    return a_record({"output_throughput_tok_s": rate}, **(place | fields))


def books(
    tmp_path: Path,
    *records: Record,
    matrix: Matrix | None = None,
    said: list[str] | None = None,
    given_up: frozenset[str] = frozenset(),
    **choice: Any,
) -> Books:
    lines: list[str] = [] if said is None else said
    progress = Progress("small", 2, 0, lines.append)
    return Books(
        a_matrix() if matrix is None else matrix,
        tmp_path,
        Choice(tmp_path, commit=False, **choice),
        list(records),
        Committer(tmp_path, False, False, progress),
        progress,
        given_up,
    )


# -- what it came to -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "exit_code", "summary"),
    [
        (Outcome(2, 0, 0, None), 0, "2 runs measured, 0 failed, 0 to do"),
        (
            Outcome(0, 0, 1, None, 3),
            1,
            "0 runs measured, 0 failed, 1 to do, 2 given up after their retries (try again with --retry-failed)",
        ),
        (
            Outcome(4, 0, 0, "stopped by SIGTERM"),
            1,
            "4 runs measured, 0 failed, 0 to do; stopped by SIGTERM",
        ),
        (
            Outcome(4, 0, 16, None, 17, limited=True),
            0,
            "4 runs measured, 0 failed, 16 to do, 1 given up after their retries (try again with --retry-failed); "
            "as many runs as --max-runs allows: the same command goes on",
        ),
        (
            Outcome(4, 1, 16, None, 16, limited=True),
            1,
            "4 runs measured, 1 failed, 16 to do; as many runs as --max-runs allows: the same command goes on",
        ),
    ],
)
def test_an_outcome_is_one_line_and_an_exit_status(
    outcome: Outcome, exit_code: int, summary: str
) -> None:
    assert (outcome.exit_code, outcome.summary) == (exit_code, summary)


@pytest.mark.parametrize(
    ("most", "measured", "under_way", "is_full"),
    [
        (None, 1000, 0, False),
        (3, 2, 1, True),
        (3, 1, 1, False),
    ],
)
def test_runs_under_way_count_among_those_asked_for(
    tmp_path: Path, most: int | None, measured: int, under_way: int, is_full: bool
) -> None:
    kept = books(tmp_path, max_runs=most)
    kept.measured = measured
    assert kept.full(under_way) is is_full


# -- what is next ----------------------------------------------------------------------------------------


def test_an_order_numbers_the_attempts_at_its_own_run(tmp_path: Path) -> None:
    """Two attempts at the first run, one repeat of it, and one attempt at the second."""
    kept = books(
        tmp_path,
        a_run(number=1, **FAILED),
        a_run(number=2),
        a_run(number=3, repeat_of="small-native_w_1_2"),
        a_run(SECOND, number=4),
    )
    assert kept.order(RUN, None).attempt == 3
    assert kept.order(RUN, None, "small-native_w_1_2").attempt == 2
    assert kept.order(SECOND, None).attempt == 2
    order = kept.order(RUN, None, "small-native_w_1_2")
    assert (order.run, order.repeat_of) == (RUN, "small-native_w_1_2")


def test_a_run_is_expected_to_take_what_its_cell_took(tmp_path: Path) -> None:
    """10 and 20 seconds are 15 on average; a run that says no time and one of another cell do not count."""
    other = PlannedRun(0, "m", "native", "other", 1)
    kept = books(
        tmp_path,
        a_run(number=1, duration_seconds=10),
        a_run(SECOND, number=2, duration_seconds=20),
        a_run(number=3),
        a_run(other, number=4, duration_seconds=900),
    )
    assert kept.order(RUN, None).expected_seconds == 15
    assert books(tmp_path).order(RUN, None).expected_seconds is None


def test_the_pause_counts_from_the_last_run_of_this_machine(tmp_path: Path) -> None:
    """A later run of another machine does not heat this one; a clock without its zone says nothing."""

    def ended(value: str, machine: str | None) -> dict[str, Any]:
        zone = "utc" if value.endswith("Z") else "unknown"
        return {
            "started": Moment(value="2026-11-20T09:00:00Z", zone="utc"),
            "ended": Moment.model_validate({"value": value, "zone": zone}),
            "machine": Machine(id=machine),
        }

    here = a_run(number=1, **ended("2026-11-20T10:00:00Z", "one"))
    earlier = a_run(number=2, **ended("2026-11-20T09:30:00Z", "one"))
    elsewhere = a_run(number=3, **ended("2026-11-20T11:00:00Z", "two"))
    local = a_run(number=4, **ended("2026-11-20T12:00:00", "one"))
    unnamed = a_run(number=5, **ended("2026-11-20T10:30:00Z", None))
    running = a_run(number=6)

    kept = books(tmp_path, here, earlier, elsewhere, local, running)
    assert kept.order(RUN, "one").last_ended == datetime(2026, 11, 20, 10, tzinfo=UTC)
    kept.records.append(unnamed)
    half_past = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
    assert kept.order(RUN, "one").last_ended == half_past
    assert books(tmp_path, elsewhere).order(RUN, "one").last_ended is None


# -- repeats ---------------------------------------------------------------------------------------------


def one_in_ten(
    iterations: int = 10, odd: int = 10, machine: str | None = None
) -> list[Record]:
    """Runs of 5.01 to 5.10, of which one is 9: Grubbs' test flags that one."""
    runs = []
    for iteration in range(1, iterations + 1):
        value = 9.0 if iteration == odd else 5 + iteration / 100
        run = PlannedRun(0, "m", "native", "w", iteration)
        where = Machine(id=machine)
        runs.append(a_run(run, len(machine or ""), value, machine=where))
    return runs


def repeating(iterations: int = 10, repeat: int = 1, **changes: Any) -> Matrix:
    return a_matrix(
        iterations=iterations, repeat_outliers={"repeat": repeat}, **changes
    )


def test_what_stands_out_is_repeated_as_often_as_asked_for(tmp_path: Path) -> None:
    matrix = repeating(repeat=2)
    runs = plan(matrix)
    found = one_in_ten()
    kept = books(tmp_path, *found, matrix=matrix)
    expected = [(runs[9], found[9])]
    assert list(kept.repeats(runs, runs)) == expected * 2
    kept.records.append(a_run(runs[9], number=2, repeat_of=found[9].run_id))
    assert list(kept.repeats(runs, runs)) == expected
    kept.records.append(a_run(runs[9], number=3, repeat_of=found[9].run_id))
    assert list(kept.repeats(runs, runs)) == []


@pytest.mark.parametrize(
    ("matrix", "asked"),
    [
        (a_matrix(iterations=10), 10),  # nobody asked for repeats
        (repeating(11), 10),  # the eleventh run may change what stands out
        (repeating(), 0),  # the cell is not among those wanted
        (repeating(9), 9),  # the plan has no tenth run any more
    ],
)
def test_nothing_else_is_repeated(tmp_path: Path, matrix: Matrix, asked: int) -> None:
    runs = plan(matrix)
    kept = books(tmp_path, *one_in_ten(), matrix=matrix)
    assert list(kept.repeats(runs, runs[:asked])) == []


def test_each_machine_of_a_replicated_campaign_is_judged_alone(tmp_path: Path) -> None:
    matrix = repeating(machines="replicate")
    runs = plan(matrix, ["one", "three"])
    here, there = one_in_ten(machine="one"), one_in_ten(odd=3, machine="three")
    kept = books(tmp_path, *here, *there, matrix=matrix)
    found = [
        (run.machine, run.iteration, odd.run_id)
        for run, odd in kept.repeats(runs, runs)
    ]
    assert found == [("one", 10, here[9].run_id), ("three", 3, there[2].run_id)]


# -- what is said ----------------------------------------------------------------------------------------


def said_of(tmp_path: Path, record: Record) -> tuple[Books, list[str]]:
    """The books after a run, and what they said of it."""
    said: list[str] = []
    kept = books(tmp_path, said=said)
    kept.keep(Order(RUN), Stored(record, tmp_path / "run.json"))
    return kept, said


def test_a_good_run_says_its_headline_and_how_long_it_took(tmp_path: Path) -> None:
    kept, said = said_of(tmp_path, a_run(rate=1191.7, duration_seconds=65))
    assert said == ["m/native/w 1: ok in 1m05s, output_throughput_tok_s 1191.7"]
    assert (kept.measured, kept.failed, len(kept.records)) == (1, 0, 1)
    nothing = a_run().model_copy(update={"metrics": {}})
    _, said = said_of(tmp_path, nothing)
    assert said == ["m/native/w 1: ok in 0s"]


@pytest.mark.parametrize(
    ("status", "failed"), [("failed", 1), ("timeout", 1), ("interrupted", 0)]
)
def test_a_run_that_went_wrong_says_why_and_counts_unless_it_was_interrupted(
    tmp_path: Path, status: str, failed: int
) -> None:
    record = a_run(status=status, status_reason="it broke", duration_seconds=3)
    kept, said = said_of(tmp_path, record)
    assert said == [f"m/native/w 1: {status} in 3s: it broke"]
    assert (kept.measured, kept.failed) == (1, failed)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"loading\n  no such model \n\n  \n", "{log} ends: no such model"),
        (None, "see {log}"),
        # Only the end of a long log is looked at: 16 KiB, which here are the second half of one line.
        (b"first\n" + b"z" * (1 << 14), "{log} ends: " + "z" * 200),
        (b"first\n" + b"\n" * (1 << 14), "see {log}"),
    ],
)
def test_the_last_words_of_a_log_are_said(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    log = tmp_path / "a.log"
    if content is not None:
        log.write_bytes(content)
    evidence = Evidence(role="log", path="a.log", sha256="0" * 64, bytes=1)
    record = a_run(**FAILED, evidence=(evidence,))
    _, said = said_of(tmp_path, record)
    expected = words.format(log=log)
    assert said == [f"m/native/w 1: failed in 0s: exit status 7; {expected}"]


def test_notes_without_a_time_are_said_after_the_run(tmp_path: Path) -> None:
    """The others were said when they were noted."""
    events = (
        Event(at_seconds=None, kind="note", text="a note"),
        Event(at_seconds=1.0, kind="note", text="said before"),
        Event(at_seconds=None, kind="kernel", text="not a note"),
    )
    _, said = said_of(tmp_path, a_run(**FAILED, events=events))
    assert said[1:] == ["m/native/w 1: note: a note"]
