"""The workflows of this repository and those that `init` writes: linted without a network, and their steps run here."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkpub.site import starter
from tests.collect.test_gather import committed
from tests.collect.test_gather import line as proposed
from tests.review.test_changes import a_folder

ROOT = Path(__file__).parent.parent
OURS = sorted((ROOT / ".github/workflows").glob("*.yml"))
THEIRS = sorted((starter.FILES / "github/workflows").glob("*.yml"))
WORKFLOWS = [*OURS, *THEIRS]
ZIZMOR = Path(sys.executable).with_name("zizmor")
"""A program, installed beside Python."""
CONTRIBUTION = ROOT / ".github/workflows/contribution.yml"
SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "vendor.dependabot": [ROOT / ".github/dependabot.yml"],
    "vendor.citation-file-format": [ROOT / "CITATION.cff"],
}
WRITES = {
    "publish.yml": {"deploy": {"pages": "write", "id-token": "write"}},
    "release.yml": {"publish": {"id-token": "write"}},
    "collect.yml": {"measure": {"contents": "write"}},
    "arena.yml": {"propose": {"contents": "write", "pull-requests": "write"}},
}
"""Jobs that may write, by workflow; every other may read the repository and no more."""
READS: tuple[dict[str, str], ...] = (
    {"contents": "read"},
    {"contents": "read", "pages": "read"},
)


def parsed(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def steps_of(path: Path) -> list[dict[str, Any]]:
    return [
        step for job in parsed(path)["jobs"].values() for step in job.get("steps", ())
    ]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_have_the_form_that_their_readers_publish(schema: str) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "check_jsonschema",
            "--builtin-schema",
            schema,
            *SCHEMAS[schema],
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_a_new_repository_can_be_cited(tmp_path: Path) -> None:
    starter.write(tmp_path / "mine", 'Spark: "one" #2')
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "check_jsonschema",
            "--builtin-schema",
            "vendor.citation-file-format",
            tmp_path / "mine/CITATION.cff",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    cited = parsed(tmp_path / "mine/CITATION.cff")
    assert (cited["type"], cited["title"]) == ("dataset", 'Spark: "one" #2')


def test_zizmor_finds_nothing() -> None:
    done = subprocess.run(
        [
            ZIZMOR,
            "--offline",
            "--no-progress",
            ROOT / ".github",
            *THEIRS,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "No findings to report" in done.stdout + done.stderr


def test_an_action_has_one_commit_everywhere() -> None:
    commits: dict[str, set[str]] = {}
    for path in WORKFLOWS:
        for step in steps_of(path):
            action, _, commit = step.get("uses", "").partition("@")
            commits.setdefault(action, set()).add(commit)
    assert {action for action, found in commits.items() if len(found) > 1} == set()


@pytest.mark.parametrize("path", WORKFLOWS, ids=named)
def test_jobs_may_little_and_end(path: Path) -> None:
    workflow = parsed(path)
    assert workflow["permissions"] == {}
    writes = WRITES.get(path.name, {})
    for name, job in workflow["jobs"].items():
        if name in writes:
            assert job["permissions"] == writes[name]
            assert "environment" in job or "uses" in job
        else:
            assert job["permissions"] in READS
        most = 1200 if "self-hosted" in job.get("runs-on", ()) else 30
        assert "uses" in job or job["timeout-minutes"] <= most


def test_our_own_and_a_strangers_pull_requests_are_checked_by_the_same_steps() -> None:
    check = starter.FILES / "github/workflows/check.yml"
    assert steps_of(check) == steps_of(CONTRIBUTION)
    inputs = parsed(CONTRIBUTION)[True]["workflow_call"][
        "inputs"
    ]  # YAML 1.1 reads `on` as true
    given = parsed(check)["env"]
    assert given.items() >= settings_of_git().items()
    for name, said in inputs.items():
        assert given[name.upper().replace("-", "_")] == said["default"]


def settings_of_git() -> dict[str, str]:
    variables = parsed(CONTRIBUTION)["env"]
    return {name: value for name, value in variables.items() if name.startswith("GIT_")}


@pytest.mark.parametrize("visibility", ["private", "public", ""])
def test_a_machine_of_ones_own_measures_for_a_private_repository_alone(
    tmp_path: Path, visibility: str
) -> None:
    """The workflow files of a fork's pull request are the fork's: on a public repository they could name the runner."""
    path = starter.FILES / "github/workflows/collect.yml"
    jobs = parsed(path)["jobs"]
    assert jobs["measure"]["needs"] == "private"
    assert "self-hosted" not in jobs["private"]["runs-on"]
    others = [other for other in WORKFLOWS if other != path]
    assert not [other for other in others if "self-hosted" in other.read_text()]
    answer = tmp_path / "gh"
    answer.write_text(f"#!/bin/sh\necho {visibility}\n")
    answer.chmod(0o755)
    (step,) = jobs["private"]["steps"]
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_REPOSITORY": "a/b"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == (visibility == "private")
    assert ("Remove its runner" in done.stdout) == (visibility != "private")


# -- the steps themselves ----------------------------------------------------------------------------------


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A base with one campaign, and a change beside it that is the same."""
    folder = tmp_path / "base"
    starter.write(folder, "T", campaign="c")
    a_folder(folder / "data/comprehensive")
    for path in (folder / "matrix").iterdir():
        path.unlink()
    shutil.copytree(folder, tmp_path / "change")
    return tmp_path


CHECK, GATHER, SUMMARISE, BUILD = (
    "Check records and pages",
    "Gather the owners whose lines are new",
    "Summarise what changes",
    "Build the site, strictly",
)


def run_steps(
    workspace: Path, *names: str, path: Path = CONTRIBUTION
) -> dict[str, subprocess.CompletedProcess[str]]:
    """Steps of the workflow by name, each in its folder as a runner has it."""
    tools = workspace / "tools"
    tools.mkdir(exist_ok=True)
    command = tools / "sparkpub"
    # Like the installed command: the folder it is called in is not on Python's path.
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m sparkpub "$@"\n')
    command.chmod(0o755)
    inputs = parsed(path)[True].get("workflow_call", {"inputs": {}})["inputs"]
    variables = {
        name.upper().replace("-", "_"): said["default"] for name, said in inputs.items()
    }
    variables |= {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(workspace),
        "GITHUB_STEP_SUMMARY": str(workspace / "summary.md"),
        "RUNNER_TEMP": str(workspace),
        "NO_MKDOCS_2_WARNING": "1",
    }
    variables |= {"GITHUB_ACTOR": "a"} | settings_of_git()
    done = {}
    steps = {step.get("name"): step for step in steps_of(path)}
    for name in names:
        step = steps[name]
        done[name] = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=workspace / step.get("working-directory", "base"),
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
    return done


def test_a_pull_request_is_judged_and_nothing_of_it_is_run(workspace: Path) -> None:
    change, sentinel = workspace / "change", workspace / "ran"
    touch = f"import pathlib; pathlib.Path({str(sentinel)!r}).touch()\n"
    a_folder(change / "data/comprehensive", {"native": [10.0, 12.0]}, "new")
    for name in (
        "sitecustomize.py",
        "sparkpub.py",
        "conftest.py",
        "setup.py",
        "hook.py",
    ):
        (change / name).write_text(touch)
        (change / "data/comprehensive" / name).write_text(touch)
    (change / "mkdocs.yml").write_text("site_name: x\nhooks: [hook.py]\n")
    (change / "requirements.txt").write_text("./\n")
    (change / "matrix/evil.yaml").write_text(
        "campaign: evil\ntitle: T\nmodels: {m: {id: x/y}}\nenvironments: {native: {type: host}}\n"
        f"workloads: {{w: {{type: command, argv: [touch, {sentinel}]}}}}\n"
    )
    asked = [step.get("name", "") for step in steps_of(CONTRIBUTION) if "run" in step]
    ours = {name for name in asked if not name.startswith("Install")}
    assert ours == {CHECK, GATHER, SUMMARISE, BUILD}
    done = run_steps(workspace, CHECK, SUMMARISE, BUILD)
    codes = {name: step.returncode for name, step in done.items()}
    assert codes == dict.fromkeys(done, 0), done
    summary = (workspace / "summary.md").read_text()
    assert "| new | new\\: 2 runs\\, 2 counted |" in summary
    assert (workspace / "site/campaigns/new/index.html").is_file()
    assert not sentinel.exists()


def test_a_proposed_line_of_an_arena_is_gathered_checked_and_built(
    workspace: Path,
) -> None:
    theirs = workspace / "theirs"
    a_folder(theirs / "data/comprehensive", {"native": [10.0, 12.0]}, "new")
    kept = f"- {{owner: kept, repository: file:///nowhere, commit: {'a' * 40}}}\n"
    (workspace / "base/arena.yaml").write_text(kept)
    new = f"- {{{proposed('other', theirs, committed(theirs))}}}\n"
    (workspace / "change/arena.yaml").write_text(kept + new)
    done = run_steps(workspace, GATHER, BUILD)
    codes = {name: step.returncode for name, step in done.items()}
    assert codes == dict.fromkeys(done, 0), done
    first, *said, last = done[GATHER].stdout.splitlines()
    assert first.removeprefix("::stop-commands") == last.removesuffix("::")
    assert said[0].startswith("other at ")
    assert "2 runs, 0 excluded: 0 errors" in said[1]
    assert (workspace / "site/owners/other/index.html").is_file()


def test_newer_commits_of_owners_are_proposed_with_what_they_change(
    workspace: Path,
) -> None:
    """By the steps of the weekly workflow: an owner who is gone keeps the line, and costs nobody else's."""
    theirs, base = workspace / "theirs", workspace / "base"
    results = theirs / "data/comprehensive"
    a_folder(results, {"native": [10.0, 12.0]}, "new")
    old = committed(theirs)
    gone = proposed("gone", workspace / "nowhere", "a" * 40)
    lines = f"- {{{gone}}}\n- {{{proposed('other', theirs, old)}}}\n"
    (base / "arena.yaml").write_text(lines)
    (base / ".venv/bin").mkdir(parents=True)
    (base / ".venv/bin/sparkpub").symlink_to(workspace / "tools/sparkpub")
    (base / ".gitignore").write_text("/proposal\n/gathered\n/.venv\n")
    committed(base)
    subprocess.run(["git", "init", "--bare", "-q", workspace / "remote"], check=True)
    argv = ["git", "-C", base, "remote", "add", "origin", workspace / "remote"]
    subprocess.run(argv, check=True)
    a_folder(results, {"native": [10.0, 12.0]}, "more")
    new = committed(theirs)

    path = ROOT / ".github/workflows/arena.yml"
    move, propose = "Move the lines, and say what changes", "Propose them"
    done = run_steps(workspace, move, path=path)[move]
    assert done.returncode == 1, done.stderr
    assert f"error: gone at {'a' * 12}: " in done.stderr
    text = (base / "proposal/text.md").read_text()
    gone, other = text.split("# other at ")
    assert "Not gathered" in gone
    assert other.startswith(new[:12])
    assert "### Campaigns: 1\n" in other
    assert (base / "proposal/arena.yaml").read_text() == lines.replace(old, new)

    (base / "arena.yaml").write_text(lines)  # as the other job has it
    (base / "proposal").rename(workspace / "proposal")
    (workspace / "tools/gh").write_text(f'#!/bin/sh\necho "$@" >> {workspace}/gh\n')
    (workspace / "tools/gh").chmod(0o755)
    done = run_steps(workspace, propose, path=path)[propose]
    assert done.returncode == 0, done.stderr
    shown = ["git", "-C", workspace / "remote", "show", "newer-commits:arena.yaml"]
    pushed = subprocess.run(shown, check=True, capture_output=True, text=True).stdout
    assert pushed == lines.replace(old, new)
    assert (workspace / "body.md").read_text() == text
    assert "pr create --head newer-commits" in (workspace / "gh").read_text()


def test_a_pull_request_with_a_damaged_record_fails(
    workspace: Path,
) -> None:
    change = workspace / "change"
    (change / ".git").mkdir()
    path = sorted(change.glob("data/comprehensive/c/native_*.json"))[0]
    path.write_text(path.read_text().replace('"unit": "tok/s"', '"unit": "tok/h"'))
    done = run_steps(workspace, CHECK, SUMMARISE)
    check = done[CHECK]
    assert check.returncode == 1
    (line,) = [line for line in check.stdout.splitlines() if "schema" in line]
    assert path.name in line
    assert done[SUMMARISE].returncode == 0
    assert "'tok/h'" in (workspace / "summary.md").read_text().replace("\\", "")


def test_a_post_cannot_reach_python_nor_the_runner(workspace: Path) -> None:
    """A template is refused where it leaves its sandbox, and what a page makes of it is no command of the runner."""
    post = workspace / "change/site_src/blog/posts/first.md"
    front = "date: 2026-11-20\nslug: first\ntitle: A post"
    text = '{{ "".__class__.__mro__[1].__subclasses__() }}\n\n::error::x\n\n##[error]y'
    post.write_text(f"---\n{front}\n---\n\n# A post\n\n{text}\n")
    done = run_steps(workspace, CHECK, BUILD)
    check = done[CHECK]
    assert check.returncode != 0
    assert "##[" not in check.stderr
    assert all(line.startswith("| ") for line in check.stderr.splitlines())
    page = done[BUILD]
    assert page.returncode != 0
    first, *_, last = page.stdout.splitlines()
    word = first.removeprefix("::stop-commands::")
    assert re.fullmatch(r"[0-9a-f]{32}", word)
    assert last == f"::{word}::"
