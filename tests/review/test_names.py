"""What readers call models, environments and loads."""

from typing import Any

import pytest

from sparkpub.record.load import Load
from sparkpub.review.names import Names, load_name, parts_of
from tests.building import a_record
from tests.leaderboards import LOAD, dataset_of, runs_of


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


def test_formats_of_one_campaign_are_told_apart() -> None:
    names = names_of(
        *runs_of("a", [1.0], model_id="x/A-7B", observed={"dtype": "bfloat16"}),
        *runs_of("b", [1.0], model_id="x/A-7B-FP8", observed={"quantization": "fp8"}),
    )
    assert names.campaign("c").models["a"] == "A-7B BF16"
    assert names.campaign("c").models["b"] == "A-7B FP8"
    assert names.called("c", "model", "b") == "A-7B FP8"


def test_environments_are_called_by_what_they_are() -> None:
    docker = a_record().requested.model_copy(update={"environment": {"type": "docker"}})
    places = ["container", "container-v23", "graphs"]
    runs = [
        a_record(model="m", environment=place, requested=docker, run_id=f"c-{place}")
        for place in places
    ]
    names = names_of(a_record(), *runs)
    assert names.called("c", "environment", "native") == "native"
    told = [names.called("c", "environment", place) for place in places]
    assert told == ["Docker", "Docker (v23)", "Docker (graphs)"]
    assert [parts_of(name) for name in told[:2]] == [["Docker"], ["Docker", "v23"]]
    name = names.campaign("c").models["m"]
    assert names.build("c", "m", places[1]) == f"{name}, Docker (v23)"
    assert names_of(runs[0]).build("c", "m", places[0]) == name


def test_an_environment_of_which_no_type_is_known_is_called_by_its_key() -> None:
    asked = a_record().requested.model_copy(update={"environment": {"type": "unknown"}})
    names = names_of(
        *(
            a_record(environment=place, requested=asked, run_id=f"c-{place}")
            for place in ("native", "rocm-7")
        )
    )
    assert names.called("c", "environment", "rocm-7") == "rocm-7"
    assert names.called("c", "environment", "native") == "native"


def test_a_label_in_the_matrix_goes_before_every_other_name() -> None:
    """One that says with what takes no second preposition."""
    environments = {
        "graphs": {"type": "host", "label": "with CUDA graphs"},
        "no-graphs": {"type": "host", "label": "without CUDA graphs"},
    }
    matrix = {
        "campaign": "c",
        "title": "T",
        "models": {"m": {"id": "x/Y-7B", "label": "The model"}},
        "environments": environments,
        "workloads": {"w": {"type": "matmul", "label": "Warm-up"}},
    }
    runs = [
        record
        for place in environments
        for record in runs_of("m", [1.0], workload="w", environment=place)
    ]
    names = names_of(*runs, matrix=matrix)
    assert names.cell("c", ("m", "graphs", "w")) == (
        "The model",
        "with CUDA graphs",
        "Warm-up",
    )
    text = "2 runs of m/graphs are outliers; the others of m/no-graphs have less."
    assert names.in_words("c", text) == (
        "2 runs with CUDA graphs are outliers; the others without CUDA graphs have less."
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Iteration 1 of tiny7b/native/serve-c8 is out.", "Iteration 1 of 7B · 8 users, 512 in, 128 out is out."),
        ("tiny7b/native: 10; qwen/native: 3", "7B: 10; 2B: 3"),
        ("runs of serve-c16.", "runs of 16 users, 512 in, 128 out."),
        # A key that is a word stays, unless the model is called so.
        ("a qwen that is native", "a 2B that is native"),
        ("see /data/tiny7b/native/x.json and tiny7b-v2", "see /data/tiny7b/native/x.json and tiny7b-v2"),
    ],
)  # fmt: skip
def test_keys_in_a_text_are_said_by_their_names(text: str, told: str) -> None:
    """What every cell has alike, here the environment, is not repeated."""
    names = names_of(
        *runs_of("tiny7b", [1.0], workload="serve-c8", model_id="x/Tiny-7B"),
        *runs_of("qwen", [1.0], workload="serve-c8", model_id="Qwen/Qwen3.5-2B"),
        *runs_of("qwen", [1.0], workload="serve-c16", model_id="Qwen/Qwen3.5-2B", load=LOAD | {"concurrency": 16}),
    )  # fmt: skip
    assert names.in_words("c", text) == told
    assert names.in_words("another", text) == text
