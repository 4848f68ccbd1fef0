"""What a run of llama-benchy was asked for: rounds of requests at once, and prompts that are parts of a text."""

from typing import Any

import pytest

from sparkpub.record.record import Observed, Requested
from sparkpub.review.checks import requested
from tests.building import a_record

ASKED = {
    "type": "llama-benchy",
    "input_tokens": 512,
    "output_tokens": 128,
    "concurrency": 4,
    "repetitions": 2,
}


def wrong(asked: dict[str, Any], **seen: Any) -> list[str]:
    """In what a run is not as asked for."""
    record = a_record(
        requested=Requested(model_id="x/m", workload=asked, environment={}),
        observed=Observed(**seen),
    )
    return [what for what, _ in requested._work_done(record)]


@pytest.mark.parametrize(
    ("asked", "seen", "found"),
    [
        # Two rounds of four requests are eight.
        ({}, {"requests": 8}, []),
        ({}, {"requests": 4}, ["the requests"]),
        # 10 % of 512 tokens are 51.
        ({}, {"input_tokens_mean": 562.0}, []),
        ({}, {"input_tokens_mean": 570.0}, ["the input tokens"]),
        ({"depth": 1024}, {"input_tokens_mean": 1536.0}, []),
        ({}, {"output_tokens_mean": 120.0}, ["the output tokens"]),
        ({"exact_output": False}, {"output_tokens_mean": 20.0}, []),
        ({"type": "vllm-bench"}, {"input_tokens_mean": 562.0}, ["the input tokens"]),
    ],
)
def test_what_llama_benchy_was_asked_for(
    asked: dict[str, Any], seen: dict[str, Any], found: list[str]
) -> None:
    assert wrong(ASKED | asked, **seen) == found
