"""How far runs of one cell lie apart: outliers, variation, and samples too small for what is said of them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, stdev

import numpy as np

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
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics.estimate import (
    MINIMUM_RUNS,
    POOR_VARIATION_PERCENT,
    WANTED_POWER,
)
from sparkpub.review.statistics.series import beyond_three_sigma, grubbs

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
POWER = Threshold(
    "power",
    WANTED_POWER,
    "Minimum power to detect a difference of 10 % in the methodology.",
)


def outlier(view: View) -> Iterator[Finding]:
    """Runs that a test able to fire at their n calls outliers, corrected for every cell and metric tested, unless they
    are first runs that stand out in other cells too; and cells in which outliers are no longer rare: then they are part
    of what is measured."""
    said: dict[str, dict[str, str]] = defaultdict(dict)
    for (cell, name), places in view.once(outlying).items():
        if len(places) > 1:
            yield _many(view, cell, name, places)
            continue
        if places == (0,) and _is_cold(view, cell, name):
            continue
        for run, text in _odd_runs(view, cell, name, places).items():
            said[run][name] = text
    runs = {stored.run_id: stored for stored in view.happened}
    # What is odd in the same things has one cause.
    for alike in grouped(said, lambda run: _causes(view, said[run])).values():
        names = list(dict.fromkeys(name for run in alike for name in said[run]))
        yield from view.cases(
            "outlier",
            severity_of(view, names),
            [(runs[run], "; ".join(said[run].values())) for run in alike],
            "is an outlier",
            "are outliers",
            **about_metrics(names),
        )


def _odd_runs(
    view: View, cell: Cell, name: str, places: Sequence[int]
) -> dict[str, str]:
    """The outliers of a cell in a metric by the ids of their runs, in words."""
    metric, others = view.metrics[name], _others(view, cell, name, places)
    measured = view.measured(cell, name)
    return {
        run.run_id: f"{metric.within_sentence} {metric.format(value)} ({others})"
        for run, value in (measured[place] for place in places)
    }


def _others(view: View, cell: Cell, name: str, places: Sequence[int]) -> str:
    """The runs of a cell without its outliers, in words."""
    metric = view.metrics[name]
    rest = np.delete(view.figures(cell, name), places).tolist()
    sd = stdev(rest) if len(rest) > 1 else None
    return (
        f"the other {len(rest)} runs {metric.format(fmean(rest))} ± {metric.format(sd)}"
    )


def _many(view: View, cell: Cell, name: str, places: Sequence[int]) -> Finding:
    """So many runs of a cell are outliers in a metric that it is to be measured again."""
    metric, values = view.metrics[name], view.figures(cell, name)
    odd = listed([metric.format(values[place]) for place in places], "values")
    return view.finding(
        "outlier",
        severity_of(view, [name]),
        f"{len(places)} of {len(values)} runs of {label(cell)} are outliers in {metric.within_sentence} "
        f"({100 * len(places) / len(values):.0f} %): {odd}; {_others(view, cell, name, places)}.",
        cell=cell,
        metric=name,
        outliers=len(places),
        n=len(values),
        remedy="Look for another load on the machine, and re-run.",
    )


def _is_cold(view: View, cell: Cell, name: str) -> bool:
    """Whether the first run of a cell is one of those that stand out in a metric."""
    return any(
        first.metric.name == name and cell in first.blocks
        for first in view.once(first_runs_apart)
    )


def severity_of(view: View, names: Iterable[str]) -> Severity:
    """How bad odd figures of these metrics are for a reader: a note where the matrix declares primary metrics and these
    are others, which decide nothing."""
    matrix = view.campaign.matrix
    if matrix is None or not matrix.primary:
        return "warning"
    declared = [name for name in matrix.primary if name in view.metrics]
    if _causes(view, names) & _causes(view, declared):
        return "warning"
    return "info"


def _causes(view: View, names: Iterable[str]) -> frozenset[str]:
    return frozenset(cause(view, view.metrics[name]) for name in names)


def outlying(view: View) -> dict[CellMetric, tuple[int, ...]]:
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
        flagged = _many_beyond(values) or grubbs(values, alpha)
        middle = fmean(np.delete(values, flagged))
        material = tuple(
            place
            for place in flagged
            if view.matters(view.metrics[key[1]], values, values[place] - middle)
        )
        if material:
            found[key] = material
    return found


def _many_beyond(values: Sequence[float]) -> tuple[int, ...]:
    """The places of outliers by the methodology's rule, where they are more than it allows."""
    beyond = beyond_three_sigma(values)
    share = 100 * len(beyond) / len(values)
    if len(values) < MANY_OUTLIERS_RUNS or share <= MANY_OUTLIERS_PERCENT:
        return ()
    return beyond


def varying(view: View) -> dict[CellMetric, float]:
    """The metrics of cells whose runs differ more than repeatable ones do, with their coefficient of variation in
    percent."""
    return {
        (row.cell, row.metric): row.cv_percent
        for row in view.cells
        if row.metric in view.results
        and row.cv_percent is not None  # of one run
        and row.cv_percent > HIGH_VARIATION_PERCENT
        and row.sd >= floor(view.metrics[row.metric])
    }


def high_variation(view: View) -> Iterator[Finding]:
    """Cells whose runs vary for no cause that another finding tells, one finding for each thing that varies."""
    untold = {
        key: cv_percent
        for key, cv_percent in view.once(varying).items()
        if not _is_explained(view, *key)
    }
    for varies in _by_cause(view, untold):
        yield _variation(view, varies)


def _by_cause(
    view: View, found: Mapping[CellMetric, float]
) -> Iterator[dict[CellMetric, float]]:
    """What was found of metrics of cells, in parts that hang on one thing each."""
    causes = grouped(found, lambda key: cause(view, view.metrics[key[1]]))
    for keys in causes.values():
        yield {key: found[key] for key in keys}


def _is_explained(view: View, cell: Cell, name: str) -> bool:
    """Whether a metric varies because of what another finding tells: outliers, a first run or a trend."""
    root = root_of(view, name)
    if (cell, root) in view.once(moved):
        return True
    odd = view.once(outlying).get((cell, root), ())
    if _is_cold(view, cell, root):
        odd = (0, *odd)
    rest = np.delete(view.figures(cell, name), odd).tolist()
    if len(rest) < 2 or not fmean(rest):
        return False
    cv_percent = 100 * stdev(rest) / abs(fmean(rest))
    return bool(cv_percent <= HIGH_VARIATION_PERCENT)


def _variation(view: View, varies: Mapping[CellMetric, float]) -> Finding:
    cell, name = max(varies, key=lambda key: varies[key])
    values, cv_percent = view.figures(cell, name), varies[cell, name]
    text = (
        f"{view.metrics[name].label} of {label(cell)} varies by {cv_percent:.1f} % between its {len(values)} runs "
        f"(coefficient of variation; {HIGH_VARIATION_PERCENT:g} % is the limit)."
    )
    rising = sorted(varies, key=lambda key: varies[key])
    cells, names = zip(*varies, strict=True)
    return view.concerning(
        "high-variation",
        severity_of(view, names),
        text,
        cells,
        names,
        cases=len(varies),
        cv_percent=cv_percent,
        cv_percent_by_cell={label(cell): varies[cell, name] for cell, name in rising},
        values=list(values),
    )


def small_sample(view: View) -> Iterator[Finding]:
    """Cells with too few runs, and comparisons without power."""
    small = {
        cell: runs for cell, runs in view.counted.items() if 0 < len(runs) < LEAST_RUNS
    }
    for so, cells in grouped(small, lambda cell: _unknown(small[cell])).items():
        yield _few(view, {cell: small[cell] for cell in cells}, so)
    yield from _powerless(view)


def _unknown(runs: Iterable[Stored]) -> str:
    """What too few runs leave open."""
    if any(run.record.spreads or run.record.samples for run in runs):
        return "how far repetitions within a run differ is known, and how far runs do is not"
    return "how far runs differ is not known"


def _few(view: View, small: Mapping[Cell, Sequence[Stored]], so: str) -> Finding:
    """Cells with too few runs, and what follows."""
    cells = [label(cell) for cell in small]
    fewest, most = min(map(len, small.values())), max(map(len, small.values()))
    number = counted(most, "run") if fewest == most else f"{fewest} to {most} runs"
    have = "has" if len(cells) == 1 else "have"
    each = "" if len(cells) == 1 else " each"
    return view.finding(
        "small-sample",
        "warning",
        f"{listed(cells, 'cells')} {have} {number}{each}: {so}.",
        **about_cells(small),
        n=fewest,
        runs=[run for some in small.values() for run in ids(some)],
        remedy=f"Measure each at least {LEAST_RUNS:g} times.",
    )


def _powerless(view: View) -> Iterator[Finding]:
    """Comparisons with the baseline that would miss a difference of 10 %, one finding per cause. Where runs vary so
    much that a finding says so, none says it again."""
    weak: dict[CellMetric, float] = {}
    for (cell, name), (found, _) in view.compared.items():
        base, power = view.baseline_of(cell), found.power_10_percent
        if power is None or power >= POWER or _too_alike(view, base, cell, name):
            continue
        if not any(_is_told(view, place, name) for place in (base, cell)):
            weak[cell, name] = power
    for alike in _by_cause(view, weak):
        yield _without_power(view, alike)


def _is_told(view: View, cell: Cell, name: str) -> bool:
    """Whether another finding says that a metric of a cell varies or, like what it restates, moves."""
    moves = (cell, root_of(view, name)) in view.once(moved)
    return moves or (cell, name) in view.once(varying)


def _without_power(view: View, weak: Mapping[CellMetric, float]) -> Finding:
    """Comparisons that would miss a difference, by the one that most likely would."""
    cell, name = min(weak, key=lambda key: weak[key])
    base, power = view.baseline_of(cell), weak[cell, name]
    n = [len(view.figures(place, name)) for place in (base, cell)]
    text = (
        f"A difference of 10 % in {view.metrics[name].within_sentence} between {label(base)} and {label(cell)} would "
        f"be missed in {100 * (1 - power):.0f} of 100 such campaigns (n = {n[0]} and {n[1]})."
    )
    names = [name for _, name in weak]
    return view.concerning(
        "small-sample",
        severity_of(view, names),
        text,
        [place for cell, _ in weak for place in (view.baseline_of(cell), cell)],
        names,
        cases=len(weak),
        power_10_percent=power,
        n=n,
    )


def _too_alike(view: View, base: Cell, cell: Cell, name: str) -> bool:
    """Whether there are too few values, all are alike, or 10 % of them is next to nothing."""
    samples = [view.figures(place, name) for place in (base, cell)]
    if min(map(len, samples)) < LEAST_RUNS:
        return True
    if all(len(set(sample)) == 1 for sample in samples):
        return True
    return 0.1 * abs(fmean(samples[0])) < floor(view.metrics[name])


CHECKS = (
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
