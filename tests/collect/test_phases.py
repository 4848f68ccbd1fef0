"""When a run was measured: from what its payload timed, else from what was printed."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sparkpub.collect import phases
from sparkpub.collect.environments.host import Host
from sparkpub.plan.environments import HostOptions
from sparkpub.plan.workloads.base import Answer
from sparkpub.record.record import MetricValue, Observed, Phase
from tests.collect.collecting import a_command, a_matrix, measured
from tests.collect.environments.launching import a_launch
from tests.conftest import unmet


def an_answer(seconds: float | None, milliseconds: float | None = None) -> Answer:
    metrics = {}
    if milliseconds is not None:
        metrics["measured_time_ms"] = MetricValue(
            value=milliseconds, unit="ms", source="log"
        )
    return Answer(metrics, Observed(measured_seconds=seconds))


@pytest.mark.parametrize(
    ("began", "ended", "answer", "expected"),
    [
        (10.0, None, an_answer(4.0), (10.0, 14.0)),
        (None, 20.0, an_answer(4.0), (16.0, 20.0)),
        # What was observed counts before what was computed.
        (10.0, None, an_answer(4.0, 9000.0), (10.0, 14.0)),
        (28.0, None, an_answer(4.0), (28.0, 30.0)),  # no longer than the run
        # Nothing more is known: until the command ends.
        (10.0, None, an_answer(None), (10.0, 30.0)),
        (None, 10.0, an_answer(None), None),
    ],
)
def test_what_was_printed_places_the_measured_phase(
    began: float | None,
    ended: float | None,
    answer: Answer,
    expected: tuple[float, float] | None,
) -> None:
    found = phases.seen_in_log(answer, began, ended, duration=30.0)
    if expected is None:
        assert found == ()
        return
    startup, measure = found
    assert (startup.name, startup.start_seconds, startup.end_seconds) == (
        "startup",
        0.0,
        expected[0],
    )
    assert phases.measured(found) == measure
    assert (measure.start_seconds, measure.end_seconds) == expected


@pytest.mark.parametrize(("epoch", "start"), [(1002.0, 5.0), (None, 3.0), (990.0, 3.0)])
def test_a_payloads_phases_are_moved_to_the_runs_clock(
    epoch: float | None, start: float
) -> None:
    """Launched at 1000, started counting at 1002; a clock that was set back moves nothing."""
    timed = (
        Phase(name="load", start_seconds=0, end_seconds=3),
        Phase(name="measure", start_seconds=3, end_seconds=7),
    )
    answer = Answer({}, phases=timed, phases_epoch=epoch)
    measure = phases.measured(phases.timed_by_payload(answer, 1000.0))
    assert measure is not None
    assert (measure.start_seconds, measure.end_seconds) == (start, start + 4)


def test_a_run_is_measured_where_its_lines_say(tmp_path: Path) -> None:
    """A command that loads for a second and reports a measurement of half a second."""
    script = "echo loading; sleep 1; echo go; sleep 1; echo took 500 rate 5"
    metrics = a_command("")["metrics"] | {
        "measured_time_ms": {"regex": "took ([0-9]+)"}
    }
    workload = a_command(script, measured_from="^go", metrics=metrics)
    record = measured(a_matrix(workloads={"w": workload}, iterations=1), tmp_path)
    startup, measure = record.phases
    assert 1.0 <= startup.end_seconds < 2.0
    assert (
        measure.start_seconds == startup.end_seconds == record.value("startup_seconds")
    )
    assert measure.end_seconds == pytest.approx(measure.start_seconds + 0.5)
    power = record.metrics["gpu_power_mean_watt"]
    assert (power.reason is None) == (unmet("gpu") is None)


def test_a_run_ends_by_the_clock_where_the_machine_slept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The monotonic clock stands still meanwhile: the review holds one against the other."""
    launch, _ = a_launch(tmp_path, "true")
    process = Host(HostOptions()).start(launch)
    monkeypatch.setattr(time, "monotonic", lambda: process.launched)
    begun = datetime.now(UTC)
    while datetime.now(UTC) - begun < timedelta(milliseconds=2):
        pass
    assert process.wait(60)
    process.close()
    assert process.seconds == 0
    assert process.ended - begun >= timedelta(milliseconds=2)
