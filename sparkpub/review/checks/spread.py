"""How far runs of one cell lie apart: outliers, variation, and samples too small for what is said of them."""

from collections.abc import Iterator

from sparkpub.record.metrics import Metric
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.dependence import independent
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.order import drifting
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import MATERIAL_SHARE_OF_MARGIN, View, ids, label
from sparkpub.review.frame import Cell
from sparkpub.review.statistics import compare, describe, outliers

OUTLIER_ALPHA = Threshold(
    "outlier alpha",
    0.01,
    "Chance that any run of a clean campaign is called an outlier (Grubbs or generalised ESD, Bonferroni).",
)
TOO_MANY_OUTLIERS_PERCENT = Threshold(
    "too many outliers percent",
    5.0,
    "More than 5 % outliers, asked from 20 runs on: one of 20 is 5 %.",
)
TOO_MANY_OUTLIERS_RUNS = Threshold(
    "too many outliers runs",
    20,
    "More than 5 % outliers, asked from 20 runs on: one of 20 is 5 %.",
)
HIGH_VARIATION_PERCENT = Threshold(
    "high variation percent",
    5.0,
    "Coefficient of variation that the methodology accepts as repeatable.",
)
EFFECTIVE_RUNS = Threshold(
    "effective runs",
    4.0,
    "Runs, or runs' worth under autocorrelation, that carry a statement (`analysis.describe.MINIMUM_RUNS`).",
)
POWER = Threshold(
    "power",
    0.8,
    "Power against a 10 % difference that the methodology asks for.",
)


def outlier(view: View) -> Iterator[Finding]:
    """Runs that a test able to fire at their n calls outliers, corrected for every cell and metric tested."""
    for (cell, name), flagged in view.once(outlying).items():
        metric, values = view.metrics[name], view.figures(cell, name)
        runs = [run for run in view.counted[cell] if run.record.value(name) is not None]
        for index in flagged:
            rest = describe.describe([value for place, value in enumerate(values) if place not in flagged])
            text = (
                f"{metric.label} of this run is {metric.format(values[index])}; the other runs of {label(cell)} "
                f"have {metric.format(rest.mean)} ± {metric.format(rest.sd)} (mean ± sample standard deviation, "
                f"n = {rest.n})."
            )
            yield view.finding("outlier", "warning", text, run=runs[index], metric=name, value=values[index],
                               mean_of_others=rest.mean, sd_of_others=rest.sd, n=len(values))  # fmt: skip


def outlying(view: View) -> dict[tuple[Cell, str], tuple[int, ...]]:
    """(cell, metric) to the places of its outliers among the counted runs."""
    series = {(cell, name): values for cell in view.counted for name in view.once(independent)
              if len(set(values := view.figures(cell, name))) > 1}  # fmt: skip
    alpha = OUTLIER_ALPHA / max(1, len(series))
    found = {}
    for key, values in series.items():
        flagged = outliers.grubbs(values, alpha)
        middle = describe.describe([value for place, value in enumerate(values) if place not in flagged]).mean
        material = tuple(place for place in flagged if view.matters(values, values[place] - middle))
        if material:
            found[key] = material
    return found


def too_many_outliers(view: View) -> Iterator[Finding]:
    """Cells in which outliers are no longer rare: then they are part of what is measured."""
    for (cell, name), flagged in view.once(outlying).items():
        n = len(view.figures(cell, name))
        share = 100 * len(flagged) / n
        if n >= TOO_MANY_OUTLIERS_RUNS and share > TOO_MANY_OUTLIERS_PERCENT:
            words = view.metrics[name].label
            text = f"{len(flagged)} of {n} runs of {label(cell)} are outliers in {words} ({share:.0f} %)."
            yield view.finding("too-many-outliers", "warning", text, cell=cell, metric=name, outliers=len(flagged), n=n)


def high_variation(view: View) -> Iterator[Finding]:
    """Cells whose runs differ more than repeatable ones do."""
    for cell in view.counted:
        for name in view.results:
            values = view.figures(cell, name)
            cv = describe.describe(values).cv_percent if len(values) > 1 else None
            if cv is not None and cv > HIGH_VARIATION_PERCENT:
                text = (
                    f"{view.metrics[name].label} of {label(cell)} varies by {cv:.1f} % between runs (coefficient of "
                    f"variation, n = {len(values)}); up to {HIGH_VARIATION_PERCENT:g} % count as repeatable."
                )
                yield view.finding("high-variation", "warning", text, cell=cell, metric=name, cv_percent=cv,
                                   values=list(values))  # fmt: skip


def small_sample(view: View) -> Iterator[Finding]:
    """Cells with too few runs, or too few independent ones, and comparisons without power."""
    for cell, runs in view.counted.items():
        if 0 < len(runs) < EFFECTIVE_RUNS:
            text = (
                f"{label(cell)} has {len(runs)} {'run' if len(runs) == 1 else 'runs'}; below "
                f"{EFFECTIVE_RUNS:g} nothing can be said of its spread."
            )
            yield view.finding("small-sample", "warning", text, cell=cell, n=len(runs), runs=ids(runs))
    for item in view.once(drifting):
        if item.n_effective < EFFECTIVE_RUNS:
            text = (
                f"{len(item.values)} runs of {label(item.cell)} are worth about {item.n_effective:.0f} independent "
                f"ones for {view.metrics[item.metric].label}: each resembles the one before (lag-1 autocorrelation "
                f"{item.trend.lag1:.2f})."
            )
            yield view.finding("small-sample", "warning", text, cell=item.cell, metric=item.metric,
                               n=len(item.values), n_effective=item.n_effective, lag1=item.trend.lag1)  # fmt: skip
    yield from _powerless(view)


def _powerless(view: View) -> Iterator[Finding]:
    for cell in sorted(view.counted, key=lambda cell: (cell[2], cell[0])):
        base = (cell[0], view.campaign.baseline, cell[2])
        for name in view.results if base in view.counted and cell != base else ():
            yield from _power(view, base, cell, view.metrics[name])


def _power(view: View, base: Cell, cell: Cell, metric: Metric) -> Iterator[Finding]:
    samples = [view.figures(place, metric.name) for place in (base, cell)]
    if min(map(len, samples)) < EFFECTIVE_RUNS or not any(len(set(sample)) > 1 for sample in samples):
        return
    margin = view.campaign.margin_percent
    compared = compare.compare(*samples, order="random", margin_percent=margin, unit=metric.unit)
    power = compared.power_10_percent
    if power is not None and power < POWER:
        text = (
            f"A difference of 10 % in {metric.label} between {label(base)} and {label(cell)} would be missed in "
            f"{100 * (1 - power):.0f} of 100 such campaigns: the runs vary too much for their number "
            f"({len(samples[0])} and {len(samples[1])})."
        )
        yield view.finding("small-sample", "warning", text, cells=[label(base), label(cell)], metric=metric.name,
                           power_10_percent=power, n=[len(sample) for sample in samples])  # fmt: skip


CHECKS = (
    Check(
        "outlier",
        "meaning",
        ("warning",),
        "Does any run stand apart from its cell?",
        outlier,
        thresholds=(OUTLIER_ALPHA, MATERIAL_SHARE_OF_MARGIN),
    ),
    Check(
        "too-many-outliers",
        "meaning",
        ("warning",),
        "Are outliers rare?",
        too_many_outliers,
        implies=frozenset({"outlier"}),
        thresholds=(TOO_MANY_OUTLIERS_PERCENT, TOO_MANY_OUTLIERS_RUNS),
    ),
    Check(
        "high-variation",
        "meaning",
        ("warning",),
        "Do runs repeat within 5 %?",
        high_variation,
        thresholds=(HIGH_VARIATION_PERCENT,),
    ),
    Check(
        "small-sample",
        "meaning",
        ("warning",),
        "Are there runs enough for what is said?",
        small_sample,
        thresholds=(EFFECTIVE_RUNS, POWER),
    ),
)
