"""How far the runs of a cell lie apart, whether their order shows, and which metrics are one measurement: rows of the
tables of cells and comparisons.

One finding tells of one cause in all cells, and a cell is told as what describes it best: a cold first run, outliers, a
trend, else variation.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from sparkpub.plan.requested import load_of
from sparkpub.record.metrics import TIMED_UNITS, Metric
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding, Severity, Threshold
from sparkpub.review.checks.view import (
    CellMetric,
    View,
    about_cells,
    about_metrics,
    floor,
    ids,
    label,
    listed,
)
from sparkpub.review.grouping import grouped
from sparkpub.review.physics import THROUGHPUT
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics import order
from sparkpub.review.statistics.estimate import (
    MINIMUM_RUNS,
    POOR_VARIATION_PERCENT,
    holm,
)
from sparkpub.review.statistics.series import (
    beyond_three_sigma,
    first_run_p,
    grubbs,
)

MATERIAL_SHARE_OF_MARGIN = Threshold(
    "material share of margin",
    0.5,
    "A drift or an outlier is reported from this share of the equivalence margin on. Smaller ones can be significant "
    "but do not matter.",
)
OUTLIER_ALPHA = Threshold(
    "outlier alpha",
    0.01,
    "Probability of a false outlier in a clean campaign (Grubbs, Bonferroni).",
)
MANY_OUTLIERS_PERCENT = Threshold(
    "many outliers percent",
    5.0,
    "Share of runs beyond three standard deviations from which the methodology asks for a repeat of the cell.",
)
HIGH_VARIATION_PERCENT = Threshold(
    "high variation percent",
    POOR_VARIATION_PERCENT,
    "Maximum coefficient of variation that the methodology accepts.",
)
LEAST_RUNS = Threshold(
    "least runs",
    float(MINIMUM_RUNS),
    "Minimum number of runs of a cell: below it no interval is given, and no verdict.",
)
DRIFT_ALPHA = Threshold(
    "drift alpha",
    0.02,
    "Probability of a false finding of a trend (Mann-Kendall, Holm), or of first runs that stand out (binomial test, "
    "Holm), in a clean campaign.",
)
EARLIER_SHARE = Threshold(
    "earlier share",
    order.EARLIER_SHARE,
    "Share of pairs of runs, one per environment, in which the same environment began first. It is about 0.5 if they "
    "alternate, and 1 for separate blocks. It does not apply to a random order, nor to an interleaved one with four "
    "complete rounds or more.",
)
FEW_SWITCHES = Threshold(
    "few switches",
    order.FEW_SWITCHES,
    "Environments also ran in blocks if a random order would change from one to the other as seldom with less than "
    "this probability.",
)
USERS_SHARE = Threshold(
    "users share",
    0.05,
    "Share by which several users must get more than as many times one user, beyond the spread of both figures. Of 38 "
    "models on a DGX Spark, two get more, by up to 22 %.",
)
RESTATED = Threshold(
    "restated r squared",
    0.9999,
    "Two metrics are one measurement where one explains this share of how the other varies from run to run.",
)
RESTATED_RUNS = 8
"""Fewer runs of a workload show nothing of it."""
MANY_RUNS = 20
"""Runs of a cell from which a share of outliers says something: of fewer, one is as much as that."""


# -- one measurement under two names -----------------------------------------------------------------------------


class Restated(NamedTuple):
    """Two results of a workload that are one measurement: `y` is `slope` times `x` and `intercept`."""

    workload: str
    x: str
    y: str
    runs: int
    slope: float
    intercept: float


def restated(view: View) -> list[Restated]:
    """Every pair of results that are one measurement from run to run of the cells, each once. Two that only grow with
    the model are two."""
    found = []
    for workload, rows in view.results_table.groupby("workload", observed=True):
        runs = rows.drop_duplicates("run")
        if len(runs) < RESTATED_RUNS:
            continue
        values = rows.pivot(index="run", columns="metric", values="value")
        values = values.reindex(index=runs["run"], columns=list(view.results))
        cells = runs[["model", "environment"]].astype(str).agg("/".join, axis=1)
        changes = values.groupby(cells.to_numpy()).diff()
        alike = changes.corr(min_periods=RESTATED_RUNS - 1).to_numpy() ** 2
        for x, y in values.columns.to_numpy()[
            np.argwhere(np.triu(alike >= RESTATED, 1))
        ]:
            both = values[[x, y]].dropna()
            line = np.polyfit(both[x], both[y], 1).tolist()
            found.append(Restated(str(workload), x, y, len(both), *line))
    return found


def root_of(view: View, name: str) -> str:
    """The metric that a metric restates; itself where it restates none."""
    roots = {pair.y: pair.x for pair in view.once(restated)}
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
    for pair in view.once(restated):
        x, y = view.metrics[pair.x], view.metrics[pair.y]
        text = (
            f"{y.label} and {x.label} are one measurement, not two: over {pair.runs} runs of {pair.workload}, "
            f"{y.label} = {pair.slope:.4f} × {x.label} + {pair.intercept:.3f} {y.unit}. A statement about one only "
            "restates the other."
        )
        text = text.replace("+ -", "\N{MINUS SIGN} ")
        cells = [label(cell) for cell in view.ran if cell[2] == pair.workload]
        yield view.finding(
            "dependent-metrics", "warning", text, cells=cells, x=pair.x, y=pair.y
        )


# -- what a cell is told as --------------------------------------------------------------------------------------


def severity_of(view: View, names: Iterable[str]) -> Severity:
    """How bad odd figures of these metrics are for a reader: a note where the matrix declares primary metrics and these
    are others, which decide nothing."""
    matrix = view.campaign.matrix
    if matrix is None or not matrix.primary:
        return "warning"
    declared = {cause(view, name) for name in matrix.primary if name in view.metrics}
    decides = any(cause(view, name) in declared for name in names)
    return "warning" if decides else "info"


def matters(view: View, name: str, mean: float, change: float) -> bool:
    """Whether a change of a metric is large enough to matter: beside the equivalence margin of a mean, and at all."""
    margin = view.campaign.margin_percent / 100 * abs(mean)
    least = max(MATERIAL_SHARE_OF_MARGIN * margin, floor(view.metrics[name]))
    return abs(change) >= least


def series(view: View) -> Mapping[CellMetric, tuple[float, ...]]:
    """The figures of the runs that count, of each result that restates no other."""
    again = {pair.y for pair in view.once(restated)}
    return {key: each for key, each in view.figures.items() if key[1] not in again}


def _tell(
    view: View,
    check: str,
    figure: str,
    found: Mapping[CellMetric, float],
    say: Callable[[Any, Metric], str],
) -> Iterator[Finding]:
    """A figure that was found of metrics of cells: a finding for each thing that they hang on, told by the row of the
    highest, with all of them as evidence."""
    for alike in grouped(found, lambda key: cause(view, key[1])).values():
        cell, name = max(alike, key=lambda key: found[key])
        cells, names = zip(*alike, strict=True)
        yield view.concerning(
            check,
            severity_of(view, names),
            say(view.cells[cell, name], view.metrics[name]),
            cells,
            names,
            **{figure: {label(key[0]): found[key] for key in alike}},
        )


# -- outliers ----------------------------------------------------------------------------------------------------


def outlier(view: View) -> Iterator[Finding]:
    """Runs that a test able to fire at their n calls outliers, corrected for every cell and metric tested; in many
    runs, those of the methodology's rule, where they are more than it allows."""
    said: dict[str, dict[str, str]] = defaultdict(dict)
    for key, places in view.once(outlying).items():
        metric, values = view.metrics[key[1]], view.figures[key]
        rest = np.delete(values, places)
        others = f"{metric.format(rest.mean())} ± {metric.format(rest.std(ddof=1))}"
        for place in places:
            said[view.cells[key].runs[place]][metric.name] = (
                f"{metric.within_sentence} {metric.format(values[place])} (the other {len(rest)} runs {others})"
            )
    runs = {run.run_id: run for run in view.happened}
    # What is odd in the same things has one cause.
    for alike in grouped(
        said, lambda run: frozenset(cause(view, name) for name in said[run])
    ).values():
        names = list(dict.fromkeys(name for run in alike for name in said[run]))
        yield from view.tell(
            "outlier",
            severity_of(view, names),
            "{} stands|stand apart from the others",
            [(runs[run], "; ".join(said[run].values())) for run in alike],
            **about_metrics(names),
        )


def outlying(view: View) -> dict[CellMetric, tuple[int, ...]]:
    """(cell, metric) to the places of its outliers among the runs that count; a cold first run is told as such."""
    varied = {key: each for key, each in series(view).items() if len(set(each)) > 1}
    found = {}
    for key, values in varied.items():
        flagged = beyond_three_sigma(values)
        allowed = MANY_OUTLIERS_PERCENT / 100 * len(values)
        if len(values) < MANY_RUNS or len(flagged) <= allowed:
            flagged = grubbs(values, OUTLIER_ALPHA / len(varied))
        middle = fmean(np.delete(values, flagged))
        odd = [
            at for at in flagged if matters(view, key[1], middle, values[at] - middle)
        ]
        if odd and (odd != [0] or key not in view.once(cold)):
            found[key] = tuple(odd)
    return found


# -- the order of runs -------------------------------------------------------------------------------------------


def cold(view: View) -> Mapping[CellMetric, Finding]:
    """First runs that stand out in their cells, over all cells or over those of an environment, whichever shows it
    better: the metrics of cells, with what is said of them."""
    known = {key: each for key, each in series(view).items() if len(each) > 2}
    groups: dict[tuple[str, str], list[CellMetric]] = defaultdict(list)
    for cell, name in known:
        for where in ("all environments", cell[1]):
            groups[name, where].append((cell, name))
    tests = [first_run_p([known[key] for key in keys]) for keys in groups.values()]
    clear = [
        (p, *about)
        for p, about in zip(holm(tests), groups, strict=True)
        if p is not None and p < DRIFT_ALPHA
    ]
    found: dict[CellMetric, Finding] = {}
    for p, name, where in sorted(clear, key=itemgetter(0)):
        keys, metric = groups[name, where], view.metrics[name]
        blocks = [known[key] for key in keys]
        apart = fmean(values[0] - fmean(values[1:]) for values in blocks)
        if found.keys() & keys or not matters(view, name, fmean(chain(*blocks)), apart):
            continue
        text = (
            f"The first run of {len(keys)} cells of {where} has {metric.format(abs(apart))} "
            f"{'more' if apart > 0 else 'less'} {metric.within_sentence} than the others, on average (binomial test, "
            f"corrected p = {p:.2g}): the figures include a cold start."
        )
        told = view.finding(
            "drift",
            "warning",
            text,
            cells=[label(cell) for cell, _ in keys],
            metric=name,
            runs=[view.cells[key].runs[0] for key in keys],
            p_adjusted=p,
        )
        found |= dict.fromkeys(keys, told)
    return found


def moved(view: View) -> Mapping[CellMetric, float]:
    """What drifts in a campaign, beyond chance and by enough to matter, with its p corrected over all that was
    tested."""
    rows = [view.cells[key] for key in series(view) if view.cells[key].sd]
    adjusted = holm([row.trend_p_value for row in rows])
    return {
        (row.cell, row.metric): p
        for row, p in zip(rows, adjusted, strict=True)
        if p is not None
        and p < DRIFT_ALPHA
        and matters(view, row.metric, row.mean, row.trend_slope * (row.n - 1))
    }


def drifts(view: View) -> Iterator[Finding]:
    """Trends within cells, then first runs that stand out."""

    def say(row: Any, metric: Metric) -> str:
        change = row.trend_slope * (row.n - 1)
        text = (
            f"{metric.label} of {label(row.cell)} {'rises' if change > 0 else 'falls'} by about "
            f"{metric.format(abs(change))} from the first of {row.n} runs to the last (Mann-Kendall, corrected "
            f"p = {view.once(moved)[row.cell, row.metric]:.2g}), so its mean depends on how long one measures."
        )
        if row.n_effective < MINIMUM_RUNS:
            text += f" Each run resembles the one before: {row.n} are worth {row.n_effective:.0f} independent ones."
        return text

    moves = {key: -p for key, p in view.once(moved).items()}
    yield from _tell(view, "drift", "p_adjusted", moves, say)
    yield from {id(told): told for told in view.once(cold).values()}.values()


def order_confound(view: View) -> Iterator[Finding]:
    """Environments that were measured in blocks of time: comparisons that the table calls so, within each machine where
    there are several. Then runs out of the planned order."""
    several = len(view.reviewed.machines) > 1
    blocked = dict.fromkeys(
        (row.model, row.workload, row.baseline, row.candidate)
        for row in view.comparisons
        if row.order == "blocked" and (row.machine is not None) is several
    )
    cells: list[Cell] = []
    for model, workload, *sides in blocked:
        cells += [(model, environment, workload) for environment in sides]
    if cells:
        model, workload, one, other = next(iter(blocked))
        text = (
            f"For {model}/{workload} runs of {one} and {other} did not take turns, but ran in blocks: any change over "
            "time counts as a difference between the environments."
        )
        yield view.concerning("order-confound", "error", text, cells)
    yield from _out_of_order(view)


def _out_of_order(view: View) -> Iterator[Finding]:
    """Runs that began before runs which stand earlier in the plan. Retries and repeats have no place of their own."""
    slots = {
        (*run.record.cell, run.record.iteration): run for run in reversed(view.runs)
    }
    places = [
        (run.record.started.value, run.record.plan.position, run)
        for run in slots.values()
        if run.record.plan.attempt == 1 and run.record.repeat_of is None
    ]
    early, latest = [], math.inf
    # Short runs may begin in the same second.
    for _, position, run in sorted(places, key=itemgetter(0, 1), reverse=True):
        if position > latest:
            early.append((run, ""))
        latest = min(latest, position)
    text = "{} began before runs that the plan puts earlier, so drift may affect the comparisons"
    yield from view.tell("order-confound", "warning", text, early[::-1])


# -- variation and number of runs --------------------------------------------------------------------------------


def high_variation(view: View) -> Iterator[Finding]:
    """Cells whose runs vary for no cause that another finding tells."""
    found = {
        key: row.cv_percent
        for key, row in view.cells.items()
        if (row.cv_percent or 0.0) > HIGH_VARIATION_PERCENT
        and row.sd >= floor(view.metrics[row.metric])
        and not _is_explained(view, *key)
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


def _is_explained(view: View, cell: Cell, name: str) -> bool:
    """Whether a metric varies because of what another finding tells: outliers, a first run or a trend."""
    root = cell, root_of(view, name)
    odd = view.once(outlying).get(root, ())
    if root in view.once(cold):
        odd = (0, *odd)
    rest = np.delete(view.figures[cell, name], odd)
    limit = HIGH_VARIATION_PERCENT / 100 * abs(rest.mean())
    is_steady = len(rest) > 1 and bool(rest.std(ddof=1) <= limit)
    return is_steady or root in view.once(moved)


def small_sample(view: View) -> Iterator[Finding]:
    """Cells with too few runs."""
    small = {
        cell: runs for cell, runs in view.counted.items() if 0 < len(runs) < LEAST_RUNS
    }
    if small:
        names = listed([label(cell) for cell in small], "cells")
        have = "has" if len(small) == 1 else "have"
        fewest = min(map(len, small.values()))
        yield view.finding(
            "small-sample",
            "warning",
            f"{names} {have} fewer than {LEAST_RUNS:g} runs: how far runs differ is not known.",
            **about_cells(small),
            n=fewest,
            runs=[run for some in small.values() for run in ids(some)],
        )


# -- users -------------------------------------------------------------------------------------------------------


def users_scaling(view: View) -> Iterator[Finding]:
    """Cells that differ in the number of users alone, and in which these get more than as many times one user, whatever
    both figures spread: a server that works for several does not do more for each of them."""
    alike: dict[Hashable, dict[int, Any]] = defaultdict(dict)
    for (cell, name), row in view.cells.items():
        load = load_of(view.counted[cell][0].record)
        if name == THROUGHPUT and load.at_once is not None:
            others = replace(load, at_once=None, in_flight=None, named="")
            alike[cell[0], cell[1], others].setdefault(load.at_once, row)
    found = []
    for by_users in alike.values():
        for users, row in by_users.items() if 1 in by_users else ():
            one = by_users[1]
            most = (1 + USERS_SHARE) * (one.mean + _spread(view, one))
            if row.mean - _spread(view, row) > users * most:
                found.append((row.mean / one.mean / users, users, row, one))
    if found:
        _, users, row, one = max(found, key=itemgetter(0))
        text = (
            f"{users} users of {label(row.cell)} get {row.mean / one.mean:.1f} times what one user gets "
            f"({row.mean:.4g} and {one.mean:.4g} tok/s): something held the single user back."
        )
        cells = [each.cell for _, _, *both in found for each in both]
        severity = severity_of(view, [THROUGHPUT])
        yield view.concerning("users-scaling", severity, text, cells, [THROUGHPUT])


def _spread(view: View, row: Any) -> float:
    """The standard deviation between runs, else between the repetitions of the one."""
    spread = view.counted[row.cell][0].record.spreads.get(THROUGHPUT)
    return row.sd if row.sd is not None else spread.deviation if spread else 0.0


CHECKS = (
    Check(
        "dependent-metrics",
        "meaning",
        ("warning",),
        "Is each metric an independent measurement?",
        dependent_metrics,
        thresholds=(RESTATED,),
        remedy="Report one of them.",
    ),
    Check(
        "drift",
        "meaning",
        ("warning", "info"),
        "Do results drift with the order of the runs?",
        drifts,
        thresholds=(DRIFT_ALPHA, MATERIAL_SHARE_OF_MARGIN),
        remedy="Warm up longer, or pause until the machine is as before (gates:), and re-run.",
        of_others="Read the mean as one of these runs in this order.",
    ),
    Check(
        "order-confound",
        "meaning",
        ("error", "warning"),
        "Did the environments alternate?",
        order_confound,
        thresholds=(EARLIER_SHARE, FEW_SWITCHES),
        remedy="Measure again with order: interleaved.",
        of_others="Read such a difference as one between two times, too.",
    ),
    Check(
        "outlier",
        "meaning",
        ("warning", "info"),
        "Any outliers?",
        outlier,
        thresholds=(OUTLIER_ALPHA, MANY_OUTLIERS_PERCENT, MATERIAL_SHARE_OF_MARGIN),
        remedy="Look for the cause in the log; exclude a run only for a cause that you can name (sparkpub quarantine).",
    ),
    Check(
        "high-variation",
        "meaning",
        ("warning", "info"),
        "Do runs vary by less than 5 %?",
        high_variation,
        thresholds=(HIGH_VARIATION_PERCENT,),
        remedy="Make each run longer (more requests), or measure more runs.",
        of_others="Read it with its spread, and not as one figure.",
    ),
    Check(
        "small-sample",
        "meaning",
        ("warning",),
        "Is the sample large enough?",
        small_sample,
        thresholds=(LEAST_RUNS,),
        remedy=f"Measure each at least {LEAST_RUNS:g} times.",
        of_others="Read no order into figures within 5 % of each other.",
    ),
    Check(
        "users-scaling",
        "meaning",
        ("warning", "info"),
        "Do several users get no more than as many times one user?",
        users_scaling,
        thresholds=(USERS_SHARE,),
        remedy="Look at clocks and temperature of the single user, and read it as a lower bound.",
    ),
)
