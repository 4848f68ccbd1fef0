"""Whether the order of runs shows in the figures: first runs that stand out, and environments apart in time."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import chain
from statistics import fmean
from typing import Any, NamedTuple

from sparkpub.record.metrics import Metric
from sparkpub.record.text import counted
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.dependence import independent
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import (
    View,
    ids,
    label,
)
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics import order
from sparkpub.review.statistics.estimate import holm
from sparkpub.review.statistics.series import first_run_p

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


class FirstRunsApart(NamedTuple):
    """A metric whose first runs stand out in cells; `where` is their environment, empty for all of them."""

    metric: Metric
    where: str
    blocks: Mapping[Cell, tuple[float, ...]]
    p_value: float
    p_adjusted: float
    tests: int

    @property
    def apart(self) -> float:
        """How far the first runs lie from the others, on average."""
        blocks = self.blocks.values()
        return fmean(values[0] - fmean(values[1:]) for values in blocks)


def first_runs_apart(view: View) -> list[FirstRunsApart]:
    """First runs that stand out in their cells, over all cells and over those of each environment."""
    groups: dict[tuple[str, str], dict[Cell, tuple[float, ...]]] = defaultdict(dict)
    environments = {cell[1] for cell in view.ran}
    for cell in view.ran:
        for name in view.once(independent):
            values = view.figures(cell, name, ran=True)
            if len(values) < 3:
                continue
            groups["", name][cell] = values
            if len(environments) > 1:
                groups[cell[1], name][cell] = values
    tests: list[float | None] = [
        first_run_p(list(blocks.values())) for blocks in groups.values()
    ]
    adjusted = holm(tests)
    found = [
        FirstRunsApart(view.metrics[name], where, blocks, alone, p, len(tests))
        for ((where, name), blocks), alone, p in zip(
            groups.items(), tests, adjusted, strict=True
        )
        if alone is not None and p is not None and p < TRANSIENT_ALPHA
    ]
    return [
        first
        for first in found
        if view.matters(first.metric, list(chain(*first.blocks.values())), first.apart)
    ]


def corrected(p_adjusted: float, tests: int) -> str:
    """The p of one of several tests, corrected over all of them, in words."""
    return f"p = {p_adjusted:.2g} corrected for {counted(tests, 'test')}"


def first_runs(view: View) -> Iterator[Finding]:
    """One finding for each metric and environment whose first runs stand out."""
    for first in view.once(first_runs_apart):
        metric, apart = first.metric, first.apart
        where = f" of {first.where}" if first.where else ""
        more = "more" if apart > 0 else "less"
        text = (
            f"The first run of {len(first.blocks)} cells{where} has {metric.format(abs(apart))} {more} "
            f"{metric.within_sentence} than the others, on average (binomial test, "
            f"{corrected(first.p_adjusted, first.tests)}): the figures include a cold start."
        )
        yield view.finding(
            "drift",
            "warning",
            text,
            cells=[label(cell) for cell in first.blocks],
            metric=metric.name,
            runs=[view.ran[cell][0].record.run_id for cell in first.blocks],
            p_value=first.p_value,
            p_adjusted=first.p_adjusted,
        )


class Blocks(NamedTuple):
    """Two environments of one model that ran in blocks of time. `share` is the share of pairs of runs of which the
    one of `earlier` began first, `switches` how often they changed places: None where that is not known."""

    earlier: Cell
    later: Cell
    share: float
    switches: int | None
    runs: int

    @property
    def document(self) -> dict[str, Any]:
        """As evidence."""
        cells = {"earlier": label(self.earlier), "later": label(self.later)}
        return {**cells, "share": self.share, "switches": self.switches}


def order_confound(view: View) -> Iterator[Finding]:
    """Environments that were measured in blocks of time, and runs out of the planned order."""
    found = list(_in_blocks(view))
    if found:
        first = max(found, key=lambda blocks: blocks.share)
        model, _, workload = first.earlier
        others = ""
        if len(found) > 1:
            others = f" The same holds for {len(found) - 1} more comparisons."
        text = (
            f"For {model}/{workload} {_when(first)}: any change over time counts as a difference between the "
            f"environments.{others}"
        )
        comparisons = [blocks.document for blocks in found]
        cells = [each[side] for each in comparisons for side in ("earlier", "later")]
        yield view.finding(
            "order-confound",
            "error",
            text,
            cells=list(dict.fromkeys(cells)),
            comparisons=comparisons,
        )
    yield from _out_of_order(view)


def _when(blocks: Blocks) -> str:
    """When the runs of either environment began."""
    earlier, later = blocks.earlier[1], blocks.later[1]
    if blocks.share == 1:
        return f"all runs of {earlier} began before the first of {later}"
    if blocks.share >= EARLIER_SHARE:
        share = f"{100 * blocks.share:.0f} of 100 pairs"
        return f"runs of {earlier} began before those of {later} in {share}"
    if blocks.switches is None:
        return f"{earlier} and {later} ran in blocks of time"
    changed = counted(blocks.switches, "time")
    return f"{earlier} and {later} changed places only {changed} in {blocks.runs} runs"


def _in_blocks(view: View) -> Iterator[Blocks]:
    """Every cell whose comparison with the baseline is `confounded` by the order of its runs, on one machine or more.
    Their times are those of its first result of which this holds."""
    told = set[Cell]()
    for (cell, metric), (_, within) in view.compared.items():
        if cell in told or all(row.order != "blocked" for row in within):
            continue
        told.add(cell)
        base = view.baseline_of(cell)
        times, others = (
            [
                datetime.fromisoformat(run.record.started.value).timestamp()
                for run, _ in view.measured(place, metric)
            ]
            for place in (base, cell)
        )
        share, changes = (
            order.share_earlier(times, others),
            order.switches(times, others),
        )
        runs = len(times) + len(others)
        if share >= 0.5:
            yield Blocks(base, cell, share, changes, runs)
        else:
            yield Blocks(cell, base, 1 - share, changes, runs)


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
        "order-confound",
        "meaning",
        ("error", "warning"),
        "Did the environments alternate?",
        order_confound,
        thresholds=(EARLIER_SHARE, FEW_SWITCHES),
        remedy="Re-run with order: interleaved.",
    ),
)
