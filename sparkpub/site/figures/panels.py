"""How cells stand in a chart: a panel for each workload, a row for each model, environments side by side in a row.

The best rows come first. A chart has room for `MOST_ROWS` rows; what is beyond it is in the table of the figure, and a
reader who filters the page sees the first rows of what is left.
"""

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from sparkpub.record.metrics import Metric
from sparkpub.review.dataset import CampaignData
from sparkpub.site.drawing.chart import Chart
from sparkpub.site.drawing.compile import NARROW
from sparkpub.site.figures import marks, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.scope import Scope
from sparkpub.site.figures.selection import Selection
from sparkpub.site.publication import cell_keys

MOST_ROWS = 24
"""Rows of a chart in all its panels: about a screen."""
MOST_PANELS = 8
"""Workloads of a chart."""
LEAST_ROWS = 4
"""Rows of a panel that many others stand beside."""
LETTER = 7.0
"""Mean width of a letter of an axis, in pixels; a reader's font may be wider than that of the build."""
MOST_LABEL = 190
"""Room for the names of rows, in pixels."""
BESIDE = 96
"""On a phone, longer names stand above their rows."""
ABOVE = 18
"""Room for a name above its row."""
GAP = 24
"""Beside the plot of a panel: the distance from its names, and half a number at its right end."""

BY_ITERATION = "(0.2 + 0.6 * datum.iteration / (datum.iterations + 1))"
"""Where a run stands within a strip, by a column with the largest `iterations`: the first at the top."""

Cell = tuple[str, str, str]
"""Model, environment and workload."""
Field = Literal["model", "environment", "pair"]
"""What a row is; a pair is a model in an environment."""
Draw = Callable[["Panel"], "list[alt.Chart]"]
"""The layers of a panel."""


@dataclass(frozen=True)
class Layout:
    """Which rows a chart has. `rows` maps each workload to the names of its rows, the first ones drawn; `most` is how
    many of them. `environments` share a row, where rows are models. `shown` has the workloads whose values are nearly
    equal, with what their axes show at least."""

    field: Field
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    most: int
    environments: tuple[str, ...]
    shown: tuple[tuple[str, marks.Span], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all rows that may be drawn."""
        return tuple(name for _, names in self.rows for name in names)

    def note(self, cells: Collection[Cell]) -> str:
        """What is not drawn, for a reader; empty where all is."""
        shown: set[tuple[str, str]] = set()
        for workload, names in self.rows:
            shown.update((workload, name) for name in names[: self.most])
        drawn = sum((cell[2], row_name(self.field, cell)) in shown for cell in cells)
        if drawn == len(cells):
            return ""
        return f" {drawn} of {len(cells)} cells are drawn, the first of each panel; the table has all."


def row_name(field: Field, cell: Cell) -> str:
    """The row to which a cell belongs."""
    model, environment, _ = cell
    if field == "pair":
        return f"{model}, {environment}"
    return model if field == "model" else environment


@dataclass(frozen=True)
class Panel:
    """One workload of a chart, for a page or, `narrow`, for a phone. A `titled` panel, the last one, says what lies
    along its axis; a `numbered` one has numbers there: of panels that share an axis the last."""

    scope: Scope
    layout: Layout
    workload: str
    rows: tuple[str, ...]
    narrow: bool
    titled: bool
    numbered: bool

    @property
    def names_above(self) -> bool:
        """Whether names stand above their rows, which leaves the plot its whole width."""
        return self.narrow and label_width(self.layout.names) > BESIDE

    def data(self, table: str, *conditions: str) -> "alt.Chart":
        """The rows of a table that belong to this panel; of more rows than it has room for, the first."""
        field = self.layout.field
        here = f"datum.workload === {self.workload!r}"
        known = f"indexof({list(self.rows)!r}, datum.{field}) >= 0"
        found = marks.rows(self.scope, table, here)
        if field == "pair":
            found = found.transform_calculate(
                pair="datum.model + ', ' + datum.environment"
            )
        for condition in (known, *conditions):
            found = found.transform_filter(condition)
        if len(self.rows) <= self.layout.most:
            return found
        return (
            found.transform_calculate(
                place=f"indexof({list(self.rows)!r}, datum.{field})"
            )
            .transform_window(
                rank="dense_rank()", sort=[alt.SortField("place", order="ascending")]
            )
            .transform_filter(f"datum.rank <= {self.layout.most}")
        )

    @property
    def y(self) -> "alt.Y":
        """The axis that lists the rows; names have the same room in all panels, so that plots stand in line."""
        width = label_width(self.layout.names)
        axis = alt.Axis(
            grid=True,
            labelColor=theme.TEXT,
            labels=not self.names_above,
            labelLimit=MOST_LABEL,
        )
        if self.names_above:
            width = 0
        axis.minExtent = width
        if len(self.layout.rows) > 1:
            axis.maxExtent = width
            axis.labelLimit = max(width, 1)
        padding = 0.5 if self.names_above else 0.2
        return alt.Y(
            f"{self.layout.field}:N",
            sort=list(self.rows),
            title=None,
            scale=alt.Scale(paddingInner=padding),
            axis=axis,
        )

    def x(self, metric: Metric, column: str, *, zero: bool) -> "alt.X":
        """A metric's values along the bottom."""
        title = theme.axis_title(metric.label, metric.unit)
        shown = dict(self.layout.shown).get(self.workload)
        return self.across(column, title, zero=zero, shown=shown)

    def across(
        self,
        column: str,
        title: str,
        *,
        zero: bool = False,
        shown: marks.Span | None = None,
    ) -> "alt.X":
        """The values of a column along the bottom, with numbers and title where the panel has them."""
        said = title if self.titled else None
        return marks.x(column, said, zero=zero, labels=self.numbered, shown=shown)

    @property
    def offset(self) -> "alt.YOffset":
        """Where a mark stands within its row: the column `offset` of `strips`."""
        sides = len(self.layout.environments)
        return alt.YOffset("offset:Q", scale=alt.Scale(domain=[0, sides], zero=False))

    def strips(self, rows: "alt.Chart", within: str = "0.5") -> "alt.Chart":
        """Rows with `offset`: which strip of their row, and where in it (an expression from 0 to 1)."""
        sides = list(self.layout.environments)
        side = "0"
        if len(sides) > 1:
            side = f"indexof({sides!r}, datum.environment)"
        return rows.transform_calculate(offset=f"{side} + {within}")

    @property
    def legend(self) -> str | None:
        """The title of the legend of environments, where rows do not name them."""
        return "Environment" if len(self.layout.environments) > 1 else None

    def height(self, step: int) -> int:
        """Pixels for rows of a height of `step`."""
        count = max(1, min(len(self.rows), self.layout.most))
        return count * (step + ABOVE if self.names_above else step)


def of_cells(
    selection: Selection,
    sizes: Mapping[Cell, float],
    *,
    highest_first: bool,
    side_by_side: bool = True,
) -> Layout:
    """The rows of the cells with a size, by it. Environments stand `side_by_side` in the row of their model, or each
    in a row of its own."""
    scope = selection.scope
    field = _field(scope, side_by_side=side_by_side)
    best: dict[str, dict[str, float]] = {}
    for cell in cell_keys(selection.campaign):
        if cell not in sizes or not scope.holds(*cell):
            continue
        size = -sizes[cell] if highest_first else sizes[cell]
        rows = best.setdefault(cell[2], {})
        name = row_name(field, cell)
        rows[name] = min(size, rows.get(name, size))
    shown = _roomiest({workload: len(rows) for workload, rows in best.items()})
    keep_order = field == "environment" and len(scope.environments) == 2
    found = []
    for workload in shown:
        rows = best[workload]
        names = list(rows)
        if not keep_order:
            names.sort(key=rows.__getitem__)
        found.append((workload, tuple(names)))
    if not found:
        found.append((scope.workloads[0], ()))
    environments = scope.environments
    if field != "model":
        environments = environments[:1]
    most = room_for([len(names) for _, names in found])
    return Layout(field, tuple(found), most, environments)


def _field(scope: Scope, *, side_by_side: bool) -> Field:
    """What tells rows apart: the environment where there is one model, else the model, with its environment where
    they do not share a row."""
    if len(scope.environments) == 1:
        return "model"
    if len(scope.models) == 1:
        return "environment"
    return "model" if side_by_side else "pair"


def _roomiest(rows: Mapping[str, int]) -> list[str]:
    """The workloads that are drawn, in their own order: those with the most rows, where there are too many."""
    most = sorted(rows, key=rows.__getitem__, reverse=True)[:MOST_PANELS]
    return [workload for workload in rows if workload in most]


@dataclass(frozen=True)
class Charts:
    """A chart and the same for a phone; `note` says what neither has room for."""

    chart: Chart
    narrow: Chart
    note: str = ""


def charts(
    draw: Callable[..., Any],
    selection: Selection,
    metric: Metric,
    *more: Any,
    cells: Container[Cell] | None = None,
) -> Charts:
    """`draw` with the rows that a metric has, of these `cells` or of all, the best mean first.

    It is given scope, metric, layout, `more`, and whether it is for a phone.
    """
    means = {cell.cell: cell.mean for cell in selection.cells(metric)}
    if cells is not None:
        means = {cell: mean for cell, mean in means.items() if cell in cells}
    rows = of_cells(selection, means, highest_first=metric.direction != "lower")
    rows = replace(rows, shown=_shown(selection, metric))
    subject = (selection.scope, metric, rows, *more)
    note = rows.note(means)
    return Charts(Chart(draw, subject), Chart(draw, (*subject, True)), note)


def _shown(selection: Selection, metric: Metric) -> tuple[tuple[str, marks.Span], ...]:
    """The workloads in which all runs of a metric are nearly equal, with what an axis shows at least."""
    values: dict[str, list[float]] = {}
    for row in selection.runs_with(metric):
        values.setdefault(row["workload"], []).append(row[metric.name])
    found = []
    for workload, all_runs in values.items():
        span = marks.least_axis(metric, all_runs)
        if span is not None:
            found.append((workload, span))
    return tuple(found)


def without_room(campaign: CampaignData) -> list[str]:
    """The workloads of a campaign for which a chart of all has no panel."""
    rows: dict[str, set[str]] = {}
    for model, _, workload in cell_keys(campaign):
        rows.setdefault(workload, set()).add(model)
    shown = _roomiest({workload: len(models) for workload, models in rows.items()})
    return [workload for workload in rows if workload not in shown]


def room_for(counts: Sequence[int]) -> int:
    """How many rows each panel may have, so that panels of these many rows have `MOST_ROWS` together."""
    for most in range(max(counts, default=0), LEAST_ROWS, -1):
        if sum(min(count, most) for count in counts) <= MOST_ROWS:
            return most
    return LEAST_ROWS


def label_width(names: Sequence[str]) -> int:
    """Room for the longest of the names, in pixels."""
    longest = max((len(name) for name in names), default=0)
    return min(MOST_LABEL, round(longest * LETTER) + 12)


def draw(
    scope: Scope,
    layout: Layout,
    layers: Draw,
    step: int,
    table: str,
    *,
    narrow: bool,
    shared_x: bool,
) -> dict[str, Any]:
    """The panels as one chart; a single one without its workload's name.

    `step` is the height of a row, `table` the rows by which names stand above theirs on a phone.
    """
    titled = []
    for place, (workload, rows) in enumerate(layout.rows, 1):
        last = place == len(layout.rows)
        numbered = last or not shared_x
        panel = Panel(scope, layout, workload, rows, narrow, last, numbered)
        drawn = layers(panel)
        if panel.names_above:
            drawn.append(marks.names(panel.data(table), panel.y, layout.field))
        view = theme.layered(drawn, height=panel.height(step))
        titled.append((workload, view))
    room = label_width(layout.names)
    return stacked(titled, room, narrow=narrow, shared_x=shared_x)


def stacked(
    titled: Sequence[tuple[str, theme.View]],
    room: int,
    *,
    narrow: bool,
    shared_x: bool,
) -> dict[str, Any]:
    """Panels below each other, each under its title; a single one goes without. `room` is that for names beside."""
    if len(titled) == 1:
        return theme.finish(titled[0][1], narrow=narrow)
    total = theme.WIDE
    if narrow:
        total = NARROW
        room = room if room <= BESIDE else 0
    panels = []
    for words, view in titled:
        title = {
            "text": words,
            "anchor": "start",
            "fontSize": 13,
            "color": theme.TEXT,
            # On a phone a long title needs the room of the names as well.
            "frame": "bounds" if narrow else "group",
            "limit": total,
        }
        panels.append({**view, "width": total - room - GAP, "title": title})
    stack = theme.stacked(panels, spacing=16, shared_x=shared_x)
    return theme.finish(stack, narrow=narrow)
