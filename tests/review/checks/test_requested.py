"""What a run of llama-benchy was asked for: rounds of requests at once, and prompts that are parts of a text."""

from pathlib import Path
from typing import Any

import pytest

from sparkpub.record.record import Observed, Plan, Reproducibility, Requested
from sparkpub.record.store import Stored
from sparkpub.review.checks import requested
from tests.building import a_record
from tests.review.checks.in_memory import a_view

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
    ("asked", "tokens", "found"),
    [
        # A chat template may add 10 %, and 64 tokens to a short prompt.
        ({}, 4400.0, []),
        ({}, 512.0, ["the input tokens"]),
        ({"input_tokens": 32}, 96.0, []),
        ({"input_tokens": 32}, 97.0, ["the input tokens"]),
        # The mean of 100 lengths between 400 and 7,600 has a standard error of 5.2 %; four of them and 10 % are 30.8 %.
        ({"range_ratio": 0.9}, 2775.0, []),
        ({"range_ratio": 0.9}, 2765.0, ["the input tokens"]),
        ({"range_ratio": 0.9, "type": "sglang"}, 2100.0, []),
    ],
)
def test_prompts_of_an_imported_run_have_the_length_that_it_names(
    asked: dict[str, Any], tokens: float, found: list[str]
) -> None:
    """Answers may end sooner than they may last: nobody knows whether they had to."""
    given = {"type": "vllm-bench", "input_tokens": 4000, "output_tokens": 500}
    record = a_record(
        requested=Requested(model_id="x/m", workload=given | asked, environment={}),
        observed=Observed(
            requests=100, input_tokens_mean=tokens, output_tokens_mean=90.0
        ),
        plan=Plan(position=0, order="as-published"),
    )
    campaign = a_view(Stored(record, Path("r.json")))
    assert [what for what, _ in requested._work_done(record)] == found
    told = [item.check for item in requested.not_as_requested(campaign)]
    assert told == ["not-as-requested"] * len(found)


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


@pytest.mark.parametrize(
    ("name", "value", "declared", "is_found"),
    [
        ("CUDA_LAUNCH_BLOCKING", "1", {}, True),
        ("CUDA_LAUNCH_BLOCKING", "False", {}, False),
        ("CUDA_LAUNCH_BLOCKING", "1", {"CUDA_LAUNCH_BLOCKING": "1"}, False),
        # NVIDIA's images set it. It makes a start slower, and no request.
        ("CUDA_CACHE_DISABLE", "1", {}, False),
    ],
)
def test_switches_that_slow_engines_are_told_unless_they_were_asked_for(
    name: str, value: str, declared: dict[str, str], is_found: bool
) -> None:
    record = a_record(
        requested=Requested(
            model_id="x/m", workload=ASKED, environment={"env": declared}
        ),
        reproducibility=Reproducibility(
            sparkpub_version="0.1.0", variables={name: value}
        ),
    )
    assert len(list(requested._variables(record))) == is_found
