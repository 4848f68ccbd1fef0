"""What was planned and what was done: one mark per planned run."""

from collections.abc import Iterator, Sequence
from typing import Any

from sparkpub.plan import coverage as plan_coverage
from sparkpub.record.store import Stored
from sparkpub.review.dataset import CampaignData
from sparkpub.site.drawing.chart import Chart
from sparkpub.site.figures import machines, marks, panels
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

Slot = tuple[tuple[str, str, str], int, str]
"""A cell, an iteration of it, and the machine where each machine repeats the campaign, else an empty text."""


def offers(campaign: Selection) -> Iterator[Offer]:
    """`coverage`, where something is planned or was run."""
    if campaign.rows(TABLE):
        yield "coverage", figure


def slots(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per planned or recorded iteration: its cell, `iteration, machine, state, glyph, run`, and `href` where it
    ran. `machine` is the name of the machine where each machine repeats the campaign, else empty."""
    repeated = campaign.matrix is not None and campaign.matrix.machines == "replicate"
    recorded: dict[Slot, list[Stored]] = {}
    for stored in campaign.runs:
        record = stored.record
        machine = record.machine.id or "" if repeated else ""
        slot = (record.cell, record.iteration, machine)
        recorded.setdefault(slot, []).append(stored)
    names = machines.machine_names(publication, [campaign.name])
    for slot, state in _states(campaign, recorded).items():
        cell, iteration, machine = slot
        runs = recorded.get(slot, [])
        again = "+" if len(runs) > 1 else ""
        row = {
            **cell_fields(campaign, cell),
            "iteration": iteration,
            "machine": names.get(machine, "") if machine else "",
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
        slot = (run.cell, run.iteration, run.machine or "")
        states[slot] = "missing" if state == "retry" else state
    for slot in recorded:
        states.setdefault(slot, "extra")
    return states


def figure(selection: Selection, key: str) -> Figure:
    """How many runs are in which state; the cells with most left to do come first."""
    rows = selection.rows(TABLE)
    states = [row["state"] for row in rows]
    counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
    names = tuple(dict.fromkeys(row["machine"] for row in rows))
    body: list[list[Value]] = []
    for cell in selection.scope.cells:
        for name in names:
            entries = [
                _entry(row)
                for row in rows
                if row["cell"] == cell and row["machine"] == name
            ]
            body.append([cell, name, entries] if name else [cell, entries])
    heads = ("Cell", "Machine", "Iterations") if any(names) else ("Cell", "Iterations")
    undone = _undone(rows)
    layout = panels.of_cells(selection, undone, highest_first=True, side_by_side=False)
    signs = "● done, × failed, ◘ quarantined, ○ missing; + means that the iteration was recorded more than once."
    return selection.figure(
        key,
        Chart(draw, (selection.scope, layout, names)),
        {TABLE: rows},
        narrow=Chart(draw, (selection.scope, layout, names, True)),
        title="Planned and completed runs",
        says=f"Of {len(states)} runs of campaign {selection.campaign.name}: {', '.join(counts)}.",
        sample=signs + layout.note(undone),
        table=Table(heads, body),
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


def draw(
    scope: Scope, layout: Layout, names: tuple[str, ...], narrow: bool = False
) -> dict[str, Any]:
    """Rows `slots`: a sign per iteration, in a row per cell; within it a line for each machine of these names."""

    def layers(panel: Panel) -> "list[alt.Chart]":
        return _signs(panel, names)

    step = ROW * len(names)
    return panels.draw(scope, layout, layers, step, TABLE, narrow=narrow, shared_x=True)


def _signs(panel: Panel, names: tuple[str, ...]) -> "list[alt.Chart]":
    title = "Iteration" if panel.numbered else None
    axis = alt.Axis(labelAngle=0, orient="bottom", labels=panel.numbered)
    signs = panel.data(TABLE).mark_text(fontSize=16, baseline="middle")
    shown = ["cell", "iteration", "state", "run"]
    if len(names) > 1:
        signs = signs.encode(yOffset=alt.YOffset("machine:N", sort=list(names)))
        shown.insert(1, "machine")
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
            tooltip=marks.tooltip(*shown),
            href=alt.Href("href:N"),
        )
    ]


KIND = Kind(of_campaign=offers, tables={TABLE: slots})
