"""The command line as people meet it: a real process, its exit status, one line per problem and no traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from sparkpub import __version__, cli
from sparkpub.record.errors import MatrixError, SparkpubError

ROOT = Path(__file__).parent.parent
COMMANDS = sorted(cli.cli.commands)
UNREADABLE = {
    "build": [],
    "check": [],
    "claims": [],
    "collect": ["nowhere.yaml"],
    "doctor": ["nowhere.yaml"],
    "export": ["--format", "csv", "-o", "out.csv"],
    "import": ["trtllm-bench", "nowhere", "--campaign", "c"],
    "plan": ["nowhere.yaml"],
    "quarantine": ["no-such-run", "--reason", "because"],
    "render": ["--out", "out"],
    "stats": [],
    "status": ["nowhere.yaml"],
    "values": [],
}
"""Command -> arguments that make it read something that is not there."""
JSON_COMMANDS = [
    name
    for name in COMMANDS
    if any("--json" in option.opts for option in cli.cli.commands[name].params)
]


def sparkpub(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run it as `python -m sparkpub` from any folder."""
    variables = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    return subprocess.run(
        [sys.executable, "-m", "sparkpub", *arguments],
        cwd=cwd,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one line on stderr of a command that was used wrongly."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    return lines[0]


def test_version_and_help() -> None:
    assert sparkpub("--version").stdout == f"sparkpub, version {__version__}\n"
    shown = sparkpub("--help")
    assert shown.returncode == 0
    assert all(f"\n  {name} " in shown.stdout for name in COMMANDS)


def test_no_command_shows_what_there_is() -> None:
    done = sparkpub()
    assert done.returncode == 2
    assert "Usage:" in done.stderr
    assert "error" not in done.stderr


def test_a_mistyped_command_is_one_line() -> None:
    assert "colect" in refused(sparkpub("colect"))


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


@pytest.mark.parametrize("name", COMMANDS)
def test_wrong_usage_is_one_line(name: str) -> None:
    assert "--no-such-option" in refused(sparkpub(name, "--no-such-option"))


@pytest.mark.parametrize("name", COMMANDS)
def test_unreadable_input_is_one_line(name: str, tmp_path: Path) -> None:
    """In an empty folder whatever a command reads first is missing."""
    done = sparkpub(name, *UNREADABLE[name], cwd=tmp_path)
    assert "Traceback" not in done.stderr
    assert "unexpected" not in done.stderr
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert done.stderr.startswith("error: ")


@pytest.mark.parametrize(
    "name", [name for name in JSON_COMMANDS if name in {"check", "stats", "claims"}]
)
def test_json_is_json_and_nothing_else(name: str) -> None:
    done = sparkpub(name, "--json")
    assert done.returncode in {0, 1}, done.stderr
    assert isinstance(json.loads(done.stdout), dict)


def test_a_reader_that_goes_away_causes_no_traceback() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "sparkpub", "stats", "--json"],
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
        (click.UsageError("Wrong thing."), 2, "error: Wrong thing; see --help"),
        (click.Abort(), 1, "error: interrupted; start the command again to go on"),
        (
            PermissionError(13, "Permission denied", "x.json"),
            2,
            "error: Permission denied, x.json; check that it is there",
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


def test_a_status_given_to_click_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside its standalone mode click returns the status of `ctx.exit` instead of exiting with it."""

    @click.command()
    @click.pass_context
    def failing(context: click.Context) -> None:
        context.exit(1)

    monkeypatch.setattr(cli, "cli", failing)
    monkeypatch.setattr(sys, "argv", ["sparkpub"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 1


def test_check_reads_pages_only_with_the_data_they_are_about(tmp_path: Path) -> None:
    """Claims of site_src are about data/comprehensive: other data get the pages that are asked for."""
    post = tmp_path / "posts" / "post.md"
    post.parent.mkdir()
    post.write_text("It took 5 GiB.\n")
    alone = sparkpub("check", str(ROOT / "data/comprehensive"))
    with_pages = sparkpub(
        "check", str(ROOT / "data/comprehensive"), "--sources", str(tmp_path)
    )
    assert "unbound-number" not in alone.stdout
    assert f"{post}:1: '5 GiB' is typed into the text" in with_pages.stdout


def test_a_partitioned_export_is_a_folder_of_parquet(tmp_path: Path) -> None:
    data = ("export", "data/comprehensive", "--partitioned")
    out = str(tmp_path / "parts")
    assert "Parquet" in refused(sparkpub(*data, "-o", out))
    assert sparkpub(*data, "--format", "parquet", "-o", out).returncode == 0
    assert (tmp_path / "parts" / "campaign=phase1" / "part-0.parquet").is_file()
    file = tmp_path / "rows.csv"
    file.write_text("mine")
    done = sparkpub(*data, "--format", "parquet", "-o", str(file))
    assert "is a file" in refused(done)
    assert "is a folder" in refused(sparkpub("export", "-o", out))
    assert file.read_text() == "mine"
