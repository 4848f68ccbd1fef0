"""The published runs under review: what a hostile reader finds comes out without being told where to look.

Expected figures are those of the study's own records, worked out apart from sparkpub.
"""

from pathlib import Path
from typing import Any

import pytest

from sparkpub.review.checks import Finding, Review

DATA = Path(__file__).parents[2] / "data" / "comprehensive"
CELLS = {
    f"{model}/{place}/throughput"
    for model in ("deepseek", "gpt120b", "qwen72b")
    for place in ("native", "container")
}


def named(found: Review, check: str, **evidence: Any) -> list[Finding]:
    return [
        finding
        for finding in found.findings
        if finding.check == check
        and finding.campaign == "phase1"
        and all(finding.evidence.get(name) == value for name, value in evidence.items())
    ]


def test_the_repeated_iteration_is_found_and_the_first_record_counts(
    committed: Review,
) -> None:
    (finding,) = named(committed, "duplicate-iteration")
    assert (finding.severity, finding.cell) == ("error", "gpt120b/native/throughput")
    assert len(finding.runs) == 4
    left_out = [run for run in committed.excluded if run.startswith("phase1-")]
    assert sorted(left_out) == sorted(finding.runs)[1:]


def test_thirteen_records_of_ten_iterations_are_told_once(committed: Review) -> None:
    assert named(committed, "unbalanced") == []


def test_missing_logs_take_nothing_out(committed: Review) -> None:
    (log,) = named(committed, "missing-log")
    assert (log.severity, log.cell, len(log.runs)) == ("warning", None, 63)
    assert not set(committed.excluded) & {
        run for run in log.runs if "iter01" not in run
    }


def test_kv_cache_restates_peak_memory(committed: Review) -> None:
    """kv = 0.9 × (119.708 − peak): fitted to the records with numpy.polyfit; 0.9 × 119.708 is 107.737."""
    (finding,) = named(committed, "dependent-metrics")
    found = finding.evidence
    assert (found["x"], found["y"]) == ("peak_memory_gib", "kv_cache_gib")
    line = "= −0.9000 × Peak memory (engine-profiled) + 107.736 GiB"
    assert line in finding.message
    assert set(finding.cells) == CELLS


def test_three_models_have_one_set_of_numbers(committed: Review) -> None:
    findings = named(committed, "same-numbers")
    assert {cell for finding in findings for cell in finding.cells} == CELLS
    for finding in findings:
        assert finding.severity == "error"
        # 142.9 and 14.14 GB.
        assert "10.1 times the bytes" in finding.message


def test_seventy_two_billion_parameters_do_not_fit(committed: Review) -> None:
    """72,706,203,648 parameters × 2 bytes are 135.4 GiB; the machine has 119.64."""
    (finding,) = named(committed, "does-not-fit")
    assert set(finding.cells) == {
        "qwen72b/native/throughput",
        "qwen72b/container/throughput",
    }
    assert "135.4 GiB" in finding.message
    assert "119.6 GiB" in finding.message


def test_the_same_rows_need_eight_times_the_bandwidth(committed: Review) -> None:
    """119.53 tok/s at batch 8 are 14.9 steps/s of 142.9 GB each."""
    (error,) = [
        finding
        for finding in named(committed, "roofline")
        if finding.severity == "error"
    ]
    assert set(error.cells) == {
        "qwen72b/native/throughput",
        "qwen72b/container/throughput",
    }
    first = error.runs[0]
    assert error.evidence["details"][first] == (
        "2,124 GB/s, and the machine has 273 GB/s"
    )


def test_drift_is_found_where_there_is_drift_and_nowhere_else(
    committed: Review,
) -> None:
    (finding,) = [finding for finding in named(committed, "drift") if finding.cell]
    assert (finding.cell, finding.evidence["metric"]) == (
        "deepseek/native/throughput",
        "output_throughput_tok_s",
    )


def test_the_first_container_run_of_each_block_stands_out(committed: Review) -> None:
    """Highest of ten in each of three cells: two-sided, 2 of 10³ arrangements."""
    (finding,) = [
        finding for finding in named(committed, "drift") if finding.cell is None
    ]
    assert set(finding.cells) == {cell for cell in CELLS if "container" in cell}
    # Corrected over two metrics of the native cells, of the container's and of all.
    assert finding.evidence["p_adjusted"] == pytest.approx(6 * 0.002)
    assert all("container" in run and "iter01" in run for run in finding.runs)


def test_environments_are_confounded_with_order(committed: Review) -> None:
    """All native runs before the first of the container."""
    (finding,) = named(committed, "order-confound")
    assert set(finding.cells) == CELLS
    assert "of native and container did not take turns" in finding.message


def test_what_ran_was_never_observed(committed: Review) -> None:
    (finding,) = named(committed, "identity")
    assert (finding.severity, finding.cell, len(finding.runs)) == ("warning", None, 63)


def test_container_kv_cache_is_not_within_five_percent(committed: Review) -> None:
    """That of gpt120b is, but for its first run, which stands out."""
    (finding,) = named(committed, "high-variation", metric="kv_cache_gib")
    assert finding.evidence["cv_percent"] == pytest.approx(
        {
            "deepseek/container/throughput": 8.8,
            "qwen72b/container/throughput": 19.4,
        },
        abs=0.05,
    )


def test_two_versions_of_the_collector_stand_behind_one_campaign(
    committed: Review,
) -> None:
    """The records name commits 0eaae58 and f85220f."""
    (finding,) = [
        item
        for item in committed.findings
        if item.campaign == "h200" and item.check == "mixed-machines"
    ]
    assert (finding.severity, finding.evidence["what"], len(finding.cells)) == (
        "info",
        "collector version",
        10,
    )
    assert finding.evidence["values"] == ["0.1.0 (0eaae58) and 0.1.0 (f85220f)"]


def test_every_error_is_acknowledged_and_still_voids_what_rests_on_it(
    committed: Review,
) -> None:
    assert [
        finding
        for finding in committed.unacknowledged("error")
        if finding.campaign == "phase1"
    ] == []
    void = {
        "does-not-fit",
        "roofline",
        "same-numbers",
        "order-confound",
        "duplicate-iteration",
    }
    assert {finding.check for finding in committed.voiding("phase1")} == void


def test_findings_are_found_from_run_and_cell(committed: Review) -> None:
    run = "phase1-container_qwen72b_throughput_iter01_20251109T091813"
    assert {"missing-log", "identity", "drift"} <= {
        finding.check for finding in committed.by_run[run]
    }
    cell = committed.by_cell["phase1", "qwen72b/container/throughput"]
    assert {"does-not-fit", "same-numbers", "missing-log", "drift"} <= {
        finding.check for finding in cell
    }
    assert "duplicate-iteration" not in {finding.check for finding in cell}
