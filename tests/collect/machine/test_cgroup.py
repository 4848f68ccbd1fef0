"""Control groups, read from folders that look like each hierarchy."""

from pathlib import Path

import pytest

from sparkpub.collect.machine import cgroup, processes


def tree(root: Path, *files: str) -> Path:
    for name in files:
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("1\n")
    return root


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
    tmp_path: Path, files: list[str], lines: str, version: str, folder: str | None
) -> None:
    root, proc = tree(tmp_path / "cg", *files), tmp_path / "proc"
    tree(proc, "7/cgroup")
    (proc / "7" / "cgroup").write_text(lines)
    assert cgroup.version(root) == version
    assert cgroup.memory_folder(7, root, proc) == (
        None if folder is None else root / folder
    )


def test_empty_groups_of_another_collector_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It made them a moment ago, and its run is about to enter. Two state folders are two collectors."""
    root = tree(tmp_path, "cgroup.controllers")
    names = []
    for state in ("one", "two"):
        monkeypatch.setenv("SPARKPUB_STATE", str(tmp_path / state))
        names.append(f"{processes.notes()}-run")
    for name, pids in ((names[0], ""), (names[1], ""), (f"{names[1]}-on", "4711\n")):
        folder = root / f"sparkpub-{name}"
        folder.mkdir()
        (folder / "cgroup.procs").write_text(pids)
    assert cgroup.leftovers(f"{processes.notes()}-", root) == [
        root / f"sparkpub-{names[1]}"
    ]
