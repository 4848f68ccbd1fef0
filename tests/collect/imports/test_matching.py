"""A run imported beside a matrix joins the cell that it belongs to, and no other."""

import json
from pathlib import Path
from typing import Any

import pytest

from sparkpub.plan.matrix import Matrix
from tests.collect.imports.importing import RESULTS, imported

LLAMA = {"type": "llama-bench", "repetitions": 5, "warmup": 0}
SERVE = {"type": "vllm-bench", "mode": "serve", "batch_size": 32}
TWELVE = SERVE | {"requests": 12, "input_tokens": 64, "output_tokens": 16}
C4 = TWELVE | {"concurrency": 4}
"""serve-c4.json: 12 requests of 64 and 16 tokens (its log says so), 4 in flight, as fast as they go."""


def matrix(model: str, **workloads: dict[str, Any]) -> Matrix:
    return Matrix.model_validate(
        {
            "campaign": "c",
            "title": "t",
            "models": {"tiny": {"id": model}},
            "environments": {"native": {"type": "host"}},
            "workloads": workloads,
        }
    )


def joined(
    kind: str, source: Path, data: Path, declared: Matrix, **given: Any
) -> tuple[list[tuple[str, str]], list[str]]:
    """(model, workload) of every record in order of time, and why others were refused."""
    outcome, records = imported(kind, source, data, matrix=declared, **given)
    cells = [(record.model, record.workload) for record in records]
    return cells, [left.reason for left in outcome.refused]


def test_tests_of_llama_bench_join_the_workload_that_asks_for_them(
    tmp_path: Path,
) -> None:
    """Those with settings of their own join none by themselves: kv-q8.json has a KV cache in q8_0."""
    folder = RESULTS / "llama-bench"
    (row, *_) = json.loads((folder / "warmup-r5.json").read_text())
    name = Path(row["model_filename"]).name
    plain = LLAMA | {"input_tokens": 32, "output_tokens": 8}
    declared = matrix(name, plain=plain, other=plain | {"depth": 64})
    cells, refused = joined(
        "llama-bench", folder / "warmup-r5.json", tmp_path, declared
    )
    assert (cells, refused) == ([("tiny", "plain")], [])
    # The tool was told of no repetition that does not count, as our own runs of it are.
    warm = matrix(name, plain=plain | {"warmup": 1})
    source = folder / "warmup-r5.json"
    _, refused = joined("llama-bench", source, tmp_path / "warm", warm)
    assert "plain: its warmup is 0 in place of 1" in refused[0]
    rows = json.loads((folder / "kv-q8.json").read_text())
    name = Path(rows[0]["model_filename"]).name
    source = folder / "kv-q8.json"
    longer = LLAMA | {"input_tokens": 64, "output_tokens": 16, "repetitions": 3}
    cells, refused = joined(
        "llama-bench", source, tmp_path / "kv", matrix(name, plain=longer)
    )
    assert cells == []
    assert "plain: its settings is v-q8_0-fa1" in refused[0]


@pytest.mark.parametrize(
    ("workloads", "cells", "said"),
    [
        ({"load": C4, "other": C4 | {"concurrency": 8}}, [("tiny", "load")], None),
        (
            {"all-at-once": TWELVE},
            [],
            "all-at-once: its concurrency is 4 in place of None",
        ),
        (
            {"paced": C4 | {"request_rate": 2}},
            [],
            "paced: its request_rate is None in place of 2.0",
        ),
        ({"prompts": LLAMA}, [], "prompts: it is of llama-bench"),
        (
            {"cold": C4 | {"temperature": 0}, "warm": C4 | {"temperature": 1}},
            [],
            "it fits the workloads cold and warm; name one with --workload",
        ),
    ],
)
def test_a_report_of_a_server_joins_the_only_workload_that_it_does_not_contradict(
    workloads: dict[str, dict[str, Any]],
    cells: list[tuple[str, str]],
    said: str | None,
    tmp_path: Path,
) -> None:
    found, refused = joined(
        "vllm-bench",
        RESULTS / "vllm-bench/serve-c4.json",
        tmp_path,
        matrix("tiny-llama", **workloads),
    )
    assert found == cells
    assert len(refused) == (said is not None)
    assert said is None or said in refused[0]


def test_lengths_that_a_report_does_not_say_show_in_its_means(tmp_path: Path) -> None:
    """detailed.json has no log: 8 requests, 2 in flight, 32 tokens a prompt on average."""
    report = json.loads((RESULTS / "vllm-bench/detailed.json").read_text())
    prompt = report["total_input_tokens"] / report["completed"]
    assert 32 <= prompt < 33
    load = SERVE | {"requests": 8, "output_tokens": 12, "concurrency": 2}
    source = RESULTS / "vllm-bench/detailed.json"
    both = matrix(
        "tiny-llama",
        short=load | {"input_tokens": 32},
        long=load | {"input_tokens": 64},
    )
    assert joined("vllm-bench", source, tmp_path, both) == ([("tiny", "short")], [])
    long = matrix("tiny-llama", long=load | {"input_tokens": 64})
    cells, refused = joined("vllm-bench", source, tmp_path / "long", long)
    assert cells == []
    assert (
        f"long: its input_tokens were {prompt:g} on average in place of 64"
        in refused[0]
    )
