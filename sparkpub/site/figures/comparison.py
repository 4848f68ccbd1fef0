"""Environments against each other, memory side by side, and how much of the plan is done."""

from typing import Any

import altair as alt

from sparkpub.site.figures import marks, theme
from sparkpub.site.figures.scope import COVERAGE, PARTS, Scope

SHAPES = {
    "higher": "triangle-right",
    "lower": "triangle-left",
    "equivalent": "circle",
    "undecided": "diamond",
    "confounded": "cross",
}
OPEN = "datum.verdict === 'undecided' || datum.verdict === 'confounded'"
"""What is drawn hollow: nothing is shown."""


def forest(scope: Scope, margin_percent: float, narrow: bool = False) -> dict[str, Any]:
    """Difference of each pair of cells in per cent of the baseline, with the interval that decides.

    Rows `comparisons`: `label, model, environment, workload, percent, lo, hi, verdict`. The band is the margin
    within which the campaign calls two environments equivalent. Real differences are filled, others hollow.
    """
    rows = marks.rows(scope, "comparisons")
    axis = alt.Axis(grid=True, labelColor=theme.TEXT, labelLimit=300, labels=not narrow)
    y = alt.Y("label:N", sort=None, title=None, axis=axis, scale=alt.Scale(padding=0.75 if narrow else 0))
    x = alt.X("percent:Q", title="Difference in % of the baseline", scale=alt.Scale(zero=True, nice=True))
    once = alt.Chart(alt.NamedData("comparisons")).transform_aggregate(count="count()")
    band = once.mark_rect(opacity=0.14, color=theme.SERIES[2]).encode(
        x=alt.XDatum(-margin_percent), x2=alt.X2Datum(margin_percent)
    )
    zero = once.mark_rule(strokeDash=[3, 3]).encode(x=alt.XDatum(0))
    span = rows.mark_rule(strokeWidth=2, color=theme.TEXT).encode(x=alt.X("lo:Q"), x2=alt.X2("hi:Q"), y=y)
    point = rows.mark_point(size=70, filled=True, color=theme.SERIES[0], strokeWidth=2, stroke=theme.SERIES[0]).encode(
        x=x,
        y=y,
        shape=alt.Shape("verdict:N", title="Verdict", scale=alt.Scale(domain=list(SHAPES), range=[*SHAPES.values()])),
        fillOpacity=alt.condition(OPEN, alt.value(0), alt.value(1)),
        tooltip=[alt.Tooltip(f"{field}:N") for field in ("label", "percent", "lo", "hi", "verdict", "p")],
    )
    names = [marks.names(rows, y, "label")] if narrow else []
    return theme.finish(alt.layer(band, zero, span, point, *names).properties(height={"step": 38 if narrow else 26}))


def ledger(scope: Scope, parts: tuple[str, ...], narrow: bool = False) -> dict[str, Any]:
    """Where the machine's memory went in one run of each cell. Rows `ledger`: `cell, part, rank, gib, run, href`.

    `parts` are those that any of the runs has; what is free stands back.
    """
    rows, y = marks.rows(scope, "ledger"), marks.y(scope, labels=not narrow)
    colours = [theme.GRID if part == "free" else theme.SERIES[place] for place, part in enumerate(PARTS)]
    bars = rows.mark_bar(height=21, stroke=theme.FAINT, strokeWidth=0.5).encode(
        x=alt.X("gib:Q", title="Memory (GiB)", stack="zero"),
        y=y,
        order=alt.Order("rank:Q"),
        color=alt.Color(
            "part:N",
            title="Part",
            scale=alt.Scale(domain=list(PARTS), range=colours),
            legend=alt.Legend(values=list(parts), columns=2 if narrow else 4),
        ),
        tooltip=[alt.Tooltip(f"{field}:N") for field in ("cell", "part", "gib", "run")],
        href=alt.Href("href:N"),
    )
    labels = (
        marks.rows(scope, "ledger", "datum.gib >= 9")
        .mark_text(fontSize=11)
        .encode(
            x=alt.X("gib:Q", stack="zero", bandPosition=0.5),
            y=y,
            color=alt.condition("datum.part === 'free'", alt.value(theme.FAINT), alt.value(theme.BACKGROUND)),
            order=alt.Order("rank:Q"),
            text=alt.Text("gib:Q", format=".0f"),
            detail=alt.Detail("part:N"),
        )
    )
    names = [marks.names(rows, y, "cell")] if narrow else []
    height = max(2, len(scope.cells)) * (44 if narrow else 28)
    return theme.finish(alt.layer(bars, labels, *names).properties(height=height))


def coverage(scope: Scope) -> dict[str, Any]:
    """One mark per planned run: done, failed, quarantined or missing. Rows `slots`: `cell, iteration, state, href`."""
    rows = marks.rows(scope, "slots")
    x = alt.X("iteration:O", title="Iteration", axis=alt.Axis(labelAngle=0, orient="bottom"))
    colours = ["var(--sp-good)", "var(--sp-bad)", "var(--sp-warn)", "var(--sp-fg2)", "var(--sp-c3)"]
    signs = rows.mark_text(fontSize=16, baseline="middle").encode(
        x=x,
        y=marks.y(scope),
        text=alt.Text("glyph:N"),
        color=alt.Color("state:N", scale=alt.Scale(domain=list(COVERAGE), range=colours), legend=None),
        tooltip=[alt.Tooltip(f"{field}:N") for field in ("cell", "iteration", "state", "run")],
        href=alt.Href("href:N"),
    )
    return theme.finish(alt.layer(signs).properties(height=max(2, len(scope.cells)) * 26))
