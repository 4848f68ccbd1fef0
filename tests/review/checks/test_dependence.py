"""Which pairs of results are one measurement: a line or a power of each other, from run to run and over all cells."""

from collections.abc import Callable

import numpy as np
import pytest

from sparkpub.review.checks.dependence import independent, restated
from sparkpub.review.checks.view import View
from tests.review.checks.in_memory import a_run, a_view

LEVELS = {"a": 20.0, "b": 55.0, "c": 90.0}
DRAW = np.random.default_rng(1)
Figure = Callable[[float, int], float | None]
"""A second figure of a run, from the first one and its iteration."""


def measured(figure: Figure, iterations: int = 10, models: str = "abc") -> View:
    """Peaks that vary by 1 % around the level of each model, and another figure that hangs on them or not."""
    runs = []
    for iteration in range(1, iterations + 1):
        for model in models:
            peak = LEVELS[model] * DRAW.normal(1, 0.01)
            figures = {"peak_memory_gib": peak}
            other = figure(peak, iteration)
            if other is not None:
                figures["kv_cache_gib"] = other
            runs.append(a_run(figures, model=model, iteration=iteration))
    return a_view(*runs)


@pytest.mark.parametrize(
    ("figure", "power"),
    [
        (lambda peak, _: 3 * peak + 7, False),
        (lambda peak, _: round(0.9 * (119.7 - peak), 2), False),
        (lambda peak, iteration: 2 * peak if iteration % 7 else None, False),
        (lambda peak, _: 1e4 / peak, True),
        (lambda peak, _: peak**3 / 1e3, True),
    ],
)
def test_a_line_and_a_power_are_one_measurement(figure: Figure, power: bool) -> None:
    view = measured(figure)
    (pair,) = restated(view)
    assert (pair.x, pair.y) == ("peak_memory_gib", "kv_cache_gib")
    assert pair.power is power
    assert independent(view) == ("peak_memory_gib",)


@pytest.mark.parametrize(
    "figure",
    [
        lambda peak, _: peak * DRAW.normal(1, 0.01),
        lambda peak, _: round(peak / 10) * DRAW.normal(1, 0.01),  # grow with the model
        lambda peak, _: 3 * peak + DRAW.normal(0, 0.1),
        lambda peak, _: round(peak / 10),  # alike in all runs of a cell
    ],
)
def test_figures_that_only_grow_with_the_model_are_two(figure: Figure) -> None:
    assert restated(measured(figure)) == []


@pytest.mark.parametrize(("runs", "is_found"), [(7, False), (8, True)])
def test_fewer_than_eight_runs_show_nothing(runs: int, is_found: bool) -> None:
    view = measured(lambda peak, _: 3 * peak + 7, runs, models="a")
    assert bool(restated(view)) is is_found
