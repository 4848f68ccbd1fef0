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

HOSTILE = [
    "a,b:c",
    "100 % of it, and %0A as text",
    "one\n::error::two",
    "one\r\n::set-output name=x::y",
    "x::y",
    "title=other,line=7",
    "##[error]old",
]


def as_the_runner_reads(line: str) -> tuple[str, dict[str, str], str]:
    """Level, properties and message: `TryParseV2` of ActionCommand.cs in actions/runner."""
    trimmed = line.strip()
    assert trimmed.startswith("::")
    information, _, data = trimmed[2:].partition("::")
    name, _, rest = information.partition(" ")
    properties = {}
    for part in filter(None, rest.strip().split(",")):
        key, _, value = part.partition("=")
        properties[key] = undone(
            value, {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}
        )
    return name, properties, undone(data, {"%0D": "\r", "%0A": "\n", "%25": "%"})


def undone(text: str, escapes: dict[str, str]) -> str:
    for escape, sign in escapes.items():
        text = text.replace(escape, sign)
    return text


def a_review(folder: Path, *findings: Finding) -> Review:
    return Review(Dataset(folder, {}), {}, findings)


def a_finding(message: str = "text", **evidence: object) -> Finding:
    return Finding("unbound-number", "error", "c", None, None, message, dict(evidence))


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_and_no_message_breaks_out(text: str, tmp_path: Path) -> None:
    finding = a_finding(text, file=f"{tmp_path}/{text}.md", line=3)
    (line,) = annotations.of_review(a_review(tmp_path, finding))
    assert "\n" not in line
    assert "\r" not in line
    clean = text.replace("\r\n", "\n")
    level, properties, message = as_the_runner_reads(line)
    assert (level, message) == ("error", clean)
    assert properties == {
        "file": f"{tmp_path}/{clean}.md",
        "line": "3",
        "title": "unbound-number",
    }


def test_a_file_is_named_from_the_root_of_its_repository(tmp_path: Path) -> None:
    page = tmp_path / "site_src" / "page.md"
    finding = a_finding(file=str(page), line=1)
    (before,) = annotations.of_review(a_review(tmp_path, finding))
    assert as_the_runner_reads(before)[1]["file"] == str(page)
    (tmp_path / ".git").mkdir()
    (after,) = annotations.of_review(a_review(tmp_path, finding))
    assert as_the_runner_reads(after)[1]["file"] == "site_src/page.md"


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


def test_a_matrix_that_cannot_be_read_is_an_annotation_of_its_file(
    tmp_path: Path,
) -> None:
    folder = write(tmp_path, clean_runs(seed=7, iterations=1), 1)
    path = folder / CAMPAIGN_FILE
    path.write_text(path.read_text().replace('"models": {', '"models": 1, "x": {', 1))
    done = CliRunner().invoke(cli, ["check", str(tmp_path), "--github"])
    (line,) = done.output.splitlines()
    level, properties, message = as_the_runner_reads(line)
    assert (level, properties["file"]) == ("error", str(path))
    assert "matrix.models" in message
