"""What a server was told, and how two servers differ, in words."""

from typing import Any

import pytest

from sparkpub.review.differences import difference, differences, is_of_weights, told
from sparkpub.review.names import Names
from tests.leaderboards import dataset_of, runs_of

PLAIN = {"kv_cache_dtype": "fp8", "gpu_memory_utilization": "0.9"}


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (PLAIN, ""),
        (PLAIN | {"kv_cache_dtype": "auto"}, "KV cache auto instead of fp8"),
        ({"kv_cache_dtype": "fp8"}, "no share of the memory 0.9"),
        (PLAIN | {"enable_prefix_caching": "true"}, "prefix cache on"),
        (PLAIN | {"some_new_option": "7"}, "some new option 7"),
        (PLAIN | {"VLLM_USE_X": "0"}, "VLLM_USE_X=0"),
        (
            PLAIN
            | {"speculative_config": '{"method":"mtp","num_speculative_tokens":3}'},
            "speculative decoding (mtp, 3 tokens ahead)",
        ),
    ],
)
def test_the_difference_of_two_servers_is_said_in_words(
    other: dict[str, str], words: str
) -> None:
    assert difference(PLAIN, other) == words


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        ({"weights": "FP8", "linear_backend": "marlin"}, True),
        ({"weights": "NVFP4", "VLLM_USE_FLASHINFER_MOE_FP4": "0"}, True),
        ({"weights": "FP8", "kv_cache_dtype": "auto"}, False),
    ],
)
def test_weights_are_compared_where_nothing_but_their_kernels_differs(
    other: dict[str, str], alike: bool
) -> None:
    assert is_of_weights(PLAIN, PLAIN | other) is alike


def build(model: str, environment: str, weights: str, **settings: Any) -> Any:
    observed = {
        "engine": "vLLM",
        "engine_version": "0.26.0",
        "quantization": weights,
        "settings": {name: str(value) for name, value in settings.items()},
    }
    (record,) = runs_of(
        model,
        [10.0],
        model_id=f"x/{model}",
        observed=observed,
        environment=environment,
    )
    return record


def test_builds_of_one_model_are_held_against_that_with_the_widest_weights() -> None:
    """Parsers change no speed; a model of its own is held against none."""
    records = [
        build("big-8b-fp8", "native", "fp8", linear_backend="marlin"),
        build("big-8b", "native", "bf16", reasoning_parser="big"),
        build("other-9b", "native", "bf16"),
    ]
    dataset = dataset_of(*records)
    (found,) = differences(dataset.campaign("c"), Names(dataset))
    assert (found.build, found.against) == ("big-8b FP8", "big-8b BF16")
    assert found.text == "weights FP8 instead of BF16, linear backend marlin"
    assert told(records[0])["engine"] == "vLLM 0.26.0"
