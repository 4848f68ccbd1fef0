"""Whether time shows in the figures: drift within cells, first runs that stand out, environments apart in time."""

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

from sparkpub.review.checks.check import Check
from sparkpub.review.checks.dependence import independent
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import MATERIAL_SHARE_OF_MARGIN, View, ids, label
from sparkpub.review.frame import Cell
from sparkpub.review.statistics import compare, describe, drift

DRIFT_ALPHA = Threshold(
    "drift alpha",
    0.02,
    "Chance that any metric of any cell of a clean campaign is said to drift (Mann-Kendall, Holm).",
)
TRANSIENT_ALPHA = Threshold(
    "transient alpha",
    0.015,
    "Chance that the first runs of a clean campaign are said to stand out (exact permutation test, Holm).",
)
CONFOUND_RUNS = Threshold(
    "confound runs",
    3,
    "Runs on each side below which separate blocks of time are unavoidable.",
)
CONFOUND_ALPHA = Threshold(
    "confound alpha",
    0.001,
    "A seeded random order may separate environments by chance; it is reported only where that chance is below this.",
)


class Drifting(NamedTuple):
    """A metric of a cell that trends with run order; `p_adjusted` is Holm's over the campaign."""

    cell: Cell
    metric: str
    values: tuple[float, ...]
    trend: drift.Trend
    p_adjusted: float
    n_effective: float


def drifting(view: View) -> list[Drifting]:
    """Every trend that is beyond chance in the campaign as a whole and large enough to matter."""
    tests = [(cell, name, values) for cell in view.ran for name in view.once(independent)
             if len(set(values := view.figures(cell, name, ran=True))) > 1]  # fmt: skip
    trends = [drift.trend(values) for *_, values in tests]
    adjusted = compare.holm([item.p_value for item in trends])
    return [
        Drifting(cell, name, values, item, p, float(describe.effective_n(values)))
        for (cell, name, values), item, p in zip(tests, trends, adjusted, strict=True)
        if p is not None and p < DRIFT_ALPHA and view.matters(values, (item.slope or 0) * (len(values) - 1))
    ]


def drifts(view: View) -> Iterator[Finding]:
    """Trends within cells, then transients across them."""
    for item in view.once(drifting):
        metric = view.metrics[item.metric]
        change = (item.trend.slope or 0) * (len(item.values) - 1)
        text = (
            f"{metric.label} of {label(item.cell)} {'rises' if change > 0 else 'falls'} with run order: by about "
            f"{metric.format(abs(change))} from the first of {len(item.values)} runs to the last "
            f"(Spearman {item.trend.spearman:.2f}, Mann-Kendall p = {item.trend.p_value:.2g}, "
            f"{item.p_adjusted:.2g} after correction). The mean depends on how long one measures."
        )
        yield view.finding("drift", "warning", text, cell=item.cell, metric=item.metric, values=list(item.values),
                           runs=ids(view.ran[item.cell]), slope_per_run=item.trend.slope, p_value=item.trend.p_value,
                           p_adjusted=item.p_adjusted, spearman=item.trend.spearman, lag1=item.trend.lag1)  # fmt: skip
    yield from _transients(view)


def _transients(view: View) -> Iterator[Finding]:
    """First runs that stand out in their cells, over all cells and over those of each environment."""
    groups: dict[tuple[str, str], dict[Cell, tuple[float, ...]]] = defaultdict(dict)
    environments = {cell[1] for cell in view.ran}
    for cell in view.ran:
        for name in view.once(independent):
            values = view.figures(cell, name, ran=True)
            for where in ("*", cell[1])[: len(environments)] if len(values) >= 3 else ():
                groups[where, name][cell] = values
    tests = {group: drift.first_runs(list(blocks.values())) for group, blocks in groups.items()}
    adjusted = compare.holm([test.p_value for test in tests.values()])
    for ((where, name), test), p in zip(tests.items(), adjusted, strict=True):
        if p is not None and p < TRANSIENT_ALPHA:
            yield from _transient(view, where, name, groups[where, name], test.ranks, test.p_value, p)


def _transient(view: View, where: str, name: str, blocks: dict[Cell, tuple[float, ...]], ranks: tuple[float, ...],
               p_value: float, p_adjusted: float) -> Iterator[Finding]:  # fmt: skip
    apart = fmean(values[0] - fmean(values[1:]) for values in blocks.values())
    metric = view.metrics[name]
    if view.matters([value for values in blocks.values() for value in values], apart):
        side = f"{metric.format(abs(apart))} {'above' if apart > 0 else 'below'}"
        text = (
            f"The first run stands out in {len(blocks)} cells{'' if where == '*' else f' of {where}'}: its "
            f"{metric.label} is on average {side} that of the others (permutation p = {p_value:.2g}, "
            f"{p_adjusted:.2g} after correction). A cold start is in the figures."
        )
        yield view.finding("drift", "warning", text, cells=[label(cell) for cell in blocks], metric=name,
                           runs=[view.ran[cell][0].record.run_id for cell in blocks], ranks=list(ranks),
                           p_value=p_value, p_adjusted=p_adjusted)  # fmt: skip


def order_confound(view: View) -> Iterator[Finding]:
    """Environments of one model that were measured in separate blocks of time."""
    groups: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell, runs in view.counted.items():
        if len(runs) >= CONFOUND_RUNS:
            groups[cell[0], cell[2]].append(cell)
    times = {cell: [run.record.started.value for run in runs] for cell, runs in view.counted.items()}
    for (model, workload), cells in groups.items():
        for one, other in combinations(sorted(cells, key=lambda cell: times[cell][0]), 2):
            first, then = times[one], times[other]
            if first[-1] < then[0] and not _by_lot(view, one, len(first), len(then)):
                text = (
                    f"For {model}/{workload} all {len(first)} runs of {one[1]} were over before the first of "
                    f"{other[1]} began: whatever changed with time counts as a difference between the environments."
                )
                yield view.finding("order-confound", "error", text, cells=[label(one), label(other)],
                                   last_started=first[-1], first_started=then[0])  # fmt: skip


def _by_lot(view: View, cell: Cell, one: int, other: int) -> bool:
    """Whether a random order, drawn beforehand, explains the separation."""
    drawn = all(run.record.plan.order == "random" for run in view.counted[cell])
    return drawn and 2 / math.comb(one + other, one) > CONFOUND_ALPHA


CHECKS = (
    Check(
        "drift",
        "meaning",
        ("warning",),
        "Are the runs of a cell alike whenever they ran?",
        drifts,
        implies=frozenset({"small-sample"}),
        thresholds=(DRIFT_ALPHA, TRANSIENT_ALPHA, MATERIAL_SHARE_OF_MARGIN),
    ),
    Check(
        "order-confound",
        "meaning",
        ("error",),
        "Did the environments take turns?",
        order_confound,
        thresholds=(CONFOUND_RUNS, CONFOUND_ALPHA),
    ),
)
