"""What the sensors saw: one run over time, and the GPU's use over time of many runs."""

from typing import Any

import altair as alt

from sparkpub.site.figures import marks, theme
from sparkpub.site.figures.scope import Scope

MARGIN = 52
"""Room for the axis beside each panel, in pixels."""


def panels(signals: tuple[tuple[str, str], ...], total: int = theme.WIDE) -> dict[str, Any]:
    """A run over time, one panel for each signal (label, unit), the phases shaded.

    Rows `samples`: `signal, t, value` with t in seconds since launch, and `phases`: `name, start, end`. Several
    lines of one panel share its label before a colon.
    """
    charts = []
    for place, (label, unit) in enumerate(signals):
        last = place == len(signals) - 1
        axis = alt.Axis(title="Seconds since launch", grid=False) if last else None
        phases = alt.Chart(alt.NamedData("phases"))
        shade = phases.mark_rect(opacity=0.12, color=theme.SERIES[0], stroke=theme.BACKGROUND).encode(
            x=alt.X("start:Q", axis=axis), x2=alt.X2("end:Q"), tooltip="name:N"
        )
        layers = [shade]
        if place == 0:
            layers.append(
                phases.mark_text(align="left", baseline="bottom", fontSize=11, dy=-3, color=theme.FAINT).encode(
                    x=alt.X("start:Q", axis=axis), y=alt.value(0), text=alt.Text("name:N")
                )
            )
        layers.append(
            alt.Chart(alt.NamedData("samples"))
            .transform_filter(f"datum.signal === {label!r}")
            .mark_line(color=theme.SERIES[0], interpolate="step-after", clip=True)
            .encode(
                x=alt.X("t:Q", axis=axis, scale=alt.Scale(nice=False, zero=False)),
                y=alt.Y("value:Q", scale=alt.Scale(zero=unit == "%"),
                        axis=alt.Axis(title=theme.axis_title(label, unit), titleAngle=0, titleAlign="left", titleX=-40,
                                      titleY=-8 if place else -22, tickCount=3)),
                tooltip=[alt.Tooltip("t:Q", title="seconds"), alt.Tooltip("value:Q", title=label)],
            )
        )  # fmt: skip
        charts.append(alt.layer(*layers).properties(width=total - MARGIN, height=84))
    return theme.finish(alt.vconcat(*charts, spacing=12).resolve_scale(x="shared"))


def heat(scope: Scope) -> dict[str, Any]:
    """GPU utilisation over time, one row per run. Rows `heat`: `run, label, start, end, percent, href`."""
    cells = (
        marks.rows(scope, "heat")
        .mark_rect()
        .encode(
            x=alt.X("start:Q", title="Seconds since launch", scale=alt.Scale(nice=False, zero=False)),
            x2=alt.X2("end:Q"),
            y=alt.Y("label:N", sort=None, title=None, axis=alt.Axis(labelFontSize=10)),
            color=alt.Color("percent:Q", title="GPU utilisation (%)",
                            scale=alt.Scale(type="threshold", domain=[5, 25, 50, 75, 95], range=list(theme.RAMP))),
            tooltip=[alt.Tooltip(f"{field}:N") for field in ("run", "start", "percent")],
            href=alt.Href("href:N"),
        )
    )  # fmt: skip
    return theme.finish(alt.layer(cells).properties(height={"step": 13}))
