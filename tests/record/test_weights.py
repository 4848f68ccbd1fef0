"""How formats of weights are spelled, and what they are called."""

import pytest

from sparkpub.record import weights


@pytest.mark.parametrize(
    ("spelling", "called", "bits"),
    [
        ("bfloat16", "BF16", 16),
        # llama.cpp and PyTorch write one format in two ways.
        ("F16", "FP16", 16),
        ("float16", "FP16", 16),
        ("nvfp4a16", "NVFP4A16", 4),
        ("Q4_K - Medium", "Q4_K - Medium", 4),
        ("modelopt", "MODELOPT", None),
    ],
)
def test_a_format_has_one_name_and_a_width(
    spelling: str, called: str, bits: int | None
) -> None:
    assert weights.called(spelling) == called
    assert weights.bits(called) == bits


@pytest.mark.parametrize(
    ("text", "first", "only"),
    [
        ("bf16-spec", "bf16", None),
        ("F16", "fp16", "fp16"),
        ("Q4_K_M", "q4_k_m", "q4_k_m"),
        ("fp8x", None, None),
    ],
)
def test_a_word_may_be_a_format(text: str, first: str | None, only: str | None) -> None:
    assert weights.first_in(text) == first
    assert weights.only(text) == only


@pytest.mark.parametrize(
    ("name", "last", "without"),
    [
        ("Qwen2.5-7B-Instruct-Q4_K_M", "Q4_K_M", "Qwen2.5-7B-Instruct"),
        ("m-mxfp4-00001-of-00003", "MXFP4", "m"),
        ("m-4bit", None, "m"),
        ("Qwen2.5-7B-Q8_0-GGUF", None, "Qwen2.5-7B"),
    ],
)
def test_a_name_may_end_in_a_format(name: str, last: str | None, without: str) -> None:
    assert weights.last_in(name) == last
    assert weights.without(name) == without
