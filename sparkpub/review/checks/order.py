"""Whether time shows in the figures: drift within cells, first runs that stand out, environments apart in time."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from sparkpub.record.metrics import Metric
from sparkpub.record.text import counted
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.dependence import independent
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import (
    MATERIAL_SHARE_OF_MARGIN,
    View,
    about_cells,
    ids,
    label,
    listed,
)
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics import compare, describe, design, drift

DRIFT_ALPHA = Threshold(
    "drift alpha",
    0.02,
    "Probability of a false drift finding in a clean campaign (Mann-Kendall, Holm).",
)
TRANSIENT_ALPHA = Threshold(
    "transient alpha",
    0.015,
    "Probability of a false first-run finding in a clean campaign (exact permutation test, Holm).",
)
EARLIER_SHARE = Threshold(
    "earlier share",
    design.EARLIER_SHARE,
    "Share of pairs of runs, one per environment, in which the same environment began first. It is about 0.5 if they "
    "alternate, and 1 for separate blocks. It does not apply to a random order, nor to an interleaved one with four "
    "complete rounds or more.",
)
FEW_SWITCHES = Threshold(
    "few switches",
    design.FEW_SWITCHES,
    "Environments also ran in blocks if a random order would change from one to the other as seldom with less than "
    "this probability.",
)


class Drifting(NamedTuple):
    """A metric of a cell that trends with run order; `p_adjusted` is Holm's over the `tests` of the campaign."""

    cell: Cell
    metric: str
    values: tuple[float, ...]
    trend: drift.Trend
    p_adjusted: float
    tests: int
    n_effective: float


def drifting(view: View) -> list[Drifting]:
    """Every trend that is beyond chance in the campaign as a whole and large enough to matter."""
    tests = {
        (cell, name): values
        for cell in view.ran
        for name in view.once(independent)
        if len(set(values := view.figures(cell, name, ran=True))) > 1
    }
    trends = drift.trends(list(tests.values()))
    adjusted = compare.holm([trend.p_value for trend in trends])
    found = []
    for ((cell, name), values), trend, p in zip(
        tests.items(), trends, adjusted, strict=True
    ):
        if p is None or p >= DRIFT_ALPHA:
            continue
        change = (trend.slope or 0) * (len(values) - 1)
        if view.matters(view.metrics[name], values, change):
            worth = float(describe.effective_n(values))
            found.append(Drifting(cell, name, values, trend, p, len(tests), worth))
    return found


def drifts(view: View) -> Iterator[Finding]:
    """Trends within cells, then transients across them."""
    by_metric = grouped(view.once(drifting), lambda item: item.metric)
    for name, items in by_metric.items():
        yield _drift(view, view.metrics[name], items)
    yield from _transients(view)


def _drift(view: View, metric: Metric, items: Sequence[Drifting]) -> Finding:
    """One metric that trends with run order in one cell or several; the figures are those of the clearest."""
    worst = min(items, key=lambda item: item.p_adjusted)
    change = (worst.trend.slope or 0) * (len(worst.values) - 1)
    cells = [label(item.cell) for item in items]
    direction = "rises" if change > 0 else "falls"
    also = ""
    if len(items) > 1:
        also = f" It drifts in {listed(cells, 'cells')}."
    text = (
        f"{metric.label} of {label(worst.cell)} {direction} with run order: by about {metric.format(abs(change))} from "
        f"the first of {len(worst.values)} runs to the last (Spearman {worst.trend.spearman:.2f}, Mann-Kendall "
        f"p = {worst.trend.p_value:.2g}, {worst.p_adjusted:.2g} corrected for {counted(worst.tests, 'test')}).{also} "
        "The mean depends on how long one measures."
    )
    runs = [run for item in items for run in ids(view.ran[item.cell])]
    return view.finding(
        "drift",
        "warning",
        text,
        **about_cells(item.cell for item in items),
        metric=metric.name,
        values=list(worst.values),
        runs=runs,
        slope_per_run=worst.trend.slope,
        p_value=worst.trend.p_value,
        p_adjusted=worst.p_adjusted,
        spearman=worst.trend.spearman,
        lag1=worst.trend.lag1,
    )


def _transients(view: View) -> Iterator[Finding]:
    """First runs that stand out in their cells, over all cells and over those of each environment."""
    groups: dict[tuple[str, str], dict[Cell, tuple[float, ...]]] = defaultdict(dict)
    environments = {cell[1] for cell in view.ran}
    for cell in view.ran:
        for name in view.once(independent):
            values = view.figures(cell, name, ran=True)
            if len(values) < 3:
                continue
            groups["*", name][cell] = values
            if len(environments) > 1:
                groups[cell[1], name][cell] = values
    tests = {
        group: drift.first_runs(list(blocks.values()))
        for group, blocks in groups.items()
    }
    adjusted = compare.holm([test.p_value for test in tests.values()])
    for ((where, name), test), p in zip(tests.items(), adjusted, strict=True):
        if p is not None and p < TRANSIENT_ALPHA:
            yield from _transient(view, where, name, groups[where, name], test, p)


def _transient(
    view: View,
    where: str,
    name: str,
    blocks: dict[Cell, tuple[float, ...]],
    test: drift.FirstRuns,
    p_adjusted: float,
) -> Iterator[Finding]:
    apart = fmean(values[0] - fmean(values[1:]) for values in blocks.values())
    metric = view.metrics[name]
    if view.matters(
        metric, [value for values in blocks.values() for value in values], apart
    ):
        side = f"{metric.format(abs(apart))} {'above' if apart > 0 else 'below'}"
        text = (
            f"The first run stands out in {len(blocks)} cells{'' if where == '*' else f' of {where}'}: its "
            f"{metric.label} is on average {side} that of the others (permutation p = {test.p_value:.2g}, "
            f"{p_adjusted:.2g} after correction). The figures include a cold start."
        )
        yield view.finding(
            "drift",
            "warning",
            text,
            cells=[label(cell) for cell in blocks],
            metric=name,
            runs=[view.ran[cell][0].record.run_id for cell in blocks],
            ranks=list(test.ranks),
            p_value=test.p_value,
            p_adjusted=p_adjusted,
        )


class Blocks(NamedTuple):
    """Two environments of one model that ran in blocks of time. `share` is the share of pairs of runs of which the
    one of `earlier` began first, `switches` how often they changed places: None where that is not known."""

    earlier: Cell
    later: Cell
    share: float
    switches: int | None
    runs: int


def order_confound(view: View) -> Iterator[Finding]:
    """Environments that were measured in blocks of time, and runs out of the planned order."""
    found = list(_in_blocks(view))
    if found:
        cells = dict.fromkeys(
            label(cell) for blocks in found for cell in (blocks.earlier, blocks.later)
        )
        first = max(found, key=lambda blocks: blocks.share)
        model, _, workload = first.earlier
        others = ""
        if len(found) > 1:
            others = f" The same holds for {len(found) - 1} more comparisons."
        text = (
            f"For {model}/{workload} {_when(first)}: any change over time counts as a difference between the "
            f"environments.{others}"
        )
        comparisons = [
            {
                "earlier": label(blocks.earlier),
                "later": label(blocks.later),
                "share": blocks.share,
                "switches": blocks.switches,
            }
            for blocks in found
        ]
        yield view.finding(
            "order-confound", "error", text, cells=list(cells), comparisons=comparisons
        )
    yield from _out_of_order(view)


def _when(blocks: Blocks) -> str:
    """When the runs of either environment began."""
    earlier, later = blocks.earlier[1], blocks.later[1]
    if blocks.share == 1:
        return f"all runs of {earlier} began before the first of {later}"
    if blocks.share >= EARLIER_SHARE:
        return (
            f"runs of {earlier} began before those of {later} in {100 * blocks.share:.0f} of 100 "
            "pairs"
        )
    if blocks.switches is None:
        return f"{earlier} and {later} ran in blocks of time"
    changed = counted(blocks.switches, "time")
    return f"{earlier} and {later} changed places only {changed} in {blocks.runs} runs"


def _in_blocks(view: View) -> Iterator[Blocks]:
    """Every cell whose comparison with the baseline is `confounded` by the order of its runs, on one machine or more.
    Their times are those of its first result of which this holds."""
    told = set[Cell]()
    for (cell, metric), found in view.compared.items():
        orders = [within.order for within in found.within.values()]
        if "blocked" in orders and cell not in told:
            told.add(cell)
            base = (cell[0], view.campaign.baseline, cell[2])
            yield _blocks(view, base, cell, metric)


def _blocks(view: View, base: Cell, cell: Cell, metric: str) -> Blocks:
    values = view.values
    parts = [values.part(values.number_of[place, metric]) for place in (base, cell)]
    times = [values.times[part].tolist() for part in parts]
    share = design.share_earlier(*times)
    changes = design.switches(*times)
    runs = sum(map(len, times))
    if share >= 0.5:
        return Blocks(base, cell, share, changes, runs)
    return Blocks(cell, base, 1 - share, changes, runs)


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
    if early:
        text = (
            f"{len(early)} of {len(firsts)} runs began before runs that the plan puts earlier, the first of them "
            f"{view.where(early[-1:])[0]}. The declared order was not followed, so drift may affect the comparisons."
        )
        cells = dict.fromkeys(label(run.record.cell) for run in early)
        yield view.finding(
            "order-confound", "warning", text, cells=list(cells), runs=ids(early[::-1])
        )


CHECKS = (
    Check(
        "drift",
        "meaning",
        ("warning",),
        "Do results drift with the order of the runs?",
        drifts,
        implies=frozenset({"small-sample"}),
        thresholds=(DRIFT_ALPHA, TRANSIENT_ALPHA, MATERIAL_SHARE_OF_MARGIN),
        remedy="Warm up longer, or pause until the machine is as before (gates:), and re-run.",
    ),
    Check(
        "order-confound",
        "meaning",
        ("error", "warning"),
        "Did the environments alternate?",
        order_confound,
        thresholds=(EARLIER_SHARE, FEW_SWITCHES),
        remedy="Re-run with order: interleaved.",
    ),
)
