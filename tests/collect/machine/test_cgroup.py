"""Control groups, read from folders that look like each hierarchy."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from sparkpub.collect.machine import cgroup, processes
from tests.collect.collecting import a_matrix, records
from tests.collect.environments.launching import until

Machine = Callable[..., Path]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Makes a machine whose control groups have these files, and this process in the groups of these lines."""

    def make(lines: str, *files: str) -> Path:
        root, own = tmp_path / "cg", tmp_path / f"proc/{os.getpid()}/cgroup"
        for place in (own, *(root / name for name in files)):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("1\n")
        own.write_text(lines)
        monkeypatch.setattr(cgroup, "ROOT", root)
        monkeypatch.setattr(cgroup, "PROC", tmp_path / "proc")
        return root

    return make


@pytest.mark.parametrize(
    ("files", "lines", "version", "folder"),
    [
        (["cgroup.controllers", "a/b/memory.current"], "0::/a/b\n", "v2", "a/b"),
        (
            ["memory/a/memory.usage_in_bytes"],
            "4:memory:/a\n3:cpu,cpuacct:/x\n",
            "v1",
            "memory/a",
        ),
        (
            ["memory/a/memory.usage_in_bytes", "unified/cgroup.procs"],
            "4:cpu,memory:/a\n0::/elsewhere\n",
            "hybrid",
            "memory/a",
        ),
        (["cgroup.controllers"], "0::/\n", "v2", None),
        (["unrelated"], "0::/\n", "none", None),
    ],
)
def test_the_group_that_is_charged_is_found_in_every_hierarchy(
    machine: Machine, files: list[str], lines: str, version: str, folder: str | None
) -> None:
    root = machine(lines, *files)
    assert cgroup.version() == version
    assert cgroup.memory_folder(os.getpid()) == (
        None if folder is None else root / folder
    )


def test_empty_groups_of_another_collector_are_left_alone(
    tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It made them a moment ago, and its run is about to enter. Two state folders are two collectors."""
    root = machine("0::/own\n", "cgroup.controllers")
    names = []
    for state in ("one", "two"):
        monkeypatch.setenv("SPARKPUB_STATE", str(tmp_path / state))
        names.append(f"{processes.notes()}-run")
    for name, pids in ((names[0], ""), (names[1], ""), (f"{names[1]}-on", "4711\n")):
        folder = root / "own" / f"sparkpub-{name}"
        folder.mkdir(parents=True)
        (folder / "cgroup.procs").write_text(pids)
    assert cgroup.leftovers(processes.notes()) == [
        root / "own" / f"sparkpub-{names[1]}"
    ]


OWNED = ("cgroup.controllers", "own/cgroup.type", "own/cgroup.procs")
"""A machine of version 2, and the collector's group on it."""
SHARED = {"own/cgroup.controllers": "cpu memory", "own/cgroup.procs": "{me}\n1\n"}
"""In which another process is, too."""


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "no memory control group"),
        ({"own/cgroup.controllers": "cpu"}, "memory is not delegated"),
        (SHARED | {"own/memory.max": "1024\n"}, "processes of others"),
        (SHARED | {"own/cpuset.cpus": "0-3\n"}, "processes of others"),
    ],
)
def test_a_limit_of_the_collectors_is_not_escaped_and_the_reason_is_said(
    machine: Machine, files: dict[str, str], said: str
) -> None:
    root = machine("0::/own\n", *OWNED if files else ["unrelated"])
    (root / "own").mkdir(exist_ok=True)
    (root / "own" / "cgroup.subtree_control").write_text("")
    for name, content in files.items():
        (root / name).write_text(content.format(me=os.getpid()))
    before = sorted(root.rglob("*"))
    group, reason = cgroup.create("o", "r")
    assert group is None
    assert reason.startswith("none: ")
    assert said in reason
    assert sorted(root.rglob("*")) == before


@contextmanager
def a_group() -> Iterator[Path]:
    """A group of its own, whose parent charges memory to it."""
    own = cgroup._folder(os.getpid())
    if own is None:
        pytest.skip("this machine has no memory control group")
    above = own.parent if cgroup.version() == "v2" else own
    group = above / f"test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"this machine allows no control group: {error.strerror}")
    try:
        if cgroup.memory_folder(os.getpid()) is None or not cgroup._charges(group):
            pytest.skip("memory is not charged to the groups of this machine")
        yield group
    finally:
        until(lambda: cgroup.remove(group))


@pytest.mark.parametrize("beside", ["nobody", "others", "others under a limit"])
def test_a_run_is_charged_below_the_collector_whose_group_is_left_as_it_was(
    tmp_path: Path, beside: str
) -> None:
    """A limit of the collector's was none of its runs: they had a group beside its own."""
    file = tmp_path / "matrix.json"
    matrix = a_matrix("cat /proc/self/cgroup; echo rate 5", iterations=1)
    file.write_text(json.dumps(matrix.document()))
    collector = [sys.executable, "-m", "sparkpub", "collect", str(file)]
    collector += ["--data", str(tmp_path), "--no-commit"]
    two = cgroup.version() == "v2"
    with a_group() as group, ExitStack() as stack:
        entering = ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"']
        entering.append(str(group / "cgroup.procs"))
        if beside != "nobody":
            other = subprocess.Popen([*entering, "sleep", "600"])
            stack.callback(other.wait)
            stack.callback(other.kill)
            until(lambda: cgroup.members(group) == {other.pid})
        if beside == "others under a limit":
            limit = "memory.max" if two else "memory.limit_in_bytes"
            (group / limit).write_text(str(1 << 40))
        subprocess.run([*entering, *collector], check=True, capture_output=True)
        assert [path for path in group.iterdir() if path.is_dir()] == []
    below = f"/{group.name}/{cgroup.PREFIX}{processes.notes()}-small-"
    for record in records(tmp_path):
        assert record.isolation is not None
        where = record.isolation.control_group
        log = (tmp_path / "small" / f"{record.stem}.log").read_text()
        if not two or beside == "nobody":
            assert where == cgroup.BELOW
            assert below in log
        elif beside == "others":
            assert where == cgroup.BESIDE
            assert f"/{group.name}" not in log
        else:
            assert where.startswith("none: the collector shares its control group")
            assert f"/{group.name}\n" in log


def test_groups_that_a_container_makes_below_that_of_its_run_belong_to_it(
    tmp_path: Path,
) -> None:
    """systemd-nspawn makes `supervisor` and `payload` there where version 2 charges."""
    run = tmp_path / "slice" / "sparkpub-n1-r1"
    for name in ("supervisor", "payload"):
        (run / name).mkdir(parents=True)
        assert cgroup.of_run(run / name) == run
    assert cgroup.of_run(run) == run
    assert cgroup.of_run(run / "sparkpub-n2-r2") == run / "sparkpub-n2-r2"
    assert cgroup.remove(run)
    assert run.parent.exists()
