"""What was planned and what was done: one mark per planned run."""

from collections.abc import Iterator, Sequence
from typing import Any

from sparkpub.plan import coverage as plan_coverage
from sparkpub.record.store import Stored
from sparkpub.review.dataset import CampaignData
from sparkpub.site.drawing.chart import Chart
from sparkpub.site.figures import marks, panels
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.figure import Entry, Figure, Table, Value
from sparkpub.site.figures.kind import Kind, Offer
from sparkpub.site.figures.panels import Cell, Layout, Panel
from sparkpub.site.figures.rows import Row, cell_fields
from sparkpub.site.figures.scope import Scope
from sparkpub.site.figures.selection import Selection
from sparkpub.site.publication import Publication, run_address

TABLE = "slots"
GLYPHS = {"done": "●", "failed": "×", "quarantined": "◘", "missing": "○", "extra": "+"}
"""State of a planned run to its sign."""
COLOURS = (
    "var(--sp-good)",
    "var(--sp-bad)",
    "var(--sp-warn)",
    "var(--sp-fg2)",
    "var(--sp-c3)",
)

ROW = 24
"""Height of a row, in pixels."""

Slot = tuple[tuple[str, str, str], int]
"""A cell and an iteration of it."""


def offers(campaign: Selection) -> Iterator[Offer]:
    """`coverage`, where something is planned or was run."""
    if campaign.rows(TABLE):
        yield "coverage", figure


def slots(_publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per planned or recorded iteration: its cell, `iteration, state, glyph, run`, and `href` where it ran."""
    recorded: dict[Slot, list[Stored]] = {}
    for stored in campaign.runs:
        recorded.setdefault((stored.record.cell, stored.record.iteration), []).append(
            stored
        )
    for (cell, iteration), state in _states(campaign, recorded).items():
        runs = recorded.get((cell, iteration), [])
        again = "+" if len(runs) > 1 else ""
        row = {
            **cell_fields(campaign, cell),
            "iteration": iteration,
            "state": state,
            "glyph": GLYPHS[state] + again,
            "run": runs[0].record.run_id if runs else "not run",
        }
        if runs:
            row["href"] = run_address(runs[0])
        yield row


def _states(
    campaign: CampaignData, recorded: dict[Slot, list[Stored]]
) -> dict[Slot, str]:
    """The state of every iteration; without a matrix those that are there are all."""
    states: dict[Slot, str] = {}
    if campaign.matrix is None:
        for slot, runs in recorded.items():
            good = any(run.record.status == "ok" for run in runs)
            states[slot] = "done" if good else "failed"
        return states
    for run, state in plan_coverage.states(
        campaign.matrix, campaign.records, campaign.quarantined
    ).items():
        cell = (run.model, run.environment, run.workload)
        states[cell, run.iteration] = "missing" if state == "retry" else state
    for slot in recorded:
        states.setdefault(slot, "extra")
    return states


def figure(selection: Selection, key: str) -> Figure:
    """How many runs are in which state; the cells with most left to do come first."""
    rows = selection.rows(TABLE)
    states = [row["state"] for row in rows]
    counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
    body: list[list[Value]] = []
    for cell in selection.scope.cells:
        entries = [_entry(row) for row in rows if row["cell"] == cell]
        body.append([cell, entries])
    undone = _undone(rows)
    layout = panels.of_cells(selection, undone, highest_first=True, side_by_side=False)
    signs = "● done, × failed, ◘ quarantined, ○ missing; + means that the iteration was recorded more than once."
    return selection.figure(
        key,
        Chart(draw, (selection.scope, layout)),
        {TABLE: rows},
        narrow=Chart(draw, (selection.scope, layout, True)),
        title="Planned and completed runs",
        says=f"Of {len(states)} runs of campaign {selection.campaign.name}: {', '.join(counts)}.",
        sample=signs + layout.note(undone),
        table=Table(("Cell", "Iterations"), body),
        rows=[
            {name: value for name, value in row.items() if name != "glyph"}
            for row in rows
        ],
    )


def _undone(rows: Sequence[Row]) -> dict[Cell, float]:
    """Cell to how many of its runs are not done."""
    undone: dict[Cell, float] = {}
    for row in rows:
        cell = (row["model"], row["environment"], row["workload"])
        undone[cell] = undone.get(cell, 0) + (row["state"] != "done")
    return undone


def _entry(row: Row) -> Entry:
    return Entry(f"{row['iteration']} {row['glyph']}", row.get("href", ""))


def draw(scope: Scope, layout: Layout, narrow: bool = False) -> dict[str, Any]:
    """Rows `slots`: a sign per iteration, in a row per cell."""
    return panels.draw(scope, layout, _signs, ROW, TABLE, narrow=narrow, shared_x=True)


def _signs(panel: Panel) -> "list[alt.Chart]":
    title = "Iteration" if panel.numbered else None
    axis = alt.Axis(labelAngle=0, orient="bottom", labels=panel.numbered)
    signs = panel.data(TABLE).mark_text(fontSize=16, baseline="middle")
    return [
        signs.encode(
            x=alt.X("iteration:O", title=title, axis=axis),
            y=panel.y,
            text=alt.Text("glyph:N"),
            color=alt.Color(
                "state:N",
                scale=alt.Scale(domain=list(GLYPHS), range=list(COLOURS)),
                legend=None,
            ),
            tooltip=marks.tooltip("cell", "iteration", "state", "run"),
            href=alt.Href("href:N"),
        )
    ]


KIND = Kind(of_campaign=offers, tables={TABLE: slots})
