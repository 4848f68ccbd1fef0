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
from sparkpub.review.checks.spread import (
    drifts,
    high_variation,
    order_confound,
    outlier,
    small_sample,
)
from sparkpub.review.checks.view import View, listed
from tests.review.checks.in_memory import (
    a_run,
    a_view,
    sampled,
    told,
    with_metrics,
)

TPUT = "output_throughput_tok_s"


def test_a_finding_says_where_it_belongs() -> None:
    run = a_run()
    view = a_view(run)
    (of_run,) = view.tell("drift", "info", "{}", [(run, "")])
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


def test_many_outliers_of_a_cell_are_told_together_under_either_name() -> None:
    """Two of 24 runs lie beyond three standard deviations: 8 %, of which the methodology allows 5."""
    (found,) = outlier(sides([99.5, 100.5] * 11 + [106.0, 106.0]))
    assert found.message.startswith("2 of 24 runs of m/native/w are outliers. ")
    assert covers(Acknowledgement(check="too-many-outliers", reason="known"), found)


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
    (everywhere,) = found
    assert "The first run of 4 cells of all environments has" in everywhere.message
    assert everywhere.evidence["runs"] == [run.run_id for run in runs[:4]]
    # All four first runs are the largest of ten, or all are the smallest: 2 of 10^4, once over all cells; each
    # environment's alone have 2 of 10^2.
    assert everywhere.evidence["p_adjusted"] == pytest.approx(3 * 2e-4)
    assert "GiB more peak memory" in everywhere.message


def test_runs_begin_in_the_order_of_the_plan() -> None:
    def placed(position: int, minute: int, attempt: int = 1, **fields: Any) -> Stored:
        plan = Plan(position=position, order="interleaved", attempt=attempt)
        return a_run(iteration=position + 1, minute=minute, plan=plan, **fields)

    assert list(order_confound(a_view(placed(0, 0), placed(1, 1)))) == []
    (found,) = order_confound(a_view(placed(2, 0), placed(0, 1), placed(1, 2)))
    assert found.message.startswith("Iteration 3 of m/native/w began before runs that")
    retried = placed(0, 2, attempt=2)
    assert list(order_confound(a_view(placed(1, 1), retried))) == []
    repeat = placed(0, 2, repeat_of="another")
    assert list(order_confound(a_view(placed(1, 1), repeat))) == []
    assert list(order_confound(a_view(placed(1, 1), placed(0, 1)))) == []


# -- words -----------------------------------------------------------------------------------------------------


def test_names_are_listed_up_to_three() -> None:
    assert listed([], "cells") == ""
    assert listed(["a"], "cells") == "a"
    assert listed(["a", "b", "c"], "cells") == "a, b and c"
    assert listed(["a", "b", "c", "d"], "cells") == "4 cells"


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
        (found,) = view.tell("drift", "info", "{}", [(run, "") for run in runs])
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
    assert list(view.tell("drift", "info", "{}", [])) == []
