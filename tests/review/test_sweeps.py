"""What a campaign varies, found from what its workloads were asked for."""

from collections.abc import Mapping
from typing import Any

import pytest

from sparkpub.review import sweeps
from sparkpub.review.dataset import CampaignData
from tests.leaderboards import dataset_of, runs_of
from tests.study.methodology import SHAPES

LLAMA = {"type": "llama-bench", "input_tokens": 512, "output_tokens": 128}
TRT = {"type": "trtllm-bench", "max_batch_size": 64, "concurrency": 64}
SERVE = {"type": "vllm-bench", "mode": "serve", "input_tokens": 512}


def a_campaign(
    workloads: Mapping[str, Mapping[str, Any]],
    *,
    models: tuple[str, ...] = ("m",),
    declared: bool = True,
) -> CampaignData:
    """A run of each model under each workload; what is not `declared` was imported without a matrix."""
    records = [
        run
        for model in models
        for name, options in workloads.items()
        for run in runs_of(model, [1.0], load=options, workload=name)
    ]
    matrix = None
    if declared:
        matrix = {
            "campaign": "c",
            "title": "t",
            "models": {model: {"id": f"x/{model}"} for model in models},
            "environments": {"native": {"type": "host"}},
            "workloads": {name: dict(options) for name, options in workloads.items()},
            "iterations": 1,
        }
    return dataset_of(*records, matrix=matrix).campaigns["c"]


def points(line: sweeps.Line) -> list[tuple[float, str]]:
    """Value and workload of each point."""
    return [(value, cell[2]) for value, cell in line.points]


def test_the_tests_of_the_methodology_are_a_line_of_lengths_and_one_of_batch_sizes() -> (
    None
):
    """T1 to T3 scale a request at batch 1 (160, 640 and 2,560 tokens), T2, T4, T5 and T6 the batch."""
    workloads = {
        name: {
            "type": "generate",
            "batch_size": batch,
            "batches": 40 // batch,
            "input_tokens": put,
            "output_tokens": got,
        }
        for name, (batch, put, got) in SHAPES.items()
    }
    load, length = sweeps.lines(a_campaign(workloads))
    assert points(load) == [(1, "t2"), (4, "t4"), (16, "t5"), (32, "t6")]
    assert points(length) == [(160, "t1"), (640, "t2"), (2560, "t3")]
    assert (load.word, load.title) == ("batch size", "Batch size")
    assert load.place(32) == "batch size 32"
    assert length.place(2560) == "2,560 tokens"
    assert load.held == "512 in, 128 out"


@pytest.mark.parametrize(
    ("workloads", "found"),
    [
        # Of two options of a load the one that differs is the axis; how much is measured is no part of it.
        (
            {
                f"c{n}": {**TRT, "concurrency": n, "requests": 8 * n, "warmup": n}
                for n in (1, 2)
            },
            {"concurrency": [(1, "c1"), (2, "c2")]},
        ),
        (
            {f"b{n}": {**TRT, "max_batch_size": n} for n in (1, 2)},
            {"batch size": [(1, "b1"), (2, "b2")]},
        ),
        (
            {
                "one": {**SERVE, "concurrency": 1, "temperature": 0.0},
                "two": {**SERVE, "concurrency": 2, "temperature": 1.0},
            },
            {},
        ),
        # Lengths that change out of proportion.
        (
            {
                "a": {"type": "generate", "input_tokens": 128, "output_tokens": 32},
                "b": {"type": "generate", "input_tokens": 512, "output_tokens": 32},
                "c": {"type": "generate", "input_tokens": 512, "output_tokens": 256},
            },
            {
                "input length": [(128, "a"), (512, "b")],
                "output length": [(32, "b"), (256, "c")],
            },
        ),
        # A workload without a depth has an empty cache, one without a length is left out.
        (
            {"d0": LLAMA, "d2k": {**LLAMA, "depth": 2048}},
            {"depth": [(0, "d0"), (2048, "d2k")]},
        ),
        ({"none": {**LLAMA, "input_tokens": 0}, "some": LLAMA}, {}),
    ],
)
def test_a_line_differs_in_one_thing_alone(
    workloads: Mapping[str, Mapping[str, Any]],
    found: Mapping[str, list[tuple[float, str]]],
) -> None:
    lines = sweeps.lines(a_campaign(workloads))
    assert {line.word: points(line) for line in lines} == found


def test_the_name_of_an_imported_workload_tells_apart_what_its_options_do_not() -> None:
    """The importer keeps threads in the name alone: the depths of two threads must not be joined to those of one."""
    workloads = {
        "pp512-tg128-t1": {**LLAMA, "depth": 0},
        "pp512-tg128-d64-t1": {**LLAMA, "depth": 64},
        "pp512-tg128-d128-t2": {**LLAMA, "depth": 128},
    }
    (imported,) = sweeps.lines(a_campaign(workloads, declared=False))
    assert points(imported) == [(0, "pp512-tg128-t1"), (64, "pp512-tg128-d64-t1")]
    (declared,) = sweeps.lines(a_campaign(workloads))
    assert len(declared.points) == 3


def test_the_number_of_requests_may_grow_along_a_sweep() -> None:
    """Each step lasts as long as the others; a longer measurement of one of its loads is not a point of it."""
    asked = SERVE | {"output_tokens": 500, "burstiness": 0.7}
    workloads = {
        f"serve-in512-out500-rate{rate:g}-burst0.7-n{requests}": asked
        | {"request_rate": rate, "requests": requests}
        for rate, requests in ((0.3, 100), (0.3, 200), (0.5, 125), (0.7, 175), (1, 250))
    }
    (line,) = sweeps.lines(a_campaign(workloads, declared=False))
    names = list(workloads)
    del names[1]
    assert points(line) == list(zip((0.3, 0.5, 0.7, 1), names, strict=True))
    assert line.axis.name == "rate"
