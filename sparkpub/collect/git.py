"""One commit per run, made when it is over, made up for when it fails, pushed where asked.

Commits and pushes leave the operator's index, work tree and branch as they were.
"""

import json
import os
import subprocess
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sparkpub.collect import invoker
from sparkpub.collect.progress import Progress
from sparkpub.record import repository as repositories
from sparkpub.record import store
from sparkpub.record.repository import GitError
from sparkpub.record.store import Stored
from sparkpub.record.text import counted

_ATTEMPTS = 3
_HOOKED = ("commit", "push")
"""Where the owner's hooks are called."""


@dataclass(frozen=True)
class Repository:
    """The work tree that a folder lies in."""

    root: Path

    @classmethod
    def of(cls, folder: Path) -> "Repository":
        """The repository around `folder`. Raises GitError where there is none, or where it ignores the folder."""
        repository = cls(repositories.root(folder))
        repository._run("rev-parse", "--git-dir")
        probe = folder.resolve() / "probe.json"
        if repository._holds("check-ignore", "-q", "--no-index", str(probe)):
            raise GitError(f"git ignores {folder}")
        return repository

    def commit(self, paths: Sequence[Path], message: str) -> None:
        """Commit exactly these files, as `git commit --only` does: what else is staged or edited stays as it is.

        Raises GitError; the index is then as before. So it is where HEAD is detached, as while a rebase is halted:
        whoever switches back to a branch takes what was committed meanwhile away.
        """
        self.branch()
        names = [_literal(path) for path in paths]
        new = [
            name for name in names if not self._run("ls-files", "--cached", "--", name)
        ]
        if new:
            self._run("add", "--intent-to-add", "--", *new)
        try:
            self._run("commit", "--quiet", "--only", "--message", message, "--", *names)
        except GitError:
            if not self._run("status", "--porcelain", "--", *names):
                return  # somebody else has committed them
            if new:
                self._holds("rm", "--quiet", "--cached", "--", *new)
            raise

    def uncommitted(self, folder: Path) -> set[Path]:
        """Files below `folder` that no commit has, besides ignored ones: unknown to git, or only noted in the index, as
        a collector leaves them that is killed just before it commits. Files that were edited since are not among them.
        """
        asked = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
        said = self._run(*asked, "--", _literal(folder))
        return {
            self.root / entry[3:]
            for entry in said.split("\0")
            if entry[:2] in ("??", " A", "A ", "AM")
        }

    def committed(self, path: Path) -> str:
        """The text of a file in the last commit; empty where it has none."""
        name = path.resolve().relative_to(self.root)
        return self._ended("show", f"HEAD:{name}").stdout

    def branch(self) -> str:
        """The branch that commits go to. Raises GitError where HEAD is detached."""
        branch = self._ended("symbolic-ref", "--quiet", "--short", "HEAD").stdout
        if not branch:
            raise GitError(
                "HEAD is detached, so that commits belong to no branch; git switch to one, or end the rebase"
            )
        return branch.strip()

    def push(self) -> None:
        """Push the branch to its upstream. A remote that moved is merged in without touching the work tree.

        The merge is made of trees alone and only pushed: the local branch stays where it is, an ancestor of the
        remote's, so that the operator's next pull is a fast-forward. Raises GitError.
        """
        branch = self.branch()
        if not self.upstream():
            raise GitError(
                f"branch {branch} has no upstream; set it once with git push --set-upstream origin {branch}"
            )
        remote = self._run("config", f"branch.{branch}.remote")
        target = self._run("config", f"branch.{branch}.merge")
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                tip = self._tip(remote, target)
                self._run("push", "--quiet", remote, f"{tip}:{target}")
            except GitError:
                if attempt == _ATTEMPTS:  # the remote may move faster
                    raise
            else:
                return

    def upstream(self) -> str:
        """Where the branch is pushed to, as `origin/main`; empty where it has no upstream."""
        name = ("--abbrev-ref", "--symbolic-full-name", "@{upstream}")
        asked = self._ended("rev-parse", *name)
        return asked.stdout.strip() if asked.returncode == 0 else ""

    def _tip(self, remote: str, target: str) -> str:
        """What to push: HEAD where the remote is behind it, else a merge of both."""
        quiet = ("--quiet", "--no-tags", "--no-write-fetch-head")
        self._run("fetch", *quiet, remote, f"+{target}:refs/sparkpub/upstream")
        head = self._run("rev-parse", "HEAD")
        theirs = self._run("rev-parse", "refs/sparkpub/upstream")
        if self._holds("merge-base", "--is-ancestor", theirs, head):
            return head
        if self._holds("merge-base", "--is-ancestor", head, theirs):
            return theirs
        tree = self._run("merge-tree", "--write-tree", theirs, head).split()[0]
        parents = ("-p", theirs, "-p", head)
        return self._run("commit-tree", tree, *parents, "-m", "Merge measured runs")

    def _run(self, *arguments: str) -> str:
        """What git prints, without the line end. Raises GitError where it fails."""
        ended = self._ended(*arguments)
        return repositories.printed(ended, arguments[0]).rstrip("\n")

    def _holds(self, *arguments: str) -> bool:
        return self._ended(*arguments).returncode == 0

    def _ended(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return repositories.ended(
            self.root,
            *arguments,
            hooks=arguments[0] in _HOOKED,
            process=invoker.process_arguments(),
        )


def _literal(path: Path) -> str:
    """A path as git takes it for a name and not for a pattern."""
    return f":(literal){path.resolve()}"


class Committer:
    """One commit per run, of exactly its own files; what fails is tried again later and never stops measuring."""

    def __init__(
        self,
        folder: Path,
        commit: bool,
        push: bool,
        progress: Progress,
    ) -> None:
        self._folder, self._push, self._progress = folder, push, progress
        self._pushed = False
        """Whether the remote has everything. An earlier collection may have left commits that it could not push."""
        self._repository: Repository | None = None
        if not commit:
            return
        try:
            self._repository = Repository.of(folder)
        except GitError as error:
            progress.line(f"not committing: {error}; records are written all the same")

    def catch_up(self) -> str | None:
        """Commit what no commit has yet: campaign.json, and runs of this collector or an earlier one, up to the first
        that git refuses, since each may take as long as a hook that never ends. Then push, where asked.

        Returns what is left undone, in words; None where everything is committed and, where asked for, pushed.
        """
        repository = self._repository
        if repository is None:
            return None
        try:
            waiting = list(self._waiting(repository))
        except GitError as error:
            self._progress.line(f"git: {error}")
            return "git does not say which runs are committed"
        for done, (files, message) in enumerate(waiting):
            try:
                repository.commit(files, message)
            except GitError as error:
                left = len(waiting) - done
                self._progress.line(f"not committed yet, {left} waiting: {error}")
                commits = counted(left, "commit")
                return f"{commits} could not be made (the next collect tries again)"
            self._pushed = False
        if self._push and not self._pushed:
            try:
                repository.push()
            except GitError as error:
                self._progress.line(f"not pushed yet: {error}")
                return "committed here and not pushed (collect --push tries again)"
            self._pushed = True
        return None

    def _waiting(self, repository: Repository) -> Iterator[tuple[Sequence[Path], str]]:
        """Files that are to be committed together, and the message. Raises GitError."""
        loose = repository.uncommitted(self._folder)
        if self._declared_anew(repository, loose):
            declared = [self._folder / store.CAMPAIGN_FILE]
            yield declared, f"Declare campaign {self._folder.name}"
        # A run's files begin with its name, so that records of committed runs need not be read.
        for path in store.record_paths(self._folder):
            if any(file.name.startswith(f"{path.stem}.") for file in loose):
                stored = store.read_record(path)
                yield stored.files, _message(stored)

    def _declared_anew(self, repository: Repository, loose: Collection[Path]) -> bool:
        """Whether campaign.json is in no commit, or declares another matrix than the last one there. What people edit
        in it besides is theirs to commit."""
        path = self._folder / store.CAMPAIGN_FILE
        if path.resolve() in loose:
            return True
        try:
            known = json.loads(repository.committed(path))
        except ValueError:
            return False
        return bool(known["matrix"] != store.read_json(path)["matrix"])


def _message(stored: Stored) -> str:
    """The message of a run's commit."""
    record = stored.record
    again = f", repeat of {record.repeat_of}" if record.repeat_of else ""
    cell = "/".join(record.cell)
    return f"Measure {cell}, iteration {record.iteration}{again}: {record.status}"


def own_commit() -> tuple[str | None, bool | None]:
    """sparkpub's own commit and whether its tree is clean: from git, else from SPARKPUB_COMMIT, else unknown."""
    package = Path(__file__).resolve().parents[1]
    if repositories.told(package, "ls-files", "--", str(Path(__file__).resolve())):
        commit = repositories.told(package, "rev-parse", "HEAD")
        changed = repositories.told(package, "status", "--porcelain", "--", ".")
        if commit is not None and changed is not None:
            return commit, not changed
    return os.environ.get("SPARKPUB_COMMIT") or None, None
