"""How far the runs of a cell lie apart, and whether their order shows: rows of the tables of cells and comparisons.

One finding tells of one cause in all cells, and a cell is told as what describes it best: a cold first run, outliers, a
trend, else variation.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import chain
from operator import itemgetter
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from sparkpub.plan.requested import load_of
from sparkpub.record.metrics import Metric
from sparkpub.record.text import counted
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.dependence import cause, causes, independent, root_of
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import (
    MATERIAL_SHARE_OF_MARGIN,
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
from sparkpub.review.statistics.series import beyond_three_sigma, first_run_p, grubbs

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
MANY_OUTLIERS_RUNS = Threshold(
    "many outliers runs",
    20,
    "Runs of a cell from which a share of outliers says something: of fewer, one is as much as that.",
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
    "Probability of a false drift finding in a clean campaign (Mann-Kendall, Holm).",
)
TRANSIENT_ALPHA = Threshold(
    "transient alpha",
    0.015,
    "Probability of a false first-run finding in a clean campaign (binomial test, Holm).",
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


def severity_of(view: View, names: Iterable[str]) -> Severity:
    """How bad odd figures of these metrics are for a reader: a note where the matrix declares primary metrics and these
    are others, which decide nothing."""
    matrix = view.campaign.matrix
    if matrix is None or not matrix.primary:
        return "warning"
    declared = [name for name in matrix.primary if name in view.metrics]
    return "warning" if causes(view, names) & causes(view, declared) else "info"


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
        rising = sorted(alike, key=lambda key: found[key])
        cell, name = rising[-1]
        cells, names = zip(*alike, strict=True)
        yield view.concerning(
            check,
            severity_of(view, names),
            say(view.cells[cell, name], view.metrics[name]),
            cells,
            names,
            cases=len(alike),
            **{
                figure: found[cell, name],
                f"{figure}_by_cell": {label(key[0]): found[key] for key in rising},
            },
        )


def _series(view: View) -> Mapping[CellMetric, tuple[float, ...]]:
    """The figures of the runs that count, of each result that restates no other."""
    return {
        (cell, name): view.figures(cell, name)
        for cell, name in view.cells
        if name in view.once(independent)
    }


# -- outliers ----------------------------------------------------------------------------------------------------


def outlier(view: View) -> Iterator[Finding]:
    """Runs that a test able to fire at their n calls outliers, corrected for every cell and metric tested; in many
    runs, those of the methodology's rule, where they are more than it allows."""
    said: dict[str, dict[str, str]] = defaultdict(dict)
    for key, places in view.once(outlying).items():
        metric, values = view.metrics[key[1]], view.figures(*key)
        rest = np.delete(values, places)
        others = f"{metric.format(rest.mean())} ± {metric.format(rest.std(ddof=1))}"
        for place in places:
            said[view.cells[key].runs[place]][metric.name] = (
                f"{metric.within_sentence} {metric.format(values[place])} (the other {len(rest)} runs {others})"
            )
    runs = {stored.run_id: stored for stored in view.happened}
    # What is odd in the same things has one cause.
    for alike in grouped(said, lambda run: causes(view, said[run])).values():
        names = list(dict.fromkeys(name for run in alike for name in said[run]))
        yield from view.tell(
            "outlier",
            severity_of(view, names),
            "{} is an outlier" if len(alike) == 1 else "{} are outliers",
            [(runs[run], "; ".join(said[run].values())) for run in alike],
            **about_metrics(names),
        )


def outlying(view: View) -> dict[CellMetric, tuple[int, ...]]:
    """(cell, metric) to the places of its outliers among the runs that count; a cold first run is told as such."""
    series = {key: each for key, each in _series(view).items() if len(set(each)) > 1}
    found = {}
    for key, values in series.items():
        flagged = beyond_three_sigma(values)
        if len(values) < MANY_OUTLIERS_RUNS or (
            100 * len(flagged) <= MANY_OUTLIERS_PERCENT * len(values)
        ):
            flagged = grubbs(values, OUTLIER_ALPHA / len(series))
        middle = fmean(np.delete(values, flagged))
        material = tuple(
            place
            for place in flagged
            if view.matters(view.metrics[key[1]], middle, values[place] - middle)
        )
        if material and (material != (0,) or key not in view.once(cold)):
            found[key] = material
    return found


# -- the order of runs -------------------------------------------------------------------------------------------


def cold(view: View) -> Mapping[CellMetric, Finding]:
    """First runs that stand out in their cells, over all cells or over those of an environment, whichever shows it
    better: the metrics of cells, with what is said of them."""
    groups: dict[tuple[str, str], list[CellMetric]] = defaultdict(list)
    series = {key: each for key, each in _series(view).items() if len(each) > 2}
    for cell, name in series:
        groups[name, "all environments"].append((cell, name))
        groups[name, cell[1]].append((cell, name))
    tests = [first_run_p([series[key] for key in keys]) for keys in groups.values()]
    adjusted = dict(zip(groups, holm(tests), strict=True))
    found: dict[CellMetric, Finding] = {}
    for name, where in grouped(groups, itemgetter(0)).items():
        clearest = min(where, key=lambda group: adjusted[group] or 0.0)
        keys, p, metric = groups[clearest], adjusted[clearest], view.metrics[name]
        blocks = [series[key] for key in keys]
        apart = fmean(values[0] - fmean(values[1:]) for values in blocks)
        middle = fmean(chain(*blocks))
        if p is None or p >= TRANSIENT_ALPHA or not view.matters(metric, middle, apart):
            continue
        text = (
            f"The first run of {len(keys)} cells of {clearest[1]} has {metric.format(abs(apart))} "
            f"{'more' if apart > 0 else 'less'} {metric.within_sentence} than the others, on average (binomial test, "
            f"p = {p:.2g} corrected for {counted(len(tests), 'test')}): the figures include a cold start."
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
    rows = [view.cells[key] for key in _series(view) if view.cells[key].sd]
    adjusted = holm([row.trend_p_value for row in rows])
    return {
        (row.cell, row.metric): p
        for row, p in zip(rows, adjusted, strict=True)
        if p is not None
        and p < DRIFT_ALPHA
        and view.matters(view.metrics[row.metric], row.mean, _change(row))
    }


def _change(row: Any) -> float:
    """The trend of a cell from its first run to its last."""
    change: float = row.trend_slope * (row.n - 1)
    return change


def drifts(view: View) -> Iterator[Finding]:
    """Trends within cells, then first runs that stand out."""

    def say(row: Any, metric: Metric) -> str:
        change = _change(row)
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
    found = [_blocks(view, *sides) for sides in blocked]
    if found:
        first = max(found, key=lambda blocks: blocks.share)
        model, earlier, workload = first.earlier
        text = (
            f"For {model}/{workload} runs of {earlier} began before those of {first.later[1]} in "
            f"{100 * first.share:.0f} of 100 pairs, and they changed places {counted(first.switches, 'time')} in "
            f"{first.runs} runs: any change over time counts as a difference between the environments."
        )
        cells = [cell for each in found for cell in (each.earlier, each.later)]
        yield view.concerning(
            "order-confound", "error", text, cells, cases=len(found), share=first.share
        )
    yield from _out_of_order(view)


class Blocks(NamedTuple):
    """Two cells that ran in blocks: the share of pairs of runs of which that of the earlier one began first, and how
    often they changed places in so many runs."""

    earlier: Cell
    later: Cell
    share: float
    switches: int
    runs: int


def _blocks(
    view: View, model: str, workload: str, baseline: str, candidate: str
) -> Blocks:
    base, cell = ((model, side, workload) for side in (baseline, candidate))
    one, other = (
        [datetime.fromisoformat(run.record.started.value).timestamp() for run in runs]
        for runs in (view.counted[base], view.counted[cell])
    )
    share, switches = order.share_earlier(one, other), order.switches(one, other) or 0
    runs = len(one) + len(other)
    if share >= 0.5:
        return Blocks(base, cell, share, switches, runs)
    return Blocks(cell, base, 1 - share, switches, runs)


def _out_of_order(view: View) -> Iterator[Finding]:
    """Runs that began before runs which stand earlier in the plan. Retries and repeats have no place of their own."""
    slots = {
        (*run.record.cell, run.record.iteration): run for run in reversed(view.runs)
    }
    firsts = [
        run
        for run in slots.values()
        if run.record.plan.attempt == 1 and run.record.repeat_of is None
    ]
    # Short runs may begin in the same second.
    firsts.sort(key=lambda run: (run.record.started.value, run.record.plan.position))
    early, latest = [], math.inf
    for run in reversed(firsts):
        if run.record.plan.position > latest:
            early.append(run)
        latest = min(latest, run.record.plan.position)
    yield from view.tell(
        "order-confound",
        "warning",
        "{} began before runs that the plan puts earlier, so drift may affect the comparisons",
        [(run, "") for run in reversed(early)],
    )


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
    rest = np.delete(view.figures(cell, name), odd)
    limit = HIGH_VARIATION_PERCENT / 100 * abs(rest.mean())
    is_steady = len(rest) > 1 and bool(rest.std(ddof=1) <= limit)
    return is_steady or root in view.once(moved)


def small_sample(view: View) -> Iterator[Finding]:
    """Cells with too few runs."""
    small = {
        cell: runs for cell, runs in view.counted.items() if 0 < len(runs) < LEAST_RUNS
    }
    if not small:
        return
    cells = [label(cell) for cell in small]
    fewest, most = min(map(len, small.values())), max(map(len, small.values()))
    number = counted(most, "run") if fewest == most else f"{fewest} to {most} runs"
    have, each = ("has", "") if len(cells) == 1 else ("have", " each")
    yield view.finding(
        "small-sample",
        "warning",
        f"{listed(cells, 'cells')} {have} {number}{each}: how far runs differ is not known.",
        **about_cells(small),
        n=fewest,
        runs=[run for some in small.values() for run in ids(some)],
    )


# -- users -------------------------------------------------------------------------------------------------------


def users_scaling(view: View) -> Iterator[Finding]:
    """Cells that differ in the number of users alone, and in which these get more than as many times one user: a server
    that works for several does not do more for each of them."""
    alike: dict[Hashable, dict[int, Any]] = defaultdict(dict)
    for (cell, name), row in view.cells.items():
        load = load_of(view.counted[cell][0].record)
        if name == THROUGHPUT and load.at_once is not None:
            others = replace(load, at_once=None, in_flight=None, named="")
            alike[cell[0], cell[1], others].setdefault(load.at_once, row)
    one_of = {
        (row.cell, THROUGHPUT): (users, group[1])
        for group in alike.values()
        for users, row in group.items()
        if 1 in group and _exceeds(view, users, row, group[1])
    }

    def say(row: Any, _: Metric) -> str:
        users, one = one_of[row.cell, row.metric]
        return (
            f"{users} users of {label(row.cell)} get {row.mean / one.mean:.1f} times what one user gets "
            f"({row.mean:.4g} and {one.mean:.4g} tok/s): something held the single user back."
        )

    # The single user is at fault, and is told with the others.
    times = {
        key: view.cells[key].mean / one.mean / users
        for key, (users, one) in one_of.items()
    }
    singles = {(one.cell, THROUGHPUT): 0.0 for _, one in one_of.values()}
    return _tell(view, "users-scaling", "times", times | singles, say)


def _exceeds(view: View, users: int, row: Any, one: Any) -> bool:
    """Whether users got more than as many times one user, whom nothing held back, could have had, whatever both figures
    spread."""
    most = users * (one.mean + _spread(view, one))
    return bool(row.mean - _spread(view, row) > (1 + USERS_SHARE) * most)


def _spread(view: View, row: Any) -> float:
    """The standard deviation between runs, else between the repetitions of the one."""
    spread = view.counted[row.cell][0].record.spreads.get(THROUGHPUT)
    of_one = 0.0 if spread is None else spread.deviation
    return of_one if row.sd is None else float(row.sd)


CHECKS = (
    Check(
        "drift",
        "meaning",
        ("warning", "info"),
        "Do results drift with the order of the runs?",
        drifts,
        thresholds=(DRIFT_ALPHA, TRANSIENT_ALPHA, MATERIAL_SHARE_OF_MARGIN),
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
        thresholds=(
            OUTLIER_ALPHA,
            MANY_OUTLIERS_PERCENT,
            MANY_OUTLIERS_RUNS,
            MATERIAL_SHARE_OF_MARGIN,
        ),
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
        ("warning", "info"),
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
