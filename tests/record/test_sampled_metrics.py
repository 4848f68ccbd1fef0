"""What a record takes from its telemetry, by hand."""

from sparkpub.record import sampled_metrics
from sparkpub.record.record import Phase
from sparkpub.record.sampled_metrics import energy
from sparkpub.record.telemetry import Telemetry


def a_telemetry(**columns: tuple[float | None, ...]) -> Telemetry:
    texts = {
        name: ["" if value is None else str(value) for value in values]
        for name, values in columns.items()
    }
    return Telemetry(texts)


def measured(start: float, end: float) -> Phase:
    return Phase(name="measure", start_seconds=start, end_seconds=end)


A_RUN = {
    "elapsed_seconds": (-1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0),
    "mem_available_gib": (100.0, 99.0, 60.0, 95.0, 95.0, 95.0, 95.0),
    "gpu_temp_celsius": (41.0, 42.0, 43.0, 60.0, 60.0, 59.0, 55.0),
    "gpu_power_watt": (10.0, 20.0, 40.0, 300.0, 400.0, 500.0, 20.0),
    "gpu_energy_joule": (990.0, 1000.0, 1030.0, 1130.0, 1530.0, 2030.0, 2230.0),
    "gpu_utilization_percent": (0.0, 100.0, 5.0, 90.0, 8.0, 100.0, 0.0),
    "gpu_clock_sm_mhz": (300.0, 1000.0, 300.0, 1900.0, 1600.0, 1800.0, 300.0),
    "gpu_memory_used_gib": (1.0, 2.0, 15.0, 3.0, 3.0, 3.0, 3.0),
}
"""Start-up until second 2, measured until second 4, shutdown after that."""


def test_metrics_are_arithmetic_over_the_samples() -> None:
    found = {
        name: item.value
        for name, item in sampled_metrics.metrics(
            a_telemetry(**A_RUN), 5.0, measured(2, 4)
        ).items()
    }
    assert found["system_peak_gib"] == 40.0  # 100 - 60
    assert found["gpu_memory_peak_gib"] == 15.0
    temperatures = [
        found[f"gpu_temp_{when}_celsius"] for when in ("start", "end", "max")
    ]
    assert temperatures == [41, 55, 60]
    assert found["gpu_energy_joule"] == 900.0  # 2030 - 1130: the measured phase
    assert found["gpu_power_mean_watt"] == 450.0  # 900 J in 2 s
    assert (found["startup_seconds"], found["startup_energy_joule"]) == (
        2.0,
        130.0,
    )  # 1130 - 1000: from the launch
    assert found["run_energy_joule"] == 1230.0  # 2230 - 1000
    assert (
        found["gpu_clock_sm_mean_mhz"] == 1850.0
    )  # (1900 + 1800) / 2: measured, and under load
    assert found["gpu_utilization_mean_percent"] == 66.0  # (90 + 8 + 100) / 3
    assert found["cgroup_peak_gib"] is None


def test_energy_is_the_integral_of_power_where_there_is_no_counter() -> None:
    telemetry = a_telemetry(
        elapsed_seconds=(-1.0, 0.0, 1.0, 3.0), gpu_power_watt=(500.0, 10.0, 30.0, 50.0)
    )
    assert (
        energy(telemetry, 0.0, 3.0) == 20.0 + 80.0
    )  # trapezes: (10 + 30) / 2 · 1 + (30 + 50) / 2 · 2
    assert energy(telemetry, 2.0, 3.0) == 45.0  # 40 W at second 2: (40 + 50) / 2
    found = sampled_metrics.metrics(telemetry, 3.0, measured(1.0, 3.0))
    assert (found["gpu_energy_joule"].value, found["gpu_power_mean_watt"].value) == (
        80.0,
        40.0,
    )


def test_a_phase_between_two_samples_has_no_means() -> None:
    found = sampled_metrics.metrics(a_telemetry(**A_RUN), 5.0, measured(2.1, 2.9))
    for name in (
        "gpu_power_mean_watt",
        "gpu_energy_joule",
        "gpu_utilization_mean_percent",
        "gpu_clock_sm_mean_mhz",
    ):
        assert found[name].value is None
        assert (
            found[name].reason
            == "too few samples were taken in the measured phase of 0.8 s"
        )
    assert found["startup_seconds"].value == 2.1
    # One sample says how busy the GPU was, and not how much energy went in.
    found = sampled_metrics.metrics(a_telemetry(**A_RUN), 5.0, measured(1.9, 2.9))
    assert (
        found["gpu_utilization_mean_percent"].value,
        found["gpu_energy_joule"].value,
    ) == (90.0, None)


def test_the_ledger_is_of_the_baseline_and_of_the_least_available() -> None:
    telemetry = a_telemetry(
        elapsed_seconds=(-2.0, -1.0, 1.0, 2.0),
        mem_available_gib=(101.0, 100.0, 50.0, 70.0),
        mem_free_gib=(90.0, 80.0, 10.0, 20.0),
        mem_cached_gib=(5.0, 15.0, 40.0, 45.0),
    )
    ledger = sampled_metrics.ledger(telemetry, 119.7)
    assert ledger is not None
    assert (
        ledger.baseline.available_gib,
        ledger.baseline.free_gib,
        ledger.baseline.total_gib,
    ) == (100, 80, 119.7)
    assert (ledger.peak.available_gib, ledger.peak.cached_gib) == (50, 40)
    assert ledger.peak.gpu_used_gib is None
