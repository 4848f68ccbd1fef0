"""Machines, users and passwords whose names are words of the schema: no key, type or pattern changes."""

import json
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkpub.plan import matrix as matrices
from sparkpub.record.redaction import Redactor
from tests.collect.collecting import a_command, a_matrix, records, run

MATRICES = sorted(Path("matrix").glob("*.yaml"))
WORDS = (
    *("host", "native", "command", "model", "run", "docker", "container", "chroot"),
    *("interleaved", "throughput", "rate", "m", "w", "small", "type", "regex", "argv"),
    *("llama-bench", "trtllm-bench", "vllm-bench", "vllm", "h200", "gb10", "P0", "60g"),
    *("sh", "echo", "log", "report", "requests", "serve", "higher", "all", "0-9"),
    *("output_throughput_tok_s", "deepseek", "qwen72b", "dense7b", "localhost", "data"),
)
NAMES = st.sampled_from(WORDS) | st.from_regex(
    r"[a-z0-9][a-z0-9-]{1,20}", fullmatch=True
)
HOSTILE = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def called(
    monkeypatch: pytest.MonkeyPatch, machine: str, user: str, password: str
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: machine)
    monkeypatch.setenv("HOME", f"/home/{user}")
    monkeypatch.setenv("SOME_PASSWORD", password)


@HOSTILE
@given(machine=NAMES, user=NAMES, password=NAMES, path=st.sampled_from(MATRICES))
def test_a_matrix_keeps_its_words_and_names(
    machine: str, user: str, password: str, path: Path, tmp_path: Path
) -> None:
    matrix = matrices.read(path)
    with pytest.MonkeyPatch.context() as monkeypatch:
        called(monkeypatch, machine, user, password)
        redactor = Redactor(matrix.words)
    for word in (*matrix.words, matrix.order, matrix.baseline_environment):
        assert redactor.options(word) == word


@pytest.mark.parametrize("name", ["host", "rate"])
def test_a_campaign_is_measured_on_a_machine_of_any_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a user and a password of that name, too: a log is redacted before it is read."""
    called(monkeypatch, name, name, name * 3)
    script = "echo rate 5; echo model m host"
    matrix = a_matrix(
        workloads={"w": a_command(script, measured_from="^rate")}, iterations=1
    )
    outcome = run(matrix, tmp_path)
    (record,) = records(tmp_path)
    assert (outcome.left, record.status, record.value("rate")) == (0, "ok", 5.0)
    declared = json.loads((tmp_path / "small/campaign.json").read_text())["matrix"]
    assert declared == matrix.document()


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("connecting to http://model:8000/v1", "connecting to http://<host>:8000/v1"),
        ("running on model now", "running on <host> now"),
        ("HOSTNAME=model", "HOSTNAME=<host>"),
        ("model: llama, 7 models", "model: llama, 7 models"),
        (r"C:\\Users\\anna\\x.gguf", r"<home>\\x.gguf"),
    ],
)
def test_a_plain_word_is_a_machine_only_where_a_machine_stands(
    text: str, clean: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "model")
    assert Redactor().text(text) == clean
