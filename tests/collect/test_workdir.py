"""Who may write where the results of a run come from."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sparkpub.collect import workdir
from sparkpub.collect.workdir import OWN
from sparkpub.record.errors import CollectError
from tests.collect.collecting import a_matrix, records, run

NOBODY, OTHER, OPERATOR = 65534, 4321, 4322
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
PLANTING = """
import os, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for way in ("out.json", "./new/out.json"):
    try:
        os.makedirs(os.path.dirname(way) or ".", exist_ok=True)
        open(way, "w").write('{"rate": 99999}')
    except PermissionError:
        continue
    sys.exit("planted")
print("rate 5")
"""


def as_user(
    user: int, code: str, *arguments: object
) -> "subprocess.CompletedProcess[str]":
    """Python as another user, once it has loaded what it needs."""
    begin = "import os, sys\nfrom pathlib import Path\nfrom sparkpub.collect import workdir\n"
    begin += f"os.setgroups([]); os.setgid({user}); os.setuid({user})\n"
    argv = [sys.executable, "-c", begin + code, *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user can reach; pytest's own are its user's."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@AS_ROOT
def test_nobody_else_on_the_machine_writes_a_runs_results(tmp_path: Path) -> None:
    argv = ["{python}", "-c", PLANTING]
    workload = {"w": a_matrix().document()["workloads"]["w"] | {"argv": argv}}
    run(a_matrix(workloads=workload, iterations=1), tmp_path)
    (record,) = records(tmp_path)
    assert (record.status, record.value("rate")) == ("ok", 5)
    assert record.isolation is not None
    assert record.isolation.work_folder == OWN


@AS_ROOT
def test_root_gives_the_folder_to_the_commands_user(shared: Path) -> None:
    work = workdir.new(shared / ".run")
    (work / "part").mkdir()
    (work / "part" / "prompts").write_text("one")
    (work / "link").symlink_to("/etc/passwd")
    assert workdir.admit(work, 0) == workdir.admit(work, None) == OWN
    said = workdir.admit(work, NOBODY)
    assert said == f"0700, owned by user {NOBODY}, as whom the command runs"
    code = (
        "os.chdir(sys.argv[1]); open('part/prompts', 'a').write('!'); open('out', 'w')"
    )
    assert as_user(NOBODY, code, work).returncode == 0
    assert "PermissionError" in as_user(OTHER, code, work).stderr
    assert Path("/etc/passwd").stat().st_uid == 0
    workdir.remove(shared / ".run")
    assert not (shared / ".run").exists()


@AS_ROOT
def test_any_other_collector_names_the_commands_user_in_the_access_list(
    shared: Path,
) -> None:
    """He may give no folder away; what the other leaves, folders too, is his to read and to remove."""
    os.chown(shared, OPERATOR, OPERATOR)
    code = (
        "work = workdir.new(Path(sys.argv[1]))\n"
        "(work / 'part').mkdir()\n"
        "(work / 'part' / 'prompts').write_text('one')\n"
        f"print(workdir.admit(work, os.geteuid()), workdir.admit(work, {OTHER}), sep='\\n')"
    )
    made = as_user(OPERATOR, code, shared / ".run")
    if "access lists" in made.stderr:
        pytest.skip("the file system here has no access lists")
    assert made.stdout.splitlines() == [
        OWN,
        f"the collector's own, with user {OTHER}, as whom the command runs, in its access list",
    ], made.stderr
    work = shared / ".run" / "work"
    code = (
        "os.chdir(sys.argv[1])\n"
        "open('part/prompts', 'a').write('!')\n"
        "os.makedirs('deep/er')\n"
        "Path('deep/er/out').write_text('5')\n"
        "Path('out').write_text('5')"
    )
    assert as_user(OTHER, code, work).stderr == ""
    assert "PermissionError" in as_user(NOBODY, code, work).stderr
    reading = "place = Path(sys.argv[1])\nprint((place / 'work' / 'out').read_text())\nworkdir.remove(place)"
    assert as_user(OPERATOR, reading, work.parent).stdout == "5\n"
    assert not work.parent.exists()


def test_where_there_are_no_access_lists_one_line_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "geteuid", lambda: OPERATOR)
    monkeypatch.setattr(os, "setxattr", refused)
    with pytest.raises(CollectError) as caught:
        workdir.admit(tmp_path, OTHER)
    assert caught.value.lines() == [
        f"user {OTHER}, as whom the command runs, cannot be let into the run's folder: Operation not supported, "
        f"{tmp_path}; collect as root, keep the data on a file system with access lists, or give the environment "
        "user: with your own id"
    ]


PASSWD = "root:x:0:0::/root:/bin/sh\nworker:x:1001:100::/:/bin/sh\nodd:x:many\n"


@pytest.mark.parametrize(
    ("spec", "number"),
    [
        (None, 0),
        ("", 0),
        ("0:5", 0),
        ("1234", 1234),
        ("1234:100", 1234),
        ("worker", 1001),
        ("worker:staff", 1001),
        ("odd", None),
        ("who", None),
    ],
)
def test_a_user_is_named_or_numbered(spec: str | None, number: int | None) -> None:
    assert workdir.user_number(spec, PASSWD) == number
