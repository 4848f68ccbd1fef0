"""Facts from a config against published counts, and against transformers' own models built without memory."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from sparkpub.plan.workloads.architecture import from_config, read_model_folder
from sparkpub.record.errors import WorkloadError

CONFIGS = json.loads(
    (Path(__file__).parents[2] / "data/architectures.json").read_text()
)
QWEN_7B, GPT_OSS = CONFIGS["qwen-7b"], CONFIGS["gpt-oss"]


def test_a_quantised_mixture_of_experts() -> None:
    facts = from_config(GPT_OSS, "config.json")
    assert facts.kv_bytes_per_token == 73_728  # as TensorRT-LLM prints it
    assert (facts.experts, facts.experts_per_token) == (128, 4)


@pytest.mark.torch
@pytest.mark.parametrize(
    "changes", CONFIGS["families"], ids=lambda changes: changes["model_type"]
)
def test_every_family_counts_as_transformers_builds_it(changes: dict[str, Any]) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = {
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 500,
        "tie_word_embeddings": False,
        "dtype": "float32",
    } | changes
    facts = from_config(config, "matrix")
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(
            AutoConfig.for_model(**config), dtype=torch.float32
        )
    assert facts.parameters == sum(
        parameter.numel() for parameter in model.parameters()
    )
    assert facts.weight_bytes == sum(
        parameter.nbytes for parameter in model.parameters()
    )


def test_what_is_not_known_stays_null() -> None:
    facts = from_config(
        {"model_type": "mamba", "num_hidden_layers": 4, "hidden_size": 8}, "config.json"
    )
    assert facts.parameters is None
    assert facts.weight_bytes is None
    quantised = from_config(
        QWEN_7B | {"quantization_config": {"quant_method": "awq"}}, "config.json"
    )
    assert quantised.parameters == 7_615_616_512
    assert quantised.weight_bytes is None
    # Of the experts' number for a token the family's default counts, which a config may leave out.
    mixture = {"model_type": "qwen3_moe", "num_experts": 8, "moe_intermediate_size": 64}
    assert from_config(QWEN_7B | mixture, "config.json").parameters is None


def test_a_latent_cache_holds_one_vector_per_layer() -> None:
    config = {
        "model_type": "deepseek_v3",
        "num_hidden_layers": 61,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
    }
    assert from_config(config, "config.json").kv_bytes_per_token == 61 * 576 * 2


def safetensors(path: Path, tensors: dict[str, int]) -> None:
    """A file with a true header and no more content than it must have."""
    header, start = {}, 0
    for name, size in tensors.items():
        header[name] = {
            "dtype": "U8",
            "shape": [size],
            "data_offsets": [start, start + size],
        }
        start += size
    text = json.dumps({"__metadata__": {"format": "pt"}} | header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)


def test_a_folder_gives_bytes_from_the_headers_of_its_weights(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(GPT_OSS))
    safetensors(
        tmp_path / "model-1.safetensors",
        {"model.embed_tokens.weight": 100, "lm_head.weight": 100},
    )
    safetensors(
        tmp_path / "model-2.safetensors",
        {
            "model.layers.0.mlp.experts.down_proj_blocks": 1000,
            "model.layers.0.mlp.shared_experts.up.weight": 7,
        },
    )
    facts = read_model_folder(tmp_path)
    assert (facts.weight_bytes, facts.expert_bytes, facts.dense_bytes_per_step) == (
        1207,
        1000,
        107,
    )
    assert facts.weights_sha256 is not None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"vocab_size": 1.5}, "ValidationError"),
        ({"layer_types": [1]}, "AttributeError"),
    ],
)
def test_a_config_that_no_model_has_is_refused_in_a_line(
    changes: dict[str, Any], said: str
) -> None:
    config = QWEN_7B | changes
    with pytest.raises(WorkloadError, match="config cannot be used") as refused:
        from_config(config, "matrix")
    (line,) = refused.value.lines()
    assert said in line
    assert len(line) < 400
