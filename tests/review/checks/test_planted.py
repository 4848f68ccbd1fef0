"""Faults planted in copies of real records: the check that finds each, and those that nothing finds."""

from pathlib import Path

import pytest

from sparkpub.review.checks import CHECKS, Finding, review
from sparkpub.review.dataset import load
from tests.review.checks.planted import PLANTED, SOURCE, Copy, Planted

pytestmark = pytest.mark.skipif(
    not SOURCE.is_dir(), reason="the committed campaign is not there"
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
def untouched(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, str, str]]:
    return signs(found(Copy(), tmp_path_factory.mktemp("untouched")))


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
    "order-confound",
}
"""Checks that the copy trips only where a fault is planted."""


def test_the_copy_as_it_is_trips_none_of_them(
    untouched: set[tuple[str, str, str]],
) -> None:
    assert not {check for check, _, _ in untouched} & NEW


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.what)
def test_a_planted_fault_is_found(
    tmp_path: Path, fault: Planted, untouched: set[tuple[str, str, str]]
) -> None:
    copy = Copy()
    fault.plant(copy)
    findings = found(copy, tmp_path)
    fresh = signs(findings) - untouched
    if fault.check is None:
        assert {check for check, severity, _ in fresh if severity == "error"} == set()
        assert fault.why
    else:
        assert fault.check in {check for check, _, _ in fresh}
    for finding in findings:
        assert finding.severity in CHECKS[finding.check].severities
        assert finding.message.endswith(".")


def test_faults_that_nothing_finds_are_few() -> None:
    assert sum(fault.check is None for fault in PLANTED) <= 0.1 * len(PLANTED)
