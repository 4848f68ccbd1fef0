"""The command line as people meet it: its exit status, one line per problem and no traceback; as a real process where
that makes a difference."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sparkpub import __version__, cli
from sparkpub.plan.environments import OPTIONS
from sparkpub.plan.matrix import Gates
from sparkpub.plan.workloads import WORKLOADS
from sparkpub.record.errors import FORMS, MatrixError, SparkpubError
from sparkpub.record.store import read_folder
from sparkpub.tools.language import of_tools
from tests import calling
from tests.calling import Done

ROOT = Path(__file__).parents[2]
READS_NOTHING = ("init", "schemas")
COMMANDS = sorted(cli.cli.commands)
CLAIM = """\
- id: same
  source: {document: the plan}
  about: data
  campaign: phase1
  metric: peak_memory_gib
  compare: container / native
  scope: each model
  expect: {direction: lower}
  recorded: supported
"""


def nowhere(command: click.Command) -> list[str]:
    """Arguments for all that a command asks for, of which no file or folder is there."""
    given: list[str] = []
    for parameter in command.params:
        kind = parameter.type
        if not (parameter.required or isinstance(kind, click.Path)):
            continue
        value = "nowhere"
        if isinstance(kind, click.Choice):
            value = str(kind.choices[0])
        elif kind.name == "format":
            value = "trtllm-bench"
        if isinstance(parameter, click.Argument):
            given.append(value)
        elif parameter.required:
            given += [parameter.opts[-1], value]
    return given


def sparkpub(*arguments: str, cwd: Path = ROOT, **variables: str) -> Done:
    """From this repository, unless a folder is named."""
    return calling.sparkpub(*arguments, cwd=cwd, **variables)


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it as `python -m sparkpub`, from this repository."""
    argv = [sys.executable, "-m", "sparkpub", *arguments]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)


def refused(done: Done) -> str:
    """The one line on stderr of a command that was used wrongly."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    return lines[0]


def test_version_and_help() -> None:
    assert process("--version").stdout == f"sparkpub, version {__version__}\n"
    shown = sparkpub("--help")
    assert shown.returncode == 0
    assert all(f"\n  {name} " in shown.stdout for name in COMMANDS)


def test_the_help_of_import_lists_every_format() -> None:
    shown = " ".join(sparkpub("import", "--help").stdout.split())
    listed = shown.partition("results of ")[2].partition(", in any mixture")[0]
    assert re.split(", | and ", listed) == sorted(of_tools())


def test_no_command_shows_what_there_is() -> None:
    done = sparkpub()
    assert done.returncode == 2
    assert "Usage:" in done.stderr
    assert "error" not in done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_an_example(name: str) -> None:
    done = sparkpub(name, "--help")
    assert done.returncode == 0
    assert done.stderr == ""
    assert f"Example: sparkpub {name}" in " ".join(done.stdout.split())
    silent = [
        option.name
        for option in cli.cli.commands[name].params
        if isinstance(option, click.Option) and not option.help and not option.hidden
    ]
    assert not silent, "an option without a word of help"


def test_wrong_usage_is_one_line() -> None:
    assert "--no-such-option" in refused(sparkpub("check", "--no-such-option"))


@pytest.mark.parametrize(
    "name", [name for name in COMMANDS if name not in READS_NOTHING]
)
def test_unreadable_input_is_one_line(name: str, tmp_path: Path) -> None:
    """In an empty folder whatever a command reads first is missing; those of `READS_NOTHING` read nothing."""
    done = sparkpub(name, *nowhere(cli.cli.commands[name]), cwd=tmp_path)
    assert "Traceback" not in done.stderr
    assert "unexpected" not in done.stderr
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert done.stderr.startswith("error: ")


@pytest.mark.parametrize("name", ["check", "stats", "claims"])
def test_json_is_json_and_nothing_else(
    name: str, published_data: Path, tmp_path: Path
) -> None:
    (tmp_path / "claims.yaml").write_text(CLAIM)
    pages = {"stats": []}.get(name, ["--sources", str(tmp_path)])
    done = sparkpub(name, "--json", "--data", str(published_data), *pages)
    assert done.returncode in {0, 1}, done.stderr
    assert isinstance(json.loads(done.stdout), dict)


def test_a_reader_that_goes_away_causes_no_traceback(published_data: Path) -> None:
    argv = [sys.executable, "-m", "sparkpub", "stats", "--json"]
    process = subprocess.Popen(
        [*argv, "--data", str(published_data)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read().decode()
    process.stderr.close()
    process.wait()
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (SparkpubError("no", where="there", remedy="go"), 1, "error: no, there; go"),
        (
            MatrixError("no\nway", others=["and that"]),
            2,
            "error: no way\nerror: and that",
        ),
        (click.Abort(), 1, "error: interrupted; start the command again to continue"),
        (
            PermissionError(13, "Permission denied", "x.json"),
            2,
            "error: Permission denied, x.json; check its permissions",
        ),
        (
            ModuleNotFoundError("No module named 'pandas'", name="pandas"),
            2,
            "error: this needs pandas, which is not installed; pip install 'sparkpub[site]",
        ),
        (KeyError("a\nb"), 1, "error: unexpected KeyError: 'a\\nb', test_cli.py:"),
    ],
)
def test_every_kind_of_error_is_worded(
    error: Exception,
    code: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(cli.cli, "main", fail)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == code
    assert capsys.readouterr().err.startswith(line)


@pytest.mark.parametrize(
    ("arguments", "said", "noted"),
    [
        (["check"], "63 runs", "pages and claims are not checked: "),
        (["export", "-o", "-"], "run,campaign,model", ""),
    ],
)
def test_an_installation_that_only_measures_checks_and_exports(
    arguments: list[str], said: str, noted: str, tmp_path: Path, published_data: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "comprehensive").symlink_to(published_data)
    (tmp_path / "site_src").mkdir()
    of_the_site = ("altair", "jinja2", "markdown", "mkdocs", "pyarrow", "vl_convert")
    program = (
        "import sys\n"
        f"for name in {of_the_site!r}: sys.modules[name] = None\n"
        f"sys.argv = {['sparkpub', *arguments]!r}\n"
        "from sparkpub.cli import main; main()"
    )
    argv = [sys.executable, "-c", program]
    done = subprocess.run(
        argv, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert said in done.stdout
    assert done.stderr.startswith(noted)
    assert bool(done.stderr) == bool(noted)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of data with one imported run."""
    folder = tmp_path_factory.mktemp("imported") / "data"
    source = ROOT / "tests/data/imports/guidellm/c2.json"
    done = sparkpub(
        *("import", str(source), "--campaign", "c"),
        *("--environment", "native", "--data", str(folder)),
    )
    assert done.returncode == 0, done.stderr
    assert sparkpub("check", str(folder)).returncode == 0
    return folder


@pytest.fixture
def small(imported: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(imported, tmp_path / "data")
    return tmp_path / "data"


def test_what_was_done_is_reported_as_json_too(small: Path) -> None:
    (found,) = read_folder(small / "c")
    run = found.record.run_id
    asked = ("quarantine", run, "--data", str(small), "--json")
    out = sparkpub(*asked, "--reason", "noise").stdout
    assert json.loads(out) == {"run": run, "campaign": "c", "quarantined": True}
    again = sparkpub(*asked, "--undo").stdout
    assert json.loads(again) == {"run": run, "campaign": "c", "quarantined": False}


def test_no_pattern_is_said_to_a_person() -> None:
    """Every form that a value of a matrix can have is named in words."""
    forms = set()
    for options in (*OPTIONS.values(), *(w.options for w in WORKLOADS.values()), Gates):
        forms |= set(patterns_of(options.model_json_schema()))
    assert len(forms) > 5
    assert forms <= set(FORMS)


def patterns_of(schema: object) -> Iterator[str]:
    """The regular expressions of a JSON schema."""
    if isinstance(schema, dict):
        for name, part in schema.items():
            if name == "pattern" and isinstance(part, str):
                yield part
            yield from patterns_of(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from patterns_of(part)
