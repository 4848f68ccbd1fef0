"""Faults planted in copies of real records and in files of real tools: the check that finds each."""

from pathlib import Path

import pytest

from sparkpub.collect.importers import import_results
from sparkpub.collect.importers.base import Given
from sparkpub.review.checks import CHECKS, Finding, review
from sparkpub.review.dataset import load
from tests.review.checks.planted import DATA, PATTERNS, PLANTED, Planted
from tests.review.checks.planted_clients import CLIENTS, IMPORTS, ImportFault
from tests.review.checks.planted_common import COMMON
from tests.review.checks.planted_unread import UNREAD

Signs = set[tuple[str, str, str]]
"""What findings are about, without their figures."""
committed = pytest.mark.skipif(
    not all((DATA / name).is_dir() for name in PATTERNS),
    reason="the committed campaigns are not there",
)


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


def found(fault: Planted | ImportFault, data: Path, *, planted: bool) -> list[Finding]:
    """What the review says of a fault's campaign, as it is or with the fault."""
    fault.bring(data, planted=planted)
    return list(review(load(data)).findings)


def signs(findings: list[Finding]) -> Signs:
    return {
        (
            finding.check,
            finding.severity,
            str(finding.evidence.get("what", finding.evidence.get("metric"))),
        )
        for finding in findings
    }


@pytest.fixture(scope="module")
def untouched() -> dict[str, Signs]:
    """What is said of the campaigns as they are, by the name of each: made where it is first asked for."""
    return {}


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
    as_it_is = Planted("nothing", None, lambda _: None)
    found_there = signs(found(as_it_is, tmp_path, planted=False))
    assert not {check for check, _, _ in found_there} & NEW


@pytest.mark.parametrize(
    "fault", [*PLANTED, *UNREAD, *CLIENTS, *COMMON], ids=lambda fault: fault.what
)
def test_a_planted_fault_is_found(
    tmp_path: Path, fault: Planted | ImportFault, untouched: dict[str, Signs]
) -> None:
    if not fault.is_possible:
        pytest.skip("the committed campaigns are not there")
    if fault.of not in untouched:
        as_it_is = found(fault, tmp_path / "as-is", planted=False)
        untouched[fault.of] = signs(as_it_is)
    findings = found(fault, tmp_path / "planted", planted=True)
    fresh = signs(findings) - untouched[fault.of]
    if fault.check is None:
        assert {check for check, severity, _ in fresh if severity == "error"} == set()
    else:
        assert fault.check in {check for check, _, _ in fresh}
    for finding in findings:
        assert finding.severity in CHECKS[finding.check].severities
        assert finding.message.endswith(".")


def test_faults_that_nothing_finds_are_few_and_explained() -> None:
    for faults in (PLANTED, UNREAD):
        unfound = [fault for fault in faults if fault.check is None]
        assert len(unfound) <= 0.1 * len(faults)
        assert all(fault.why for fault in unfound)


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
