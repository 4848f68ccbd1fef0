"""What environments with a root of their own have in common."""

from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect import state
from sparkpub.collect.environments import environment_of
from sparkpub.collect.environments.rootfs import below
from sparkpub.collect.machine import processes
from sparkpub.plan.environments import ChrootOptions, NspawnOptions
from sparkpub.record.errors import CollectError
from tests.collect.environments.launching import a_launch, ended
from tests.collect.environments.rootfs import BINDS, content

KINDS = pytest.mark.parametrize(
    "options",
    [
        pytest.param(ChrootOptions, marks=pytest.mark.chroot),
        pytest.param(NspawnOptions, marks=pytest.mark.nspawn),
    ],
)


@KINDS
def test_what_a_killed_collector_left_is_cleaned_up_by_the_next(
    tmp_path: Path, root: Path, options: Any
) -> None:
    chosen = options(rootfs=str(root), binds=BINDS)
    environment = environment_of(chosen)
    before = content(root)
    dead = processes.spelled(999999999, "1")
    script = "echo up; exec sleep 600"
    launch, log = a_launch(tmp_path, "sh", "-c", script, run="r-dead", who=dead)
    running = environment.start(launch)
    while "up" not in log.text:
        assert not running.wait(0.05), log.text
    assert content(root) != before
    said = environment.reap()
    assert any("r-dead" in line for line in said)
    assert any("mount point" in line for line in said)
    assert content(root) == before
    assert state.read("mountpoints.json") is None
    assert "r-dead" not in processes.marked("SPARKPUB_RUN").values()
    ended(running)


def test_links_in_a_circle_end_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(CollectError, match="too many links"):
        below(tmp_path, "/a/models")
