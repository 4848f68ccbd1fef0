"""Servers that run already: what `doctor`, `plan` and `collect` say before anything starts, and what is tried once."""

import json
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect import job, sampling
from sparkpub.collect.doctor import examine
from sparkpub.collect.environments import host
from sparkpub.collect.obstacles import absent, in_the_way
from sparkpub.collect.overview import plan_lines
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from sparkpub.record import package
from sparkpub.record.errors import CollectError
from sparkpub.record.telemetry import parse
from tests.collect.collecting import a_matrix, records, run
from tests.plan.workloads.serving import Served, serving

PAGES = {"/v1/models": {"data": [{"id": "m", "owned_by": "vllm"}]}}


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """llama-benchy, as far as anybody sees who does not start it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "llama-benchy").write_text("#!/bin/sh\nexit 3\n")
    (programs / "llama-benchy").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return programs


def measuring(url: str, **options: Any) -> Matrix:
    workload = {"type": "llama-benchy", "url": url, "repetitions": 1}
    return a_matrix(workloads={"w": workload | options}, retries=1)


def said(matrix: Matrix, data: Path) -> list[list[str]]:
    """The same lines from `collect`, `doctor` and `plan`."""
    missing = [item.detail for item in examine(matrix, data) if item.state == "missing"]
    shown = [line for line in plan_lines(matrix, data) if line.startswith("missing: ")]
    return [
        in_the_way(matrix, plan(matrix)),
        missing,
        [line.removeprefix("missing: ") for line in shown],
    ]


@pytest.mark.parametrize(
    ("pages", "model", "words"),
    [
        (PAGES, "other", "does not serve other; correct model:, it serves m"),
        ({}, None, "/v1/models answered with status 404"),
        ({"/v1/models": {"data": []}}, None, "names no model; say which in model:"),
    ],
)
def test_what_is_wrong_with_a_server_is_said_before_anything_starts(
    pages: dict[str, Any], model: str | None, words: str, client: Path, tmp_path: Path
) -> None:
    with serving(Served(pages)) as server:
        matrix = measuring(server.url, model=model)
        for lines in said(matrix, tmp_path):
            assert len(lines) == 1
            assert words in lines[0]


def test_looking_at_a_matrix_sends_no_key(
    client: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A matrix may be anybody's, and so may the server that it names."""
    with serving(Served(PAGES)) as server:
        server.key = "a-key-of-mine"
        matrix = measuring(server.url)
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        (line,) = absent(matrix, plan(matrix))
        assert "wants a key (status 401); set OPENAI_API_KEY" in line
        monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-mine")
        assert absent(matrix, plan(matrix)) == []
        # With the key it would have listed the model, and said that it is another one.
        other = measuring(server.url, model="other")
        assert absent(other, plan(other)) == []


def test_an_engine_that_is_not_installed_is_said_once_and_before_the_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each of twenty runs fails at its import."""
    config = {"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 1}
    matrix = a_matrix(
        models={"m": {"id": "x/m", "config": config}},
        environments={"one": {"type": "host"}, "two": {"type": "host"}},
        workloads={"w": {"type": "ctranslate2"}},
    )
    monkeypatch.setattr(host, "find_spec", lambda _: None)
    with pytest.raises(CollectError) as raised:
        run(matrix, tmp_path)
    assert raised.value.lines() == [
        "ctranslate2 is not installed, which the runs need; install it with: "
        + package.install_command("demo")
    ]
    assert records(tmp_path) == []


def test_a_container_has_a_loopback_of_its_own(tmp_path: Path) -> None:
    inside = {"type": "docker", "image": "x"}
    workload = {"type": "llama-benchy", "url": "127.0.0.1:1"}
    matrix = a_matrix(environments={"box": inside}, workloads={"w": workload})
    assert absent(matrix, plan(matrix)) == []
    shared = inside | {"network": "host"}
    matrix = a_matrix(environments={"box": shared}, workloads={"w": workload})
    assert "no server answers" in absent(matrix, plan(matrix))[0]


# -- what is tried once --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "attempts"), [("exit 78", 1), ("no-such-program", 1), ("exit 1", 4)]
)
def test_what_would_fail_again_is_tried_once(
    script: str, attempts: int, tmp_path: Path
) -> None:
    """By the exit codes of our drivers and of a shell; two iterations with a retry each are four attempts."""
    matrix = a_matrix(script, iterations=2, retries=1)
    assert run(matrix, tmp_path).measured == attempts
    if attempts == 1:  # whoever corrected it starts `collect` again
        assert run(matrix, tmp_path).measured == 1


# -- whose machine -------------------------------------------------------------------------------------------


REPORT = {
    "version": "0.4.0",
    "benchmarks": [
        {"concurrency": 1, "prompt_size": 64, "tg_throughput": {"mean": 5.0}}
    ],
}


@pytest.mark.parametrize("runs_already", [True, False])
def test_what_a_running_server_takes_in_a_run_is_no_leak_of_the_run(
    runs_already: bool, client: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its memory grows with its first requests, and stays with it; a process of the run gives it back at its end."""
    report = json.dumps(REPORT)
    (client / "llama-benchy").write_text(f"#!/bin/sh\necho '{report}' > report.json\n")
    grown = parse("elapsed_seconds,gpu_memory_used_gib\n-1,40\n0,40\n1,42.5\n")
    monkeypatch.setattr(sampling, "read", lambda _: grown)
    with serving(Served(PAGES)) as server:
        matrix = measuring(server.url) if runs_already else a_matrix("echo rate 5")
        run(matrix, tmp_path, max_runs=1)
    (record,) = records(tmp_path)
    assert record.status == "ok"
    left = [event for event in record.events if event.kind == "leak"]
    assert bool(left) is not runs_already


@pytest.mark.parametrize("here", [True, False])
def test_of_another_machine_nothing_is_claimed(
    here: bool, client: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sensors of the machine that asks say nothing of the one that answers."""
    report = json.dumps(REPORT)
    (client / "llama-benchy").write_text(f"#!/bin/sh\necho '{report}' > report.json\n")
    monkeypatch.setattr(job, "is_here", lambda _: here)
    with serving(Served(PAGES)) as server:
        run(
            a_matrix(
                workloads=measuring(server.url).document()["workloads"], iterations=1
            ),
            tmp_path,
        )
    (record,) = records(tmp_path)
    assert (record.status, record.value("output_throughput_tok_s")) == ("ok", 5.0)
    roles = {item.role for item in record.evidence}
    assert ("telemetry" in roles) is here
    assert ("gpu_power_mean_watt" in record.metrics) is here
    assert (record.machine.arch is not None) is here
    assert (record.memory is not None) is here
    assert ("machine" in record.unavailable) is not here
