"""What lies beside a report: notes and telemetry, in nested folders as owners keep them."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect.imports.given import About
from sparkpub.record.record import Record
from sparkpub.record.store import file_sha256
from sparkpub.review.checks import review
from sparkpub.review.dataset import load
from tests.collect.imports import importing

RESULTS = importing.RESULTS / "vllm-bench"
WRITTEN: dict[str, Any] = json.loads((RESULTS / "serve-c4.json").read_text())
ABOUT = About.model_validate(
    {
        "layout": {
            "telemetry": {
                "elapsed_seconds": "t",
                "gpu_power_watt": {"at": "mw", "unit": "mW"},
                "gpu_utilization_percent": "busy",
                "gpu_clock_sm_mhz": "sm",
            }
        }
    }
)


def imported(source: Path, data: Path) -> list[Record]:
    return importing.imported(source, data, about=ABOUT)[1]


def telemetry(watt: float) -> str:
    """A sample each second at one power, from somebody's own start to the end of the measurement 100 s later; one has
    no time, and nothing read the clock."""
    rows = [f"{second},{1000 * watt},90,[N/A]" for second in range(101)]
    return "\n".join(["t,mw,busy,sm", f",{9000 * watt},9,9", *rows]) + "\n"


def test_telemetry_beside_a_report_gives_the_means_of_its_measured_phase(
    tmp_path: Path,
) -> None:
    """Constant power: the mean is that power, and the energy is power times duration."""
    folder = tmp_path / "in/tiny/c4"
    folder.mkdir(parents=True)
    shutil.copy(RESULTS / "serve-c4.json", folder / "run1.json")
    (folder / "run1.telemetry.csv").write_text(telemetry(61.5))
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
    assert lines[0] == "elapsed_seconds,gpu_utilization_percent,gpu_power_watt"
    # The measurement ends with the last of the 101 rows.
    last = f"{WRITTEN['duration']:.3f},90,61.5"
    assert (lines[-1], len(lines)) == (last, 102)
    # What lay there is kept as it was.
    original = record.file("original")
    assert original is not None
    assert original.sha256 == file_sha256(folder / "run1.telemetry.csv")
    findings = review(load(tmp_path / "data")).findings
    assert [item.check for item in findings if item.severity == "error"] == []


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("a.telemetry.csv", True),
        ("a-telemetry.csv.gz", True),
        ("b.telemetry.csv", False),
    ],
)
def test_telemetry_belongs_to_a_report_by_its_name(
    name: str, used: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(RESULTS / "serve-c4.json", folder / "a.json")
    content = telemetry(50).encode()
    (folder / name).write_bytes(gzip.compress(content) if ".gz" in name else content)
    records = imported(folder, tmp_path / "data")
    for record in records:
        watt = record.value("gpu_power_mean_watt")
        assert watt == (pytest.approx(50) if used else None)
