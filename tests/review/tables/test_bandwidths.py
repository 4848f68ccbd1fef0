"""What a single user gets of the memory's bandwidth."""

from typing import Any

import pytest

from sparkpub.record.record import Machine, Record
from sparkpub.review.results import Results
from sparkpub.review.statistics.physics import nominal_bytes
from sparkpub.review.tables.column import rows
from sparkpub.review.traffic import active_parameters
from tests.leaderboards import LOAD, dataset_of, reviewed, runs_of

SPARK = Machine(kind="dgx-spark")


def a_run(
    model_id: str = "x/Big-30B-A3B",
    at_once: int = 1,
    machine: Machine = SPARK,
    **observed: Any,
) -> Record:
    """45.5 tokens a second."""
    (record,) = runs_of(
        "m",
        [45.5],
        model_id=model_id,
        load=LOAD | {"concurrency": at_once, "requests": 10},
        observed={"quantization": "fp8"} | observed,
        machine=machine,
    )
    return record


def test_traffic_is_the_rate_times_the_bytes_of_a_token() -> None:
    """3 billion parameters of a byte each, 45.5 times a second: 136.5 GB/s, the half of 273."""
    (row,) = rows(Results(reviewed(dataset_of(a_run()))).bandwidths)
    assert (row.active_parameters, row.bytes_per_token) == (3e9, 3e9)
    assert row.share_percent == pytest.approx(50)
    assert row.milliseconds_per_token == pytest.approx(1000 / 45.5)


@pytest.mark.parametrize(
    "record",
    [
        a_run(at_once=2),
        a_run(model_id="x/Nobody-says"),
        a_run(quantization="awq"),
        a_run(speculative_decoding=True),
        a_run(machine=Machine()),
        a_run(machine=Machine(kind="dgx-spark", count=2)),
    ],
    ids=["two users", "size", "format", "speculative", "machine", "two machines"],
)
def test_a_run_that_would_need_a_guess_is_left_out(record: Record) -> None:
    assert rows(Results(reviewed(dataset_of(record))).bandwidths) == []


@pytest.mark.parametrize(
    ("model_id", "billions"),
    [
        ("Qwen/Qwen3.6-35B-A3B-FP8", 3),
        ("google/gemma-4-E2B-it", 2),
        ("Qwen/Qwen3.5-0.8B", 0.8),
        ("ibm-granite/granite-4.1-8b", 8),
        ("x/SmolLM2-135M", 0.135),
        ("openai/gpt-oss-20b", 3.61),
        ("mistralai/Mistral-Small-4-119B-2603-NVFP4", 6),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", 7.615616512),
    ],
)
def test_the_publisher_says_how_many_parameters_take_part(
    model_id: str, billions: float
) -> None:
    """In the model's name, or where the catalogue names the source."""
    found = active_parameters(a_run(model_id))
    assert found == pytest.approx(billions * 1e9)


def test_a_block_of_four_bit_weights_has_a_scale() -> None:
    """An 8-bit scale for 16 weights in NVFP4, for 32 in MXFP4: 4.5 and 4.25 bits."""
    assert nominal_bytes(16, "NVFP4") == 16 / 2 + 1
    assert nominal_bytes(32, "mxfp4") == 32 / 2 + 1
    assert nominal_bytes(10, "Q4_K - Medium") is None
