"""Mistakes that people make: each is answered by one line that says what, where and what to do, and by its exit status.

They were written down before anything was tried: wrong folders and files, misspelt keys, units and columns, engines and
models that are not there, posts with typed figures and dead links, names that are taken, a full disk.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sparkpub.cli import main
from sparkpub.site import starter

LINE = re.compile(r"error: [^;]{8,}; \S.{6,}")
"""What went wrong and where, a semicolon, and what to do."""
MATRIX = """\
campaign: small
title: A small campaign
models: {m: {id: x/m}}
environments: {native: {type: host}}
workloads:
  w:
    type: command
    argv: [sh, -c, echo rate 5]
    metrics: {rate: {regex: "rate ([0-9.]+)", unit: x/s, label: Rate, direction: higher}}
iterations: 1
retries: 0
gates: {cooldown: 0, max_start_temp_celsius: null, max_gpu_temp_celsius: null, max_cpu_percent: null,
        min_free_memory_percent: null, min_free_disk_gib: 0, exclusive_gpu: false, max_wait: 0}
"""
TABLE = """\
model,where,started,tok,ttft
a,native,2026-01-01T10:00:00Z,10.5,0.2
a,native,2026-01-01T10:10:00Z,10.6,0.2
a,container,2026-01-01T10:05:00Z,10.1,0.2
a,container,2026-01-01T10:15:00Z,10.2,0.2
"""
MAPPING = """\
run: {model: model, environment: where, started: started}
same: {workload: w}
metrics:
  output_throughput_tok_s: {at: tok}
  ttft_p50_ms: {at: ttft, unit: s}
"""
POST = """\
---
title: First
slug: first
date: 2026-01-02
description: What was found.
campaign: own
---

# First

"""
MATRIX_FILE, POST_FILE = "matrix/m.yaml", "site_src/blog/posts/first.md"


def nothing(_: Path) -> None:
    """The mistake is in the command."""


def text(name: str, content: str) -> Callable[[Path], None]:
    """A file with this content, in place of what is there."""

    def write(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    return write


def changed(name: str, before: str, after: str) -> Callable[[Path], None]:
    """A file with one change."""

    def change(folder: Path) -> None:
        path = folder / name
        content = path.read_text()
        assert content.count(before) == 1
        path.write_text(content.replace(before, after))

    return change


def post(*paragraphs: str) -> Callable[[Path], None]:
    """The post with these paragraphs."""
    return text(POST_FILE, POST + "\n\n".join(paragraphs) + "\n")


@dataclass(frozen=True)
class Mistake:
    """Something that somebody did, `says` being what the answer has to contain, and `code` the documented status."""

    name: str
    command: str
    says: str
    prepare: Callable[[Path], None] = nothing
    code: int = 2
    variables: dict[str, str] = field(default_factory=dict)


Answer = Callable[[Mistake], tuple[int, str, str]]


def a_half_written_record(folder: Path) -> None:
    path = min(folder.glob("data/comprehensive/own/*_iter*.json"))
    path.write_text(path.read_text()[:200])


COLLECT = f"collect {MATRIX_FILE} --no-commit"
IMPORT = "import runs.csv --mapping map.yaml --campaign mine"
NO_RUN = "own-native_a_w_iter09_20260101T100000Z"
TOKEN = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"


def matrix(before: str, after: str) -> Callable[[Path], None]:
    """The matrix with one change."""
    return changed(MATRIX_FILE, before, after)


def mapping(before: str, after: str) -> Callable[[Path], None]:
    """The mapping with one change."""
    return changed("map.yaml", before, after)


def without_settings(folder: Path) -> None:
    (folder / "mkdocs.yml").unlink()


def a_pipe(folder: Path) -> None:
    """Something that a file must not take the place of."""
    os.mkfifo(folder / "pipe")


USING = [
    Mistake("a command misspelt", "colect matrix/m.yaml", "'colect'. Did you mean 'collect'?; see --help"),
    Mistake("a matrix forgotten", "collect", "collect needs MATRIX; for example: sparkpub collect matrix/demo.yaml"),
    Mistake("a campaign in capitals", f"{COLLECT} --campaign My", "'My' is no name of a campaign"),
    Mistake("a build in the wrong folder", "build", "this folder has no mkdocs.yml", without_settings),
    Mistake("a pipe for a file", "export -o pipe", "pipe is no file", a_pipe),
    Mistake("a server that does not run", "quick 9/v1", "no server answers at http://127.0.0.1:9/v1/models"),
]  # fmt: skip
MEASURING = [
    Mistake("a tab in YAML", f"plan {MATRIX_FILE}", "m.yaml:8", matrix("    argv:", "\targv:")),
    Mistake("a model that is not there", COLLECT, "/no/such", matrix("{id: x/m}", "{id: x/m, path: /no/such}"), 1),
    Mistake("no Docker engine", COLLECT, "no Docker engine", matrix("{type: host}", "{type: docker, image: x}"), 1,
            {"DOCKER_HOST": "unix:///no/docker.sock"}),
    Mistake("a secret in a pattern", COLLECT, "secret", matrix("rate ([", f"{TOKEN} ([")),
    Mistake("an axis misspelt", f"{COLLECT} --only enviroment=native", "enviroment"),
    Mistake("push without commit", f"{COLLECT} --push", "--push"),
]  # fmt: skip
FAILING = [
    Mistake("an engine that is not installed", COLLECT, "no-such-engine; check that the program is installed",
            matrix("[sh, -c, echo rate 5]", "[no-such-engine]"), 1),
    Mistake("a command that fails", COLLECT, "Z.log ends: out of luck",
            matrix("echo rate 5", "echo out of luck && exit 3"), 1),
]  # fmt: skip
"""Known when a run starts: `collect` goes on, and the run's own line says it."""
IMPORTING = [
    Mistake("no mapping", "import runs.csv --campaign mine", "--mapping"),
    Mistake("a wrong column", IMPORT, "'tokens'", mapping("{at: tok}", "{at: tokens}")),
    Mistake("a key of the mapping misspelt", IMPORT, "rnu", mapping("run:", "rnu:")),
]  # fmt: skip
REVIEWING = [
    Mistake("an unknown run", f"quarantine {NO_RUN} --reason late", NO_RUN),
    Mistake("a record cut short", "stats", "iter01", a_half_written_record, 1),
]
WRITING = [
    Mistake("a function misspelt", "build", "first.md:11", post("It was {{ valu('mean') }}."), 1),
    Mistake("a typed figure", "build", "first.md:11: '12 tok/s'", post("It was 12 tok/s."), 1),
    Mistake("a dead link", "build", "'blog/posts/first.md' contains a link 'nowhere.md'",
            post("See [this](nowhere.md)."), 1),
]  # fmt: skip
MISTAKES = [*USING, *MEASURING, *IMPORTING, *REVIEWING, *WRITING]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a campaign of four imported runs, a post, and a matrix."""
    folder = tmp_path_factory.mktemp("mistakes") / "mine"
    starter.write(folder, "Mine")
    (folder / "site_src/claims.yaml").unlink()
    (folder / "runs.csv").write_text(TABLE)
    (folder / "map.yaml").write_text(MAPPING)
    (folder / MATRIX_FILE).write_text(MATRIX)
    (folder / POST_FILE).write_text(POST + "Nothing yet.\n")
    command = IMPORT.replace("mine", "own")
    program = [sys.executable, "-m", "sparkpub", *command.split()]
    subprocess.run(program, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def mine(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project, the current folder meanwhile."""
    folder = tmp_path / "mine"
    shutil.copytree(project, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SPARKPUB_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def answer(
    mine: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Answer:
    """Makes a mistake and gives exit status, standard output and standard error."""

    def made(mistake: Mistake) -> tuple[int, str, str]:
        for name, value in mistake.variables.items():
            monkeypatch.setenv(name, value)
        mistake.prepare(mine)
        monkeypatch.setattr(sys, "argv", ["sparkpub", *mistake.command.split()])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capfd.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return made


def named(mistake: Mistake) -> str:
    return mistake.name


@pytest.mark.parametrize("mistake", MISTAKES, ids=named)
def test_a_mistake_is_answered_by_one_line(mistake: Mistake, answer: Answer) -> None:
    code, _, said = answer(mistake)
    (line,) = said.splitlines()
    assert LINE.fullmatch(line)
    assert mistake.says in line
    assert "unexpected" not in line
    assert code == mistake.code


@pytest.mark.parametrize("mistake", FAILING, ids=named)
def test_what_shows_at_the_start_of_a_run_is_in_its_line(
    mistake: Mistake, answer: Answer
) -> None:
    code, said, error = answer(mistake)
    assert sum(mistake.says in line for line in said.splitlines()) == 1
    assert error == ""
    assert code == mistake.code
