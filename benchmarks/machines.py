"""`python -m benchmarks.machines`: how often a verdict over several machines is wrong, by simulation.

Each machine has a speed of its own and an effect of its own around a mean effect, and measures rounds. Its runs go
through the comparison within the machine, all machines through the random-effects model and the rule of replication.

Effects are in percent of the baseline; the margin is 1 %. A verdict on the mean over machines is wrong where it says
`equivalent` although the true mean lies at the margin or beyond, or a difference that is not there or points the other
way. `does not replicate` is wrong where every machine has the same effect, `replicates` where half of the machines have
the opposite effect of the others.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import harness
from benchmarks.harness import Row, row
from sparkpub.review.statistics.compare import ComparisonVerdict, verdict_of
from sparkpub.review.statistics.describe import MINIMUM_RUNS, Estimate
from sparkpub.review.statistics.means import of_rounds
from sparkpub.review.statistics.replication import combined, replication

Floats = NDArray[np.float64]

TABLE = harness.ROOT / "sparkpub" / "review" / "statistics" / "machines.json"
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
MACHINES = (2, 3, 5)
ROUNDS = (5, 10)
CAMPAIGNS = 5_000
SEED = 21


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


def measure(effects: Floats, rounds: int, generator: np.random.Generator) -> Said:
    """What is said of campaigns in which machines have these effects: one row a campaign, one column a machine."""
    shape = (*effects.shape, rounds)
    levels = BASELINE + LEVELS * generator.normal(size=(*effects.shape, 1))
    changed = levels * (1 + effects[..., np.newaxis] / 100)
    noise = SPREAD / 100 * levels
    baseline = levels + noise * generator.normal(size=shape)
    candidate = changed + noise * generator.normal(size=shape)
    means = of_rounds(
        baseline.round(DECIMALS), candidate.round(DECIMALS), 10.0**-DECIMALS
    )
    equivalence = means.equivalence_p(MARGIN / 100 * means.baseline)
    columns = (
        100 * means.difference / means.baseline,
        100 * means.error / means.baseline,
        means.df,
        means.n_effective,
        means.p_value,
        equivalence,
    )
    campaigns = zip(*(column.tolist() for column in columns), strict=True)
    said = [_judged(*campaign) for campaign in campaigns]
    return Said(
        np.array([verdict for verdict, _ in said]),
        np.array([found for _, found in said]),
    )


def _judged(
    effects: list[float],
    errors: list[float],
    dfs: list[float],
    worth: list[float],
    p_values: list[float],
    equivalence: list[float],
) -> tuple[ComparisonVerdict, str]:
    """The verdict over the machines of one campaign, and whether it replicates."""
    within: list[ComparisonVerdict] = [
        verdict_of(n, effect, p, q, confounded=False)
        for n, effect, p, q in zip(worth, effects, p_values, equivalence, strict=True)
    ]
    known = [Estimate(*figures) for figures in zip(effects, errors, dfs, strict=True)]
    together = combined(known)
    verdict = verdict_of(
        min(worth),
        together.estimate,
        together.p_value,
        together.equivalence_p(MARGIN),
        confounded=False,
    )
    return verdict, replication(verdict, within, together)


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
    }


def _rounded(found: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 4) for name, value in found.items()}


def rows(made: dict[str, Any]) -> list[Row]:
    """What the report of all benchmarks shows."""
    return [*_wrong(made), *_right(made)]


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
