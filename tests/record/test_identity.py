"""Which model a run shows: the sizes here are made up so that each bound can be seen by eye."""

from typing import Any

import pytest

from sparkpub.record.identity import contradictions, expected
from sparkpub.record.record import Architecture, Observed, Requested

MODEL = Architecture(
    source="matrix",
    model_type="llama",
    layers=100,
    weight_bytes=1000,
    kv_bytes_per_token=100,
    dtype="bfloat16",
)


def asked(architecture: Architecture | None = MODEL, **more: Any) -> Requested:
    return Requested(
        model_id="x/unknown",
        architecture=architecture,
        workload={"type": "command"},
        environment={"type": "host"},
        **more,
    )


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ({"model_type": "llama", "layers": 100}, []),
        ({"model_type": "qwen2"}, ["model type is qwen2 and that model has llama"]),
        # Layers are counted, not measured: one in a hundred is another model.
        ({"layers": 101}, ["layers is 101 and that model has 100"]),
        # Two percent of what a log prints of the cache, twenty of the weights.
        ({"kv_bytes_per_token": 102}, []),
        (
            {"kv_bytes_per_token": 103},
            ["kv bytes per token is 103 and that model has 100"],
        ),
        ({"weight_bytes": 800}, []),
        ({"weight_bytes": 1201}, ["weight bytes is 1,201 and that model has 1,000"]),
        # Eight bits in place of sixteen are half of it, thirty-two are twice.
        ({"kv_bytes_per_token": 50, "kv_cache_dtype": "fp8"}, []),
        (
            {"kv_bytes_per_token": 100, "kv_cache_dtype": "fp8"},
            ["kv bytes per token is 100 and that model has 50"],
        ),
        ({"weight_bytes": 2000, "dtype": "float32"}, []),
        ({"kv_bytes_per_token": 200, "dtype": "float32"}, []),
        # How much a quantisation takes is not known.
        ({"weight_bytes": 300, "quantization": "awq"}, []),
        ({"kv_bytes_per_token": 300, "quantization": "awq"}, 1),
    ],
)
def test_what_a_run_shows_is_held_against_the_model_asked_for(
    seen: dict[str, Any], said: list[str] | int
) -> None:
    found = contradictions(asked(), Observed(**seen), {})
    assert (len(found) if isinstance(said, int) else found) == said


@pytest.mark.parametrize(
    ("path", "seen", "said"),
    [
        ("/m/x-F16.gguf", "Q8_0", "its name says FP16 and its weights are Q8_0"),
        ("/m/x-Q4_K_M.gguf", "Q4_K - Medium", None),
        ("/m/x", "awq_marlin", None),
    ],
)
def test_weights_are_of_the_format_that_the_name_says(
    path: str, seen: str, said: str | None
) -> None:
    found = contradictions(asked(model_path=path), Observed(quantization=seen), {})
    assert found == ([] if said is None else [said])


def test_nothing_is_held_against_a_model_of_which_nothing_is_known() -> None:
    assert expected(asked(None)) is None
    assert contradictions(asked(None), Observed(layers=3), {}) == []
    nameless = MODEL.model_copy(update={"layers": None})
    assert contradictions(asked(nameless), Observed(layers=3), {}) == []
