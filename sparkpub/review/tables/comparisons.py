"""The table of comparisons: one row per metric of each cell whose environment is compared with the baseline; and the
comparison of any rows of a table of runs with any others.

A selection is a mask on a table of runs, whose rows stand in order of time:

    of = runs["counts"] & (runs["metric"] == "ttft_p50_ms") & (runs["workload"] == "chat")
    native, container = (of & (runs["environment"] == name) for name in ("native", "container"))
    found, _ = compare(runs[native], runs[container], campaign)   # None where one side has no row
    found.difference, found.ci95_difference, found.p_value     # what `FIGURES` describes; None where there is no figure
    estimate(found), estimate_percent(found)                   # value, error and df; None where runs are only described

The analysis follows the order as it was really run:

- interleaved: differences within complete rounds (paired t, TOST);
- random, or mixed without a declaration: two independent samples (Welch, TOST);
- blocked: a description only. Time and environment cannot be told apart, so there is no p, and the verdict is
  `confounded` whatever the figures.

Standard errors and degrees of freedom use the effective n; below four the verdict is `undecided`. Where runs shared a
server, means are still those of the runs, and errors come from the means of servers. Runs of several machines are
compared within each of them, and then over them.

Looking at many differences finds some by chance, so p-values are corrected (Holm) over a family: the primary metrics of
a campaign, and of each machine of a campaign that ran on several; secondary ones, exploratory, are a family apart.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from sparkpub.record.metrics import Metric
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Include, ReviewedCampaign, machine_of
from sparkpub.review.statistics.estimate import (
    ALPHA,
    Estimate,
    Floats,
    Interval,
    deciding_level,
    holm,
    over,
    resolution_of,
    t_quantile,
    tested,
    two_means,
    unseen_percent,
    verdict_of,
)
from sparkpub.review.statistics.order import (
    DeclaredOrder,
    OrderAsRun,
    Timeline,
    Units,
    alone,
    by_unit,
    order_as_run,
    order_over_machines,
    units,
)
from sparkpub.review.tables.cells import (
    CELL,
    about_metrics,
    in_matrix_order,
    rows_with_values,
)
from sparkpub.review.tables.column import (
    Column,
    Columns,
    Places,
    TableRow,
    groups,
    table_of,
    texts,
)
from sparkpub.review.tables.reasons import why

FIGURES: Columns = {
    "order": Column("text", "The order in which the runs were really made"),
    "analysis": Column(
        "text",
        "paired, welch, description, or machines for within each and then over them",
    ),
    "machines": Column("integer", "Machines within which both are compared"),
    "servers": Column(
        "count",
        "Servers a side that the errors rest on; empty where no two runs shared one",
    ),
    "n_baseline": Column("integer", "Runs of the baseline, or complete rounds"),
    "n_candidate": Column("integer", "Runs of the candidate, or complete rounds"),
    "left_out": Column("integer", "Runs outside of complete rounds"),
    "n_effective": Column("number", "What the runs are worth if neighbours are alike"),
    "df": Column("number", "Degrees of freedom of the difference"),
    "mean_baseline": Column(
        "number",
        "Mean of the baseline over the runs compared; over several machines the mean of their means",
    ),
    "mean_candidate": Column(
        "number",
        "Mean of the candidate over the runs compared; over several machines that of the baseline and the difference",
    ),
    "difference": Column(
        "number", "Candidate minus baseline", shown="metric unit signed"
    ),
    "difference_percent": Column(
        "number", "The same in percent of the baseline", heading="%", shown="signed"
    ),
    "ci95_difference_low": Column(
        "number",
        "Lower end of the 95 % interval of the difference",
        heading="95 % interval",
        shown="metric",
    ),
    "ci95_difference_high": Column("number", "Upper end of it"),
    "ci90_difference_low": Column(
        "number", "Lower end of the 90 % interval of the difference"
    ),
    "ci90_difference_high": Column("number", "Upper end of it"),
    "ratio": Column("number", "Candidate by baseline"),
    "inverse_ratio": Column("number", "Baseline by candidate"),
    "ci95_ratio_low": Column("number", "Lower end of the 95 % interval of the ratio"),
    "ci95_ratio_high": Column("number", "Upper end of it"),
    "ci90_ratio_low": Column("number", "Lower end of the 90 % interval of the ratio"),
    "ci90_ratio_high": Column("number", "Upper end of it"),
    "overhead_percent": Column(
        "number",
        "Increase of execution time in percent",
        heading="overhead %",
        shown="signed",
    ),
    "p_value": Column("number", "p of no difference"),
    "p_adjusted": Column("number", "The same, corrected over the family"),
    "equivalence_margin_percent": Column(
        "number", "Margin within which a difference does not matter"
    ),
    "margin_declared": Column(
        "boolean", "Whether the margin was declared before the first run"
    ),
    "equivalence_p": Column("number", "p of a difference beyond the margin"),
    "equivalence_p_adjusted": Column("number", "The same, corrected over the family"),
    "power_10_percent": Column("number", "Power to detect a difference of 10 %"),
    "detectable_percent": Column(
        "number", "Difference in percent that is detected with a power of 0.8"
    ),
    "unseen_percent": Column(
        "number", "Share of slow runs below which so many runs may well have none"
    ),
    "days": Column(
        "integer",
        "Days on which the runs were made; of several machines, on the one with the most",
    ),
    "better": Column(
        "text", "The side with the better mean; empty where no direction is better"
    ),
    "verdict": Column("text", "higher, lower, equivalent, undecided or confounded"),
    "why": Column("text", "What the verdict rests on"),
}
"""What a comparison found."""
COLUMNS: Columns = {
    "campaign": Column("text", "The campaign"),
    "model": Column("text", "Key of the model"),
    "workload": Column("text", "Key of the workload"),
    "metric": Column("text", "Name of the metric"),
    "unit": Column("text", "Unit of means and differences"),
    "family": Column("text", "primary, or secondary for exploratory metrics"),
    "baseline": Column("text", "The environment that is compared with"),
    "candidate": Column("text", "The environment that is compared"),
    "machine": Column(
        "text", "The machine within which both are compared; empty over all of them"
    ),
    **FIGURES,
}
_COMPARED = ["run", "model", "workload", "iteration", "order", "started", "machine"]
_COMPARED += ["server", "repeat_of", "value"]
"""Columns of a table of runs that a comparison looks at."""
Pair = tuple[Places, Places]
"""Where the values of baseline and candidate stand in some rows."""
Compared = tuple[TableRow, list[TableRow]]
"""What two sides show over all machines of either, and within each machine that ran both."""


@dataclass(frozen=True)
class Margin:
    """Within how many percent a difference does not matter, and whether that was declared before the first run."""

    percent: float
    declared: bool

    @classmethod
    def of(cls, campaign: CampaignData) -> Self:
        """The margin that a campaign declares."""
        return cls(campaign.margin_percent, campaign.margin_declared)


def comparisons(
    runs: pd.DataFrame,
    campaigns: Mapping[str, ReviewedCampaign],
    include: Include = "counted",
) -> pd.DataFrame:
    """Every comparison of the campaigns of a table of runs, cells in the order of the matrix.

    Behind those of a campaign that ran on several machines stand the comparisons within each machine."""
    rows = rows_with_values(runs, include)
    compared = against_baselines(rows, campaigns)
    by_campaign = grouped(compared, lambda one: str(one[0].campaign))
    found: list[TableRow] = []
    for name, reviewed in campaigns.items():
        mine = by_campaign.get(name, [])
        found += adjusted([overall for overall, _ in mine])
        machines = machines_of(reviewed, include)
        by_machine = grouped(
            chain(*(within for _, within in mine)), attrgetter("machine")
        )
        for machine in machines if len(machines) > 1 else ():
            found += adjusted(by_machine.get(machine, []))
    return table_of(COLUMNS, map(vars, found))


def over_all_machines(comparisons: pd.DataFrame) -> pd.DataFrame:
    """The comparisons without those within a single machine of several."""
    return comparisons[comparisons["machine"].isna()]


def machines_of(reviewed: ReviewedCampaign, include: Include) -> tuple[str, ...]:
    """The machines of the runs that are asked for, the first one used first."""
    if include == "all":
        return tuple(dict.fromkeys(map(machine_of, reviewed.campaign.records)))
    return reviewed.machines


def adjusted(found: Sequence[TableRow]) -> Sequence[TableRow]:
    """The comparisons, each with Holm's correction of its tests of difference and, apart, of equivalence within its
    family: exploratory ones are many, and by chance some of them would always differ."""
    for family in grouped(found, attrgetter("family")).values():
        for name in ("p", "equivalence_p"):
            plain = [getattr(one, "p_value" if name == "p" else name) for one in family]
            for one, p in zip(family, holm(plain), strict=True):
                setattr(one, f"{name}_adjusted", p)
    return [judged(one) for one in found]


def judged(found: TableRow) -> TableRow:
    """A comparison with its verdict by its corrected p-values, and what that rests on."""
    found.verdict = verdict_of(
        found.n_effective,
        found.difference,
        found.p_adjusted,
        found.equivalence_p_adjusted,
        confounded=found.order == "blocked",
    )
    found.why = why(found)
    return found


def deciding(row: TableRow, figure: str = "difference") -> Interval | None:
    """The interval that decides, of the `difference` or of the `ratio`: what every sentence with a bound rests on."""
    level = deciding_level(row.verdict, row.equivalence_p)
    name = "ci95" if level == 1 - ALPHA else "ci90"
    found: Interval | None = getattr(row, f"{name}_{figure}")
    return found


def estimate(row: TableRow) -> Estimate | None:
    """The difference of a comparison with its standard error; None where the runs are only described."""
    if row.ci95_difference is None or row.df is None or row.p_value is None:
        return None
    low, high = row.ci95_difference
    reach = t_quantile(1 - ALPHA / 2, row.df)
    return Estimate(row.difference, (high - low) / 2 / reach, row.df)


def estimate_percent(row: TableRow) -> Estimate | None:
    """The same in percent of the baseline's mean; None on a scale without a true zero, too."""
    found = estimate(row)
    if found is None or row.difference_percent is None:
        return None
    error = 100 * found.error / abs(row.mean_baseline)
    return Estimate(row.difference_percent, error, found.df)


def compare(
    baseline: pd.DataFrame,
    candidate: pd.DataFrame,
    campaign: CampaignData,
    margin: Margin | None = None,
) -> Compared | None:
    """Some rows of a campaign's table of runs against others, p-values uncorrected, within its margin or another one.
    They have values of one metric; None where one side has none. Of what machines show each, there is no verdict."""
    if baseline.empty or candidate.empty:
        return None
    rows = pd.concat([side[_COMPARED] for side in (baseline, candidate)])
    machines, n = texts(rows["machine"]), len(baseline)
    sides = [
        {
            machine: first + np.flatnonzero(machines[first:last] == machine)
            for machine in dict.fromkeys(machines[first:last])
        }
        for first, last in ((0, n), (n, len(rows)))
    ]
    metric = campaign.metrics[candidate["metric"].iloc[0]]
    ((overall, within),) = _compare_sides(
        rows, [sides], [metric], [margin or Margin.of(campaign)]
    )
    return judged(overall), within


def against_baselines(
    rows: pd.DataFrame, campaigns: Mapping[str, ReviewedCampaign]
) -> list[Compared]:
    """Every metric of every cell of some rows with values against its baseline, where that has some, too: over all
    machines, and within each machine that ran both. P-values are uncorrected."""
    rows = in_matrix_order(rows, campaigns)
    by = [*CELL, "metric", "machine"]
    columns = [texts(rows[name]) for name in by]
    known: dict[tuple[str, ...], dict[str, Places]] = {}
    for part in groups(rows, by):
        *key, machine = (column[part[0]] for column in columns)
        known.setdefault(tuple(key), {})[machine] = part
    sides = []
    for (name, model, environment, workload, metric), candidate in known.items():
        against = campaigns[name].campaign.baseline
        baseline = known.get((name, model, against, workload, metric))
        if environment != against and baseline is not None:
            sides.append((baseline, candidate))
    first = [next(iter(candidate.values()))[0] for _, candidate in sides]
    about = about_metrics(rows.iloc[first], campaigns)
    data = [campaigns[name].campaign for name in about["campaign"]]
    metrics = [
        each.metrics[name] for each, name in zip(data, about["metric"], strict=True)
    ]
    about["candidate"] = about.pop("environment")
    about["baseline"] = [each.baseline for each in data]
    found = _compare_sides(rows, sides, metrics, list(map(Margin.of, data)))
    for number, (overall, within) in enumerate(found):
        for row in (overall, *within):
            vars(row).update({name: column[number] for name, column in about.items()})
    return found


def _compare_sides(
    rows: pd.DataFrame,
    sides: Sequence[Sequence[Mapping[str, Places]]],
    metrics: Sequence[Metric],
    margins: Sequence[Margin],
) -> list[Compared]:
    """Each baseline against its candidate, of both the places in the rows by machine."""
    places = [
        (number, machine)
        for number, (baseline, candidate) in enumerate(sides)
        for machine in baseline
        if machine in candidate
    ]
    compared = compare_pairs(
        rows,
        [
            (sides[number][0][machine], sides[number][1][machine])
            for number, machine in places
        ],
        [metrics[number] for number, _ in places],
        [margins[number] for number, _ in places],
    )
    within: list[list[TableRow]] = [[] for _ in sides]
    for (number, machine), row in zip(places, compared, strict=True):
        row.machine = machine
        within[number].append(row)
    return [
        (_overall(rows, both, mine, metric, margin), mine)
        for both, mine, metric, margin in zip(
            sides, within, metrics, margins, strict=True
        )
    ]


def _overall(
    rows: pd.DataFrame,
    sides: Sequence[Mapping[str, Places]],
    within: Sequence[TableRow],
    metric: Metric,
    margin: Margin,
) -> TableRow:
    """The comparison over all machines of both sides. Where none of them ran both, all runs are described as blocks: a
    difference between machines cannot be told from one between the sides."""
    machines = {machine for side in sides for machine in side}
    if within:
        found = SimpleNamespace(**vars(within[0]))
        if len(within) > 1:
            found = _with_direction(over_machines(within), metric)
        runs = sum(len(part) for side in sides for part in side.values())
        found.left_out = runs - found.n_baseline - found.n_candidate
    else:
        parts = [np.concatenate([*side.values()]) for side in sides]
        one, other = (part[np.argsort(rows.index[part])] for part in parts)
        (found,) = compare_pairs(
            rows, [(one, other)], [metric], [margin], declared="blocked"
        )
        found.machines = len(machines)
    found.machine = None
    return found


def compare_pairs(
    rows: pd.DataFrame,
    pairs: Sequence[Pair],
    metrics: Sequence[Metric],
    margins: Sequence[Margin],
    *,
    declared: DeclaredOrder | None = None,
) -> list[TableRow]:
    """Each baseline against its candidate, both places in order of time, p-values uncorrected. Pairs of one design are
    worked out at once. Where an order is `declared`, neither rounds nor times are looked at."""
    runs = rows["run"].cat.codes.to_numpy()
    timeline = _timelines(rows, is_timed=declared is None)
    orders = texts(rows["order"])
    designs: dict[tuple[bytes, bytes], _Design] = {}
    of_design: dict[_Design, list[int]] = {}
    for number, (one, other) in enumerate(pairs):
        # The rounds and times of runs are those of every metric that has values in the same runs.
        key = runs[one].tobytes(), runs[other].tobytes()
        if key not in designs:
            asked: set[DeclaredOrder] = {*orders[one], *orders[other]}
            told = asked.pop() if len(asked) == 1 else "as-published"
            designs[key] = _design(timeline(one), timeline(other), declared or told)
        of_design.setdefault(designs[key], []).append(number)
    found: dict[int, TableRow] = {}
    values, started = rows["value"].to_numpy(), texts(rows["started"])
    for design, numbers in of_design.items():
        same = zip(
            numbers,
            _of_design(
                values,
                design,
                [pairs[number] for number in numbers],
                [metrics[number] for number in numbers],
                [margins[number] for number in numbers],
            ),
            strict=True,
        )
        found |= same
    for number, pair in enumerate(pairs):
        found[number].days = len({text[:10] for part in pair for text in started[part]})
    return [found[number] for number in range(len(pairs))]


_Design = tuple[OrderAsRun, str, Units, Units]
"""The order as it was run, the analysis that it allows, and the units of either side that errors rest on."""


def _design(one: Timeline, other: Timeline, declared: DeclaredOrder) -> _Design:
    """How two sides are compared, as the order of their runs allows."""
    order = order_as_run(declared, one, other)
    of_one, of_other = units(one, other, order)
    if not of_one:  # no complete round
        return order, "description", alone(range(one.n)), alone(range(other.n))
    analysis = {"interleaved": "paired", "blocked": "description"}
    return order, analysis.get(order, "welch"), of_one, of_other


def _timelines(rows: pd.DataFrame, *, is_timed: bool) -> Callable[[Places], Timeline]:
    """When the runs at some places ran. A repeat stands outside of the rounds."""
    servers, started = texts(rows["server"]), texts(rows["started"])
    names = [rows[name].cat.codes.to_numpy() for name in ("model", "workload")]
    slots, repeats = rows["iteration"].to_numpy(), rows["repeat_of"].notna().to_numpy()

    def timeline(part: Places) -> Timeline:
        if not is_timed:
            return Timeline(len(part), servers=tuple(servers[part]))
        each = zip(*(column[part].tolist() for column in (*names, slots)), strict=True)
        rounds = zip(each, repeats[part], strict=True)
        return Timeline(
            len(part),
            tuple(None if is_repeat else name for name, is_repeat in rounds),
            tuple(datetime.fromisoformat(text).timestamp() for text in started[part]),
            tuple(servers[part]),
        )

    return timeline


def _of_design(
    values: Floats,
    design: _Design,
    pairs: Sequence[Pair],
    metrics: Sequence[Metric],
    margins: Sequence[Margin],
) -> Iterator[TableRow]:
    """Comparisons of one design, in the order given."""
    order, analysis, *sides = design
    one, other = (
        np.stack([by_unit(values[pair[side]], sides[side]) for pair in pairs])
        for side in (0, 1)
    )
    steps = [resolution_of(values[np.concatenate(pair)]) for pair in pairs]
    apart, columns = two_means(one, other, np.array(steps), paired=analysis == "paired")
    if order == "interleaved" and analysis != "paired":  # no complete round
        apart = Estimate(apart.value, np.nan * apart.error, np.nan)
        columns["n_effective"] = 0.0
    nothing = np.full(len(pairs), np.nan)
    is_scaled = np.array([metric.unit != "°C" for metric in metrics])
    mean = columns["mean_baseline"]
    base = np.where(is_scaled & (mean > 0), mean, nothing)
    for name in ("ci95_ratio", "ci90_ratio"):
        columns[name] = [
            np.where(np.isnan(base * apart.error), nothing, end)
            for end in columns[name]
        ]
    margin = np.array([each.percent for each in margins])
    can_test = analysis != "description"
    columns |= tested(
        apart if can_test else replace(apart, error=nothing), base, margin
    )
    columns |= {
        "df": apart.df,
        "difference": apart.value,
        "difference_percent": 100 * apart.value / base,
        "ratio": columns["mean_candidate"] / base,
        "ci95_difference": apart.ends(1 - ALPHA),
        "ci90_difference": apart.ends(1 - 2 * ALPHA),
        "equivalence_margin_percent": margin,
    }
    n = [sum(map(len, side)) for side in sides]
    shared = max(len(unit) for side in sides for unit in side) > 1
    for place, (pair, metric, each) in enumerate(
        zip(pairs, metrics, margins, strict=True)
    ):
        found = SimpleNamespace(
            **{name: _figure(column, place) for name, column in columns.items()},
            order=order,
            analysis=analysis,
            machines=1,
            servers=min(map(len, sides)) if shared else None,
            unseen_percent=unseen_percent(min(map(len, sides))),
            n_baseline=n[0],
            n_candidate=n[1],
            left_out=sum(map(len, pair)) - sum(n),
            margin_declared=each.declared,
        )
        found.inverse_ratio = 1 / found.ratio if found.ratio else None
        yield _with_direction(found, metric)


def _figure(column: Any, place: int) -> Any:
    """A figure of a column as Python has it, None for NaN; an interval as a pair."""
    if isinstance(column, (tuple, list)):
        low, high = (_figure(end, place) for end in column)
        return None if low is None else (low, high)
    value = float(column[place] if np.ndim(column) else column)
    return None if np.isnan(value) else value


def _with_direction(found: TableRow, metric: Metric) -> TableRow:
    """A comparison of a metric, with what follows from which way is better."""
    found.overhead_percent = overhead(found.ratio, metric)
    found.better = better_of(found.difference, metric)
    return found


def overhead(ratio: float | None, metric: Metric) -> float | None:
    """The increase of execution time in percent that a ratio of means stands for, by the source's formula
    100 (T_candidate - T_baseline) / T_baseline with T the inverse of a rate; for times and memory it is their own
    relative increase. None where it stands for none."""
    if not ratio:
        return None
    if metric.unit.endswith("/s"):
        return 100 * (1 / ratio - 1)
    return 100 * (ratio - 1) if metric.direction == "lower" else None


def better_of(
    difference: float, metric: Metric
) -> Literal["baseline", "candidate"] | None:
    """Which side has the better mean; None where no direction is better."""
    if metric.direction == "neither" or not difference:
        return None
    is_higher = difference > 0
    return "candidate" if is_higher == (metric.direction == "higher") else "baseline"


def effects(within: Sequence[TableRow]) -> list[Estimate]:
    """What machines found, each within itself, for `over`: in percent of their own baselines, so that a faster machine
    counts no more than a slow one, or in the metric's unit where there is no true zero. Empty where a machine ran its
    environments in blocks, or fewer than two have an effect with an error."""
    of = estimate_percent if _are_relative(within) else estimate
    known = [found for found in map(of, within) if found is not None]
    blocked = any(row.order == "blocked" for row in within)
    return [] if blocked or len(known) < 2 else known


def _units(row: TableRow) -> int:
    """What errors rest on: servers, else runs of the smaller side."""
    return int(row.servers or min(row.n_baseline, row.n_candidate))


def _are_relative(within: Sequence[TableRow]) -> bool:
    return all(row.difference_percent is not None for row in within)


def over_machines(within: Sequence[TableRow]) -> TableRow:
    """One comparison over several machines, from those within each of two or more.

    Means and difference are those of a machine with the mean baseline. Where one machine ran its environments in
    blocks the whole is confounded; where one has too few runs it is undecided.
    """
    first, relative, known = within[0], _are_relative(within), effects(within)
    base = float(np.mean([row.mean_baseline for row in within]))
    scale = base / 100 if relative else 1.0
    name = "difference_percent" if relative else "difference"
    mean = float(np.mean([getattr(row, name) for row in within]))
    effect = over(known) if known else Estimate(mean, np.nan, np.nan)
    ends = {90: effect.interval(1 - 2 * ALPHA), 95: effect.interval(1 - ALPHA)}
    figures: dict[str, Any] = {
        "n_effective": min(row.n_effective for row in within),
        "df": effect.df if known else None,
        "mean_baseline": base,
        "mean_candidate": base + scale * effect.value,
        "difference": scale * effect.value,
        "difference_percent": effect.value if relative else None,
        "ratio": 1 + effect.value / 100 if relative else None,
        "equivalence_margin_percent": first.equivalence_margin_percent,
    }
    for level, interval in ends.items():
        low, high = interval or (np.nan, np.nan)
        absolute = scale * low, scale * high
        share = (1 + low / 100, 1 + high / 100) if relative else (np.nan, np.nan)
        figures[f"ci{level}_difference"] = _figure(absolute, 0)
        figures[f"ci{level}_ratio"] = _figure(share, 0)
    tests = tested(
        effect,
        np.array([100.0 if relative else np.nan]),
        first.equivalence_margin_percent,
    )
    figures |= {name: _figure(column, 0) for name, column in tests.items()}
    ratio = figures["ratio"]
    return SimpleNamespace(
        **figures,
        inverse_ratio=1 / ratio if ratio else None,
        order=order_over_machines(row.order for row in within),
        analysis="machines",
        machines=len(within),
        servers=None,
        unseen_percent=unseen_percent(sum(map(_units, within))),
        days=max(row.days for row in within),
        n_baseline=sum(row.n_baseline for row in within),
        n_candidate=sum(row.n_candidate for row in within),
        left_out=sum(row.left_out for row in within),
        margin_declared=first.margin_declared,
    )
