"""A run's telemetry as the checks read it: each figure worked out by hand from a few samples."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from sparkpub.record.record import Evidence, Phase, Requested
from sparkpub.record.store import Stored
from sparkpub.review.checks.evidence import EvidenceReader, Examined, FileSum, Samples
from tests.building import a_record

PHASE = Phase(name="measure", start_seconds=10.0, end_seconds=20.0)


def examined(folder: Path, files: dict[str, bytes], **fields: Any) -> Examined:
    """What is read of a run with these files, by role."""
    evidence = []
    for role, content in files.items():
        (folder / f"{role}.txt").write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        item: Any = {"role": role, "path": f"{role}.txt"}
        evidence.append(Evidence(**item, sha256=digest, bytes=len(content)))
    record = a_record(evidence=tuple(evidence), **fields)
    return EvidenceReader().of(Stored(record, folder / "run.json"))


def samples(folder: Path, header: str, *rows: str, **fields: Any) -> Samples:
    """The samples of a table, in short."""
    table = "\n".join([f"elapsed_seconds,{header}", *rows, ""]).encode()
    found = examined(folder, {"telemetry": table}, **fields).samples
    assert found is not None
    return found


def test_times_and_gaps(tmp_path: Path) -> None:
    found = samples(tmp_path, "cpu_percent", "-2,9", "0,10", "1,20", "5,30", "6,60")
    assert (found.samples, found.start, found.end) == (5, -2.0, 6.0)
    assert found.times == (-2.0, 0.0, 1.0, 5.0, 6.0)
    assert (found.widest_gap, found.widest_gap_at) == (4.0, 1.0)
    assert found.interval == 1.5  # the median of 2, 1, 4 and 1
    assert found.cpu_percent == 30.0  # from the launch on: (10 + 20 + 30 + 60) / 4
    assert found.swap_used_gib is None


def test_one_sample_has_no_gap(tmp_path: Path) -> None:
    found = samples(tmp_path, "cpu_percent", "3,9")
    assert (found.widest_gap, found.interval, found.end) == (0.0, 0.0, 3.0)


def test_a_table_without_samples_is_empty(tmp_path: Path) -> None:
    found = samples(tmp_path, "cpu_percent")
    assert (found.samples, found.start, found.end) == (0, 0.0, 0.0)
    assert found.cpu_percent is None
    assert found.slowed_share is None
    assert found.foreign_processes is None


def test_reasons_and_clocks_count_under_load(tmp_path: Path) -> None:
    """Of four samples at 50 % or more two are slowed by heat (0x20, 0x8) and one by the power limit (0x4)."""
    found = samples(
        tmp_path,
        "gpu_utilization_percent,gpu_throttle_reasons,gpu_clock_sm_mhz,gpu_foreign_processes",
        "0,49,0x0000000000000020,100,0",
        "1,50,0x0000000000000020,1000,2",
        "2,90,0x0000000000000008,1100,1",
        "3,90,0x0000000000000004,1300,",
        "4,90,0x0000000000000000,,0",
        "5,90,unknown,1200,0",
    )
    assert found.slowed_share == 0.5
    assert found.capped_share == 0.25
    assert (
        found.clock_under_load_mhz == 1150.0
    )  # the median of 1000, 1100, 1300 and 1200
    assert found.foreign_processes == 2


def test_levels_before_the_launch(tmp_path: Path) -> None:
    header = "gpu_memory_used_gib,mem_available_gib,gpu_utilization_percent"
    found = samples(tmp_path, header, "-2,1,90,10", "-1,2,80,30", "0,50,20,99")
    assert found.gpu_used_before_gib == 2.0
    assert found.available_before_gib == 80.0
    assert found.load_before_percent == 20.0
    later = samples(tmp_path, header, "0,5,9,1", "1,6,8,1")
    assert later.gpu_used_before_gib == 5.0  # the first there is
    assert later.load_before_percent is None


@pytest.mark.parametrize(("within", "highest"), [(4, None), (5, 95.0)])
def test_load_in_the_measured_phase_needs_five_samples(
    within: int, highest: float | None, tmp_path: Path
) -> None:
    inside = [f"{10 + place},{91 + place}" for place in range(within)]
    rows = ["9.9,99", *inside, "20.1,99"]
    found = samples(tmp_path, "gpu_utilization_percent", *rows, phases=(PHASE,))
    assert found.load_measured_percent == highest
    without = samples(tmp_path, "gpu_utilization_percent", *rows)
    assert without.load_measured_percent is None


def test_both_ends_belong_to_the_measured_phase(tmp_path: Path) -> None:
    rows = ["10,1", "12,1", "14,1", "16,1", "20,7"]
    found = samples(tmp_path, "gpu_utilization_percent", *rows, phases=(PHASE,))
    assert found.load_measured_percent == 7.0


def test_what_a_record_takes_from_its_samples(tmp_path: Path) -> None:
    """In the phase the counter grows from 2,000 J (second 10, between 1,500 at 5 and 2,500 at 15) to 3,250 J (second
    20), and over the whole run from 1,100 J, the last sample before the launch, to 4,000 J."""
    header = "gpu_memory_used_gib,gpu_temp_celsius,gpu_power_watt,gpu_energy_joule"
    rows = (
        "-2,9,41,50,1000",
        "-1,8,40,50,1100",
        "5,3,60,100,1500",
        "11,4,61,150,2100",
        "15,7,66,200,2500",
        "25,4,62,300,4000",
    )
    found = samples(
        tmp_path, header, *rows, phases=(PHASE,), duration_seconds=25.0
    ).metrics
    assert found["gpu_memory_peak_gib"] == (7.0,)
    assert found["gpu_temp_max_celsius"] == (66.0,)
    assert found["gpu_temp_start_celsius"] == (40.0,)
    assert found["gpu_energy_joule"] == (1250.0, 2900.0)
    assert found["gpu_power_mean_watt"] == (125.0, 187.5)
    whole = samples(tmp_path, header, *rows)
    assert whole.metrics["gpu_energy_joule"] == (2900.0,)
    assert whole.metrics["gpu_power_mean_watt"] == (187.5,)
    assert (whole.energy_start_joule, whole.energy_end_joule) == (1000.0, 4000.0)


@pytest.mark.parametrize(("distinct", "is_traced"), [(19, False), (20, True)])
def test_power_that_varies_is_a_trace_of_its_own(
    distinct: int, is_traced: bool, tmp_path: Path
) -> None:
    rows = [f"{place},{100 + place}" for place in range(distinct)]
    found = samples(tmp_path, "gpu_power_watt", *rows, f"{distinct},100")
    assert (found.trace is not None) == is_traced
    other = samples(tmp_path, "gpu_power_watt", *rows, f"{distinct},101")
    assert not is_traced or found.trace != other.trace


def test_files_are_summed_and_a_file_that_is_gone_is_not(tmp_path: Path) -> None:
    found = examined(tmp_path, {"log": b"abc", "report": b"{}"})
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert found.sums["log.txt"] == FileSum(3, digest)  # FIPS 180-2, appendix B.1
    item = Evidence(role="log", path="gone.txt", sha256=digest, bytes=3)
    gone = EvidenceReader().of(Stored(a_record(evidence=(item,)), tmp_path / "r.json"))
    assert gone.sums["gone.txt"] == FileSum(None, None)
    assert FileSum(3, digest).is_of(item)
    assert not FileSum(4, digest).is_of(item)
    assert not FileSum(3, "0" * 64).is_of(item)


def test_a_changed_log_is_not_read_again(tmp_path: Path) -> None:
    workload = {"type": "generate"}
    asked = Requested(model_id="m", workload=workload, environment={"type": "host"})
    whole = examined(tmp_path, {"log": b"x"}, requested=asked)
    assert whole.answer is not None
    item = Evidence(role="log", path="log.txt", sha256="0" * 64, bytes=1)
    record = a_record(evidence=(item,), requested=asked)
    changed = EvidenceReader().of(Stored(record, tmp_path / "r.json"))
    assert changed.answer is None
    none = examined(tmp_path, {"telemetry": b""}, requested=asked)
    assert none.answer is None
    other = Requested(
        model_id="m", workload={"type": "own"}, environment={"type": "host"}
    )
    assert examined(tmp_path, {"log": b"x"}, requested=other).answer is None


def series(folder: Path, kind: str, **documents: Any) -> tuple[float, ...]:
    """The times of a run whose tool wrote these documents, by role."""
    asked = Requested(
        model_id="m", workload={"type": kind}, environment={"type": "host"}
    )
    files = {
        role: json.dumps(document).encode() for role, document in documents.items()
    }
    answer = examined(folder, {"log": b"x"} | files, requested=asked).answer
    assert answer is not None
    return answer.series


def test_a_batch_takes_as_long_as_its_slowest_request(tmp_path: Path) -> None:
    requests = [
        {"batch": 0, "latency_ms": 5.0},
        {"batch": 0, "latency_ms": 7.0},
        {"batch": 0, "latency_ms": 6},
        {"batch": 1, "latency_ms": 4},
        {"batch": "2", "latency_ms": 4},
        {"batch": 3},
        "torn",
    ]
    told = {"report": {}, "requests": {"requests": requests}}
    assert series(tmp_path, "generate", **told) == (7.0, 4.0)
    told["requests"] = {"requests": "many"}
    assert series(tmp_path, "generate", **told) == ()


def test_a_report_of_products_has_their_times(tmp_path: Path) -> None:
    assert series(tmp_path, "matmul", report={"times_ms": [3, 2.5, "x"]}) == (3.0, 2.5)
    assert series(tmp_path, "matmul", report={"times_ms": 3}) == ()
