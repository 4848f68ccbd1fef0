"""Another root, with real mounts that are always undone."""

import os
import signal
from pathlib import Path

import pytest

from sparkpub.collect.environments.chroot import Chroot
from sparkpub.plan.environments import ChrootOptions
from tests.collect.environments.launching import a_launch, ended
from tests.collect.environments.rootfs import BINDS, content, mounts

pytestmark = pytest.mark.chroot


def options(root: Path, **others: object) -> ChrootOptions:
    return ChrootOptions.model_validate({"rootfs": str(root), "binds": BINDS} | others)


def test_a_command_sees_its_root_its_binds_and_a_clean_environment(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPERATORS_OWN", "secret")
    data, work = tmp_path / "data", tmp_path / "work"
    for folder in (data, work):
        folder.mkdir()
    (data / "weights").write_text("w")
    script = (
        "pwd; cat /models/weights; echo; env | sort; touch /models/x || echo read-only; "
        "echo made > {workdir}/out; ls /proc/1 >/dev/null && echo proc"
    )
    launch, log = a_launch(work, "sh", "-c", script)
    before = content(root)
    chosen = options(
        root, binds=[*BINDS, f"{data}:/models:ro"], env={"CUDA_HOME": "/usr/local/cuda"}
    )
    running = Chroot(chosen).start(launch)
    assert ended(running).code == 0, log.text
    lines = log.text.splitlines()
    assert lines[:2] == ["/sparkpub", "w"]
    assert "CUDA_HOME=/usr/local/cuda" in lines
    assert "read-only" in lines
    assert "proc" in lines
    assert "OPERATORS_OWN" not in log.text
    assert (work / "out").read_text() == "made\n"
    assert content(root) == before
    assert not [mount for mount in mounts() if mount.startswith(str(root))]
    assert running.argv[:2] == ("sh", "-c")


def test_mounts_go_with_the_last_process_even_if_nobody_closes(
    tmp_path: Path, root: Path
) -> None:
    launch, log = a_launch(tmp_path, "sh", "-c", "echo up; exec sleep 600")
    running = Chroot(options(root)).start(launch)
    while "up" not in log.text:
        assert not running.wait(0.05), log.text
    assert not [mount for mount in mounts() if mount.startswith(str(root))]
    inside = [
        line.split()[4]
        for line in Path(f"/proc/{running.pid}/mountinfo").read_text().splitlines()
    ]
    assert any(
        mount.startswith("/sparkpub") or mount.endswith("/sparkpub") for mount in inside
    )
    os.kill(running.pid, signal.SIGKILL)
    ended(running)


def test_an_absolute_link_in_the_root_does_not_lead_out_of_it(
    tmp_path: Path, root: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "models").symlink_to(outside)
    data = tmp_path / "data"
    data.mkdir()
    launch, _ = a_launch(tmp_path, "sh", "-c", "ls -d /models/.")
    running = Chroot(options(root, binds=[*BINDS, f"{data}:/models"])).start(launch)
    assert ended(running).code == 0
    assert list(outside.iterdir()) == []


def test_obstacles_are_named_before_the_night(tmp_path: Path, root: Path) -> None:
    assert Chroot(options(root)).obstacles() == []
    unbound = Chroot(options(root, binds=["/no/such:/models"]))
    missing = unbound.obstacles(["/no/such/m", "/srv/m"])
    assert [item.what for item in missing] == [
        "bind source /no/such does not exist",
        "no model at /no/such/m",
        f"no model at /srv/m in {root}",
    ]
    assert (
        "no root file system"
        in Chroot(options(tmp_path / "absent")).obstacles()[0].what
    )
