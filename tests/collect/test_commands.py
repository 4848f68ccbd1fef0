"""doctor, plan, collect and status, as an operator calls them."""

import json
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect import progress
from sparkpub.collect.overview import (
    estimate,
)
from sparkpub.collect.progress import Progress
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from tests.building import a_record
from tests.calling import sparkpub
from tests.collect.collecting import OPEN_GATES, a_matrix, run


@pytest.fixture
def matrix_file(tmp_path: Path) -> Path:
    return write(tmp_path, a_matrix())


def write(tmp_path: Path, matrix: Matrix) -> Path:
    file = tmp_path / "matrix.json"
    file.write_text(json.dumps(matrix.document()))
    return file


def test_plan_and_status_say_what_is_done_and_start_nothing(
    tmp_path: Path, matrix_file: Path
) -> None:
    said = sparkpub("plan", matrix_file, "--data", tmp_path, "--json")
    assert said.returncode == 0
    document = json.loads(said.stdout)
    cell = {"model": "m", "environment": "native", "workload": "w"}
    assert document["runs"] == [
        {"position": 0, "iteration": 1, "state": "missing"} | cell,
        {"position": 1, "iteration": 2, "state": "missing"} | cell,
    ]
    assert document["estimate_seconds"] is None
    assert not (tmp_path / "small").exists()
    run(a_matrix(), tmp_path, max_runs=1)
    document = json.loads(
        sparkpub("plan", matrix_file, "--data", tmp_path, "--json").stdout
    )
    assert [item["state"] for item in document["runs"]] == ["done", "missing"]
    assert document["estimate_seconds"] >= 0
    said = sparkpub("status", matrix_file, "--data", tmp_path, "--json")
    counts = {"planned": 2, "done": 1, "failed": 0, "quarantined": 0, "missing": 1}
    assert json.loads(said.stdout)["cells"] == [cell | counts]
    assert "1 of 2 done" in sparkpub("status", matrix_file, "--data", tmp_path).stdout
    text = sparkpub("plan", matrix_file, "--data", tmp_path).stdout
    assert "m/native/w  iteration 2  to do" in text
    assert "2 runs, 1 to do" in text


def test_the_estimate_is_arithmetic() -> None:
    # Two runs of 60 s are known; three are left, each after a cooldown of 10 s.
    matrix = a_matrix(iterations=5, gates=OPEN_GATES | {"cooldown": 10})
    cell = {"campaign": "small", "workload": "w", "duration_seconds": 60.0}
    known = [a_record(**cell, iteration=number) for number in (1, 2)]
    assert estimate(matrix, known, plan(matrix)[2:]) == 3 * (60 + 10)
    assert estimate(matrix, [], plan(matrix)) is None


def test_doctor_names_what_stands_in_the_way(tmp_path: Path, matrix_file: Path) -> None:
    good = sparkpub("doctor", matrix_file, "--data", tmp_path, "--json")
    assert good.returncode == 0, good.stdout
    checks = {item["name"]: item for item in json.loads(good.stdout)["checks"]}
    assert "missing" not in {item["state"] for item in checks.values()}
    assert checks["runs"]["detail"] == "2 runs planned, 0 recorded"
    assert {
        "gpu",
        "memory",
        "disk",
        "cgroup",
        "docker",
        "chroot",
        "clocks",
        "git",
    } <= set(checks)
    broken = a_matrix(models={"m": {"id": "x/m", "path": "/no/such"}})
    bad = sparkpub("doctor", write(tmp_path, broken), "--data", tmp_path)
    assert bad.returncode == 1
    assert "missing matrix: no model at /no/such, environment native" in bad.stdout


def test_doctor_runs_each_cell_once_and_keeps_nothing(tmp_path: Path) -> None:
    workloads: dict[str, Any] = {
        name: a_matrix(script).declared_workload("w") | {"runs": 3}
        for name, script in (("good", "echo rate 5"), ("bad", "exit 4"))
    }
    file = write(tmp_path, a_matrix(workloads=workloads, gates={"cooldown": 600}))
    said = sparkpub("doctor", file, "--data", tmp_path, "--smoke", "--json")
    assert said.returncode == 1
    checks = {item["name"]: item for item in json.loads(said.stdout)["checks"]}
    assert sum("smoke" in name for name in checks) == 2
    assert checks["smoke m/native/good"]["state"] == "ok"
    assert checks["smoke m/native/bad"]["state"] == "missing"
    assert "exit status 4" in checks["smoke m/native/bad"]["detail"]
    assert not (tmp_path / "small").exists()


class Terminal:
    """A terminal that keeps what it is sent."""

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None: ...


def test_on_a_terminal_one_line_is_redrawn_within_its_width(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(progress.sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    shown = Progress("c")
    shown.counts(1, 4)
    shown.live("deepseek/native/w 2", "running", "30s 61 °C")
    line = "[1/4] | running 30s 61 °C | deepseek/nat"
    assert terminal.text == f"\r\x1b[K{line[:39]}"
    shown.finished()
    shown.live("m/native/w 3", "running", "1s")
    assert "[2/4] ETA" in terminal.text
    shown.line("done")
    shown.close()
    assert terminal.text.endswith("Z done\n")
