"""Containers of systemd-nspawn: the real program, and what it leaves behind."""

import os
from pathlib import Path

import pytest

from sparkpub.collect.environments.nspawn import Nspawn
from sparkpub.collect.machine import processes
from sparkpub.plan.environments import NspawnOptions, Place
from tests.collect.environments.launching import a_launch, ended
from tests.collect.environments.rootfs import BINDS, content

pytestmark = pytest.mark.nspawn


def options(root: Path, **others: object) -> NspawnOptions:
    return NspawnOptions.model_validate({"rootfs": str(root), "binds": BINDS} | others)


def test_a_command_sees_its_root_its_binds_its_devices_and_nothing_of_the_operator(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPERATORS_OWN", "secret")
    data, work = tmp_path / "data", tmp_path / "work"
    for folder in (data, work):
        folder.mkdir()
    (data / "weights").write_text("w")
    script = (
        "pwd; cat /models/weights; echo; env | sort; touch /models/x || echo read-only; "
        "echo made > {workdir}/out; ls /dev/loop-control; ls -d /dev/vda /dev/sda || true; cat /proc/1/comm; "
        "ulimit -n; exit 9"
    )
    launch, log = a_launch(work, "sh", "-c", script)
    before = content(root)
    chosen = NspawnOptions(
        rootfs=str(root),
        binds=(*options(root).binds, Place(str(data), "/models", read_only=True)),
        env={"CUDA_HOME": "/usr/local/cuda"},
        devices=("/dev/loop-control",),
        ulimits={"nofile": 333},
    )
    running = Nspawn(chosen).start(launch)
    assert ended(running).code == 9, log.text
    lines = log.text.splitlines()
    assert lines[:2] == ["/sparkpub", "w"]
    for line in ("CUDA_HOME=/usr/local/cuda", "read-only", "/dev/loop-control", "333"):
        assert line in lines
    # Its own processes.
    assert "(sd-stubinit)" in lines
    assert "/dev/vda" not in lines
    assert "OPERATORS_OWN" not in log.text
    assert (work / "out").read_text() == "made\n"
    assert content(root) == before
    assert running.argv[:2] == ("sh", "-c")


def test_a_stopped_run_leaves_no_process_and_no_mount_point(
    tmp_path: Path, root: Path
) -> None:
    before = content(root)
    name = f"r-{tmp_path.name}-{os.getpid()}"
    launch, log = a_launch(tmp_path, "sh", "-c", "echo up; exec sleep 600", run=name)
    running = Nspawn(options(root)).start(launch)
    # A server and its client run in one root at the same time.
    second, said = a_launch(tmp_path, "echo", "client", run="r2")
    client = Nspawn(options(root)).start(second)
    ended(client)
    # Where /run is no tmpfs, systemd-nspawn adds a line about its own folder there.
    assert said.text.splitlines()[0] == "client"
    while "up" not in log.text:
        assert not running.wait(0.05), log.text
    running.close()
    assert name not in processes.marked("SPARKPUB_RUN").values()
    assert content(root) == before
