"""Memory that grows while a run is measured is noted then and there, and nothing else is."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sparkpub.collect import leaks
from sparkpub.collect.leaks import FLOOR_GIB, LeakWatch, growth
from sparkpub.review.checks import review
from sparkpub.review.dataset import load
from tests.collect.collecting import a_command, a_matrix, records, run

SECONDS = np.arange(600.0)
"""Ten minutes at one sample per second."""


def alarms(values: np.ndarray) -> list[str]:
    """What is said of a phase whose used memory is `values`, one sample per second."""
    watch = LeakWatch()
    return [
        text
        for at, value in enumerate(values)
        for text in watch.sample(at, {"gpu_memory_used_gib": value})
    ]


def white(draw: np.random.Generator) -> np.ndarray:
    return 40 + draw.normal(0, 0.3, len(SECONDS))


def correlated(draw: np.random.Generator) -> np.ndarray:
    """Noise that remembers for about twenty samples (autocorrelation 0.95), of standard deviation 0.1 GiB."""
    values = np.empty(len(SECONDS))
    values[0] = draw.normal(0, 0.1)
    for at, shock in enumerate(
        draw.normal(0, 0.1 * np.sqrt(1 - 0.95**2), len(SECONDS) - 1)
    ):
        values[at + 1] = 0.95 * values[at] + shock
    return 40 + values


def collected_garbage(draw: np.random.Generator) -> np.ndarray:
    """A saw: a gibibyte in forty seconds, given back at once."""
    return (
        40
        + (SECONDS + draw.integers(40)) % 40 / 40
        + draw.normal(0, 0.02, len(SECONDS))
    )


def filled_once(draw: np.random.Generator) -> np.ndarray:
    """Two gibibytes at some moment, held from there on."""
    return (
        40
        + 2.0 * (draw.integers(1, 600) < SECONDS)
        + draw.normal(0, 0.02, len(SECONDS))
    )


def warming_caches(draw: np.random.Generator) -> np.ndarray:
    """Three gibibytes taken ever more slowly, most of it in the first ten seconds."""
    return (
        40
        + 3 * (1 - np.exp(-SECONDS / draw.uniform(2, 5)))
        + draw.normal(0, 0.02, len(SECONDS))
    )


@pytest.mark.parametrize(
    "noise", [white, correlated, collected_garbage, filled_once, warming_caches]
)
def test_memory_that_does_not_grow_for_good_raises_no_alarm(
    noise: Callable[..., np.ndarray],
) -> None:
    """At most one false alarm in 100 phases of ten minutes, each looked at 120 times in three stretches."""
    draw = np.random.default_rng(11)
    wrong = sum(bool(alarms(noise(draw))) for _ in range(100))
    assert wrong <= 1


@pytest.mark.parametrize("sd", [0.0, 0.05, 0.2])
def test_a_leak_is_noted_once_with_its_rate(sd: float) -> None:
    noise = np.random.default_rng(3).normal(0, sd, len(SECONDS))
    (text,) = alarms(40 + SECONDS / 60 + noise)  # 1 GiB/min
    assert text.startswith("GPU memory in use grew steadily by ")
    assert float(text.split()[-2]) == pytest.approx(1.0, rel=0.25)


def test_a_leak_that_begins_late_is_noted_within_a_quarter_of_the_phase() -> None:
    watch = LeakWatch()
    values = 40 + np.maximum(0, SECONDS - 300) / 60
    noted = [
        at
        for at, value in enumerate(values)
        if watch.sample(at, {"gpu_memory_used_gib": value})
    ]
    assert (
        300 < noted[0] <= 405
    )  # the last quarter of 400 s is growth alone, and every 5 s is looked


def test_slow_growth_is_noted_when_it_has_come_to_something() -> None:
    slow = SECONDS * 0.1 / 60  # 0.1 GiB/min
    short, long = slow[:240], slow[:330]  # 0.4 GiB, 0.55 GiB
    assert growth(SECONDS[:240].tolist(), short.tolist()) is None
    found = growth(SECONDS[:330].tolist(), long.tolist())
    assert found is not None
    assert found.gib == pytest.approx(long[-1])
    assert found.gib >= FLOOR_GIB


def test_each_signal_is_judged_by_itself() -> None:
    watch, noted = LeakWatch(), []
    for at in range(90):
        grown = at / 60
        row = {
            "mem_available_gib": 100 - grown,
            "cgroup_current_gib": 10 + 2 * grown,
            "cgroup_file_gib": 1 + grown,
            "cgroup_shmem_gib": 0.0,
            "processes_pss_gib": 9.0,
            "gpu_memory_used_gib": None,
        }
        noted += watch.sample(at, row)
    assert (
        [text.partition(" grew")[0] for text in noted]
        == [
            "memory in use on the machine",
            "memory of the run's control group",  # without its page cache it grows half as fast as with it
        ]
    )
    assert all("1.00 GiB/min" in text for text in noted)


LEAKING = """
import sys, time
pause = float(sys.argv[1])
kept = [bytearray(200 << 20)]  # loading takes memory, too
time.sleep(pause)
print("now measuring", flush=True)
for step in range(120):
    kept.append(b"x" * (12 << 20))  # 12 MiB, touched
    time.sleep(pause)
print("rate 5")
"""


@pytest.mark.parametrize(
    "span", [6.0, pytest.param(leaks.SPAN_SECONDS, marks=pytest.mark.slow)]
)
def test_a_leaking_process_is_noted_while_it_runs(
    span: float,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """120 steps of 12 MiB: 1.4 GiB in a fifth more than the least time that shows a trend."""
    monkeypatch.setattr(leaks, "SPAN_SECONDS", span)
    monkeypatch.setattr(leaks, "EVERY_SECONDS", span / 12)
    options = a_command("", measured_from="^now measuring") | {
        "argv": [sys.executable, "-c", LEAKING, f"{span / 100}"]
    }
    run(a_matrix(workloads={"w": options}, iterations=1), tmp_path)
    (record,) = records(tmp_path)
    assert record.status == "ok"
    assert "leaks" not in record.unavailable
    noted = [
        event
        for event in record.events
        if event.kind == "leak" and event.at_seconds is not None
    ]
    assert noted
    assert all(span <= event.at_seconds < record.duration_seconds for event in noted)
    assert len({event.text.partition(" grew")[0] for event in noted}) == len(noted)
    assert f"m/native/w 1: leak: {noted[0].text}" in capsys.readouterr().out
    (finding,) = [
        found for found in review(load(tmp_path)).findings if found.check == "leak"
    ]
    assert finding.evidence["details"] == {
        record.run_id: "; ".join(event.text for event in noted)
    }


def test_growth_before_the_measurement_is_no_leak_and_an_unknown_beginning_is_said(
    tmp_path: Path,
) -> None:
    run(a_matrix(iterations=1), tmp_path)
    (record,) = records(tmp_path)
    assert "where the measurement began" in record.unavailable["leaks"]
