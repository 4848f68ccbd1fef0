"""`vllm bench`: what the real tool left, and what it documents.

Logs and reports under `tests/data/logs/vllm-bench` are of vLLM 0.24.0 on an NVIDIA H200.
"""

import json
from pathlib import Path

import pytest

from sparkpub.plan.workloads import vllm_bench

LOGS = Path(__file__).parents[2] / "data/logs/vllm-bench"


def test_the_report_of_a_client_alone_names_no_engine() -> None:
    report = json.loads((LOGS / "0.24-serve.report.json").read_text())
    assert (
        vllm_bench.parse(
            b"", {"report": json.dumps(report).encode()}, None
        ).observed.engine
        is None
    )
    # lhl/strix-halo-testing has results of llama.cpp with `backend='vllm'`, which is the client's own default.
    own = json.dumps(report | {"backend": "vllm"}).encode()
    assert vllm_bench.parse(b"", {"report": own}, None).observed.engine is None


@pytest.mark.parametrize(
    ("tokenizer", "told"),
    [
        ("gpt2", "gpt2, of another model"),
        ("random/Qwen2-7B", None),
        ("<home>/model", None),  # a folder says nothing of whose it is
    ],
)
def test_prompts_that_another_models_tokenizer_cut_are_told(
    tokenizer: str, told: str | None
) -> None:
    report = json.loads((LOGS / "0.24-serve.report.json").read_text())
    report |= {"model_id": "random/qwen2-7b", "tokenizer_id": tokenizer}
    answer = vllm_bench.parse(b"", {"report": json.dumps(report).encode()}, None)
    assert answer.observed.settings.get("tokenizer") == told
