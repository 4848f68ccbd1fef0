"""The table of comparisons: one row per metric of each cell whose environment is compared with the baseline; and the
comparison of any rows of a table of runs with any others.

A selection is a mask on a table of runs, whose rows stand in order of time:

    of = runs["counts"] & (runs["metric"] == "ttft_p50_ms") & (runs["workload"] == "chat")
    native, container = (of & (runs["environment"] == name) for name in ("native", "container"))
    found, _ = compare(runs[native], runs[container], campaign)   # None where one side has no row
    found.difference, found.ci95_difference, found.p_value     # what `FIGURES` describes; None where there is no figure

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

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sparkpub.review.dataset import CampaignData
from sparkpub.review.statistics.estimate import (
    ALPHA,
    DETECTABLE_PERCENT,
    Estimate,
    Interval,
    deciding_level,
    over,
    resolution_of,
    two_means,
    unseen_percent,
    verdict_of,
)
from sparkpub.review.statistics.order import (
    OrderAsRun,
    Side,
    by_unit,
    order_as_run,
    order_over_machines,
    units,
)
from sparkpub.review.tables.cells import by_cell
from sparkpub.review.tables.column import (
    Columns,
    Places,
    TableRow,
    columns,
    corrected,
    groups,
    interval,
    rows,
    shared,
    table,
    texts,
)
from sparkpub.review.tables.reasons import why
from sparkpub.review.tables.runs import of_all

if TYPE_CHECKING:
    from sparkpub.review.reviewed import ReviewedCampaign

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
        error="Standard error of the difference",
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
_CORRECTED = {"p_value": "p_adjusted", "equivalence_p": "equivalence_p_adjusted"}
_ANALYSES = {"interleaved": "paired", "blocked": "description"}
"""What orders allow; Welch's test in any other."""
_LEVELS = {"ci95": 1 - ALPHA, "ci90": 1 - 2 * ALPHA}
Pairs = tuple[Places, Side, Side]
"""The numbers of some pairs of metrics that the same runs have, and these runs: of the baseline, and of the candidate.
Their `value` has a row for each pair."""
Compared = tuple[TableRow, list[TableRow]]
"""What two sides show over all machines of either, and within each machine that ran both."""


# -- who is compared -----------------------------------------------------------------------------------------------


def comparisons(reviewed: "ReviewedCampaign") -> pd.DataFrame:
    """Every comparison of a campaign, cells in the order of the matrix. Behind them stand, where it ran on several
    machines, the comparisons within each machine."""
    campaign = reviewed.campaign
    about, sides = pairs_of(
        [reviewed],
        lambda cells: cells["environment"] == campaign.baseline,
        same=["model", "workload", "metric"],
    )
    if about.empty:
        return table(COLUMNS, [])
    about = about.assign(
        candidate=about["environment"],
        baseline=campaign.baseline,
        equivalence_margin_percent=campaign.margin_percent,
        margin_declared=campaign.margin_declared,
    )
    found = _over_and_within_machines(sides, about)
    if len(reviewed.machines) < 2:
        found = found[found["machine"].isna()]
    return table(COLUMNS, judged(found, ["machine", "family"]))


def pairs_of(
    campaigns: Sequence["ReviewedCampaign"],
    is_baseline: Callable[[pd.DataFrame], "pd.Series[bool]"],
    same: Sequence[str],
) -> tuple[pd.DataFrame, list[Pairs]]:
    """Every metric of a cell, in the order of the matrix, with that of the cell among the baselines that is the same in
    some columns: what the first is about (see `by_cell`), and the runs of both."""
    runs = of_all([each.runs for each in campaigns])
    rows, parts, about = by_cell(campaigns, runs)
    about["part"] = about.index
    run = rows["run"].cat.codes.to_numpy()
    about["ran"] = [run[part].tobytes() for part in parts]
    mask = is_baseline(about)
    pairs = about[~mask].merge(about.loc[mask, [*same, "part", "ran"]], on=[*same])
    plain = timed(rows)
    found = []
    for numbers in groups(pairs, ["ran_y", "ran_x"]):
        mine = pairs.iloc[numbers]
        one, other = (
            taken(plain, np.stack([parts[part] for part in mine[name]]))
            for name in ("part_y", "part_x")
        )
        found.append((numbers, one, other))
    return pairs, found


def compare(
    baseline: pd.DataFrame,
    candidate: pd.DataFrame,
    campaign: CampaignData,
    margin_percent: float | None = None,
) -> Compared | None:
    """Some rows of a campaign's table of runs against others, p-values uncorrected, within its margin or another one.
    They have values of one metric; None where one side has none. What single machines show is judged by itself."""
    if baseline.empty or candidate.empty:
        return None
    metric = campaign.metrics[candidate["metric"].iloc[0]]
    about = {
        "unit": metric.unit,
        "direction": metric.direction,
        "equivalence_margin_percent": margin_percent or campaign.margin_percent,
        "margin_declared": campaign.margin_declared,
    }
    pair = np.array([0]), timed(baseline), timed(candidate)
    found = judged(_over_and_within_machines([pair], pd.DataFrame([about])), ())
    overall, *within = rows(found)
    return overall, within


def timed(runs: pd.DataFrame) -> Side:
    """What a comparison looks at of each row of a table of runs. A repeat stands outside of the rounds."""
    names = ["order", "server", "specification", "machine"]
    # As points in time; of those without a zone the order is known.
    known = [*runs["started"].cat.categories]
    times = np.array([datetime.fromisoformat(each).timestamp() for each in known])
    began = runs["started"].cat.codes.to_numpy()
    places = zip(
        texts(runs["model"]),
        texts(runs["workload"]),
        runs["iteration"].tolist(),
        runs["repeat_of"].isna(),
        strict=True,
    )
    rounds = [
        f"{model}/{workload}/{iteration}" if is_planned else None
        for model, workload, iteration, is_planned in places
    ]
    return {name: texts(runs[name]) for name in names} | {
        "value": runs["value"].to_numpy(),
        "time": times[began],
        "day": np.array([each[:10] for each in known], dtype=object)[began],
        "round": np.array(rounds, dtype=object),
    }


def taken(side: Side, places: Any) -> Side:
    """What stands at some places of a side; of several metrics of the same runs a row each, whose values alone
    differ."""
    return {
        name: column[..., places if name == "value" else places[0]]
        for name, column in side.items()
    }


def on_machine(side: Side, name: str) -> Side:
    """The runs of a side of a comparison on one machine."""
    is_there = side["machine"] == name
    return {name: column[..., is_there] for name, column in side.items()}


# -- what they show ------------------------------------------------------------------------------------------------


def difference(
    one: Side, other: Side, order: OrderAsRun | None = None
) -> dict[str, Any]:
    """What runs of a candidate, `other`, show against those of a baseline in each of their metrics: the columns from
    which all others follow. Where the `order` is given, neither rounds nor times are looked at."""
    sides = one, other
    order = order or order_as_run(one, other)
    analysis = _ANALYSES.get(order, "welch")
    of_units = units(one, other, order)
    n_runs = [side["value"].shape[-1] for side in sides]
    has_units = min(each.max() for each in of_units) >= 0
    if not has_units:
        # No round is complete: all runs are described.
        analysis = "description"
        of_units = np.arange(n_runs[0]), np.arange(n_runs[1])
    values = [side["value"] for side in sides]
    sample, against = map(by_unit, values, of_units)
    resolution = resolution_of(np.hstack(values))
    is_paired = analysis == "paired"
    found, beside = two_means(sample, against, resolution, paired=is_paired)
    if not has_units:
        found = replace(found, error=np.nan, df=np.nan)
        beside["n_effective"] = 0
    n = [int((each >= 0).sum()) for each in of_units]
    numbers = [int(each.max()) + 1 for each in of_units]
    return {
        **beside,
        "difference": found.value,
        "error": found.error,
        "df": found.df,
        "order": order,
        "analysis": analysis,
        "machines": 1,
        "servers": None if numbers == n else min(numbers),
        "days": len({*one["day"], *other["day"]}),
        "n_baseline": n[0],
        "n_candidate": n[1],
        "left_out": sum(n_runs) - sum(n),
        "unseen_percent": unseen_percent(min(numbers)),
    }


def _over_and_within_machines(
    sides: Sequence[Pairs], about: pd.DataFrame
) -> pd.DataFrame:
    """Baselines against their candidates, a row of `about` each: over all machines, where `machine` is empty, and then
    within each machine that ran both. Where none did, all runs are described as blocks: a difference between machines
    cannot be told from one between the sides."""
    found = []
    size = np.zeros(len(about), dtype=np.int64)
    for pair, one, other in sides:
        machines = [[*dict.fromkeys(side["machine"])] for side in (one, other)]
        size[pair] = len(one["machine"]) + len(other["machine"])
        shared = [name for name in machines[0] if name in machines[1]]
        for name in shared:
            within = difference(on_machine(one, name), on_machine(other, name))
            found.append(pd.DataFrame({"pair": pair, "machine": name} | within))
        if not shared:
            described = difference(one, other, "blocked")
            described["machines"] = len({*chain(*machines)})
            found.append(pd.DataFrame({"pair": pair, "machine": None} | described))
    each = pd.concat(found).sort_values("pair", kind="stable", ignore_index=True)
    each = figured(each.join(about, on="pair"))
    is_alone = ~each["pair"].duplicated(keep=False)
    overall = each[is_alone]
    several = [
        {"pair": pair} | over_machines(mine)
        for pair, mine in each[~is_alone].groupby("pair")
    ]
    if several:
        together = figured(pd.DataFrame(several).join(about, on="pair"))
        overall = pd.concat([overall, together]).sort_values("pair")
    left_out = size - overall["n_baseline"] - overall["n_candidate"]
    overall = overall.assign(machine=None, left_out=left_out)
    return pd.concat([overall, each[each["machine"].notna()]])


def figured(found: pd.DataFrame) -> pd.DataFrame:
    """Differences with all columns that follow from them. A percentage is of a baseline above zero, on a scale with a
    true zero; where runs are only described, nothing is tested."""
    of: dict[str, Any]
    of = {str(name): column.to_numpy() for name, column in found.items()}
    mean, unit, direction = of["mean_baseline"], found["unit"], of["direction"]
    base = np.where((unit != "°C") & (mean > 0), mean, np.nan)
    ratio = of["mean_candidate"] / base
    inverse = 1 / np.where(ratio == 0, np.nan, ratio)
    apart = Estimate(of["difference"], of["error"], of["df"])
    is_described = of["analysis"] == "description"
    tested = replace(apart, error=np.where(is_described, np.nan, apart.error))
    # T is the inverse of a rate; for times and memory the ratio is their own.
    is_rate, is_less = unit.str.endswith("/s"), direction == "lower"
    times = np.select([is_rate, is_less], [inverse, 1 / inverse], np.nan)
    sign = np.select([direction == "higher", direction == "lower"], [1, -1], 0)
    gain = sign * np.sign(apart.value)
    of |= {
        "difference_percent": 100 * apart.value / base,
        "ratio": ratio,
        "inverse_ratio": inverse,
        "overhead_percent": 100 * (times - 1),
        "p_value": tested.p_value,
        "equivalence_p": tested.equivalence_p(
            of["equivalence_margin_percent"] / 100 * base
        ),
        "power_10_percent": tested.detection_power(DETECTABLE_PERCENT / 100 * base),
        "detectable_percent": 100 * tested.detectable() / base,
        "better": pd.Series(gain).map({1: "candidate", -1: "baseline"}).to_numpy(),
        "servers": found["servers"].astype("Int64"),
    }
    for name, level in _LEVELS.items():
        for end, value in zip(("low", "high"), apart.ends(level), strict=True):
            of[f"{name}_difference_{end}"] = value
            # Over machines, the difference's in units of the baseline.
            of_ratio = of.get(f"{name}_ratio_{end}", 1 + value / base)
            of[f"{name}_ratio_{end}"] = of_ratio + 0 * base * apart.error
    return pd.DataFrame(of, index=found.index)


def judged(found: pd.DataFrame, families: Sequence[str]) -> pd.DataFrame:
    """The comparisons with Holm's correction of their tests of difference and, apart, of equivalence within each
    combination of the columns `families`: exploratory ones are many, and by chance some of them would always differ.
    Without families nothing is corrected.
    Then the verdict by the corrected p-values, and what that rests on."""
    found = found.copy()
    for name, adjusted in _CORRECTED.items():
        found[adjusted] = corrected(found, name, families) if families else found[name]
    figures = ("n_effective", "difference", *_CORRECTED.values())
    found["verdict"] = verdict_of(
        *(found[name].to_numpy(float) for name in figures),
        confounded=found["order"] == "blocked",
    )
    return found.assign(why=list(map(why, rows(found))))


def deciding(row: TableRow, figure: str = "difference") -> Interval | None:
    """The interval that decides, of the `difference` or of the `ratio`: what every sentence with a bound rests on."""
    level = deciding_level(row.verdict, row.equivalence_p)
    name = "ci95" if level == 1 - ALPHA else "ci90"
    found: Interval | None = getattr(row, f"{name}_{figure}")
    return found


# -- several machines ----------------------------------------------------------------------------------------------


def estimates(found: pd.DataFrame, *, percent: bool = False) -> Estimate:
    """The differences of comparisons with their standard errors, in their unit or in percent of the baseline's mean,
    without those that only describe their runs, or have no interval."""
    columns = ["difference", "error", "df", "mean_baseline"]
    value, error, df, base = found[columns].to_numpy(float).T
    scale = 100 / np.abs(base) if percent else 1.0
    each = Estimate(scale * value, scale * error, df)
    return each.of(found["p_value"].notna().to_numpy() & ~np.isnan(each.ends()[0]))


def effects(within: pd.DataFrame) -> Estimate | None:
    """What machines found, each within itself, for `over`: in percent of their own baselines, so that a faster machine
    counts no more than a slow one, or in the metric's unit where there is no true zero. None where a machine ran its
    environments in blocks, or fewer than two have an effect with an error."""
    relative = bool(within["difference_percent"].notna().all())
    known = estimates(within, percent=relative)
    blocked = (within["order"] == "blocked").any()
    return None if blocked or len(known.value) < 2 else known


def over_machines(of: pd.DataFrame) -> dict[str, Any]:
    """One comparison over several machines, from those within each of two or more: the columns of `difference`.

    Means and difference are those of a machine with the mean baseline. Where one machine ran its environments in
    blocks the whole is confounded; where one has too few runs it is undecided.
    """
    known, base = effects(of), of["mean_baseline"].mean()
    relative = of["difference_percent"].notna().all()
    scale = base / 100 if relative else 1.0
    mean = of["difference_percent" if relative else "difference"].mean()
    effect = Estimate(mean, np.nan, np.nan) if known is None else over(known)
    independent = of["servers"].fillna(of[["n_baseline", "n_candidate"]].min(axis=1))
    return {
        "mean_baseline": base,
        "mean_candidate": base + scale * effect.value,
        "difference": scale * effect.value,
        "error": scale * effect.error,
        "df": effect.df,
        "order": order_over_machines(of["order"]),
        "analysis": "machines",
        "machines": len(of),
        "servers": None,
        "days": of["days"].max(),
        "n_baseline": of["n_baseline"].sum(),
        "n_candidate": of["n_candidate"].sum(),
        "n_effective": of["n_effective"].min(),
        "unseen_percent": unseen_percent(independent.sum()),
    }
