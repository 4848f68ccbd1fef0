"""The books of a collection: what is counted, what is next, and what is said, over records that are made up."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest

from sparkpub.collect.books import Books, Outcome, headline, known_records
from sparkpub.collect.choice import Choice
from sparkpub.collect.progress import Progress
from sparkpub.plan import coverage
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import PlannedRun, plan
from sparkpub.record.record import (
    Evidence,
    Machine,
    Moment,
    Record,
)
from sparkpub.record.store import Stored, to_json
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
    **choice: Any,
) -> Books:
    progress = Progress("small", ([] if said is None else said).append)
    chosen = Choice(tmp_path, commit=False, **choice)
    for record in records:
        write_record(tmp_path / "small", record)
    kept = Books(matrix or a_matrix(), chosen, progress)
    kept.schedule(coverage.machines_of(records))
    return kept


def write_record(folder: Path, record: Record) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{record.stem}.json").write_text(to_json(record))


# -- what it came to -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "exit_code", "summary"),
    [
        (Outcome(2, 0, 0, None), 0, "2 runs measured, 0 failed, 0 to do"),
        (Outcome(1, 1, 3, None, 3), 1, "1 run measured, 1 failed, 3 to do"),
        (
            Outcome(0, 0, 1, None, 3),
            1,
            "0 runs measured, 0 failed, 1 to do, 2 given up after their retries (try again with --retry-failed)",
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


def test_the_outcome_counts_what_is_left_and_what_lacks_a_good_record(
    tmp_path: Path,
) -> None:
    """Of three runs one is good, one has used up its only attempt, and one is missing."""
    assert known_records(tmp_path / "none") == []
    matrix = a_matrix(iterations=3)
    first, second, third = plan(matrix)
    known = a_run(first), a_run(second, **FAILED)
    kept = books(tmp_path, *known, matrix=matrix)
    assert kept.todo == [third]
    outcome = kept.outcome(None)
    assert (outcome.left, outcome.lacking, outcome.stopped) == (1, 2, None)
    again = books(tmp_path, *known, matrix=matrix, retry_failed=True)
    assert again.todo == [second, third]  # what failed before does not count now
    only = books(tmp_path, *known, matrix=matrix, only={"iteration": {"1"}})
    assert only.outcome(None).exit_code == 0


# -- what is next ----------------------------------------------------------------------------------------


def test_the_pause_counts_from_the_last_run_of_this_machine(tmp_path: Path) -> None:
    """A later run of another machine does not heat this one; a clock without its zone says nothing."""

    def ended(value: str, machine: str | None) -> dict[str, Any]:
        zone: Literal["utc", "unknown"] = "utc" if value.endswith("Z") else "unknown"
        return {
            "started": Moment(value="2026-11-20T09:00:00Z", zone="utc"),
            "ended": Moment(value=value, zone=zone),
            "machine": Machine(id=machine),
        }

    here = a_run(number=1, **ended("2026-11-20T10:00:00Z", "one"))
    elsewhere = a_run(number=3, **ended("2026-11-20T11:00:00Z", "two"))
    local = a_run(number=4, **ended("2026-11-20T12:00:00", "one"))
    kept = books(tmp_path, here, elsewhere, local, a_run(number=6))
    assert kept.job(RUN, "one").last_ended == datetime(2026, 11, 20, 10, tzinfo=UTC)
    assert books(tmp_path / "other", elsewhere).job(RUN, "one").last_ended is None


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
    expected = [(runs[9], found[9].run_id)]
    for left in (2, 1, 0):
        assert [(run, odd.run_id) for run, odd in kept.repeats()] == expected * left
        kept.records.append(a_run(runs[9], 9 + left, repeat_of=found[9].run_id))


@pytest.mark.parametrize(
    ("matrix", "only"),
    [
        (a_matrix(iterations=10), {}),  # nobody asks for repeats
        # The eleventh run may change what stands out, though it is not among those wanted.
        (repeating(11), {"iteration": {"1", "2"}}),
        (repeating(), {"model": {"other"}}),
        (repeating(9), {}),  # the matrix asked for ten before, and the tenth stands out
    ],
    ids=["not asked for", "not finished", "not wanted", "not in the plan"],
)
def test_nothing_else_is_repeated(
    tmp_path: Path, matrix: Matrix, only: dict[str, Any]
) -> None:
    kept = books(tmp_path, *one_in_ten(), matrix=matrix, only=only)
    assert list(kept.repeats()) == []


def test_each_machine_of_a_replicated_campaign_is_judged_alone(tmp_path: Path) -> None:
    matrix = repeating(machines="replicate")
    here, there = one_in_ten(machine="one"), one_in_ten(odd=3, machine="three")
    kept = books(tmp_path, *here, *there, matrix=matrix)
    found = [(run.machine, run.iteration, odd.run_id) for run, odd in kept.repeats()]
    assert found == [("one", 10, here[9].run_id), ("three", 3, there[2].run_id)]


# -- what is said ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "log", "words", "failed"),
    [
        ({"duration_seconds": 65}, None, "ok in 1m05s, output_throughput_tok_s 5", 0),
        ({"status": "interrupted"}, None, "interrupted in 0s: it broke", 0),
        ({"status": "timeout"}, None, "timeout in 0s: it broke", 1),
        (FAILED, b"loading\n  no such model \n\n", "{log} ends: no such model", 1),
    ],
)
def test_a_run_says_what_it_came_to_and_counts(
    tmp_path: Path, fields: dict[str, Any], log: bytes | None, words: str, failed: int
) -> None:
    said: list[str] = []
    kept = books(tmp_path, said=said)
    evidence = Evidence(role="log", path="a.log", sha256="0" * 64, bytes=1)
    path = tmp_path / "small" / "a.log"
    if log is not None:
        path.parent.mkdir()
        path.write_bytes(log)
        fields = fields | {"evidence": (evidence,)}
        words = f"failed in 0s: exit status 7; {words.format(log=path)}"
    record = a_run().model_copy(update={"status_reason": "it broke"} | fields)
    kept.keep(None, Stored(record, tmp_path / "run.json"))
    assert said == [f"m/native/w 1: {words}"]
    assert (kept.measured, kept.failed, len(kept.records)) == (1, failed, 1)


# -- the loop over them ----------------------------------------------------------------------------------


def looped(kept: Books, *fates: float | None) -> list[tuple[int, int, str | None]]:
    """What is given out where runs measure so much, or fail (None), until nothing is left."""
    given = []
    for number, rate in enumerate(fates):
        job = kept.next(None)
        assert job is not None
        given.append((job.run.iteration, job.attempt, job.repeat_of))
        end = FAILED if rate is None else {"rate": rate}
        record = a_run(job.run, number, **end, repeat_of=job.repeat_of)
        kept.keep(None, Stored(record, Path("x.json")))
    assert kept.next(None) is None
    return given


def test_a_run_is_tried_until_it_is_good_or_its_retries_are_used_up(
    tmp_path: Path,
) -> None:
    kept = books(tmp_path, matrix=a_matrix(iterations=3, retries=1))
    given = looped(kept, None, 5.0, None, None, 5.2)
    assert [attempt[:2] for attempt in given] == [
        (1, 1),
        (1, 2),
        (2, 1),
        (2, 2),
        (3, 1),
    ]
    outcome = kept.outcome(None)
    assert (outcome.measured, outcome.failed, outcome.lacking) == (5, 3, 1)


def test_the_headline_is_what_the_workload_measured_and_not_its_weights() -> None:
    sizes = {"weights_gib": 14.0, "kv_cache_gib": 3.0}
    answers = {"ttft_p50_ms": 80.0, "output_throughput_tok_s": 60.0}
    assert headline(a_record(sizes | answers)) == "ttft_p50_ms"
    assert headline(a_record(sizes)) == "kv_cache_gib"
    assert headline(a_record({"weights_gib": 14})) == ""
