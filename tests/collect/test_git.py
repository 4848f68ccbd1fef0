"""One commit per run of exactly its own files; the operator's index, work tree and branch stay as they were."""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkpub.collect import invoker
from sparkpub.collect.beginning import first_commit
from sparkpub.collect.git import Committer, Repository
from sparkpub.collect.machine.processes import start_ticks
from sparkpub.collect.progress import Progress
from sparkpub.record import repository as repositories
from sparkpub.record.repository import GitError
from sparkpub.record.store import Stored, to_json, write_atomic
from tests.building import a_record
from tests.collect.collecting import a_matrix, records, run
from tests.collect.environments.launching import until


def git(place: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=place, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture(autouse=True)
def identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "gitconfig"
    config.write_text(
        "[user]\nname = Operator\nemail = operator@example.org\n[init]\ndefaultBranch = main\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a file, in which the operator has staged one change, edited another file and made a third."""
    place = tmp_path / "repo"
    place.mkdir()
    git(place, "init", "-q")
    for name in ("a", "b"):
        (place / name).write_text("old\n")
    git(place, "add", ".")
    git(place, "commit", "-qm", "Begin")
    (place / "a").write_text("staged\n")
    (place / "staged-new").write_text("new\n")
    git(place, "add", "a", "staged-new")
    (place / "b").write_text("edited\n")
    (place / "loose").write_text("loose\n")
    return place


OPERATORS = "M  a\n M b\nA  staged-new\n?? loose\n"
"""`git status` of the fixture: staged, edited, staged anew, unknown."""


def status(place: Path) -> str:
    return git(place, "status", "--porcelain")


def commits(place: Path) -> list[str]:
    return git(place, "log", "--format=%s").splitlines()


def test_every_run_is_one_commit_of_its_own_files(repository: Path) -> None:
    data = repository / "data"
    run(a_matrix(), data, commit=True)
    assert status(repository) == OPERATORS
    assert commits(repository) == [
        "Measure m/native/w, iteration 2: ok",
        "Measure m/native/w, iteration 1: ok",
        "Declare campaign small",
        "Begin",
    ]
    first, second = records(data)
    for record, revision in ((second, "HEAD"), (first, "HEAD~1")):
        changed = git(
            repository, "show", "--name-only", "--format=", revision
        ).splitlines()
        stem = f"data/small/{record.stem}"
        assert sorted(changed) == sorted(
            [f"{stem}.json", f"{stem}.log", f"{stem}.telemetry.csv"]
        )


@pytest.fixture
def hook(repository: Path) -> Callable[[str], Path]:
    """Writes a pre-commit hook, or the one named."""

    def write(script: str, name: str = "pre-commit") -> Path:
        path = repository / ".git" / "hooks" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return write


COUNT = "n=$(cat .git/count 2>/dev/null || echo 0); echo $((n+1)) > .git/count"
"""In a hook: `n` is how often it was called before."""


NEVER_ENDING = "trap '' TERM HUP INT; while :; do sleep 600; done"


NOTE = "echo $$ >> .git/hooks-processes"
"""In a hook: leaves its process id."""


def a_run(repository: Path) -> Stored:
    """A run that was just written."""
    record = a_record(campaign="small")
    folder = repository / "data" / "small"
    folder.mkdir(parents=True)
    path = folder / f"{record.stem}.json"
    write_atomic(path, to_json(record))
    return Stored(record, path)


def a_committer(repository: Path) -> tuple[Committer, list[str]]:
    """A committer of the campaign that `a_run` is of, and what it says."""
    said: list[str] = []
    folder = repository / "data" / "small"
    progress = Progress("small", said.append)
    return Committer(folder, True, False, progress), said


def living_hooks(repository: Path) -> list[int]:
    """Those of the hooks that left their ids and still run."""
    said = (repository / ".git" / "hooks-processes").read_text().split()
    return [pid for pid in map(int, said) if start_ticks(pid) is not None]


def test_a_hook_that_never_ends_is_ended_and_leaves_no_lock(
    repository: Path,
    hook: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first commit is held up; the last try, at the end, makes it."""
    monkeypatch.setattr(repositories, "GRACE", 0.3)
    hook(f'{NOTE}; {COUNT}; [ "$n" = 0 ] || exit 0; {NEVER_ENDING}')
    monkeypatch.setattr(repositories, "TIMEOUT", 1.5)
    committer, said = a_committer(repository)
    a_run(repository)
    committer.catch_up()
    assert "took more than 1.5 s" in said[-1]
    assert commits(repository) == ["Begin"]
    assert list((repository / ".git").glob("*.lock")) == []
    until(lambda: not living_hooks(repository))  # who is killed is gone a moment later
    assert committer.catch_up() is None
    assert commits(repository)[0].startswith("Measure")
    assert status(repository) == OPERATORS


def test_runs_that_no_commit_has_are_counted_in_the_last_line_and_the_exit_status(
    repository: Path,
    hook: Callable[[str], Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    refusing = hook(f"{NOTE}; exit 1")
    data = repository / "data"
    outcome = run(a_matrix(), data, commit=True)
    assert outcome.exit_code == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert "2 runs measured, 0 failed, 0 to do; 3 commits could not be made" in last
    assert commits(repository) == ["Begin"]
    # A collection with nothing to measure counts those of an earlier one, and tries no more than twice.
    asked = len((repository / ".git" / "hooks-processes").read_text().split())
    outcome = run(a_matrix(), data, commit=True)
    assert outcome.uncommitted is not None
    assert "3 commits could not" in outcome.uncommitted
    tries = (repository / ".git" / "hooks-processes").read_text().split()
    assert len(tries) - asked == 2
    refusing.unlink()
    outcome = run(a_matrix(), data, commit=True)
    assert (outcome.measured, outcome.uncommitted, outcome.exit_code) == (0, None, 0)
    assert len(commits(repository)) == 4
    assert status(repository) == OPERATORS


def test_the_lock_of_a_killed_git_stays_and_is_told_in_a_line(
    repository: Path, hook: Callable[[str], Path]
) -> None:
    """Nobody but the operator knows whether another git is at work."""
    killing = hook("kill -KILL $PPID")
    mine = Repository.of(repository)
    with pytest.raises(GitError, match="killed by signal 9"):
        mine.commit([repository / "loose"], "Loose")
    killing.unlink()
    lock = repository / ".git" / "index.lock"
    told = f"'{lock}': File exists; remove it if no git is at work there$"
    with pytest.raises(GitError, match=told):
        mine.commit([repository / "loose"], "Loose")
    lock.unlink()
    mine.commit([repository / "loose"], "Loose")
    assert commits(repository) == ["Loose", "Begin"]


def test_no_repository_and_an_ignored_folder_are_said_and_measured_all_the_same(
    tmp_path: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / ".gitignore").write_text("/local/\n")
    for data in (tmp_path / "outside", repository / "local"):
        assert run(a_matrix(iterations=1), data, commit=True).measured == 1
        assert "not committing" in capsys.readouterr().out
    assert commits(repository) == ["Begin"]


@pytest.fixture
def upstream(tmp_path: Path, repository: Path) -> Path:
    """A bare remote of the repository."""
    bare = tmp_path / "upstream.git"
    git(tmp_path, "init", "-q", "--bare", str(bare))
    git(repository, "remote", "add", "origin", str(bare))
    git(repository, "push", "-qu", "origin", "main")
    return bare


def elsewhere(tmp_path: Path, upstream: Path, name: str, content: str) -> None:
    """Somebody else pushes a file."""
    clone = tmp_path / f"clone-{name.replace('/', '-')}"
    git(tmp_path, "clone", "-q", str(upstream), str(clone))
    (clone / name).parent.mkdir(parents=True, exist_ok=True)
    (clone / name).write_text(content)
    git(clone, "add", ".")
    git(clone, "commit", "-qm", f"Add {name}")
    git(clone, "push", "-q")


def test_push_copes_with_a_remote_that_moved(
    tmp_path: Path, repository: Path, upstream: Path
) -> None:
    elsewhere(tmp_path, upstream, "theirs", "1\n")
    data = repository / "data"
    run(a_matrix(iterations=1), data, commit=True)
    # Nothing is left to measure, and the commit is still to be pushed.
    assert run(a_matrix(iterations=1), data, commit=True, push=True).exit_code == 0
    assert "data/small/campaign.json" in git(upstream, "ls-tree", "-r", "main")
    elsewhere(tmp_path, upstream, "more", "1\n")
    run(a_matrix(iterations=2), data, commit=True, push=True)
    assert status(repository) == OPERATORS
    assert not (repository / "theirs").exists()
    pushed = git(upstream, "ls-tree", "-r", "--name-only", "main").splitlines()
    assert {"theirs", "more"} <= set(pushed)
    assert sum(name.endswith(".telemetry.csv") for name in pushed) == 2
    # The operator's next pull is a fast-forward: nothing was rewritten.
    git(repository, "stash", "-q")
    git(repository, "pull", "-q", "--ff-only")
    assert (repository / "theirs").exists()


def test_a_push_in_conflict_is_reported_and_stops_nothing(
    tmp_path: Path, repository: Path, upstream: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere(tmp_path, upstream, "data/small/campaign.json", "{}\n")
    outcome = run(a_matrix(iterations=1), repository / "data", commit=True, push=True)
    assert outcome.measured == 1
    said = capsys.readouterr().out
    assert "not pushed yet" in said
    assert "committed here and not pushed" in said.splitlines()[-1]
    assert outcome.exit_code == 1
    assert status(repository) == OPERATORS


def test_nothing_is_committed_to_a_detached_head(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As while a rebase is halted: to abort it takes every commit made meanwhile away. It is committed after that."""
    git(repository, "checkout", "-q", "--detach")
    data = repository / "data"
    outcome = run(a_matrix(), data, commit=True)
    assert (outcome.measured, outcome.exit_code) == (2, 1)
    assert outcome.uncommitted is not None
    assert "3 commits could not" in outcome.uncommitted
    said = capsys.readouterr().out
    assert said.index("1 waiting: HEAD is detached") < said.index("ok in")
    assert commits(repository) == ["Begin"]
    git(repository, "switch", "-q", "main")
    assert run(a_matrix(), data, commit=True).exit_code == 0
    assert sum(subject.startswith("Measure") for subject in commits(repository)) == 2


def test_a_declaration_that_was_not_committed_is_caught_up_with(
    repository: Path,
) -> None:
    """At first, and when the matrix changed later; what people edit in it besides stays theirs."""
    hook = repository / ".git" / "hooks" / "pre-commit"

    def refuse() -> None:
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)

    data = repository / "data"
    refuse()
    run(a_matrix(iterations=1), data, commit=True)
    hook.unlink()
    run(a_matrix(iterations=1), data, commit=True)
    assert status(repository) == OPERATORS
    assert "Declare campaign small" in commits(repository)
    refuse()
    run(a_matrix(iterations=2), data, commit=True, max_runs=0)
    assert " M data/small/campaign.json\n" in status(repository)
    hook.unlink()
    run(a_matrix(iterations=2), data, commit=True, max_runs=0)
    assert status(repository) == OPERATORS
    assert commits(repository)[0] == "Declare campaign small"
    campaign = data / "small" / "campaign.json"
    before = commits(repository)
    edited = json.loads(campaign.read_text()) | {
        "acknowledged": [{"check": "small-sample", "reason": "a trial"}]
    }
    campaign.write_text(json.dumps(edited))
    run(a_matrix(iterations=2), data, commit=True, max_runs=0)
    assert commits(repository) == before
    assert " M data/small/campaign.json\n" in status(repository)


def test_a_collector_killed_between_noting_and_committing_leaves_no_run_out(
    repository: Path,
) -> None:
    data = repository / "data"
    run(a_matrix(iterations=1), data, commit=False)
    git(repository, "add", "--intent-to-add", "data")
    assert (
        git(repository, "ls-files", "--others", "data") == ""
    )  # where they would else be looked for
    run(a_matrix(iterations=1), data, commit=True)
    assert status(repository) == OPERATORS
    assert commits(repository)[0] == "Measure m/native/w, iteration 1: ok"


def test_under_sudo_files_and_commits_are_the_invoking_users(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, as sudo gives it")
    nobody = 65534
    for place, folders, files in os.walk(tmp_path):
        for name in (*folders, *files):
            os.chown(Path(place, name), nobody, nobody, follow_symlinks=False)
    os.chown(tmp_path, nobody, nobody)
    temporary = Path(tempfile.gettempdir())
    for parent in (tmp_path, *tmp_path.parents):
        if temporary in parent.parents:
            parent.chmod(0o755)
    monkeypatch.setenv("SUDO_UID", str(nobody))
    monkeypatch.setenv("SUDO_GID", str(nobody))
    run(a_matrix(iterations=1), repository / "data", commit=True)
    assert commits(repository)[0] == "Measure m/native/w, iteration 1: ok"
    made = [
        repository / "data",
        *(repository / "data").rglob("*"),
        *(repository / ".git" / "objects").rglob("*"),
    ]
    assert {path.stat().st_uid for path in made} == {nobody}


def test_below_sudo_chroot_the_user_has_no_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The passwd of the machine is not there; what was measured stays root's."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", "4294967000")
    assert invoker.user() is None


def test_who_has_no_name_for_git_is_told_how_to_give_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith(("GIT_", "EMAIL"))]:
        monkeypatch.delenv(name)
    folder = tmp_path / "new"
    folder.mkdir()
    (folder / "file").touch()
    said = first_commit(folder, "New")
    assert said.startswith("not committed: git commit: git does not know who you are; ")
    assert said.endswith("then: git add --all && git commit")
    monkeypatch.setenv("PATH", "")
    assert first_commit(tmp_path, "New").startswith("no git repository was made: ")
