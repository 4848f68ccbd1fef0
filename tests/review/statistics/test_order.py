"""The order as it was really run, and what errors rest on. A failure here lets a drift pass for a difference."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
import pytest

from sparkpub.review.statistics.order import (
    DeclaredOrder,
    by_unit,
    complete_rounds,
    order_as_run,
    units,
)


def timed(
    times: list[float],
    rounds: Iterable[object] = (),
    servers: Iterable[str] = (),
    declared: DeclaredOrder = "interleaved",
) -> pd.DataFrame:
    known = {"round": [*rounds] or times, "server": [*servers] or [""] * len(times)}
    side = pd.DataFrame(known, dtype=object)
    return side.assign(time=times, order=declared)


def turns(one: str, other: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rounds whose order is reversed in every second one, with a letter for the server of each run."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(len(one)):
        first = number % 2
        times[first].append(2.0 * number)
        times[1 - first].append(2.0 * number + 1)
    first, second = (
        timed(when, range(len(names)), [name.strip("-") for name in names])
        for names, when in zip((one, other), times, strict=True)
    )
    return first, second


@pytest.mark.parametrize(
    ("declared", "one", "other", "found"),
    [
        # Taking turns, the declaration holds.
        ("interleaved", [0, 3, 4], [1, 2, 5], "interleaved"),
        ("blocked", [0, 3, 4], [1, 2, 5], "blocked"),
        # One side wholly before the other is blocked whatever was declared, from two runs a side on.
        ("interleaved", [1, 2], [3, 4], "blocked"),
        ("random", [3, 4], [1, 2], "blocked"),
        ("random", [1], [2, 3, 4], "random"),
        # Which of the two at 2 came first is unknown, and so is the order of all at one time.
        ("random", [1, 2], [2, 3], "random"),
        # AAAAA BBBBB AAAAA BBBBB: of 184,756 orders of ten and ten 2 + 18 + 162 have so few switches.
        ("random", [*range(5), *range(10, 15)], [*range(5, 10), *range(15, 20)], "blocked"),
        # Two switches of five and five: ten orders of 252, 4 %.
        ("random", [0, 1, 2, 3, 9], [4, 5, 6, 7, 8], "random"),
        # 24 of 25 pairs have A first: blocks, unless the order was drawn.
        ("as-published", [1, 2, 3, 4, 6], [5, 7, 8, 9, 10], "blocked"),
        ("random", [1, 2, 3, 4, 6], [5, 7, 8, 9, 10], "random"),
    ],
)  # fmt: skip
def test_the_order_as_run(
    declared: DeclaredOrder, one: list[float], other: list[float], found: str
) -> None:
    sides = (timed(times, declared=declared) for times in (one, other))
    assert order_as_run(*sides) == found


@pytest.mark.parametrize(
    ("declared", "ran", "found"),
    [
        # A is first in 5 + 5 + 4 + 2 = 16 of 20 pairs, in 5 + 5 + 3 + 2 = 15, and in 3 + 3 + 2 = 8 of 9.
        ("as-published", "AABABBABB", "blocked"),
        ("as-published", "AABBABABB", "mixed"),
        ("as-published", "AABABB", "blocked"),
        # Three rounds are whole, and four.
        ("interleaved", "ABABABBBB", "blocked"),
        ("interleaved", "ABABABABBBBB", "interleaved"),
    ],
)
def test_a_declared_order_counts_where_enough_of_it_was_run(
    declared: DeclaredOrder, ran: str, found: str
) -> None:
    """Each side's runs are its rounds, one after the other."""
    sides = (
        timed(
            times := [float(at) for at, name in enumerate(ran) if name == side],
            range(len(times)),
            declared=declared,
        )
        for side in "AB"
    )
    assert order_as_run(*sides) == found


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        # A round of one side only is left out.
        (timed([0, 3, 4], [1, 2, 3]), timed([1, 5], [1, 3]), [(0, 0), (2, 1)]),
        # So is one that stands twice on a side, and a repeat.
        (timed([0, 3, 8, 10], [1, 2, 2, None]), timed([1, 4, 11], [1, 2, None]), [(0, 0)]),
        # Round 1 began at 0 and its other side ran at 6, after round 2 and 3.
        (timed([0, 2, 5], [1, 2, 3]), timed([3, 4, 6], [2, 3, 1]), [(1, 0), (2, 1)]),
        # In order of time.
        (timed([4, 2], ["b", "a"]), timed([5, 3], ["b", "a"]), [(1, 1), (0, 0)]),
    ],
)  # fmt: skip
def test_rounds_are_complete_where_both_sides_ran_once_and_nothing_came_between(
    one: pd.DataFrame, other: pd.DataFrame, found: list[tuple[int, int]]
) -> None:
    assert complete_rounds(one, other) == found


# In order of time: A1 | B1 B2 | A2 A3 | B3 B4 | A4 A5 | B5. The names are those of the servers.
@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        # Each server serves the last run of a round and the first of the next.
        ("accee", "bbdd-", ([0, 1, 1, 2, 2], [0, 0, 1, 1, 2])),
        # The other environment keeps no server: A2 and A3 stand together, with B2 before them.
        ("acce", "----", ([0, 1, 1, 2], [0, 1, 2, 2])),
        # One server for all of a side joins everything.
        ("aaaaa", "bcdef", ([0] * 5, [0] * 5)),
        # Behind the second pair of servers there is no third: the last run joins it.
        ("acce", "bbdd", ([0, 1, 1, 1], [0, 0, 1, 1])),
        # Nothing is shared, or nobody knows: every round by itself.
        ("--", "--", ([0, 1], [0, 1])),
    ],
)
def test_neighbouring_servers_of_both_sides_form_the_units_of_rounds(
    one: str, other: str, found: tuple[list[int], list[int]]
) -> None:
    each = units(*turns(one, other), "interleaved")
    assert tuple(side.tolist() for side in each) == found


def test_outside_of_rounds_each_side_has_its_own_servers() -> None:
    one, other = units(*turns("aab", "cde"), "random")
    assert (one.tolist(), other.tolist()) == ([0, 0, 1], [0, 1, 2])
    torn = timed([0, 1], [1, 2]), timed([2, 3], [1, 2])
    assert [side.max() for side in units(*torn, "interleaved")] == [-1, -1]


def test_units_of_many_metrics_are_those_of_each_to_the_last_digit() -> None:
    """Else what does not vary at all would seem to."""
    values = np.random.default_rng(1).random((20, 11)).round(2)
    unit = np.array([0, 0, 1, 1, 1, 2, 3, 3, 4, 4, -1])
    assert by_unit(values, unit).tolist() == [
        by_unit(row, unit).tolist() for row in values
    ]
