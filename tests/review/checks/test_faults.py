"""Planted faults: each check trips on its own, with no other than those it declares to imply."""

from pathlib import Path

import pytest

from sparkpub.review.checks import CHECKS, Review, review, what_counts
from sparkpub.review.dataset import load
from tests.review.checks.clean import clean_runs, write
from tests.review.checks.faults import FAULTS, Fault
from tests.review.checks.planted import PLANTED
from tests.review.checks.planted_clients import CLIENTS
from tests.review.checks.planted_unread import UNREAD

UNJUDGED = {"warmed-up"}
"""What the clean campaign cannot show: trtllm-bench keeps no times of single batches."""


def reviewed(data: Path) -> Review:
    return review(load(data, skip=lambda _: None))


@pytest.fixture(
    scope="module", params=FAULTS, ids=lambda fault: f"{fault.check}: {fault.what}"
)
def planted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Fault, Review]:
    """Each fault with the review of a clean campaign in which it is planted."""
    fault: Fault = request.param
    data = tmp_path_factory.mktemp("planted")
    runs = clean_runs(seed=7, iterations=fault.iterations)
    fault.plant(runs)
    fault.damage(write(data, runs, fault.iterations))
    return fault, reviewed(data)


@pytest.mark.parametrize("iterations", [10, 24])
def test_the_clean_campaign_has_no_finding(tmp_path: Path, iterations: int) -> None:
    write(tmp_path, clean_runs(seed=7, iterations=iterations), iterations)
    found = reviewed(tmp_path)
    assert [
        (finding.check, finding.evidence["about"]) for finding in found.findings
    ] == [("unjudged", ["warmed-up"])]
    assert found.excluded == {}


def test_a_fault_trips_its_check_and_what_that_implies(
    planted: tuple[Fault, Review],
) -> None:
    fault, found = planted
    tripped = {
        finding.check
        for finding in found.findings
        if not UNJUDGED.issuperset(finding.evidence.get("about", [""]))
    }
    assert fault.check in tripped
    assert tripped - {fault.check} <= CHECKS[fault.check].implies
    for finding in found.findings:
        assert finding.severity in CHECKS[finding.check].severities
        assert finding.message.endswith(".")
        assert "<" not in finding.message


def test_every_check_of_data_has_a_fault() -> None:
    assert {
        fault.check
        for fault in (*FAULTS, *PLANTED, *UNREAD, *CLIENTS)
        if fault.check is not None
    } == {name for name, check in CHECKS.items() if check.kind != "prose"}


def test_what_a_check_implies_is_a_check() -> None:
    assert all(
        check.implies <= set(CHECKS) and check.name == name
        for name, check in CHECKS.items()
    )


def test_only_runs_that_did_not_happen_leave_the_figures(
    planted: tuple[Fault, Review],
) -> None:
    fault, found = planted
    out = set(found.excluded)
    assert what_counts(found.dataset).excluded == found.excluded
    if (
        fault.check in ("schema", "unbalanced", "missing-cell")
        or CHECKS[fault.check].kind != "happened"
    ):
        assert out == {
            run
            for finding in found.findings
            for run in finding.evidence.get("excluded", ())
        }
    else:
        (run,) = out
        assert found.excluded[run].startswith(f"{fault.check}: ")
