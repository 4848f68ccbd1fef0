"""How the runs of a comparison were ordered in time, and which of them form rounds.

Turns taken between environments spread whatever changes with time over both. Where one environment ran in a block of
its own, such a change looks like a difference between environments, and no test can tell them apart.
"""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from sparkpub.review.statistics.describe import Floats

Declared = Literal["interleaved", "random", "blocked", "as-published"]
"""The order that a campaign declares; `as-published` where nobody declared one."""
Order = Literal["interleaved", "random", "mixed", "blocked"]
"""The order as it was really run. `mixed`: neither declared nor in blocks."""

FEW_SWITCHES = 0.01
"""An order is blocked where a random one would switch environments as seldom with less than this probability."""
_FEWEST = 2
"""Fewest runs on each side that can form blocks."""


@dataclass(frozen=True)
class Sample:
    """The values of one metric of one cell in the order in which they ran.

    `rounds` holds the round (iteration) of each value, None for a repeat outside of the rounds; empty where there are
    no rounds. `times` holds when each ran, on any scale that both samples share; empty where that is unknown.
    Raises ValueError where the lengths differ, or a value is missing or not finite.
    """

    values: tuple[float, ...]
    rounds: tuple[Hashable, ...] = ()
    times: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.values or not np.isfinite(self.values).all():
            raise ValueError(
                "a comparison needs at least one value on each side, and finite ones"
            )
        for known in (self.rounds, self.times):
            if known and len(known) != len(self.values):
                raise ValueError("rounds and times go with the values, one each")

    @cached_property
    def array(self) -> Floats:
        """The values as an array."""
        return np.array(self.values, dtype=np.float64)

    @cached_property
    def place_of_round(self) -> dict[Hashable, int]:
        """Rounds that have exactly one value here, and where it stands."""
        count = Counter(self.rounds)
        return {
            name: place
            for place, name in enumerate(self.rounds)
            if name is not None and count[name] == 1
        }


def order_as_run(declared: Declared, baseline: Sample, candidate: Sample) -> Order:
    """The order as it was really run: what was declared, unless the times show blocks.

    Blocks are complete separation of two runs or more on each side, or fewer switches between the two than a random
    order makes (the runs test of Wald and Wolfowitz 1940, one-sided, exact).
    """
    if declared == "blocked" or _ran_in_blocks(baseline.times, candidate.times):
        return "blocked"
    return "mixed" if declared == "as-published" else declared


def _ran_in_blocks(baseline: Sequence[float], candidate: Sequence[float]) -> bool:
    if min(len(baseline), len(candidate)) < _FEWEST:
        return False
    if max(baseline) < min(candidate) or max(candidate) < min(baseline):
        return True
    if set(baseline) & set(candidate):
        return False  # started at the same time: which came first is unknown
    sides = [0] * len(baseline) + [1] * len(candidate)
    in_time = np.array(sides)[np.argsort([*baseline, *candidate], kind="stable")]
    switches = int((in_time[1:] != in_time[:-1]).sum())
    return chance_of_switches(len(baseline), len(candidate), switches) < FEW_SWITCHES


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


def complete_rounds(baseline: Sample, candidate: Sample) -> list[tuple[int, int]]:
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
