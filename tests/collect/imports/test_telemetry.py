"""What lies beside a report: notes and telemetry, in nested folders as owners keep them."""

import gzip
import json
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect.imports.telemetry import samples
from sparkpub.record.record import Record
from sparkpub.record.store import file_sha256
from sparkpub.review.checks import review
from sparkpub.review.dataset import load
from tests.collect.imports import importing

RESULTS = importing.RESULTS / "vllm-bench"
WRITTEN: dict[str, Any] = json.loads((RESULTS / "serve-c4.json").read_text())
ENDED = datetime.strptime(WRITTEN["date"], "%Y%m%d-%H%M%S")  # noqa: DTZ007 - a local clock
HEADER = (
    "timestamp, index, utilization.gpu [%], memory.used [MiB], temperature.gpu, "
    "power.draw [W], clocks.sm [MHz], pstate"
)
"""As `nvidia-smi --query-gpu=… --format=csv` writes it; the rows below are made in its form."""


def imported(source: Path, data: Path) -> list[Record]:
    return importing.imported("vllm-bench", source, data)[1]


def row(moment: datetime, watt: float, gpu: int = 0) -> str:
    clock = moment.strftime("%Y/%m/%d %H:%M:%S.") + f"{moment.microsecond // 1000:03d}"
    return f"{clock}, {gpu}, 90 %, 2048 MiB, 51, {watt:.2f} W, 2400 MHz, P0"


def telemetry(watt: float) -> str:
    """A sample each second from 2 s before the measurement to 2 s after it, at one power."""
    began = ENDED - timedelta(seconds=round(WRITTEN["duration"]))
    length = round(WRITTEN["duration"]) + 2
    rows = [row(began + timedelta(seconds=s), watt) for s in range(-2, length + 1)]
    return "\n".join([HEADER, *rows]) + "\n"


def test_telemetry_beside_a_report_gives_the_means_of_its_measured_phase(
    tmp_path: Path,
) -> None:
    """Constant power: the mean is that power, and the energy is power times duration. 2048 MiB are 2 GiB."""
    folder = tmp_path / "in/tiny/c4"
    folder.mkdir(parents=True)
    shutil.copy(RESULTS / "serve-c4.json", folder / "run1.json")
    (folder / "run1.gpu.csv").write_text(telemetry(61.5))
    (record,) = imported(tmp_path / "in", tmp_path / "data")
    assert record.value("gpu_power_mean_watt") == pytest.approx(61.5)
    assert record.value("gpu_energy_joule") == pytest.approx(61.5 * WRITTEN["duration"])
    assert record.value("gpu_utilization_mean_percent") == 90
    assert record.metrics["gpu_power_mean_watt"].source == "sampler"
    (phase,) = record.phases
    assert (phase.name, phase.start_seconds) == ("measure", 0.0)
    assert phase.end_seconds == pytest.approx(WRITTEN["duration"])
    kept = record.file("telemetry")
    assert kept is not None
    lines = (tmp_path / "data/c" / kept.path).read_text().splitlines()
    assert lines[0].startswith("elapsed_seconds,gpu_utilization_percent,")
    assert lines[1].startswith("-2.000,90,2,51,61.5,2400,P0")
    # What lay there is kept as it was.
    original = record.file("original")
    assert original is not None
    assert original.sha256 == file_sha256(folder / "run1.gpu.csv")
    findings = review(load(tmp_path / "data")).findings
    assert [item.check for item in findings if item.severity == "error"] == []


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("a.telemetry.csv", True),
        ("a_gpu.csv", True),
        ("power.csv", True),  # the only one of a folder with one report
        ("a.nvidia-smi.csv.gz", True),
        ("b.gpu.csv", False),
    ],
)
def test_telemetry_belongs_to_a_report_by_its_name_or_because_nothing_else_is_there(
    name: str, used: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(RESULTS / "serve-c4.json", folder / "a.json")
    content = telemetry(50).encode()
    (folder / name).write_bytes(gzip.compress(content) if ".gz" in name else content)
    if not used:  # two reports: which one is it of?
        other = WRITTEN | {"date": "20261121-154933"}
        (folder / "c.json").write_text(json.dumps(other))
    records = imported(folder, tmp_path / "data")
    watts = {record.value("gpu_power_mean_watt") for record in records}
    assert watts == {50 if used else None}


@pytest.mark.parametrize(
    ("report", "content", "problem"),
    [
        (
            "serve-c4",
            f"{HEADER}\n{row(ENDED, 5)}\n{row(ENDED, 6, gpu=1)}\n",
            "of several GPUs",
        ),
        (
            "serve-c4",
            "model,rate\ntiny,4\n",
            None,
        ),  # a table of results, as guidellm writes it
        ("serve-c4", "", None),
        ("throughput", telemetry(5), "times of day, and the report has none"),
    ],
)
def test_a_csv_that_cannot_be_used_leaves_the_run_without_telemetry(
    report: str, content: str, problem: str | None, tmp_path: Path
) -> None:
    shutil.copy(RESULTS / f"{report}.json", tmp_path / "a.json")
    (tmp_path / "a.csv").write_text(content)
    (record,) = imported(tmp_path, tmp_path / "data")
    assert (record.file("telemetry"), record.phases) == (None, ())
    assert problem is None or problem in record.unavailable["telemetry"]


def test_telemetry_of_our_own_sampler_stays_as_it_is() -> None:
    ours = b"elapsed_seconds,gpu_power_watt\n0.0,50\n# gpu_memory_used_gib: not supported\n"
    assert samples(ours, None).content == ours


def test_the_nearest_notes_say_what_was_asked_for_and_all_are_kept(
    tmp_path: Path,
) -> None:
    """detailed.json alone says no lengths; its notes do: 32 and 12, as in the command that made it."""
    folder = tmp_path / "in/spark/tiny"
    folder.mkdir(parents=True)
    shutil.copy(RESULTS / "detailed.json", folder / "run1.json")
    (tmp_path / "in/metadata.yaml").write_text("owner: lab\nrandom_input_len: 999\n")
    (folder / "run1.meta.json").write_text(
        json.dumps(
            {"input_len": 32, "random_input_len": 32, "output_len": 12, "gpu": "GB10"}
        )
    )
    (record,) = imported(tmp_path / "in", tmp_path / "data")
    assert record.workload == "serve-in32-out12-c2-n8"
    asked = record.requested.workload
    assert (asked["input_tokens"], asked["output_tokens"]) == (32, 12)
    (noted,) = (event.text for event in record.events if "noted" in event.text)
    assert "owner=lab" in noted
    assert "gpu=GB10" in noted
    # Nothing that people say is taken for what the run showed.
    assert record.observed.device is None
    original = record.file("original")
    assert original is not None
    assert original.sha256 == file_sha256(folder / "run1.meta.json")
