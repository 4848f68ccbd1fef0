"""Ends at any instant: real signals to a real collector, and what the next one finds."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from types import ModuleType

import pytest

from sparkpub import __main__
from sparkpub.collect.machine import processes
from sparkpub.collect.machine.processes import marked
from sparkpub.collect.overview import status_document, status_lines
from sparkpub.plan.matrix import Matrix
from sparkpub.record.errors import CollectError
from sparkpub.record.store import file_sha256
from tests.collect.collecting import OPEN_GATES, a_matrix, records, run, text_of
from tests.collect.environments.launching import until

LONG = "echo rate 5; exec sleep 600"
LIMIT = 120
"""Seconds that a collector may take to end on a busy machine; what it was at would take longer."""


@contextmanager
def a_collector(
    tmp_path: Path, matrix: Matrix, *options: str
) -> Iterator["subprocess.Popen[str]"]:
    """`sparkpub collect` as a process of its own, as from a shell."""
    file = tmp_path / "matrix.json"
    file.write_text(json.dumps(matrix.document()))
    argv = [
        sys.executable,
        "-m",
        "sparkpub",
        "collect",
        str(file),
        "--data",
        str(tmp_path),
        "--no-commit",
        *options,
    ]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def running(tmp_path: Path) -> bool:
    """Whether a run is on: its log has its first line."""
    log = tmp_path / "small" / ".run" / "log"
    return log.exists() and b"rate" in log.read_bytes()


def orphans() -> list[int]:
    """Processes of dead collectors: those of a living one are another test's."""
    return [
        pid
        for pid, who in marked("SPARKPUB_COLLECTOR").items()
        if processes.abandoned(who)
    ]


@pytest.mark.parametrize(
    ("numbers", "pause", "name"),
    [
        ([signal.SIGHUP], 0, "SIGHUP"),
        ([signal.SIGINT, signal.SIGINT], 0.5, "Ctrl-C, twice"),
        # Whoever waits for the end sends it again and again, down to the interpreter's last moment.
        (repeat(signal.SIGTERM), 0.001, "SIGTERM"),
    ],
)
def test_a_signal_during_a_run_ends_and_records_it(
    tmp_path: Path, numbers: Iterable[signal.Signals], pause: float, name: str
) -> None:
    with a_collector(tmp_path, a_matrix(LONG)) as collector:
        until(lambda: running(tmp_path))
        for number in numbers:
            collector.send_signal(number)
            time.sleep(pause)
            if collector.poll() is not None:
                break
        out, err = collector.communicate(timeout=LIMIT)
    assert (collector.returncode, err) == (1, "")
    assert f"1 run measured, 0 failed, 2 to do; stopped by {name}\n" in out
    (record,) = records(tmp_path)
    stopped = (record.status, record.status_reason)
    assert stopped == ("interrupted", f"stopped by {name}")
    assert {item.role for item in record.evidence} == {"log", "telemetry"}
    assert orphans() == []
    # An interruption is no attempt.
    assert run(a_matrix("echo rate 5"), tmp_path).measured == 2


def test_ctrl_c_once_finishes_the_run_in_hand(tmp_path: Path) -> None:
    with a_collector(tmp_path, a_matrix("echo rate 5; sleep 1")) as collector:
        until(lambda: running(tmp_path))
        collector.send_signal(signal.SIGINT)
        said, _ = collector.communicate(timeout=LIMIT)
    assert collector.returncode == 1
    assert "1 run measured, 0 failed, 1 to do; stopped by Ctrl-C\n" in said
    assert [record.status for record in records(tmp_path)] == ["ok"]


def test_ctrl_c_while_the_program_loads_just_ends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python's own handler would raise KeyboardInterrupt in the middle of an import; once loaded, it is back."""
    before = signal.getsignal(signal.SIGINT)
    seen = []

    class Loading(ModuleType):
        def __getattr__(self, name: str) -> Callable[[], None]:
            if name != "main":
                raise AttributeError(name)
            seen.append(signal.getsignal(signal.SIGINT))
            return lambda: seen.append(signal.getsignal(signal.SIGINT))

    monkeypatch.setitem(sys.modules, "sparkpub.cli", Loading("sparkpub.cli"))
    __main__.main()
    assert seen == [signal.SIG_DFL, before]


NEVER_MET = {"min_free_disk_gib": 0, "min_free_memory_percent": 100, "max_wait": 600}
"""No running machine has all of its memory free, however idle it is."""


@pytest.mark.parametrize(
    ("gates", "number"),
    [({"cooldown": 600}, signal.SIGTERM), (NEVER_MET, signal.SIGINT)],
    ids=["cooling", "never met"],
)
def test_a_signal_while_a_gate_waits_stops_at_once(
    tmp_path: Path, gates: dict[str, object], number: int
) -> None:
    matrix = a_matrix("echo rate 5; sleep 0.1")
    run(matrix, tmp_path, max_runs=1)
    waiting = a_matrix("echo rate 5; sleep 0.1", gates=OPEN_GATES | gates)
    with a_collector(tmp_path, waiting) as collector:
        assert collector.stdout is not None
        said = ""
        while "cooling" not in said and "waiting" not in said:
            said = collector.stdout.readline()
            assert said, "the collector ended"
        collector.send_signal(number)
        said, wrong = collector.communicate(timeout=LIMIT)
    assert (collector.returncode, wrong) == (1, "")
    assert "0 runs measured, 0 failed, 1 to do; stopped by" in said
    assert len(records(tmp_path)) == 1
    assert not (tmp_path / "small" / ".run").exists()


def test_a_lost_terminal_loses_no_run(tmp_path: Path) -> None:
    with a_collector(tmp_path, a_matrix("echo rate 5; sleep 0.5")) as collector:
        until(lambda: running(tmp_path))
        assert collector.stdout is not None
        collector.stdout.close()  # every later line meets a broken pipe
        assert collector.wait(LIMIT) == 0
        collector.stdout = None
    assert [record.status for record in records(tmp_path)] == ["ok", "ok"]


def test_a_collector_is_seen_alone_and_made_up_for_when_it_is_killed(
    tmp_path: Path, own_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one shares neither its machine nor, with notes of its own, its campaign: it took the run for that of a
    collector that was killed."""
    matrix = a_matrix(LONG, iterations=1)
    with a_collector(tmp_path, matrix) as collector:
        until(lambda: running(tmp_path))
        until(lambda: "run" in status_document(matrix, tmp_path)["now"])
        now = status_document(matrix, tmp_path)["now"]
        doing = (collector.pid, "m/native/w 1", "running")
        assert (now["pid"], now["run"], now["phase"]) == doing
        said = f"now: process {collector.pid}: m/native/w 1: running since "
        assert status_lines(matrix, tmp_path)[-1].startswith(said)
        with pytest.raises(CollectError, match=f"process {collector.pid}, campaign"):
            run(matrix, tmp_path)
        monkeypatch.setenv("SPARKPUB_STATE", str(tmp_path / "another-state"))
        with pytest.raises(CollectError, match="another collector writes to this"):
            run(matrix, tmp_path)
        monkeypatch.setenv("SPARKPUB_STATE", str(own_state))
        assert records(tmp_path) == []
        assert running(tmp_path)
        collector.kill()
        collector.wait()
    assert status_document(matrix, tmp_path)["now"] is None
    assert orphans() != []
    outcome = run(a_matrix(LONG, iterations=1, timeout=0.3), tmp_path)
    interrupted, after = records(tmp_path)
    assert (interrupted.status, after.status) == ("interrupted", "timeout")
    assert interrupted.iteration == after.iteration == 1
    assert text_of(interrupted, tmp_path) == "rate 5\n"
    assert outcome.measured == 1
    assert orphans() == []


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))]
)
def test_killed_at_any_instant_the_campaign_completes(
    tmp_path: Path, seed: int
) -> None:
    """SIGKILL at random instants until nothing is left to do: every record is whole, every slot is done once."""
    chance = random.Random(seed)
    matrix = a_matrix("echo rate 5; sleep 0.05", iterations=3)
    for _ in range(4):
        with a_collector(tmp_path, matrix) as collector:
            time.sleep(chance.uniform(0.2, 2.5))
            collector.kill()
            collector.wait()
    outcome = run(matrix, tmp_path)
    assert outcome.left == 0
    found = records(tmp_path)
    assert sorted(record.iteration for record in found if record.status == "ok") == [
        1,
        2,
        3,
    ]
    assert {record.status for record in found} <= {"ok", "interrupted"}
    for record in found:
        for item in record.evidence:
            assert file_sha256(tmp_path / "small" / item.path) == item.sha256
    known = {
        f"{record.stem}{suffix}"
        for record in found
        for suffix in (".json", ".log", ".telemetry.csv")
    }
    assert {path.name for path in (tmp_path / "small").iterdir()} <= known | {
        "campaign.json"
    }
    assert orphans() == []
