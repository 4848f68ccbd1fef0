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
from dataclasses import replace
from datetime import datetime
from itertools import chain
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, Self

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
    Columns,
    Places,
    TableRow,
    columns,
    groups,
    interval,
    shared,
    table_of,
    texts,
)
from sparkpub.review.tables.reasons import why

FIGURES: Columns = {
    **columns(
        "text",
        order="The order in which the runs were really made",
        analysis="paired, welch, description, or machines for within each and then over them",
    ),
    **columns(
        "integer",
        machines="Machines within which both are compared",
    ),
    **columns(
        "count",
        servers="Servers a side that the errors rest on; empty where no two runs shared one",
    ),
    **columns(
        "integer",
        n_baseline="Runs of the baseline, or complete rounds",
        n_candidate="Runs of the candidate, or complete rounds",
        left_out="Runs outside of complete rounds",
    ),
    **columns(
        "number",
        n_effective="What the runs are worth if neighbours are alike",
        df="Degrees of freedom of the difference",
        mean_baseline="Mean of the baseline over the runs compared; over several machines the mean of their means",
        mean_candidate="Mean of the candidate over the runs compared; over several machines that of both others",
        difference="Candidate minus baseline",
        difference_percent="The same in percent of the baseline",
    ),
    **interval(
        ci95_difference="the 95 % interval of the difference",
        ci90_difference="the 90 % interval of the difference",
    ),
    **columns(
        "number",
        ratio="Candidate by baseline",
        inverse_ratio="Baseline by candidate",
    ),
    **interval(
        ci95_ratio="the 95 % interval of the ratio",
        ci90_ratio="the 90 % interval of the ratio",
    ),
    **columns(
        "number",
        overhead_percent="Increase of execution time in percent",
        p_value="p of no difference",
        p_adjusted="The same, corrected over the family",
        equivalence_margin_percent="Margin within which a difference does not matter",
    ),
    **columns(
        "boolean",
        margin_declared="Whether the margin was declared before the first run",
    ),
    **columns(
        "number",
        equivalence_p="p of a difference beyond the margin",
        equivalence_p_adjusted="The same, corrected over the family",
        power_10_percent="Power to detect a difference of 10 %",
        detectable_percent="Difference in percent that is detected with a power of 0.8",
        unseen_percent="Share of slow runs below which so many runs may well have none",
    ),
    **columns(
        "integer",
        days="Days on which the runs were made; of several machines, on the one with the most",
    ),
    **columns(
        "text",
        better="The side with the better mean; empty where no direction is better",
        verdict="higher, lower, equivalent, undecided or confounded",
        why="What the verdict rests on",
    ),
}
"""What a comparison found."""
COLUMNS: Columns = {
    **shared(
        "campaign",
        "model",
        "workload",
        "metric",
        "unit",
        "family",
        "baseline",
        "candidate",
    ),
    **columns(
        "text",
        machine="The machine within which both are compared; empty over all of them",
    ),
    **FIGURES,
}
_COMPARED = ["run", "model", "workload", "iteration", "order", "started", "machine"]
_COMPARED += ["server", "repeat_of", "value"]
"""Columns of a table of runs that a comparison looks at."""
Compared = tuple[TableRow, list[TableRow]]
"""What two sides show over all machines of either, and within each machine that ran both."""


class Margin(NamedTuple):
    """Within how many percent a difference does not matter, and whether that was declared before the first run."""

    percent: float
    declared: bool

    @classmethod
    def of(cls, campaign: CampaignData) -> Self:
        """The margin that a campaign declares."""
        return cls(campaign.margin_percent, campaign.margin_declared)


class AskedComparison(NamedTuple):
    """A comparison that is asked for: where the values of baseline and candidate stand in some rows, in order of
    time."""

    sides: tuple[Places, ...]
    metric: Metric
    margin: Margin


def comparisons(
    runs: pd.DataFrame,
    campaigns: Mapping[str, ReviewedCampaign],
    include: Include = "counted",
) -> pd.DataFrame:
    """Every comparison of the campaigns of a table of runs, cells in the order of the matrix.

    Behind those of a campaign that ran on several machines stand the comparisons within each machine."""
    compared = against_baselines(rows_with_values(runs, include), campaigns)
    found: list[TableRow] = []
    for name, reviewed in campaigns.items():
        mine = [pair for pair in compared if pair[0].campaign == name]
        found += adjusted([overall for overall, _ in mine])
        machines = machines_of(reviewed, include)
        for machine in machines if len(machines) > 1 else ():
            within = chain(*(within for _, within in mine))
            found += adjusted([row for row in within if row.machine == machine])
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
        for plain, corrected in _CORRECTED.items():
            p_values = holm([getattr(row, plain) for row in family])
            for row, p in zip(family, p_values, strict=True):
                setattr(row, corrected, p)
    return [judged(row) for row in found]


_CORRECTED = {"p_value": "p_adjusted", "equivalence_p": "equivalence_p_adjusted"}


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
    They have values of one metric; None where one side has none. What single machines show has no verdict."""
    if baseline.empty or candidate.empty:
        return None
    rows = pd.concat([side[_COMPARED] for side in (baseline, candidate)])
    sides = tuple(np.split(np.arange(len(rows)), [len(baseline)]))
    metric = campaign.metrics[candidate["metric"].iloc[0]]
    asked = AskedComparison(sides, metric, margin or Margin.of(campaign))
    ((overall, within),) = _over_and_within_machines(rows, [asked])
    return judged(overall), within


def against_baselines(
    rows: pd.DataFrame, campaigns: Mapping[str, ReviewedCampaign]
) -> list[Compared]:
    """Every metric of every cell of some rows with values against its baseline, where that has some, too: over all
    machines, and within each machine that ran both. P-values are uncorrected."""
    rows = in_matrix_order(rows, campaigns)
    parts = groups(rows, [*CELL, "metric"])
    about = pd.DataFrame(
        about_metrics(rows.iloc[[part[0] for part in parts]], campaigns)
    ).rename(columns={"environment": "candidate"})
    keys = about[["campaign", "model", "candidate", "workload", "metric"]]
    part_of = dict(zip(keys.itertuples(index=False, name=None), parts, strict=True))
    asked, told = [], []
    for candidate, row in zip(parts, about.to_dict("records"), strict=True):
        data = campaigns[row["campaign"]].campaign
        row["baseline"] = data.baseline
        against = tuple((row | {"candidate": data.baseline})[name] for name in keys)
        if row["candidate"] != data.baseline and against in part_of:
            metric = data.metrics[row["metric"]]
            asked.append(
                AskedComparison((part_of[against], candidate), metric, Margin.of(data))
            )
            told.append(row)
    found = _over_and_within_machines(rows, asked)
    for (overall, within), row in zip(found, told, strict=True):
        for each in (overall, *within):
            vars(each).update(row)
    return found


def _over_and_within_machines(
    rows: pd.DataFrame, asked: Sequence[AskedComparison]
) -> list[Compared]:
    """Each baseline against its candidate."""
    machines = texts(rows["machine"])
    on_one: list[tuple[int, str, AskedComparison]] = []
    for number, one in enumerate(asked):
        for machine in dict.fromkeys(machines[one.sides[0]]):
            sides = tuple(side[machines[side] == machine] for side in one.sides)
            if all(map(len, sides)):
                on_one.append((number, machine, one._replace(sides=sides)))
    compared = compare_pairs(rows, [one for *_, one in on_one])
    within: list[list[TableRow]] = [[] for _ in asked]
    for (number, machine, _), row in zip(on_one, compared, strict=True):
        row.machine = machine
        within[number].append(row)
    return [
        (_overall(rows, one, mine), mine)
        for one, mine in zip(asked, within, strict=True)
    ]


def _overall(
    rows: pd.DataFrame, asked: AskedComparison, within: Sequence[TableRow]
) -> TableRow:
    """The comparison over all machines of both sides. Where none of them ran both, all runs are described as blocks: a
    difference between machines cannot be told from one between the sides."""
    runs = np.concatenate(asked.sides)
    if len(within) > 1:
        found = _with_direction(over_machines(within), asked.metric)
    elif within:
        found = SimpleNamespace(**vars(within[0]))
    else:
        (found,) = compare_pairs(rows, [asked], declared="blocked")
        found.machines = len(set(texts(rows["machine"])[runs]))
    found.left_out = len(runs) - found.n_baseline - found.n_candidate
    found.machine = None
    return found


def compare_pairs(
    rows: pd.DataFrame,
    asked: Sequence[AskedComparison],
    *,
    declared: DeclaredOrder | None = None,
) -> list[TableRow]:
    """Each baseline against its candidate, p-values uncorrected. Those of one design are worked out at once. Where an
    order is `declared`, neither rounds nor times are looked at."""
    runs = rows["run"].cat.codes.to_numpy()
    timeline = _timelines(rows, is_timed=declared is None)
    orders, started = texts(rows["order"]), texts(rows["started"])
    designs: dict[tuple[bytes, ...], _Design] = {}
    of_design: dict[_Design, list[int]] = {}
    for number, (sides, *_) in enumerate(asked):
        # The rounds and times of runs are those of every metric that has values in the same runs.
        key = tuple(runs[side].tobytes() for side in sides)
        if key not in designs:
            told: set[DeclaredOrder] = set(orders[np.concatenate(sides)])
            order = declared or (told.pop() if len(told) == 1 else "as-published")
            one, other = map(timeline, sides)
            designs[key] = _design(one, other, order)
        of_design.setdefault(designs[key], []).append(number)
    found: list[TableRow] = [None] * len(asked)
    for design, numbers in of_design.items():
        mine = [asked[number] for number in numbers]
        compared = _of_design(rows["value"].to_numpy(), design, mine)
        for number, row in zip(numbers, compared, strict=True):
            times = started[np.concatenate(asked[number].sides)]
            row.days = len({text[:10] for text in times})
            found[number] = row
    return found


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
    values: Floats, design: _Design, asked: Sequence[AskedComparison]
) -> Iterator[TableRow]:
    """Comparisons of one design, in the order given."""
    order, analysis, *sides = design
    one, other = (
        np.stack([by_unit(values[each.sides[side]], sides[side]) for each in asked])
        for side in (0, 1)
    )
    steps = [resolution_of(values[np.concatenate(each.sides)]) for each in asked]
    apart, columns = two_means(one, other, np.array(steps), paired=analysis == "paired")
    if order == "interleaved" and analysis != "paired":  # no complete round
        apart = Estimate(apart.value, np.nan * apart.error, np.nan)
        columns["n_effective"] = 0.0
    is_scaled = np.array([each.metric.unit != "°C" for each in asked])
    mean = columns["mean_baseline"]
    base = np.where(is_scaled & (mean > 0), mean, np.nan)
    for name in ("ci95_ratio", "ci90_ratio"):
        ends = columns[name]
        columns[name] = [end + 0 * base * apart.error for end in ends]
    margin = np.array([each.margin.percent for each in asked])
    columns |= _figures(apart, base, margin, can_test=analysis != "description")
    columns["ratio"] = columns["mean_candidate"] / base
    n = [sum(map(len, side)) for side in sides]
    servers = min(map(len, sides))
    for place, each in enumerate(asked):
        found = SimpleNamespace(
            **{name: _figure(column, place) for name, column in columns.items()},
            order=order,
            analysis=analysis,
            machines=1,
            servers=servers if n != [*map(len, sides)] else None,
            unseen_percent=unseen_percent(servers),
            n_baseline=n[0],
            n_candidate=n[1],
            left_out=sum(map(len, each.sides)) - sum(n),
            margin_declared=each.margin.declared,
        )
        yield _with_direction(found, each.metric)


def _figures(
    apart: Estimate, base: Any, margin_percent: Any, *, can_test: bool = True
) -> dict[str, Any]:
    """What follows from a difference, a column each. `base` is what a percentage is of, NaN where it is of nothing."""
    error = apart.error if can_test else np.nan * apart.error
    return {
        "df": apart.df,
        "difference": apart.value,
        "difference_percent": 100 * apart.value / base,
        "ci95_difference": apart.ends(1 - ALPHA),
        "ci90_difference": apart.ends(1 - 2 * ALPHA),
        "equivalence_margin_percent": margin_percent,
        **tested(replace(apart, error=error), base, margin_percent),
    }


def _figure(column: Any, place: int) -> Any:
    """A figure of a column as Python has it, None for NaN; an interval as a pair."""
    if isinstance(column, (tuple, list)):
        low, high = (_figure(end, place) for end in column)
        return None if low is None else (low, high)
    value = float(column[place] if np.ndim(column) else column)
    return None if np.isnan(value) else value


def _with_direction(found: TableRow, metric: Metric) -> TableRow:
    """A comparison of a metric, with what follows from its ratio and from which way is better."""
    found.inverse_ratio = 1 / found.ratio if found.ratio else None
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
    apart = Estimate(scale * effect.value, scale * effect.error, effect.df)
    of = base if relative else np.nan
    figures = _figures(apart, np.float64(of), first.equivalence_margin_percent)
    figures |= {
        "mean_baseline": base,
        "mean_candidate": base + apart.value,
        "ratio": 1 + apart.value / of,
        "ci95_ratio": [1 + end / of for end in figures["ci95_difference"]],
        "ci90_ratio": [1 + end / of for end in figures["ci90_difference"]],
        "n_effective": min(row.n_effective for row in within),
        "unseen_percent": unseen_percent(sum(map(_units, within))),
    }
    return SimpleNamespace(
        **{name: _figure(column, 0) for name, column in figures.items()},
        order=order_over_machines(row.order for row in within),
        analysis="machines",
        machines=len(within),
        servers=None,
        days=max(row.days for row in within),
        n_baseline=sum(row.n_baseline for row in within),
        n_candidate=sum(row.n_candidate for row in within),
        left_out=sum(row.left_out for row in within),
        margin_declared=first.margin_declared,
    )
