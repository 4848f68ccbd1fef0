"""Checks of cells and campaigns at their limits, and how findings are worded."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from sparkpub.record.campaign import Acknowledgement
from sparkpub.record.record import (
    Plan,
)
from sparkpub.record.store import Stored
from sparkpub.review.checks.acknowledging import covers
from sparkpub.review.checks.levels import drifts
from sparkpub.review.checks.order import order_confound
from sparkpub.review.checks.spread import high_variation, outlier, small_sample
from sparkpub.review.checks.view import View, about_metrics, listed
from sparkpub.review.checks.warmup import warmed_up
from tests.review.checks.in_memory import (
    a_run,
    a_view,
    answered,
    sampled,
    told,
    with_metrics,
)

TPUT = "output_throughput_tok_s"


def test_a_finding_says_where_it_belongs() -> None:
    run = a_run()
    view = a_view(run)
    (of_run,) = view.together("drift", "info", [run], str)
    assert of_run.where == f"c m/native/w {run.run_id}"
    assert view.finding("drift", "info", "x.", cell=("a", "b", "w")).where == "c a/b/w"
    assert view.finding("drift", "info", "x.").where == "c"
    on_page = view.finding("claim", "info", "x.", file="a.md", line=3)
    assert on_page.where == "a.md:3"


# -- spread, order and differences -----------------------------------------------------------------------------


def sides(
    native: list[float],
    container: list[float] | None = None,
    metric: str = TPUT,
    **fields: Any,
) -> View:
    """Runs of two environments that take turns."""
    runs = []
    for place, values in enumerate(zip(native, container or native, strict=True)):
        for side, value in enumerate(values[: 1 + (container is not None)]):
            name = ("native", "container")[side]
            given = {
                "environment": name,
                "iteration": place + 1,
                "minute": 2 * place + side,
            }
            runs.append(a_run({metric: value}, **(given | fields)))
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
    beside = [
        with_metrics(
            sampled("gpu_memory_peak_gib", 30.0, "GiB"),
            iteration=n,
            minute=20 + n,
            environment="beside",
            workload={"url": "x"},
        )
        for n in range(1, 11)
    ]
    # What another server of the campaign is says nothing of this one.
    for view in (a_view(*runs), a_view(*runs, *beside)):
        found = [line for check in (outlier, drifts) for line in told(check, view)]
        assert bool(found) is is_found


def test_many_outliers_of_a_cell_are_told_as_one_finding_under_either_name() -> None:
    """Two of 24 runs lie beyond three standard deviations: 8 %, of which the methodology allows 5."""
    (found,) = outlier(sides([99.5, 100.5] * 11 + [106.0, 106.0]))
    assert found.message.startswith("2 of 24 runs of m/native/w are outliers in ")
    assert found.check == "outlier"
    assert covers(Acknowledgement(check="too-many-outliers", reason="known"), found)
    (alone,) = outlier(sides([99.5, 100.5] * 11 + [106.0]))
    assert alone.run is not None


def test_variation_is_told_once_for_all_that_vary() -> None:
    (found,) = high_variation(
        sides([110.0, 90.0, 100.0, 100.0], [115.0, 85.0, 100.0, 100.0])
    )
    assert found.evidence["cells"] == ["m/native/w", "m/container/w"]
    assert "of m/container/w varies by 12.2 %" in found.message
    assert found.message.endswith("in m/native/w and m/container/w.")


@pytest.mark.parametrize(("n", "is_found"), [(3, True), (4, False)])
def test_four_runs_are_enough(n: int, is_found: bool) -> None:
    values = [100.0, 101.0, 99.0, 100.5][:n]
    found = list(small_sample(sides(values)))
    assert len(found) == is_found
    if is_found:
        assert found[0].message.startswith("m/native/w has 3 runs: ")
        assert found[0].remedy == "Measure each at least 4 times."


@pytest.mark.parametrize(
    ("apart", "checks"),
    [(2.0, []), (4.2, ["small-sample"]), (12.0, ["high-variation"])],
)
def test_a_difference_of_a_tenth_would_be_seen(apart: float, checks: list[str]) -> None:
    """Four runs that vary by 4.85 % are few; runs that vary by 14 % have one finding, not two."""
    values = [100 + apart * side for side in (1, -1, 1, -1)]
    view = sides(values, values[::-1])
    found = [*high_variation(view), *small_sample(view)]
    assert [finding.check for finding in found] == checks
    if checks == ["small-sample"]:
        assert found[0].evidence["n"] == [4, 4]
        assert found[0].evidence["power_10_percent"] < 0.8


def test_first_runs_that_stand_out_in_every_cell_are_a_cold_start() -> None:
    draw = np.random.default_rng(5)
    runs = []
    for iteration in range(1, 11):
        for place, (model, side) in enumerate(product("ab", ("native", "container"))):
            warm = 50 + draw.normal(0, 0.05)
            value = warm + (5 if iteration == 1 else 0)
            given = {"model": model, "environment": side, "iteration": iteration}
            minute = 4 * iteration + place
            runs.append(a_run({"peak_memory_gib": value}, minute=minute, **given))
    view = a_view(*runs)
    assert list(outlier(view)) == [], "one cause is told once"
    found = [item for item in drifts(view) if "first run" in item.message]
    (everywhere,) = [item for item in found if "of 4 cells has" in item.message]
    assert everywhere.evidence["runs"] == [run.run_id for run in runs[:4]]
    # All four first runs are the largest of ten, or all are the smallest: 2 of 10^4.
    assert everywhere.evidence["p_value"] == pytest.approx(2e-4)
    assert "GiB more peak memory" in everywhere.message


def test_runs_begin_in_the_order_of_the_plan() -> None:
    def placed(position: int, minute: int, attempt: int = 1, **fields: Any) -> Stored:
        plan = Plan(position=position, order="interleaved", attempt=attempt)
        return a_run(iteration=position + 1, minute=minute, plan=plan, **fields)

    assert list(order_confound(a_view(placed(0, 0), placed(1, 1)))) == []
    (found,) = order_confound(a_view(placed(2, 0), placed(0, 1), placed(1, 2)))
    assert "1 of 3 runs began before runs that the plan puts earlier" in found.message
    assert len(found.evidence["runs"]) == 1
    retried = placed(0, 2, attempt=2)
    assert list(order_confound(a_view(placed(1, 1), retried))) == []
    repeat = placed(0, 2, repeat_of="another")
    assert list(order_confound(a_view(placed(1, 1), repeat))) == []
    assert list(order_confound(a_view(placed(1, 1), placed(0, 1)))) == []


def batches(
    first: float, runs: int = 1, rest: tuple[float, ...] = (10.0, 10.0, 10.0)
) -> list[str]:
    """What is found of runs whose first batch takes `first` milliseconds, and the others `rest`."""
    view = a_view(
        *[a_run(iteration=n + 1) for n in range(runs)],
        answer=answered(series=(first, *rest)),
    )
    return told(warmed_up, view)


def test_a_first_batch_is_a_cold_start() -> None:
    assert batches(15.0) == []
    (found,) = batches(15.1)
    assert "15.1 ms, while the others take 10.0 ms" in found
    assert batches(50.0, rest=(10.0,)) == []


@pytest.mark.parametrize(
    ("asked", "slowest", "is_found"),
    [
        ({"warmup": 0}, 501.0, True),
        ({"warmup": 0}, 499.0, False),
        ({"warmup": 8}, 501.0, False),
        # The last of 16 prompts that came together waits for all of them, and the median one for its own at least.
        ({"warmup": 0, "concurrency": 16}, 1599.0, False),
        ({"warmup": 0, "concurrency": 16}, 1601.0, True),
        ({"warmup": 0, "request_rate": 2.0}, 1601.0, False),
    ],
)
def test_a_run_without_a_warm_up_shows_a_cold_start(
    asked: dict[str, Any], slowest: float, is_found: bool
) -> None:
    times = {"ttft_p50_ms": 100.0, "ttft_p99_ms": slowest}
    found = told(warmed_up, a_view(a_run(times, workload=asked)))
    assert len(found) == is_found


# -- words -----------------------------------------------------------------------------------------------------


def test_names_are_listed_up_to_three() -> None:
    assert listed([], "cells") == ""
    assert listed(["a"], "cells") == "a"
    assert listed(["a", "b", "c"], "cells") == "a, b and c"
    assert listed(["a", "b", "c", "d"], "cells") == "4 cells"


def test_one_metric_is_named_and_several_are_listed() -> None:
    assert about_metrics(["a"]) == {"metric": "a"}
    assert about_metrics(["a", "b"]) == {"metrics": ["a", "b"]}


def test_runs_are_told_by_what_they_have_in_common() -> None:
    native = [a_run(iteration=number) for number in (1, 2, 3)]
    other = a_run(environment="container", minute=9)
    view = a_view(*native, other)
    assert view.where(native[:1])[0] == "iteration 1 of m/native/w"
    assert view.where(native[:2])[0] == "2 of 3 runs of m/native/w"
    assert view.where(native)[0] == "all 3 runs of m/native/w"
    assert view.where([native[0], other])[0] == "2 runs of m/native/w and m/container/w"
    assert view.where([*native, other])[0] == "all 4 runs of the campaign"


def test_a_finding_on_several_runs_names_the_smallest_thing_that_holds_them() -> None:
    native = [a_run(iteration=number) for number in (1, 2, 3)]
    other = a_run(environment="container", minute=9)
    view = a_view(*native, other)

    def about(runs: list[Stored]) -> tuple[Any, ...]:
        (found,) = view.together("drift", "info", runs, lambda words: f"{words}.")
        return (
            found.run,
            found.cell,
            found.evidence.get("cells"),
            found.evidence.get("runs"),
        )

    assert about(native[:1]) == (native[0].run_id, "m/native/w", None, None)
    ids = [run.run_id for run in native]
    assert about(native[:2]) == (None, "m/native/w", None, ids[:2])
    places = ["m/native/w", "m/container/w"]
    assert about([native[0], other]) == (None, None, places, [ids[0], other.run_id])
    assert about([*native, other]) == (None, None, None, [*ids, other.run_id])
    assert list(view.together("drift", "info", [], str)) == []
