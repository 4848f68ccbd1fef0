"""Real records, copies of them and files of real tools, in which nothing is planted: no alarm."""

from pathlib import Path

import pytest

from sparkpub.collect.imports import import_results
from sparkpub.collect.imports.given import Given
from sparkpub.review.checks import Finding, Review, review
from sparkpub.review.dataset import load
from tests.review.checks.planted import DATA, IMPORTS, PATTERNS, Copy

is_here = pytest.mark.skipif(
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
    "foreign-load",
    "warmed-up",
    "foreign-telemetry",
    "memory-bookkeeping",
    "metric-mismatch",
    "order-confound",
}
"""Checks that the copy trips only where a fault is planted."""


@is_here
def test_the_copy_as_it_is_trips_none_of_them(tmp_path: Path) -> None:
    Copy().write(tmp_path)
    assert not {finding.check for finding in review(load(tmp_path)).findings} & NEW


@pytest.mark.parametrize(
    "kind",
    [
        "aiperf",
        "genai-perf",
        "guidellm",
        "sglang",
        "llama-benchy",
        "vllm-bench",
        "llama-bench",
        "trtllm-bench",
    ],
)
def test_no_real_result_of_a_client_contradicts_itself(
    kind: str, tmp_path: Path
) -> None:
    given = Given("c", environment="native", machine="h200", model="tiny-llama")
    import_results(IMPORTS / kind, tmp_path, given)
    findings = list(review(load(tmp_path)).findings)
    assert not wrong(findings)
    assert "mixed-machines" not in {finding.check for finding in findings}


@pytest.mark.parametrize("result", ["aiperf/turns-c2", "guidellm/turns3-c2.json.gz"])
def test_the_prompt_of_a_later_turn_is_longer_than_what_was_asked_for(
    result: str, tmp_path: Path
) -> None:
    """Three turns send 64, 144 and 224 tokens, where 64 a turn were asked for, and each answer has 16."""
    given = Given("c", environment="native", machine="h200")
    import_results(IMPORTS / result, tmp_path, given)
    found = review(load(tmp_path)).findings
    assert "not-as-requested" not in {finding.check for finding in found}


def test_a_tool_that_counts_more_tokens_than_it_asked_for_is_told(
    tmp_path: Path,
) -> None:
    """GenAI-Perf 24.12 counted the tokens of streamed answers five times, as its makers say."""
    given = Given("c", environment="native", machine="h200")
    import_results(IMPORTS / "genai-perf", tmp_path, given)
    (finding,) = (
        found
        for found in review(load(tmp_path)).findings
        if found.check == "not-as-requested"
    )
    assert "2565.86 in place of 500" in finding.message
    assert len(finding.runs) == 1


UNCOUNTED = {
    # 164 tokens a request in 327 chunks, where the five other rates of this test have 488 to 492 tokens.
    "nvidia-nemotron-3-nano-30b-a3b-fp8/container/serve-openai-chat-in4000-out500-range0.9-rate1-burst0.7-n250",
    # 154 tokens in 212 chunks, where the others have 310 to 454.
    "gpt-oss-20b/container/serve-openai-chat-in4000-out500-range0.9-rate0.1-burst0.7-n100",
}
"""Cells of results that others published, of which their client counted a part of the tokens only."""


@is_here
def test_no_committed_run_contradicts_itself(committed: Review) -> None:
    findings = [
        finding
        for finding in committed.findings
        if not UNCOUNTED.issuperset(finding.cells)
    ]
    assert wrong(findings) == []


def wrong(findings: list[Finding]) -> list[str]:
    """What says that figures cannot be true, or are of another load than their label. Rates of short prompts leave out
    a part of the time, in many honest reports of llama-benchy."""
    return [
        finding.message
        for finding in findings
        if finding.check == "inconsistent-report"
        and finding.severity != "info"
        and finding.evidence.get("metric") != "prompt_throughput_tok_s"
    ]
