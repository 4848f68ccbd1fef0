"""The same campaign in every environment at once, and the bug that made the predecessor's comparison void."""

import json
from pathlib import Path
from typing import Any

import pytest

from sparkpub.record.record import Record
from tests.collect.collecting import a_command, a_matrix, records, run
from tests.collect.environments.rootfs import BINDS, IMAGE, a_rootfs, an_engine


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


SCRIPT = 'test -f "$0/config.json" && echo "{}" > "$1/r.json" && echo rate 2 && sleep 1 && echo at "$0"'


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
    environment = {
        "type": "docker",
        "image": IMAGE,
        "network": "none",
        "python": "/usr/bin/python3",
        "binds": [*BINDS, f"{tmp_path / 'models'}:/models:ro"],
    }
    with an_engine():
        record = in_environment(tmp_path, environment, SCRIPT)
    assert log_of(tmp_path, record) == "rate 2\nat /models/m\n"
    assert record.container is not None
    assert record.container.image == IMAGE
    assert record.argv[-1] == "/sparkpub"
    assert record.metrics["cgroup_peak_gib"].value is not None
