"""GPU utilisation over time, one row per run."""

from collections.abc import Iterator, Sequence
from typing import Any

from sparkpub.record.store import Stored
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.site.figures import kind, marks, panels, samples, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import Chart
from sparkpub.site.figures.figure import Entry, Figure, Table
from sparkpub.site.figures.rows import Row, cell_fields
from sparkpub.site.figures.selection import Scope, Selection
from sparkpub.site.publication import Publication, cell_label, run_address

TABLE = "heat"
MOST_RUNS = 60
"""Rows at most: up to so many runs the chart shows all, beyond it the first iteration of each cell."""
STRETCHES = 48
"""Into which a run is divided."""
LIMITS = (5, 25, 50, 75, 95)
"""Between two shades, in per cent."""


def heat(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per run and stretch of it: its cell, `run, label, start, end` (seconds), `percent, href`."""
    for stored in _shown(campaign):
        record = stored.record
        for start, end, percent in utilisation(stored):
            yield {
                **cell_fields(publication, campaign, record.cell),
                "run": record.run_id,
                "label": f"{cell_label(publication.names, campaign, record.cell)} {record.iteration}",
                "start": start,
                "end": end,
                "percent": percent,
                "href": run_address(stored),
            }


def _shown(campaign: CampaignData) -> Sequence[Stored]:
    """All runs; of too many the first iterations, and of still too many cells the first ones."""
    if len(campaign.runs) <= MOST_RUNS:
        return campaign.runs
    firsts = [run for run in campaign.runs if run.record.iteration == 1]
    return firsts[:MOST_RUNS]


def utilisation(stored: Stored) -> Iterator[tuple[float, float, float]]:
    """(start, end, mean GPU utilisation in %) of equal stretches of a run, in seconds since launch."""
    telemetry = samples.read(stored)
    if telemetry is None:
        return
    points = samples.points(telemetry, "gpu_utilization_percent")
    if len(points) < 2 or points[-1][0] <= points[0][0]:
        return
    begin = points[0][0]
    width = (points[-1][0] - begin) / STRETCHES
    stretches: dict[int, list[float]] = {}
    for time, value in points:
        index = min(STRETCHES - 1, int((time - begin) / width))
        stretches.setdefault(index, []).append(value)
    for index, values in sorted(stretches.items()):
        start = begin + index * width
        yield (
            round(start, 1),
            round(start + width, 1),
            round(sum(values) / len(values), 1),
        )


def figure(selection: Selection, key: str) -> Figure:
    """Which runs are shown, and how to read them."""
    rows = selection.rows(TABLE)
    runs = grouped(rows, lambda row: str(row["run"]))
    names = panels.label_width([row["label"] for row in rows])
    total = len(selection.campaign.runs)
    which = ", all that have telemetry."
    if total > MOST_RUNS:
        which = ": the first iteration of each cell."
    return selection.figure(
        key,
        Chart(draw, (selection.scope, names)),
        {TABLE: rows},
        title="GPU utilisation over time",
        says="One row per run, from launch to exit: the more a stretch stands out, the busier the GPU.",
        sample=f"{len(runs)} of {total} runs of campaign {selection.campaign.name}{which}",
        table=Table(
            ("Run", "Seconds", "Mean utilisation"),
            [_table_row(run, stretches) for run, stretches in runs.items()],
        ),
    )


def _table_row(run: str, stretches: list[Row]) -> list[Entry | str]:
    mean = sum(row["percent"] for row in stretches) / len(stretches)
    return [
        Entry(run, stretches[0]["href"]),
        f"{stretches[-1]['end']:.0f}",
        f"{mean:.1f} %",
    ]


def draw(scope: Scope, names: int) -> dict[str, Any]:
    """Rows `heat`: a rectangle per stretch, in a row per run; `names` is the room for their names, in pixels."""
    axis = alt.Axis(labelFontSize=10, minExtent=names, maxExtent=names)
    shades = alt.Scale(type="threshold", domain=list(LIMITS), range=list(theme.RAMP))
    stretches = (
        marks.rows(scope, TABLE)
        .mark_rect()
        .encode(
            x=marks.seconds("start"),
            x2=alt.X2("end:Q"),
            y=alt.Y("label:N", sort=None, title=None, axis=axis),
            color=alt.Color("percent:Q", title="GPU utilisation (%)", scale=shades),
            tooltip=marks.tooltip("run", "start", "percent"),
            href=alt.Href("href:N"),
        )
    )
    return theme.finish(theme.layered([stretches], height={"step": 13}))


KIND = kind.of_rows("gpu-utilisation", figure, TABLE, heat)
