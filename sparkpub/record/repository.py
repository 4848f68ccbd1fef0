"""Git, called here and nowhere else, in the repository that was found here and is named to it.

To git, every folder that holds `HEAD`, `objects/` and `refs/` is a repository, and it runs the programs that such a
folder's configuration names. A data folder holds what strangers contribute, so git is never let to look for one. The
entry `.git` is found here, which no commit can carry: a folder, or the file of a further work tree or a submodule.
"""

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

TIMEOUT = 120.0
"""Seconds that git may take, hooks and network included."""
GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL."""
_SAFE = ("-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit")
"""No program watches files, and a folder that looks like a repository is none: the second is known from git 2.38 on."""
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
_FOREIGN = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
)
"""Variables that name another repository: a hook that calls us has them set."""


class GitError(Exception):
    """Git refused; the message is its reason in one line."""


def root(folder: Path) -> Path:
    """The folder that holds `.git`: this one, or the nearest above it.

    Raises GitError where there is none, or where it belongs to another user, whose configuration would be obeyed.
    """
    whole = folder.resolve()
    for place in (whole, *whole.parents):
        git = place / ".git"
        if git.is_file() or os.path.lexists(git / "HEAD"):
            if git.stat().st_uid not in _trusted() and not _declared_safe(place):
                remedy = f"git config --global --add safe.directory {place}"
                what = f"{place} belongs to another user"
                raise GitError(f"{what}; if you trust it: {remedy}")
            return place
    raise GitError(f"{folder} lies in no git repository; make one with git init")


def _trusted() -> set[int]:
    """The users whose repositories git works in unasked: root, this one, and the one behind sudo."""
    users = {0, os.geteuid()}
    behind = os.environ.get("SUDO_UID", "")
    if os.geteuid() == 0 and behind.isdigit():
        users.add(int(behind))
    return users


def _declared_safe(place: Path) -> bool:
    """Whether the user's own configuration lists the folder, as git asks for it."""
    argv = ["--git-dir=/dev/null", "config", "--get-all", "safe.directory"]
    listed = _process(argv, Path("/")).stdout.splitlines()
    return "*" in listed or str(place) in listed


def ended(
    place: Path,
    *arguments: str,
    timeout: float | None = None,
    hooks: bool = False,
    process: Mapping[str, Any] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run git in a folder of a repository, never waiting for a person, and deaf to the terminal's Ctrl-C.

    `process` are arguments of `subprocess.Popen`, such as `user`. Raises GitError where there is no repository or no
    git, or where it takes more than `timeout` seconds, else `TIMEOUT`: it is then ended with all processes of its
    group, its hooks among them.
    """
    found = root(place)
    argv = [f"--git-dir={found / '.git'}", f"--work-tree={found}", *_SAFE]
    if not hooks:
        argv += _NO_HOOKS
    return _process([*argv, *arguments], place, process, timeout)


def begin(place: Path, process: Mapping[str, Any] | None = None) -> None:
    """Make a folder a repository with the branch `main`. Raises GitError."""
    argv = [*_SAFE, *_NO_HOOKS, "init", "--quiet", "--initial-branch", "main"]
    printed(_process(argv, place, process), "init")


def told(folder: Path, *arguments: str) -> str | None:
    """What git prints, without blank ends; None where it fails, takes too long or is not there."""
    try:
        return printed(ended(folder, *arguments), arguments[0]).strip()
    except GitError:
        return None


def printed(done: "subprocess.CompletedProcess[str]", command: str) -> str:
    """What git printed. Raises GitError where it failed."""
    if done.returncode != 0:
        raise GitError(f"git {command}: {_reason(done)}")
    return done.stdout


def _reason(done: "subprocess.CompletedProcess[str]") -> str:
    """Why git ended: its own error, which names a stale lock and hints at it in later lines, else the last line, which
    is that of a hook."""
    lines = [
        line.strip()
        for line in (done.stderr or done.stdout).splitlines()
        if line.strip()
    ]
    if any("user.email" in line for line in lines):
        return "git does not know who you are; set user.name and user.email with git config --global"
    errors = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    if errors:
        error = errors[0].partition(": ")[2]
        if ".lock': File exists" in error:
            error = f"{error.rstrip('.')}; remove it if no git is at work there"
        return error
    if done.returncode < 0:
        return f"killed by signal {-done.returncode}"
    return lines[-1] if lines else f"exit status {done.returncode}"


def _process(
    arguments: list[str],
    place: Path,
    process: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Git as a process, with the arguments given and no others."""
    options, limit = dict(process or {}), timeout or TIMEOUT
    variables = dict(options.pop("env", os.environ))
    for name in _FOREIGN:
        variables.pop(name, None)
    variables |= {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "true",
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
    }
    variables.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
    # Files and not pipes: what a hook leaves running in the background would keep a pipe open.
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
        try:
            git = subprocess.Popen(
                ["git", *arguments],
                cwd=place,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=complained,
                start_new_session=True,
                **options,
            )
        except OSError as error:
            reason = f"git cannot be started: {error.strerror}"
            if error.filename == "git":
                reason = "git is not installed"
            raise GitError(reason) from None
        try:
            code = git.wait(limit)
        except subprocess.TimeoutExpired:
            what = f"git was ended with its hooks: it took more than {limit:g} s"
            raise GitError(what) from None
        finally:
            if git.returncode is None or git.returncode < 0:
                _end(git)  # where somebody has killed git, its hooks are still there
        texts = _text(said), _text(complained)
        return subprocess.CompletedProcess(git.args, code, *texts)


def _text(file: IO[bytes]) -> str:
    """What a process wrote, with the line ends of this system."""
    file.seek(0)
    lines = file.read().decode(errors="replace")
    return lines.replace("\r\n", "\n")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End git and every process of its group: SIGTERM, so that it takes its locks away, and SIGKILL for what is left
    when git has ended, or after `GRACE` seconds."""
    # A process that was stopped hears nothing before SIGCONT.
    for numbers in ((signal.SIGTERM, signal.SIGCONT), (signal.SIGKILL,)):
        for number in numbers:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):  # it hangs in the kernel
            process.wait(GRACE)
