"""A real Ray cluster of three nodes on this machine: spread, replicated, killed, frozen, and a head that dies."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect.books import Outcome
from sparkpub.collect.choice import Choice
from sparkpub.collect.fleet.session import collect
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from sparkpub.record.record import Record
from sparkpub.record.store import file_sha256
from tests.collect.collecting import a_command, a_matrix, records
from tests.collect.fleet.nodes import Nodes, command

pytestmark = [
    pytest.mark.ray,
    # Ray leaves pipes of its processes to the garbage collector, and warns of settings that it changes itself.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
]
NAMES = ("one", "two", "three")


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with Nodes(tmp_path_factory.mktemp("machines")) as nodes:
        for name in NAMES:
            nodes.add(name)
        yield nodes


def campaign(script: str = "echo rate 5; sleep 0.3", **changes: Any) -> Matrix:
    """Three models in two environments, once: 6 runs."""
    return a_matrix(
        **{
            "workloads": {"w": a_command(script)},
            "models": {name: {"id": f"x/{name}"} for name in ("a", "b", "c")},
            "environments": {"native": {"type": "host"}, "other": {"type": "host"}},
            "iterations": 1,
            "retries": 3,
        }
        | changes
    )


def spread(matrix: Matrix, nodes: Nodes, data: Path) -> Outcome:
    return collect(matrix, Choice(data, commit=False), nodes.address, lambda _: None)


def good(found: list[Record]) -> Counter[tuple[object, ...]]:
    """How often each machine has a good run of each slot."""
    return Counter(
        (*record.cell, record.iteration, record.machine.id)
        for record in found
        if record.status == "ok"
    )


SURROUNDINGS = (
    'echo rate 5; echo "omp:$OMP_NUM_THREADS preload:$LD_PRELOAD job:$RAY_JOB_ID"; '
    "echo nice $(nice) oom $(cat /proc/self/oom_score_adj)"
)


def surroundings() -> list[str]:
    """What a run prints that has the surroundings of its node, which are ours, and none that Ray makes."""
    threads = os.environ.get("OMP_NUM_THREADS", "")
    preload = os.environ.get("LD_PRELOAD", "")
    last = Path("/proc/self/oom_score_adj").read_text().strip()
    return [
        f"omp:{threads} preload:{preload} job:",
        f"nice {os.nice(0)} oom {last}",
    ]


def test_a_campaign_is_spread_over_three_machines(nodes: Nodes, tmp_path: Path) -> None:
    matrix = campaign(SURROUNDINGS)
    outcome = spread(matrix, nodes, tmp_path)
    found = records(tmp_path)
    assert (outcome.measured, outcome.lacking, outcome.exit_code) == (6, 0, 0)
    assert Counter((*record.cell, record.iteration) for record in found) == Counter(
        run.slot for run in plan(matrix)
    )
    machines = {
        record.model: {r.machine.id for r in found if r.model == record.model}
        for record in found
    }
    assert all(len(ids) == 1 for ids in machines.values())
    assert len(set.union(*machines.values())) == 3
    for record in found:
        assert record.value("rate") == 5
        assert {item.role for item in record.evidence} == {"log", "telemetry"}
        for item in record.evidence:
            assert file_sha256(tmp_path / "small" / item.path) == item.sha256
        log = record.file("log")
        assert log is not None
        lines = (tmp_path / "small" / log.path).read_text().splitlines()
        assert lines == ["rate 5", *surroundings()]
    text = "".join(path.read_text() for path in (tmp_path / "small").glob("*"))
    assert "127.0.0.1" not in text
    assert os.uname().nodename not in text
    left = [
        path
        for name in NAMES
        for path in (nodes.state(name) / "fleet" / "small").glob("*.json")
    ]
    assert left == []
    assert spread(matrix, nodes, tmp_path).measured == 0


def test_a_node_that_is_killed_loses_no_run(nodes: Nodes, tmp_path: Path) -> None:
    """Every machine measures every run, and each is there once, whole, whatever dies in between."""
    models = {name: {"id": f"x/{name}"} for name in ("a", "b")}
    native = {"native": {"type": "host"}}
    matrix = campaign(
        "echo rate 5; sleep 0.5",
        models=models,
        environments=native,
        machines="replicate",
    )
    head = subprocess.Popen(
        command(matrix, nodes, tmp_path), stdout=subprocess.PIPE, text=True
    )
    wait_for_a_run(nodes, ["one"])
    nodes.kill("one")
    nodes.add("one")
    said, _ = head.communicate(timeout=300)
    assert head.returncode == 0, said
    found = records(tmp_path)
    ids = sorted({record.machine.id or "" for record in found})
    assert len(ids) == 3
    assert good(found) == Counter((*run.slot, run.machine) for run in plan(matrix, ids))
    assert {record.status for record in found} <= {"ok", "interrupted"}
    for record in found:
        for item in record.evidence:
            assert file_sha256(tmp_path / "small" / item.path) == item.sha256


def wait_for_a_run(nodes: Nodes, names: Sequence[str]) -> None:
    """Until one of these machines has a run that prints."""
    logs = [nodes.state(name) / "fleet" / "small" / ".run" / "log" for name in names]
    deadline = time.monotonic() + 300
    while not any(log.is_file() and log.stat().st_size for log in logs):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_head_that_is_killed_is_resumed(nodes: Nodes, tmp_path: Path) -> None:
    """The runs that were on are recorded as interrupted by the machines, and measured again."""
    data = tmp_path / "data"
    native = {"native": {"type": "host"}}
    again = tmp_path / "again"
    script = f"echo rate 5; [ -e {again} ] || exec sleep 600"
    matrix = campaign(script, environments=native)
    collecting = command(matrix, nodes, data)
    head = subprocess.Popen(collecting, stdout=subprocess.DEVNULL)
    wait_for_a_run(nodes, NAMES)
    head.send_signal(signal.SIGKILL)
    head.wait()
    again.touch()
    ended = subprocess.run(
        collecting, capture_output=True, text=True, check=False, timeout=300
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = records(data)
    slots = Counter(record.cell for record in found if record.status == "ok")
    assert sorted(slots.values()) == [1] * 3
    assert {record.status for record in found} <= {"ok", "interrupted"}
    assert [record for record in found if record.status == "interrupted"]


def test_ctrl_c_finishes_the_current_runs_and_twice_stops_them(
    nodes: Nodes, tmp_path: Path
) -> None:
    matrix = campaign("echo rate 5; sleep 60")

    def twice() -> None:
        for name in NAMES:
            wait_for_a_run(nodes, [name])
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGINT)

    operator = threading.Thread(target=twice)
    operator.start()
    outcome = spread(matrix, nodes, tmp_path)
    operator.join()
    found = records(tmp_path)
    assert [record.status for record in found] == ["interrupted"] * 3
    assert {record.status_reason for record in found} == {"stopped by Ctrl-C, twice"}
    assert outcome.stopped == "stopped by Ctrl-C, twice"
    assert outcome.left == 6


IMPATIENT = (
    "import sys; from sparkpub.__main__ import main; "
    "from sparkpub.collect.fleet import cluster; cluster.ANSWER_SECONDS = 10.0; sys.exit(main())"
)
"""The command line, with less patience for the head of the cluster."""


@pytest.mark.slow
def test_where_the_head_of_the_cluster_is_killed_the_collection_says_so(
    nodes: Nodes, tmp_path: Path
) -> None:
    """The last test of this file: the cluster is of no use any more. Ray would end the process, without a summary."""
    matrix = campaign("echo rate 5; sleep 60")
    _, _, _, *arguments = command(matrix, nodes, tmp_path)
    argv = [sys.executable, "-c", IMPATIENT, *arguments]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as head:
        for name in NAMES:
            wait_for_a_run(nodes, [name])
        nodes.kill_head()
        said, _ = head.communicate(timeout=300)
    assert head.returncode == 1
    lines = said.splitlines()
    assert lines[-1].startswith("error: the Ray cluster does not answer any more: ")
    assert lines[-1].endswith(
        "; start it and the same command again: finished runs wait on their machines"
    )
    # Each other line begins with the time.
    assert all(line[:2].isdigit() for line in lines[:-1]), said
