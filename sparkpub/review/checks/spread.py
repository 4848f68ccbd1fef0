"""How far runs of one cell lie apart: outliers, variation, and samples too small for what is said of them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from sparkpub.record.metrics import Metric
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.dependence import independent
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.order import drifting
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import (
    MATERIAL_SHARE_OF_MARGIN,
    View,
    about_cells,
    about_metrics,
    cause,
    floor,
    ids,
    label,
    listed,
)
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics import describe, outliers
from sparkpub.review.tables.cells import described

OUTLIER_ALPHA = Threshold(
    "outlier alpha",
    0.01,
    "Probability of a false outlier in a clean campaign (Grubbs or generalised ESD, Bonferroni).",
)
TOO_MANY_OUTLIERS_PERCENT = Threshold(
    "too many outliers percent",
    5.0,
    "Maximum share of outliers in a cell with 20 runs or more.",
)
TOO_MANY_OUTLIERS_RUNS = Threshold(
    "too many outliers runs",
    20,
    "Maximum share of outliers in a cell with 20 runs or more.",
)
HIGH_VARIATION_PERCENT = Threshold(
    "high variation percent",
    describe.POOR_VARIATION_PERCENT,
    "Maximum coefficient of variation that the methodology accepts.",
)
EFFECTIVE_RUNS = Threshold(
    "effective runs",
    float(describe.MINIMUM_RUNS),
    "Minimum number of runs, or of effective runs under autocorrelation.",
)
POWER = Threshold(
    "power",
    describe.WANTED_POWER,
    "Minimum power to detect a difference of 10 % in the methodology.",
)


def outlier(view: View) -> Iterator[Finding]:
    """Runs that a test able to fire at their n calls outliers, corrected for every cell and metric tested."""
    apart: dict[str, dict[str, tuple[Stored, list[str]]]] = defaultdict(dict)
    metrics: dict[str, list[str]] = defaultdict(list)
    for (cell, name), flagged in view.once(outlying).items():
        metric, values = view.metrics[name], view.figures(cell, name)
        runs = [run for run in view.counted[cell] if run.record.value(name) is not None]
        rest = describe.describe(
            [value for place, value in enumerate(values) if place not in flagged]
        )
        metrics[cause(metric)].append(name)
        for index in flagged:
            detail = (
                f"{metric.label} {metric.format(runs[index].record.value(name))}; the other runs of {label(cell)} have "
                f"{metric.format(rest.mean)} ± {metric.format(rest.sd)} (mean ± sample standard "
                f"deviation, n = {rest.n})"
            )
            run = runs[index]
            apart[cause(metric)].setdefault(run.record.run_id, (run, []))[1].append(
                detail
            )
    for abouts in _of_the_same_runs(apart):
        details: dict[str, tuple[Stored, list[str]]] = {}
        for about in abouts:
            for run_id, (run, told) in apart[about].items():
                details.setdefault(run_id, (run, []))[1].extend(told)
        names = list(dict.fromkeys(name for about in abouts for name in metrics[about]))
        yield from view.cases(
            "outlier",
            severity_of(view, names),
            [(run, "; ".join(told)) for run, told in details.values()],
            "is an outlier",
            "are outliers",
            **about_metrics(names),
        )


def _of_the_same_runs(apart: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """What runs are odd in, together where it is the same runs: they have one cause."""
    groups: dict[frozenset[str], list[str]] = defaultdict(list)
    for about, found in apart.items():
        groups[frozenset(found)].append(about)
    return list(groups.values())


def severity_of(view: View, names: Iterable[str]) -> Severity:
    """How bad an odd figure is for a reader: a note where the matrix declares primary metrics and these are others,
    which decide nothing."""
    matrix = view.campaign.matrix
    if matrix is None or not matrix.primary:
        return "warning"
    about = {cause(view.metrics[name]) for name in names}
    primary = {
        cause(view.metrics[name]) for name in matrix.primary if name in view.metrics
    }
    return "warning" if about & primary else "info"


def outlying(view: View) -> dict[tuple[Cell, str], tuple[int, ...]]:
    """(cell, metric) to the places of its outliers among the counted runs."""
    series = {
        (cell, name): values
        for cell in view.counted
        for name in view.once(independent)
        if len(set(values := view.figures(cell, name))) > 1
    }
    alpha = OUTLIER_ALPHA / max(1, len(series))
    found = {}
    for key, values in series.items():
        flagged = outliers.grubbs(values, alpha)
        middle = fmean(
            value for place, value in enumerate(values) if place not in flagged
        )
        material = tuple(
            place
            for place in flagged
            if view.matters(view.metrics[key[1]], values, values[place] - middle)
        )
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
            yield view.finding(
                "too-many-outliers",
                severity_of(view, [name]),
                text,
                cell=cell,
                metric=name,
                outliers=len(flagged),
                n=n,
            )


class Variation(NamedTuple):
    """A metric of a cell that varies too much between runs, by its coefficient of variation in percent."""

    metric: Metric
    cell: Cell
    cv_percent: float


def high_variation(view: View) -> Iterator[Finding]:
    """Cells whose runs differ more than repeatable ones do."""
    by_cause: dict[str, list[Variation]] = defaultdict(list)
    columns = described(view.values)
    for name in view.results:
        metric = view.metrics[name]
        for cell in view.counted:
            number = view.values.number_of.get((cell, name))
            if number is None:
                continue
            sd, cv_percent = columns["sd"][number], columns["cv_percent"][number]
            # Neither is above its limit where one run leaves none.
            varies = sd >= floor(metric) and cv_percent > HIGH_VARIATION_PERCENT
            if varies and not _by_outliers(view, cell, name):
                found = Variation(metric, cell, float(cv_percent))
                by_cause[cause(metric)].append(found)
    for spreads in by_cause.values():
        yield _variation(view, spreads)


def _by_outliers(view: View, cell: Cell, name: str) -> bool:
    """Whether a metric varies because of outliers, which have a finding of their own."""
    flagged = view.once(outlying).get((cell, name))
    if flagged is None:
        return False
    values = view.figures(cell, name)
    rest = [value for place, value in enumerate(values) if place not in flagged]
    cv_percent = describe.describe(rest).cv_percent if rest else None
    return cv_percent is not None and cv_percent <= HIGH_VARIATION_PERCENT


def _variation(view: View, spreads: Sequence[Variation]) -> Finding:
    worst = max(spreads, key=lambda spread: spread.cv_percent)
    values = view.figures(worst.cell, worst.metric.name)
    places = dict.fromkeys(spread.cell for spread in spreads)
    cells = [label(cell) for cell in places]
    metrics = list(dict.fromkeys(spread.metric.name for spread in spreads))
    also = ""
    if len(spreads) > 1:
        names = [view.metrics[name].within_sentence for name in metrics]
        also = f" In all, it is exceeded for {listed(names, 'metrics')} in {listed(cells, 'cells')}."
    text = (
        f"{worst.metric.label} of {label(worst.cell)} varies by {worst.cv_percent:.1f} % between runs (coefficient of "
        f"variation, n = {len(values)}; limit {HIGH_VARIATION_PERCENT:g} %).{also}"
    )
    highest: dict[str, float] = {}
    for spread in spreads:
        highest[label(spread.cell)] = max(
            spread.cv_percent, highest.get(label(spread.cell), 0.0)
        )
    return view.finding(
        "high-variation",
        severity_of(view, metrics),
        text,
        **about_cells(places),
        **about_metrics(metrics),
        cv_percent=worst.cv_percent,
        cv_percent_by_cell=highest,
        values=list(values),
    )


def small_sample(view: View) -> Iterator[Finding]:
    """Cells with too few runs, or too few independent ones, and comparisons without power."""
    small = {
        cell: runs
        for cell, runs in view.counted.items()
        if 0 < len(runs) < EFFECTIVE_RUNS
    }
    within = {
        cell: runs
        for cell, runs in small.items()
        if any(run.record.spreads or run.record.samples for run in runs)
    }
    alone = {cell: runs for cell, runs in small.items() if cell not in within}
    if alone:
        yield _few(view, alone, "nothing can be said of the spread")
    if within:
        yield _few(
            view,
            within,
            "the spread that is known is that of the repetitions within a run, and not from one run to the next",
        )
    for item in view.once(drifting):
        if item.n_effective < EFFECTIVE_RUNS:
            text = (
                f"{len(item.values)} runs of {label(item.cell)} are worth about {item.n_effective:.0f} independent "
                f"ones for {view.metrics[item.metric].label}: each resembles the one before (lag-1 autocorrelation "
                f"{item.trend.lag1:.2f})."
            )
            yield view.finding(
                "small-sample",
                "warning",
                text,
                cell=item.cell,
                metric=item.metric,
                n=len(item.values),
                n_effective=item.n_effective,
                lag1=item.trend.lag1,
            )
    yield from _powerless(view)


def _few(view: View, small: Mapping[Cell, Sequence[Stored]], so: str) -> Finding:
    """Cells with too few runs, and what follows."""
    cells = [label(cell) for cell in small]
    fewest = min(len(runs) for runs in small.values())
    who = f"{listed(cells, 'cells')} {'has' if len(cells) == 1 else 'have'}"
    return view.finding(
        "small-sample",
        "warning",
        f"{who} fewer than {EFFECTIVE_RUNS:g} runs (the smallest number is {fewest}): {so}.",
        **about_cells(small),
        n=fewest,
        runs=[run for some in small.values() for run in ids(some)],
    )


class Weak(NamedTuple):
    """A comparison that would miss a difference of 10 % in a metric, with its power."""

    metric: Metric
    base: Cell
    cell: Cell
    power: float


def _powerless(view: View) -> Iterator[Finding]:
    """Comparisons with the baseline that would miss a difference of 10 %, one finding per cause."""
    by_cause: dict[str, list[Weak]] = defaultdict(list)
    for name in view.results:
        metric = view.metrics[name]
        for cell in sorted(view.counted, key=lambda cell: (cell[2], cell[0])):
            base = (cell[0], view.campaign.baseline, cell[2])
            found = view.compared.get((cell, name))
            if found is None or _too_alike(view, base, cell, metric):
                continue
            power = found.overall.power_10_percent
            if power is None or power >= POWER:
                continue
            if not any(_by_outliers(view, place, name) for place in (base, cell)):
                by_cause[cause(metric)].append(Weak(metric, base, cell, power))
    for weak in by_cause.values():
        worst = min(weak, key=lambda found: found.power)
        n = [
            len(view.figures(place, worst.metric.name))
            for place in (worst.base, worst.cell)
        ]
        cells = dict.fromkeys(
            label(place) for found in weak for place in (found.base, found.cell)
        )
        metrics = list(dict.fromkeys(found.metric.name for found in weak))
        also = ""
        if len(weak) > 1:
            names = [view.metrics[name].within_sentence for name in metrics]
            also = f" It is below {100 * POWER:g} % for {listed(names, 'metrics')} in {listed(list(cells), 'cells')}."
        text = (
            f"The power to detect a difference of 10 % in {worst.metric.label} between {label(worst.base)} and "
            f"{label(worst.cell)} is {100 * worst.power:.0f} % (n = {n[0]} and {n[1]}): the runs vary too much for "
            f"their number.{also}"
        )
        yield view.finding(
            "small-sample",
            severity_of(view, metrics),
            text,
            cells=list(cells),
            **about_metrics(metrics),
            power_10_percent=worst.power,
            n=n,
        )


def _too_alike(view: View, base: Cell, cell: Cell, metric: Metric) -> bool:
    """Whether there are too few values, all are alike, or 10 % of them is next to nothing."""
    samples = [view.figures(place, metric.name) for place in (base, cell)]
    if min(map(len, samples)) < EFFECTIVE_RUNS:
        return True
    if all(len(set(sample)) == 1 for sample in samples):
        return True
    return 0.1 * abs(fmean(samples[0])) < floor(metric)


CHECKS = (
    Check(
        "outlier",
        "meaning",
        ("warning", "info"),
        "Any outliers?",
        outlier,
        thresholds=(OUTLIER_ALPHA, MATERIAL_SHARE_OF_MARGIN),
        remedy="Look for the cause in the log; exclude a run only for a cause that you can name (sparkpub quarantine).",
    ),
    Check(
        "too-many-outliers",
        "meaning",
        ("warning", "info"),
        "Too many outliers?",
        too_many_outliers,
        implies=frozenset({"outlier"}),
        thresholds=(TOO_MANY_OUTLIERS_PERCENT, TOO_MANY_OUTLIERS_RUNS),
        remedy="Look for another load on the machine, and re-run.",
    ),
    Check(
        "high-variation",
        "meaning",
        ("warning", "info"),
        "Do runs vary by less than 5 %?",
        high_variation,
        thresholds=(HIGH_VARIATION_PERCENT,),
        remedy="Make each run longer (more requests), or measure more runs.",
    ),
    Check(
        "small-sample",
        "meaning",
        ("warning", "info"),
        "Is the sample large enough?",
        small_sample,
        thresholds=(EFFECTIVE_RUNS, POWER),
        remedy="Measure more runs, with longer pauses if each resembles the one before.",
    ),
)
