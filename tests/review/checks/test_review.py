"""The review as a whole: a campaign with known faults, acknowledgements, quarantine, the commands."""

import hashlib
import json
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sparkpub.cli import cli
from sparkpub.record.campaign import Acknowledgement, Quarantine
from sparkpub.record.errors import UsageError
from sparkpub.record.record import Analysis, Machine, MetricValue
from sparkpub.record.store import CAMPAIGN_FILE, read_campaign, to_json
from sparkpub.review.checks import Finding, Review, review
from sparkpub.review.checks.quarantine import meant
from sparkpub.review.checks.registry import CHECKS
from sparkpub.review.dataset import load
from tests.review.checks import faults
from tests.review.checks.clean import (
    MACHINE,
    START,
    Run,
    clean_runs,
    write,
)


def reviewed(data: Path) -> Review:
    """The review without what the clean campaign cannot show: trtllm-bench keeps no times of single batches."""
    found = review(load(data, skip=lambda _: None))
    judged = tuple(
        finding
        for finding in found.findings
        if finding.evidence.get("about") != ["warmed-up"]
    )
    return replace(found, findings=judged)


def test_a_campaign_with_known_faults_has_exactly_these_findings(
    tmp_path: Path,
) -> None:
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
    assert [
        (item.severity, item.check, item.cells, item.run) for item in found.findings
    ] == [
        ("error", "checksum", ("dense/native/w",), native[7].run_id),
        ("error", "order-confound", both[::-1], None),
        ("warning", "exit-status", ("sparse/container/w",), sparse[0].run_id),
        ("warning", "unbalanced", ("sparse/container/w",), None),
        # Blocks of time called interleaved: every run but those of the last place began too early for its place.
        (
            "warning",
            "order-confound",
            ("dense/container/w", "sparse/native/w", "sparse/container/w"),
            None,
        ),
        (
            "warning",
            "outlier",
            ("dense/native/w",),
            native[5].run_id,
        ),  # by its throughput, and by its latency
        ("warning", "slow-clock", ("dense/native/w",), native[3].run_id),
        ("warning", "kernel-warning", ("sparse/container/w",), sparse[1].run_id),
    ]
    assert set(found.excluded) == {native[7].run_id, sparse[0].run_id}


def test_the_clean_campaign_passes_at_every_threshold(tmp_path: Path) -> None:
    write(tmp_path, clean_runs(seed=7))
    done = CliRunner().invoke(cli, ["check", str(tmp_path), "--fail-on", "warning"])
    assert (done.exit_code, done.output.splitlines()[-1] + "\n") == (
        0,
        "40 runs, 0 excluded: 0 errors, 0 warnings, 0 notes\n",
    )


@pytest.mark.parametrize(("used_gib", "problems"), [(200.0, 0), (1200.0, 1)])
def test_main_memory_is_held_against_main_memory(
    tmp_path: Path, used_gib: float, problems: int
) -> None:
    """A GPU of 119.7 GiB in a machine of 1,000: what the whole machine used may be more than the GPU has."""
    runs = clean_runs(seed=7)
    for run in runs:
        run.machine = MACHINE.model_copy(update={"memory_total_gib": 1000.0})
        run.change_metrics = lambda metrics: metrics.update(
            system_peak_gib=MetricValue(value=used_gib, unit="GiB", source="sampler")
        )
    write(tmp_path, runs)
    assert (
        len([item for item in reviewed(tmp_path).findings if item.check == "unit"])
        == problems
    )


SUMMER = "it was summer, and the room was hot"


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
    assert set(finding) == {
        "check",
        "severity",
        "campaign",
        "cell",
        "run",
        "message",
        "evidence",
        "remedy",
    }
    assert finding["remedy"].startswith("Lengthen cooldown:")
    assert (finding["check"], finding["campaign"], finding["run"]) == (
        "thermal-gate",
        "clean",
        run.run_id,
    )


def test_each_line_says_what_to_do_and_what_does_not_fail_is_counted(
    tmp_path: Path,
) -> None:
    hot(tmp_path)
    said = {
        words: CliRunner().invoke(cli, ["check", str(tmp_path), *words]).output
        for words in ((), ("--verbose",), ("--fail-on", "warning"))
    }
    assert said[()] == (
        "40 runs, 0 excluded: 0 errors, 1 warning, 0 notes (--verbose shows all)\n"
    )
    line, summary = said["--verbose",].splitlines()
    assert line.startswith("warning")
    assert line.endswith(CHECKS["thermal-gate"].remedy)
    assert said["--fail-on", "warning"].splitlines() == [line, summary]


def test_nobody_is_told_to_measure_what_others_published(published_data: Path) -> None:
    remedies = [finding.remedy for finding in reviewed(published_data).findings]
    assert "Keep the log of the tool" in " ".join(remedies)
    assert "easure" not in " ".join(remedies)


def test_check_fails_at_the_threshold_asked_for(tmp_path: Path) -> None:
    hot(tmp_path)
    assert (
        CliRunner()
        .invoke(cli, ["check", str(tmp_path), "--fail-on", "warning"])
        .exit_code
        == 1
    )


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
    hot(
        tmp_path,
        acknowledged=(Acknowledgement(check="thermal-gate", cell=cell, reason=SUMMER),),
    )
    found = reviewed(tmp_path)
    assert (found.unacknowledged("warning") == ()) is known
    options = ["--fail-on", "warning", "--verbose"]
    done = CliRunner().invoke(cli, ["check", str(tmp_path), *options])
    assert done.exit_code == (0 if known else 1)
    assert (f"acknowledged: {SUMMER}" in done.output) is known
    assert "started hot" in done.output


@pytest.mark.parametrize(
    ("reason", "severity"),
    [("it was high summer", None), ("high summer then", "warning")],
)
def test_an_acknowledgement_says_why(
    tmp_path: Path, reason: str, severity: str | None
) -> None:
    """Four words can say why, three cannot."""
    hot(tmp_path, acknowledged=(Acknowledgement(check="thermal-gate", reason=reason),))
    found = [
        finding
        for finding in reviewed(tmp_path).findings
        if finding.check == "acknowledgement"
    ]
    assert [finding.severity for finding in found] == ([severity] if severity else [])
    for finding in found:
        assert f"“{reason}”" in finding.message
        assert finding.cells == ("dense/native/w",)


def test_an_acknowledgement_of_what_nobody_found_is_said(tmp_path: Path) -> None:
    hot(
        tmp_path,
        acknowledged=(
            Acknowledgement(check="thermal-gate", reason=SUMMER),
            Acknowledgement(check="roofline", reason=SUMMER),
            Acknowledgement(check="outlier", cell="dense/native/w", reason="known"),
            Acknowledgement(check="roofline", cell="*/native/*", reason=SUMMER),
        ),
    )
    (finding,) = [
        finding
        for finding in reviewed(tmp_path).findings
        if finding.check == "acknowledgement"
    ]
    assert (finding.severity, finding.cells) == ("info", ())
    assert "not found in these cells: roofline, outlier. Correct" in finding.message


def test_an_acknowledgement_covers_several_cells_only_if_it_names_them_all(
    tmp_path: Path,
) -> None:
    runs = clean_runs(seed=7)
    faults.blocks(runs)
    write(
        tmp_path,
        runs,
        acknowledged=(
            Acknowledgement(
                check="order-confound", cell="dense/native/w", reason="known"
            ),
        ),
    )
    assert [finding.check for finding in reviewed(tmp_path).unacknowledged_errors] == [
        "order-confound"
    ]


def test_errors_of_meaning_void_what_rests_on_them(tmp_path: Path) -> None:
    runs = clean_runs(seed=7)
    faults.blocks(runs)
    write(tmp_path, runs)
    (found,) = reviewed(tmp_path).voiding("clean")
    assert found.check == "order-confound"
    assert "dense/native/w" in found.cells
    assert "sparse/native/w" not in found.cells


def test_quarantine_takes_a_run_out_and_undo_puts_it_back(tmp_path: Path) -> None:
    run = hot(tmp_path)
    before = (tmp_path / "clean" / CAMPAIGN_FILE).read_text()
    command = ["quarantine", run.run_id, "--data", str(tmp_path)]
    done = CliRunner().invoke(cli, [*command, "--reason", "the fan\nwas blocked"])
    assert (done.exit_code, done.output.splitlines()[-1] + "\n") == (
        0,
        f"{run.run_id} is excluded from the results of clean\n",
    )
    assert read_campaign(tmp_path / "clean").quarantined == (
        Quarantine(run=run.run_id, reason="the fan was blocked"),
    )
    found = reviewed(tmp_path)
    assert found.excluded == {run.run_id: "quarantined: the fan was blocked"}
    assert found.findings == (), "a run that is out is not reviewed for its conditions"
    assert CliRunner().invoke(cli, [*command, "--undo"]).exit_code == 0
    assert (tmp_path / "clean" / CAMPAIGN_FILE).read_text() == before


def test_a_run_is_named_as_a_person_finds_it(tmp_path: Path) -> None:
    run = hot(tmp_path)
    dataset = load(tmp_path)
    (file,) = [item.path for item in dataset.runs if item.run_id == run.run_id]
    for name in (
        run.run_id,
        str(file),
        file.name,
        f"https://x.example/campaigns/clean/runs/{run.run_id}/",
        run.run_id[:-1],
    ):
        assert meant(dataset, name) == run.run_id
    with pytest.raises(UsageError, match=r"runs begin with 'clean-'.*give one: clean-"):
        meant(dataset, "clean-")
    misspelt = run.run_id.replace("clean", "claen")
    with pytest.raises(UsageError, match=f"no run .*near are: .*{run.run_id}"):
        meant(dataset, misspelt)
    with pytest.raises(UsageError, match="give a run id as a record carries it"):
        meant(dataset, "")


@pytest.mark.parametrize("command", [["check", "--verbose"], ["stats"]])
def test_a_campaign_is_named_in_place_of_its_folder(
    tmp_path: Path, command: list[str]
) -> None:
    hot(tmp_path)
    shutil.copytree(tmp_path / "clean", tmp_path / "other")
    for path in (tmp_path / "other").glob("*.json"):
        path.write_text(path.read_text().replace('"clean', '"other'))
    called = [
        [*command, "other", "--data"],
        [*command, str(tmp_path / "other"), "--data"],
    ]
    both, *said = [
        CliRunner().invoke(cli, [*words, str(tmp_path)]).output
        for words in ([*command, "--data"], *called)
    ]
    assert said[0] == said[1]
    assert "other" in said[0]
    assert "clean" in both
    assert "clean " not in said[0]


@pytest.mark.parametrize(
    "options",
    [["--reason", "x", "--undo"], [], ["--undo"], ["--reason", " "]],
    ids=" ".join,
)
def test_quarantine_refuses_what_makes_no_sense(
    tmp_path: Path, options: list[str]
) -> None:
    run = hot(tmp_path)
    before = (tmp_path / "clean" / CAMPAIGN_FILE).read_text()
    assert (
        CliRunner()
        .invoke(cli, ["quarantine", run.run_id, "--data", str(tmp_path), *options])
        .exit_code
        != 0
    )
    assert (tmp_path / "clean" / CAMPAIGN_FILE).read_text() == before


def test_a_retry_that_succeeded_is_a_note(tmp_path: Path) -> None:
    runs = clean_runs(seed=7)
    faults.twice(runs)
    runs[-1].tok_s = faults.cell(runs)[3].tok_s
    faults.cell(runs)[3].status = "failed"
    write(tmp_path, runs)
    (finding,) = reviewed(tmp_path).findings
    assert (finding.check, finding.severity) == ("exit-status", "info")
    assert finding.message.endswith("A later attempt succeeded.")


def test_a_damaged_campaign_file_is_a_finding_without_a_path_of_this_machine(
    tmp_path: Path,
) -> None:
    folder = write(tmp_path, clean_runs(seed=7, iterations=1), iterations=1)
    (folder / CAMPAIGN_FILE).write_text("{")
    (finding,) = reviewed(tmp_path).findings
    assert (finding.check, finding.severity, finding.campaign) == (
        "schema",
        "error",
        "clean",
    )
    assert "clean/campaign.json" in finding.message
    assert str(tmp_path) not in finding.message


def false_alarms(folder: Path, seeds: range) -> list[tuple[int, Finding]]:
    alarms = []
    for seed in seeds:
        data = folder / str(seed)
        write(data, clean_runs(seed))
        alarms += [
            (seed, finding)
            for finding in reviewed(data).findings
            if finding.severity != "info"
        ]
    return alarms


def test_few_clean_campaigns_raise_an_alarm(tmp_path: Path) -> None:
    assert len({seed for seed, _ in false_alarms(tmp_path, range(30))}) <= 2


@pytest.mark.slow
def test_at_most_one_clean_campaign_in_twenty_raises_an_alarm(tmp_path: Path) -> None:
    assert len({seed for seed, _ in false_alarms(tmp_path, range(1000))}) <= 50


@pytest.mark.parametrize("iterations", [0, 1, 2, 3])
@pytest.mark.parametrize("declared", [True, False])
def test_small_campaigns_are_reviewed_and_called_small(
    tmp_path: Path, iterations: int, declared: bool
) -> None:
    folder = write(
        tmp_path,
        clean_runs(seed=7, iterations=iterations),
        iterations=max(1, iterations),
    )
    if not declared:
        info = read_campaign(folder).model_copy(update={"matrix": None})
        (folder / CAMPAIGN_FILE).write_text(to_json(info))
    checks = [finding.check for finding in reviewed(tmp_path).findings]
    if iterations == 0:
        assert checks == (["missing-cell"] if declared else [])
    else:
        assert checks == ["small-sample"]


def test_a_single_run_with_deviations_has_a_spread(tmp_path: Path) -> None:
    told = {"repetitions": 3, "deviation": 0.5, "divisor": "n"}
    folder = write(tmp_path, clean_runs(seed=7, iterations=1), iterations=1)
    for path in folder.glob("*.json"):
        record = json.loads(path.read_text())
        if "run_id" in record:
            record["spreads"] = {"output_throughput_tok_s": told}
            path.write_text(json.dumps(record))
    (small,) = (
        finding
        for finding in reviewed(tmp_path).findings
        if finding.check == "small-sample"
    )
    assert "repetitions within a run" in small.message
    assert "nothing can be said" not in small.message


def test_without_a_matrix_cells_are_held_against_each_other(tmp_path: Path) -> None:
    runs = clean_runs(seed=7)
    runs.remove(faults.cell(runs)[9])
    folder = write(tmp_path, runs)
    (folder / CAMPAIGN_FILE).write_text(
        to_json(read_campaign(folder).model_copy(update={"matrix": None}))
    )
    found = {finding.check: finding for finding in reviewed(tmp_path).findings}
    assert set(found) == {"unbalanced", "time-consistency"}
    assert found["time-consistency"].message.startswith("1 of 40 places")
    finding = found["unbalanced"]
    assert finding.cell == "dense/native/w"
    assert "9 good runs and other cells have 10" in finding.message


@pytest.mark.parametrize(
    ("kept", "words"),
    [((1, 1), "have 1 good run each and"), ((4, 6), "have 4 to 6 good runs and")],
)
def test_cells_short_of_runs_are_told_together(
    tmp_path: Path, kept: tuple[int, int], words: str
) -> None:
    runs = clean_runs(seed=7)
    cells = [faults.cell(runs), faults.cell(runs, environment="container")]
    for number, cell in zip(kept, cells, strict=True):
        for run in cell[number:]:
            runs.remove(run)
    write(tmp_path, runs)
    (finding,) = [
        item for item in reviewed(tmp_path).findings if item.check == "unbalanced"
    ]
    assert f"dense/native/w and dense/container/w {words}" in finding.message


def analysis_changed(tmp_path: Path, **fields: Any) -> Review:
    """A campaign of which the first run was measured under another declaration of the analysis."""
    runs = clean_runs(seed=7)
    runs[0].analysis = Analysis(**({"primary": (), "margin_percent": 1.0} | fields))
    write(tmp_path, runs)
    return reviewed(tmp_path)


def test_a_margin_that_changed_after_a_run_was_chosen_afterwards(
    tmp_path: Path,
) -> None:
    found = analysis_changed(tmp_path, margin_percent=0.5)
    (finding,) = [item for item in found.findings if item.check == "not-as-requested"]
    assert finding.severity == "error"
    assert "a margin of 0.5 %, and 1 % now" in finding.message
    assert not found.dataset.campaigns["clean"].margin_declared


def test_primary_metrics_that_changed_after_a_run_are_found(tmp_path: Path) -> None:
    found = analysis_changed(tmp_path, primary=("output_throughput_tok_s",))
    (finding,) = [item for item in found.findings if item.check == "not-as-requested"]
    words = "primary metrics were output_throughput_tok_s, and are none now"
    assert words in finding.message
    assert found.dataset.campaigns["clean"].margin_declared


def test_declared_repeats_are_not_duplicates_and_count(tmp_path: Path) -> None:
    runs = clean_runs(seed=7)
    faults.twice(runs)
    runs[-1].fields = {"repeat_of": faults.cell(runs)[3].run_id}
    write(tmp_path, runs)
    found = reviewed(tmp_path)
    assert (found.findings, found.excluded) == ((), {})


def test_a_truncated_log_is_not_held_against_its_figures(tmp_path: Path) -> None:
    runs = clean_runs(seed=7)
    folder = write(tmp_path, runs)
    path = next(folder.glob("native_dense_*iter04*.json"))
    document = json.loads(path.read_text())
    for item in document["evidence"]:
        if item["role"] == "log":
            content = (folder / item["path"]).read_bytes()[:60]
            (folder / item["path"]).write_bytes(content)
            item |= {
                "bytes": 60,
                "sha256": hashlib.sha256(content).hexdigest(),
                "truncated": True,
            }
    path.write_text(json.dumps(document))
    assert reviewed(tmp_path).findings == ()


def test_one_metric_as_a_power_of_another_is_one_measurement(tmp_path: Path) -> None:
    """Without queueing, latency is concurrency × output tokens / throughput: the exponent is −1."""
    runs = clean_runs(seed=7)
    for run in runs:
        run.p50_factor = 1.01
    write(tmp_path, runs)
    (finding,) = reviewed(tmp_path).findings
    assert (finding.check, finding.evidence["form"]) == ("dependent-metrics", "power")
    assert finding.evidence["slope"] == pytest.approx(-1, abs=1e-6)


def observing(runs: list[Run], **shown: str) -> None:
    """Make each run of a model show the configuration file of that sum."""
    for run in runs:
        if run.model in shown:
            run.shown = {"config_sha256": shown[run.model] * 64}


def test_two_names_with_one_configuration_are_one_model(tmp_path: Path) -> None:
    runs = clean_runs(seed=7)
    observing(runs, dense="a", sparse="a")
    write(tmp_path, runs)
    (finding,) = reviewed(tmp_path).findings
    assert (finding.check, finding.severity, len(finding.cells)) == (
        "identity",
        "error",
        4,
    )
    assert finding.message.startswith("dense and sparse are names for one model")


def test_one_name_with_two_configurations_is_two_models(tmp_path: Path) -> None:
    runs = clean_runs(seed=7)
    observing(runs, dense="a", sparse="b")
    faults.cell(runs)[3].shown = {"config_sha256": "c" * 64}
    write(tmp_path, runs)
    (finding,) = reviewed(tmp_path).findings
    assert finding.message.startswith("Runs of dense used different models")
    assert finding.cells == ("dense/native/w", "dense/container/w")


def test_damage_cannot_be_acknowledged(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        clean_runs(seed=7),
        acknowledged=(Acknowledgement(check="checksum", reason="so what"),),
    )
    faults.change_a_log(folder)
    assert [finding.check for finding in reviewed(tmp_path).unacknowledged_errors] == [
        "checksum"
    ]


@pytest.mark.parametrize(
    "check",
    ["metric-mismatch", "missing-report", "missing-log", "exit-status", "outlier"],
)
def test_a_quarantined_run_is_not_accused_again(tmp_path: Path, check: str) -> None:
    runs = clean_runs(seed=7)
    next(fault for fault in faults.FAULTS if fault.check == check).plant(runs)
    run = faults.cell(runs)[3].run_id
    write(tmp_path, runs, quarantined=(Quarantine(run=run, reason="known"),))
    found = reviewed(tmp_path)
    assert check not in {finding.check for finding in found.findings}
    assert found.excluded == {run: "quarantined: known"}


@pytest.mark.parametrize(
    ("shown", "kv_bytes", "agrees"),
    [
        ({}, 28_672, True),
        ({"kv_cache_dtype": "fp8"}, 14_336, True),  # half the bytes of bfloat16
        ({"dtype": "float32"}, 57_344, True),
        ({"kv_cache_dtype": "auto"}, 14_336, False),
        ({"kv_cache_dtype": "fp8"}, 28_672, False),
    ],
)
def test_bytes_are_compared_in_the_number_format_that_ran(
    tmp_path: Path, shown: dict[str, str], kv_bytes: int, agrees: bool
) -> None:
    """DENSE has 28,672 bytes of keys and values per token in bfloat16, and 6.05 GiB of weights."""
    runs = clean_runs(seed=7)
    for run in runs:
        if run.model == "dense":
            run.shown, run.kv_bytes = shown, kv_bytes
            run.weights_gib = 12.1 if "dtype" in shown else 6.05
    write(tmp_path, runs)
    assert (
        "identity" not in {finding.check for finding in reviewed(tmp_path).findings}
    ) is agrees


def test_a_quiet_campaign_on_a_processor_has_no_warning(tmp_path: Path) -> None:
    """No GPU, an unknown machine, and memory near zero that varies by half: 0.06 to 0.12 GiB."""
    runs = clean_runs(seed=7, iterations=5)
    processor = Machine(id="m1", kind=None, memory_total_gib=125.0, cpu_count=16)
    for number, run in enumerate(runs):
        near_zero = MetricValue(
            value=0.06 + 0.02 * (number % 4), unit="GiB", source="sampler"
        )
        run.machine = processor
        run.roles = ("log", "report")
        run.change_metrics = lambda metrics, found=near_zero: metrics.update(
            system_peak_gib=found
        )
    write(tmp_path, runs, iterations=5)
    findings = reviewed(tmp_path).findings
    assert {finding.check for finding in findings} == {"telemetry-gap"}


@pytest.mark.parametrize(("spread_gib", "warned"), [(0.02, False), (0.4, True)])
def test_variation_near_zero_is_judged_by_its_size(
    tmp_path: Path, spread_gib: float, warned: bool
) -> None:
    """0.3 GiB ± 7 % is twenty MiB, which no reader minds; ± 133 % is not."""
    runs = clean_runs(seed=7)
    for number, run in enumerate(runs):
        value = 0.3 + spread_gib * (-1) ** (number // 4)
        found = MetricValue(value=max(0.0, value), unit="GiB", source="sampler")
        run.change_metrics = lambda metrics, found=found: metrics.update(
            system_peak_gib=found
        )
    write(tmp_path, runs)
    assert (
        "high-variation" in {finding.check for finding in reviewed(tmp_path).findings}
    ) is warned


def test_environments_that_hardly_took_turns_are_blocks(
    tmp_path: Path,
) -> None:
    """Nine of ten native runs before the first of the container, and one after the last: 90 of 100 pairs."""
    runs = clean_runs(seed=7)
    native = faults.cell(runs)
    for index, run in enumerate(
        [*native[:9], *faults.cell(runs, environment="container"), native[9]]
    ):
        run.started = START + timedelta(days=1, minutes=10 * index)
    write(tmp_path, runs)
    (error,) = [
        finding
        for finding in reviewed(tmp_path).findings
        if finding.severity == "error"
    ]
    (comparison,) = error.evidence["comparisons"]
    assert error.check == "order-confound"
    assert comparison["share"] == 0.9
    assert comparison["switches"] == 2


def test_one_finding_is_raised_for_one_cause_in_many_runs(tmp_path: Path) -> None:
    runs = clean_runs(seed=7)
    for run in [*faults.cell(runs)[:3], *faults.cell(runs, "sparse")[:2]]:
        run.gates = (faults.HOT,)
    write(tmp_path, runs)
    (finding,) = reviewed(tmp_path).findings
    assert (finding.check, finding.cells, len(finding.runs)) == (
        "thermal-gate",
        ("dense/native/w", "sparse/native/w"),
        5,
    )
    assert finding.message.startswith(
        "5 runs of dense/native/w and sparse/native/w started hot. For example iteration 1"
    )
