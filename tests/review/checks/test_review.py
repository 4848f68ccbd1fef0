"""The review as a whole: which findings a campaign has and no others, what people answer to them, and the commands."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sparkpub.cli import cli
from sparkpub.record.campaign import Acknowledgement
from sparkpub.record.store import CAMPAIGN_FILE
from sparkpub.review.checks import CHECKS, Review, review
from sparkpub.review.dataset import load
from tests.review.checks import faults
from tests.review.checks.clean import Run, clean_runs, write


def reviewed(data: Path) -> Review:
    return review(load(data, skip=lambda _: None))


def check(data: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["check", str(data), *options])


# -- campaigns that differ from the clean one in one thing -------------------------------------------------------


def test_a_campaign_of_which_nothing_ran_yet_is_reviewed(tmp_path: Path) -> None:
    write(tmp_path, [], iterations=1)
    assert [finding.check for finding in reviewed(tmp_path).findings] == [
        "missing-cell"
    ]


def false_alarms(folder: Path, seeds: range) -> set[int]:
    alarms = set()
    for seed in seeds:
        write(folder / str(seed), clean_runs(seed))
        findings = reviewed(folder / str(seed)).findings
        if any(finding.severity != "info" for finding in findings):
            alarms.add(seed)
    return alarms


def test_few_clean_campaigns_raise_an_alarm(tmp_path: Path) -> None:
    assert len(false_alarms(tmp_path, range(12))) <= 1


@pytest.mark.slow
def test_at_most_one_clean_campaign_in_twenty_raises_an_alarm(tmp_path: Path) -> None:
    assert len(false_alarms(tmp_path, range(1000))) <= 50


def test_nobody_is_told_to_measure_what_others_published(published_data: Path) -> None:
    remedies = [finding.remedy for finding in reviewed(published_data).findings]
    assert "Keep the log of the tool" in " ".join(remedies)
    assert "easure" not in " ".join(remedies)


# -- what people answer ------------------------------------------------------------------------------------------

SUMMER = "it was summer, and the room was hot"


def hot(data: Path, **fields: object) -> Run:
    """A campaign with a run that started hot."""
    runs = clean_runs(seed=7)
    run = faults.cell(runs)[3]
    run.gates = (faults.HOT,)
    write(data, runs, **fields)
    return run


def test_check_prints_lines_or_json_and_fails_at_the_threshold_asked_for(
    tmp_path: Path,
) -> None:
    run = hot(tmp_path)
    done = check(tmp_path)
    counts = "40 runs, 0 excluded: 0 errors, 1 warning, 0 notes"
    assert (done.exit_code, done.output) == (0, f"{counts} (--verbose shows all)\n")
    line, summary = check(tmp_path, "--verbose").output.splitlines()
    assert line.startswith("warning")
    assert line.endswith(CHECKS["thermal-gate"].remedy)
    done = check(tmp_path, "--fail-on", "warning")
    assert (done.exit_code, done.output.splitlines()) == (1, [line, counts])
    assert summary == counts
    document = json.loads(check(tmp_path, "--json").output)
    (finding,) = document["findings"]
    assert document["runs"] == 40
    told = "check severity campaign cell run message evidence remedy"
    assert list(finding) == told.split()
    assert (finding["check"], finding["run"]) == ("thermal-gate", run.run_id)


@pytest.mark.parametrize(
    ("cell", "known"),
    [
        (None, True),
        ("dense/native/w", True),
        ("*/native/*", True),
        ("dense/container/w", False),
        ("*/*", False),
    ],
)
def test_an_acknowledgement_covers_its_cells_and_stays_visible(
    tmp_path: Path, cell: str | None, known: bool
) -> None:
    answer = Acknowledgement(check="thermal-gate", cell=cell, reason=SUMMER)
    hot(tmp_path, acknowledged=(answer,))
    assert (not reviewed(tmp_path).unacknowledged("warning")) is known
    done = check(tmp_path, "--fail-on", "warning", "--verbose")
    assert done.exit_code == (0 if known else 1)
    assert (f"acknowledged: {SUMMER}" in done.output) is known
    assert "started hot" in done.output


def test_damage_cannot_be_acknowledged_nor_an_error_in_cells_that_are_not_named(
    tmp_path: Path,
) -> None:
    runs = clean_runs(seed=7)
    faults.blocks(runs)
    answers = (
        Acknowledgement(check="checksum", reason=SUMMER),
        Acknowledgement(check="order-confound", cell="dense/native/w", reason=SUMMER),
    )
    faults.change_a_log(write(tmp_path, runs, acknowledged=answers))
    errors = [finding.check for finding in reviewed(tmp_path).unacknowledged("error")]
    assert errors == ["checksum", "order-confound"]


def test_quarantine_takes_a_run_out_and_undo_puts_it_back(tmp_path: Path) -> None:
    run, about = hot(tmp_path), tmp_path / "clean" / CAMPAIGN_FILE
    before = about.read_text()

    def quarantine(*options: str) -> Result:
        argv = ["quarantine", run.run_id, "--data", str(tmp_path), *options]
        return CliRunner().invoke(cli, argv)

    for refused in (["--reason", "x", "--undo"], [], ["--undo"], ["--reason", " "]):
        assert quarantine(*refused).exit_code != 0
    assert about.read_text() == before
    done = quarantine("--reason", "the fan\nwas blocked")
    last = f"{run.run_id} is excluded from the results of clean"
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, last)
    found = reviewed(tmp_path)
    assert found.excluded == {run.run_id: "quarantined: the fan was blocked"}
    assert found.findings == (), "a run that is out is not reviewed for its conditions"
    assert quarantine("--undo").exit_code == 0
    assert about.read_text() == before
