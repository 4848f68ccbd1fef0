"""Bounds of memory against arithmetic shown here, for the models of the catalogue."""

import numpy as np
import pytest

from sparkpub.record import catalogue
from sparkpub.record.metrics import GIB
from sparkpub.record.record import Architecture
from sparkpub.review.statistics import physics

SEVEN, SEVENTY_TWO, MIXTURE = (
    catalogue.models()[name]
    for name in (
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
        "Qwen/Qwen2.5-72B-Instruct",
        "openai/gpt-oss-120b",
    )
)
SPARK = catalogue.machines()["dgx-spark"]


def test_steps_run_in_waves_and_the_last_one_counts_whole() -> None:
    """50 requests at batch 8 are 7 waves of 128 steps."""
    assert physics.steps(50, 8, 128) == 7 * 128
    assert physics.steps(48, 8, 128) == 6 * 128
    assert physics.steps(1, 1, 0.5) == 0.5


@pytest.mark.parametrize(
    ("requests", "batch", "output_tokens"), [(0, 8, 128), (50, 0, 128), (50, 8, 0)]
)
def test_there_are_no_steps_without_requests_batch_or_tokens(
    requests: int, batch: int, output_tokens: float
) -> None:
    with pytest.raises(ValueError, match="at least one request"):
        physics.steps(requests, batch, output_tokens)


def test_a_token_takes_two_operations_for_each_parameter() -> None:
    """0.8 billion parameters at 275,040 tokens a second: 1.6e9 x 275,040."""
    assert physics.implied_flops(275_040, 0.8e9) == pytest.approx(440.064e12)


def test_published_throughput_is_right_for_7b_and_impossible_for_72b() -> None:
    """119.5 tok/s over 50 requests of 128 tokens at batch 8: 6,400 tokens in 53.56 s, 896 steps, 16.73 a second."""
    assert physics.steps_per_second(119.5, 8, 128, 50) == pytest.approx(
        896 / (6400 / 119.5)
    )
    seven, seventy_two = (
        physics.bytes_per_step(SEVEN, 8),
        physics.bytes_per_step(SEVENTY_TWO, 8),
    )
    assert seven is not None
    assert seventy_two is not None
    assert physics.implied_bandwidth(
        119.5, seven.at_least, 8, 128, 50
    ) / 1e9 == pytest.approx(237, abs=0.5)
    assert physics.implied_bandwidth(
        119.5, seven.at_least, 8, 128
    ) / 1e9 == pytest.approx(211, abs=0.5)
    assert physics.implied_bandwidth(
        119.5, seventy_two.at_least, 8, 128
    ) / 1e9 == pytest.approx(2135, abs=1)


@pytest.mark.parametrize(
    ("model", "batch", "ceiling"),
    [
        (SEVEN, 1, 19.3),
        (SEVEN, 8, 154),
        (SEVENTY_TWO, 1, 1.9),
        (SEVENTY_TWO, 8, 15.3),
        (MIXTURE, 1, 54.6),
        (MIXTURE, 8, 130),
    ],
)
def test_ceilings_of_a_spark(model: Architecture, batch: int, ceiling: float) -> None:
    """273 GB/s over 14.14, 142.9, 5.0 and 16.8 GB a step."""
    step = physics.bytes_per_step(model, batch)
    assert step is not None
    found = physics.throughput_ceiling(SPARK.bandwidth_bytes_s, step.expected, batch)
    assert found == pytest.approx(ceiling, rel=0.01)


def test_the_expected_share_of_experts_is_that_of_random_draws() -> None:
    """Batches of 8 tokens that draw 4 of 128 experts each, 4,000 times."""
    generator = np.random.default_rng(0)
    draws = [
        len(
            set(
                np.concatenate(
                    [generator.choice(128, 4, replace=False) for _ in range(8)]
                )
            )
        )
        / 128
        for _ in range(4000)
    ]
    least, expected = physics.expert_share(128, 4, 8)
    assert least == 4 / 128
    assert expected == pytest.approx(np.mean(draws), abs=0.002)


def test_a_mixture_reads_at_least_its_chosen_experts() -> None:
    """Dense 3.097 GB and 4 of 128 shares of 60.99 GB: 5.0 GB at any batch; 16.8 GB expected at batch 8."""
    step = physics.bytes_per_step(MIXTURE, 8)
    assert step is not None
    assert step.at_least / 1e9 == pytest.approx(5.003, abs=1e-3)
    assert step.expected / 1e9 == pytest.approx(16.8, abs=0.05)
    alone = physics.bytes_per_step(MIXTURE, 1)
    assert alone is not None
    assert alone.at_least == pytest.approx(alone.expected)


@pytest.mark.parametrize(
    "facts",
    [
        {"weight_bytes": 10},
        {"dense_bytes_per_step": 10, "expert_bytes": 5},
        {"dense_bytes_per_step": 10, "expert_bytes": 5, "experts": 8},
        {"dense_bytes_per_step": 10, "expert_bytes": 5, "experts_per_token": 2},
    ],
)
def test_missing_facts_bound_nothing(facts: dict[str, int]) -> None:
    assert physics.bytes_per_step(Architecture(source="log", **facts), 8) is None


def test_72_billion_parameters_do_not_fit_where_7_do() -> None:
    """145.4 GB are 135.4 GiB, and the published machine has 119.64 GiB."""
    assert SEVENTY_TWO.weight_bytes is not None
    assert SEVEN.weight_bytes is not None
    assert SEVENTY_TWO.weight_bytes / GIB == pytest.approx(135.4, abs=0.05)
    assert SEVENTY_TWO.weight_bytes > 119.64 * GIB > SEVEN.weight_bytes + 44.31 * GIB
