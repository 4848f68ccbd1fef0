"""Charts whose data the reader chooses: any metric against any other, and the telemetry of two runs."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from sparkpub.site.figures import marks, theme


def explore(across: str, up: str, environments: Sequence[str]) -> dict[str, Any]:
    """Every run as a point. The signals `xfield` and `yfield` name its metrics, `brush` says what is dragged over.

    Rows `runs`: `run, campaign, cell, environment, state, start_temp, flags, href` and one column per metric.
    """
    brush = alt.selection_interval(name="brush", encodings=["x", "y"])
    points = (
        alt.Chart(alt.NamedData("runs"))
        .transform_calculate(vx="datum[xfield]", vy="datum[yfield]")
        .transform_filter("isValid(datum.vx) && isValid(datum.vy)")
        .mark_point(size=50, filled=True)
        .encode(
            x=alt.X("vx:Q", title=None, scale=alt.Scale(zero=False, padding=8)),
            y=alt.Y("vy:Q", title=None, scale=alt.Scale(zero=False, padding=8)),
            color=theme.colour("environment", environments, "Environment"),
            shape=theme.shape("environment", environments, "Environment"),
            opacity=alt.condition(brush, alt.value(0.9), alt.value(0.25)),
            tooltip=marks.run_tooltip("across", "vx", [alt.Tooltip("vy:Q", title="up"), alt.Tooltip("campaign:N")]),
            href=alt.Href("href:N"),
        )
        .add_params(brush)
    )
    fields = [alt.param(name="xfield", value=across), alt.param(name="yfield", value=up)]
    return theme.finish(alt.layer(points).add_params(*fields).properties(height=300))


def overlay() -> dict[str, Any]:
    """Two runs on one time axis, a panel per signal. Rows `samples`: `side, signal, t, value`; side is A or B."""
    line = (
        alt.Chart(alt.NamedData("samples"))
        .mark_line(interpolate="step-after", clip=True)
        .encode(
            x=alt.X("t:Q", title="Seconds since launch", scale=alt.Scale(nice=False, zero=False)),
            y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=4)),
            color=theme.colour("side", ("A", "B"), "Run"),
            strokeDash=theme.dash("side", ("A", "B")),
            tooltip=[alt.Tooltip("side:N"), alt.Tooltip("t:Q", title="seconds"), alt.Tooltip("value:Q")],
        )
        .properties(width=theme.WIDE - 80, height=90)
    )
    header = alt.Header(title=None, labelAnchor="start", labelOrient="top", labelColor=theme.TEXT, labelFontSize=12)
    panels = line.facet(row=alt.Row("signal:N", header=header, sort=None), spacing=14)
    return theme.finish(panels.resolve_scale(y="independent"))
