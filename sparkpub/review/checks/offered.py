"""Whether runs did the work that their load declares, whether the rate at which requests came is one that was served,
and whether several users get no more than one of them would alone."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import NamedTuple

from sparkpub.plan.requested import load_of
from sparkpub.record.load import Load
from sparkpub.record.store import Stored
from sparkpub.review import offered
from sparkpub.review.checks.check import Check, of_each_run
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View, label
from sparkpub.review.physics import THROUGHPUT
from sparkpub.review.reviewed import Cell

ANSWER_SHARE = Threshold(
    "answer share",
    offered.ANSWER_SHARE,
    "How far the mean answer may be from the length that the load declares, as a share of that. Of 1,522 runs that "
    "tell both, 6 are further. The mean of 100 lengths drawn from 0.1 to 1.9 times the declared one has a standard "
    "error of 5 %.",
)
DRAIN_SHARE = Threshold(
    "drain share",
    offered.DRAIN_SHARE,
    "How long a mean request may take, as a share of the time in which requests arrive: longer, and the end of the "
    "measurement, when no more arrive, is a large part of it.",
)
USERS_SHARE = Threshold(
    "users share",
    0.05,
    "Share by which several users must get more than as many times one user, beyond the spread of both figures. Of 38 "
    "models on a DGX Spark, two get more, by up to 22 %.",
)


class Users(NamedTuple):
    """The throughput of a cell in tok/s, with how far it spreads, and how many users were served at once."""

    cell: Cell
    users: int
    mean: float
    spread: float

    def times(self, one: "Users") -> float:
        """How many times what one user got."""
        return self.mean / one.mean

    def exceeds(self, one: "Users") -> bool:
        """Whether they got more than as many times one user, whom nothing held back, could have had."""
        most = self.users * (one.mean + one.spread)
        return self.mean - self.spread > (1 + USERS_SHARE) * most


def users_scaling(view: View) -> Iterator[Finding]:
    """Cells that differ in the number of users alone, and in which these get more than as many times one user: a server
    that works for several does not do more for each of them."""
    alike: dict[tuple[str, str, Load], list[Users]] = defaultdict(list)
    for cell, runs in view.counted.items():
        load = load_of(runs[0].record) if runs else None
        mean = view.figures(cell, THROUGHPUT)
        if load is None or load.at_once is None or not mean:
            continue
        others = replace(load, at_once=None, in_flight=None, named="")
        spread = _spread(runs, mean)
        users = Users(cell, load.at_once, fmean(mean), spread)
        alike[cell[0], cell[1], others].append(users)
    found = [
        (several, one)
        for group in alike.values()
        for one in [each for each in group if each.users == 1][:1]
        for several in group
        if several.exceeds(one)
    ]
    if not found:
        return
    most, one = max(found, key=lambda pair: pair[0].times(pair[1]) / pair[0].users)
    text = (
        f"{most.users} users of {label(most.cell)} get {most.times(one):.1f} times what one user gets "
        f"({most.mean:.4g} and {one.mean:.4g} tok/s): something held the single user back."
    )
    yield view.concerning(
        "users-scaling",
        "warning",
        text,
        [each.cell for pair in found for each in pair],
        [THROUGHPUT],
        cases=len(found),
    )


def _spread(runs: Sequence[Stored], figures: Sequence[float]) -> float:
    """The standard deviation between runs, else between the repetitions of the one."""
    if len(figures) > 1:
        return stdev(figures)
    spread = runs[0].record.spreads.get(THROUGHPUT)
    return 0.0 if spread is None else spread.deviation


def _answers(_view: View, stored: Stored) -> Iterator[str]:
    yield from filter(None, [offered.answers_apart(stored.record)])


def _queue(_view: View, stored: Stored) -> Iterator[str]:
    yield from filter(None, [offered.emptied_queue(stored.record)])


CHECKS = (
    of_each_run(
        "answer-length",
        "meaning",
        "warning",
        "Were the answers as long as the load declares?",
        _answers,
        ("gave answers of another length, so it is other work than its load says",),
        thresholds=(ANSWER_SHARE,),
        remedy="Have the server ignore the end of the text (`--ignore-eos`, `min_tokens`), and re-run.",
    ),
    of_each_run(
        "offered-load",
        "meaning",
        "info",
        "Did the server serve the rate at which requests came?",
        _queue,
        (
            "is in large part the emptying of a queue, not a server at that rate",
            "are in large part the emptying of queues, not servers at those rates",
        ),
        thresholds=(DRAIN_SHARE,),
    ),
    Check(
        "users-scaling",
        "meaning",
        ("warning",),
        "Do several users get no more than as many times one user?",
        users_scaling,
        thresholds=(USERS_SHARE,),
        remedy="Look at clocks and temperature while the single user was measured: it may have come first.",
    ),
)
