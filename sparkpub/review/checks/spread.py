"""How far runs of one cell lie apart: outliers, variation, and samples too small for what is said of them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from statistics import fmean
from typing import NamedTuple

from sparkpub.record.metrics import Metric
from sparkpub.record.store import Stored
from sparkpub.record.text import counted
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.dependence import cause, independent, root_of
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.levels import moved
from sparkpub.review.checks.order import first_runs_apart
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import (
    MATERIAL_SHARE_OF_MARGIN,
    View,
    about_cells,
    about_metrics,
    floor,
    ids,
    label,
    listed,
)
from sparkpub.review.grouping import grouped
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
LEAST_RUNS = Threshold(
    "least runs",
    float(describe.MINIMUM_RUNS),
    "Minimum number of runs of a cell: below it no interval is given, and no verdict.",
)
POWER = Threshold(
    "power",
    describe.WANTED_POWER,
    "Minimum power to detect a difference of 10 % in the methodology.",
)


def outlier(view: View) -> Iterator[Finding]:
    """Runs that a test able to fire at their n calls outliers, corrected for every cell and metric tested. Where they
    are many, or first runs that stand out in other cells too, another finding says so."""
    odd = {
        key: places
        for key, places in view.once(outlying).items()
        if not _are_many(view, key) and not (places == (0,) and _is_cold(view, *key))
    }
    texts = {key: _odd_runs(view, *key, places) for key, places in odd.items()}
    by_cause = grouped(texts, lambda key: cause(view, view.metrics[key[1]]))
    # What is odd in the same runs has one cause.
    of_runs = grouped(
        by_cause.values(),
        lambda keys: frozenset(run for key in keys for run in texts[key]),
    )
    runs = {stored.run_id: stored for stored in view.happened}
    for groups in of_runs.values():
        keys = list(chain(*groups))
        cases: dict[str, list[str]] = defaultdict(list)
        for key in keys:
            for run, text in texts[key].items():
                cases[run].append(text)
        metrics = [
            view.metrics[name] for name in dict.fromkeys(name for _, name in keys)
        ]
        yield from view.cases(
            "outlier",
            severity_of(view, metrics),
            [(runs[run], "; ".join(told)) for run, told in cases.items()],
            "is an outlier",
            "are outliers",
            **about_metrics([metric.name for metric in metrics]),
        )


def _odd_runs(
    view: View, cell: Cell, name: str, places: Sequence[int]
) -> dict[str, str]:
    """The outliers of a cell in a metric by the ids of their runs, in words."""
    metric, others = view.metrics[name], _others(view, cell, view.metrics[name], places)
    measured = [run for run in view.counted[cell] if run.record.value(name) is not None]
    return {
        run.run_id: f"{metric.within_sentence} {metric.format(run.record.value(name))} ({others})"
        for run in (measured[place] for place in places)
    }


def _others(view: View, cell: Cell, metric: Metric, places: Sequence[int]) -> str:
    """The runs of a cell without its outliers, in words."""
    rest = describe.describe(_without(view.figures(cell, metric.name), places))
    spread = f"{metric.format(rest.mean)} ± {metric.format(rest.sd)}"
    return f"the other {rest.n} runs {spread}"


def _without(values: Sequence[float], places: Iterable[int]) -> list[float]:
    left_out = set(places)
    return [value for place, value in enumerate(values) if place not in left_out]


def _are_many(view: View, key: tuple[Cell, str]) -> bool:
    """Whether so many runs of a cell are outliers in a metric that they are part of what is measured."""
    n, flagged = len(view.figures(*key)), view.once(outlying)[key]
    share = 100 * len(flagged) / n
    return n >= TOO_MANY_OUTLIERS_RUNS and share > TOO_MANY_OUTLIERS_PERCENT


def _is_cold(view: View, cell: Cell, name: str) -> bool:
    """Whether the first run of a cell is one of those that stand out in a metric."""
    return any(
        first.metric.name == name and cell in first.blocks
        for first in view.once(first_runs_apart)
    )


def severity_of(view: View, metrics: Iterable[Metric]) -> Severity:
    """How bad an odd figure is for a reader: a note where the matrix declares primary metrics and these are others,
    which decide nothing."""
    matrix = view.campaign.matrix
    if matrix is None or not matrix.primary:
        return "warning"
    about = {cause(view, metric) for metric in metrics}
    declared = [view.metrics[name] for name in matrix.primary if name in view.metrics]
    primary = {cause(view, metric) for metric in declared}
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
    for (cell, name), places in view.once(outlying).items():
        if not _are_many(view, (cell, name)):
            continue
        metric, values = view.metrics[name], view.figures(cell, name)
        odd = listed([metric.format(values[place]) for place in places], "values")
        text = (
            f"{len(places)} of {len(values)} runs of {label(cell)} are outliers in {metric.within_sentence} "
            f"({100 * len(places) / len(values):.0f} %): {odd}; {_others(view, cell, metric, places)}."
        )
        yield view.finding(
            "too-many-outliers",
            severity_of(view, [metric]),
            text,
            cell=cell,
            metric=name,
            outliers=len(places),
            n=len(values),
        )


class Variation(NamedTuple):
    """A metric of a cell that varies too much between runs, by its coefficient of variation in percent."""

    metric: Metric
    cell: Cell
    cv_percent: float


def varying(view: View) -> dict[tuple[Cell, str], Variation]:
    """The metrics of cells whose runs differ more than repeatable ones do."""
    columns = described(view.values)
    found = {}
    for name in view.results:
        metric = view.metrics[name]
        for cell in view.counted:
            number = view.values.number_of.get((cell, name))
            if number is None:
                continue
            sd, cv_percent = columns["sd"][number], columns["cv_percent"][number]
            # Neither is above its limit where one run leaves none.
            if sd >= floor(metric) and cv_percent > HIGH_VARIATION_PERCENT:
                found[cell, name] = Variation(metric, cell, float(cv_percent))
    return found


def high_variation(view: View) -> Iterator[Finding]:
    """Cells whose runs vary for no cause that another finding tells, one finding for each thing that varies."""
    found = view.once(varying).items()
    told = [spread for key, spread in found if not _is_explained(view, *key)]
    for spreads in grouped(told, lambda spread: cause(view, spread.metric)).values():
        yield _variation(view, spreads)


def _is_explained(view: View, cell: Cell, name: str) -> bool:
    """Whether a metric varies because of what another finding tells: outliers, a first run, a trend or a step."""
    root = root_of(view, name)
    if _moves(view, cell, root):
        return True
    odd = view.once(outlying).get((cell, root), ())
    if _is_cold(view, cell, root):
        odd = (0, *odd)
    rest = _without(view.figures(cell, name), odd)
    cv_percent = describe.describe(rest).cv_percent if rest else None
    return cv_percent is not None and cv_percent <= HIGH_VARIATION_PERCENT


def _variation(view: View, spreads: Sequence[Variation]) -> Finding:
    worst = max(spreads, key=lambda spread: spread.cv_percent)
    values = view.figures(worst.cell, worst.metric.name)
    text = (
        f"{worst.metric.label} of {label(worst.cell)} varies by {worst.cv_percent:.1f} % between its {len(values)} "
        f"runs (coefficient of variation; {HIGH_VARIATION_PERCENT:g} % is the limit)."
    )
    highest: dict[str, float] = {}
    for spread in sorted(spreads, key=lambda spread: spread.cv_percent):
        highest[label(spread.cell)] = spread.cv_percent
    metrics = [spread.metric for spread in spreads]
    return view.concerning(
        "high-variation",
        severity_of(view, metrics),
        text,
        [spread.cell for spread in spreads],
        metrics,
        cases=len(spreads),
        cv_percent=worst.cv_percent,
        cv_percent_by_cell=highest,
        values=list(values),
    )


def small_sample(view: View) -> Iterator[Finding]:
    """Cells with too few runs, and comparisons without power."""
    small = {
        cell: runs for cell, runs in view.counted.items() if 0 < len(runs) < LEAST_RUNS
    }
    repeating = {
        cell: runs
        for cell, runs in small.items()
        if any(run.record.spreads or run.record.samples for run in runs)
    }
    alone = {cell: runs for cell, runs in small.items() if cell not in repeating}
    yield from _few(view, alone, "how far runs differ is not known")
    yield from _few(
        view,
        repeating,
        "how far repetitions within a run differ is known, and how far runs do is not",
    )
    yield from _powerless(view)


def _few(
    view: View, small: Mapping[Cell, Sequence[Stored]], so: str
) -> Iterator[Finding]:
    """Cells with too few runs, and what follows."""
    if not small:
        return
    cells = [label(cell) for cell in small]
    fewest, most = min(map(len, small.values())), max(map(len, small.values()))
    number = counted(most, "run") if fewest == most else f"{fewest} to {most} runs"
    have = "has" if len(cells) == 1 else "have"
    each = "" if len(cells) == 1 else " each"
    yield view.finding(
        "small-sample",
        "warning",
        f"{listed(cells, 'cells')} {have} {number}{each}: {so}.",
        **about_cells(small),
        n=fewest,
        runs=[run for some in small.values() for run in ids(some)],
        remedy=f"Measure each at least {LEAST_RUNS:g} times.",
    )


class Weak(NamedTuple):
    """A comparison that would miss a difference of 10 % in a metric, with its power."""

    metric: Metric
    base: Cell
    cell: Cell
    power: float


def _powerless(view: View) -> Iterator[Finding]:
    """Comparisons with the baseline that would miss a difference of 10 %, one finding per cause. Where runs vary so
    much that a finding says so, none says it again."""
    weak = []
    for (cell, name), found in view.compared.items():
        base, metric = (cell[0], view.campaign.baseline, cell[2]), view.metrics[name]
        power = found.overall.power_10_percent
        if power is None or power >= POWER or _too_alike(view, base, cell, metric):
            continue
        if not any(_is_told(view, place, name) for place in (base, cell)):
            weak.append(Weak(metric, base, cell, power))
    for items in grouped(weak, lambda item: cause(view, item.metric)).values():
        yield _without_power(view, items)


def _is_told(view: View, cell: Cell, name: str) -> bool:
    """Whether another finding says that a metric of a cell varies or moves."""
    return (cell, name) in view.once(varying) or _moves(view, cell, name)


def _moves(view: View, cell: Cell, name: str) -> bool:
    """Whether a metric of a cell, or what it restates, has a trend or a step."""
    return (cell, root_of(view, name)) in view.once(moved)


def _without_power(view: View, weak: Sequence[Weak]) -> Finding:
    """Comparisons that would miss a difference, by the one that most likely would."""
    worst = min(weak, key=lambda found: found.power)
    metric, places = worst.metric, (worst.base, worst.cell)
    n = [len(view.figures(place, metric.name)) for place in places]
    text = (
        f"A difference of 10 % in {metric.within_sentence} between {label(worst.base)} and {label(worst.cell)} would "
        f"be missed in {100 * (1 - worst.power):.0f} of 100 such campaigns (n = {n[0]} and {n[1]})."
    )
    metrics = [found.metric for found in weak]
    return view.concerning(
        "small-sample",
        severity_of(view, metrics),
        text,
        [place for found in weak for place in (found.base, found.cell)],
        metrics,
        cases=len(weak),
        power_10_percent=worst.power,
        n=n,
    )


def _too_alike(view: View, base: Cell, cell: Cell, metric: Metric) -> bool:
    """Whether there are too few values, all are alike, or 10 % of them is next to nothing."""
    samples = [view.figures(place, metric.name) for place in (base, cell)]
    if min(map(len, samples)) < LEAST_RUNS:
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
        thresholds=(LEAST_RUNS, POWER),
        remedy="Measure more runs, or longer ones.",
    ),
)
