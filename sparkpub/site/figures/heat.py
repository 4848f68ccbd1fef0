"""GPU utilisation over time: one run of each cell."""

from collections.abc import Iterator, Sequence
from typing import Any

from sparkpub.record.store import Stored
from sparkpub.record.text import (
    between,
    counted,
)
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Cell
from sparkpub.site.figures import kind, marks, panels, samples, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import Chart
from sparkpub.site.figures.figure import Entry, Figure, Table
from sparkpub.site.figures.panels import Layout, Panel
from sparkpub.site.figures.rows import Row, cell_fields, cell_of
from sparkpub.site.figures.selection import Selection
from sparkpub.site.publication import Publication, run_address

TABLE = "heat"
MOST_RUNS = 60
"""Cells at most whose runs are read."""
STRETCHES = 48
"""Into which a run is divided."""
LIMITS = (5, 25, 50, 75, 95)
"""Between two shades, in per cent."""
ROW = 18
"""Height of a row, in pixels."""


def heat(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per stretch of the first run of a cell that has telemetry: its cell, `run, start, end` (seconds),
    `percent, href`."""
    for stored in _firsts(campaign):
        for start, end, percent in utilisation(stored):
            yield {
                **cell_fields(publication, campaign, stored.record.cell),
                "run": stored.run_id,
                "start": start,
                "end": end,
                "percent": percent,
                "href": run_address(stored),
            }


def _firsts(campaign: CampaignData) -> Sequence[Stored]:
    """The first run of each cell, of too many cells of the first ones."""
    firsts: dict[Cell, Stored] = {}
    for run in campaign.runs:
        if run.record.file("telemetry"):
            firsts.setdefault(run.record.cell, run)
    return list(firsts.values())[:MOST_RUNS]


def utilisation(stored: Stored) -> Iterator[tuple[float, float, float]]:
    """(start, end, mean GPU utilisation in %) of equal stretches of a run, in seconds since launch."""
    telemetry = samples.read(stored)
    if telemetry is None:
        return
    points = telemetry.timed("gpu_utilization_percent")
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
    """How busy the GPU was, from the busiest cell to the least busy one."""
    rows = selection.rows(TABLE)
    busy = {
        cell: _mean(stretches) for cell, stretches in grouped(rows, cell_of).items()
    }
    layout = panels.of_cells(selection, busy, highest_first=True, side_by_side=False)
    least, most = min(busy.values()), max(busy.values())
    of_runs = grouped(rows, lambda row: str(row["run"]))
    return selection.figure(
        key,
        Chart(draw, (layout,), phone=(True,)),
        {TABLE: rows},
        title="GPU utilisation over time",
        says=f"The GPU was busy {between(least, most, 0)} % of the time from launch to exit.",
        sample=f"The first run of {counted(len(busy), 'cell')}.{layout.note(busy)}",
        table=Table(
            ("Run", "Seconds", "Mean utilisation"),
            [_table_row(run, stretches) for run, stretches in of_runs.items()],
        ),
    )


def _mean(stretches: Sequence[Row]) -> float:
    return sum(float(row["percent"]) for row in stretches) / len(stretches)


def _table_row(run: str, stretches: list[Row]) -> list[Entry | str]:
    return [
        Entry(run, stretches[0]["href"]),
        f"{stretches[-1]['end']:.0f}",
        f"{_mean(stretches):.1f} %",
    ]


def draw(layout: Layout, narrow: bool = False) -> dict[str, Any]:
    """Rows `heat`: a rectangle per stretch, in a row per cell."""
    return panels.draw(layout, _layers, ROW, TABLE, narrow=narrow, shared_x=True)


def _layers(panel: Panel) -> "list[alt.Chart]":
    shades = alt.Scale(type="threshold", domain=list(LIMITS), range=list(theme.RAMP))
    stretches = panel.data(TABLE).mark_rect(height=alt.RelativeBandSize(0.9))
    return [
        stretches.encode(
            x=panel.across("start", "Seconds since launch"),
            x2=alt.X2("end:Q"),
            y=panel.y,
            color=alt.Color("percent:Q", title="GPU utilisation (%)", scale=shades),
            tooltip=marks.tooltip("run", "start", "percent"),
            href=alt.Href("href:N"),
        )
    ]


KIND = kind.of_rows("gpu-utilisation", figure, TABLE, heat)
