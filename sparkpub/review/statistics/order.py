"""How the runs of a comparison were ordered in time, and which of them form rounds.

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
independent runs, whatever the order. `server_blocks` tells which of them stand together, and errors then come from the
means of servers.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from sparkpub.review.statistics.estimate import MINIMUM_RUNS, Floats

DeclaredOrder = Literal["interleaved", "random", "blocked", "as-published"]
"""The order that a campaign declares; `as-published` where nobody declared one."""
OrderAsRun = Literal["interleaved", "random", "mixed", "blocked"]
"""The order as it was really run. `mixed`: neither declared nor in blocks."""

FEW_SWITCHES = 0.01
"""An order is blocked where a random one would switch environments as seldom with less than this probability."""
EARLIER_SHARE = 0.8
"""An order that nobody drew is blocked where the same side began first in this share of all pairs of runs."""
FEWEST_IN_BLOCKS = 2
"""Fewest runs on each side that can form blocks."""
FEWEST_EARLIER = 3
"""Fewest runs on each side of which one can lie earlier: of two, ABABB has five of six pairs with A first."""


@dataclass(frozen=True)
class Timeline:
    """When the `n` runs of one side ran, in order of time.

    `rounds` holds the round (iteration) of each, None for a repeat outside of the rounds; empty where there are no
    rounds. `times` holds when each ran, on any scale that both sides share; empty where that is unknown. `servers`
    names the server that served each, None or empty for a run that had none or whose record does not tell it.
    """

    n: int
    rounds: tuple[Hashable, ...] = ()
    times: tuple[float, ...] = ()
    servers: tuple[str | None, ...] = ()

    @cached_property
    def place_of_round(self) -> dict[Hashable, int]:
        """Rounds that have exactly one run here, and where it stands."""
        count = Counter(self.rounds)
        return {
            name: place
            for place, name in enumerate(self.rounds)
            if name is not None and count[name] == 1
        }


def order_as_run(
    declared: DeclaredOrder, baseline: Timeline, candidate: Timeline
) -> OrderAsRun:
    """The order as it was really run: what was declared, unless the times show blocks (see above)."""
    if declared == "blocked" or _ran_in_blocks(declared, baseline, candidate):
        return "blocked"
    return "mixed" if declared == "as-published" else declared


def order_over_machines(orders: Iterable[OrderAsRun]) -> OrderAsRun:
    """The order of several machines together: blocked where one was, and mixed where they differ."""
    found = set(orders)
    if "blocked" in found:
        return "blocked"
    if len(found) > 1:
        return "mixed"
    (order,) = found
    return order


def _ran_in_blocks(
    declared: DeclaredOrder, baseline: Timeline, candidate: Timeline
) -> bool:
    fewest = min(len(baseline.times), len(candidate.times))
    if fewest < FEWEST_IN_BLOCKS:
        return False
    earlier = share_earlier(baseline.times, candidate.times)
    if earlier in (0, 1):
        return True
    seldom = _changed_too_seldom(baseline.times, candidate.times)
    uneven = max(earlier, 1 - earlier) >= EARLIER_SHARE and fewest >= FEWEST_EARLIER
    if declared == "random":
        return seldom
    if declared == "interleaved" and (seldom or uneven):
        return len(complete_rounds(baseline, candidate)) < MINIMUM_RUNS
    return seldom or uneven


def _changed_too_seldom(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether a random order would hardly have so few switches (Wald and Wolfowitz's runs test, one-sided, exact)."""
    changes = switches(one, other)
    if changes is None:
        return False
    return chance_of_switches(len(one), len(other), changes) < FEW_SWITCHES


def share_earlier(one: Sequence[float], other: Sequence[float]) -> float:
    """Of the pairs of a run on either side, the share in which that of `one` began first; a tie counts half.

    It is Mann and Whitney's U (1947) divided by the number of pairs.
    """
    in_time = np.sort(other)
    later = len(other) - np.searchsorted(in_time, one, side="right")
    not_earlier = len(other) - np.searchsorted(in_time, one, side="left")
    return float((later + not_earlier).sum() / (2 * len(one) * len(other)))


def switches(one: Sequence[float], other: Sequence[float]) -> int | None:
    """How often the sides changed places in time; None where runs of both began at the same time."""
    if set(one) & set(other):
        return None
    sides = np.array([0] * len(one) + [1] * len(other))
    in_time = sides[np.argsort([*one, *other], kind="stable")]
    return int((in_time[1:] != in_time[:-1]).sum())


def chance_of_switches(n: int, m: int, switches: int) -> float:
    """Probability that a random order of n and m runs changes sides at most `switches` times (Wald and Wolfowitz 1940).

    With k stretches on one side and j on the other, there are C(n-1, k-1) C(m-1, j-1) orders.
    """
    orders = 0
    for stretches in range(2, switches + 2):
        one, other = (stretches + 1) // 2, stretches // 2
        for k, j in ((one, other), (other, one)):
            orders += math.comb(n - 1, k - 1) * math.comb(m - 1, j - 1)
    return orders / math.comb(n + m, n)


def complete_rounds(baseline: Timeline, candidate: Timeline) -> list[tuple[int, int]]:
    """Places of the two runs of every complete round, in order of time.

    A round is complete where both sides ran once in it and no run of another round came between: what drifts in time
    then falls on both alike.
    """
    both = [
        name for name in baseline.place_of_round if name in candidate.place_of_round
    ]
    pairs = [
        (baseline.place_of_round[name], candidate.place_of_round[name]) for name in both
    ]
    if not baseline.times or not candidate.times:
        return pairs
    moments = np.sort([*baseline.times, *candidate.times])
    whole = []
    for one, other in pairs:
        first, last = sorted((baseline.times[one], candidate.times[other]))
        between = np.searchsorted(moments, last, side="left") - np.searchsorted(
            moments, first, side="right"
        )
        if between <= 0:
            whole.append((first, one, other))
    return [(one, other) for _, one, other in sorted(whole)]


Units = tuple[tuple[int, ...], ...]
"""Runs that stand together, by their places on a side; each run is in one unit at most."""


def units(
    baseline: Timeline, candidate: Timeline, order: OrderAsRun
) -> tuple[Units, Units]:
    """What errors rest on, for each side: single runs, or runs of one server. Both are empty where the order was
    interleaved and no round is complete; within rounds, the units of one place are paired."""
    if order != "interleaved":
        one, other = (
            server_blocks(side.servers) or alone(range(side.n))
            for side in (baseline, candidate)
        )
        return one, other
    rounds = complete_rounds(baseline, candidate)
    if not rounds:
        return (), ()
    sides = tuple(zip(*rounds, strict=True))
    blocks = server_rounds(baseline, candidate, rounds)
    if not any(blocks):
        return alone(sides[0]), alone(sides[1])
    one, other = (
        tuple(tuple(places[place] for place in unit) for unit in side)
        for places, side in zip(sides, blocks, strict=True)
    )
    return one, other


def alone(places: Iterable[int]) -> Units:
    """Every run a unit."""
    return tuple((place,) for place in places)


def by_unit(values: Floats, units: Units) -> Floats:
    """What each unit adds to the mean along the last axis, as a value of its own: the unit's mean where all are of one
    size. The mean of these is that of the values of all units.

    Runs of one server are no independent runs, so that the server is the unit of the analysis: the variance is that
    between clusters (Liang and Zeger 1986, Biometrika 73, 13-22), with one degree of freedom fewer than there are.
    """
    used = [place for unit in units for place in unit]
    if len(used) == len(units):
        return values[..., used]
    mean = values[..., used].mean(axis=-1, keepdims=True)
    weight = len(units) / len(used)
    apart = values - mean
    parts = [apart[..., list(places)].sum(axis=-1) for places in units]
    found: Floats = mean + weight * np.stack(parts, axis=-1)
    return found


def server_blocks(servers: Sequence[str | None]) -> Units:
    """The runs of each server, in order of time; a run without one stands alone. Empty where no two runs share one."""
    blocks: dict[Hashable, list[int]] = {}
    for place, server in enumerate(servers):
        # A run without a server is a block of its own.
        name: Hashable = server or place
        blocks.setdefault(name, []).append(place)
    if len(blocks) == len(servers):
        return ()
    return tuple(map(tuple, blocks.values()))


def server_rounds(
    baseline: Timeline, candidate: Timeline, rounds: Sequence[tuple[int, int]]
) -> tuple[Units, Units]:
    """Neighbouring servers of both sides as blocks, whose differences are independent; empty where none is shared.

    `rounds` are the complete ones, and places are those among them. Where the order turns round after each iteration,
    a server serves the last run of one round and the first of the next, so that every round shares a server with the
    round before. A block takes runs in order of time until both sides are in it and none of its servers serves a later
    run; the last one takes what is left over at the end, so that every run counts.
    """
    one, other = (
        [sample.servers[place] for place in places] if sample.servers else []
        for sample, places in zip(
            (baseline, candidate), zip(*rounds, strict=True), strict=True
        )
    )
    if not server_blocks(one) and not server_blocks(other):
        return (), ()
    runs = _in_time(baseline, candidate, rounds)
    names = [server or (side, place) for server, side, place in runs]
    last = {name: index for index, name in enumerate(names)}
    blocks: tuple[list[tuple[int, ...]], list[tuple[int, ...]]] = ([], [])
    sides: tuple[list[int], list[int]] = ([], [])
    until = 0
    for index, (_, side, place) in enumerate(runs):
        sides[side].append(place)
        until = max(until, last[names[index]])
        if until == index and all(sides):
            for found, mine in zip(blocks, sides, strict=True):
                found.append(tuple(mine))
                mine.clear()
    for found, mine in zip(blocks, sides, strict=True):
        if found and mine:
            found[-1] += tuple(mine)
    return tuple(blocks[0]), tuple(blocks[1])


def _in_time(
    baseline: Timeline, candidate: Timeline, rounds: Sequence[tuple[int, int]]
) -> list[tuple[str | None, int, int]]:
    """Server, side and round of every run of the rounds, in order of time; side by side where times are unknown."""
    timed = []
    for number, places in enumerate(rounds):
        for side, (sample, place) in enumerate(
            zip((baseline, candidate), places, strict=True)
        ):
            when = sample.times[place] if sample.times else float(number)
            server = sample.servers[place] if sample.servers else None
            timed.append((when, number, side, server))
    timed.sort(key=lambda run: run[:3])
    return [(server, side, number) for _, number, side, server in timed]
