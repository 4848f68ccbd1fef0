"""A new figure beside those published of the same model."""

from pathlib import Path
from typing import Any

from sparkpub.record.record import Observed, Requested
from sparkpub.review import published
from sparkpub.review.speeds import GENERATION
from tests.review.statistics.campaigns import a_campaign, written


def campaign(data: Path, name: str, model: str, rate: float, **asked: Any) -> None:
    """A campaign of one run of llama-benchy."""
    load = {"input_tokens": 512, "output_tokens": 128, "concurrency": 1} | asked
    requested = Requested(
        model_id=model,
        workload={"type": "llama-benchy"} | load,
        environment={"type": "host"},
    )
    observed = Observed(engine="vLLM", dtype="bfloat16")
    fields = {"requested": requested, "observed": observed}
    cells = {("m", "native"): {GENERATION: [rate]}}
    made = a_campaign(name, cells, matrix=False, published=True, **fields)
    written(made, data)


def test_the_nearest_load_of_the_same_model_is_named(tmp_path: Path) -> None:
    campaign(tmp_path, "mine", "llama3.1:8b-instruct-q4_K_M", 33.0)
    other = tmp_path / "published"
    campaign(other, "many-users", "meta-llama/Llama-3.1-8B", 300.0, concurrency=16)
    campaign(other, "one-user", "meta-llama/Llama-3.1-8B-Instruct", 30.0)
    campaign(other, "another-model", "Qwen2.5-7B-Instruct", 33.0)
    line = published.beside("mine", tmp_path, other, tmp_path / "not-there")
    # 33 of 30 are 110 %.
    assert line == (
        "against the same model, format and load (machine not stated) in one-user: "
        "110\u00a0%, 33.0 against 30.0 tokens a second, 1 run against 1"
    )


def test_what_is_not_the_same_is_said_and_nothing_of_another_model(
    tmp_path: Path,
) -> None:
    campaign(tmp_path, "mine", "x/m-7b", 33.0)
    campaign(tmp_path, "another", "y/m-13b", 30.0)
    assert published.beside("mine", tmp_path) is None
    campaign(tmp_path, "theirs", "y/M-7B-AWQ", 30.0, input_tokens=2048)
    line = published.beside("mine", tmp_path)
    assert line is not None
    assert (
        "nearest figure of the same model (one user, 2,048 in, 128 out by llama-benchy)"
        in line
    )
    # Two loads have no share.
    assert line.endswith(
        "in theirs: 33.0 against 30.0 tokens a second, 1 run against 1"
    )
