"""Planted faults: each is found by its check, and in clean runs by no other than those which that implies."""

from pathlib import Path

import pytest

from sparkpub.review.checks import CHECKS, Finding, Review, review, what_counts
from sparkpub.review.dataset import load
from tests.review.checks.clean import clean_runs, write
from tests.review.checks.planted_owners import OwnerFault
from tests.review.checks.table import TABLE, AnyFault

Signs = set[tuple[str, str, str]]
"""What findings are about, without their figures; of an import, which has findings as it is, with how many runs."""
NO_RUN = {"unbalanced", "missing-cell"}
IMPLIED = {
    "schema": NO_RUN,
    "exit-status": NO_RUN,
    "time-consistency": {"unbalanced", "order-confound"},
}
"""Checks that trip with another one by their nature, when a single fault is planted in clean data."""
IN_DATA = {name for name, check in CHECKS.items() if check.kind != "prose"}


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


@pytest.fixture(scope="module")
def untouched() -> dict[str, Signs]:
    """What is said of the campaigns as they are, by the name of each: made where it is first asked for."""
    return {}


def reviewed(fault: AnyFault, data: Path, *, planted: bool) -> Review:
    """The review of a fault's campaign, as it is or with the fault."""
    fault.bring(data, planted=planted)
    return review(load(data, skip=lambda _: None))


def signs(found: Review, *, counted: bool = False) -> Signs:
    return {
        (item.check, item.severity, _about(item) + counted * f" of {len(item.cells)}")
        for item in found.findings
    }


def _about(finding: Finding) -> str:
    names = ("what", "metric", "about")
    return next(
        (str(finding.evidence[name]) for name in names if name in finding.evidence), ""
    )


@pytest.mark.parametrize(
    "fault", TABLE, ids=lambda fault: f"{fault.check}: {fault.what}"
)
def test_a_fault_is_found_by_its_check(
    fault: AnyFault, tmp_path: Path, untouched: dict[str, Signs]
) -> None:
    if not fault.is_possible:
        pytest.skip("the committed campaigns are not there")
    is_import = isinstance(fault, OwnerFault)
    if fault.of not in untouched:
        as_it_is = reviewed(fault, tmp_path / "as-is", planted=False)
        untouched[fault.of] = signs(as_it_is, counted=is_import)
    found = reviewed(fault, tmp_path / "planted", planted=True)
    fresh = signs(found, counted=is_import) - untouched[fault.of]
    assert fault.check in {check for check, _, _ in fresh}
    for finding in found.findings:
        assert finding.severity in CHECKS[finding.check].severities
        assert finding.message.endswith(".")
        assert "<" not in finding.message
    if fault.alone:
        tripped = {check for check, _, _ in fresh} - {fault.check}
        assert tripped <= IMPLIED.get(fault.check, set())
        assert what_counts(found.dataset).excluded == found.excluded
        assert _leaves_the_figures(fault.check, found)


def _leaves_the_figures(check: str, found: Review) -> bool:
    """Whether the run left the figures that did not happen, and no other."""
    if (
        check in ("schema", "unbalanced", "missing-cell")
        or CHECKS[check].kind != "happened"
    ):
        doubles = [each.doubles for each in found.campaigns.values()]
        return set(found.excluded) == {run for runs in doubles for run in runs}
    (reason,) = found.excluded.values()
    return reason.startswith(f"{check}: ")


@pytest.mark.parametrize("iterations", [10, 24])
def test_the_clean_campaign_has_no_finding(iterations: int, tmp_path: Path) -> None:
    write(tmp_path, clean_runs(seed=7, iterations=iterations), iterations)
    found = review(load(tmp_path))
    assert signs(found) == set()
    assert found.excluded == {}


def test_every_check_of_data_has_a_fault() -> None:
    assert {fault.check for fault in TABLE} == IN_DATA
