"""The order as it was really run, and the rounds that are complete, against enumeration and by hand."""

import itertools
import math

import pytest

from sparkpub.review.statistics.design import (
    DeclaredOrder,
    Sample,
    chance_of_switches,
    complete_rounds,
    order_as_run,
    server_blocks,
    server_rounds,
    share_earlier,
    switches,
)
from tests.review.statistics.samples import turns

ZEROS = [0.0] * 5


def timed(times: list[float], rounds: list[object] | None = None) -> Sample:
    return Sample(tuple(range(len(times))), tuple(rounds or ()), tuple(times))


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        ("interleaved", "interleaved"),
        ("random", "random"),
        ("blocked", "blocked"),
        ("as-published", "mixed"),
    ],
)
def test_the_order_is_the_declared_one_where_the_times_agree(
    declared: DeclaredOrder, found: str
) -> None:
    assert order_as_run(declared, *turns(ZEROS, ZEROS)) == found


@pytest.mark.parametrize("declared", ["interleaved", "random", "as-published"])
def test_one_side_wholly_before_the_other_is_blocked_whatever_was_declared(
    declared: DeclaredOrder,
) -> None:
    early, late = timed([1, 2]), timed([3, 4])
    assert order_as_run(declared, early, late) == "blocked"
    assert order_as_run(declared, late, early) == "blocked"


def test_two_long_blocks_of_each_side_are_blocked_too() -> None:
    """AAAAA BBBBB AAAAA BBBBB: of 184,756 orders of ten and ten 2 + 18 + 162 have so few switches."""
    one = timed([*range(5), *range(10, 15)])
    other = timed([*range(5, 10), *range(15, 20)])
    assert order_as_run("interleaved", one, other) == "blocked"


def test_a_single_run_on_one_side_forms_no_block() -> None:
    assert order_as_run("random", timed([1]), timed([2, 3, 4])) == "random"


def test_a_touch_is_no_separation() -> None:
    """1, 2 | 2, 3 and the like: which of the two at 2 came first is unknown."""
    assert order_as_run("random", timed([1, 2]), timed([2, 3])) == "random"
    assert order_as_run("random", timed([2, 3]), timed([1, 2])) == "random"


def test_runs_that_all_started_at_one_time_have_no_order() -> None:
    assert (
        order_as_run("interleaved", timed([0.0] * 6), timed([0.0] * 6)) == "interleaved"
    )


def test_without_times_the_declaration_is_all_there_is() -> None:
    assert (
        order_as_run("random", Sample((1.0, 2.0, 3.0)), Sample((1.0, 2.0, 3.0)))
        == "random"
    )


@pytest.mark.parametrize(("n", "m"), [(3, 3), (2, 5), (4, 3)])
def test_the_chance_of_few_switches_is_the_enumerated_one(n: int, m: int) -> None:
    orders = [
        sum((place in chosen) != (place + 1 in chosen) for place in range(n + m - 1))
        for chosen in itertools.combinations(range(n + m), n)
    ]
    for fewest in range(1, n + m):
        share = sum(order <= fewest for order in orders) / math.comb(n + m, n)
        assert chance_of_switches(n, m, fewest) == pytest.approx(share)


def test_seldom_means_below_one_per_cent() -> None:
    """Five and five: two orders of 252 have one switch (0.8 %), ten have two or fewer (4 %)."""
    assert chance_of_switches(5, 5, 1) == pytest.approx(2 / 252)
    assert chance_of_switches(5, 5, 2) == pytest.approx(10 / 252)
    nearly = timed([0, 1, 2, 3, 9]), timed([4, 5, 6, 7, 8])
    assert order_as_run("random", *nearly) == "random"


@pytest.mark.parametrize(
    ("one", "other", "share", "changes"),
    [
        # 1 before both, 4 before none.
        ([1, 4], [2, 3], 2 / 4, 2),
        ([1, 2, 3, 4, 6], [5, 7, 8, 9, 10], 24 / 25, 3),
        ([5, 7, 8, 9, 10], [1, 2, 3, 4, 6], 1 / 25, 3),
        # Which of the two at 2 came first is unknown: half of a pair.
        ([1, 2], [2, 3], 3.5 / 4, None),
    ],
)
def test_how_much_earlier_a_side_ran_and_how_often_they_changed_places(
    one: list[float], other: list[float], share: float, changes: int | None
) -> None:
    assert share_earlier(one, other) == pytest.approx(share)
    assert switches(one, other) == changes


def test_rounds_are_complete_where_both_sides_ran_once_and_nothing_came_between() -> (
    None
):
    one, other = turns(ZEROS, ZEROS)
    assert complete_rounds(one, other) == [(place, place) for place in range(5)]


def test_a_round_of_one_side_only_is_left_out() -> None:
    one, other = timed([0, 3, 4], [1, 2, 3]), timed([1, 5], [1, 3])
    assert complete_rounds(one, other) == [(0, 0), (2, 1)]


def test_a_round_that_stands_twice_on_one_side_and_a_repeat_are_left_out() -> None:
    one, other = timed([0, 3, 8, 10], [1, 2, 2, None]), timed([1, 4, 11], [1, 2, None])
    assert complete_rounds(one, other) == [(0, 0)]


def test_a_round_whose_second_run_was_made_up_for_later_is_left_out() -> None:
    """Round 1 began at 0 and its other side ran at 6, after round 2 and 3."""
    one, other = timed([0, 2, 5], [1, 2, 3]), timed([3, 4, 6], [2, 3, 1])
    assert complete_rounds(one, other) == [(1, 0), (2, 1)]


def test_one_run_of_another_round_between_is_enough_to_tear_a_round() -> None:
    one, other = timed([0, 1], [1, 2]), timed([2, 3], [1, 2])
    assert complete_rounds(one, other) == []


def test_rounds_come_in_order_of_time() -> None:
    one, other = timed([0, 2], ["b", "a"]), timed([1, 3], ["b", "a"])
    assert complete_rounds(one, other) == [(0, 0), (1, 1)]
    one, other = timed([4, 2], ["b", "a"]), timed([5, 3], ["b", "a"])
    assert complete_rounds(one, other) == [(1, 1), (0, 0)]


def test_rounds_without_times_are_taken_as_they_stand() -> None:
    one, other = Sample((1.0, 2.0), (1, 2)), Sample((3.0, 4.0), (2, 1))
    assert complete_rounds(one, other) == [(0, 1), (1, 0)]
    timeless = timed([5, 6], [1, 2])
    assert complete_rounds(timeless, Sample((3.0, 4.0), (1, 2))) == [(0, 0), (1, 1)]


@pytest.mark.parametrize("values", [(), (1.0, math.nan), (math.inf,)])
def test_a_sample_has_values_and_finite_ones(values: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="at least one value"):
        Sample(values)


def test_rounds_and_times_go_with_the_values() -> None:
    with pytest.raises(ValueError, match="one each"):
        Sample((1.0, 2.0), rounds=(1,))
    with pytest.raises(ValueError, match="one each"):
        Sample((1.0, 2.0), times=(1.0,))


def served(values: int, servers: str, times: list[float]) -> Sample:
    names = [None if name == "-" else name for name in servers]
    return Sample((0.0,) * values, tuple(range(values)), tuple(times), tuple(names))


def test_runs_of_one_server_stand_together_and_others_alone() -> None:
    assert server_blocks("abbcc") == ((0,), (1, 2), (3, 4))
    assert server_blocks(("a", None, "a", None)) == ((0, 2), (1,), (3,))


@pytest.mark.parametrize("servers", ["", "abc", (None, None)])
def test_where_each_run_has_its_own_server_or_none_tells_there_are_no_blocks(
    servers: str | tuple[None, ...],
) -> None:
    assert server_blocks(servers) == ()


# In order of time: A1 | B1 B2 | A2 A3 | B3 B4 | A4 A5 | B5. The names are those of the servers.
@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        # Each server serves the last run of a round and the first of the next.
        ("acceee", "bbdd-", (((0,), (1, 2), (3, 4)), ((0, 1), (2, 3), (4,)))),
        # The other environment keeps no server: A2 and A3 stand together, with B2 before them.
        ("acce", "----", (((0,), (1, 2), (3,)), ((0,), (1,), (2, 3)))),
        # One server for all of a side joins everything.
        ("aaaaa", "bcdef", (((0, 1, 2, 3, 4),), ((0, 1, 2, 3, 4),))),
        # Nothing is shared, or nobody knows.
        ("abcde", "fghij", ((), ())),
        ("-----", "-----", ((), ())),
    ],
)
def test_neighbouring_servers_of_both_sides_form_blocks(
    one: str, other: str, found: object
) -> None:
    rounds = min(len(one), 5)
    first, second = turns([0.0] * rounds, [0.0] * rounds)
    baseline = served(rounds, one[:rounds], list(first.times))
    candidate = served(rounds, other[:rounds], list(second.times))
    pairs = [(place, place) for place in range(rounds)]
    assert server_rounds(baseline, candidate, pairs) == found


def test_a_run_that_no_block_takes_joins_the_last() -> None:
    """A1 | B1 B2 | A2 A3 | B3 B4 | A4: behind the second pair of servers there is no third."""
    first, second = turns([0.0] * 4, [0.0] * 4)
    baseline = served(4, "acce", list(first.times))
    candidate = served(4, "bbdd", list(second.times))
    pairs = [(place, place) for place in range(4)]
    blocks = ((0,), (1, 2, 3)), ((0, 1), (2, 3))
    assert server_rounds(baseline, candidate, pairs) == blocks
