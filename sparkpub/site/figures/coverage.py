"""What was planned and what was done: one mark per planned run."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from sparkpub.plan import coverage as plan_coverage
from sparkpub.plan.coverage import State
from sparkpub.plan.plan import PlannedRun
from sparkpub.record.errors import CollectError
from sparkpub.record.store import Stored
from sparkpub.record.text import counted
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Cell
from sparkpub.site.figures import kind, machines, marks, panels
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import Chart
from sparkpub.site.figures.figure import Entry, Figure, Table, Value
from sparkpub.site.figures.panels import Layout, Panel
from sparkpub.site.figures.rows import Row, cell_fields, cell_of
from sparkpub.site.figures.selection import Selection
from sparkpub.site.publication import Publication, run_address

NAME, TABLE = "coverage", "slots"
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

Slot = tuple[Cell, int, str]
"""A cell, an iteration of it, and the machine where each machine repeats the campaign, else an empty text."""


def slots(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per planned or recorded iteration: its cell, `iteration, machine, state, glyph, run`, and `href` where it
    ran. `machine` is the name of the machine where each machine repeats the campaign, else empty."""
    repeated = campaign.matrix is not None and campaign.matrix.machines == "replicate"

    def slot_of(stored: Stored) -> Slot:
        record = stored.record
        machine = ""
        if repeated:
            machine = record.machine.id or ""
        return record.cell, record.iteration, machine

    recorded = grouped(campaign.runs, slot_of)
    names = {**machines.machine_names(publication, [campaign.name]), "": ""}
    for slot, state in _states(campaign, recorded).items():
        cell, iteration, machine = slot
        row = {
            **cell_fields(publication, campaign, cell),
            "iteration": iteration,
            "machine": names.get(machine, ""),
            "state": state,
            "glyph": GLYPHS[state],
            "run": "not run",
        }
        runs = recorded.get(slot, [])
        if runs:
            row["run"] = runs[0].run_id
            row["href"] = run_address(runs[0])
        if len(runs) > 1:
            row["glyph"] += "+"
        yield row


def _states(
    campaign: CampaignData, recorded: dict[Slot, list[Stored]]
) -> dict[Slot, str]:
    """The state of every iteration; without a matrix of these runs those that are there are all."""
    states: dict[Slot, str] = {}
    planned = _planned(campaign)
    if planned is None:
        for slot, runs in recorded.items():
            states[slot] = "failed"
            if any(run.record.status == "ok" for run in runs):
                states[slot] = "done"
        return states
    for run, state in planned.items():
        slot = (run.cell, run.iteration, run.machine or "")
        states[slot] = state
        if state == "retry":
            states[slot] = "missing"
    for slot in recorded:
        states.setdefault(slot, "extra")
    return states


def _planned(campaign: CampaignData) -> Mapping[PlannedRun, State] | None:
    """The state of every planned run. None without a matrix, and with one that was changed after a run: which runs are
    planned is not known then, and the check `not-as-requested` says so."""
    if campaign.matrix is None:
        return None
    try:
        return plan_coverage.states(
            campaign.matrix, campaign.records, campaign.quarantined
        )
    except CollectError:
        return None


def figure(selection: Selection, key: str) -> Figure:
    """How many runs are in which state; the cells with most left to do come first."""
    rows = selection.rows(TABLE)
    numbers = Counter(row["state"] for row in rows)
    names = tuple(dict.fromkeys(row["machine"] for row in rows))
    undone = _undone(rows)
    layout = panels.of_cells(selection, undone, highest_first=True, side_by_side=False)
    signs = "● done, × failed, ◘ quarantined, ○ missing; + means that the iteration was recorded more than once."
    return selection.figure(
        key,
        Chart(draw, (layout, names), phone=(True,)),
        {TABLE: rows},
        title="Planned and completed runs",
        says=_sentence(numbers),
        sample=signs + layout.note(undone),
        table=_table(selection, rows, names),
    )


def _sentence(numbers: Mapping[str, int]) -> str:
    """`All 100 runs done.`, `Of 100 runs: 98 done, 2 failed.`"""
    runs = counted(sum(numbers.values()), "run")
    if len(numbers) == 1:
        return f"All {runs} {next(iter(numbers))}."
    states = [f"{number} {state}" for state, number in numbers.items()]
    return f"Of {runs}: {', '.join(states)}."


def _table(selection: Selection, rows: Sequence[Row], names: Sequence[str]) -> Table:
    """A row per cell, on each machine where machines repeat the campaign."""
    slots = grouped(rows, lambda row: (row["cell"], row["machine"]))
    body: list[list[Value]] = []
    for cell in selection.scope.cells:
        for name in names:
            entries = [_entry(row) for row in slots.get((cell, name), ())]
            body.append([cell, name, entries])
    if any(names):
        return Table(("Cell", "Machine", "Iterations"), body)
    return Table(("Cell", "Iterations"), [[cell, runs] for cell, _, runs in body])


def _undone(rows: Sequence[Row]) -> dict[Cell, float]:
    """Cell to how many of its runs are not done."""
    undone: dict[Cell, float] = {}
    for row in rows:
        cell = cell_of(row)
        undone[cell] = undone.get(cell, 0) + (row["state"] != "done")
    return undone


def _entry(row: Row) -> Entry:
    return Entry(f"{row['iteration']} {row['glyph']}", row.get("href", ""))


def draw(
    layout: Layout, names: tuple[str, ...], narrow: bool = False
) -> dict[str, Any]:
    """Rows `slots`: a sign per iteration, in a row per cell; within it a line for each machine of these names."""
    layers = partial(_signs, names)
    step = ROW * len(names)
    return panels.draw(layout, layers, step, TABLE, narrow=narrow, shared_x=True)


def _signs(names: tuple[str, ...], panel: Panel) -> "list[alt.Chart]":
    title = None
    if panel.numbered:
        title = "Iteration"
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


KIND = kind.of_rows(NAME, figure, TABLE, slots)
