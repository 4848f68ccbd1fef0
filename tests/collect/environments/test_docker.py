"""Containers of a real engine: `DOCKER_HOST` says which."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect.environments.docker import OWNER_LABEL, RUN_LABEL, Docker
from sparkpub.collect.machine import processes
from sparkpub.collect.workdir import SHARED
from sparkpub.plan.environments import DockerOptions
from sparkpub.record.errors import CollectError
from tests.collect.environments.launching import a_launch, ended
from tests.collect.environments.rootfs import BINDS, IMAGE, a_tar, an_engine

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with an_engine() as engine:
        yield engine


@pytest.fixture
def image(client: Any) -> str:
    return IMAGE


def options(image: str, **others: object) -> DockerOptions:
    return DockerOptions.model_validate(
        {"image": image, "binds": BINDS, "network": "none"} | others
    )


def said(tmp_path: Path, chosen: DockerOptions, *argv: str) -> tuple[int, str]:
    launch, log = a_launch(tmp_path, *argv)
    running = Docker(chosen).start(launch)
    return ended(running).code, log.text


def test_a_command_runs_in_a_container_and_leaves_none(
    tmp_path: Path, client: Any, image: str
) -> None:
    script = "pwd; echo $A; echo err >&2; echo made > {workdir}/out; exit 3"
    launch, log = a_launch(tmp_path, "sh", "-c", script, run="r-plain")
    running = Docker(options(image, env={"A": "b"})).start(launch)
    assert running.wait(60)
    assert running.code == 3
    assert sorted(log.text.splitlines()) == ["/sparkpub", "b", "err"]
    assert (tmp_path / "out").read_text() == "made\n"
    facts = running.container
    assert facts is not None
    assert facts.image == image
    assert facts.image_id == client.images.get(image).id
    assert facts.engine_version == client.version()["Version"]
    assert facts.oom_killed is False
    assert facts.runtime_version
    running.close()
    running.close()
    assert (
        client.containers.list(all=True, filters={"label": f"{RUN_LABEL}=r-plain"})
        == []
    )


WORKER = "sparkpub-test-worker:latest"
WORKING = "id -u; cat given >made; rm given"


@pytest.fixture(scope="module")
def worker() -> str:
    """An image whose commands run as a user that it names."""
    tar = a_tar("root:x:0:0::/:/bin/sh\nworker:x:4321:4321::/:/bin/sh\n")
    with an_engine(WORKER, tar, changes=["USER worker"]):
        return WORKER


@pytest.mark.parametrize("user", [None, "4321:100"])
def test_a_container_of_another_user_works_in_the_folder_of_its_run(
    tmp_path: Path, worker: str, user: str | None
) -> None:
    work = tmp_path / "work"
    work.mkdir(mode=0o700)
    (work / "given").write_text("5\n")
    launch, log = a_launch(work, "sh", "-c", WORKING)
    chosen = {} if user is None else {"user": user}
    running = Docker(options(worker, **chosen)).start(launch)
    assert (ended(running).code, log.text) == (0, "4321\n")
    assert (work / "made").read_text() == "5\n"
    assert running.isolation.work_folder == SHARED
    assert running.isolation.control_group == "the engine's, for this container"


@pytest.mark.parametrize("killed", [False, True])
def test_running_out_of_memory_is_told_from_an_end_by_the_collector(
    tmp_path: Path, image: str, killed: bool
) -> None:
    script = "trap '' TERM; while :; do sleep 1; done" if killed else "tail /dev/zero"
    launch, _ = a_launch(tmp_path, "sh", "-c", script)
    running = Docker(options(image, memory="24m", memory_swap="24m")).start(launch)
    running.stop(grace=0) if killed else running.wait(60)
    running.close()
    assert running.code == 137
    # An engine on control groups of version 1 sometimes misses the kernel's notice.
    assert ("out of memory" in (running.error or "")) is not killed


def test_an_image_is_never_pulled(image: str) -> None:
    (obstacle,) = Docker(options("sparkpub-no-such-image:1")).obstacles()
    assert "not on this machine" in obstacle.what
    assert "docker pull" in obstacle.remedy
    assert Docker(options(image)).obstacles() == []


@pytest.mark.parametrize(
    ("others", "argv"),
    [
        ({}, ["/no/such/program"]),
        ({"user": "nobody-of-that-name"}, ["true"]),
    ],
)
def test_a_container_that_cannot_start_is_one_clear_error_and_leaves_nothing(
    tmp_path: Path, client: Any, image: str, others: dict[str, Any], argv: list[str]
) -> None:
    launch, _ = a_launch(tmp_path, *argv, run="r-bad")
    with pytest.raises(CollectError, match="cannot be started"):
        Docker(options(image, **others)).start(launch)
    assert (
        client.containers.list(all=True, filters={"label": f"{RUN_LABEL}=r-bad"}) == []
    )


def test_only_orphans_of_dead_collectors_are_removed(client: Any, image: str) -> None:
    def start(labels: dict[str, str]) -> Any:
        arguments = {
            "network_mode": "none",
            "volumes": {"/usr": {"bind": "/usr", "mode": "ro"}},
        }
        return client.containers.run(
            image, ["sleep", "600"], detach=True, labels=labels, **arguments
        )

    dead = start({OWNER_LABEL: processes.spelled(999999999, "1"), RUN_LABEL: "r-dead"})
    living, foreign = start({OWNER_LABEL: processes.me()}), start({})
    try:
        assert Docker.reap() == [f"removed container {dead.short_id} of run r-dead"]
        left = {container.id for container in client.containers.list(all=True)}
        assert {living.id, foreign.id} <= left
        assert dead.id not in left
    finally:
        for container in (living, foreign):
            container.remove(force=True)


def test_a_container_removed_from_outside_ends_the_run(
    tmp_path: Path, client: Any, image: str
) -> None:
    launch, _ = a_launch(tmp_path, "sleep", "600", run="r-gone")
    running = Docker(options(image)).start(launch)
    (container,) = client.containers.list(filters={"label": f"{RUN_LABEL}=r-gone"})
    container.remove(force=True)
    end = time.monotonic() + 30
    while not running.wait(0.2) and time.monotonic() < end:
        pass
    running.close()
    assert running.code != 0
