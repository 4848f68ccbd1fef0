"""How cells stand in a chart: a panel for each workload, a row for each model, environments side by side in a row.

The best rows come first. A chart has room for `MOST_ROWS` rows; what is beyond it is in the table of the figure.
"""

import json
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from sparkpub.record.metrics import Metric
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Cell
from sparkpub.site.figures import marks, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import NARROW, WIDE, Chart
from sparkpub.site.figures.rows import Row, cell_of
from sparkpub.site.figures.selection import Scope, Selection
from sparkpub.site.publication import cell_keys

MOST_ROWS = 24
"""Rows of a chart in all its panels: about a screen."""
MOST_PANELS = 8
"""Workloads of a chart."""
LEAST_ROWS = 4
"""Rows of a panel that many others stand beside."""
LETTER = 7.0
"""Mean width of a letter of an axis, in pixels; a reader's font may be wider than that of the build."""
MOST_LABEL = 232
"""Room for the names of rows, in pixels."""
BESIDE = 96
"""On a phone, longer names stand above their rows."""
ABOVE = 18
"""Room for a name above its row."""
VISIBLE = 1 / 16
"""Of an axis: runs of a row that spread less are drawn on one line."""
GAP = 24
"""Beside the plot of a panel: the distance from its names, and half a number at its right end."""

Field = Literal["model", "environment", "pair"]
"""What a row is; a pair is a model in an environment."""


@dataclass(frozen=True)
class Layout:
    """Which rows a chart of a scope has. `rows` maps each workload to the names of its rows. `environments` share a
    row, where rows are models. `shown` has the workloads whose values are nearly equal, with what their axes show at
    least, and `piled` those whose runs lie so close together in their rows that the axis does not part them."""

    scope: Scope
    field: Field
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    environments: tuple[str, ...]
    shown: tuple[tuple[str, marks.Span], ...] = ()
    piled: tuple[str, ...] = ()

    @property
    def side_by_side(self) -> bool:
        """Whether several environments share a row."""
        return len(self.environments) > 1

    @property
    def names(self) -> tuple[str, ...]:
        """What readers call all rows that may be drawn."""
        return tuple(self.called(row) for _, rows in self.rows for row in rows)

    def called(self, row: str) -> str:
        """What readers call a row."""
        if self.field != "pair":
            return self.scope.name(row)
        return ", ".join(self.scope.name(key) for key in row.split(", "))

    def in_words(self, value: str) -> str:
        """A Vega expression: what readers call the row that an expression gives."""
        rows = list(dict.fromkeys(row for _, rows in self.rows for row in rows))
        called = [self.called(row) for row in rows]
        return f"{json.dumps(called)}[indexof({json.dumps(rows)}, {value})]"

    def row_height(self, strip: int, *, least: int) -> int:
        """Pixels for a row in which each environment has a strip of its own."""
        return max(least, strip * len(self.environments))

    def note(self, cells: Collection[Cell]) -> str:
        """What is not drawn, for a reader; empty where all is."""
        rows = dict(self.rows)
        drawn = 0
        for cell in cells:
            drawn += row_name(self.field, cell) in rows.get(cell[2], ())
        if drawn == len(cells):
            return ""
        return f" {drawn} of {len(cells)} cells are drawn, the first of each panel; the table has all."


def row_name(field: Field, cell: Cell) -> str:
    """The row to which a cell belongs."""
    model, environment, _ = cell
    names = {
        "model": model,
        "environment": environment,
        "pair": f"{model}, {environment}",
    }
    return names[field]


@dataclass(frozen=True)
class Panel:
    """One workload of a chart, for a page or, `narrow`, for a phone. A `titled` panel, the last one, says what lies
    along its axis; a `numbered` one has numbers there: of panels that share an axis the last."""

    layout: Layout
    workload: str
    rows: tuple[str, ...]
    narrow: bool
    titled: bool
    numbered: bool
    step: int
    """Height of a row, in pixels."""

    @property
    def names_above(self) -> bool:
        """Whether names stand above their rows, which leaves the plot its whole width."""
        return stand_above(self.layout.names, narrow=self.narrow)

    def data(self, table: str, *conditions: str) -> "alt.Chart":
        """The rows of a table that belong to this panel."""
        field = self.layout.field
        here = marks.equal("workload", self.workload)
        found = marks.rows(self.layout.scope, table, here)
        if field == "pair":
            found = found.transform_calculate(
                pair="datum.model + ', ' + datum.environment"
            )
        for condition in (marks.among(field, self.rows), *conditions):
            found = found.transform_filter(condition)
        return found

    @property
    def y(self) -> "alt.Y":
        """The axis that lists the rows; names have the same room in all panels, so that plots stand in line."""
        width, padding = label_width(self.layout.names), 0.2
        if self.names_above:
            width, padding = 0, ABOVE / (self.step + ABOVE)
        axis = alt.Axis(
            grid=True,
            labelColor=theme.TEXT,
            labels=not self.names_above,
            labelLimit=MOST_LABEL,
            minExtent=width,
        )
        if not self.names_above:
            axis.labelExpr = self.layout.in_words("datum.label")
        if len(self.layout.rows) > 1:
            axis.maxExtent = width
            axis.labelLimit = max(width, 1)
        return alt.Y(
            f"{self.layout.field}:N",
            sort=list(self.rows),
            title=None,
            scale=alt.Scale(paddingInner=padding),
            axis=axis,
        )

    def x(self, metric: Metric, column: str, *, zero: bool) -> "alt.X":
        """A metric's values along the bottom."""
        title = theme.metric_title(metric)
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
        said = None
        if self.titled:
            said = title
        return marks.x(column, said, zero=zero, labels=self.numbered, shown=shown)

    def runs(self, rows: "alt.Chart", **channels: Any) -> "alt.Chart":
        """Runs as points, those of a strip below each other in order of iteration."""
        rows = rows.transform_joinaggregate(iterations="max(iteration)")
        # The first of a strip stands at the top, and none at its edge; below each other, runs that are alike would look
        # like a bar.
        place = "(0.2 + 0.6 * datum.iteration / (datum.iterations + 1))"
        if self.workload in self.layout.piled:
            place = "0.5"
        return marks.runs(
            self.strips(rows, place),
            self.environments,
            y=self.y,
            yOffset=self.offset,
            **channels,
        )

    @property
    def offset(self) -> "alt.YOffset":
        """Where a mark stands within its row: the column `offset` of `strips`."""
        sides = len(self.layout.environments)
        return alt.YOffset("offset:Q", scale=alt.Scale(domain=[0, sides], zero=False))

    def strips(self, rows: "alt.Chart", within: str = "0.5") -> "alt.Chart":
        """Rows with `offset`: which strip of their row, and where in it (an expression from 0 to 1)."""
        side = "0"
        if self.layout.side_by_side:
            side = f"indexof({list(self.layout.environments)!r}, datum.environment)"
        return rows.transform_calculate(offset=f"{side} + {within}")

    @property
    def beside(self) -> "dict[str, alt.YOffset]":
        """The channel that puts the bars of environments beside each other in the row that they share."""
        if not self.layout.side_by_side:
            return {}
        names = list(self.layout.environments)
        return {"yOffset": alt.YOffset("environment:N", sort=names)}

    @property
    def environments(self) -> theme.Series:
        """The environments, with a legend where rows do not name them."""
        title = None
        if self.layout.side_by_side:
            title = "Environment"
        return marks.environments(self.layout.scope, title, self.layout.environments)

    @property
    def height(self) -> int:
        """Pixels for all rows."""
        step = self.step
        if self.names_above:
            step += ABOVE
        return step * max(1, len(self.rows))


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
        size = sizes[cell]
        if highest_first:
            size = -size
        rows = best.setdefault(cell[2], {})
        name = row_name(field, cell)
        rows[name] = min(size, rows.get(name, size))
    keep_order = field == "environment" and len(scope.environments) == 2
    found: dict[str, tuple[str, ...]] = {}
    for workload in _roomiest(best):
        names = list(best[workload])
        if not keep_order:
            names.sort(key=best[workload].__getitem__)
        found[workload] = tuple(names)
    most = room_for([len(names) for names in found.values()])
    found = {workload: names[:most] for workload, names in found.items()}
    environments = _drawn_environments(scope, sizes, field, found)
    if field != "model":
        environments = environments[:1]
    drawn = tuple(found.items()) or ((scope.workloads[0], ()),)
    return Layout(scope, field, drawn, environments)


def _drawn_environments(
    scope: Scope,
    cells: Collection[Cell],
    field: Field,
    rows: Mapping[str, Sequence[str]],
) -> tuple[str, ...]:
    """The environments that some row has which is drawn: the others need no room and no place in the legend."""
    used = set()
    for cell in cells:
        _, environment, workload = cell
        if row_name(field, cell) in rows.get(workload, ()):
            used.add(environment)
    return tuple(name for name in scope.environments if name in used)


def _field(scope: Scope, *, side_by_side: bool) -> Field:
    """What tells rows apart: the environment where there is one model, else the model, with its environment where
    they do not share a row."""
    if len(scope.environments) == 1:
        return "model"
    if len(scope.models) == 1:
        return "environment"
    if side_by_side:
        return "model"
    return "pair"


def _roomiest(rows: Mapping[str, Collection[str]]) -> list[str]:
    """The workloads that are drawn, in their own order: those with the most rows, where there are too many."""
    most = sorted(rows, key=lambda name: len(rows[name]), reverse=True)[:MOST_PANELS]
    return [workload for workload in rows if workload in most]


def chart(
    draw: Callable[..., Any],
    selection: Selection,
    metric: Metric,
    *more: Any,
    cells: Container[Cell] | None = None,
    percent: Sequence[Row] = (),
) -> tuple[Chart, str]:
    """`draw` with the rows that a metric has, of these `cells` or of all, the best mean first; and a note of what there
    is no room for.

    It is given metric, layout, `more`, and True for a phone. `percent` are runs with a column of that name, where that
    is what all panels draw on one axis.
    """
    means = {}
    for cell in selection.cells(metric):
        if cells is None or cell.cell in cells:
            means[cell.cell] = cell.mean
    rows = of_cells(selection, means, highest_first=metric.direction != "lower")
    if percent:
        piled = _piled(percent, "percent", rows, shared=True)
    else:
        runs = selection.runs_with(metric)
        piled = _piled(runs, metric.name, rows, shared=False)
    rows = replace(rows, shown=_shown(selection, metric), piled=piled)
    return Chart(draw, (metric, rows, *more), phone=(True,)), rows.note(means)


def _shown(selection: Selection, metric: Metric) -> tuple[tuple[str, marks.Span], ...]:
    """The workloads in which all runs of a metric are nearly equal, with what an axis shows at least."""
    rows = grouped(selection.runs_with(metric), lambda row: str(row["workload"]))
    found = []
    for workload, runs in rows.items():
        span = marks.least_axis(metric, [run[metric.name] for run in runs])
        if span is not None:
            found.append((workload, span))
    return tuple(found)


def _piled(
    runs: Sequence[Row], column: str, layout: Layout, *, shared: bool
) -> tuple[str, ...]:
    """The workloads in which no row spreads visibly over the axis, which all workloads share or each has by itself."""
    drawn = {workload for workload, _ in layout.rows}
    of_cells = grouped([run for run in runs if run["workload"] in drawn], cell_of)
    spans: dict[str, list[float]] = {}
    widest: dict[str, float] = {}
    for (_, _, workload), mine in of_cells.items():
        values = [float(run[column]) for run in mine]
        spans.setdefault(workload, []).extend(values)
        width = max(values) - min(values)
        widest[workload] = max(widest.get(workload, 0.0), width)
    every = [value for values in spans.values() for value in values]
    found = []
    for workload, values in spans.items():
        axis = every if shared else values
        if widest[workload] < VISIBLE * (max(axis) - min(axis)):
            found.append(workload)
    return tuple(found)


def without_room(campaign: CampaignData) -> list[str]:
    """The workloads of a campaign for which a chart of all has no panel."""
    rows: dict[str, set[str]] = {}
    for model, _, workload in cell_keys(campaign):
        rows.setdefault(workload, set()).add(model)
    shown = _roomiest(rows)
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
    return round(longest * LETTER) + 12


def stand_above(names: Sequence[str], *, narrow: bool) -> bool:
    """Whether names have no room beside their rows."""
    most = MOST_LABEL
    if narrow:
        most = BESIDE
    return label_width(names) > most


def draw(
    layout: Layout,
    layers: "Callable[[Panel], list[alt.Chart]]",
    step: int,
    table: str,
    *,
    narrow: bool,
    shared_x: bool,
) -> dict[str, Any]:
    """The panels as one chart, each with its `layers`; a single one without its workload's name.

    `step` is the height of a row, `table` the rows by which names stand above theirs on a phone.
    """
    titled = []
    for place, (workload, rows) in enumerate(layout.rows, 1):
        last = place == len(layout.rows)
        numbered = last or not shared_x
        panel = Panel(layout, workload, rows, narrow, last, numbered, step)
        drawn = layers(panel)
        if panel.names_above:
            words = layout.in_words(f"datum.{layout.field}")
            own = panel.data(table)
            drawn.append(marks.names(own, panel.y, layout.field, words, height=step))
        view = theme.layered(drawn, height=panel.height)
        titled.append((layout.scope.name(workload), view))
    return stacked(titled, layout.names, narrow=narrow, shared_x=shared_x)


def stacked(
    titled: Sequence[tuple[str, theme.VegaView]],
    names: Sequence[str],
    *,
    narrow: bool,
    shared_x: bool,
) -> dict[str, Any]:
    """Panels below each other, each under its title; a single one goes without. `names` are those of all rows."""
    if len(titled) == 1:
        return theme.finish(titled[0][1])
    total, frame = WIDE, "group"
    if narrow:
        # On a phone a long title needs the room of the names as well.
        total, frame = NARROW, "bounds"
    room = label_width(names)
    if stand_above(names, narrow=narrow):
        room = 0
    panels = []
    for words, view in titled:
        title = {
            "text": words,
            "anchor": "start",
            "fontSize": 13,
            "color": theme.TEXT,
            "frame": frame,
            "limit": total,
        }
        panels.append({**view, "width": total - room - GAP, "title": title})
    stack = theme.stacked(panels, spacing=16, shared_x=shared_x)
    return theme.finish(stack)
