"""Engines that are remote, not there, or stopped: said in one line, and no run is lost."""

import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkpub.collect.environments import docker
from sparkpub.collect.environments.docker import Docker
from sparkpub.plan.environments import DockerOptions
from sparkpub.record.errors import CollectError
from tests.collect.collecting import a_command, a_matrix, records, run
from tests.collect.environments.launching import until
from tests.collect.environments.rootfs import BINDS, IMAGE, an_engine


def options(**others: object) -> DockerOptions:
    return DockerOptions.model_validate(
        {"type": "docker", "image": "an-image:1"} | others
    )


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http+unix:///run/docker.sock", []),
        (
            "http://10.0.0.7:2375",
            ["the engine at http://10.0.0.7:2375 may be on another machine"],
        ),
    ],
)
def test_an_engine_that_may_be_elsewhere_is_an_obstacle(
    monkeypatch: pytest.MonkeyPatch, address: str, said: list[str]
) -> None:
    """The sensors are this machine's: figures of another's would be nonsense."""
    client = SimpleNamespace(
        api=SimpleNamespace(base_url=address), images=SimpleNamespace(get=str)
    )
    monkeypatch.setattr(docker, "_engine", lambda: nullcontext(client))
    assert [item.what for item in Docker(options()).obstacles()] == said


@pytest.fixture
def a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "engine.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    return path


def refusal() -> str:
    (obstacle,) = Docker(options()).obstacles()
    return obstacle.what


def test_an_engine_that_is_not_there_is_said_in_words(a_socket: Path) -> None:
    assert refusal() == "no Docker engine answers: No such file or directory"
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(a_socket))
    assert refusal() == "no Docker engine answers: Connection refused"


# -- with an engine of the test's own, that it may stop ---------------------------------------------------


@pytest.fixture
def engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SimpleNamespace]:
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        pytest.skip("needs root and dockerd")
    place = Path("/tmp") / f"sparkpub-engine-{os.getpid()}"
    script = Path(__file__).parents[3] / "scripts" / "docker-engine"

    def control(what: str) -> None:
        subprocess.run([script, what, place], check=True, capture_output=True)

    control("start")
    try:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{place}/docker.sock")
        with an_engine():
            pass
        pid = int((place / "pid").read_text())
        yield SimpleNamespace(pid=pid, stop=lambda: control("stop"))
    finally:
        control("stop")


def in_container(script: str, **changes: Any) -> Any:
    environment = {
        "type": "docker",
        "image": IMAGE,
        "binds": list(BINDS),
        "network": "none",
    }
    changed = {
        "environments": {"container": environment},
        "workloads": {"w": a_command(script)},
        "iterations": 1,
    }
    return a_matrix(**(changed | changes))


# A connection that is refused leaves its socket to the garbage collector: docker-py's `UnixHTTPConnection.connect`.
@pytest.mark.filterwarnings(
    "ignore:.*unclosed <socket:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.slow
@pytest.mark.parametrize("how", ["in order", "killed"])
def test_an_engine_that_is_stopped_during_a_run_loses_no_record(
    tmp_path: Path, engine: Any, how: str
) -> None:
    log = tmp_path / "small" / ".run" / "log"

    def stop() -> None:
        until(lambda: log.exists() and b"rate" in log.read_bytes())
        if how == "in order":
            engine.stop()
        else:
            os.kill(engine.pid, signal.SIGKILL)

    threading.Thread(target=stop, daemon=True).start()
    matrix = in_container("echo rate 5; exec sleep 600", iterations=2)
    with pytest.raises(
        CollectError, match="no Docker engine answers"
    ):  # for the second run
        run(matrix, tmp_path)
    (record,) = records(tmp_path)
    assert record.status == "failed"
    assert record.file("log") is not None
    assert "engine" in (record.status_reason or "") or record.exit_code != 0
