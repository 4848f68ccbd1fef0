"""How far the runs of a cell lie apart, whether their order shows, and which metrics are one measurement: rows of the
tables of cells and comparisons.

One finding tells of one cause in all cells, and a cell is told as what describes it best: a cold first run, outliers, a
trend, else variation.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, permutations
from operator import attrgetter, itemgetter, neg
from statistics import fmean, stdev

import numpy as np
import pandas as pd

from sparkpub.plan.requested import load_of
from sparkpub.record.metrics import TIMED_UNITS, Metric
from sparkpub.record.record import Record, Spread, metric_of
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Asked, Check
from sparkpub.review.checks.finding import Finding, Severity, Threshold
from sparkpub.review.checks.view import Case, View, in_words, label, once
from sparkpub.review.grouping import grouped
from sparkpub.review.physics import THROUGHPUT, bandwidth, traffic
from sparkpub.review.statistics.estimate import (
    MINIMUM_RUNS,
    POOR_VARIATION_PERCENT,
    holm,
    t_quantile,
)
from sparkpub.review.statistics.series import (
    beyond_three_sigma,
    first_run_p,
    grubbs,
)
from sparkpub.review.sweeps import LOAD, lines
from sparkpub.review.tables.column import TableRow, rows

MATERIAL_SHARE_OF_MARGIN = Threshold(
    0.5,
    "A drift or an outlier is reported from this share of the equivalence margin on. Smaller ones can be significant "
    "but do not matter.",
)
OUTLIER_ALPHA = Threshold(
    0.01,
    "Probability of a false outlier in a clean campaign (Grubbs, Bonferroni).",
)
MANY_OUTLIERS_PERCENT = Threshold(
    5.0,
    "Share of runs beyond three standard deviations from which the methodology asks for a repeat of the cell.",
)
HIGH_VARIATION_PERCENT = Threshold(
    POOR_VARIATION_PERCENT,
    "Maximum coefficient of variation that the methodology accepts.",
)
LEAST_RUNS = Threshold(
    float(MINIMUM_RUNS),
    "Minimum number of runs of a cell: below it no interval is given, and no verdict.",
)
DRIFT_ALPHA = Threshold(
    0.02,
    "Probability of a false finding of a trend (Mann-Kendall, Holm), or of first runs that stand out (binomial test, "
    "Holm), in a clean campaign.",
)
USERS_SHARE = Threshold(
    0.05,
    "Share by which several users must get more than as many times one user, beyond the spread of both figures. Of 38 "
    "models on a DGX Spark, two get more, by up to 22 %.",
)
RESTATED = Threshold(
    0.9999,
    "Two metrics are one measurement where one explains this share of how the other varies from run to run.",
)
APART_SHARE = Threshold(
    0.4,
    "Standard deviation of a run's repetitions, as a share of their mean, from which that says nothing if its 95 % "
    "interval begins at zero, as it does with three repetitions and 40 %. Of 1,900 rates of llama-benchy on a DGX "
    "Spark, 30 have more.",
)
SAME_NUMBERS_SHARE = Threshold(
    0.02,
    "Two models have the same throughput where their means, two standard errors included, lie within this share.",
)
SAME_NUMBERS_BYTES_RATIO = Threshold(
    1.5,
    "Ratio of bytes read per step from which memory-bound throughput must differ. The larger model has to need half of "
    "the machine's bandwidth: below that, something else may limit both, such as kernel launches.",
)
FLOORS = {
    "GiB": 0.1,  # page cache and allocators vary by some tens of MiB between runs
    "ms": 0.05,  # the resolution of clocks and schedulers on a busy machine
    "J": 20.0,  # counters are read a few milliseconds early or late, at up to 700 W
    "s": 0.5,  # start-up times, which are read from log lines
}
"""The smallest change that can matter, by unit: near zero every relative change is large."""
RESTATED_RUNS = 8
"""Fewer runs of a workload show nothing of it."""
MANY_RUNS = 20
"""Runs of a cell from which a share of outliers says something: of fewer, one is as much as that."""


# -- one measurement under two names -----------------------------------------------------------------------------

Restated = tuple[str, str, str, pd.DataFrame]
"""A workload, two of its results that are one measurement, and both of each run."""


@once
def restated(view: View) -> list[Restated]:
    """Every pair of results that are one measurement from run to run of the cells, each once. Two that only grow with
    the model are two."""
    found: list[Restated] = []
    for workload, of_one in view.results_table.groupby("workload", observed=True):
        by_run = of_one.set_index(["model", "environment", "run", "metric"])["value"]
        values = by_run.unstack().reindex(columns=list(view.results))
        changes = values.groupby(level=["model", "environment"], observed=True).diff()
        explained = changes.corr(min_periods=RESTATED_RUNS - 1).to_numpy() ** 2
        for pair in np.argwhere(np.triu(explained >= RESTATED, 1)):
            x, y = values.columns[pair]
            found.append((str(workload), x, y, values[[x, y]].dropna()))
    return found


def root_of(view: View, name: str) -> str:
    """The metric that a metric restates; itself where it restates none."""
    roots = {y: x for _, x, y, _ in restated(view)}
    while name in roots:
        name = roots[name]
    return name


def cause(view: View, name: str) -> str:
    """What a metric hangs on, so that one fault is not told once per metric: all rates and times tell of speed, what
    restates another metric of that one, and any other metric of itself."""
    root = view.metrics[root_of(view, name)]
    return "speed" if root.unit in TIMED_UNITS else root.name


def dependent_metrics(view: View) -> Iterator[Finding]:
    """Two headline metrics that are one."""
    for workload, *names, both in restated(view):
        x, y = (view.metrics[name] for name in names)
        slope, intercept = np.polyfit(both[x.name], both[y.name], 1).tolist()
        text = (
            f"{y.label} and {x.label} are one measurement, not two: over {len(both)} runs of {workload}, "
            f"{y.label} = {slope:.4f} × {x.label} + {intercept:.3f} {y.unit}. A statement about one only "
            "restates the other."
        ).replace("+ -", "\N{MINUS SIGN} ")
        cells = [cell for cell in view.counted if cell[2] == workload]
        yield view.finding(
            "dependent-metrics", "warning", text, cells=cells, x=x.name, y=y.name
        )


# -- what a cell is told as --------------------------------------------------------------------------------------


def severity_of(view: View, names: Iterable[str]) -> Severity:
    """How bad odd figures of these metrics are for a reader: a note where the matrix declares primary metrics and these
    are others, which decide nothing."""
    declared = getattr(view.campaign.matrix, "primary", ())
    primary = {cause(view, name) for name in declared if name in view.metrics}
    decides = not declared or any(cause(view, name) in primary for name in names)
    return "warning" if decides else "info"


def matters(view: View, name: str, mean: float, change: float) -> bool:
    """Whether a change of a metric is large enough to matter: beside the equivalence margin of a mean, and at all."""
    margin = view.campaign.margin_percent / 100 * abs(mean)
    floor = FLOORS.get(view.metrics[name].unit, 0.0)
    return abs(change) >= max(MATERIAL_SHARE_OF_MARGIN * margin, floor)


@once
def series(view: View) -> list[TableRow]:
    """The rows of the cells, of each result that restates no other."""
    again = {y for _, _, y, _ in restated(view)}
    found = (row for row in view.cells if row.metric not in again)
    return sorted(found, key=attrgetter("cell", "metric"))


def _tell(
    view: View,
    check: str,
    figure: str,
    found: Mapping[TableRow, float],
    say: Callable[[TableRow, Metric], str],
    clearest: Callable[[float], float] = abs,
) -> Iterator[Finding]:
    """A figure that was found of rows: a finding for each thing that their metrics hang on, told by the row of the
    `clearest`, with all of them as evidence."""
    for mine in grouped(found, lambda row: cause(view, row.metric)).values():
        first = max(mine, key=lambda row: clearest(found[row]))
        cells, names = ([getattr(row, of) for row in mine] for of in ("cell", "metric"))
        text = say(first, view.metrics[first.metric])
        values = {label(row.cell): found[row] for row in mine}
        severity = severity_of(view, names)
        yield view.concerning(check, severity, text, cells, names, **{figure: values})


# -- outliers ----------------------------------------------------------------------------------------------------


def outlier(view: View) -> Iterator[Finding]:
    """Runs that a test able to fire at their n calls outliers, corrected for every cell and metric tested; in many
    runs, those of the methodology's rule, where they are more than it allows."""
    said: dict[str, dict[str, str]] = defaultdict(dict)
    for row, places in outlying(view).items():
        metric, rest = view.metrics[row.metric], np.delete(row.levels, places)
        others = f"{metric.format(rest.mean())} ± {metric.format(rest.std(ddof=1))}"
        for place in places:
            said[row.runs[place]][metric.name] = (
                f"{metric.within_sentence} {metric.format(row.levels[place])} (the other {len(rest)} runs {others})"
            )

    def causes(run: Stored) -> frozenset[str]:
        return frozenset(cause(view, name) for name in said[run.run_id])

    odd = [run for run in view.happened if run.run_id in said]
    # What is odd in the same things has one cause.
    for runs in grouped(odd, causes).values():
        names = list(chain(*(said[run.run_id] for run in runs)))
        yield from view.tell(
            "outlier",
            severity_of(view, names),
            "stood apart from the others",
            [(run, "; ".join(said[run.run_id].values())) for run in runs],
            metrics=names,
        )


@once
def outlying(view: View) -> Mapping[TableRow, list[int]]:
    """The places of outliers among the runs of rows; a cold first run is told as such."""
    tested = [row for row in series(view) if row.sd]
    found = {}
    for row in tested:
        flagged = beyond_three_sigma(row.levels)
        if row.n < MANY_RUNS or 100 * len(flagged) <= MANY_OUTLIERS_PERCENT * row.n:
            flagged = grubbs(row.levels, OUTLIER_ALPHA / len(tested))
        middle = np.delete(row.levels, flagged).mean()
        odd = [
            at
            for at in flagged
            if matters(view, row.metric, middle, row.levels[at] - middle)
        ]
        if odd and (odd != [0] or row not in cold(view)):
            found[row] = odd
    return found


# -- the order of runs -------------------------------------------------------------------------------------------


@once
def cold(view: View) -> Mapping[TableRow, Finding]:
    """First runs that stand out in their cells, over all cells or over those of an environment, whichever shows it
    better: the rows, with what is said of them."""
    groups: dict[tuple[str, str], list[TableRow]] = defaultdict(list)
    for row in series(view):
        for where in ("all environments", row.environment) if row.n > 2 else ():
            groups[row.metric, where].append(row)
    p_values = [first_run_p([row.levels for row in mine]) for mine in groups.values()]
    found: dict[TableRow, Finding] = {}
    clearest = sorted(
        zip(holm(p_values), groups.items(), strict=True), key=itemgetter(0)
    )
    for p, ((name, where), mine) in clearest:
        metric, levels = view.metrics[name], [row.levels for row in mine]
        apart = fmean(first - fmean(others) for first, *others in levels)
        is_clear = p is not None and p < DRIFT_ALPHA and not found.keys() & mine
        if not is_clear or not matters(view, name, fmean(chain(*levels)), apart):
            continue
        more = "more" if apart > 0 else "less"
        text = (
            f"The first run of {len(mine)} cells of {where} has {metric.format(abs(apart))} {more} "
            f"{metric.within_sentence} than the others, on average (binomial test, corrected p = {p:.2g}): the figures "
            "include a cold start."
        )
        told = view.finding(
            "drift",
            "warning",
            text,
            cells=[row.cell for row in mine],
            metrics=[name],
            runs=[view.counted[row.cell][0] for row in mine],
            p_adjusted=p,
        )
        found |= dict.fromkeys(mine, told)
    return found


@once
def moved(view: View) -> Mapping[TableRow, float]:
    """What drifts in a campaign, beyond chance and by enough to matter, with its p corrected over all that was
    tested."""
    tested = [row for row in series(view) if row.sd]
    adjusted = holm([row.trend_p_value for row in tested])
    return {
        row: p
        for row, p in zip(tested, adjusted, strict=True)
        if p is not None and p < DRIFT_ALPHA
        if matters(view, row.metric, row.mean, row.trend_slope * (row.n - 1))
    }


def drifts(view: View) -> Iterator[Finding]:
    """Trends within cells, then first runs that stand out."""
    found = moved(view)

    def say(row: TableRow, metric: Metric) -> str:
        change = row.trend_slope * (row.n - 1)
        return (
            f"{metric.label} of {label(row.cell)} {'rises' if change > 0 else 'falls'} by about "
            f"{metric.format(abs(change))} from the first of {row.n} runs to the last (Mann-Kendall, corrected "
            f"p = {found[row]:.2g}), so its mean depends on how long one measures."
        )

    yield from _tell(view, "drift", "p_adjusted", found, say, clearest=neg)
    yield from {id(told): told for told in cold(view).values()}.values()


def order_confound(view: View) -> Iterator[Finding]:
    """Environments that were measured in blocks of time, on a machine that ran both."""
    found = view.reviewed.comparisons
    # Where no machine ran both, a difference between machines cannot be told from one between environments anyway.
    is_shared = (found["machines"] == 1) | (found["analysis"] == "machines")
    is_blocked = (found["order"] == "blocked") & found["metric"].isin(view.results)
    blocked = [
        (row.model, side, row.workload)
        for row in rows(found[is_blocked & is_shared & found["machine"].isna()])
        for side in (row.baseline, row.candidate)
    ]
    if blocked:
        (model, baseline, workload), (_, candidate, _), *_ = blocked
        text = (
            f"For {model}/{workload} runs of {baseline} and {candidate} did not take turns, but ran in blocks: any "
            "change over time counts as a difference between the environments."
        )
        yield view.concerning("order-confound", "error", text, blocked)


def _out_of_order(view: View) -> list[Case]:
    """Runs that began before runs of their machine which stand earlier in the plan. Retries and repeats have no place
    of their own, and short runs may begin in the same second."""
    runs = [
        run
        for run in chain(*view.counted.values())
        if run.record.plan.attempt == 1 and run.record.repeat_of is None
    ]
    runs.sort(key=lambda run: (run.record.started.value, run.record.plan.position))
    cases: list[Case] = []
    for mine in grouped(runs, lambda run: run.record.machine.id).values():
        places = [run.record.plan.position for run in mine]
        earliest = np.minimum.accumulate(places[::-1])[::-1]
        early = np.flatnonzero(places > earliest)
        cases += [(mine[at], "") for at in early]
    return cases


# -- variation and number of runs --------------------------------------------------------------------------------


def high_variation(view: View) -> Iterator[Finding]:
    """Cells whose runs vary for no cause that another finding tells."""
    found = {
        row: row.cv_percent
        for row in view.cells
        if (row.cv_percent or 0.0) > HIGH_VARIATION_PERCENT
        and row.sd >= FLOORS.get(row.unit, 0.0)
        and not _is_explained(view, row)
    }
    return _tell(
        view,
        "high-variation",
        "cv_percent",
        found,
        lambda row, metric: (
            f"{metric.label} of {label(row.cell)} varies by {row.cv_percent:.1f} % between its {row.n} runs "
            f"(coefficient of variation; {HIGH_VARIATION_PERCENT:g} % is the limit)."
        ),
    )


def _is_explained(view: View, row: TableRow) -> bool:
    """Whether a metric varies because of what another finding tells: outliers, a first run or a trend."""
    for root in view.cells.where(cell=row.cell, metric=root_of(view, row.metric)):
        odd = outlying(view).get(root, []) + [0] * (root in cold(view))
        rest = np.delete(row.levels, odd)
        limit = HIGH_VARIATION_PERCENT / 100 * abs(rest.mean())
        is_steady = len(rest) > 1 and bool(rest.std(ddof=1) <= limit)
        return is_steady or root in moved(view)
    return False


def small_sample(view: View) -> Iterator[Finding]:
    """Cells with too few runs."""
    small = {
        cell: runs for cell, runs in view.counted.items() if 0 < len(runs) < LEAST_RUNS
    }
    if small:
        text = f"Fewer than {LEAST_RUNS:g} runs, so how far runs differ is not known: {in_words(small)}."
        few = min(map(len, small.values()))
        runs = list(chain(*small.values()))
        yield view.finding(
            "small-sample", "warning", text, cells=small, runs=runs, n=few
        )


def apart_inside(record: Record) -> dict[str, str]:
    """The times and rates of a run whose repetitions lie so far apart that their mean says nothing: its 95 % interval
    begins at zero, where it is known of how many it is. Each in words."""
    load = load_of(record)
    # Requests sent together wait for each other, and those of a data set differ: they repeat nothing.
    are_alike = load.at_once == 1 and load.dataset is None
    several = record.spreads | {
        name: Spread(repetitions=len(values), deviation=stdev(values), divisor="n-1")
        for name, values in record.samples.items()
        if len(values) > 1
    }
    found = {}
    for name, spread in several.items():
        metric = metric_of(name, record.metrics[name])
        mean, n = record.metrics[name].value, spread.repetitions
        is_timed = metric.unit in TIMED_UNITS and (are_alike or not metric.distribution)
        if not is_timed or not mean:
            continue
        deviation, over, least = spread.deviation, "", float(APART_SHARE)
        if n is not None and n > 1:
            if spread.divisor == "n":
                deviation *= math.sqrt(n / (n - 1))
            over = f" over {n}"
            least = max(least, math.sqrt(n) / t_quantile(0.975, n - 1))
        share = deviation / abs(mean)
        if share >= least:
            figure = f"{metric.format(mean)} ± {metric.format(deviation)}"
            found[name] = (
                f"{metric.within_sentence} {figure} ({100 * share:.0f} %{over})"
            )
    return found


def repetitions(view: View) -> Iterator[Finding]:
    """Runs whose repetitions lie so far apart that their mean says nothing."""
    found = {run: apart_inside(run.record) for run in view.happened}
    cases = [(run, "; ".join(names.values())) for run, names in found.items() if names]
    text = "had repetitions too far apart for a mean, which are not ranked"
    names = list(chain(*found.values()))
    yield from view.tell("repetitions", "warning", text, cases, metrics=names)


# -- users -------------------------------------------------------------------------------------------------------


def users_scaling(view: View) -> Iterator[Finding]:
    """Cells that differ in the number of users alone, and in which these get more than as many times one user, whatever
    both figures spread: a server that works for several does not do more for each of them."""

    def off(row: TableRow) -> float:
        """How far a figure spreads: between runs, else between the repetitions of the one."""
        spread = view.counted[row.cell][0].record.spreads.get(THROUGHPUT)
        inside = spread.deviation if spread else 0.0
        return float(inside if row.sd is None else row.sd)

    found = []
    for line in lines(view.campaign):
        points = [
            (users, row)
            for users, cell in (line.points if line.axis is LOAD else ())
            for row in view.cells.where(cell=cell, metric=THROUGHPUT)
        ]
        (first, one), *others = points or [(0.0, None)]
        for users, row in others if first == 1 else ():
            most = users * (1 + USERS_SHARE) * (one.mean + off(one))
            if row.mean - off(row) > most:
                found.append((row.mean / one.mean / users, int(users), row, one))
    if found:
        _, users, row, one = max(found, key=itemgetter(0))
        text = (
            f"{users} users of {label(row.cell)} get {row.mean / one.mean:.1f} times what one user gets "
            f"({row.mean:.4g} and {one.mean:.4g} tok/s): something held the single user back."
        )
        cells = [each.cell for _, _, *both in found for each in both]
        severity = severity_of(view, [THROUGHPUT])
        yield view.concerning("users-scaling", severity, text, cells, [THROUGHPUT])


# -- models ------------------------------------------------------------------------------------------------------


def same_numbers(view: View) -> Iterator[Finding]:
    """Models of very different size with the same throughput: one of them, or none, is what it is called. Not where the
    smaller one is the faster one of the environment under another load: then they are two models, and their figures
    meet by chance, such as where attention costs one of them more."""
    rates = view.cells.where(metric=THROUGHPUT)
    means = {row.cell: row.mean for row in rates}
    flows = {}
    for row in rates:
        flow = traffic(view.counted[row.cell][0].record)
        if flow and row.error:
            flows[row] = flow
    alike = []
    pairs = (permutations(same, 2) for same in grouped(flows, _but_model).values())
    for small, large in chain(*pairs):
        ratio = flows[large].step.expected / flows[small].step.expected
        error = math.hypot(small.error, large.error)
        apart = abs(small.mean - large.mean) + 2 * error
        if ratio <= SAME_NUMBERS_BYTES_RATIO or apart > SAME_NUMBERS_SHARE * small.mean:
            continue
        available = bandwidth(view.counted[large.cell][0].record) or 0.0
        is_apart = any(
            mean > SAME_NUMBERS_BYTES_RATIO * means.get((large.model, *rest), math.inf)
            for (model, *rest), mean in means.items()
            if (model, rest[0]) == (small.model, small.environment)
        )
        if flows[large].expected >= 0.5 * available and not is_apart:
            alike.append((ratio, small, large))
    if alike:
        ratio, *both = max(alike, key=itemgetter(0))
        first, then = (f"{row.model} ({row.mean:.1f} tok/s)" for row in both)
        place = "/".join(_but_model(both[0]))
        text = (
            f"{first} and {then} have the same output throughput in {place}, although one reads {ratio:.1f} times the "
            "bytes of the other in every step."
        )
        cells = [row.cell for _, *both in alike for row in both]
        yield view.concerning("same-numbers", "error", text, cells)


_but_model = attrgetter("environment", "workload")


CHECKS = (
    Check(
        "same-numbers",
        "Do different models have different throughput?",
        ("error",),
        same_numbers,
        cause="another model",
        remedy="Look in the log for the model that each run loaded.",
    ),
    Check(
        "dependent-metrics",
        "Is each metric an independent measurement?",
        ("warning",),
        dependent_metrics,
        remedy="Report one of them.",
    ),
    Check(
        "drift",
        "Do results drift with the order of the runs?",
        ("warning", "info"),
        drifts,
        remedy="Warm up longer, or pause until the machine is as before (gates:), and re-run.",
        imported="Read the mean as one of these runs in this order.",
    ),
    Check(
        "order-confound",
        "Did the environments alternate?",
        ("error",),
        order_confound,
        (
            Asked(
                "began before runs that the plan puts earlier, so drift may affect the comparisons",
                _out_of_order,
            ),
        ),
        remedy="Measure again with order: interleaved.",
        imported="Read such a difference as one between two times, too.",
    ),
    Check(
        "outlier",
        "Any outliers?",
        ("warning", "info"),
        outlier,
        remedy="Look for the cause in the log; exclude a run only for a cause that you can name (sparkpub quarantine).",
    ),
    Check(
        "high-variation",
        "Do runs vary by less than 5 %?",
        ("warning", "info"),
        high_variation,
        remedy="Make each run longer (more requests), or measure more runs.",
        imported="Read it with its spread, and not as one figure.",
    ),
    Check(
        "small-sample",
        "Is the sample large enough?",
        ("warning",),
        small_sample,
        remedy=f"Measure each at least {LEAST_RUNS:g} times.",
        imported="Read no order into figures within 5 % of each other.",
    ),
    Check(
        "repetitions",
        "Do the repetitions inside a run agree?",
        ("warning",),
        repetitions,
        remedy="Measure more repetitions, or longer prompts and answers.",
        imported="Read the figures of longer prompts and answers.",
    ),
    Check(
        "users-scaling",
        "Do several users get no more than as many times one user?",
        ("warning", "info"),
        users_scaling,
        remedy="Look at clocks and temperature of the single user, and read it as a lower bound.",
    ),
)
