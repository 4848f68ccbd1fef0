"""The payload runs for real: CTranslate2 on the processor, with a model of a few thousand parameters."""

import json
from pathlib import Path
from statistics import fmean

import pytest

from sparkpub.plan.workloads import WORKLOADS, ctranslate2
from sparkpub.plan.workloads.architecture import from_config
from sparkpub.plan.workloads.ctranslate2 import Ctranslate2Options
from sparkpub.record.identity import contradictions
from sparkpub.record.record import Requested
from tests.plan.workloads.running import a_case, run

TINY = {
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 96,
    "tie_word_embeddings": False,
    "dtype": "float32",
}
TINY_CASE = a_case(model_path=None, model_config=TINY, random_weights=True)


@pytest.mark.parametrize("compute_type", ["float32", "int8"])
def test_a_real_run(tmp_path: Path, compute_type: str) -> None:
    options = Ctranslate2Options.model_validate(
        {
            "batch_size": 2,
            "batches": 3,
            "warmup": 1,
            "input_tokens": 5,
            "output_tokens": 4,
            "compute_type": compute_type,
        }
    )
    command = ctranslate2.command(TINY_CASE, options)
    code, log, files = run(command, tmp_path)
    assert code == 0, log
    assert command.measured_from in log.decode().splitlines()
    answer = WORKLOADS["ctranslate2"].parse(log, files, options)
    assert answer.complete
    assert not answer.problems
    assert [phase.name for phase in answer.phases] == ["load", "warmup", "measure"]
    value = {name: metric.value for name, metric in answer.metrics.items()}
    assert next(iter(value)) == "output_throughput_tok_s"

    requests = json.loads(files["requests"])
    latencies = [request["latency_ms"] for request in requests["requests"]]
    assert len(latencies) == 6
    # Both requests of a batch share its latency: 6 requests of 4 tokens in the time of 3 batches.
    seconds = sum(latencies[::2]) / 1e3
    assert value["output_throughput_tok_s"] == pytest.approx(24 / seconds)
    assert value["request_latency_mean_ms"] == pytest.approx(fmean(latencies))
    assert [len(steps) for steps in requests["itl_ms"]] == [3, 3, 3]
    assert all(
        0 < request["ttft_ms"] < request["latency_ms"]
        for request in requests["requests"]
    )


def test_a_run_proves_its_model(tmp_path: Path) -> None:
    """Parameters, bytes and layers as `from_config` counts them; half of the bytes and less after quantisation."""
    command = ctranslate2.command(
        TINY_CASE, Ctranslate2Options(batches=1, output_tokens=2)
    )
    _, log, files = run(command, tmp_path)
    seen = WORKLOADS["ctranslate2"].parse(log, files, None).observed
    known = from_config(TINY, "matrix")
    assert (seen.parameters, seen.weight_bytes, seen.layers) == (
        known.parameters,
        known.weight_bytes,
        known.layers,
    )
    assert seen.random_weights is True
    requested = Requested(
        model_id="tiny",
        random_weights=True,
        architecture=known,
        workload={},
        environment={},
    )
    assert contradictions(requested, seen, {}) == []
