"""The shipped facts against arithmetic on the architectures, and damaged files."""

import pytest

from sparkpub.record import catalogue
from sparkpub.record.errors import CatalogueError


def qwen2_parameters(
    layers: int, hidden: int, kv_heads: int, head_dim: int, inner: int, vocabulary: int
) -> int:
    """Qwen2: biases on q, k, v; three MLP matrices; two norms a layer and one at the end; untied embeddings."""
    query = hidden * hidden + hidden
    key_value = 2 * (hidden * kv_heads * head_dim + kv_heads * head_dim)
    layer = query + key_value + hidden * hidden + 3 * hidden * inner + 2 * hidden
    return layers * layer + 2 * vocabulary * hidden + hidden


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", (28, 3584, 4, 128, 18944, 152064)),
        ("Qwen/Qwen2.5-72B-Instruct", (80, 8192, 8, 128, 29568, 152064)),
    ],
)
def test_dense_models_add_up(
    name: str, shape: tuple[int, int, int, int, int, int]
) -> None:
    layers, hidden, kv_heads, head_dim, _, vocabulary = shape
    model = catalogue.models()[name]
    assert model.parameters == model.active_parameters == qwen2_parameters(*shape)
    assert model.weight_bytes == 2 * qwen2_parameters(*shape)
    assert model.dense_bytes_per_step == 2 * (
        qwen2_parameters(*shape) - vocabulary * hidden
    )
    assert model.kv_bytes_per_token == 2 * layers * kv_heads * head_dim * 2
    assert model.source == "catalogue"


def test_gpt_oss_adds_up() -> None:
    layers, hidden, heads, kv_heads, head_dim, experts, chosen, vocabulary = (
        36,
        2880,
        64,
        8,
        64,
        128,
        4,
        201088,
    )
    expert_weights, expert_biases = 3 * hidden * hidden, 3 * hidden
    queries = hidden * heads * head_dim + heads * head_dim
    key_value = 2 * (hidden * kv_heads * head_dim + kv_heads * head_dim)
    output = heads * head_dim * hidden + hidden
    router, norms, sinks = hidden * experts + experts, 2 * hidden, heads
    dense = (
        layers * (queries + key_value + output + router + norms + sinks)
        + hidden
        + vocabulary * hidden
    )
    all_experts = layers * experts * (expert_weights + expert_biases)

    model = catalogue.models()["openai/gpt-oss-120b"]

    assert model.parameters == all_experts + dense + vocabulary * hidden
    assert model.active_parameters == all_experts * chosen // experts + dense
    assert model.dense_bytes_per_step == 2 * dense
    # MXFP4: 4 bits a weight and one 8-bit scale for 32 of them, 4.25 bits = 17/32 byte
    assert model.expert_bytes == layers * experts * (
        expert_weights * 17 // 32 + 2 * expert_biases
    )
    assert model.weight_bytes == model.expert_bytes + 2 * (dense + vocabulary * hidden)
    # OpenAI's model card, table 1: 116.83 B and 5.13 B parameters, 60.8 GiB
    assert round(model.parameters / 1e9, 2) == 116.83
    assert round(model.active_parameters / 1e9, 2) == 5.13
    assert round(model.weight_bytes / 2**30, 1) == 60.8


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("NVIDIA GB10", "dgx-spark"),
        ("dgx_spark", "dgx-spark"),
        ("two DGX Sparks", "dgx-spark"),
        ("ASUS Ascent GX10", "dgx-spark"),
        ("NVIDIA H200 NVL", "h200"),
        ("4 x rtx3090", "rtx-3090"),
        ("NVIDIA GeForce RTX 5090", "rtx-5090"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"),
        ("AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", "strix-halo"),
        ("AMD Radeon Graphics (RADV GFX1151)", "strix-halo"),
        ("Apple M4", "apple-m4"),
        ("Mac Studio, M3 Ultra", "apple-m3-ultra"),
        # Other machines, whose names begin like that of one
        ("Apple M1 Pro", None),
        ("RTX 3090 Ti", None),
        ("NVIDIA GeForce RTX 5090 Laptop GPU", None),
        ("NVIDIA GH200 480GB", None),
        ("NVIDIA H200 MIG 1g.18gb", None),
        ("RTX 3090 against RTX 4090", None),
        ("Some other GPU", None),
    ],
)
def test_a_text_names_a_machine_by_its_key_its_gpu_or_its_maker(
    text: str, kind: str | None
) -> None:
    assert catalogue.machine_of(text) == kind


def test_every_name_of_the_catalogue_is_of_one_machine() -> None:
    for kind, facts in catalogue.machines().items():
        for name in (kind, *facts.gpu_names, *facts.called):
            assert catalogue.machine_of(name) == kind


def test_every_fact_has_a_public_source() -> None:
    for kind, names in (
        ("models", catalogue.models()),
        ("machines", catalogue.machines()),
    ):
        for name in names:
            assert all(
                fact.source.url.startswith("https://")
                for fact in catalogue.facts(kind, name)
            )


def test_an_unknown_entry_names_those_there_are() -> None:
    with pytest.raises(CatalogueError, match="dgx-spark, h200"):
        catalogue.facts("machines", "gb300")
