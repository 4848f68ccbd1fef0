"""The payload runs for real, with tiny random weights on the CPU."""

import hashlib
import importlib.util
import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparkpub.plan.workloads import generate
from sparkpub.plan.workloads.architecture import read_model_folder
from sparkpub.plan.workloads.base import Case
from sparkpub.plan.workloads.generate import GenerateOptions
from sparkpub.record.errors import WorkloadError
from tests.plan.workloads.running import run

PAYLOAD = Path(__file__).parents[3] / "sparkpub/plan/workloads/payload/generate.py"
DENSE = {
    "model_type": "qwen2",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "vocab_size": 500,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "tie_word_embeddings": False,
}
MIXTURE = {
    "model_type": "mixtral",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "vocab_size": 500,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
}
OPTIONS = GenerateOptions(
    batch_size=3,
    batches=4,
    warmup=1,
    input_tokens=12,
    output_tokens=6,
    dtype="float32",
    device="cpu",
)


def case(config: dict[str, Any] | None = None, **changes: Any) -> Case:
    facts: dict[str, Any] = {
        "model_key": "tiny",
        "model_id": "none/tiny",
        "model_path": None,
        "model_config": config,
        "random_weights": True,
        "iteration": 1,
        "seed": 42,
    }
    return Case(**facts | changes)


@pytest.mark.torch
@pytest.mark.parametrize(
    "config", [DENSE, MIXTURE], ids=["dense", "mixture of experts"]
)
def test_random_weights_on_the_cpu(config: dict[str, Any], tmp_path: Path) -> None:
    command = generate.command(case(config), OPTIONS)
    code, log, files = run(command, tmp_path)
    assert code == 0, log.decode()
    assert command.measured_from in log.decode().splitlines()
    answer = generate.parse(log, files, OPTIONS)
    assert answer.complete
    assert not answer.problems
    value = {name: found.value for name, found in answer.metrics.items()}
    # 4 batches x 3 requests x 6 tokens in the measured time.
    assert value["output_throughput_tok_s"] == pytest.approx(
        4 * 3 * 6 / (value["measured_time_ms"] / 1e3)
    )
    assert value["total_throughput_tok_s"] == pytest.approx(
        4 * 3 * 18 / (value["measured_time_ms"] / 1e3)
    )
    # Keys and values, layers x kv heads x head size (64 / 4) x 4 bytes.
    layers = config["num_hidden_layers"]
    assert value["kv_bytes_per_token"] == 2 * layers * 2 * 16 * 4
    assert value["allocated_peak_gib"] is None
    assert answer.metrics["allocated_peak_gib"].reason == "no CUDA device was used"
    observed = answer.observed
    assert observed.random_weights is True
    assert (observed.model_type, observed.layers, observed.dtype) == (
        config["model_type"],
        layers,
        "float32",
    )
    assert observed.requests == 12
    assert observed.weight_bytes == 4 * observed.parameters
    assert (
        observed.config_sha256
        == hashlib.sha256((tmp_path / "config.json").read_bytes()).hexdigest()
    )
    assert [phase.name for phase in answer.phases] == ["load", "warmup", "measure"]
    requests = json.loads(files["requests"])
    assert len(requests["requests"]) == 12
    latencies = [request["latency_ms"] for request in requests["requests"]]
    assert value["request_latency_p95_ms"] == pytest.approx(
        np.percentile(latencies, 95)
    )
    assert value["tpot_mean_ms"] == pytest.approx(
        np.mean(
            [
                (request["latency_ms"] - request["ttft_ms"]) / 5
                for request in requests["requests"]
            ]
        )
    )
    assert [len(batch) for batch in requests["itl_ms"]] == [5] * 4


def in_process(folder: Path, seed: int) -> tuple[Any, Any]:
    """The payload as a module, and a generator of two requests of nine tokens that emits seven."""
    import torch

    spec = importlib.util.spec_from_file_location("generate_payload", PAYLOAD)
    assert spec is not None
    assert spec.loader is not None
    payload = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(PAYLOAD.parent))  # as Python does for a script
    try:
        spec.loader.exec_module(payload)
    finally:
        sys.path.remove(str(PAYLOAD.parent))
    (folder / "config.json").write_text(json.dumps(DENSE))
    chosen = Namespace(
        config=folder / "config.json",
        model=None,
        random_weights=False,
        device="cpu",
        dtype="float32",
        seed=seed,
        attention="sdpa",
        batch_size=2,
        batches=1,
        warmup=0,
        input_tokens=9,
        output_tokens=7,
        cuda_graph=False,
    )
    torch.manual_seed(seed)
    model, _, _ = payload.load(chosen)
    return model, payload.Generator(model, chosen)


@pytest.mark.torch
def test_the_decode_loop_emits_what_transformers_generates(tmp_path: Path) -> None:
    import torch

    with torch.inference_mode():
        model, generator = in_process(tmp_path, seed=3)
        # Larger weights than the initialiser's, so that the winner of each step is not decided by rounding.
        for parameter in model.parameters():
            parameter.mul_(4.0)
        generator.batch(0)
        expected = model.generate(
            generator.prompts[0],
            attention_mask=torch.ones(2, 9),
            max_new_tokens=7,
            min_new_tokens=7,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )
    assert generator.finite()
    assert generator.output.tolist() == expected[:, 9:].tolist()


@pytest.mark.torch
def test_the_same_seed_computes_the_same_tokens(tmp_path: Path) -> None:
    import torch

    outputs = []
    for seed in (1, 1, 2):
        with torch.inference_mode():
            _, generator = in_process(tmp_path, seed)
            generator.batch(0)
        outputs.append(generator.output.tolist())
    assert outputs[0] == outputs[1]
    assert outputs[0] != outputs[2]


def test_a_model_needs_a_folder_or_a_config() -> None:
    with pytest.raises(WorkloadError, match=r"models\.tiny"):
        generate.command(case(), OPTIONS)


def test_a_model_folder_is_given_as_the_environment_sees_it() -> None:
    argv = generate.command(
        case(model_path="/models/tiny", random_weights=False), OPTIONS
    ).argv
    assert argv[argv.index("--model") + 1] == "/models/tiny"
    assert "--random-weights" not in argv
    assert (
        "--random-weights"
        in generate.command(case(model_path="/models/tiny"), OPTIONS).argv
    )


def test_a_report_of_infinite_logits_is_not_hidden() -> None:
    report = {
        "metrics": {"output_throughput_tok_s": 5.0},
        "problems": ["the logits are not finite"],
    }
    answer = generate.parse(b"", {"report": json.dumps(report).encode()}, None)
    assert answer.problems == ("the logits are not finite",)
    assert not answer.complete


@pytest.mark.torch
def test_weights_of_a_folder_are_loaded_and_said_not_to_be_random(
    tmp_path: Path,
) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(
        AutoConfig.for_model(**DENSE), dtype=torch.float32
    )
    model.save_pretrained(tmp_path / "model")
    facts = read_model_folder(tmp_path / "model")
    (tmp_path / "run").mkdir()
    given = case(model_path=str(tmp_path / "model"), random_weights=False)
    code, log, files = run(generate.command(given, OPTIONS), tmp_path / "run")
    assert code == 0, log.decode()
    observed = generate.parse(log, files, OPTIONS).observed
    assert observed.random_weights is False
    for name in (
        "parameters",
        "weight_bytes",
        "kv_bytes_per_token",
        "config_sha256",
        "model_type",
        "layers",
    ):
        assert getattr(observed, name) == getattr(facts, name) is not None
