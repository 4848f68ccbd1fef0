"""How the runs of a comparison were ordered in time, and what its errors rest on.

Turns taken between environments spread whatever changes with time over both. Where one environment ran in a block of
its own, such a change looks like a difference between environments, and no test can tell them apart.

`order_as_run` is the one answer to whether environments alternated: verdicts and the check `order-confound` both ask
it. Two things can go wrong, and each has its own figure:

- **The sides changed places too seldom** (A x 8, B x 16, A x 8). The means lie at the same time, so a steady drift
  falls on both alike; but the whole comparison is one stretch against two, and a level that held for one of them is
  all of its difference. Blocked where a random order would change sides as seldom with a probability below 1 %.
- **One side ran earlier** (AAAABABBBB). They changed places three times, which a random order does often; but 24 of
  the 25 pairs of runs have A first, so that 92 % of what a steady drift adds to A x 5, B x 5 falls on the difference
  (2 x 24/25 - 1). Blocked from 80 % of the pairs on, where the drift adds 60 %.

Two kinds of orders are excused. Where four or more rounds are complete, the verdict rests on those: in each of them
both sides ran next to each other, whatever the other runs did. And where the order was drawn at random, nobody chose
the side that came first, and its tests count with such draws: only complete separation and too few changes of place
are blocks.

Runs that one server served share whatever its start fixed: where its memory lies, which kernels it chose. They are no
independent runs, whatever the order: errors come from the means of `units` of runs that stand together (the variance is
that between clusters: Liang and Zeger 1986, Biometrika 73, 13-22).
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from math import comb
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparkpub.review.statistics.estimate import MINIMUM_RUNS, Floats

DeclaredOrder = Literal["interleaved", "random", "blocked", "as-published"]
"""The order that a campaign declares; `as-published` where nobody declared one."""
OrderAsRun = Literal["interleaved", "random", "mixed", "blocked"]
"""The order as it was really run. `mixed`: neither declared nor in blocks."""
Side: TypeAlias = Mapping[str, Any]
"""The runs of one side in order of time, a column each: the `order` that was declared, the `time` at which they began
on any scale that both sides share, the `round` (None for a repeat outside of the rounds), and the `server` that served
them (empty where none is known)."""
Units = NDArray[np.int64]
"""The number of the unit that each run of a side belongs to, from 0; -1 for a run that counts in none."""

FEW_SWITCHES = 0.01
"""An order is blocked where a random one would switch environments as seldom with less than this probability."""
EARLIER_SHARE = 0.8
"""An order that nobody drew is blocked where the same side began first in this share of all pairs of runs."""
FEWEST_IN_BLOCKS = 2
"""Fewest runs on each side that can form blocks."""
FEWEST_EARLIER = 3
"""Fewest runs on each side of which one can lie earlier: of two, ABABB has five of six pairs with A first."""


def order_as_run(baseline: Side, candidate: Side) -> OrderAsRun:
    """The order as it was really run: what was declared, unless the times show blocks (see above)."""
    orders: set[DeclaredOrder] = {*baseline["order"], *candidate["order"]}
    declared = orders.pop() if len(orders) == 1 else "as-published"
    if declared == "blocked" or _ran_in_blocks(declared, baseline, candidate):
        return "blocked"
    return "mixed" if declared == "as-published" else declared


def order_over_machines(orders: Iterable[OrderAsRun]) -> OrderAsRun:
    """The order of several machines together: blocked where one was, and mixed where they differ."""
    found = set(orders)
    if "blocked" in found:
        return "blocked"
    return found.pop() if len(found) == 1 else "mixed"


def _ran_in_blocks(declared: DeclaredOrder, baseline: Side, candidate: Side) -> bool:
    one, other = (np.asarray(side["time"]) for side in (baseline, candidate))
    fewest = min(len(one), len(other))
    if fewest < FEWEST_IN_BLOCKS:
        return False
    earlier = share_earlier(one, other)
    if earlier in (0, 1):
        return True
    seldom = chance_of_switches(one, other) < FEW_SWITCHES
    uneven = max(earlier, 1 - earlier) >= EARLIER_SHARE and fewest >= FEWEST_EARLIER
    if declared == "random":
        return seldom
    if declared == "interleaved" and (seldom or uneven):
        return len(complete_rounds(baseline, candidate)) < MINIMUM_RUNS
    return seldom or uneven


def share_earlier(one: Floats, other: Floats) -> float:
    """Of the pairs of a run on either side, the share in which that of `one` began first; a tie counts half.

    It is Mann and Whitney's U (1947) divided by the number of pairs.
    """
    signs = np.sign(np.subtract.outer(other, one))
    return float(1 + signs.mean()) / 2


def chance_of_switches(one: Floats, other: Floats) -> float:
    """Probability that a random order changes sides at most as often as these times do (Wald and Wolfowitz
    1940, exact); 1 where runs of both began at the same time.

    With k stretches on one side and j on the other, there are C(n-1, k-1) C(m-1, j-1) orders.
    """
    if set(one) & set(other):
        return 1.0
    n, m = len(one), len(other)
    is_first = np.argsort([*one, *other]) < n
    switches = int((is_first[1:] != is_first[:-1]).sum())
    orders = 0
    for changes in range(1, switches + 1):
        more, less = changes // 2, (changes - 1) // 2
        orders += comb(n - 1, more) * comb(m - 1, less)
        orders += comb(n - 1, less) * comb(m - 1, more)
    return orders / comb(n + m, n)


def complete_rounds(baseline: Side, candidate: Side) -> list[tuple[int, int]]:
    """Places of the two runs of every complete round, in order of time.

    A round is complete where both sides ran once in it and no run of another round came between: what drifts in time
    then falls on both alike.
    """
    times, partners = (np.asarray(side["time"]) for side in (baseline, candidate))
    moments = np.concatenate([times, partners])
    one, other = _places(baseline["round"]), _places(candidate["round"])
    whole = []
    for name in one.keys() & other.keys():
        place, partner = one[name], other[name]
        first, last = sorted((times[place], partners[partner]))
        is_between = (moments > first) & (moments < last)
        if not is_between.any():
            whole.append((first, place, partner))
    return [(place, partner) for _, place, partner in sorted(whole)]


def _places(rounds: Iterable[Hashable]) -> dict[Hashable, int]:
    """Rounds that have exactly one run on a side, and where it stands."""
    names = list(rounds)
    count = Counter(names)
    places = {name: place for place, name in enumerate(names)}
    return {
        name: place
        for name, place in places.items()
        if name is not None and count[name] == 1
    }


def units(baseline: Side, candidate: Side, order: OrderAsRun) -> tuple[Units, Units]:
    """What errors rest on, for each side: single runs, or runs of one server.

    In an interleaved order only the runs of complete rounds count, and the units of one number are paired. Where the
    order turns round after each iteration, a server serves the last run of one round and the first of the next, so that
    every round shares a server with the round before. A unit takes runs in order of time until both sides are in it and
    none of its servers serves a later run; the last one takes what is left over at the end, so that every run counts.
    """
    sides = baseline, candidate
    served = [np.asarray(side["server"]) for side in sides]
    if order != "interleaved":
        return by_server(served[0]), by_server(served[1])
    times = [np.asarray(side["time"]) for side in sides]
    runs = []
    for number, pair in enumerate(complete_rounds(baseline, candidate)):
        for side, place in enumerate(pair):
            runs.append((times[side][place], number, side, place))
    runs.sort()
    servers = [served[side][place] or (side, place) for *_, side, place in runs]
    last_of = {server: index for index, server in enumerate(servers)}
    found = tuple(np.full(len(side), -1) for side in times)
    unit, until = 0, 0
    seen: set[int] = set()
    for index, (*_, side, place) in enumerate(runs):
        found[side][place] = unit
        seen.add(side)
        until = max(until, last_of[servers[index]])
        if until == index and len(seen) == len(sides):
            unit += 1
            seen = set()
    one, other = (np.minimum(each, unit - 1) for each in found)
    return one, other


def by_server(servers: Iterable[str]) -> Units:
    """The runs of each server as a unit, in order of time; a run without one is a unit of its own."""
    names = [server or place for place, server in enumerate(servers)]
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names])


def by_unit(values: Floats, units: Units) -> Floats:
    """What each unit adds to the mean along the last axis, as a value of its own: the unit's mean where all are of one
    size. The mean of these is that of the values of all units."""
    is_used = units >= 0
    # Selected by a mask, many samples would be added up in another order than one, with other last digits.
    mean = np.compress(is_used, values, axis=-1).mean(axis=-1, keepdims=True)
    is_member = units[:, np.newaxis] == np.arange(units.max() + 1)
    weight = is_member.shape[1] / is_used.sum()
    found: Floats = mean + weight * ((values - mean) @ is_member)
    return found
