"""Sensors, telemetry, what is made of them, and what is noticed on the way."""

import os
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from sparkpub.collect import sampling, watch
from sparkpub.collect.machine import inventory, nvml, proc
from sparkpub.collect.machine.nvml import Gpus
from sparkpub.collect.sampler import Sampler, TelemetryFile
from sparkpub.collect.watch import Watch
from sparkpub.record.sampled_metrics import metrics
from sparkpub.record.telemetry import COLUMNS, parse
from tests.collect.fake_nvml import FakeNvml


def test_a_sample_has_every_sensor_in_its_unit(driver: FakeNvml) -> None:
    driver.utilization, driver.throttle = 97, 0x4
    row = Sampler().row(0.0)
    assert set(row) == set(COLUMNS)
    assert row["gpu_utilization_percent"] == 97
    assert row["gpu_memory_used_gib"] == 1.0
    assert row["gpu_power_watt"] == 100.0  # 100,000 mW
    assert row["gpu_energy_joule"] == 5000.0  # 5,000,000 mJ
    assert (row["gpu_performance_state"], row["gpu_throttle_reasons"]) == ("P8", "0x4")
    assert row["mem_available_gib"] > 0
    assert row["gpu_processes"] == 0


def test_a_spark_has_no_device_memory_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(nvml, "library", lambda: FakeNvml(spark=True))
    sampler, table = Sampler(), TelemetryFile(tmp_path / "t.csv")
    row = sampler.row(0.0)
    assert row["gpu_memory_used_gib"] is None
    assert row["gpu_temp_celsius"] == 40
    table.launched(0.0)
    table.add(0.1, row)
    table.close(sampler.reasons)
    telemetry = parse((tmp_path / "t.csv").read_text())
    assert "Not Supported" in telemetry.notes["gpu_memory_used_gib"]
    found = metrics(telemetry, 1.0, "the measured phase is not known")
    assert found["gpu_memory_peak_gib"].value is None
    assert "Not Supported" in (found["gpu_memory_peak_gib"].reason or "")
    assert found["gpu_temp_end_celsius"].value == 40
    facts = inventory.facts(Gpus())
    assert (facts.unified_memory, facts.kind) == (True, "dgx-spark")
    assert facts.gpus[0].memory_total_gib is None
    assert facts.gpu_slowdown_celsius is None
    assert facts.gpus[0].compute_capability == "12.1"


def test_the_machine_is_described_and_not_named(driver: FakeNvml) -> None:
    facts = inventory.facts(Gpus())
    assert (facts.driver, facts.cuda_driver, facts.kind, facts.unified_memory) == (
        "580.95.05",
        "13.0",
        "h200",
        False,
    )
    assert facts.gpu_slowdown_celsius == 87.0
    assert facts.gpus[0].power_limit_watt == 700.0
    assert facts.gpus[0].power_default_watt == 700.0
    assert (facts.gpus[0].mig, facts.gpus[0].ecc) == (None, True)
    assert "12345678" not in facts.model_dump_json()
    assert facts == inventory.facts(Gpus())


@pytest.mark.parametrize("tenants", [False, True])
def test_processes_of_others_are_told_from_the_runs(
    driver: FakeNvml, tenants: bool
) -> None:
    """What was there before the run is somebody else's, unless it measures a server that nobody here started."""
    sampler = Sampler(tenants=tenants)
    driver.pids = [1]
    assert sampler.row(0.0)["gpu_foreign_processes"] == (not tenants)
    sampler.attach(os.getpid(), 0.0)
    # That one, the run itself, and one of another namespace.
    driver.pids = [1, os.getpid(), 2**22 + 1]
    row = sampler.row(1.0)
    found = (row["gpu_processes"], row["gpu_foreign_processes"])
    assert found == (3, not tenants)
    driver.pids = [os.getpid(), os.getppid()]  # the parent came meanwhile
    assert sampler.row(2.0)["gpu_foreign_processes"] == 1


def a_row(at: float, **values: str) -> dict[str, str]:
    return dict.fromkeys(COLUMNS, "") | {"elapsed_seconds": str(at)} | values


@pytest.fixture
def watching() -> Watch:
    return Watch()


def test_throttling_is_noted_once_at_its_first_time(watching: Watch) -> None:
    for at in (-1.0, 1.0, 2.0, 3.0):
        watching.sample(a_row(at, gpu_throttle_reasons="0x1" if at < 2 else "0x44"))
    noted = [(event.kind, event.at_seconds, event.text) for event in watching.events]
    watching.close()
    assert noted == [
        ("throttle", 2.0, "software power cap"),
        ("throttle", 2.0, "hardware thermal slowdown"),
    ]


def test_memory_left_behind_is_noted(watching: Watch) -> None:
    """2.5 - 1 is 1.5 GiB of the device's; 0.1 GiB of shared segments is no leak."""
    table = "elapsed_seconds,gpu_memory_used_gib,mem_shmem_gib\n-1,1,1\n5,2.5,1.1\n"
    watching.left_behind(parse(table))
    watching.close()
    (event,) = watching.events
    assert (event.kind, event.text.partition(" of ")[0]) == ("leak", "1.50 GiB")
    assert "device memory" in event.text


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("NVRM: Xid (PCI:000f:01:00): 31, pid=123, MMU Fault", "xid"),
        (
            "NVRM: nvAssertOkFailedNoLog: Assertion failed: Out of memory [NV_ERR_NO_MEMORY]",
            "oom",
        ),
        ("mce: [Hardware Error]: Machine check events logged", "kernel"),
        ("eth0: link up", None),
    ],
)
def test_kernel_messages_become_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str, kind: str | None
) -> None:
    # /dev/kmsg gives one record per read: "priority,sequence,time,flags;text".
    ring = tmp_path / "kmsg"
    os.mkfifo(ring)
    monkeypatch.setattr(watch, "KMSG", str(ring))
    reader = Watch()
    writer = os.open(ring, os.O_WRONLY)
    os.write(writer, f"3,100,200,-;{message}\n".encode())
    reader.kernel(7.0)
    os.close(writer)
    reader.close()
    assert [(event.kind, event.text) for event in reader.events] == (
        [] if kind is None else [(kind, message)]
    )


def test_both_versions_of_control_groups_give_the_same_columns(tmp_path: Path) -> None:
    two, one = tmp_path / "v2", tmp_path / "v1"
    for folder in (two, one):
        folder.mkdir()
    gib = 2**30
    (two / "memory.current").write_text(f"{4 * gib}\n")
    (two / "memory.peak").write_text(f"{6 * gib}\n")
    (two / "memory.stat").write_text(
        f"anon {gib}\nfile {2 * gib}\nkernel {gib}\nshmem 0\n"
    )
    (one / "memory.usage_in_bytes").write_text(f"{4 * gib}\n")
    (one / "memory.max_usage_in_bytes").write_text(f"{6 * gib}\n")
    (one / "memory.kmem.usage_in_bytes").write_text(f"{gib}\n")
    (one / "memory.stat").write_text(
        f"rss 0\ncache 0\ntotal_rss {gib}\ntotal_cache {2 * gib}\ntotal_shmem 0\n"
    )
    expected = {
        "cgroup_current_gib": 4,
        "cgroup_peak_gib": 6,
        "cgroup_anon_gib": 1,
        "cgroup_file_gib": 2,
        "cgroup_shmem_gib": 0,
        "cgroup_kernel_gib": 1,
    }
    assert proc.cgroup_columns(two) == proc.cgroup_columns(one) == expected


def test_meminfo_pressure_and_pss_are_read_in_their_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proc, "PROC", tmp_path)
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure" / "memory").write_text(
        "some avg10=1.25 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00\n"
    )
    (tmp_path / "meminfo").write_text(
        "MemTotal: 127600748 kB\nMemFree: 1048576 kB\nMemAvailable: 2097152 kB\nCached: 524288 kB\n"
        "Shmem: 0 kB\nSwapTotal: 1048576 kB\nSwapFree: 524288 kB\nHugePages_Free: 0\n"
    )
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "smaps_rollup").write_text(
        "00400000-7ff rollup\nRss: 9 kB\nPss: 3145728 kB\nPss_Anon: 1 kB\n"
    )
    assert proc.machine_columns() == {
        "mem_free_gib": 1,
        "mem_available_gib": 2,
        "mem_cached_gib": 0.5,
        "mem_shmem_gib": 0,
        "swap_used_gib": 0.5,
    }
    assert proc.pressure_columns() == {"pressure_memory_some_percent": 1.25}
    assert proc.pss([7, 8]) == 3.0
    assert proc.pss([8]) is None


def test_the_sampler_is_a_process_that_keeps_its_pace(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.csv"
    with closing(sampling.Sampling(path, 0.05, None)) as sampler:
        import time

        launched = time.monotonic()
        sampler.launched(os.getpid(), launched)
        time.sleep(1.0)
        assert sampler.alive()
        seen = list(sampler.fresh())
    telemetry = sampling.read(path)
    times = [
        value for value in telemetry.numbers("elapsed_seconds") if value is not None
    ]
    assert times == sorted(times)
    assert times[0] < 0
    assert times[-1] >= 1.0
    assert 5 <= len(seen) <= len(times) <= 30
    assert {"mem_available_gib", "cpu_percent"} <= set(telemetry.columns)


def test_the_gpus_of_the_run_are_summed_up(driver: FakeNvml) -> None:
    """Of three GPUs the run uses two, 100 W each; the second of them is busy, and has used 300 J more."""
    driver.count = 3
    driver.of_gpu[1] = {
        "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=os.getpid())],
        "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=90, memory=10),
        "nvmlDeviceGetTotalEnergyConsumption": 5_300_000,
    }
    row = Sampler([0, 1]).row(0.0)
    assert row["gpu_power_watt"] == 200.0
    assert row["gpu_utilization_percent"] == 45.0
    assert row["gpu_energy_joule"] == 10_300.0
    assert row["gpu_processes"] == 1
