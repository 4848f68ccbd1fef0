"""`python -m benchmarks.verdicts`: how often a verdict is wrong, and how often one is found, by simulation.

Campaigns are drawn from processes whose truth is known, in every order, and put through the whole procedure: the order
as it was really run, the analysis that it allows, effective n, resolution, TOST and t, the rule. The same samples go
through the procedure of an earlier commit, run from its own source.

Values are in percent of the baseline; the margin is 1 %. A verdict is wrong where it says `equivalent` although the
true difference lies at the margin or beyond, or a difference that is not there or points the other way. Single
comparisons are judged: Holm's correction over a family only makes wrong verdicts rarer.
"""

import io
import itertools
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import harness
from benchmarks.harness import Row, row
from sparkpub.review.statistics.estimate import (
    Estimate,
    two_means,
    verdict_of,
)
from sparkpub.review.statistics.order import (
    DeclaredOrder,
    OrderAsRun,
    Side,
    by_unit,
    order_as_run,
    units,
)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Words = NDArray[np.str_]

BEFORE = "b52d585"
"""The commit whose procedure is the one before."""
TABLE = harness.RESULTS / "simulated" / "size.json"
"""What `benchmarks.simulated` makes the method page of."""
MARGIN, BASELINE = 1.0, 100.0
DECIMALS = 3
"""Digits to which the simulated instrument reads."""
RESOLUTION = 10.0**-DECIMALS
SPREADS = (0.5, 2.0)
"""Standard deviations of a run: half the margin, where equivalence can be shown, and twice the margin."""
DIFFERENCES = (0.0, 1.0, 2.0)
"""True differences: none, at the margin, twice the margin."""
SIZES = (5, 10, 20)
ORDERS: tuple[DeclaredOrder, ...] = ("interleaved", "random", "blocked")
REPLICATIONS, REPLICATIONS_BEFORE = 10_000, 2_000
DRIFT = -2.0
"""Change of the machine from the first run of a drifting campaign to the last, in percent."""
CARRIED = -2.0
"""What a run of the candidate leaves to the run after it, in percent: twice the margin."""
SLOWER = 10.0
"""By how much a slow run takes longer, in percent: one in ten makes a difference at the margin."""
SEED = 20

Noise = Callable[[np.random.Generator, int, int], Floats]
"""Of a generator, campaigns and runs: noise in order of time, one row a campaign, with a standard deviation of 1."""


def normal(generator: np.random.Generator, campaigns: int, runs: int) -> Floats:
    """Independent normal noise."""
    return generator.normal(size=(campaigns, runs))


def lognormal(generator: np.random.Generator, campaigns: int, runs: int) -> Floats:
    """Skewed noise: lognormal with σ = 1, centred and scaled."""
    drawn = generator.lognormal(size=(campaigns, runs))
    return (drawn - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)


def heavy_tailed(generator: np.random.Generator, campaigns: int, runs: int) -> Floats:
    """Student's t with three degrees of freedom, scaled."""
    return generator.standard_t(3, size=(campaigns, runs)) / np.sqrt(3)


def bimodal(generator: np.random.Generator, campaigns: int, runs: int) -> Floats:
    """Two modes: one run in five is slow; little noise around each."""
    slow = generator.random((campaigns, runs)) < 0.2
    return (slow - 0.2) / 0.4 + 0.1 * generator.normal(size=(campaigns, runs))


def autocorrelated(coefficient: float) -> Noise:
    """A first-order process in time, which all runs share."""

    def noise(generator: np.random.Generator, campaigns: int, runs: int) -> Floats:
        values = generator.normal(size=(campaigns, runs))
        for place in range(1, runs):
            shock = np.sqrt(1 - coefficient**2) * values[:, place]
            values[:, place] = coefficient * values[:, place - 1] + shock
        return values

    return noise


@dataclass(frozen=True)
class Scenario:
    """A process that makes the values of a campaign.

    `drift` is a change over the campaign in percent. `own` noise comes from a memory of each environment's own, which
    no order spreads over both; else runs share it in order of time. `server` is the share of the noise's variance that
    comes from the start of a server, which serves the neighbouring runs of one environment; records tell of servers
    only where they are `recorded`. `carried` is added, in percent, to a run that follows one of the candidate's. `slow`
    is the share of the candidate's runs that take `SLOWER` percent longer, which is in the true difference.
    `required` scenarios are those that the procedure must hold in.
    """

    name: str
    noise: Noise
    drift: float = 0.0
    own: bool = False
    server: float = 0.0
    recorded: bool = True
    carried: float = 0.0
    slow: float = 0.0
    required: bool = True


SCENARIOS = (
    Scenario("normal", normal),
    Scenario("lognormal", lognormal),
    Scenario("heavy-tailed", heavy_tailed),
    Scenario("bimodal", bimodal),
    Scenario("autocorrelated 0.5", autocorrelated(0.5)),
    Scenario("autocorrelated 0.8", autocorrelated(0.8)),
    Scenario("drifting", normal, drift=DRIFT),
    Scenario(
        "each remembers its own runs, 0.5",
        autocorrelated(0.5),
        own=True,
        required=False,
    ),
    Scenario(
        "each remembers its own runs, 0.8",
        autocorrelated(0.8),
        own=True,
        required=False,
    ),
    Scenario("two runs share a server, 0.5", normal, server=0.5),
    Scenario("two runs share a server, 0.8", normal, server=0.8),
    Scenario(
        "the same and not recorded, 0.5",
        normal,
        server=0.5,
        recorded=False,
        required=False,
    ),
    Scenario(
        "the same and not recorded, 0.8",
        normal,
        server=0.8,
        recorded=False,
        required=False,
    ),
    Scenario("a run carries over to the next", normal, carried=CARRIED),
    Scenario(
        "each remembers its own runs, 0.9",
        autocorrelated(0.9),
        own=True,
        required=False,
    ),
    Scenario("one run in ten is slow", normal, slow=0.1, required=False),
)


@dataclass(frozen=True)
class Case:
    """Many campaigns of one scenario, order, number of runs, spread and true difference.

    Values are in run order of each side, one row a campaign; times are when they ran, servers which one served them.
    """

    scenario: Scenario
    order: DeclaredOrder
    n: int
    spread: float
    difference: float
    baseline: Floats
    candidate: Floats
    times_baseline: Floats
    times_candidate: Floats
    servers_baseline: Floats
    servers_candidate: Floats


def sides(
    generator: np.random.Generator, order: DeclaredOrder, campaigns: int, n: int
) -> Bools:
    """Whether each run, in order of time, is one of the candidate's."""
    turns = np.tile([False, True, True, False], (n + 1) // 2)[: 2 * n]
    if order == "interleaved":
        return np.tile(turns, (campaigns, 1))
    blocks = np.repeat([False, True], n)
    if order == "blocked":
        return np.tile(blocks, (campaigns, 1))
    return generator.permuted(np.tile(blocks, (campaigns, 1)), axis=1)


def servers_of(candidates: Bools) -> Any:
    """The number of the server of each run: one lives as long as its environment's runs follow each other."""
    changed = candidates[:, 1:] != candidates[:, :-1]
    first = np.zeros((len(candidates), 1), dtype=np.int64)
    return np.hstack([first, changed.cumsum(axis=1)])


def draw(
    scenario: Scenario,
    order: DeclaredOrder,
    n: int,
    spread: float,
    campaigns: int,
    seed: int = SEED,
) -> list[Case]:
    """The same campaigns with every true difference."""
    place = (SCENARIOS.index(scenario), ORDERS.index(order), SPREADS.index(spread))
    generator = np.random.default_rng((seed, n, *place))
    candidates = sides(generator, order, campaigns, n)
    moments = np.tile(np.arange(2.0 * n), (campaigns, 1))
    servers = servers_of(candidates)
    values = BASELINE + scenario.drift * moments / (2 * n - 1)
    values[:, 1:] += scenario.carried * candidates[:, :-1]
    if not scenario.own:
        of_run = np.sqrt(1 - scenario.server) * spread
        values = values + of_run * scenario.noise(generator, campaigns, 2 * n)
    if scenario.server:
        of_starts = generator.normal(size=(campaigns, 2 * n))
        mine = np.take_along_axis(of_starts, servers, axis=1)
        values = values + np.sqrt(scenario.server) * spread * mine
    baseline, candidate = (
        values[side].reshape(campaigns, n) for side in (~candidates, candidates)
    )
    if scenario.own:
        baseline = baseline + spread * scenario.noise(generator, campaigns, n)
        candidate = candidate + spread * scenario.noise(generator, campaigns, n)
    if scenario.slow:
        slow = generator.random((campaigns, n)) < scenario.slow
        candidate = candidate + SLOWER * (slow - scenario.slow)
    times = [moments[side].reshape(campaigns, n) for side in (~candidates, candidates)]
    served = [servers[side].reshape(campaigns, n) for side in (~candidates, candidates)]
    return [
        Case(
            scenario=scenario,
            order=order,
            n=n,
            spread=spread,
            difference=difference,
            baseline=np.round(baseline, DECIMALS),
            candidate=np.round(candidate + difference, DECIMALS),
            times_baseline=times[0],
            times_candidate=times[1],
            servers_baseline=served[0],
            servers_candidate=served[1],
        )
        for difference in DIFFERENCES
    ]


def cases(n: int, campaigns: int) -> Iterator[Case]:
    """Every case with that number of runs."""
    for scenario, order, spread in itertools.product(SCENARIOS, ORDERS, SPREADS):
        yield from draw(scenario, order, n, spread, campaigns)


def orders_as_run(case: Case) -> list[OrderAsRun]:
    """What the procedure takes the order of each campaign to be; it is one order where nothing was drawn."""
    drawn = len(case.baseline) if case.order == "random" else 1
    both = zip(
        case.times_baseline[:drawn].tolist(),
        case.times_candidate[:drawn].tolist(),
        strict=True,
    )
    about: Side = {"order": [case.order], "round": ()}
    found = [
        order_as_run({"time": one, **about}, {"time": other, **about})
        for one, other in both
    ]
    return found if drawn > 1 else found * len(case.baseline)


def judge(case: Case) -> Words:
    """The verdict on each campaign by the procedure of this tree."""
    if not (case.scenario.server and case.scenario.recorded):
        paired = case.order == "interleaved"
        means = two_means(case.baseline, case.candidate, RESOLUTION, paired=paired)
        return _words(*means, orders_as_run(case))
    if case.order == "interleaved":
        return _judge_by_server(case, slice(None))
    each = [
        _judge_by_server(case, slice(place, place + 1))
        for place in range(len(case.baseline))
    ]
    return np.concatenate(each)


def _judge_by_server(case: Case, campaigns: slice) -> Words:
    """The verdict on campaigns whose runs share servers, all of them in the order of the first."""
    a, b = case.baseline[campaigns], case.candidate[campaigns]
    one, other = (
        {
            "order": [case.order],
            "time": times[0],
            "round": range(case.n),
            "server": list(map(str, servers[0])),
        }
        for times, servers in (
            (case.times_baseline[campaigns], case.servers_baseline[campaigns]),
            (case.times_candidate[campaigns], case.servers_candidate[campaigns]),
        )
    )
    order = order_as_run(one, other)
    sides = units(one, other, order)
    means = two_means(
        by_unit(a, sides[0]),
        by_unit(b, sides[1]),
        RESOLUTION,
        paired=order == "interleaved",
    )
    return _words(*means, [order] * len(a))


def _words(
    found: Estimate, means: Mapping[str, Any], orders: Sequence[OrderAsRun]
) -> Words:
    """The verdict on each campaign, by the rule."""
    equivalence = found.equivalence_p(MARGIN / 100 * means["mean_baseline"])
    figures = means["n_effective"], found.value, found.p_value, equivalence
    blocked = np.array(orders) == "blocked"
    words: Words = verdict_of(*figures, confounded=blocked)
    return words


EARLIER = """
import sys, numpy as np
from sparkpub.review.statistics.compare import Welch
a, b = np.load(sys.argv[1])
words = []
for one, other in zip(a, b):
    welch = Welch.of(one, other)
    if welch.tost(0.01 * welch.mean_a) < 0.05:
        words.append("equivalent")
    elif welch.p_value < 0.05:
        words.append("higher" if welch.mean_b > welch.mean_a else "lower")
    else:
        words.append("undecided")
np.save(sys.argv[2], np.array(words))
"""
"""The rule of the commit before, with its own Welch and TOST; all its samples had n of four or more."""


class Earlier:
    """The procedure of an earlier commit, run from its source in a process of its own."""

    def __init__(self, commit: str, folder: Path) -> None:
        self._folder = folder
        argv = ["git", "archive", commit, "sparkpub"]
        packed = subprocess.run(
            argv, cwd=harness.ROOT, check=True, capture_output=True
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")

    def judge(self, several: Sequence[Case]) -> list[Words]:
        """The verdict on each campaign of cases with the same number of runs."""
        given, answer = self._folder / "given.npy", self._folder / "answer.npy"
        sides = [
            [case.baseline for case in several],
            [case.candidate for case in several],
        ]
        np.save(given, np.stack([np.concatenate(side) for side in sides]))
        argv = [sys.executable, "-c", EARLIER, str(given), str(answer)]
        subprocess.run(
            argv,
            check=True,
            cwd=self._folder,
            env=os.environ | {"PYTHONPATH": str(self._folder)},
        )
        return np.split(np.load(answer), len(several))


@dataclass
class Shares:
    """Shares of campaigns with each kind of verdict, worst or best over the spreads."""

    false_equivalent: float = 0.0
    false_difference: float = 0.0
    shown_equivalent: float = 0.0
    shown_difference: float = 0.0
    undecided: float = 0.0

    def add(self, difference: float, spread: float, words: Words) -> None:
        """Count the verdicts on campaigns with that true difference."""
        share = {
            word: float(np.mean(words == word))
            for word in ("higher", "lower", "equivalent", "undecided")
        }
        if difference == 0:
            self.false_difference = max(
                self.false_difference, share["higher"] + share["lower"]
            )
        else:
            self.false_equivalent = max(self.false_equivalent, share["equivalent"])
            self.false_difference = max(self.false_difference, share["lower"])
        if spread == SPREADS[0] and difference == 0:
            self.shown_equivalent = share["equivalent"]
            self.undecided = share["undecided"]
        if spread == SPREADS[0] and difference == DIFFERENCES[-1]:
            self.shown_difference = share["higher"]

    @property
    def wrong(self) -> float:
        """The larger of both kinds of wrong verdicts."""
        return max(self.false_equivalent, self.false_difference)


Table = dict[tuple[str, DeclaredOrder, int], Shares]
"""(scenario, order, number of runs) to size and power."""


def tally(judged: Iterable[tuple[Case, Words]]) -> Table:
    """Size and power of the verdicts on cases."""
    found: Table = defaultdict(Shares)
    for case, words in judged:
        found[case.scenario.name, case.order, case.n].add(
            case.difference, case.spread, words
        )
    return found


def simulated(campaigns: int) -> Table:
    """Size and power of the procedure of this tree in every case."""
    return tally((case, judge(case)) for n in SIZES for case in cases(n, campaigns))


def simulated_earlier(earlier: Earlier, campaigns: int) -> Table:
    """Size and power of an earlier procedure in every case."""
    found: Table = {}
    for n in SIZES:
        several = list(cases(n, campaigns))
        found |= tally(zip(several, earlier.judge(several), strict=True))
    return found


def document(before: Table, after: Table) -> dict[str, Any]:
    """The table that the method page shows, as JSON values: shares to four digits."""
    required = {scenario.name: scenario.required for scenario in SCENARIOS}
    rows = [
        {
            "scenario": name,
            "order": order,
            "n": n,
            "required": required[name],
            "before": _rounded(before[name, order, n]),
            "after": _rounded(after[name, order, n]),
        }
        for name, order, n in after
    ]
    return {
        "campaigns": REPLICATIONS,
        "campaigns_before": REPLICATIONS_BEFORE,
        "commit_before": BEFORE,
        "margin_percent": MARGIN,
        "spreads_percent": list(SPREADS),
        "drift_percent": DRIFT,
        "rows": rows,
    }


def _rounded(found: Shares) -> dict[str, float]:
    return {name: round(value, 4) for name, value in vars(found).items()}


def rows(made: dict[str, Any]) -> list[Row]:
    """What the report of all benchmarks shows."""
    summary = []
    for order in ORDERS:
        mine = [
            item for item in made["rows"] if item["order"] == order and item["required"]
        ]
        for kind, what in (
            ("false_equivalent", "equivalence"),
            ("false_difference", "a difference"),
        ):
            worst = max(mine, key=lambda item: item["after"][kind])
            earlier = max(item["before"][kind] for item in mine)
            name = f"{order}: most often wrong about {what} ({worst['scenario']}, n = {worst['n']})"
            summary.append(
                _share(
                    name,
                    worst["after"][kind],
                    earlier,
                    goal=5 + 200 * _error(0.05, REPLICATIONS),
                )
            )
    for kind, what in (
        ("shown_equivalent", "equivalence shown"),
        ("shown_difference", "difference shown"),
    ):
        for name in ("normal", "drifting"):
            (item,) = (
                item
                for item in made["rows"]
                if (item["scenario"], item["order"], item["n"])
                == (name, "interleaved", 10)
            )
            summary.append(
                _share(
                    f"interleaved, n = 10, {name}: {what}",
                    item["after"][kind],
                    item["before"][kind],
                )
            )
    return summary


def _share(what: str, after: float, before: float, goal: float | None = None) -> Row:
    against = (f"commit {BEFORE}", [100 * before])
    return row(
        what,
        [100 * after],
        "% of campaigns",
        against=against,
        goal=None if goal is None else round(goal, 2),
    )


def _error(share: float, campaigns: int) -> float:
    return float(np.sqrt(share * (1 - share) / campaigns))


def main() -> None:
    """Simulate both procedures, and write the table and the results."""
    harness.parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        before = simulated_earlier(Earlier(BEFORE, Path(folder)), REPLICATIONS_BEFORE)
    made = document(before, simulated(REPLICATIONS))
    TABLE.write_text(json.dumps(made, indent=1) + "\n")
    harness.save(
        "verdicts",
        title="Wrong verdicts",
        question="How often does the whole procedure say what is not so, in campaigns whose truth is known?",
        rows=rows(made),
        notes=[
            f"{REPLICATIONS:,} campaigns of each kind ({REPLICATIONS_BEFORE:,} before): the standard error of a share "
            f"of 5 % is {100 * _error(0.05, REPLICATIONS):.2f} %, and the goal is 5 % and two of them.",
            "Every scenario, order and number of runs: the method page on statistics.",
        ],
        packages=["numpy", "scipy"],
    )


if __name__ == "__main__":
    main()
