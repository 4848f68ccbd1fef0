"""A machine that measures: what comes before a run, in which order, and what ends it; gates and runs are played."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect import journal, station
from sparkpub.collect.bench import Bench, Order, RunJob
from sparkpub.collect.gates import Passed
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.machine import controls
from sparkpub.collect.progress import Progress
from sparkpub.collect.station import Station, tidied
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from sparkpub.record.errors import CollectError
from sparkpub.record.record import Gate, Machine, Record
from sparkpub.record.redaction import Redactor
from sparkpub.record.store import Stored
from tests.building import a_record
from tests.collect.collecting import OPEN_GATES, a_matrix

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
LATER = datetime(2026, 11, 20, 13, tzinfo=UTC)


def a_gate(name: str, *, met: bool | None = True, wanted: Any = 1.0) -> Gate:
    reason = None if met else "no right to"
    return Gate(name=name, wanted=wanted, met=met, waited_seconds=0, reason=reason)


@dataclass
class PlayedServer:
    """A server that is ready, or has a problem."""

    problem: str | None = None
    ready_at: datetime | None = NOON
    tree: str = "its processes"
    runs: list[Record] = field(default_factory=list)

    def served(self, record: Record) -> None:
        self.runs.append(record)


@dataclass
class Played:
    """A station of which nothing but itself is real. `said` and `done` are what it said and did, in order."""

    station: Station
    done: list[Any]
    said: list[str]
    passes: list[Passed]
    """What the gates say, one after the other."""
    server: PlayedServer
    jobs: list[RunJob]
    status: str = "ok"
    problem: CollectError | None = None
    """What measuring ends with instead of a record."""

    def measure(self, **order: Any) -> Any:
        (run, *_) = plan(self.station.bench.matrix)
        return self.station.measure(Order(run, **order))


SERVED: dict[str, Any] = {
    "environments": {
        "native": {
            "type": "host",
            "server": {"argv": ["serve"]},
        }
    }
}


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Played]:
    """A station for a matrix; `live` is a server that runs already."""

    def with_matrix(
        matrix: Matrix | None = None, live: PlayedServer | None = None
    ) -> Played:
        matrix = a_matrix() if matrix is None else matrix
        done: list[Any] = []
        said: list[str] = []
        progress = Progress("small", 2, 0, said.append)
        bench = Bench(
            matrix,
            matrix,
            tmp_path,
            Machine(),
            Redactor(),
            Interruption(),
            progress,
        )

        class Keeper:
            def passed(self, gpus: Any, ended: Any, _: Any, say: Any, tree: Any) -> Any:
                done.append(("gates", ended, tree))
                say("cooling down (50 °C), 3 s left")
                return played.passes.pop(0)

        class PlayedServers:
            def serving(self, serves: Any) -> PlayedServer | None:
                return live if serves is not None else None

            def start(
                self, serves: Any, model: str, *_: Any, **__: Any
            ) -> PlayedServer:
                done.append(("start", model))
                return played.server

            def stop(self) -> None:
                done.append("stop")

        def measured(bench: Any, job: RunJob, passed: Passed, server: Any) -> Stored:
            played.jobs.append(job)
            names = [gate.name for gate in passed.gates]
            done.append(("measure", names, server))
            if played.problem is not None:
                raise played.problem
            reason = None if played.status == "ok" else "it broke"
            record = a_record(status=played.status, status_reason=reason)
            return Stored(record, tmp_path / "run.json")

        def asked(*_: Any) -> dict[str, str]:
            done.append("packages")
            return {"engine": "1.0"}

        monkeypatch.setattr(station, "measure", measured)
        monkeypatch.setattr(station, "installed", asked)
        keeper: Any = Keeper()
        servers: Any = PlayedServers()
        here = Station(bench, keeper, (a_gate("lock_clocks_mhz"),), servers)
        fine = Passed((a_gate("cooldown"),))
        again = Passed((a_gate("max_cpu_percent"),))
        played = Played(here, done, said, [fine, again], PlayedServer(), [])
        return played

    return with_matrix


Play = Callable[..., Played]


def test_a_run_has_the_gates_of_its_machine_and_its_own(play: Play) -> None:
    played = play()
    stored = played.measure(last_ended=NOON)
    assert stored.record.status == "ok"
    assert played.done == [
        "packages",
        ("gates", NOON, None),
        ("measure", ["lock_clocks_mhz", "cooldown"], None),
    ]
    assert played.said == [
        "[0/2] m/native/w 1: cooling down, cooling down (50 °C), 3 s left"
    ]


def test_packages_are_asked_for_once_in_an_environment(play: Play) -> None:
    played = play()
    played.measure()
    played.measure()
    assert played.done.count("packages") == 1
    assert played.station.bench.packages == {"native": {"engine": "1.0"}}


def test_what_earlier_runs_say_reaches_the_run(play: Play) -> None:
    played = play()
    played.measure(attempt=3, repeat_of="r1", expected_seconds=7.5)
    (job,) = played.jobs
    given = job.order
    assert (given.attempt, given.repeat_of, given.expected_seconds) == (3, "r1", 7.5)


def test_before_a_server_starts_the_machine_is_idle_and_before_its_run_once_more(
    play: Play,
) -> None:
    """The second pause counts from when the server was ready, and its processes do not stand in the run's way."""
    played = play(a_matrix(**SERVED))
    played.server.ready_at = LATER
    stored = played.measure(last_ended=NOON)
    gates = ["lock_clocks_mhz", "cooldown", "max_cpu_percent"]
    assert played.done == [
        "packages",
        ("gates", NOON, None),
        ("start", "m"),
        ("gates", LATER, "its processes"),
        ("measure", gates, played.server),
    ]
    assert played.server.runs == [stored.record]


def test_a_run_of_a_server_that_is_there_has_one_round_of_gates(play: Play) -> None:
    """The pause counts from the last run where that ended after the server was ready."""
    live = PlayedServer()
    played = play(a_matrix(**SERVED), live)
    played.measure(last_ended=LATER)
    assert played.done[1:] == [
        ("gates", LATER, "its processes"),
        ("measure", ["lock_clocks_mhz", "cooldown"], live),
    ]
    assert len(live.runs) == 1


def test_a_server_that_did_not_start_is_waited_for_no_more(play: Play) -> None:
    """The run is recorded with what came of it, and the server is stopped."""
    played = play(a_matrix(**SERVED))
    played.server.problem = "no such model"
    played.status = "failed"
    assert played.measure().record.status == "failed"
    gates = ["lock_clocks_mhz", "cooldown"]
    assert played.done[3:] == [("measure", gates, played.server), "stop"]


@pytest.mark.parametrize(("status", "stops"), [("ok", False), ("timeout", True)])
def test_a_server_outlives_good_runs_only(play: Play, status: str, stops: bool) -> None:
    played = play(a_matrix(**SERVED), PlayedServer())
    played.status = status
    played.measure()
    assert (played.done[-1] == "stop") is stops


def test_a_failed_run_without_a_server_stops_none(play: Play) -> None:
    played = play()
    played.status = "failed"
    played.measure()
    assert "stop" not in played.done


def test_nothing_is_measured_after_an_interruption(play: Play) -> None:
    played = play()
    played.passes = [Passed((a_gate("cooldown"),), interrupted=True)]
    assert played.measure() == "interrupted"
    assert played.jobs == []


@pytest.mark.parametrize("place", [0, 1], ids=["before the server", "before the run"])
def test_an_interruption_before_or_after_a_servers_start_is_one(
    play: Play, place: int
) -> None:
    played = play(a_matrix(**SERVED))
    played.passes[place] = Passed((), interrupted=True)
    assert played.measure() == "interrupted"
    assert played.jobs == []


def test_an_interruption_while_a_server_starts_measures_nothing(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = play(a_matrix(**SERVED))
    monkeypatch.setattr(played.station.bench.interruption, "finish", True)
    assert played.measure() == "interrupted"
    assert [step[0] for step in played.done[1:]] == ["gates", "start"]


# -- gates that are not met --------------------------------------------------------------------------------


def unmet(play: Play, on_unmet: str) -> Played:
    """A station whose first gate was not met."""
    played = play(a_matrix(gates=OPEN_GATES | {"on_unmet": on_unmet}))
    played.passes = [Passed((a_gate("max_cpu_percent", met=False),))]
    return played


def test_a_gate_that_is_not_met_is_run_through_and_said(play: Play) -> None:
    played = unmet(play, "run")
    assert played.measure().record.status == "ok"
    assert played.said[1:] == [
        "m/native/w 1: gate not met: max_cpu_percent; running anyway (recorded)"
    ]


def test_a_gate_that_is_not_met_skips_the_run_and_says_so(play: Play) -> None:
    played = unmet(play, "skip")
    assert played.measure() == "skipped"
    assert played.jobs == []
    assert played.said[1:] == ["m/native/w 1: skipped: gate not met: max_cpu_percent"]


def test_a_gate_that_is_not_met_stops_the_collection(play: Play) -> None:
    played = unmet(play, "stop")
    with pytest.raises(CollectError) as caught:
        played.measure()
    assert caught.value.lines() == [
        "stopped before m/native/w 1: gate not met: max_cpu_percent, gates; "
        "fix the machine, or set on_unmet: run or skip"
    ]


# -- what measuring cannot do ------------------------------------------------------------------------------


def test_an_error_of_one_run_is_raised_as_it_is(play: Play) -> None:
    played = play()
    played.problem = CollectError("the disk is full")
    with pytest.raises(CollectError) as caught:
        played.measure()
    assert caught.value is played.problem


def test_a_reason_that_lasts_is_said_instead(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(matrix: Matrix, runs: Any) -> None:
        assert [run.slot for run in runs] == [("m", "native", "w", 1)]
        raise CollectError("no model at /gone")

    monkeypatch.setattr(station, "refuse_obstacles", refused)
    played = play()
    played.problem = CollectError("it could not be started")
    with pytest.raises(CollectError, match="no model at /gone"):
        played.measure()


# -- before and after --------------------------------------------------------------------------------------


def test_what_the_machine_could_not_be_set_to_is_said() -> None:
    controlled = [
        a_gate("lock_clocks_mhz", met=False, wanted=2100.0),
        a_gate("power_mode", met=None, wanted="MAXN"),
        a_gate("drop_caches"),
    ]
    assert station._not_set(controlled) == [
        "lock_clocks_mhz 2100 was not set: no right to; running anyway (recorded)",
        "power_mode MAXN was not set: no right to; running anyway (recorded)",
    ]


@pytest.mark.parametrize(
    ("one", "other", "later"),
    [
        (None, None, None),
        (NOON, None, NOON),
        (None, NOON, NOON),
        (NOON, LATER, LATER),
        (LATER, NOON, LATER),
    ],
)
def test_the_later_of_two_moments_is_that_of_those_known(
    one: datetime | None, other: datetime | None, later: datetime | None
) -> None:
    assert station._later(one, other) == later


def test_what_a_killed_collector_left_is_undone_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Reaps:
        def __init__(self, *lines: str) -> None:
            self.lines = lines

        def reap(self) -> list[str]:
            return list(self.lines)

    environments = {
        "host": Reaps("ended a process"),
        "docker": Reaps("removed a container"),
    }
    monkeypatch.setattr(station, "ENVIRONMENTS", environments)
    monkeypatch.setattr(
        controls, "restore_after_crash", lambda: ["unlocked the clocks"]
    )
    undone = ["ended a process", "removed a container", "unlocked the clocks"]
    assert tidied(tmp_path / "none", Redactor()) == undone

    folder = tmp_path / "small"
    folder.mkdir()
    assert tidied(folder, Redactor()) == undone

    left = a_record(
        campaign="small", status="interrupted", status_reason=journal.KILLED
    )
    journal.begin(folder, left)
    (folder / ".server" / "work").mkdir(parents=True)
    recorded = f"recorded {left.run_id}, which a killed collector left, as interrupted"
    assert tidied(folder, Redactor()) == [*undone, recorded]
    assert not (folder / ".server").exists()
    assert (folder / f"{left.stem}.json").is_file()
