"""Bounds of memory against arithmetic shown here, for the models of the catalogue."""

import pytest

from sparkpub.record import catalogue
from sparkpub.review import physics

SEVEN, SEVENTY_TWO, MIXTURE, SMALL_MIXTURE = (
    catalogue.models()[name]
    for name in (
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
        "Qwen/Qwen2.5-72B-Instruct",
        "openai/gpt-oss-120b",
        "openai/gpt-oss-20b",
    )
)


def test_published_throughput_is_right_for_7b_and_impossible_for_72b() -> None:
    """119.5 tok/s over 50 requests of 128 tokens at batch 8: 6,400 tokens in 53.56 s, 7 waves of 128 steps, 16.73 a
    second; without the number of requests at least 119.5 / 8."""
    steps, least = (
        physics.steps_per_second(119.5, 8, requests) for requests in (50, None)
    )
    assert steps == pytest.approx(7 * 128 / (6400 / 119.5))
    assert least == 119.5 / 8
    seven, seventy_two = (
        physics.bytes_per_step(model, 8) for model in (SEVEN, SEVENTY_TWO)
    )
    assert seven is not None
    assert seventy_two is not None
    assert steps * seven.at_least / 1e9 == pytest.approx(237, abs=0.5)
    assert least * seven.at_least / 1e9 == pytest.approx(211, abs=0.5)
    assert least * seventy_two.at_least / 1e9 == pytest.approx(2135, abs=1)


def test_attention_and_output_of_gpt_oss_are_wide_and_its_experts_narrow() -> None:
    """Of gpt-oss-20b a token reads 24 layers of 26,648,096 parameters, an output head of 201,088 x 2,880 and the last
    norm in 16 bits: 2.437 GB; and in each layer 4 experts of 3 x 2,880^2 weights in 4.25 bits with 8,640 biases in 16:
    1.271 GB. Were all in 4.25 bits, 3.61 billion parameters would be 1.918 GB."""
    head = 201_088 * 2_880
    dense = 2 * (24 * 26_648_096 + head + 2_880)
    experts = 24 * 4 * (3 * 2_880**2 * 4.25 / 8 + 8_640 * 2)
    step = physics.bytes_per_step(SMALL_MIXTURE, 1)
    assert step is not None
    assert (step.at_least, step.expected, step.experts) == (
        dense + experts,
        pytest.approx(dense + experts),
        pytest.approx(experts),
    )
    assert SMALL_MIXTURE.weight_bytes == dense + 2 * head + experts * 32 / 4
