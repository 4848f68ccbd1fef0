"""Other owners' campaigns, gathered from real repositories over `file://` and HTTP."""

import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sparkpub.cli import cli
from sparkpub.record import owner
from sparkpub.record.errors import UsageError
from sparkpub.review.checks import review
from sparkpub.review.dataset import load
from tests.review.checks.planted import IMPORTS
from tests.site.conftest import write_data

IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@site.test")


def git(place: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *IDENTITY, *arguments],
        cwd=place,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def committed(place: Path) -> str:
    """Commit everything below a folder, and say at which commit it is now."""
    if not (place / ".git").exists():
        git(place, "init", "--quiet", "--initial-branch", "main")
    git(place, "add", "--all", "--force")
    git(place, "commit", "--quiet", "--message", "results")
    return git(place, "rev-parse", "HEAD")


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """An owner's repository with the campaign `c`."""
    folder = tmp_path / "theirs"
    write_data(folder / "data" / "comprehensive")
    return folder


def gathered(hub: Path, *lines: str, known: Path | None = None) -> Result:
    hub.mkdir(exist_ok=True)
    (hub / "arena.yaml").write_text("".join(f"- {{{line}}}\n" for line in lines))
    arguments = ["gather", str(hub / "arena.yaml"), "--out", str(hub / "gathered")]
    more = [] if known is None else ["--known", str(known)]
    return CliRunner().invoke(cli, [*arguments, *more])


def line(name: str, place: Path, commit: str, more: str = "") -> str:
    return f"owner: {name}, repository: file://{place}, commit: {commit}{more}"


def test_equal_names_of_two_owners_stay_apart_and_the_files_as_they_were(
    tmp_path: Path, theirs: Path
) -> None:
    commit, hub = committed(theirs), tmp_path / "hub"
    lines = [line(name, theirs, commit, ", campaigns: [c]") for name in ("one", "two")]
    assert gathered(hub, *lines).exit_code == 0
    folders = owner.gathered(hub / "gathered")
    data = load(*folders)
    assert list(data.campaigns) == ["one.c", "two.c"]
    assert len({run.run_id for run in data.runs}) == len(data.runs)
    of = data.campaigns["one.c"].owner
    assert of is not None
    assert of.address == f"file://{theirs}/tree/{commit}/data/comprehensive"
    here = hub / "gathered" / "one" / "c"
    there = theirs / "data" / "comprehensive" / "c"
    assert {path.name: path.read_bytes() for path in here.iterdir()} == {
        path.name: path.read_bytes() for path in there.iterdir()
    }


@pytest.mark.parametrize("filters", ["true", "false"])
def test_over_http_no_more_is_fetched_than_a_line_names(
    tmp_path: Path, theirs: Path, filters: str
) -> None:
    """From a server that leaves out what nobody asks for, as the usual hosts do; from another all files come."""
    size = 300_000
    (theirs / "elsewhere.bin").write_bytes(os.urandom(size))
    commit, served = committed(theirs), 0
    git(theirs, "config", "uploadpack.allowFilter", filters)

    class Backend(BaseHTTPRequestHandler):
        """Hands each request to `git http-backend`, as a CGI server does."""

        def do_GET(self) -> None:
            nonlocal served
            path, _, query = self.path.partition("?")
            asked = {
                "GIT_PROJECT_ROOT": str(tmp_path),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "HTTP_GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = subprocess.run(
                ["git", "http-backend"],
                env={**os.environ, **asked},
                input=sent,
                stdout=subprocess.PIPE,
                check=True,
            ).stdout
            served += len(answer)
            self.wfile.write(b"HTTP/1.0 200 OK\r\n" + answer)

        do_POST = do_GET  # noqa: N815 - the name that the server asks for

        def log_message(self, *_: object) -> None:
            """Nothing, in a test."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Backend) as server:
        threading.Thread(target=server.serve_forever).start()
        address = f"http://127.0.0.1:{server.server_port}/theirs/.git"
        hub = tmp_path / "hub"
        done = gathered(hub, f"owner: one, repository: {address}, commit: {commit}")
        server.shutdown()
    assert done.output.startswith(f"one at {commit[:12]}: 1 campaign"), done.output
    assert list(load(hub / "gathered" / "one").campaigns) == ["one.c"]
    assert (served > size) == (filters == "false")


def test_an_unchanged_line_costs_nothing_and_a_line_that_is_gone_takes_its_folder(
    tmp_path: Path, theirs: Path
) -> None:
    commit, hub = committed(theirs), tmp_path / "hub"
    one, two = (line(name, theirs, commit) for name in ("one", "two"))
    gathered(hub, one, two)
    shutil.rmtree(theirs)  # so nothing can be fetched again
    done = gathered(hub, one)
    assert done.output.endswith("unchanged\n")
    assert [path.name for path in (hub / "gathered").iterdir()] == ["one"]


def test_lines_that_are_known_are_passed_over_and_keep_their_folder(
    tmp_path: Path, theirs: Path
) -> None:
    hub, commit = tmp_path / "hub", committed(theirs)
    first, second = (line(name, theirs, commit) for name in ("one", "two"))
    assert gathered(hub, first).exit_code == 0
    known = hub / "known.yaml"
    shutil.copy(hub / "arena.yaml", known)
    shutil.rmtree(theirs / ".git" / "refs")  # nobody could be gathered any more
    said = gathered(hub, first, second, known=known)
    assert "one" not in said.output
    assert "two" in said.output
    assert [path.name for path in owner.gathered(hub / "gathered")] == ["one"]


def test_only_the_line_of_a_repository_that_moved_is_moved(
    tmp_path: Path, theirs: Path
) -> None:
    """A fork at the same commit has no newer one, and a line that fails stays, too."""
    hub, old = tmp_path / "hub", committed(theirs)
    shutil.copytree(theirs, tmp_path / "fork")
    (theirs / "more").write_text("more")
    new = committed(theirs)
    lines = [
        line("one", theirs, old),
        line("two", tmp_path / "fork", old),
        line("three", theirs, old, ", campaigns: [nowhere]"),
    ]
    gathered(hub, *lines)
    arena, out = hub / "arena.yaml", hub / "gathered"
    before = arena.read_text().splitlines()
    newest = ["gather", str(arena), "--out", str(out), "--newest"]
    assert CliRunner().invoke(cli, [*newest, "--json"]).exit_code == 2
    assert arena.read_text().splitlines() == before
    assert CliRunner().invoke(cli, newest).exit_code == 1
    moved = [before[0].replace(old, new), *before[1:]]
    assert arena.read_text().splitlines() == moved


def test_results_are_imported_as_their_line_says(tmp_path: Path) -> None:
    theirs, hub = tmp_path / "theirs", tmp_path / "hub"
    shutil.copytree(IMPORTS / "llama-bench", theirs / "results")
    commit = committed(theirs)
    more = ", import: results, machine: dgx-spark, model: m, environment: container, licence: MIT"
    done = gathered(hub, line("one", theirs, commit, more))
    assert done.exit_code == 0, done.output
    (campaign,) = load(hub / "gathered" / "one").campaigns.values()
    assert campaign.name == "one.results"
    assert campaign.info.licence == "MIT"
    assert all(record.evidence == () for record in campaign.records)
    # Of files that are not kept no evidence can be asked for.
    found = review(load(hub / "gathered" / "one"))
    assert not [each for each in found.findings if each.check == "missing-report"]


def test_a_folder_that_was_not_gathered_is_never_touched(
    tmp_path: Path, theirs: Path
) -> None:
    hub = tmp_path / "hub"
    for name in ("one", "mine"):
        (hub / "gathered" / name).mkdir(parents=True)
        (hub / "gathered" / name / "file").touch()
    done = gathered(hub, line("one", theirs, committed(theirs)))
    assert done.exit_code == 1
    assert "it was not gathered" in done.output
    assert len([*(hub / "gathered").glob("*/file")]) == 2


def a_bare_repository(place: Path) -> None:
    git(place, "init", "--quiet", "--bare", "bare")
    for name in ("objects", "refs"):  # git keeps no empty folder
        (place / "bare" / name / "x").write_text("x")


def a_link_out_of_the_repository(place: Path) -> None:
    (place / "link.json").symlink_to("/etc/passwd")


def a_link_to_a_folder(place: Path) -> None:
    (place / "away").symlink_to("/etc")


@pytest.mark.parametrize(
    "put", [a_bare_repository, a_link_out_of_the_repository, a_link_to_a_folder]
)
def test_nothing_but_plain_files_of_a_campaign_comes_in(
    tmp_path: Path, theirs: Path, put: Callable[[Path], None]
) -> None:
    place = theirs / "data" / "comprehensive" / "c"
    before = {path.name for path in place.iterdir()}
    put(place)
    hub = tmp_path / "hub"
    assert gathered(hub, line("one", theirs, committed(theirs))).exit_code == 0
    found = set((hub / "gathered" / "one" / "c").iterdir())
    assert {path.name for path in found} == before
    assert not any(path.is_symlink() or path.is_dir() for path in found)


def damage_a_record(data: Path) -> str:
    record = next((data / "c").glob("native*.json"))
    record.write_text(
        record.read_text().replace('"iteration": 1', '"iteration": "<b>"')
    )
    return "iteration"


def name_a_campaign_in_markup(data: Path) -> str:
    (data / "c").rename(data / "<img src=x>")
    return "campaign"


@pytest.mark.parametrize("put", [damage_a_record, name_a_campaign_in_markup])
def test_damage_that_would_stop_the_hubs_builds_costs_the_line(
    tmp_path: Path, theirs: Path, put: Callable[[Path], str]
) -> None:
    hub = tmp_path / "hub"
    said = put(theirs / "data" / "comprehensive")
    done = gathered(hub, line("one", theirs, committed(theirs)))
    assert done.exit_code == 1
    (told,) = done.output.splitlines()
    assert said in told
    assert str(hub) not in told
    assert list((hub / "gathered").iterdir()) == []


def test_no_hook_and_no_filter_is_run_and_no_file_converted(
    tmp_path: Path, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even those of the user's own configuration, which a repository can name: `* filter=lfs`."""
    ran, hooks = tmp_path / "ran", tmp_path / "hooks"
    mine = tmp_path / "gitconfig"
    mine.write_text(
        f'[filter "mine"]\nsmudge = touch {ran}; cat\n[core]\nhooksPath = {hooks}\n'
    )
    hook = hooks / "post-checkout"
    hooks.mkdir()
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    there = theirs / "data" / "comprehensive" / "c"
    (there / ".gitattributes").write_text("* filter=mine text eol=crlf\n")
    commit = committed(theirs)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(mine))
    hub = tmp_path / "hub"
    assert gathered(hub, line("one", theirs, commit)).exit_code == 0
    assert not ran.exists()
    here = hub / "gathered" / "one" / "c" / "campaign.json"
    assert here.read_bytes() == (there / here.name).read_bytes()


@pytest.mark.parametrize(
    ("bound", "most", "said"),
    [
        ("MOST_FILES", 10, "files; 10 are taken"),
        ("MOST_BYTES", 100_000, "File too large"),
    ],
)
def test_too_much_is_refused_in_one_line(
    tmp_path: Path,
    theirs: Path,
    monkeypatch: pytest.MonkeyPatch,
    bound: str,
    most: int,
    said: str,
) -> None:
    (theirs / "data/comprehensive/c/random.log").write_bytes(os.urandom(200_000))
    monkeypatch.setattr(f"sparkpub.collect.gather.{bound}", most)
    done = gathered(tmp_path / "hub", line("one", theirs, committed(theirs)))
    (told,) = done.output.splitlines()
    assert done.exit_code == 1
    assert told.endswith(said), told


@pytest.mark.parametrize("how", ["rewrote its history", "vanished"])
def test_an_owner_who_is_gone_costs_the_line_and_what_was_gathered_stays(
    tmp_path: Path, theirs: Path, how: str
) -> None:
    first, hub = committed(theirs), tmp_path / "hub"
    gathered(hub, line("one", theirs, first))
    if how == "vanished":
        shutil.rmtree(theirs)
        wanted = "a" * 40
    else:
        wanted = committed_then_lost(theirs)
    done = gathered(hub, line("one", theirs, wanted), line("two", theirs, wanted))
    assert done.exit_code == 1
    assert len(done.output.splitlines()) == 2
    kept = owner.of(hub / "gathered" / "one")
    assert kept is not None
    assert kept.commit == first
    assert not (hub / "gathered" / "two").exists()


def committed_then_lost(place: Path) -> str:
    """A commit that a repository had, and has no more."""
    (place / "more").write_text("more")
    lost = committed(place)
    git(place, "reset", "--quiet", "--hard", "HEAD~1")
    git(place, "reflog", "expire", "--expire=now", "--all")
    git(place, "gc", "--quiet", "--prune=now")
    return lost


def test_a_record_that_lies_of_its_evidence_and_an_acknowledgement_bind_nobody(
    tmp_path: Path, theirs: Path
) -> None:
    place = theirs / "data" / "comprehensive" / "c"
    log = next(place.glob("*.log"))
    log.write_text("another log\n")
    info = (place / "campaign.json").read_text().rstrip().removesuffix("}")
    reason = '{"check": "missing-log", "cell": null, "reason": "I know"}'
    (place / "campaign.json").write_text(f'{info}, "acknowledged": [{reason}]}}')
    gathered(tmp_path / "hub", line("one", theirs, committed(theirs)))
    data = load(tmp_path / "hub" / "gathered" / "one")
    assert data.campaigns["one.c"].info.acknowledged == ()
    errors = {each.check for each in review(data).findings if each.severity == "error"}
    assert "checksum" in errors or "evidence" in errors, errors


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("owner: a, commit: x", "0.repository is missing"),
        ("owner: a, repository: 'ext::sh -c x', commit: x", "repository"),
        ("owner: a, repository: https://site.test/x, commit: main", "commit"),
        ("owner: <b>, repository: https://site.test/x, commit: main", "owner"),
    ],
)
def test_a_line_at_fault_is_named(tmp_path: Path, text: str, said: str) -> None:
    done = gathered(tmp_path / "hub", text)
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)
    assert "arena.yaml:1" in str(done.exception)


def test_share_prints_a_line_that_gather_takes(tmp_path: Path, theirs: Path) -> None:
    # As `init` leaves the demonstration: a campaign without a run.
    first = theirs / "data" / "comprehensive" / "c" / "campaign.json"
    empty = theirs / "data" / "comprehensive" / "empty"
    empty.mkdir()
    text = first.read_text().replace('"campaign": "c"', '"campaign": "empty"')
    (empty / "campaign.json").write_text(text)
    commit = committed(theirs)
    git(tmp_path, "init", "--quiet", "--bare", "remote.git")
    git(theirs, "remote", "add", "origin", str(tmp_path / "remote.git"))
    git(theirs, "push", "--quiet", "origin", "main")
    git(theirs, "remote", "set-url", "origin", "git@github.com:Some/results.git")
    done = CliRunner().invoke(cli, ["share", str(theirs / "data" / "comprehensive")])
    assert done.exit_code == 0, done.output
    assert done.stdout == (
        "- {owner: some, repository: https://github.com/Some/results, "
        f"commit: {commit}, campaigns: [c]}}\n"
    )
