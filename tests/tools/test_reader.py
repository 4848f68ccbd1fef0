"""What a report says by the mapping of its tool, and where its figures contradict each other."""

from typing import Any

import pytest

from sparkpub.tools.reader import ReportReading, read

CLOSED: dict[str, Any] = {
    "completed": 2,
    "duration": 4.0,
    "total_output_tokens": 6,
    "output_throughput": 1.5,
    "mean_e2e_latency_ms": 20.0,
    "mean_ttft_ms": 15.0,
    "ttfts": [0.010, 0.020],
    "output_lens": [2, 4],
    "errors": ["", ""],
}
"""Of SGLang: two requests of 2 and 4 tokens, whose first came after 10 and 20 ms."""


def sglang(**changes: Any) -> ReportReading:
    found = read(CLOSED | changes, ("genai-perf", "sglang"))
    assert found is not None
    return found


def test_figures_facts_and_shares_are_those_of_the_report() -> None:
    said = sglang(errors=["", "refused", ""])
    values = {name: metric.value for name, metric in said.metrics.items()}
    assert values["ttft_mean_ms"] == 15.0
    assert values["measured_time_ms"] == 4000.0  # s
    assert values["failed_requests_percent"] == pytest.approx(100 / 3)  # 1 of 1 + 2
    assert said.facts["output_tokens_mean"] == 3  # 6 of 2 requests


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        (
            {"mean_ttft_ms": 16.0},
            ["the mean of ttft is 16, and that of its 2 values is 15"],
        ),
        (
            {"total_output_tokens": 7},
            ["total_output_tokens is 7, and output_lens is 6"],
        ),
        # Lists hold requests that failed, too.
        ({"mean_ttft_ms": 16.0, "errors": ["", "refused"]}, []),
    ],
)
def test_a_summary_is_held_to_what_it_sums_up(
    changes: dict[str, Any], said: list[str]
) -> None:
    assert sglang(**changes).problems == said


def test_without_a_request_that_succeeded_there_are_no_figures() -> None:
    """The tool gives zeros then."""
    said = sglang(completed=0, output_throughput=0.0)
    assert said.metrics == {}
    assert said.facts["requests"] is None


def test_a_unit_that_nobody_knows_leaves_its_figures_out() -> None:
    report = {
        "aiperf_version": "0.13",
        "request_count": {"avg": 2.0},
        "time_to_first_token": {"unit": "fortnights", "avg": 1.0},
        "request_latency": {"unit": "sec", "avg": 1.5},
        "was_cancelled": True,
    }
    said = read(report, ("aiperf",))
    assert said is not None
    assert said.problems == ["AIPerf was cancelled"]
    assert {name: metric.value for name, metric in said.metrics.items()} == {
        "request_latency_mean_ms": 1500.0
    }


def test_a_report_of_another_tool_is_none_of_these() -> None:
    assert read(CLOSED, ("aiperf", "guidellm")) is None


def test_batches_are_the_samples_of_their_mean() -> None:
    said = read({"avg_latency": 1.5, "latencies": [1.0, 2.0]}, ("vllm-bench",))
    assert said is not None
    assert said.mode == "latency"
    assert said.figures.samples == {"request_latency_mean_ms": (1000.0, 2000.0)}
    assert said.problems == []
