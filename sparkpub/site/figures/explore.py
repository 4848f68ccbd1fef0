"""Any metric against any other: the reader chooses, beginning with a view that is not empty."""

import json
from collections.abc import Mapping
from functools import partial

from sparkpub.record.metrics import Metric
from sparkpub.record.text import counted
from sparkpub.site.figures import shapes
from sparkpub.site.figures.draw import Chart
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.shapes import Rows, Spec

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
    doubted = sum(DOUBTED in row["flags"] for row in rows)
    near = f"{counted(doubted, 'run')} near or beyond the machine's limits"
    sample = f"{near} (flag {DOUBTED}): in the table only." if doubted else ""
    shape = partial(draw, across=across.name, up=up.name, names=called)
    return Figure(
        key="explorer",
        title="Any metric against any other",
        says=f"Each point is a run: {across.label} ({across.unit}) across, {up.label} ({up.unit}) up.",
        sample=sample,
        chart=Chart(shape, rows),
    )


def draw(
    _rows: Rows,
    *,
    across: str,
    up: str,
    names: Mapping[str, str],
    narrow: bool = False,
) -> Spec:
    """Every run as a point. The signals `xfield` and `yfield` name its metrics.

    A row is a run of the explorer's table: `run, campaign, environment, state, start_temp, flags, href`, metrics.
    """
    told = {
        "run": "datum.run",
        "across": "datum.x",
        "up": "datum.value",
        "campaign": "datum.campaign",
        "°C at start": "datum.start_temp",
        "in the figures": "datum.state",
        "flags": "datum.flags",
    }
    tip = ", ".join(f"{json.dumps(head)}: {field}" for head, field in told.items())
    given = {
        "kind": "'run'",
        "x": "datum[xfield]",
        "value": "datum[yfield]",
        "group": f"{json.dumps(dict(names))}[datum.environment]",
    }
    found = [
        "isValid(datum.x) && isValid(datum.value)",
        f"indexof(datum.flags, {json.dumps(DOUBTED)}) < 0",
    ]
    groups = list(dict.fromkeys(names.values()))
    points = shapes.points((), across="", up="", groups=groups, narrow=narrow)
    return points | {
        "params": [
            {"name": "xfield", "value": across},
            {"name": "yfield", "value": up},
        ],
        "transform": [
            *({"calculate": text, "as": name} for name, text in given.items()),
            {"calculate": f"{{{tip}}}", "as": "tip"},
            *({"filter": text} for text in found),
        ],
    }
