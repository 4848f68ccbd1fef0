"""`python -m benchmarks.machines`: how often a verdict over several machines is wrong, by simulation.

Each machine has a speed of its own and an effect of its own around a mean effect, and measures rounds. Its runs go
through the comparison within the machine, all machines through the random-effects model and the rule of replication.

Effects are in percent of the baseline; the margin is 1 %. A verdict on the mean over machines is wrong where it says
`equivalent` although the true mean lies at the margin or beyond, or a difference that is not there or points the other
way. `does not replicate` is wrong where every machine has the same effect, `replicates` where half of the machines have
the opposite effect of the others. Where two runs in a row share a server, as those of one environment do in an
interleaved order, what the start of a server fixes is a share of the noise.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import harness, verdicts
from benchmarks.harness import Row, row
from sparkpub.review.statistics.estimate import (
    MINIMUM_RUNS,
    Estimate,
    over,
    replication,
    spread,
    two_means,
    verdict_of,
)
from sparkpub.review.statistics.order import Side, by_unit, units

Floats = NDArray[np.float64]

TABLE = harness.RESULTS / "simulated" / "machines.json"
"""What the method page shows."""
MARGIN, BASELINE = 1.0, 100.0
DECIMALS = 3
"""Digits to which the simulated instrument reads."""
SPREAD = 0.5
"""Standard deviation of a run, in percent."""
LEVELS = 5.0
"""Standard deviation of the speeds of machines, in percent."""
MEANS = (0.0, 1.0, 2.0)
"""True mean effects: none, at the margin, twice the margin."""
BETWEEN = (0.0, 0.2, 0.5, 1.0)
"""Standard deviations of the true effects between machines."""
OPPOSITE = 2.0
"""Effect of half of the machines, and with the other sign of the others."""
SHARES = (0.5, 0.8)
"""Shares of the variance of a run that come from the start of the server that it shares with another one."""
MACHINES = (2, 3, 5)
ROUNDS = (5, 10)
CAMPAIGNS = 5_000
SEED = 21


@dataclass(frozen=True)
class Servers:
    """Servers that live as long as the runs of their environment follow each other, where environments take turns.
    `share` is the part of the noise that is the server's; records tell of servers only where they are `recorded`."""

    rounds: int
    share: float
    recorded: bool

    @cached_property
    def _turns(self) -> verdicts.Bools:
        """Whether each run, in order of time, is one of the candidate's: the order is not drawn."""
        generator = np.random.default_rng(SEED)
        return verdicts.sides(generator, "interleaved", 1, self.rounds)

    def of(self, *, candidate: bool) -> list[int]:
        """The number of the server of each run of a side."""
        each = verdicts.servers_of(self._turns)
        side: list[int] = each[self._turns == candidate].tolist()
        return side

    def side(self, *, candidate: bool) -> Side:
        """A side as the procedure sees it."""
        moments = np.flatnonzero(self._turns == candidate).astype(float)
        servers = list(map(str, self.of(candidate=candidate)))
        return {"time": moments, "round": range(self.rounds), "server": servers}


@dataclass(frozen=True)
class Said:
    """The verdict on the mean over machines of each campaign, and whether it replicates."""

    verdicts: NDArray[np.str_]
    replications: NDArray[np.str_]

    def verdict(self, *words: str) -> float:
        """The share of campaigns with one of these verdicts."""
        return float(np.isin(self.verdicts, words).mean())

    def replication(self, word: str) -> float:
        """The share of campaigns that are said to replicate, or not to."""
        return float((self.replications == word).mean())


def measure(
    effects: Floats,
    rounds: int,
    generator: np.random.Generator,
    servers: Servers | None = None,
) -> Said:
    """What is said of campaigns in which machines have these effects: one row a campaign, one column a machine. None:
    every run has a server of its own."""
    shape = (*effects.shape, rounds)
    levels = BASELINE + LEVELS * generator.normal(size=(*effects.shape, 1))
    changed = levels * (1 + effects[..., np.newaxis] / 100)
    noise = SPREAD / 100 * levels
    own, others = generator.normal(size=shape), generator.normal(size=shape)
    if servers is not None:
        own = _mixed(own, servers.of(candidate=False), servers.share, generator)
        others = _mixed(others, servers.of(candidate=True), servers.share, generator)
    baseline = (levels + noise * own).round(DECIMALS)
    candidate = (changed + noise * others).round(DECIMALS)
    found, means = _means(baseline, candidate, servers)
    base = means["mean_baseline"]
    columns = (
        100 * found.value / base,
        100 * found.error / base,
        found.df,
        means["n_effective"],
        found.p_value,
        found.equivalence_p(MARGIN / 100 * base),
    )
    campaigns = zip(*(column.tolist() for column in columns), strict=True)
    said = [_judged(*campaign) for campaign in campaigns]
    return Said(
        np.array([verdict for verdict, _ in said]),
        np.array([found for _, found in said]),
    )


def _mixed(
    noise: Floats, servers: Sequence[int], share: float, generator: np.random.Generator
) -> Floats:
    """Noise of which a share is that of the server: runs of one server have it in common."""
    starts = generator.normal(size=(*noise.shape[:-1], max(servers) + 1))
    mixed: Floats = np.sqrt(1 - share) * noise + np.sqrt(share) * starts[..., servers]
    return mixed


def _means(
    baseline: Floats, candidate: Floats, servers: Servers | None
) -> tuple[Estimate, dict[str, Any]]:
    """The difference of the means of every machine, with errors from the servers where records tell of them."""
    resolution = 10.0**-DECIMALS
    if servers is not None and servers.recorded:
        one, other = (servers.side(candidate=side) for side in (False, True))
        of_one, of_other = units(one, other, "interleaved")
        baseline, candidate = by_unit(baseline, of_one), by_unit(candidate, of_other)
    return two_means(baseline, candidate, resolution, paired=True)


def _judged(
    effects: list[float],
    errors: list[float],
    dfs: list[float],
    worth: list[float],
    p_values: list[float],
    equivalence: list[float],
) -> tuple[str, str]:
    """The verdict over the machines of one campaign, and whether it replicates."""
    within = verdict_of(worth, effects, p_values, equivalence, confounded=False)
    known = Estimate(*np.array([effects, errors, dfs]))
    together = over(known)
    verdict = verdict_of(
        min(worth),
        together.value,
        together.p_value,
        together.equivalence_p(MARGIN),
        confounded=False,
    )
    q = spread(known)["heterogeneity_p"]
    return str(verdict), replication(str(verdict), within.tolist(), q)


def case(machines: int, rounds: int, between: float, campaigns: int) -> dict[str, Any]:
    """Shares of wrong and of right statements where effects differ by that much between machines."""
    place = (SEED, machines, rounds, BETWEEN.index(between))
    generator = np.random.default_rng(place)
    said = {}
    for mean in MEANS:
        effects = mean + between * generator.normal(size=(campaigns, machines))
        said[mean] = measure(effects, rounds, generator)
    none, margin, twice = (said[mean] for mean in MEANS)
    false_difference = max(
        none.verdict("higher", "lower"), margin.verdict("lower"), twice.verdict("lower")
    )
    return {
        "machines": machines,
        "rounds": rounds,
        "between_sd_percent": between,
        "false_equivalent": max(
            margin.verdict("equivalent"), twice.verdict("equivalent")
        ),
        "false_difference": false_difference,
        "does_not_replicate": max(
            found.replication("does not replicate") for found in said.values()
        ),
        "equivalence_replicates": none.replication("replicates"),
        "difference_replicates": twice.replication("replicates"),
    }


def opposite(machines: int, rounds: int, campaigns: int) -> dict[str, Any]:
    """Shares of statements where every second machine has the opposite effect."""
    generator = np.random.default_rng((SEED, machines, rounds, len(BETWEEN)))
    signs = np.where(np.arange(machines) % 2 == 0, 1.0, -1.0)
    effects = np.tile(OPPOSITE * signs, (campaigns, 1))
    said = measure(effects, rounds, generator)
    return {
        "machines": machines,
        "rounds": rounds,
        "replicates": said.replication("replicates"),
        "does_not_replicate": said.replication("does not replicate"),
    }


def shared(
    machines: int, rounds: int, share: float, campaigns: int, *, recorded: bool
) -> dict[str, Any]:
    """Shares of wrong statements where two runs in a row share a server, and all machines have one effect."""
    generator = np.random.default_rng((SEED, machines, rounds, int(100 * share)))
    servers = Servers(rounds, share, recorded)
    none, margin = (
        measure(np.full((campaigns, machines), mean), rounds, generator, servers)
        for mean in MEANS[:2]
    )
    return {
        "machines": machines,
        "rounds": rounds,
        "server_share": share,
        "recorded": recorded,
        "false_equivalent": margin.verdict("equivalent"),
        "false_difference": max(
            none.verdict("higher", "lower"), margin.verdict("lower")
        ),
        "shown_equivalent": none.verdict("equivalent"),
    }


def simulated(campaigns: int) -> dict[str, Any]:
    """The table that the method page shows, as JSON values: shares to four digits."""
    places = [(machines, rounds) for machines in MACHINES for rounds in ROUNDS]
    cases = [
        case(*place, between, campaigns) for place in places for between in BETWEEN
    ]
    return {
        "campaigns": campaigns,
        "margin_percent": MARGIN,
        "spread_percent": SPREAD,
        "levels_percent": LEVELS,
        "opposite_percent": OPPOSITE,
        "rows": [_rounded(found) for found in cases],
        "opposite": [_rounded(opposite(*place, campaigns)) for place in places],
        "shared": [
            _rounded(shared(*place, share, campaigns, recorded=recorded))
            for place in places
            for share in SHARES
            for recorded in (True, False)
        ],
    }


def _rounded(found: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value if isinstance(value, bool) else round(value, 4)
        for name, value in found.items()
    }


def rows(made: dict[str, Any]) -> list[Row]:
    """What the report of all benchmarks shows."""
    return [*_wrong(made), *_shared_rows(made), *_right(made)]


def _wrong(made: dict[str, Any]) -> Iterator[Row]:
    goal = round(5 + 200 * _error(made["campaigns"]), 2)
    for machines in MACHINES:
        mine = [item for item in made["rows"] if item["machines"] == machines]
        common = [item for item in mine if item["between_sd_percent"] == 0]
        apart = [item for item in made["opposite"] if item["machines"] == machines]
        for what, share in (
            ("wrong about equivalence", _most(mine, "false_equivalent")),
            ("wrong about a difference", _most(mine, "false_difference")),
            (
                "'does not replicate' of a common effect",
                _most(common, "does_not_replicate"),
            ),
            ("'replicates' of opposite effects", _most(apart, "replicates")),
        ):
            name = f"{machines} machines: most often {what}"
            yield row(name, [100 * share], "% of campaigns", goal=goal)


def _shared_rows(made: dict[str, Any]) -> Iterator[Row]:
    goal = round(5 + 200 * _error(made["campaigns"]), 2)
    for recorded, words in ((True, "recorded"), (False, "not recorded")):
        mine = [item for item in made["shared"] if item["recorded"] is recorded]
        for kind, what in (
            ("false_equivalent", "equivalence"),
            ("false_difference", "a difference"),
        ):
            name = f"two runs share a server, {words}: most often wrong about {what}"
            share = 100 * _most(mine, kind)
            limit = goal if recorded else None
            yield row(name, [share], "% of campaigns", goal=limit)


def _right(made: dict[str, Any]) -> Iterator[Row]:
    for item in made["rows"]:
        if (item["rounds"], item["between_sd_percent"]) == (10, 0.2):
            share = 100 * item["equivalence_replicates"]
            name = f"{item['machines']} machines, 10 rounds, τ = 0.2 %: equivalence replicates"
            yield row(name, [share], "% of campaigns")


def _most(found: list[dict[str, Any]], what: str) -> float:
    return float(max(item[what] for item in found))


def _error(campaigns: int) -> float:
    return float(np.sqrt(0.05 * 0.95 / campaigns))


def main() -> None:
    """Simulate, and write the table and the results."""
    harness.parser(__doc__).parse_args()
    made = simulated(CAMPAIGNS)
    TABLE.write_text(json.dumps(made, indent=1) + "\n")
    harness.save(
        "machines",
        title="Wrong verdicts over several machines",
        question="How often is a verdict over several machines wrong, and how often does a finding replicate?",
        rows=rows(made),
        notes=[
            f"{CAMPAIGNS:,} campaigns of each kind: the standard error of a share of 5 % is "
            f"{100 * _error(CAMPAIGNS):.2f} %, and the goal is 5 % and two of them.",
            f"A machine needs {MINIMUM_RUNS} rounds at least. Every number of machines and spread: the method page.",
        ],
        packages=["numpy", "scipy"],
    )


if __name__ == "__main__":
    main()
