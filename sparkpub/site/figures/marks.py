"""What the charts of a scope are put together from: its rows, its axis of cells, its runs as points."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from sparkpub.site.figures import theme
from sparkpub.site.figures.scope import STATES, Scope


def rows(scope: Scope, name: str, *more: str) -> alt.Chart:
    """A chart on the rows called `name`, cut to this scope."""
    return alt.Chart(alt.NamedData(name)).transform_filter(scope.where(*more))


def y(scope: Scope, *, labels: bool = True) -> alt.Y:
    """The axis that lists the cells."""
    return alt.Y("cell:N", sort=list(scope.cells), title=None, scale=alt.Scale(paddingInner=0.25),
                 axis=alt.Axis(grid=True, labelColor=theme.TEXT, labels=labels))  # fmt: skip


def names(rows: alt.Chart, y: alt.Y, field: str) -> alt.Chart:
    """Names above the rows instead of beside them, for a phone: they leave the plot its whole width."""
    words = rows.transform_aggregate(count="count()", groupby=[field]).mark_text(align="left", dy=-18, fontSize=12)
    found: alt.Chart = words.encode(x=alt.value(0), y=y, text=alt.Text(f"{field}:N"))
    return found


def environment_colour(scope: Scope, title: str | None = "Environment") -> alt.Color:
    """Colour by environment, with a legend of that title."""
    return theme.colour("environment", scope.environments, title)


def points(scope: Scope, rows: alt.Chart, title: str | None = "Environment", **channels: Any) -> alt.Chart:
    """Runs as points that lead to their pages; of a run that is left out only the outline shows.

    `title` is the legend's; without one there is none, for where each row names its environment.
    """
    points: alt.Chart = rows.mark_point(size=46, filled=True).encode(
        color=environment_colour(scope, title),
        stroke=alt.Stroke("environment:N", scale=theme.series(scope.environments), legend=None),
        shape=environment_shape(scope, title),
        fillOpacity=alt.FillOpacity("state:N", scale=alt.Scale(domain=list(STATES), range=[0.75, 0]), legend=None),
        href=alt.Href("href:N"),
        **channels,
    )
    return points


def environment_shape(scope: Scope, title: str | None = "Environment") -> alt.Shape:
    """Shape by environment, with a legend of that title."""
    return theme.shape("environment", scope.environments, title)


def run_tooltip(title: str, field: str, extra: Sequence[alt.Tooltip] = ()) -> list[alt.Tooltip]:
    """What pointing at a run tells."""
    return [
        alt.Tooltip("run:N", title="run"),
        alt.Tooltip(f"{field}:Q", title=title, format=",.5~r"),
        *extra,
        alt.Tooltip("start_temp:Q", title="°C at start"),
        alt.Tooltip("state:N", title="in the figures"),
        alt.Tooltip("flags:N", title="flags"),
    ]
