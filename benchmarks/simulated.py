"""Size and power of the verdicts as the method pages show them: `python -m benchmarks.simulated` writes it from
what `benchmarks.verdicts` and `benchmarks.machines` found."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks import harness
from sparkpub.review.statistics.estimate import ALPHA
from sparkpub.site.pages import reference

Simulated = Literal[
    "false_equivalent", "false_difference", "shown_equivalent", "shown_difference"
]
HEADINGS: Mapping[Simulated, str] = {
    "false_equivalent": "`equivalent`, although the difference is the margin or more",
    "false_difference": "a difference that is not there",
    "shown_equivalent": "equivalence shown where there is no difference",
    "shown_difference": "a difference of twice the margin shown",
}


@dataclass(frozen=True)
class SimulationTable:
    """Header and rows of words."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def results(name: str = "size") -> dict[str, Any]:
    """The committed results: see `benchmarks.verdicts.document`, and for `machines` `benchmarks.machines.simulated`."""
    text = (harness.RESULTS / "simulated" / f"{name}.json").read_text()
    found: dict[str, Any] = json.loads(text)
    return found


def table(kind: Simulated, *, required: bool = True) -> SimulationTable:
    """Shares of campaigns in percent, `before → after`, by order and scenario, with a column for each number of runs.

    `required` are the scenarios that the procedure must hold in; the others show where it does not.
    """
    rows = [row for row in results()["rows"] if row["required"] == required]
    sizes = sorted({row["n"] for row in rows})
    by_case: dict[tuple[str, str], dict[int, str]] = {}
    for row in rows:
        cells = by_case.setdefault((row["order"], row["scenario"]), {})
        cells[row["n"]] = (
            f"{_percent(row['before'][kind])} → {_percent(row['after'][kind])}"
        )
    header = ["order", "runs", *(f"n = {n}" for n in sizes)]
    ordered = sorted(by_case.items(), key=lambda item: _ORDER.index(item[0][0]))
    return SimulationTable(
        header,
        [
            [order, scenario, *(cells[n] for n in sizes)]
            for (order, scenario), cells in ordered
        ],
    )


_ORDER = ("interleaved", "random", "blocked")


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def how() -> str:
    """What was simulated, in a sentence or two."""
    found = results()
    error = 100 * math.sqrt(ALPHA * (1 - ALPHA) / found["campaigns"])
    spreads = " and ".join(f"{spread:g}" for spread in found["spreads_percent"])
    return (
        f"{found['campaigns']:,} campaigns of each kind ({found['campaigns_before']:,} before, at commit "
        f"`{found['commit_before']}`); the standard error of a share of 5 % is {error:.2f} %. The margin is "
        f"{found['margin_percent']:g} % of the baseline. Wrong verdicts are the larger share of two spreads of a run, "
        f"{spreads} %; power is for the smaller. A drifting machine changes by {found['drift_percent']:g} % from the "
        "first run to the last."
    ).replace("-", "\N{MINUS SIGN}")


def over_machines() -> SimulationTable:
    """Shares of campaigns on several machines in percent: a row for each number of machines and spread between them.

    `replicates` is told of effects of twice the margin, and of no effect; `does not replicate` of any.
    """
    header = [
        "machines",
        "rounds",
        "τ",
        "`equivalent`, wrongly",
        "a difference, wrongly",
        "`does not replicate`",
        "no effect: `replicates`",
        "twice the margin: `replicates`",
    ]
    shares = (
        "false_equivalent",
        "false_difference",
        "does_not_replicate",
        "equivalence_replicates",
        "difference_replicates",
    )
    rows = []
    for row in results("machines")["rows"]:
        place = [str(row["machines"]), str(row["rounds"])]
        between = f"{row['between_sd_percent']:g} %"
        rows.append([*place, between, *(_percent(row[share]) for share in shares)])
    return SimulationTable(header, rows)


def how_over_machines() -> str:
    """What was simulated of several machines, in a sentence or two."""
    found = results("machines")
    error = 100 * math.sqrt(ALPHA * (1 - ALPHA) / found["campaigns"])
    opposite = max(row["replicates"] for row in found["opposite"])
    return (
        f"{found['campaigns']:,} campaigns of each kind; the standard error of a share of 5 % is {error:.2f} %. The "
        f"margin is {found['margin_percent']:g} %, a run varies by {found['spread_percent']:g} %, the speeds of "
        f"machines by {found['levels_percent']:g} %, and τ is the standard deviation of the true effects between "
        f"machines. Where half of the machines have an effect of {found['opposite_percent']:g} % and the others the "
        f"opposite, `replicates` was said of {_percent(opposite)} % of campaigns at most."
    )


def parts() -> dict[str, str]:
    """Every part of it by the name by which a page asks for it."""
    wrong: Sequence[Simulated] = ("false_equivalent", "false_difference")
    shown: Sequence[Simulated] = ("shown_equivalent", "shown_difference")
    machines = over_machines()
    return {
        "simulation": how(),
        "size": _tables(wrong, required=True),
        "power": _tables(shown, required=True),
        "size-beyond": _tables(wrong, required=False),
        "simulation-machines": how_over_machines(),
        "size-machines": f"Percent of campaigns:\n\n{reference.table(machines.header, machines.rows)}",
    }


def _tables(kinds: Sequence[Simulated], *, required: bool) -> str:
    """Tables in percent of campaigns, each under what it counts."""
    parts = []
    for kind in kinds:
        found = table(kind, required=required)
        heading = f"Percent of campaigns: {HEADINGS[kind]}, before → now."
        parts.append(f"{heading}\n\n{reference.table(found.header, found.rows)}")
    return "\n\n".join(parts)


if __name__ == "__main__":
    harness.parser(__doc__).parse_args()
    for name, text in parts().items():
        (reference.PARTS / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")
