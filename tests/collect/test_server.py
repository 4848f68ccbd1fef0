"""A server that lives for several runs: a real one on this machine, with real clients."""

import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from sparkpub.collect import gates, overview, server
from sparkpub.collect.books import Outcome
from sparkpub.collect.gates import Gatekeeper
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.machine import processes
from sparkpub.collect.machine.nvml import Gpus
from sparkpub.collect.machine.processes import marked
from sparkpub.collect.machine.tree import ProcessTree
from sparkpub.collect.sampler import Sampler
from sparkpub.plan import matrix as matrices
from sparkpub.plan.matrix import Gates, Matrix
from sparkpub.record.record import Record
from tests.collect.collecting import (
    OPEN_GATES,
    a_command,
    a_matrix,
    measured,
    records,
    run,
    text_of,
)
from tests.collect.environments.launching import until
from tests.collect.environments.rootfs import BINDS, IMAGE, an_engine
from tests.collect.fake_nvml import FakeNvml
from tests.collect.test_interruption import LIMIT, a_collector

SERVER = """
import http.server, json, os, signal, sys
# The first process of a container ignores a signal that it does not handle: the engine would wait until it may kill.
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
port, behaviour = int(sys.argv[1]), sys.argv[2]
print("loading weights", flush=True)
if behaviour == "broken":
    sys.exit("no such model")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/die":
            print("fatal error", flush=True)
            os._exit(3)
        ready = behaviour != "never" or self.path != "/health"
        self.send_response(200 if ready else 503)
        self.end_headers()
        models = {"data": [{"id": "m"}]} if behaviour in ("sense", "nonsense") else os.getpid()
        self.wfile.write(json.dumps(models if self.path == "/v1/models" else os.getpid()).encode())
    def do_POST(self):
        said = "Paris, on the river Seine." if behaviour == "sense" else ""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"choices": [{"message": {"content": said}}]}).encode())
    def log_message(self, *_):
        if self.path not in ("/health", "/v1/models"):
            print("answered", self.path, flush=True)
print("listening", flush=True)
where = "0.0.0.0" if behaviour == "everywhere" else "127.0.0.1"
http.server.HTTPServer((where, port), Handler).serve_forever()
"""
CLIENT = """
import sys, urllib.request
print("rate", urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}{sys.argv[2]}").read().decode(), flush=True)
"""


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def a_client(port: int, path: str = "/work", tail: str = "") -> dict[str, Any]:
    """A workload whose rate is the id of the server's process."""
    script = f"{sys.executable} -S -c '{CLIENT}' {port} {path}{tail}"
    return a_command(script)


def serving(
    port: int, *more: str, behaviour: str = "good", **options: Any
) -> dict[str, Any]:
    argv = [sys.executable, "-S", "-c", SERVER, "{port}", behaviour, *more]
    return {"type": "host", "server": {"argv": argv, "port": port} | options}


def served(
    port: int, environment: dict[str, Any] | None = None, **changes: Any
) -> Matrix:
    chosen = {
        "environments": {"native": environment or serving(port)},
        "workloads": {"w": a_client(port)},
    }
    return a_matrix(**(chosen | changes))


def said(record: Record) -> list[str]:
    return [event.text for event in record.events if event.kind == "note"]


@pytest.mark.parametrize(
    ("behaviour", "random", "status"),
    [("sense", False, "ok"), ("nonsense", False, "failed"), ("nonsense", True, "ok")],
)
def test_nothing_is_timed_of_a_model_that_makes_no_sense_unless_its_weights_are_random(
    tmp_path: Path, port: int, behaviour: str, random: bool, status: str
) -> None:
    models = {"m": {"id": "tiny/model", "random_weights": random}}
    environment = serving(port, behaviour=behaviour)
    record = measured(served(port, environment, models=models, iterations=1), tmp_path)
    assert record.status == status
    kept = "the model answered before the test: Paris, on the river Seine."
    assert (kept in said(record)) == (behaviour == "sense")
    if status == "failed":
        assert "gave no answer" in str(record.status_reason)
        assert record.value("rate") is None


def left_over() -> list[int]:
    """Processes that this test's collector started and that still are."""
    return [
        pid
        for pid, who in marked("SPARKPUB_COLLECTOR").items()
        if who.endswith(processes.me().rpartition(":")[2])
    ]


def test_one_start_serves_consecutive_runs_and_each_of_them_shows_it(
    tmp_path: Path, port: int
) -> None:
    workloads = {"w": a_client(port), "v": a_client(port, "/other")}
    gates = OPEN_GATES | {"cooldown": 0.2}
    assert run(served(port, workloads=workloads, gates=gates), tmp_path).measured == 4
    found = records(tmp_path)
    # Idle before the server starts, and once more before its first run: that pause counts from when it was ready.
    pauses = [
        [gate for gate in record.gates if gate.name == "cooldown"] for record in found
    ]
    assert [len(of_run) for of_run in pauses] == [2, 1, 1, 1]
    idle, ready = pauses[0]
    assert "no earlier run" in (idle.reason or "")
    assert "no earlier run" not in (ready.reason or "")
    assert [record.status for record in found] == ["ok"] * 4
    assert (
        len({record.value("rate") for record in found}) == 1
    )  # one process answered all
    assert len({record.observed.settings["server"] for record in found}) == 1
    first, *others = found
    start = first.metrics["server_start_seconds"]
    assert start.value is not None
    assert 0 < start.value < 60
    for record in others:
        assert "server_start_seconds" not in record.metrics
        assert first.run_id in record.unavailable["server_start_seconds"]
    for record in found:
        log = text_of(record, tmp_path)
        assert log.startswith("loading weights\nlistening\n")
        path = "/work" if record.workload == "w" else "/other"
        assert f"answered {path}\n" in log
        assert log.count("answered") == 1  # and nothing of other runs
        assert (
            record.metrics["system_peak_gib"].reason
            == "the server was loaded before the run"
        )
    assert left_over() == []
    assert list((tmp_path / "small").glob(".*")) == []


def test_another_command_or_environment_gets_another_server(
    tmp_path: Path, port: int
) -> None:
    environments = {
        "one": serving(port),
        "two": serving(port, "--other", "{iteration}"),
        "without": {"type": "host"},
    }
    nobody = f"import socket; print('rate', socket.socket().connect_ex(('127.0.0.1', {port})))"
    alone = a_command(f'{sys.executable} -S -c "{nobody}"')
    apart = (("without", "w"), ("one", "alone"), ("two", "alone"))
    matrix = served(
        port,
        environments=environments,
        workloads={"w": a_client(port), "alone": alone},
        exclude=[{"environment": e, "workload": w} for e, w in apart],
        iterations=1,
        order="blocked",
    )
    run(matrix, tmp_path)
    one, two, without = records(tmp_path)
    assert one.value("rate") != two.value("rate")
    assert "server_start_seconds" in two.metrics
    assert without.value("rate") != 0  # refused: no server listens any more
    assert "server" not in without.observed.settings


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("broken", "the server ended before it was ready: exit status 1"),
        ("never", "the server was not ready after 1s"),
        (
            "somebody else's",
            "something else listens on port {port} of this machine already; stop it, or give the server another port",
        ),
    ],
)
def test_a_server_that_does_not_get_ready_fails_its_run(
    tmp_path: Path, port: int, behaviour: str, reason: str
) -> None:
    with ExitStack() as stack:
        if behaviour == "somebody else's":
            stack.enter_context(socket.create_server(("127.0.0.1", port)))
        outcome = _not_ready(tmp_path, port, behaviour)
    assert (outcome.measured, outcome.failed) == (1, 1)
    (record,) = records(tmp_path)
    expected = reason.format(port=port)
    assert (record.status, record.status_reason) == ("failed", expected)
    assert record.exit_code is None
    assert "server_start_seconds" not in record.metrics
    log = text_of(record, tmp_path)
    assert log.startswith("loading weights\n") == (behaviour in ("broken", "never"))
    assert ("no such model" in log) == (behaviour == "broken")
    assert left_over() == []


def _not_ready(tmp_path: Path, port: int, behaviour: str) -> Outcome:
    timeout = "60s" if behaviour == "broken" else "1s"
    environment = serving(port, behaviour=behaviour, ready_timeout=timeout)
    return run(served(port, environment, iterations=1), tmp_path)


def test_after_a_run_that_went_wrong_the_next_gets_a_new_server(
    tmp_path: Path, port: int
) -> None:
    """The server died in it, it failed, or it took too long."""
    workloads = {
        "dies": a_client(port, "/die", "; sleep 60"),
        "fails": a_client(port, "/work", "; exit 7"),
        "slow": a_client(port, "/work", "; sleep 60"),
        "good": a_client(port),
    }
    run(served(port, workloads=workloads, iterations=1, timeout=3), tmp_path)
    found = records(tmp_path)
    statuses = [record.status for record in found]
    assert statuses == ["failed", "failed", "timeout", "ok"]
    assert found[0].status_reason == "the server ended: exit status 3"
    assert "fatal error" in text_of(found[0], tmp_path)
    assert len({record.observed.settings["server"] for record in found}) == 4
    assert all("server_start_seconds" in record.metrics for record in found)


@pytest.fixture
def waiting(tmp_path: Path, port: int) -> Iterator[Any]:
    """A collector of its own whose run goes on for ever, and its server's process id."""
    matrix = served(
        port, workloads={"w": a_client(port, "/work", "; exec sleep 600")}, iterations=1
    )
    with a_collector(tmp_path, matrix) as collector:
        log = tmp_path / "small" / ".run" / "log"
        until(lambda: log.exists() and b"\n" in log.read_bytes().partition(b"rate ")[2])
        pid = int(log.read_text().partition("rate ")[2].split()[0])
        yield SimpleNamespace(collector=collector, pid=pid, matrix=matrix)


def test_the_server_of_a_killed_collector_is_ended_by_the_next(
    tmp_path: Path, port: int, waiting: Any
) -> None:
    waiting.collector.send_signal(signal.SIGKILL)
    waiting.collector.wait()
    assert processes.start_ticks(waiting.pid) is not None
    run(
        served(port, workloads={"v": a_client(port)}, iterations=1, campaign="another"),
        tmp_path,
    )
    assert processes.start_ticks(waiting.pid) is None
    assert [record.status for record in records(tmp_path, "another")] == ["ok"]
    run(waiting.matrix.model_copy(update={"timeout": 0.5}), tmp_path)
    assert [record.status for record in records(tmp_path)] == ["interrupted", "timeout"]
    assert list((tmp_path / "small").glob(".*")) == []


def test_ctrl_c_while_the_server_starts_leaves_no_record(
    tmp_path: Path, port: int
) -> None:
    with a_collector(
        tmp_path, served(port, serving(port, behaviour="never"))
    ) as collector:
        assert collector.stdout is not None
        while "starting the server" not in collector.stdout.readline():
            assert collector.poll() is None
        collector.send_signal(signal.SIGINT)
        collector.communicate(timeout=LIMIT)
    assert collector.returncode == 1
    assert records(tmp_path) == []
    assert not (tmp_path / "small" / server.FOLDER).exists()


def test_the_servers_processes_are_no_strangers(driver: FakeNvml) -> None:
    """This process stands for the server; its parent is somebody else; one id is of another process namespace."""
    driver.pids = [os.getpid(), os.getppid(), 2**22 + 1]
    sampler = Sampler(server=os.getpid())
    assert sampler.row(0.0)["gpu_foreign_processes"] == 1
    sampler.attach(os.getpid(), 0.0)
    row = sampler.row(1.0)
    assert (row["gpu_processes"], row["gpu_foreign_processes"]) == (3, 1)
    assert row["cgroup_peak_gib"] is None


def test_the_groups_of_server_and_client_are_charged_together(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gib = 2**30
    for name, current in (("11", 4), ("12", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "memory.current").write_text(f"{current * gib}\n")
        (tmp_path / name / "memory.peak").write_text(f"{9 * gib}\n")
    shared = "the run shares its control group with the collector"
    monkeypatch.setattr(
        "sparkpub.collect.machine.tree.own_folder",
        lambda pid: (tmp_path / str(pid), "") if pid < 13 else (None, shared),
    )
    sampler = Sampler(server=11)
    assert sampler.row(0.0)["cgroup_current_gib"] is None  # the run has not begun
    sampler.attach(12, 0.0)
    row = sampler.row(1.0)
    # The peak of the server's group is of all its life.
    assert (row["cgroup_current_gib"], row["cgroup_peak_gib"]) == (6, None)
    sampler.attach(13, 1.0)
    assert sampler.row(2.0)["cgroup_current_gib"] is None  # half would be no figure
    assert sampler.reasons["cgroup_current_gib"] == shared


def test_gates_do_not_wait_for_the_server_to_go(
    driver: FakeNvml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.memory = SimpleNamespace(total=100, used=92, free=8)
    wanted = Gates.model_validate(
        OPEN_GATES
        | {"exclusive_gpu": True, "min_free_memory_percent": 90, "max_wait": 0.05}
    )

    def unmet_with(tree: ProcessTree | None) -> str:
        with Interruption() as interruption:
            keeper = Gatekeeper(wanted, "", tmp_path)
            passed = keeper.passed(Gpus(), None, interruption, lambda *_: None, tree)
        return gates.why_unmet(passed)

    driver.pids = [os.getpid(), 2**22 + 1]
    both = "gate not met: min_free_memory_percent, exclusive_gpu"
    assert unmet_with(None) == both
    assert unmet_with(ProcessTree(os.getpid())) == ""
    driver.pids = [os.getpid(), os.getppid()]
    assert unmet_with(ProcessTree(os.getpid())) == "gate not met: exclusive_gpu"


@pytest.fixture
def engine() -> Iterator[Any]:
    with an_engine() as client:
        yield client


@pytest.mark.docker
def test_server_and_client_in_containers_of_their_own(
    tmp_path: Path, port: int, engine: Any
) -> None:
    """Both on the host's network; the next collector removes a server's container that a killed one left."""
    interpreter = "/usr/bin/python3"
    argv = [interpreter, "-S", "-c", SERVER, "{port}", "good"]
    environment = {
        "type": "docker",
        "image": IMAGE,
        "binds": list(BINDS),
        "network": "host",
        "server": {"argv": argv, "port": port},
    }
    # Long enough for a sample of its control group.
    lasting = CLIENT + "import time\ntime.sleep(1.5)\n"
    workloads = {"w": a_command(f"{interpreter} -S -c '{lasting}' {port} /work")}
    run(served(port, environment, workloads=workloads), tmp_path)
    first, second = records(tmp_path)
    assert [first.status, second.status] == ["ok", "ok"]
    assert first.value("rate") == second.value("rate")
    assert text_of(second, tmp_path).startswith("loading weights\nlistening\n")
    assert "answered /work\n" in text_of(second, tmp_path)
    assert second.container is not None
    assert second.metrics["cgroup_peak_gib"].value is not None
    assert (
        engine.containers.list(all=True, filters={"label": "sparkpub.collector"}) == []
    )
    workloads = {
        "w": a_command(f"{interpreter} -S -c '{CLIENT}' {port} /work; exec sleep 600")
    }
    with a_collector(
        tmp_path, served(port, environment, workloads=workloads, campaign="killed")
    ) as collector:
        log = tmp_path / "killed" / ".run" / "log"
        until(lambda: log.exists() and b"rate" in log.read_bytes())
        collector.kill()
        collector.wait()
    assert len(engine.containers.list(filters={"label": "sparkpub.collector"})) == 2
    run(a_matrix(iterations=1, campaign="after"), tmp_path)
    assert (
        engine.containers.list(all=True, filters={"label": "sparkpub.collector"}) == []
    )


@pytest.mark.docker
def test_the_server_of_a_recipe_is_measured_from_the_host(
    tmp_path: Path, port: int, engine: Any
) -> None:
    """The image has no client: the record has the server's container."""
    (tmp_path / "server.py").write_text(SERVER)
    recipe = {
        "model": "acme/Walker-8B",
        "container": IMAGE,
        "defaults": {"port": port, "how": "good"},
        "command": "/usr/bin/python3 -S /served/server.py \\\n  {port} {how}\n",
        "executor_config": {"gpus": None},
    }
    (tmp_path / "walker.yaml").write_text(yaml.safe_dump(recipe))
    document: dict[str, Any] = {
        "campaign": "of-recipe",
        "title": "t",
        "environments": {
            "there": {
                "recipe": "walker.yaml",
                "gpus": None,
                "binds": [*BINDS, f"{tmp_path}:/served:ro"],
            }
        },
        "workloads": {"w": a_client(port)},
        "iterations": 1,
        "gates": OPEN_GATES,
    }
    declared = matrices.parse(yaml.safe_dump(document), str(tmp_path / "m.yaml"))
    data = tmp_path / "data"
    shown = overview.plan_lines(declared, data)
    assert f"there, of walker.yaml: {IMAGE}" in shown
    assert f"  /usr/bin/python3 -S /served/server.py {port} good" in shown
    run(declared, data)
    (record,) = records(data, "of-recipe")
    assert record.status == "ok", record.status_reason
    assert sys.executable in record.argv[-1]
    assert record.container is not None
    assert record.container.image == IMAGE
    assert (
        "answered /work" in (data / "of-recipe" / record.file("log").path).read_text()
    )


@pytest.fixture
def bridge(engine: Any) -> Iterator[str]:
    """A network of the engine's own, as a container has that asks for none."""
    network = engine.networks.create("sparkpub-test-bridge", driver="bridge")
    yield "sparkpub-test-bridge"
    network.remove()


def bridged(port: int, bridge: str, behaviour: str, **options: Any) -> dict[str, Any]:
    argv = ["/usr/bin/python3", "-S", "-c", SERVER, "{port}", behaviour]
    return {
        "type": "docker",
        "image": IMAGE,
        "binds": list(BINDS),
        "network": bridge,
        "server": {"argv": argv, "port": port} | options,
    }


@pytest.mark.docker
def test_server_and_client_in_containers_on_a_bridge(
    tmp_path: Path, port: int, bridge: str
) -> None:
    """The client finds the server on 127.0.0.1, whose port on this machine is somebody else's."""
    workloads = {"w": a_command(f"/usr/bin/python3 -S -c '{CLIENT}' {port} /work")}
    environment = bridged(port, bridge, "everywhere")
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        run(served(port, environment, workloads=workloads), tmp_path)
    first, second = records(tmp_path)
    assert [first.status, second.status] == ["ok", "ok"]
    assert first.value("rate") == second.value("rate")
    assert first.metrics["server_start_seconds"].value is not None
    assert "answered /work\n" in text_of(second, tmp_path)
