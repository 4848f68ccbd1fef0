"""A metric against what a campaign varies: load, length or depth. Every run as a point, the means joined."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sparkpub.record.errors import SiteError
from sparkpub.record.metrics import Metric
from sparkpub.record.text import (
    SPACE,
    between,
    counted,
    extent,
    percent,
    rounded,
    spread,
    with_unit,
)
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics.growth import LEVEL_PERCENT, Growth, Shape, growth
from sparkpub.review.tables.column import TableRow
from sparkpub.site import sentences, sweeps
from sparkpub.site.figures import cell_table, marks, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import Chart
from sparkpub.site.figures.figure import Figure, Table
from sparkpub.site.figures.kind import Kind, Offer
from sparkpub.site.figures.rows import Row, cell_of
from sparkpub.site.figures.selection import Scope, Selection
from sparkpub.site.publication import slug
from sparkpub.site.sweeps import Axis, Line

SUFFIXES = {axis.name: f"by-{axis.name}" for axis in sweeps.AXES}
SUFFIXES[sweeps.LOAD.name] = "sweep"
"""Name of an axis to the end of its figures' names: `output-throughput-sweep`, `output-throughput-by-depth`."""
MOST_LINES = 6
"""So many lines are told apart by colour and shape; further ones are in the table."""
WIDE_RANGE = 4
"""From this ratio of the last value to the first on, the axis is logarithmic."""
MOST_TICKS = 8
"""So many values have room for their numbers on a phone."""
FOLD = 2
"""From this factor on growth is told in multiples, below in per cent."""
VERBS: dict[Shape, str] = {
    "level": f"changes by less than {LEVEL_PERCENT:g}{SPACE}%",
    "grows": "grows",
    "falls": "falls",
}
"""Of both ends of a line, which nothing tests."""


@dataclass(frozen=True)
class Curve:
    """A metric along a line of a sweep: the statistics of its cells with a mean, by rising value."""

    line: Line
    name: str
    cells: tuple[tuple[float, TableRow], ...]

    @property
    def growth(self) -> Growth:
        """How the means grow."""
        points = [(value, cell.mean) for value, cell in self.cells]
        return growth(points, repeated=all(cell.n > 1 for _, cell in self.cells))

    @property
    def has_a_shape(self) -> bool:
        """Whether there are means enough to show how they grow."""
        return len(self.cells) >= sweeps.SHOWS_A_SHAPE

    @property
    def last(self) -> float:
        """The mean at the largest value."""
        return float(self.cells[-1][1].mean)


def offers(campaign: Selection, metric: Metric) -> Iterator[Offer]:
    """`output-throughput-sweep` and the like, for each axis along which the metric was measured twice or more."""
    if not campaign.lines:
        return
    for axis in sweeps.AXES:
        if curves(campaign, axis, metric):
            name = f"{slug(metric.name)}-{SUFFIXES[axis.name]}"
            yield name, partial(figure, axis, metric)


def curves(selection: Selection, axis: Axis, metric: Metric) -> list[Curve]:
    """The lines of an axis along which a metric has two means or more: those with a shape first, the best first."""
    statistics = {cell.cell: cell for cell in selection.cells(metric)}
    found = []
    for line, name in _names(selection, axis).items():
        cells = []
        for value, cell in line.points:
            if cell in statistics:
                cells.append((value, statistics[cell]))
        if len(cells) > 1:
            found.append(Curve(line, name, tuple(cells)))
    found.sort(key=lambda curve: curve.last, reverse=metric.direction != "lower")
    return sorted(found, key=lambda curve: curve.has_a_shape, reverse=True)


def _names(selection: Selection, axis: Axis) -> dict[Line, str]:
    """The lines of an axis in the campaign's order, each with its name."""
    lines = [line for line in selection.lines if line.axis is axis]
    return sweeps.names(lines, selection.names.campaign(selection.campaign.name))


def figure(axis: Axis, metric: Metric, selection: Selection, key: str) -> Figure:
    """What shape the metric has along the axis, and where its knee is. Raises SiteError for a part without a line."""
    found = curves(selection, axis, metric)
    if not found:
        raise nothing_varies(key)
    shown = _drawn(found)
    drawn = {curve.name for curve in shown}
    # In the campaign's order, so that a line has one colour whatever the metric.
    names = [name for name in _names(selection, axis).values() if name in drawn]
    line = found[0].line
    subject = (
        selection.scope,
        metric,
        axis,
        tuple(names),
        _values(shown),
        line.title,
        _knee(shown),
    )
    runs = _runs(metric, selection, found)
    return selection.figure(
        key,
        Chart(draw, subject),
        {
            table: [row for row in rows if row.get(axis.line) in drawn]
            for table, rows in selection.data(metric, "runs", "cells").items()
        },
        flagged=metric,
        title=f"{metric.label} against {line.word}",
        says=sentence(metric, found),
        sample=" ".join(_notes(found, selection.excluded(runs))),
        table=_table(metric, found),
    )


def _drawn(found: Sequence[Curve]) -> Sequence[Curve]:
    """The best lines; where there are too many, those of the load that was measured most, so that they compare."""
    if len(found) <= MOST_LINES:
        return found
    by_load = grouped(found, lambda curve: curve.line.held)

    def points(alike: Sequence[Curve]) -> int:
        return sum(len(curve.cells) for curve in alike)

    most = max(by_load.values(), key=points)
    return most[:MOST_LINES] if len(most) > 1 else found[:MOST_LINES]


def nothing_varies(key: str) -> SiteError:
    """The error for a part of a campaign in which no two cells are on a line."""
    return SiteError(
        f"figure {key}: no two cells of this part differ in what the figure varies",
        remedy="leave out workload=, or ask for the whole campaign",
    )


def _runs(metric: Metric, selection: Selection, found: Sequence[Curve]) -> list[Row]:
    """The runs of the cells on the lines."""
    cells: set[Cell] = set()
    for curve in found:
        cells.update(cell for _, cell in curve.line.points)
    return [row for row in selection.runs_with(metric) if cell_of(row) in cells]


def _notes(found: Sequence[Curve], excluded: Mapping[str, str]) -> Iterator[str]:
    """How many runs there are, what was held fixed, and how many of the lines are drawn."""
    cells: list[TableRow] = []
    for curve in found:
        cells += [cell for _, cell in curve.cells]
    yield sentences.sample(cells, excluded)
    held = {curve.line.held for curve in found}
    if len(held) == 1 and held != {""}:
        yield f"All with {found[0].line.held}."
    if len(found) > MOST_LINES:
        yield f"{MOST_LINES} of {len(found)} lines are drawn, the best of one load; the table has all."


def _values(found: Sequence[Curve]) -> tuple[float, ...]:
    """Every value on the axis."""
    values: set[float] = set()
    for curve in found:
        values.update(value for value, _ in curve.cells)
    return tuple(sorted(values))


def _knee(found: Sequence[Curve]) -> float | None:
    """The value at the knee of a single line; several lines would need a mark each."""
    knee = found[0].growth.knee
    if len(found) > 1 or knee is None:
        return None
    return found[0].cells[knee][0]


# ---- The sentence ----------------------------------------------------------------------------------------------------


def sentence(metric: Metric, found: Sequence[Curve]) -> str:
    """The shape and the knee of one line in at most 20 words; of several, how many have which shape."""
    if len(found) > 1:
        return _several(metric, found)
    (curve,) = found
    line, grown = curve.line, curve.growth
    first, last = grown.points[0], grown.points[-1]
    ends = f"{metric.rounded(last[1], unit=False)} at {last[0]:,g}"
    if grown.knee is None:
        along = f"from {line.place(first[0])} to {last[0]:,g}"
        values = [metric.rounded(value, unit=False) for value in (first[1], last[1])]
        return f"{metric.subject} {_verb(grown)} {along}: {values[0]} to {with_unit(values[1], metric.unit)}."
    at, there = grown.points[grown.knee]
    begins = metric.rounded(first[1], unit=False)
    level, knee = metric.rounded(there), f"{line.place(at)} (the knee)"
    if grown.shape_before_knee == "level":
        return f"{metric.subject} stays near {level} up to {knee}, then {ends}."
    verb = VERBS[grown.shape_before_knee]
    return f"{metric.subject} {verb} from {begins} to {level} at {knee}, then {ends}."


def _verb(grown: Growth) -> str:
    """What a line without a knee does."""
    verb = VERBS[grown.shape]
    if grown.shape == "level" or grown.factor is None:
        return verb
    if grown.factor >= FOLD:
        return f"{verb} {rounded(grown.factor, 2)}-fold"
    share = percent(abs(100 * (grown.factor - 1)), 0).lstrip("+")
    return f"{verb} by {share}"


def _several(metric: Metric, found: Sequence[Curve]) -> str:
    """The shape that most lines have."""
    shapes = [curve.growth.shape for curve in found]
    shape = max(shapes, key=shapes.count)
    alike = [curve for curve in found if curve.growth.shape == shape]
    those = [curve.growth for curve in alike]
    along = f"with {found[0].line.word}"
    text = f"{metric.subject} {VERBS[shape]}"
    end = "."
    if len(those) < len(found):
        end = (
            f", but not on {len(found) - len(those)} of {counted(len(found), 'line')}."
        )
    factors = sorted(grown.factor for grown in those if grown.factor is not None)
    if shape == "level" or not factors:
        return f"{text} {along}{end}"
    if factors[-1] < FOLD:
        shares = sorted(abs(100 * (factor - 1)) for factor in factors)
        by = spread([between(shares[0], shares[-1], 0)], "%")
        return f"{text} by {by} {along}{end}"
    fold = f"{extent(factors).replace(' to ', '- to ')}-fold"
    return f"{text} {fold} {along}, up to {_highest(metric, alike)}{end}"


def _highest(metric: Metric, found: Sequence[Curve]) -> str:
    """The largest mean at the end of a line, with the name of the line."""
    curve = max(found, key=lambda curve: curve.last)
    return f"{metric.told(curve.last)} ({curve.name})"


# ---- Table and drawing -----------------------------------------------------------------------------------------------


def _table(metric: Metric, found: Sequence[Curve]) -> Table:
    """A row per cell: the value on the axis, n, mean with interval, and how often the first value."""
    mean = theme.axis_title("Mean", metric.unit)
    across = found[0].line.title
    head = ("Line", across, "n", mean, "95 % interval", "Relative to the first")
    body = []
    for curve in found:
        first = curve.cells[0][1].mean
        for value, cell in curve.cells:
            times = "n/a"
            if first:
                times = f"× {rounded(cell.mean / first)}"
            body.append(
                [
                    curve.name,
                    f"{value:,g}",
                    str(cell.n),
                    metric.format(cell.mean, unit=False),
                    cell_table.interval(metric, cell),
                    times,
                ]
            )
    return Table(head, body)


def draw(
    scope: Scope,
    metric: Metric,
    axis: Axis,
    names: tuple[str, ...],
    values: tuple[float, ...],
    across: str,
    knee: float | None,
) -> dict[str, Any]:
    """Rows `runs` as points, means of `cells` joined. `names` are those of the lines, `values` all on the axis,
    whose title is `across`. A dashed line marks the knee of a single line. Runs that are not in the figures are hollow.
    """
    x = _x(axis, across, values)
    y = marks.y("value", theme.metric_title(metric), zero=True)
    series = marks.lines(axis.line, names)
    points = marks.rows(scope, "runs", marks.has(metric.name))
    runs = marks.runs(
        points.transform_calculate(value=f"datum.{metric.name}"),
        series,
        x=x,
        y=y,
        tooltip=marks.run_tooltip(
            metric.label, metric.name, alt.Tooltip(f"{axis.name}:Q", title=across)
        ),
    )
    means = marks.rows(scope, "cells", marks.about(metric))
    lines = (
        means.transform_calculate(value="datum.mean")
        .mark_line()
        .encode(x=x, y=y, color=series.colour, strokeDash=series.dash)
    )
    layers = [lines, runs]
    if knee is not None:
        layers += _knee_marks(knee)
    return theme.finish(theme.layered(layers, height=300))


def _x(axis: Axis, across: str, values: Sequence[float]) -> "alt.X":
    """The axis with a tick at each value: logarithmic where the values span much, and none is zero."""
    first, last = values[0], values[-1]
    scale = alt.Scale(zero=False, nice=False, padding=14)
    if first > 0 and last / first >= WIDE_RANGE:
        scale = alt.Scale(type="log", base=2, nice=False, padding=14)
    # A logarithmic axis leaves out numbers that it finds too many, unless their text is an expression.
    ticks = alt.Axis(
        labelExpr="format(datum.value, ',')",
        values=list(values),
        tickCount=len(values),
        labelOverlap=len(values) > MOST_TICKS,
    )
    return alt.X(f"{axis.name}:Q", title=across, scale=scale, axis=ticks)


def _knee_marks(knee: float) -> list["alt.Chart"]:
    """A dashed line at the knee, with its name."""
    once = marks.once("cells")
    rule = once.mark_rule(strokeDash=[3, 3]).encode(x=alt.XDatum(knee))
    name = once.mark_text(align="right", dx=-5, fontSize=12, color=theme.FAINT)
    return [
        rule,
        name.encode(x=alt.XDatum(knee), y=alt.YValue(10), text=alt.TextValue("knee")),
    ]


KIND = Kind(of_metric=offers)
