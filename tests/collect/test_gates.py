"""Gates: what is waited for, for how long, and what the record says of it."""

import operator
import signal
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sparkpub.collect import doctor, gates
from sparkpub.collect.gates import Gatekeeper, floor_gib
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.machine import controls, inventory, nvml
from sparkpub.collect.machine.nvml import Gpus
from sparkpub.collect.sampler import Sampler
from sparkpub.plan.matrix import Gates
from sparkpub.record.record import Gate
from tests.collect.collecting import OPEN_GATES
from tests.collect.fake_nvml import FakeNvml, NVMLError


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setattr(nvml, "library", lambda: fake)
    monkeypatch.setattr(gates, "PACE", 0.02)
    return fake


def tried(
    tmp_path: Path, *, gpus: bool = True, last: datetime | None = None, **wanted: object
) -> tuple[dict[str, Gate], gates.Passed]:
    chosen = Gates.model_validate(OPEN_GATES | {"max_wait": 0.1} | wanted)
    with Interruption() as interruption:
        passed = Gatekeeper(chosen, "no driver", tmp_path).passed(
            Gpus() if gpus else None, last, interruption, lambda _: None
        )
    return {gate.name: gate for gate in passed.gates}, passed


def later(action: Callable[[], None]) -> None:
    threading.Timer(0.05, action).start()


def test_a_hot_gpu_is_waited_for_until_it_is_cool(
    tmp_path: Path, driver: FakeNvml
) -> None:
    driver.temperature = 50
    later(lambda: setattr(driver, "temperature", 44))
    found, passed = tried(tmp_path, max_start_temp_celsius=45, max_wait=30)
    gate = found["max_start_temp_celsius"]
    assert gate.met is True
    assert 0.04 <= gate.waited_seconds < 30
    assert gate.readings[0].value == 50
    assert gate.readings[-1].value == 44
    assert passed.unmet == ()


def test_a_gpu_that_stays_hot_is_recorded_as_not_met(
    tmp_path: Path, driver: FakeNvml
) -> None:
    # The source starts below 45 °C, not at it.
    driver.temperature = 45
    found, passed = tried(tmp_path, max_start_temp_celsius=45)
    gate = found["max_start_temp_celsius"]
    assert gate.met is False
    assert "longest wait" in (gate.reason or "")
    assert gate.waited_seconds >= 0.1
    assert passed.unmet == ("max_start_temp_celsius",)
    assert passed.why_unmet == "gate not met: max_start_temp_celsius"


def test_an_unreadable_sensor_never_passes_silently(
    tmp_path: Path, driver: FakeNvml
) -> None:
    driver.temperature = NVMLError("Not Supported")
    found, passed = tried(tmp_path, max_start_temp_celsius=45)
    gate = found["max_start_temp_celsius"]
    assert gate.met is None
    assert "Not Supported" in (gate.reason or "")
    assert gate.readings[0].value is None
    assert passed.unmet == ("max_start_temp_celsius",)
    assert passed.why_unmet == "not measured here: max_start_temp_celsius"
    without, passed = tried(
        tmp_path, gpus=False, max_start_temp_celsius=45, exclusive_gpu=True
    )
    assert {name for name, gate in without.items() if gate.met is None} == {
        "max_start_temp_celsius",
        "exclusive_gpu",
        "performance_state",
    }
    assert without["exclusive_gpu"].reason == "no driver"
    _, passed = tried(tmp_path, gpus=False, exclusive_gpu=True, min_free_disk_gib=1e9)
    assert (
        passed.why_unmet
        == "gate not met: min_free_disk_gib; not measured here: exclusive_gpu"
    )


def test_somebody_else_on_the_gpu_is_waited_for(
    tmp_path: Path, driver: FakeNvml
) -> None:
    driver.pids = [4711]
    later(driver.pids.clear)
    assert (
        tried(tmp_path, exclusive_gpu=True, max_wait=30)[0]["exclusive_gpu"].met is True
    )
    driver.pids = [4711]
    found, _ = tried(tmp_path, exclusive_gpu=True)
    assert found["exclusive_gpu"].met is False
    assert (found["exclusive_gpu"].reason or "").startswith(
        "the GPU is in use by 1 other process;"
    )


def test_the_doctor_warns_of_somebody_else_on_the_gpu(
    tmp_path: Path, driver: FakeNvml
) -> None:
    driver.pids = [4711]
    (found,) = [
        item for item in doctor.examine(None, tmp_path) if item.name == "gpu use"
    ]
    assert (found.state, found.detail) == ("warning", "in use by 1 other process")


def test_free_memory_is_the_gpus_or_on_unified_memory_the_machines(
    tmp_path: Path, driver: FakeNvml
) -> None:
    gate = tried(tmp_path, min_free_memory_percent=90)[0]["min_free_memory_percent"]
    assert gate.readings[0].value == pytest.approx(100 * 140 / 141, abs=0.01)
    assert gate.reason == "memory of the GPU"
    driver.memory = NVMLError("Not Supported")
    gate = tried(tmp_path, min_free_memory_percent=1)[0]["min_free_memory_percent"]
    assert gate.met is True
    assert "unified memory" in (gate.reason or "")


def test_an_idle_gpus_state_is_recorded_with_the_reason(
    tmp_path: Path, driver: FakeNvml
) -> None:
    gate = tried(tmp_path, performance_state="P0")[0]["performance_state"]
    assert (gate.met, gate.readings[0].value) == (False, "P8")
    assert "idle" in (gate.reason or "")
    assert gate.waited_seconds == 0
    found, passed = tried(tmp_path)
    assert (
        found["performance_state"].readings[0].value,
        found["performance_state"].met,
    ) == ("P8", True)
    assert passed.unmet == ()


def test_cooldown_counts_from_the_end_of_the_last_run(
    tmp_path: Path, driver: FakeNvml
) -> None:
    now = datetime.now(UTC)
    long_ago = tried(tmp_path, cooldown=60, last=now - timedelta(seconds=61))[0][
        "cooldown"
    ]
    assert (long_ago.met, long_ago.waited_seconds) == (True, 0)
    assert 61 <= long_ago.readings[0].value < 90
    just_now = tried(tmp_path, cooldown=60.2, last=now - timedelta(seconds=60))[0][
        "cooldown"
    ]
    assert just_now.met is True
    assert 0 <= just_now.waited_seconds < 5
    assert 60.2 <= just_now.readings[0].value < 90
    first = tried(tmp_path, cooldown=60)[0]["cooldown"]
    assert first.met is True
    assert "no earlier run" in (first.reason or "")


def test_a_clock_that_was_set_back_makes_no_cooldown_longer(
    tmp_path: Path, driver: FakeNvml
) -> None:
    """The last run ended in an hour, by the clock: 0.1 s are waited, and not 3,600."""
    impatient = threading.Timer(20, lambda: signal.raise_signal(signal.SIGTERM))
    impatient.start()
    ahead = datetime.now(UTC) + timedelta(hours=1)
    found, passed = tried(tmp_path, cooldown=0.1, last=ahead)
    impatient.cancel()
    assert not passed.interrupted
    assert found["cooldown"].met is True
    assert 0.1 <= found["cooldown"].waited_seconds < 20
    assert found["cooldown"].readings[0].value == found["cooldown"].waited_seconds


def test_thinned_readings_keep_the_first_the_last_and_every_second_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gates, "KEPT", 4)
    condition = gates.TriedGate("x", 1.0, "", lambda: (2.0, ""), operator.lt)
    kept = []
    for at in range(8):
        condition.take(float(at))
        kept.append([int(reading.at_seconds) for reading in condition.gate().readings])
    # Full with four: every second of them stays, and the next one comes.
    assert kept[3:] == [
        [0, 1, 2, 3],
        [0, 2, 4],
        [0, 2, 4, 5],
        [0, 4, 6],
        [0, 4, 6, 7],
    ]


def test_each_gate_has_waited_until_it_was_met(
    tmp_path: Path, driver: FakeNvml
) -> None:
    """One is met at once, one when the GPU is free, one never; and one waits for nothing."""
    driver.temperature, driver.pids = 50, [4711]
    wanted = Gates.model_validate(
        OPEN_GATES
        | {
            "max_start_temp_celsius": 45,
            "max_gpu_temp_celsius": 80,
            "exclusive_gpu": True,
            "performance_state": "P0",
            "max_wait": 1.0,
        }
    )
    with Interruption() as interruption:
        passed = Gatekeeper(wanted, "", tmp_path).passed(
            Gpus(), None, interruption, lambda _: driver.pids.clear()
        )
    found = {gate.name: gate for gate in passed.gates}
    waited = {name: gate.waited_seconds for name, gate in found.items()}
    at_once, free = waited["max_gpu_temp_celsius"], waited["exclusive_gpu"]
    assert at_once < free < waited["max_start_temp_celsius"]
    assert waited["max_start_temp_celsius"] >= 1.0
    assert waited["performance_state"] == 0
    for name in ("max_gpu_temp_celsius", "exclusive_gpu", "max_start_temp_celsius"):
        assert found[name].readings[-1].at_seconds == waited[name]


@pytest.mark.parametrize(
    ("asked", "unified", "floor"),
    [(None, True, 8.0), (None, False, None), (None, None, None), (3.0, False, 3.0)],
)
def test_the_memory_floor_guards_unified_memory(
    asked: float | None, unified: bool | None, floor: float | None
) -> None:
    assert floor_gib(Gates(min_available_memory_gib=asked), unified) == floor


def test_clocks_are_locked_and_always_unlocked(driver: FakeNvml) -> None:
    def fails() -> None:
        with controls.applied(Gates(lock_clocks_mhz=1500), Gpus(), "") as (gate,):
            assert driver.locked == 1500
            assert gate.met is True
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert driver.locked is None


def test_clocks_left_locked_by_a_killed_collector_are_unlocked(
    driver: FakeNvml,
) -> None:
    entered = controls.applied(Gates(lock_clocks_mhz=1500), Gpus(), "")
    entered.__enter__()
    assert driver.locked == 1500
    assert controls.restore_after_crash() == ["unlocked the GPU clocks"]
    assert driver.locked is None
    assert controls.restore_after_crash() == []


def test_the_power_mode_is_set_and_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = tmp_path / "platform_profile"
    profile.write_text("balanced\n")
    monkeypatch.setattr(controls, "_PROFILE", profile)
    with controls.applied(Gates(power_mode="performance"), None, "no GPU") as (gate,):
        assert gate.met is True
        assert profile.read_text() == "performance"
    assert profile.read_text() == "balanced"


def test_dropping_caches_says_whether_it_worked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controls, "DROP", tmp_path / "drop")
    assert controls.drop_caches().met is True
    assert (tmp_path / "drop").read_text() == "3\n"
    monkeypatch.setattr(controls, "DROP", tmp_path / "no" / "such")
    refused = controls.drop_caches()
    assert refused.met is False
    assert "not dropped" in (refused.reason or "")


def test_locked_clocks_are_a_fact_of_the_machine(driver: FakeNvml) -> None:
    """Only where they were really locked: the check for slow clocks takes them for the limit."""
    with controls.applied(Gates(lock_clocks_mhz=1500), Gpus(), "") as done:
        assert inventory.facts(Gpus(), done).clocks_locked_mhz == 1500
    driver.may_lock = False
    with controls.applied(Gates(lock_clocks_mhz=1500), Gpus(), "") as done:
        assert inventory.facts(Gpus(), done).clocks_locked_mhz is None
        assert "Insufficient Permissions" in (done[0].reason or "")
    with controls.applied(
        Gates(lock_clocks_mhz=1500), None, "no GPU can be read"
    ) as done:
        assert (done[0].met, done[0].reason) == (False, "no GPU can be read")
    assert inventory.facts(None).clocks_locked_mhz is None


def test_a_driver_that_does_not_match_its_library_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """After an upgrade without a restart every sensor of the GPU is missing, and gates and records say why."""
    fake = FakeNvml()

    def mismatch() -> None:
        raise NVMLError("Driver/library version mismatch")

    monkeypatch.setattr(fake, "nvmlInit", mismatch)
    monkeypatch.setattr(nvml, "library", lambda: fake)
    with nvml.opened() as (gpus, why):
        assert gpus is None
        assert why == "no NVIDIA GPU can be read: Driver/library version mismatch"
    wanted = Gates.model_validate(OPEN_GATES | {"max_start_temp_celsius": 45})
    with Interruption() as interruption:
        passed = Gatekeeper(wanted, why, tmp_path).passed(
            None, None, interruption, lambda _: None
        )
    gate = next(gate for gate in passed.gates if gate.name == "max_start_temp_celsius")
    assert (gate.met, gate.reason) == (None, why)
    sampler = Sampler()
    assert sampler.row(0.0)["gpu_power_watt"] is None
    assert sampler.reasons["gpu_power_watt"] == why


@pytest.mark.parametrize(
    ("percent", "wanted", "said"),
    [
        (70.0, {"max_cpu_percent": 40}, "other programs use 280 % of 4 processors"),
        (39.0, {"max_cpu_percent": 40}, None),
        (70.0, {"max_cpu_percent": 40, "max_wait": 60}, None),  # waits for them
    ],
)
def test_a_busy_machine_is_said_before_the_first_run(
    percent: float,
    wanted: dict[str, object],
    said: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gates.proc.CpuLoad, "percent", lambda _: percent)
    monkeypatch.setattr(gates.os, "cpu_count", lambda: 4)
    found = gates.company(Gates.model_validate(OPEN_GATES | {"max_wait": 0} | wanted))
    if said is None:
        assert found is None
    else:
        assert said in (found or "")
