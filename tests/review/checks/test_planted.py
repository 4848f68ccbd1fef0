"""Faults planted in copies of real records: the check that finds each, and those that nothing finds."""

from pathlib import Path

import pytest

from sparkpub.review.checks import CHECKS, Finding, review
from sparkpub.review.dataset import load
from tests.review.checks.planted import DATA, PATTERNS, PLANTED, Copy, Planted
from tests.review.checks.planted_unread import UNREAD

pytestmark = pytest.mark.skipif(
    not all((DATA / name).is_dir() for name in PATTERNS),
    reason="the committed campaigns are not there",
)


def found(copy: Copy, data: Path) -> list[Finding]:
    copy.write(data)
    return list(review(load(data)).findings)


def signs(findings: list[Finding]) -> set[tuple[str, str, str]]:
    """What a finding is about, without its figures; known ones are those of the copy as it is."""
    return {
        (
            finding.check,
            finding.severity,
            str(finding.evidence.get("what", finding.evidence.get("metric"))),
        )
        for finding in findings
    }


@pytest.fixture(scope="module")
def untouched(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, set[tuple[str, str, str]]]:
    return {
        name: signs(found(Copy(name), tmp_path_factory.mktemp("untouched")))
        for name in PATTERNS
    }


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


def test_the_copy_as_it_is_trips_none_of_them(
    untouched: dict[str, set[tuple[str, str, str]]],
) -> None:
    assert not {check for check, _, _ in untouched["h200"]} & NEW


@pytest.mark.parametrize("fault", [*PLANTED, *UNREAD], ids=lambda fault: fault.what)
def test_a_planted_fault_is_found(
    tmp_path: Path, fault: Planted, untouched: dict[str, set[tuple[str, str, str]]]
) -> None:
    copy = Copy(fault.campaign)
    fault.plant(copy)
    findings = found(copy, tmp_path)
    fresh = signs(findings) - untouched[fault.campaign]
    if fault.check is None:
        assert {check for check, severity, _ in fresh if severity == "error"} == set()
        assert fault.why
    else:
        assert fault.check in {check for check, _, _ in fresh}
    for finding in findings:
        assert finding.severity in CHECKS[finding.check].severities
        assert finding.message.endswith(".")


def test_faults_that_nothing_finds_are_few() -> None:
    for faults in (PLANTED, UNREAD):
        assert sum(fault.check is None for fault in faults) <= 0.1 * len(faults)
