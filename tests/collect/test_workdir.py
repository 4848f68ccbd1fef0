"""Who may write where the results of a run come from."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sparkpub.collect import workdir
from sparkpub.collect.workdir import SHARED
from sparkpub.record.errors import CollectError

OTHER, OPERATOR = 4321, 4322
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")


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


def test_files_that_stay_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container's root may have left them; an old report must never pass for a new one."""
    report = workdir.new(tmp_path / ".run") / "report.json"
    report.touch()
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)
    with pytest.raises(CollectError, match="files that cannot be removed"):
        workdir.new(tmp_path / ".run")
    assert report.exists()


@AS_ROOT
def test_another_user_works_in_the_folder_through_a_mount_alone(shared: Path) -> None:
    """He may write there, through no path of the machine's; what he leaves in it is the collector's to read and to
    remove."""
    os.chown(shared, OPERATOR, OPERATOR)
    code = (
        "work = workdir.new(Path(sys.argv[1]))\n"
        "(work / 'prompts').write_text('one')\n"
        "(work / 'link').symlink_to('/etc/passwd')\n"
        "print(workdir.share(work))"
    )
    made = as_user(OPERATOR, code, shared / ".run")
    assert made.stdout.splitlines() == [SHARED], made.stderr
    assert Path("/etc/passwd").stat().st_mode & 0o777 == 0o644
    work = shared / ".run" / "work"
    code = "os.chdir(sys.argv[1]); open('prompts', 'a').write('!'); open('out', 'w').write('5')"
    assert "PermissionError" in as_user(OTHER, code, work).stderr
    mounted = shared / "mounted"
    mounted.mkdir()
    begin = f"import os, sys; os.setgid({OTHER}); os.setuid({OTHER})\n"
    enter = [sys.executable, "-c", begin + code, str(mounted)]
    script = 'mount --bind "$0" "$1" && shift && exec "$@"'
    within = ["unshare", "--mount", "sh", "-c", script, str(work), str(mounted), *enter]
    done = subprocess.run(within, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("nothing can be mounted here")
    assert done.stderr == ""
    reading = "place = Path(sys.argv[1])\nprint((place / 'work' / 'out').read_text())\nworkdir.remove(place)"
    assert as_user(OPERATOR, reading, work.parent).stdout == "5\n"
    assert not work.parent.exists()
