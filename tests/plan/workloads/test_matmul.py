"""The payload runs for real, on the CPU."""

import json
from pathlib import Path

import pytest

from sparkpub.plan.workloads import matmul
from sparkpub.plan.workloads.matmul import MatmulOptions
from tests.plan.workloads.running import a_case, run


def test_numpy_on_the_cpu(tmp_path: Path) -> None:
    # The name for readers is none of the payload's options.
    options = MatmulOptions(
        size=128, iterations=4, warmup=1, device="cpu", label="Warm-up"
    )
    command = matmul.command(a_case(), options)
    code, log, files = run(command, tmp_path)
    assert code == 0, log
    assert command.measured_from
    assert command.measured_from in log.decode().splitlines()
    answer = matmul.parse(log, files, options)
    assert answer.complete
    assert not answer.problems
    report = json.loads(files["report"])
    assert len(report["times_ms"]) == 4
    mean_ms = sum(report["times_ms"]) / 4
    assert answer.metrics["matmul_time_mean_ms"].value == pytest.approx(mean_ms)
    # 2 n^3 operations in the mean time; ms to s is 1e-3, FLOP to GFLOP 1e9.
    assert answer.metrics["matmul_gflop_s"].value == pytest.approx(
        2 * 128**3 / (mean_ms * 1e-3) / 1e9
    )
    assert answer.observed.engine == "numpy"
    assert [phase.name for phase in answer.phases] == ["load", "warmup", "measure"]


def test_a_wrong_product_is_no_result(tmp_path: Path) -> None:
    options = MatmulOptions(size=64, iterations=1, device="cpu")
    report = {
        "size": 64,
        "gflop_s": 1.0,
        "mean_ms": 1.0,
        "correct": False,
        "relative_error": 0.5,
    }
    answer = matmul.parse(b"", {"report": json.dumps(report).encode()}, options)
    assert not answer.complete
    assert answer.problems == ("wrong result: relative error 0.5",)
