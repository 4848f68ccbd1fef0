"""What readers call models, environments and loads."""

from typing import Any

import pytest

from sparkpub.plan.workloads.load import Load
from sparkpub.review.names import Names, load_name, model_name, short_name
from tests.building import a_record
from tests.leaderboards import LOAD, dataset_of, runs_of


def name_of(model_id: str) -> str:
    requested = a_record().requested.model_copy(update={"model_id": model_id})
    return model_name(a_record(requested=requested)).name


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
    ],
)
def test_a_model_is_called_by_its_own_name(model_id: str, name: str) -> None:
    assert name_of(model_id) == name


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("DeepSeek-R1-Distill-Qwen-7B", "7B"),
        ("gpt-oss-120b", "120B"),
        ("Qwen3.6-35B-A3B", "35B-A3B"),
        ("gemma-4-E4B-it", "E4B"),
        ("KAT-Coder-V2.5-Dev", "KAT-Coder-V2.5-Dev"),
    ],
)
def test_a_legend_shows_the_size(name: str, short: str) -> None:
    assert short_name(name) == short


@pytest.mark.parametrize(
    ("load", "name"),
    [
        (
            Load("t", input_tokens=512, output_tokens=128, at_once=8),
            "8 users, 512 in, 128 out",
        ),
        (
            Load("t", input_tokens=512, output_tokens=128, at_once=1, depth=2048),
            "one user, 512 in, 128 out, 2,048 in context",
        ),
        (
            Load("t", dataset="data/sharegpt.json", request_rate=0.3),
            "0.3 requests/s, sharegpt.json prompts",
        ),
        (Load("t"), ""),
    ],
)
def test_a_load_reads_as_a_person_would_say_it(load: Load, name: str) -> None:
    assert load_name(load) == name


def names_of(*records: Any, **info: Any) -> Names:
    return Names(dataset_of(*records, **info))


def test_one_model_is_one_over_campaigns_formats_and_spellings() -> None:
    names = names_of(
        *runs_of("it", [1.0], model_id="google/gemma-4-31B-it"),
        *runs_of("fp4", [1.0], campaign="d", model_id="nvidia/Gemma-4-31B-IT-NVFP4"),
    )
    assert [model.name for model in names.models.values()] == ["gemma-4-31B-it"]
    assert names.model("d", "fp4") == "gemma-4-31B-it"


def test_formats_of_one_campaign_are_told_apart() -> None:
    names = names_of(
        *runs_of("a", [1.0], model_id="x/A-7B", observed={"dtype": "bfloat16"}),
        *runs_of("b", [1.0], model_id="x/A-7B-FP8", observed={"quantization": "fp8"}),
    )
    assert names.model("c", "a") == "A-7B BF16"
    assert names.model("c", "b") == "A-7B FP8"
    assert names.short_model("c", "b") == "A-7B FP8"


def test_environments_are_called_by_what_they_are() -> None:
    docker = a_record().requested.model_copy(update={"environment": {"type": "docker"}})
    places = ["container", "container-v23", "graphs"]
    records = [
        a_record(environment=place, requested=docker, run_id=f"c-{place}")
        for place in places
    ]
    names = names_of(a_record(), *records)
    assert names.environment("c", "native") == "native"
    told = [names.environment("c", place) for place in places]
    assert told == ["Docker", "Docker (v23)", "graphs"]


def test_loads_that_sound_alike_get_their_keys() -> None:
    names = names_of(
        *runs_of("m", [1.0], workload="decode"),
        *runs_of("n", [1.0], workload="eager"),
        *runs_of("o", [1.0], workload="long", load={**LOAD, "concurrency": 1}),
    )
    assert names.workload("c", "decode") == "8 users, 512 in, 128 out (decode)"
    assert names.workload("c", "long") == "one user, 512 in, 128 out"


def test_a_label_in_the_matrix_goes_before_every_other_name() -> None:
    matrix = {
        "campaign": "c",
        "title": "T",
        "models": {"m": {"id": "x/Y-7B", "label": "The model"}},
        "environments": {"native": {"type": "host", "label": "Bare metal"}},
        "workloads": {"w": {"type": "matmul", "label": "Warm-up"}},
    }
    names = names_of(*runs_of("m", [1.0], workload="w"), matrix=matrix)
    assert names.model("c", "m") == "The model"
    assert names.environment("c", "native") == "Bare metal"
    assert names.workload("c", "w") == "Warm-up"
