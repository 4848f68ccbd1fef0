"""Which part of the data a chart shows, and the rows that it reads.

Charts hold no rows: they name them. `runs` has one row per run (`run, campaign, model, environment, workload, cell,
iteration, order, state, flags, href, start_temp` and one column per metric), `cells` one per cell and metric
(`campaign, model, environment, workload, cell, metric, n, mean, lo, hi`), `trends` two per cell and metric (the ends
of the trend line). Units are those of the metric.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from sparkpub.charts import theme

STATES = ("counted", "excluded")


@dataclass(frozen=True)
class Scope:
    """A campaign, or a part of it. Each tuple is in the order of the matrix; `cells` are labels of rows."""

    campaign: str
    models: tuple[str, ...]
    environments: tuple[str, ...]
    workloads: tuple[str, ...]
    cells: tuple[str, ...]

    def where(self, *more: str) -> str:
        """A Vega expression that keeps this scope's rows."""
        parts = [f"datum.campaign === {self.campaign!r}"]
        for axis, names in (("model", self.models), ("environment", self.environments), ("workload", self.workloads)):
            parts.append(f"indexof({list(names)!r}, datum.{axis}) >= 0")
        return " && ".join([*parts, *more])

    def rows(self, name: str, *more: str) -> alt.Chart:
        """A chart on the rows called `name`, cut to this scope."""
        return alt.Chart(alt.NamedData(name)).transform_filter(self.where(*more))

    def y(self, *, labels: bool = True) -> alt.Y:
        """The axis that lists the cells."""
        axis = alt.Axis(grid=True, ticks=False, domain=False, labelColor=theme.TEXT, labels=labels)
        return alt.Y("cell:N", sort=list(self.cells), title=None, scale=alt.Scale(paddingInner=0.25), axis=axis)

    def environment_colour(self) -> alt.Color:
        """Colour by environment."""
        return theme.colour("environment", self.environments, "Environment")

    def points(self, rows: alt.Chart, **channels: Any) -> alt.Chart:
        """Runs as points that lead to their pages; of a run that is left out only the outline shows."""
        points: alt.Chart = rows.mark_point(size=46, filled=True).encode(
            color=self.environment_colour(),
            stroke=alt.Stroke("environment:N", scale=theme.series(self.environments), legend=None),
            shape=self.environment_shape(),
            fillOpacity=alt.FillOpacity("state:N", scale=alt.Scale(domain=list(STATES), range=[0.75, 0]), legend=None),
            href=alt.Href("href:N"),
            **channels,
        )
        return points

    def environment_shape(self) -> alt.Shape:
        """Shape by environment."""
        return theme.shape("environment", self.environments, "Environment")


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
