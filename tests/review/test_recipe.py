"""Recipes of rows whose server somebody else started: what results tell of its options becomes its command."""

from pathlib import Path
from typing import Any

import pytest

from sparkpub.record.errors import UsageError
from sparkpub.record.record import Record
from sparkpub.record.store import read_record
from sparkpub.review.recipe import command, told

CAMPAIGNS = Path(__file__).parents[1] / "data/campaigns"


def a_record(engine: str, settings: dict[str, str], **workload: Any) -> Record:
    path = next(CAMPAIGNS.glob("h200/native_dense7b_decode_iter01_*Z.json"))
    record = read_record(path).record
    asked = {"type": "llama-benchy", "input_tokens": 512, "concurrency": 4} | workload
    return record.model_copy(
        update={
            "observed": record.observed.model_copy(
                update={"engine": engine, "settings": settings}
            ),
            "requested": record.requested.model_copy(
                update={
                    "model_id": "acme/Walker-8B",
                    "workload": asked,
                    "environment": {"type": "docker", "image": "acme/vllm:1"},
                }
            ),
        }
    )


def test_options_that_results_tell_are_flags_again() -> None:
    settings = {
        "tensor_parallel": "1",
        "enable_prefix_caching": "false",
        "async_scheduling": "true",
        "speculative_config": '{"method": "mtp"}',
        "VLLM_USE_V1": "1",
        "client": "llama-benchy",
        "port": "9",
    }
    record = a_record("vLLM", settings)
    found = told(record)
    assert found["container"] == "acme/vllm:1"
    assert found["env"] == {"VLLM_USE_V1": "1"}
    assert found["command"].replace("\\\n", "").split() == [
        *("vllm", "serve", "{model}", "--port", "{port}", "-tp", "1"),
        *("--no-enable-prefix-caching", "--async-scheduling"),
        *("--speculative-config", '\'{"method":', '"mtp"}\''),
    ]
    shell = command(record)
    assert shell is not None
    assert shell.startswith("VLLM_USE_V1=1 vllm serve acme/Walker-8B")
    assert "--port 8000" in shell


@pytest.mark.parametrize(
    ("engine", "settings", "kind"),
    [
        ("vLLM", {"client": "llama-benchy"}, "llama-benchy"),
        ("Ollama", {"num_ctx": "1"}, "llama-benchy"),
        ("llama.cpp", {"n_batch": "1"}, "llama-bench"),
    ],
)
def test_what_tells_no_command_has_no_recipe(
    engine: str, settings: dict[str, str], kind: str
) -> None:
    record = a_record(engine, settings, type=kind)
    assert command(record) is None
    with pytest.raises(UsageError, match="nothing tells how the server"):
        told(record)
