"""Annotations as the runner of GitHub reads them. Its reading is repeated here from its source."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from sparkpub.cli import cli
from sparkpub.record.campaign import Acknowledgement
from sparkpub.record.store import CAMPAIGN_FILE
from sparkpub.review.checks import Finding, Review, annotations
from sparkpub.review.dataset import Dataset
from tests.review.checks import faults
from tests.review.checks.clean import clean_runs, write

ESCAPES = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}


def as_the_runner_reads(line: str) -> tuple[str, dict[str, str], str]:
    """Level, properties and message: `TryParseV2` of ActionCommand.cs in actions/runner."""
    assert line.startswith("::")
    information, _, data = line[2:].partition("::")
    name, _, rest = information.partition(" ")
    pairs = (part.partition("=") for part in rest.split(","))
    return name, {key: undone(value) for key, _, value in pairs}, undone(data)


def undone(text: str) -> str:
    for escape, sign in ESCAPES.items():
        text = text.replace(escape, sign)
    return text


@pytest.mark.parametrize(
    "text",
    [
        "a,b:c",
        "100 % of it, and %0A as text",
        "one\n::error::two",
        "one\r\n::set-output name=x::y",
        "title=other,line=7",
    ],
)
def test_no_name_and_no_message_breaks_out(text: str, tmp_path: Path) -> None:
    """A file outside of a repository is named as it is; in one, from its root."""
    clean = text.replace("\r\n", "\n")
    page = tmp_path / "site_src" / f"{text}.md"
    evidence = {"file": str(page), "line": 3}
    finding = Finding("unbound-number", "error", "c", None, None, text, evidence)
    review = Review(Dataset(tmp_path, {}), {}, (finding,))
    for file in (f"{tmp_path}/site_src/{clean}.md", f"site_src/{clean}.md"):
        (line,) = annotations.of_review(review)
        assert not {"\n", "\r"} & {*line}
        about = {"file": file, "line": "3", "title": "unbound-number"}
        assert as_the_runner_reads(line) == ("error", about, clean)
        (tmp_path / ".git").mkdir(exist_ok=True)


def test_findings_have_the_level_of_their_severity_or_of_what_people_answered(
    tmp_path: Path,
) -> None:
    run = faults.cell(runs := clean_runs(seed=7))[3]
    run.gates = (faults.HOT,)
    answer = Acknowledgement(check="thermal-gate", reason="x")
    for acknowledged, level in (((), "warning"), ((answer,), "notice")):
        data = tmp_path / level
        write(data, runs, acknowledged=acknowledged)
        done = CliRunner().invoke(cli, ["check", str(data), "--github"])
        (hot,) = map(as_the_runner_reads, done.output.splitlines())
        assert (hot[0], hot[1]["title"]) == (level, "thermal-gate")
        assert hot[1]["file"].startswith(f"{data}/clean/native_dense_iter04_")


def test_a_matrix_that_cannot_be_read_is_an_annotation(tmp_path: Path) -> None:
    path = write(tmp_path, clean_runs(seed=7, iterations=1), 1) / CAMPAIGN_FILE
    path.write_text(path.read_text().replace('"models": {', '"models": 1, "x": {', 1))
    done = CliRunner().invoke(cli, ["check", str(tmp_path), "--github"])
    (line,) = done.output.splitlines()
    level, properties, message = as_the_runner_reads(line)
    assert (level, properties["file"]) == ("error", str(path))
    assert "matrix.models" in message
