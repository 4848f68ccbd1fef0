"""What is one model over all campaigns, and what its name says."""

import pytest

from sparkpub.review.models import ModelName, model_name, short_name
from tests.building import a_record


def of_id(model_id: str) -> ModelName:
    requested = a_record().requested.model_copy(update={"model_id": model_id})
    return model_name(a_record(model="its-key", requested=requested))


@pytest.mark.parametrize(
    ("model_id", "name"),
    [
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "DeepSeek-R1-Distill-Qwen-7B"),
        ("Qwen/Qwen3.6-27B-FP8", "Qwen3.6-27B"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-4B-BF16", "Nemotron-3-Nano-4B"),
        # The owner's name is a part of the model's where a number follows.
        ("meta-llama/Meta-Llama-3-8B", "Meta-Llama-3-8B"),
        ("someone/Qwen2.5-7B-Instruct-GPTQ-Int4", "Qwen2.5-7B-Instruct"),
        # Its model card says which model these weights are; the name does not.
        ("nvidia/Gemma-4-26B-A4B-NVFP4", "gemma-4-26B-A4B-it"),
        ("single-precision matrix product", "single-precision matrix product"),
        # A path, and files of weights.
        ("/data/models/Qwen2.5-7B/", "Qwen2.5-7B"),
        ("C:\\models\\Meta-Llama-3-8B.IQ2_XS.gguf", "Meta-Llama-3-8B"),
        ("gpt-oss-120b-mxfp4-00001-of-00003.gguf", "gpt-oss-120b"),
        ("/", "its-key"),
    ],
)
def test_a_model_is_called_by_its_own_name(model_id: str, name: str) -> None:
    assert of_id(model_id).name == name


@pytest.mark.parametrize(
    "model_id",
    [
        "llama3.1:8b-instruct-q4_K_M",
        "meta-llama/Meta-Llama-3.1-8B-Instruct",
        "Meta-Llama-3.1-8B-Instruct-Q8_0.gguf",
        "hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4",
        "Llama-3_1-8B",
    ],
)
def test_one_model_has_one_key_however_it_is_written(model_id: str) -> None:
    assert of_id(model_id).key == "llama-3-1-8-b"


@pytest.mark.parametrize(
    ("name", "short", "billions"),
    [
        ("DeepSeek-R1-Distill-Qwen-7B", "7B", 7.0),
        ("gpt-oss-120b", "120B", 120.0),
        ("Qwen3.6-35B-A3B", "35B-A3B", 35.0),
        ("gemma-4-E4B-it", "E4B", 4.0),
        ("SmolLM2-360M", "360M", 0.36),
        ("DeepSeek-V4-Flash-1M", "DeepSeek-V4-Flash-1M", None),
        ("KAT-Coder-V2.5-Dev", "KAT-Coder-V2.5-Dev", None),
    ],
)
def test_a_name_states_a_size(name: str, short: str, billions: float | None) -> None:
    found = ModelName("", name)
    assert (short_name(found.name), found.billions) == (short, billions)
