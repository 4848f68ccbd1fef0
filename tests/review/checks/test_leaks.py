"""Memory that grows while a run is measured is found in its telemetry, and nothing else is."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sparkpub.record.record import Phase
from sparkpub.review.checks.conditions import LEAK_GIB, growth
from tests.review.checks.in_memory import a_run, a_view, quiet, told

SECONDS = np.arange(600.0)
"""Ten minutes at one sample per second."""


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
    """At most one false alarm in 100 phases of ten minutes."""
    draw = np.random.default_rng(11)
    wrong = sum(growth(SECONDS, noise(draw)) is not None for _ in range(100))
    assert wrong <= 1


@pytest.mark.parametrize("sd", [0.0, 0.05, 0.2])
def test_a_leak_is_told_with_its_rate(sd: float) -> None:
    noise = np.random.default_rng(3).normal(0, sd, len(SECONDS))
    text = growth(SECONDS, 40 + SECONDS / 60 + noise)  # 1 GiB/min
    assert text is not None
    assert float(text.split()[-2]) == pytest.approx(1.0, rel=0.25)


def test_a_leak_that_begins_late_is_found() -> None:
    """Its last quarter is growth alone: 2.5 GiB in 150 s."""
    values = 40 + np.maximum(0, SECONDS - 450) / 60
    text = growth(SECONDS, values)
    assert text == "grew steadily by 2.50 GiB in the last 149 s, 1.01 GiB/min"


def test_slow_growth_is_told_when_it_has_come_to_something() -> None:
    slow = SECONDS * 0.1 / 60  # 0.1 GiB/min
    assert growth(SECONDS[:240], slow[:240]) is None  # 0.4 GiB
    assert LEAK_GIB == 0.5
    assert growth(SECONDS[:330], slow[:330]) is not None  # 0.55 GiB


def found(columns: dict[str, Any], measured_from: float | None) -> list[str]:
    """What is said of a run of ten minutes with these columns of its telemetry."""
    phases: tuple[Phase, ...] = ()
    if measured_from is not None:
        phases = (Phase(name="measure", start_seconds=measured_from, end_seconds=600),)
    view = a_view(a_run(phases=phases), samples=quiet(SECONDS, **columns))
    return told("leak", view)


def test_each_signal_is_judged_by_itself() -> None:
    grown = SECONDS / 60
    columns = {
        "mem_available_gib": 100 - grown,
        "cgroup_current_gib": 10 + 2 * grown,
        "cgroup_file_gib": 1 + grown,
        "cgroup_shmem_gib": 0 * grown,
        "processes_pss_gib": 9 + 0 * grown,
    }
    (text,) = found(columns, 0.0)
    # Without its page cache the group grows half as fast as with it.
    assert text.count("1.00 GiB/min") == 2
    assert "leaked memory: memory in use on the machine grew" in text
    assert "; memory of the run's control group grew" in text


@pytest.mark.parametrize("measured_from", [300.0, None])
def test_growth_before_the_measurement_is_no_leak(measured_from: float | None) -> None:
    """Loading a model takes memory for five minutes; without a beginning nobody knows what was loading."""
    loading = np.minimum(SECONDS, 300) / 60
    assert found({"mem_available_gib": 100 - loading}, measured_from) == []
