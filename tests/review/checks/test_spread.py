"""How far runs lie apart, in which order they ran, and which metrics are one: cells and comparisons at their limits."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from sparkpub.record.record import Machine, Plan, Spread
from sparkpub.record.store import Stored
from sparkpub.review.checks.spread import (
    drifts,
    high_variation,
    outlier,
    restated,
    small_sample,
)
from sparkpub.review.checks.view import View
from tests.review.checks.in_memory import (
    a_run,
    a_view,
    said,
    sampled,
    told,
    with_metrics,
)

TPUT = "output_throughput_tok_s"


def sides(native: list[float], container: list[float] | None = None) -> View:
    """Runs of two environments that take turns."""
    runs = []
    for place, values in enumerate(zip(native, container or native, strict=True)):
        for side, value in enumerate(values[: 1 + (container is not None)]):
            name = ("native", "container")[side]
            minute = 2 * place + side
            given = {"environment": name, "iteration": place + 1, "minute": minute}
            runs.append(a_run({TPUT: value}, **given))
    return a_view(*runs)


@pytest.mark.parametrize(
    ("values", "is_found"),
    [
        # sd of 100 ± d, twice each, is d · √(4/3): 4.99 and 5.01 % of the mean
        ([104.32, 95.68, 104.32, 95.68], False),
        ([104.34, 95.66, 104.34, 95.66], True),
    ],
)
def test_runs_vary_by_at_most_five_percent(values: list[float], is_found: bool) -> None:
    assert len(list(high_variation(sides(values)))) == is_found


@pytest.mark.parametrize(("n", "is_found"), [(3, True), (4, False)])
def test_four_runs_are_enough(n: int, is_found: bool) -> None:
    values = [100.0, 101.0, 99.0, 100.5][:n]
    assert len(list(small_sample(sides(values)))) == is_found


@pytest.mark.parametrize(("asked", "is_found"), [({}, True), ({"url": "x"}, False)])
def test_the_memory_of_a_server_that_was_there_before_is_no_result_of_a_run(
    asked: dict[str, Any], is_found: bool
) -> None:
    """It takes a gibibyte more with its first requests, and keeps it."""
    runs = [
        with_metrics(
            sampled("gpu_memory_peak_gib", 40.0 + 0.01 * (n % 3) + (n > 1), "GiB"),
            iteration=n,
            workload=asked,
        )
        for n in range(1, 11)
    ]
    view = a_view(*runs)
    found = [line for check in (outlier, drifts) for line in told(check, view)]
    assert bool(found) is is_found


# -- the order of runs -------------------------------------------------------------------------------------------

HERE, THERE = {"machine": Machine(id="a")}, {"machine": Machine(id="b")}


def in_turn(sequence: str, begin: int = 0, **fields: Any) -> list[Stored]:
    """Runs that began one minute after the other: the first A and the first B are a round."""
    return [
        a_run(
            {TPUT: 100.0},
            environment={"A": "native", "B": "container"}[side],
            iteration=begin + sequence[: place + 1].count(side),
            minute=begin + place,
            plan=Plan(position=begin + place, order="interleaved"),
            **fields,
        )
        for place, side in enumerate(sequence)
    ]


@pytest.mark.parametrize(
    ("runs", "is_found"),
    [
        (in_turn("ABBAABBAAB"), False),
        (in_turn("AAAAABBBBB"), True),
        # Of several machines one is enough; between two that share nothing there is no order.
        (in_turn("ABBAABBA", **HERE) + in_turn("BAABBAAB", 20, **THERE), False),
        (in_turn("ABBAABBA", **HERE) + in_turn("AAAABBBB", 20, **THERE), True),
        (in_turn("AAAA", **HERE) + in_turn("BBBB", 20, **THERE), False),
    ],
)
def test_environments_that_ran_in_blocks_are_an_error(
    runs: list[Stored], is_found: bool
) -> None:
    """Which orders are blocks is shown in the tests of `statistics.order`."""
    found = told("order-confound", a_view(*runs))
    assert [line[:5] for line in found] == ["error"] * is_found


def placed(position: int, minute: int, attempt: int = 1, **fields: Any) -> Stored:
    plan = Plan(position=position, order="interleaved", attempt=attempt)
    return a_run(iteration=position + 1, minute=minute, plan=plan, **fields)


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([placed(2, 0), placed(0, 1), placed(1, 2)], "Iteration 3 of m/native/w began"),
        # Retries and repeats have no place of their own, and short runs may begin in one second.
        ([placed(1, 1), placed(0, 2, attempt=2)], None),
        ([placed(1, 1), placed(0, 2, repeat_of="another")], None),
        ([placed(0, 1), placed(1, 1)], None),
    ],
)
def test_runs_begin_in_the_order_of_the_plan(
    runs: list[Stored], words: str | None
) -> None:
    said("order-confound", a_view(*runs), words)


# -- one measurement under two names -----------------------------------------------------------------------------

LEVELS = {"a": 20.0, "b": 55.0, "c": 90.0}
DRAW = np.random.default_rng(1)
Figure = Callable[[float, int], float | None]
"""A second figure of a run, from the first one and its iteration."""


def measured(figure: Figure, iterations: int = 10, models: str = "abc") -> View:
    """Peaks that vary by 1 % around the level of each model, and another figure that hangs on them or not."""
    runs = []
    for iteration, model in product(range(1, iterations + 1), models):
        peak = LEVELS[model] * DRAW.normal(1, 0.01)
        figures = {"peak_memory_gib": peak, "kv_cache_gib": figure(peak, iteration)}
        known = {name: value for name, value in figures.items() if value is not None}
        runs.append(a_run(known, model=model, iteration=iteration))
    return a_view(*runs)


@pytest.mark.parametrize(
    ("figure", "is_found"),
    [
        (lambda peak, _: 3 * peak + 7, True),
        (lambda peak, iteration: 2 * peak if iteration % 7 else None, True),
        # Two that only grow with the model are two.
        (lambda peak, _: peak * DRAW.normal(1, 0.01), False),
        (lambda peak, _: 3 * peak + DRAW.normal(0, 0.1), False),
    ],
)
def test_a_line_is_one_measurement(figure: Figure, is_found: bool) -> None:
    found = [(x, y) for _, x, y, _ in restated(measured(figure))]
    assert found == [("peak_memory_gib", "kv_cache_gib")] * is_found


@pytest.mark.parametrize(("runs", "is_found"), [(7, False), (8, True)])
def test_fewer_than_eight_runs_show_nothing(runs: int, is_found: bool) -> None:
    view = measured(lambda peak, _: 3 * peak + 7, runs, models="a")
    assert bool(restated(view)) is is_found


# -- users ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ten", "deviation", "length", "is_found"),
    [
        # 10 × 1.05 × 20 tok/s are 210.
        (210.0, 0.0, 128, False),
        (211.0, 0.0, 128, True),
        # As far as repetitions lie apart: 10 × 1.05 × (20 + 1) are 220.5, and 221 - 1 are less.
        (221.0, 1.0, 128, False),
        (222.0, 1.0, 128, True),
        # Another length is another load.
        (211.0, 0.0, 256, False),
    ],
)
def test_ten_users_get_no_more_than_ten_times_one_user(
    ten: float, deviation: float, length: int, is_found: bool
) -> None:
    runs = []
    for users, tokens, speed in ((1, 128, 20.0), (10, length, ten)):
        asked = {"type": "vllm-bench", "mode": "serve", "input_tokens": 512}
        asked |= {"output_tokens": tokens, "concurrency": users}
        spread = Spread(repetitions=3, deviation=deviation, divisor="n-1")
        run = a_run({TPUT: speed}, minute=users, workload=asked, spreads={TPUT: spread})
        record = run.record.model_copy(update={"workload": f"w{users}"})
        runs.append(Stored(record, run.path))
    words = "10 users of m/native/w10 get" if is_found else None
    said("users-scaling", a_view(*runs), words)
