"""Any metric against any other: the reader chooses, beginning with a view that is not empty."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.record.text import counted
from sparkpub.site.figures import marks, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import Chart
from sparkpub.site.figures.figure import Figure, Table
from sparkpub.site.figures.rows import Row

KEY = "explorer"
DOUBTED = "roofline"
"""The check whose runs are left to the table: a rate beyond what a machine computes would be most of an axis."""


def figure(
    rows: Sequence[Row],
    source: str,
    across: Metric,
    up: Metric,
    called: Mapping[str, str],
) -> Figure:
    """The figure with which the explorer begins; `rows` are the runs of all campaigns, `source` the address of their
    file, and `called` gives environments their names."""
    environments = tuple(dict.fromkeys(row["environment"] for row in rows))
    names = tuple(called.get(key, key) for key in environments)
    sample = f"{len(rows):,} runs of all campaigns. Drag over points to keep only those in the table."
    doubted = sum(DOUBTED in row["flags"] for row in rows)
    if doubted:
        near = f"{counted(doubted, 'run')} near or beyond the machine's limits"
        sample += f" {near} (flag {DOUBTED}): in the table only."
    return Figure(
        key=KEY,
        title="Any metric against any other",
        says=f"Each point is a run: {across.label} ({across.unit}) across, {up.label} ({up.unit}) up.",
        sample=sample,
        chart=Chart(draw, (across.name, up.name, environments, names)),
        data={"runs": rows},
        table=Table((), ()),
        shared={"runs": source},
    )


def draw(
    across: str, up: str, environments: Sequence[str], names: Sequence[str]
) -> dict[str, Any]:
    """Every run as a point. The signals `xfield` and `yfield` name its metrics, `brush` says what is dragged over.

    Rows `runs`: `run, campaign, cell, environment, state, start_temp, flags, href` and one column per metric.
    """
    place = (
        f"{json.dumps(names)}[indexof({json.dumps(environments)}, datum.environment)]"
    )
    series = theme.Series("place", tuple(dict.fromkeys(names)), "Environment")
    brush = alt.selection_interval(name="brush", encodings=["x", "y"])
    scale = alt.Scale(zero=False, nice=False, padding=12)
    points = (
        marks.every("runs")
        .transform_calculate(vx="datum[xfield]", vy="datum[yfield]", place=place)
        .transform_filter("isValid(datum.vx) && isValid(datum.vy)")
        .transform_filter(f"indexof(datum.flags, {json.dumps(DOUBTED)}) < 0")
        .mark_point(size=50, filled=True)
        .encode(
            x=alt.X("vx:Q", title=None, scale=scale),
            y=alt.Y("vy:Q", title=None, scale=scale),
            color=series.colour,
            shape=series.shape,
            opacity=alt.condition(brush, alt.value(0.9), alt.value(0.25)),
            tooltip=marks.run_tooltip(
                "across",
                "vx",
                alt.Tooltip("vy:Q", title="up"),
                alt.Tooltip("campaign:N"),
            ),
            href=alt.Href("href:N"),
        )
        .add_params(brush)
    )
    fields = [
        alt.param(name="xfield", value=across),
        alt.param(name="yfield", value=up),
    ]
    return theme.finish(alt.layer(points).add_params(*fields).properties(height=300))
