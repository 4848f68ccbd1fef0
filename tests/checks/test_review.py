"""The review as a whole: a campaign with known faults, acknowledgements, quarantine, the commands."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sparkpub.campaign import Acknowledgement, Quarantine
from sparkpub.checks import Finding, Review, review
from sparkpub.cli import cli
from sparkpub.dataset import load
from sparkpub.store import CAMPAIGN_FILE, read_campaign
from tests.checks import faults
from tests.checks.clean import Run, clean_runs, write


def reviewed(data: Path) -> Review:
    return review(load(data, skip=lambda _: None))


def test_a_campaign_with_known_faults_has_exactly_these_findings(tmp_path: Path) -> None:
    runs = clean_runs(seed=7)
    native = faults.cell(runs)
    native[3].columns = {"gpu_clock_sm_mhz": "611"}
    native[5].tok_s *= 0.95
    sparse = faults.cell(runs, "sparse", "container")
    sparse[0].status = "timeout"
    sparse[1].events = (faults.XID,)
    faults.blocks(runs)
    folder = write(tmp_path, runs)
    log = folder / f"{native[7].run_id}.log"
    log.write_bytes(log.read_bytes() + b"\n")
    found = reviewed(tmp_path)
    both = "dense/native/w", "dense/container/w"
    assert [(item.severity, item.check, item.cells, item.run) for item in found.findings] == [
        ("error", "checksum", ("dense/native/w",), native[7].run_id),
        ("error", "order-confound", both[::-1], None),
        ("warning", "exit-status", ("sparse/container/w",), sparse[0].run_id),
        ("warning", "unbalanced", ("sparse/container/w",), None),
        ("warning", "outlier", ("dense/native/w",), native[5].run_id),  # by its throughput
        ("warning", "outlier", ("dense/native/w",), native[5].run_id),  # and by its latency
        ("warning", "slow-clock", ("dense/native/w",), native[3].run_id),
        ("warning", "kernel-warning", ("sparse/container/w",), sparse[1].run_id),
    ]
    assert set(found.excluded) == {native[7].run_id, sparse[0].run_id}


def test_the_clean_campaign_passes_at_every_threshold(tmp_path: Path) -> None:
    write(tmp_path, clean_runs(seed=7))
    done = CliRunner().invoke(cli, ["check", str(tmp_path), "--fail-on", "warning"])
    assert (done.exit_code, done.output) == (
        0,
        "40 runs, 0 of them out of the figures: 0 errors, 0 warnings, 0 notes\n",
    )


def hot(tmp_path: Path, **fields: object) -> Run:
    runs = clean_runs(seed=7)
    run = faults.cell(runs)[3]
    run.gates = (faults.HOT,)
    write(tmp_path, runs, **fields)
    return run


def test_check_prints_json_and_nothing_else(tmp_path: Path) -> None:
    run = hot(tmp_path)
    done = CliRunner().invoke(cli, ["check", str(tmp_path), "--json"])
    assert done.exit_code == 0, "a warning does not fail unless asked to"
    document = json.loads(done.output)
    assert document["runs"] == 40
    (finding,) = document["findings"]
    assert set(finding) == {"check", "severity", "campaign", "cell", "run", "message", "evidence"}
    assert (finding["check"], finding["campaign"], finding["run"]) == ("thermal-gate", "clean", run.run_id)


def test_check_fails_at_the_threshold_asked_for(tmp_path: Path) -> None:
    hot(tmp_path)
    assert CliRunner().invoke(cli, ["check", str(tmp_path), "--fail-on", "warning"]).exit_code == 1


def test_annotations_name_the_file_and_cannot_be_broken_out_of(tmp_path: Path) -> None:
    run = hot(tmp_path)
    done = CliRunner().invoke(cli, ["check", str(tmp_path), "--github"])
    (line,) = done.output.splitlines()
    assert line.startswith(f"::warning file={tmp_path}/clean/native_dense_w_iter04_")
    assert ",title=thermal-gate::This run started hot" in line
    assert run.run_id not in line.split("::")[1]


@pytest.mark.parametrize(
    ("cell", "known"),
    [(None, True), ("dense/native/w", True), ("*/native/*", True), ("dense/container/w", False), ("*/*", False)],
)
def test_an_acknowledgement_covers_its_cells_and_stays_visible(tmp_path: Path, cell: str | None, known: bool) -> None:
    hot(tmp_path, acknowledged=(Acknowledgement(check="thermal-gate", cell=cell, reason="summer"),))
    found = reviewed(tmp_path)
    assert (found.unacknowledged("warning") == ()) is known
    done = CliRunner().invoke(cli, ["check", str(tmp_path), "--fail-on", "warning"])
    assert done.exit_code == (0 if known else 1)
    assert ("acknowledged: summer" in done.output) is known
    assert "started hot" in done.output


def test_an_acknowledgement_covers_several_cells_only_if_it_names_them_all(tmp_path: Path) -> None:
    runs = clean_runs(seed=7)
    faults.blocks(runs)
    write(
        tmp_path, runs, acknowledged=(Acknowledgement(check="order-confound", cell="dense/native/w", reason="known"),)
    )
    assert [finding.check for finding in reviewed(tmp_path).unacknowledged_errors] == ["order-confound"]


def test_errors_of_meaning_void_their_cells_and_no_others(tmp_path: Path) -> None:
    runs = clean_runs(seed=7)
    faults.blocks(runs)
    write(tmp_path, runs)
    found = reviewed(tmp_path)
    assert [finding.check for finding in found.voiding("clean", ["dense/native/w"])] == ["order-confound"]
    assert found.voiding("clean", ["sparse/native/w"]) == ()


def test_quarantine_takes_a_run_out_and_undo_puts_it_back(tmp_path: Path) -> None:
    run = hot(tmp_path)
    before = (tmp_path / "clean" / CAMPAIGN_FILE).read_text()
    command = ["quarantine", run.run_id, "--data", str(tmp_path)]
    done = CliRunner().invoke(cli, [*command, "--reason", "the fan\nwas blocked"])
    assert (done.exit_code, done.output) == (0, f"{run.run_id} is out of the figures of clean\n")
    assert read_campaign(tmp_path / "clean").quarantined == (Quarantine(run=run.run_id, reason="the fan was blocked"),)
    found = reviewed(tmp_path)
    assert found.excluded == {run.run_id: "quarantined: the fan was blocked"}
    assert found.findings == (), "a run that is out is not reviewed for its conditions"
    assert CliRunner().invoke(cli, [*command, "--undo"]).exit_code == 0
    assert (tmp_path / "clean" / CAMPAIGN_FILE).read_text() == before


@pytest.mark.parametrize("options", [["--reason", "x", "--undo"], [], ["--undo"], ["--reason", " "]], ids=" ".join)
def test_quarantine_refuses_what_makes_no_sense(tmp_path: Path, options: list[str]) -> None:
    run = hot(tmp_path)
    before = (tmp_path / "clean" / CAMPAIGN_FILE).read_text()
    assert CliRunner().invoke(cli, ["quarantine", run.run_id, "--data", str(tmp_path), *options]).exit_code != 0
    assert (tmp_path / "clean" / CAMPAIGN_FILE).read_text() == before


def test_a_review_is_made_once_for_a_dataset(tmp_path: Path) -> None:
    write(tmp_path, clean_runs(seed=7, iterations=2), iterations=2)
    dataset = load(tmp_path)
    assert review(dataset) is review(dataset)
    assert review(load(tmp_path)) is not review(dataset)


def test_a_retry_that_succeeded_is_a_note(tmp_path: Path) -> None:
    runs = clean_runs(seed=7)
    faults.twice(runs)
    runs[-1].tok_s = faults.cell(runs)[3].tok_s
    faults.cell(runs)[3].status = "failed"
    write(tmp_path, runs)
    (finding,) = reviewed(tmp_path).findings
    assert (finding.check, finding.severity) == ("exit-status", "info")
    assert finding.message.endswith("A later attempt succeeded.")


def test_a_damaged_campaign_file_is_a_finding_without_a_path_of_this_machine(tmp_path: Path) -> None:
    folder = write(tmp_path, clean_runs(seed=7, iterations=1), iterations=1)
    (folder / CAMPAIGN_FILE).write_text("{")
    (finding,) = reviewed(tmp_path).findings
    assert (finding.check, finding.severity, finding.campaign) == ("schema", "error", "clean")
    assert "clean/campaign.json" in finding.message
    assert str(tmp_path) not in finding.message


def false_alarms(folder: Path, seeds: range) -> list[tuple[int, Finding]]:
    alarms = []
    for seed in seeds:
        data = folder / str(seed)
        write(data, clean_runs(seed))
        alarms += [(seed, finding) for finding in reviewed(data).findings if finding.severity != "info"]
    return alarms


def test_few_clean_campaigns_raise_an_alarm(tmp_path: Path) -> None:
    assert len({seed for seed, _ in false_alarms(tmp_path, range(60))}) <= 3


@pytest.mark.slow
def test_at_most_one_clean_campaign_in_twenty_raises_an_alarm(tmp_path: Path) -> None:
    assert len({seed for seed, _ in false_alarms(tmp_path, range(1000))}) <= 50
