"""Commands directly on the machine: real processes, real kills."""

import os
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import pytest

from sparkpub.collect.environments import host
from sparkpub.collect.environments.host import Host
from sparkpub.collect.machine import processes
from sparkpub.collect.machine.processes import OWNER_VARIABLE, RUN_VARIABLE
from sparkpub.collect.packages import installed
from sparkpub.plan.environments import HostOptions
from tests.collect.environments.launching import a_launch, ended, until

ESCAPE = """import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        time.sleep(600)
"""
"""A grandchild in a session of its own that prints its process id."""


def gone(pid: int, within: float = 10) -> bool:
    end = time.monotonic() + within
    while processes.start_ticks(pid) is not None and time.monotonic() < end:
        time.sleep(0.01)
    return processes.start_ticks(pid) is None


def test_a_command_runs_in_its_folder_with_its_variables_and_its_output_is_kept(
    tmp_path: Path,
) -> None:
    code = (
        "import os,sys; print(os.getcwd(), os.environ['A'], os.environ['SPARKPUB_RUN']);"
        "print('err', file=sys.stderr)"
    )
    launch, log = a_launch(
        tmp_path,
        "{python}",
        "-c",
        code + "; open('{workdir}/out','w').write('x'); sys.exit(3)",
    )
    running = Host(HostOptions(env={"A": "b {workdir}"})).start(launch)
    assert ended(running).code == 3
    assert sorted(log.text.splitlines()) == sorted(
        [f"{tmp_path} b {tmp_path} r1", "err"]
    )
    assert (tmp_path / "out").read_text() == "x"
    assert running.argv[0] == sys.executable


def test_stopping_ends_processes_that_left_their_session(tmp_path: Path) -> None:
    launch, log = a_launch(tmp_path, "{python}", "-c", ESCAPE + "time.sleep(600)")
    running = Host(HostOptions()).start(launch)
    until(lambda: log.text.endswith("\n"))
    escaped = int(log.text)
    running.close()
    assert gone(escaped)


def test_what_outlives_its_command_is_ended_with_it(tmp_path: Path) -> None:
    launch, log = a_launch(tmp_path, "{python}", "-c", ESCAPE + "time.sleep(0.3)")
    running = Host(HostOptions()).start(launch)
    assert ended(running).code == 0
    assert gone(int(log.text))


def test_a_command_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    code = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up',flush=True); time.sleep(600)"
    launch, log = a_launch(tmp_path, "{python}", "-c", code)
    running = Host(HostOptions()).start(launch)
    until(lambda: "up" in log.text)
    running.stop(grace=0.2)
    assert running.code == -signal.SIGKILL
    running.close()


def test_orphans_of_a_dead_collector_are_ended_and_those_of_a_living_one_are_not() -> (
    None
):
    def start(who: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            ["sleep", "600"],
            env=os.environ | {OWNER_VARIABLE: who, RUN_VARIABLE: "r-dead"},
        )

    dead, living = start(processes.spelled(999999999, "1")), start(processes.me())
    try:
        said = host.reap()
        assert dead.wait(10) == -signal.SIGKILL
        assert living.poll() is None
        assert any("r-dead" in line for line in said)
    finally:
        for process in (dead, living):
            process.kill()
            process.wait()


def test_an_owner_is_told_by_boot_process_and_start() -> None:
    boot, pid, start, notes = processes.me().split(":")
    assert processes.lives(processes.me())
    assert not processes.lives(f"{boot}:{pid}:{int(start) + 1}:{notes}")
    assert not processes.lives(f"other-boot:{pid}:{start}:{notes}")
    assert processes.abandoned(f"{boot}:{pid}:{int(start) + 1}:{notes}")
    assert not processes.abandoned(f"{boot}:{pid}:{int(start) + 1}:of-others")
    assert not processes.abandoned(processes.me())


def test_what_has_ended_is_not_stopped_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process id may belong to somebody else by then."""
    running = Host(HostOptions()).start(a_launch(tmp_path, "true")[0])
    assert running.wait(30)
    sent: list[object] = []
    monkeypatch.setattr(
        "sparkpub.collect.environments.host.end", lambda *call: sent.append(call)
    )
    running.stop()
    assert running.code == 0
    running.close()
    assert sent == []


def test_the_packages_of_an_environment_are_asked_of_its_python() -> None:
    known = installed(Host(HostOptions()))
    assert isinstance(known, dict)
    assert known["pydantic"] == metadata.version("pydantic")
