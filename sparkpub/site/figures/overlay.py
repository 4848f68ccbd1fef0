"""The telemetry of two runs on one time axis: the reader chooses which."""

from collections.abc import Sequence
from typing import Any

from sparkpub.record.store import Stored
from sparkpub.site.figures import marks, samples, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import Chart
from sparkpub.site.figures.figure import Figure, Table
from sparkpub.site.figures.rows import Row
from sparkpub.site.figures.telemetry import trace

KEY = "overlay"
DRAWN_SIGNALS, DRAWN_POINTS = 3, 80
"""How much of two runs is drawn before a reader chooses: a page for everybody stays light."""


PANEL, NARROW_PANEL = 560, 301
"""Width of a panel, on a page and on a phone: room for its axis is left beside it."""


def figure(runs: Sequence[Stored]) -> Figure | None:
    """Two of these runs, in two environments where there are such; None without telemetry of two."""
    traces = {}
    for run in _pair([run for run in runs if run.record.file("telemetry")]):
        found = trace(run)
        if found is not None:
            traces[run.record.run_id] = found
    if len(traces) < 2:
        return None
    first, second = traces.values()
    other = dict(second.signals)
    shared = [label for label, _ in first.signals if label in other][:DRAWN_SIGNALS]
    rows: list[Row] = []
    for side, found in (("A", first), ("B", second)):
        for label in shared:
            for time, value in samples.thinned(found.values(label), DRAWN_POINTS):
                rows.append({"side": side, "signal": label, "t": time, "value": value})
    name_a, name_b = traces
    return Figure(
        key=KEY,
        title="Two runs on one time axis",
        says="Two runs, each from its launch.",
        sample=f"A: {name_a}. B: {name_b}.",
        chart=Chart(draw, phone=(NARROW_PANEL,)),
        data={"samples": rows},
        table=Table((), ()),
    )


def _pair(runs: Sequence[Stored]) -> list[Stored]:
    """The first run, and the first in another environment."""
    if not runs:
        return []
    others = [
        run for run in runs if run.record.environment != runs[0].record.environment
    ]
    return [runs[0], *others[:1]]


def draw(width: int = PANEL) -> dict[str, Any]:
    """A panel per signal. Rows `samples`: `side, signal, t, value`; side is A or B. `width` is that of a panel."""
    sides = theme.Series("side", ("A", "B"), "Run")
    line = (
        marks.every("samples")
        .mark_line(interpolate="step-after", clip=True)
        .encode(
            x=marks.seconds("t"),
            y=alt.Y(
                "value:Q",
                title=None,
                scale=alt.Scale(zero=False),
                axis=alt.Axis(tickCount=4),
            ),
            color=sides.colour,
            strokeDash=sides.dash,
            tooltip=[
                alt.Tooltip("side:N"),
                alt.Tooltip("t:Q", title="seconds"),
                alt.Tooltip("value:Q"),
            ],
        )
        .properties(width=width, height=90)
    )
    header = alt.Header(
        title=None,
        labelAnchor="start",
        labelOrient="top",
        labelColor=theme.TEXT,
        labelFontSize=12,
    )
    panels = line.facet(row=alt.Row("signal:N", header=header, sort=None), spacing=14)
    return theme.finish(panels.resolve_scale(y="independent"))
