"""What a single user gets of the memory's bandwidth."""

from typing import Any

import pytest

from sparkpub.record.record import Machine, Record
from sparkpub.review.results import Results
from sparkpub.review.tables.column import rows
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
        observed={"quantization": "bf16"} | observed,
        machine=machine,
    )
    return record


def test_traffic_is_the_rate_times_the_bytes_of_a_token() -> None:
    """3 billion parameters of two bytes each, 45.5 times a second: 273 GB/s, all that there is, which no engine gets;
    and the publisher's number, which a name rounds, may be a fifth too large."""
    (row,) = rows(Results(reviewed(dataset_of(a_run()))).bandwidths)
    assert (row.bytes_per_token, row.expert_bytes_per_token) == (6e9, 0)
    assert row.source == "the publisher's number of parameters"
    assert row.share_percent == pytest.approx(100)
    assert row.milliseconds_per_token == pytest.approx(1000 / 45.5)


@pytest.mark.parametrize("weights", ["fp8", "nvfp4", "mxfp4", "awq"])
def test_a_narrow_format_leaves_open_how_wide_each_part_is(weights: str) -> None:
    """Its attention and output head may have 16 bits, which the publisher's number of parameters does not say."""
    record = a_run(quantization=weights)
    (row,) = rows(Results(reviewed(dataset_of(record))).bandwidths)
    assert row.source == "not known for this format"
    assert (row.bytes_per_token, row.share_percent) == (None, None)


def test_the_catalogue_says_how_wide_the_parts_of_a_narrow_format_are() -> None:
    """Of gpt-oss-20b a token reads 2.437 GB in 16 bits and 1.271 GB of experts: 45.5 times 3.708 GB are 62 % of 273."""
    record = a_run(model_id="openai/gpt-oss-20b", quantization="mxfp4")
    (row,) = rows(Results(reviewed(dataset_of(record))).bandwidths)
    assert row.source == "the catalogue"
    assert row.expert_bytes_per_token / 1e9 == pytest.approx(1.271, abs=0.001)
    assert row.share_percent == pytest.approx(61.8, abs=0.05)


@pytest.mark.parametrize(
    "record",
    [
        a_run(at_once=2),
        a_run(model_id="x/Nobody-says"),
        a_run(speculative_decoding=True),
        a_run(machine=Machine()),
        a_run(machine=Machine(kind="dgx-spark", count=2)),
    ],
    ids=["two users", "size", "speculative", "machine", "two machines"],
)
def test_a_run_that_would_need_a_guess_is_left_out(record: Record) -> None:
    assert rows(Results(reviewed(dataset_of(record))).bandwidths) == []
