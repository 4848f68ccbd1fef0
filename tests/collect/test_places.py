"""The same campaign in every environment at once, and the bug that made the predecessor's comparison void."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from sparkpub.record.record import Record
from tests.collect.collecting import a_command, a_matrix, records, run
from tests.collect.environments.rootfs import BINDS, IMAGE, a_rootfs, a_tar


def in_environment(tmp_path: Path, environment: dict[str, Any], script: str) -> Record:
    model = tmp_path / "models" / "m"
    model.mkdir(parents=True)
    (model / "config.json").write_text(json.dumps({"model_type": "tiny"}))
    models = {"m": {"id": "x/m", "path": str(model)}}
    workload = a_command(script) | {
        "argv": ["sh", "-c", script, "{model_path}", "{workdir}"],
        "outputs": {"report": "r.json"},
    }
    outcome = run(
        a_matrix(
            models=models,
            environments={"there": environment},
            workloads={"w": workload},
            iterations=1,
        ),
        tmp_path / "data",
    )
    assert outcome.exit_code == 0
    (record,) = records(tmp_path / "data")
    assert record.file("report") is not None
    return record


SCRIPT = 'test -f "$0/config.json" && echo "{}" > "$1/r.json" && echo rate 2 && sleep 0.3 && echo at "$0"'


def log_of(tmp_path: Path, record: Record) -> str:
    item = record.file("log")
    assert item is not None
    return (tmp_path / "data" / "small" / item.path).read_text()


@pytest.mark.parametrize(
    ("kind", "no_container"),
    [
        pytest.param("chroot", "not a container", marks=pytest.mark.chroot),
        pytest.param(
            "nspawn",
            "a container of systemd-nspawn, which has no engine and no image",
            marks=pytest.mark.nspawn,
        ),
    ],
)
def test_a_campaign_in_another_root(
    tmp_path: Path, kind: str, no_container: str
) -> None:
    root = a_rootfs(tmp_path / "root")
    binds = [*BINDS, f"{tmp_path / 'models'}:/models:ro"]
    record = in_environment(
        tmp_path, {"type": kind, "rootfs": str(root), "binds": binds}, SCRIPT
    )
    assert log_of(tmp_path, record).startswith("rate 2\nat /models/m\n")
    assert record.container is None
    assert record.unavailable["container"] == no_container


@pytest.mark.docker
def test_a_campaign_in_a_container(tmp_path: Path) -> None:
    import docker

    client = docker.from_env()
    client.api.import_image_from_data(
        a_tar(), repository=IMAGE.partition(":")[0], tag="latest"
    )
    client.close()
    environment = {
        "type": "docker",
        "image": IMAGE,
        "network": "none",
        "python": "/usr/bin/python3",
        "binds": [*BINDS, f"{tmp_path / 'models'}:/models:ro"],
    }
    record = in_environment(tmp_path, environment, SCRIPT)
    assert log_of(tmp_path, record) == "rate 2\nat /models/m\n"
    assert record.container is not None
    assert record.container.image == IMAGE
    assert record.argv[-1] == "/sparkpub"
    assert record.metrics["cgroup_peak_gib"].value is not None


@pytest.mark.parametrize("honest", [True, False])
def test_an_engine_that_ignores_the_model_is_caught(
    tmp_path: Path, honest: bool
) -> None:
    """The predecessor's runner dropped --model_path: every row was the first model. What ran contradicts what was
    asked for, and the second model's runs say so."""
    configs = {
        "small": {
            "model_type": "qwen2",
            "num_hidden_layers": 28,
            "num_attention_heads": 28,
            "num_key_value_heads": 4,
            "hidden_size": 3584,
            "intermediate_size": 18944,
            "vocab_size": 152064,
            "torch_dtype": "bfloat16",
        },
        "large": {
            "model_type": "qwen2",
            "num_hidden_layers": 80,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "hidden_size": 8192,
            "intermediate_size": 29568,
            "vocab_size": 152064,
            "torch_dtype": "bfloat16",
        },
    }
    models = {}
    for name, config in configs.items():
        folder = tmp_path / "models" / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(config))
        models[name] = {"id": f"x/{name}", "path": str(folder)}
    engine = tmp_path / "trtllm-bench"
    engine.write_text(
        STAND_IN.format(
            python=sys.executable, honest=honest, first=tmp_path / "models" / "small"
        )
    )
    engine.chmod(0o755)
    environment = {"type": "host", "env": {"PATH": f"{tmp_path}:/usr/bin:/bin"}}
    workload = {
        "type": "trtllm-bench",
        "mode": "throughput",
        "requests": 50,
        "input_tokens": 32,
        "output_tokens": 128,
        "max_batch_size": 8,
        "max_num_tokens": 4096,
    }
    run(
        a_matrix(
            models=models,
            environments={"native": environment},
            workloads={"w": workload},
            iterations=1,
        ),
        tmp_path / "data",
    )
    found = {record.model: record for record in records(tmp_path / "data")}
    doubts = {
        name: [
            event.text for event in record.events if "observed identity" in event.text
        ]
        for name, record in found.items()
    }
    assert doubts["small"] == []
    # Keys and values of every layer, in bytes per token: 2 · 28 · 4 · 128 · 2, and 2 · 80 · 8 · 128 · 2.
    expected = "observed identity is not the requested one: kv bytes per token is 57,344 and that model has 327,680"
    assert doubts["large"] == ([] if honest else [expected])


STAND_IN = """#!{python}
import json, sys
argv = sys.argv
path = argv[argv.index("--model_path") + 1] if {honest} else "{first}"
config = json.load(open(path + "/config.json"))
head = config["hidden_size"] // config["num_attention_heads"]
kv = 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * head * 2
print("[TensorRT-LLM] TensorRT-LLM version: 1.1.0rc3")
print("[I] Peak memory during memory usage profiling (torch + non-torch): 70.00 GiB, available KV cache memory when "
      f"calculating max tokens: 44.00 GiB, fraction is set 0.9, kv size is {{kv}}. device total memory 119.70 GiB, , "
      "tmp kv_mem 0.56 GiB")
print("===========================================================")
print("= PERFORMANCE OVERVIEW ")
print("===========================================================")
print("Request Throughput (req/sec):                     0.9359")
print("Total Output Throughput (tokens/sec):             119.7900")
print("Total Latency (ms):                               53426.1000")
"""
