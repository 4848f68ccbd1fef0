"""The published runs under review: what a hostile reader finds comes out without being told where to look."""

from pathlib import Path

import pytest

from sparkpub.checks import Finding, Review, review
from sparkpub.dataset import load

DATA = Path(__file__).parents[2] / "data" / "comprehensive"


@pytest.fixture(scope="module")
def phase1() -> Review:
    return review(load(DATA))


def named(found: Review, check: str) -> list[Finding]:
    return [finding for finding in found.findings if finding.check == check and finding.campaign == "phase1"]


def test_the_repeated_iteration_is_found_and_the_first_record_counts(phase1: Review) -> None:
    (finding,) = named(phase1, "duplicate-iteration")
    assert (finding.severity, finding.cell) == ("error", "gpt120b/native/throughput")
    assert finding.evidence["iteration"] == 1
    assert len(finding.runs) == 4
    assert finding.evidence["counted"] == min(finding.runs)
    assert sorted(phase1.excluded) == sorted(finding.runs)[1:]


def test_thirteen_runs_are_not_ten(phase1: Review) -> None:
    (finding,) = named(phase1, "unbalanced")
    assert (finding.cell, finding.evidence["good"], finding.evidence["declared"]) == (
        "gpt120b/native/throughput",
        13,
        10,
    )


def test_missing_logs_and_latency_take_nothing_out(phase1: Review) -> None:
    (log,) = named(phase1, "missing-log")
    assert (log.severity, log.cell, len(log.runs)) == ("warning", None, 63)
    (latency,) = named(phase1, "null-metric")
    assert latency.evidence["metric"] == "request_latency_mean_ms"
    assert not set(phase1.excluded) & {run for run in log.runs if "iter01" not in run}
