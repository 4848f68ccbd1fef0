"""What a client tool gets wrong before its numbers reach a record: the check that finds it, on real engines' runs."""

from pathlib import Path

import pytest

from sparkpub.collect.importers import import_results
from sparkpub.collect.importers.base import Given
from sparkpub.review.checks import Finding, review
from sparkpub.review.dataset import load
from tests.review.checks.planted import DATA, PATTERNS
from tests.review.checks.planted_clients import (
    CLIENTS,
    IMPORTS,
    ClientFault,
    ImportFault,
)
from tests.review.checks.test_planted import signs

Signs = set[tuple[str, str, str]]


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


def told(fault: ClientFault | ImportFault, data: Path, *, planted: bool) -> Signs:
    """What the review says of a fault's campaign, as it is or with the fault."""
    fault.bring(data, planted=planted)
    return signs(list(review(load(data)).findings))


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Signs]:
    """What is said of the campaigns as they are, by the name of each: made where it is first asked for."""
    return {}


@pytest.mark.parametrize("fault", CLIENTS, ids=lambda fault: fault.what)
def test_a_fault_of_a_client_is_found(
    tmp_path: Path, fault: ClientFault | ImportFault, untouched: dict[str, Signs]
) -> None:
    if isinstance(fault, ClientFault) and not (DATA / fault.campaign).is_dir():
        pytest.skip("the committed campaigns are not there")
    if fault.of not in untouched:
        untouched[fault.of] = told(fault, tmp_path / "as-is", planted=False)
    fresh = told(fault, tmp_path / "planted", planted=True) - untouched[fault.of]
    if fault.check is None:
        assert {check for check, severity, _ in fresh if severity == "error"} == set()
    else:
        assert fault.check in {check for check, _, _ in fresh}


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
