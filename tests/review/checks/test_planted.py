"""Real records, copies of them and files of real tools, in which nothing is planted: no alarm."""

from pathlib import Path

import pytest

from sparkpub.collect.importers import import_results
from sparkpub.collect.importers.base import Given
from sparkpub.review.checks import Finding, review
from sparkpub.review.dataset import load
from tests.review.checks.planted import DATA, PATTERNS, Copy
from tests.review.checks.planted_clients import IMPORTS

committed = pytest.mark.skipif(
    not all((DATA / name).is_dir() for name in PATTERNS),
    reason="the committed campaigns are not there",
)


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


NEW = {
    "time-consistency",
    "copied-evidence",
    "not-as-requested",
    "unequal-environments",
    "foreign-tenant",
    "warmed-up",
    "step",
    "foreign-telemetry",
    "memory-bookkeeping",
    "implausible-ratio",
    "unjudged",
    "metric-mismatch",
    "fact-mismatch",
    "order-confound",
}
"""Checks that the copy trips only where a fault is planted."""


@committed
def test_the_copy_as_it_is_trips_none_of_them(tmp_path: Path) -> None:
    Copy().write(tmp_path)
    assert not {finding.check for finding in review(load(tmp_path)).findings} & NEW


@pytest.mark.parametrize(
    "kind",
    ["aiperf", "guidellm", "sglang", "llama-benchy", "vllm-bench", "llama-bench"],
)
def test_no_real_result_of_a_client_contradicts_itself(
    kind: str, tmp_path: Path
) -> None:
    given = Given("c", environment="native", machine="h200", model="tiny-llama")
    import_results(kind, IMPORTS / kind, tmp_path, given)
    findings = list(review(load(tmp_path)).findings)
    assert not wrong(findings)
    assert "mixed-machines" not in {finding.check for finding in findings}


@pytest.mark.skipif(not DATA.is_dir(), reason="no campaigns are committed")
@pytest.mark.parametrize("name", PATTERNS)
def test_no_committed_run_contradicts_itself(name: str) -> None:
    if not (DATA / name).is_dir():
        pytest.skip(f"{name} is not committed")
    assert not wrong(list(review(load(DATA / name)).findings))


def wrong(findings: list[Finding]) -> list[str]:
    """What says that figures cannot be true, or are of another load than their label."""
    return [
        finding.message
        for finding in findings
        if finding.check == "inconsistent-report" and finding.severity != "info"
    ]
