"""Any metric against any other: the reader chooses, beginning with a view that is not empty."""

import json
from collections.abc import Mapping
from functools import partial

from sparkpub.record.metrics import Metric
from sparkpub.record.text import counted
from sparkpub.site.figures import shapes
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.draw import Chart
from sparkpub.site.figures.figure import Figure, Table
from sparkpub.site.figures.shapes import Rows, Spec
from sparkpub.site.figures.theme import FAINT

DOUBTED = "roofline"
"""The check whose runs are left to the table: a rate beyond what a machine computes would be most of an axis."""


def figure(
    rows: Rows,
    across: Metric,
    up: Metric,
    called: Mapping[str, str],
) -> Figure:
    """The figure with which the explorer begins; `rows` are the runs of all campaigns, and `called` gives environments
    their names."""
    names = {
        key: called.get(key, key)
        for key in dict.fromkeys(row["environment"] for row in rows)
    }
    sample = f"{len(rows):,} runs of all campaigns. Drag over points to keep only those in the table."
    doubted = sum(DOUBTED in row["flags"] for row in rows)
    if doubted:
        near = f"{counted(doubted, 'run')} near or beyond the machine's limits"
        sample += f" {near} (flag {DOUBTED}): in the table only."
    shape = partial(
        draw,
        across=across.name,
        up=up.name,
        names=names,
    )
    return Figure(
        key="explorer",
        title="Any metric against any other",
        says=f"Each point is a run: {across.label} ({across.unit}) across, {up.label} ({up.unit}) up.",
        sample=sample,
        chart=Chart(shape, rows),
        table=Table((), ()),
    )


def draw(
    _rows: Rows,
    *,
    across: str,
    up: str,
    names: Mapping[str, str],
    narrow: bool = False,
) -> Spec:
    """Every run as a point. The signals `xfield` and `yfield` name its metrics, `brush` says what is dragged over.

    A row is a run of the explorer's table: `run, campaign, environment, state, start_temp, flags, href`, metrics.
    """
    called = f"{json.dumps(list(names.values()))}[indexof({json.dumps(list(names))}, datum.environment)]"
    brush = alt.selection_interval(
        name="brush", encodings=["x", "y"], mark=alt.BrushConfig(fill=FAINT)
    )
    scale = alt.Scale(
        zero=False,
        nice=False,
        padding=12,
    )
    told = {
        "run": "run",
        "vx": "across",
        "vy": "up",
        "campaign": "campaign",
        "start_temp": "°C at start",
        "state": "in the figures",
        "flags": "flags",
    }
    points = (
        shapes.layer()
        .transform_calculate(
            vx="datum[xfield]",
            vy="datum[yfield]",
            group=called,
        )
        .transform_filter("isValid(datum.vx) && isValid(datum.vy)")
        .transform_filter(f"indexof(datum.flags, {json.dumps(DOUBTED)}) < 0")
    )
    marks = shapes.points_of(
        points, list(dict.fromkeys(names.values())), "Environment"
    ).encode(
        x=alt.X(
            "vx:Q",
            title=None,
            scale=scale,
        ),
        y=alt.Y(
            "vy:Q",
            title=None,
            scale=scale,
        ),
        opacity=alt.condition(brush, alt.value(0.9), alt.value(0.25)),
        tooltip=[
            alt.Tooltip(f"{field}:N", title=title) for field, title in told.items()
        ],
        href=alt.Href("href:N"),
    )
    fields = [{"name": "xfield", "value": across}, {"name": "yfield", "value": up}]
    return shapes.one([marks.add_params(brush)], narrow, 300) | {"params": fields}
