"""Gates: what is waited for, for how long, and what the record says of it."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sparkpub.collect import gates
from sparkpub.collect.gates import Gatekeeper, floor_gib
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.machine import controls, inventory
from sparkpub.collect.machine.nvml import Gpus
from sparkpub.plan.matrix import Gates
from sparkpub.record.record import Gate
from tests.collect.collecting import OPEN_GATES
from tests.collect.fake_nvml import FakeNvml, NVMLError


def tried(
    tmp_path: Path, *, gpus: bool = True, last: datetime | None = None, **wanted: object
) -> tuple[dict[str, Gate], str]:
    chosen = Gates.model_validate(OPEN_GATES | {"max_wait": 0.1} | wanted)
    with Interruption() as interruption:
        passed = Gatekeeper(chosen, "no driver", tmp_path).passed(
            Gpus() if gpus else None, last, interruption, lambda *_: None
        )
    return {gate.name: gate for gate in passed}, gates.why_unmet(passed)


def later(action: Callable[[], None]) -> None:
    threading.Timer(0.05, action).start()


def test_a_hot_gpu_is_waited_for_until_it_is_cool(
    tmp_path: Path, driver: FakeNvml
) -> None:
    driver.temperature = 50
    later(lambda: setattr(driver, "temperature", 44))
    found, unmet = tried(tmp_path, max_start_temp_celsius=45, max_wait=30)
    gate = found["max_start_temp_celsius"]
    assert gate.met is True
    assert 0.04 <= gate.waited_seconds < 30
    assert gate.readings[0].value == 50
    assert gate.readings[-1].value == 44
    assert unmet == ""


@pytest.mark.parametrize(
    ("sensor", "wanted", "met", "value", "reason"),
    [
        # The source starts below 45 °C, not at it.
        ({"temperature": 45}, {"max_start_temp_celsius": 45}, False, 45, "longest"),
        (
            {"temperature": NVMLError("Not Supported")},
            {"max_start_temp_celsius": 45},
            None,
            None,
            "Not Supported",
        ),
        ({"pids": [4711]}, {"exclusive_gpu": True}, False, False, "by 1 other process"),
        ({}, {"min_free_memory_percent": 90}, True, 99.29, "memory of the GPU"),
        # An idle GPU lowers its state: nothing is waited for.
        ({}, {"performance_state": "P0"}, False, "P8", "idle"),
        ({}, {}, True, "P8", "sets no condition"),
    ],
)
def test_a_condition_is_recorded_with_its_reading_and_its_reason(
    tmp_path: Path,
    driver: FakeNvml,
    sensor: dict[str, object],
    wanted: dict[str, object],
    met: bool | None,
    value: object,
    reason: str,
) -> None:
    for name, reading in sensor.items():
        setattr(driver, name, reading)
    found, unmet = tried(tmp_path, **wanted)
    gate = found[next(iter(wanted), "performance_state")]
    assert gate.met is met
    assert value is None or gate.readings[-1].value == value
    assert reason in (gate.reason or "")
    waits = gate.name not in ("performance_state", "min_free_disk_gib")
    assert (gate.waited_seconds >= 0.1) == (met is False and waits)
    assert (gate.name in unmet) == (met is not True)


def test_what_is_not_met_and_what_has_no_sensor_is_said(tmp_path: Path) -> None:
    found, unmet = tried(
        tmp_path, gpus=False, exclusive_gpu=True, min_free_disk_gib=1e9
    )
    assert (found["exclusive_gpu"].met, found["exclusive_gpu"].reason) == (
        None,
        "no driver",
    )
    said = "gate not met: min_free_disk_gib; not measured here: exclusive_gpu"
    assert unmet == said


def test_on_unified_memory_free_memory_is_the_machines(
    tmp_path: Path, driver: FakeNvml
) -> None:
    driver.memory = NVMLError("Not Supported")
    gate = tried(tmp_path, min_free_memory_percent=1)[0]["min_free_memory_percent"]
    assert gate.met is True
    assert "unified memory" in (gate.reason or "")


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


@pytest.mark.parametrize(
    ("asked", "unified", "floor"),
    [(None, True, 8.0), (None, False, None), (None, None, None), (3.0, False, 3.0)],
)
def test_the_memory_floor_guards_unified_memory(
    asked: float | None, unified: bool | None, floor: float | None
) -> None:
    assert floor_gib(Gates(min_available_memory_gib=asked), unified) == floor


def test_clocks_are_locked_and_always_unlocked(driver: FakeNvml) -> None:
    """And are a fact of the machine where they were really locked."""

    def fails() -> None:
        with controls.applied(Gates(lock_clocks_mhz=1500), Gpus(), "") as done:
            assert driver.locked == 1500
            assert inventory.facts(Gpus(), done).clocks_locked_mhz == 1500
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert driver.locked is None
    driver.may_lock = False
    with controls.applied(Gates(lock_clocks_mhz=1500), Gpus(), "") as done:
        assert inventory.facts(Gpus(), done).clocks_locked_mhz is None
        assert "Insufficient Permissions" in (done[0].reason or "")


def test_clocks_left_locked_by_a_killed_collector_are_unlocked(
    driver: FakeNvml,
) -> None:
    entered = controls.applied(Gates(lock_clocks_mhz=1500), Gpus(), "")
    entered.__enter__()
    assert driver.locked == 1500
    assert controls.restore_after_crash() == ["unlocked the GPU clocks"]
    assert driver.locked is None
    assert controls.restore_after_crash() == []


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
