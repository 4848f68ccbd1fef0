"""A machine that measures: what comes before a run, in which order, and what ends it; gates and runs are played."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect import station
from sparkpub.collect.bench import Bench, Order, RunJob
from sparkpub.collect.gates import Passed
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.progress import Progress
from sparkpub.collect.station import Station
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from sparkpub.record.errors import CollectError
from sparkpub.record.record import Gate, Machine, Record
from sparkpub.record.redaction import Redactor
from sparkpub.record.store import Stored
from tests.building import a_record
from tests.collect.collecting import a_matrix

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


# -- what measuring cannot do ------------------------------------------------------------------------------


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
