"""Where the machine's memory went in one run of each cell."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.record.text import (
    between,
    listed,
    spread,
)
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Cell
from sparkpub.site.figures import kind, marks, panels, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import Chart
from sparkpub.site.figures.figure import Entry, Figure, Table, Value
from sparkpub.site.figures.panels import Layout, Panel
from sparkpub.site.figures.rows import Row, cell_fields, cell_of
from sparkpub.site.figures.selection import Selection
from sparkpub.site.publication import Publication, cell_keys, run_address

TABLE = "ledger"
PARTS = (
    "weights",
    "KV cache",
    "engine and other",
    "page cache",
    "used, not broken down",
    "free",
)
"""Into which the machine's memory is divided, from left to right."""
ROW = 28
"""Height of a row, in pixels."""
LABELLED_GIB = 9
"""A part at least so large has room for its number."""


def ledger(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per cell and part of the memory: its cell, `part, rank, gib, run, href`."""
    counted = [
        run for run in campaign.runs if publication.state(run.run_id) == "counted"
    ]
    by_cell = grouped(counted, lambda run: run.record.cell)
    for cell in cell_keys(campaign):
        chosen = _middle_run(by_cell.get(cell, ()))
        if chosen is None:
            continue
        run, parts = chosen
        for rank, part in enumerate(PARTS):
            if parts.get(part, 0.0) > 0:
                yield {
                    **cell_fields(publication, campaign, cell),
                    "part": part,
                    "rank": rank,
                    "gib": round(parts[part], 2),
                    "run": run.run_id,
                    "href": run_address(run),
                }


def _middle_run(
    runs: Sequence[Stored],
) -> tuple[Stored, Mapping[str, float]] | None:
    """One real run, the one in the middle by free memory, so that the parts add up to something that happened."""
    known = []
    for run in runs:
        parts = memory_parts(run.record)
        if parts:
            known.append((run, parts))
    if not known:
        return None
    known.sort(key=lambda item: item[1].get("free", 0.0))
    return known[len(known) // 2]


def memory_parts(record: Record) -> Mapping[str, float]:
    """Where the machine's memory went at the run's peak, in GiB; empty where the record does not say.

    With a memory ledger: free, page cache, and what was used, of which weights and KV cache are known where the run
    observed them. Without one: what the engine's own profile says.
    """
    weights = record.value("weights_gib") or (record.observed.weight_bytes or 0) / 2**30
    cache = record.value("kv_cache_gib") or 0.0
    found = _measured(record) or _profiled(record, cache)
    if found is None:
        return {}
    used, rest = found
    other = "used, not broken down"
    if weights > 0:
        other = "engine and other"
    return {
        "weights": weights,
        "KV cache": cache,
        **rest,
        other: max(0.0, used - weights - cache),
    }


def _measured(record: Record) -> tuple[float, dict[str, float]] | None:
    """What was used, and the rest, by the ledger at the peak: of the GPU where it has memory of its own."""
    if record.memory is None:
        return None
    peak = record.memory.peak
    if record.machine.unified_memory is False and record.machine.gpus:
        used, total = peak.gpu_used_gib, record.machine.gpus[0].memory_total_gib
        if used is not None and total:
            return used, {"free": total - used}
    used = peak.total_gib - peak.free_gib - peak.cached_gib
    return used, {"page cache": peak.cached_gib, "free": peak.free_gib}


def _profiled(record: Record, cache: float) -> tuple[float, dict[str, float]] | None:
    """What was used, and what was free, by the engine's own profile; the KV cache comes on top of that."""
    profiled, total = record.value("peak_memory_gib"), record.machine.memory_total_gib
    if profiled is None or not total:
        return None
    used = min(profiled + cache, total)
    return used, {"free": total - used}


def figure(selection: Selection, key: str) -> Figure:
    """The largest part, and what these records do not say."""
    rows = selection.rows(TABLE)
    parts = tuple(dict.fromkeys(row["part"] for row in rows))
    used = _used(rows)
    layout = panels.of_cells(selection, used, highest_first=True, side_by_side=False)
    sample = (
        f"{len(used)} runs at their peak: the median run of each cell by free memory."
    )
    missing = [part for part in ("weights", "page cache") if part not in parts]
    if missing:
        sample += f" The records do not show {listed(missing)}."
    return selection.figure(
        key,
        Chart(draw, (parts, layout), phone=(True,)),
        {TABLE: rows},
        title="Memory use at peak",
        says=_largest(rows),
        sample=sample + layout.note(used),
        table=_table(rows, parts),
    )


def _used(rows: Sequence[Row]) -> dict[Cell, float]:
    """Cell to what was in use, in GiB."""
    used: dict[Cell, float] = {}
    for row in rows:
        cell = cell_of(row)
        used.setdefault(cell, 0.0)
        if row["part"] != "free":
            used[cell] += row["gib"]
    return used


def _largest(rows: Sequence[Row]) -> str:
    """Which part takes most, over the runs."""
    sizes: dict[str, list[float]] = {}
    for row in rows:
        if row["part"] != "free":
            sizes.setdefault(row["part"], []).append(row["gib"])
    if not sizes:
        return "The records do not show where memory went."
    part = max(sizes, key=lambda name: sum(sizes[name]))
    amounts = spread([between(min(sizes[part]), max(sizes[part]), 1)], "GiB")
    if part == "used, not broken down":
        return f"{amounts} are in use; the records do not show for what."
    return f"Most of the memory in use is {part}: {amounts}."


def _table(rows: Sequence[Row], parts: Sequence[str]) -> Table:
    runs = {row["cell"]: row for row in rows}
    sizes = {(row["cell"], row["part"]): f"{row['gib']:.2f}" for row in rows}
    body: list[Sequence[Value]] = []
    for cell, row in runs.items():
        known = [sizes.get((cell, part), "unknown") for part in parts]
        body.append([cell, Entry(row["run"], row["href"]), *known])
    heads = [theme.axis_title(part, "GiB") for part in parts]
    return Table(("Cell", "Run", *heads), body)


def draw(
    parts: tuple[str, ...], layout: Layout, narrow: bool = False
) -> dict[str, Any]:
    """Rows `ledger`. `parts` are those that any of the runs has; what is free stands back."""
    layers = partial(_layers, parts)
    return panels.draw(layout, layers, ROW, TABLE, narrow=narrow, shared_x=True)


def _layers(parts: tuple[str, ...], panel: Panel) -> "list[alt.Chart]":
    colours = list(theme.SERIES[: len(PARTS)])
    colours[PARTS.index("free")] = theme.GRID
    x = panel.across("gib", "Memory (GiB)", zero=True)
    legend = alt.Legend(values=list(parts))
    rows = panel.data(TABLE)
    bars = rows.mark_bar(height=21, stroke=theme.FAINT, strokeWidth=0.5).encode(
        x=x.stack("zero"),
        y=panel.y,
        order=alt.Order("rank:Q"),
        color=alt.Color(
            "part:N",
            title="Part",
            scale=alt.Scale(domain=list(PARTS), range=colours),
            legend=legend,
        ),
        tooltip=marks.tooltip("cell", "part", "gib", "run"),
        href=alt.Href("href:N"),
    )
    # Small parts have no number but keep their place in the stack.
    numbers = rows.mark_text(fontSize=11).encode(
        x=alt.X("gib:Q", stack="zero", bandPosition=0.5),
        y=panel.y,
        color=alt.ColorValue(
            theme.BACKGROUND,
            condition=marks.where(marks.equal("part", "free"), theme.FAINT),
        ),
        order=alt.Order("rank:Q"),
        text=alt.TextValue(
            "",
            condition={
                "test": f"datum.gib >= {LABELLED_GIB}",
                "field": "gib",
                "type": "quantitative",
                "format": ".0f",
            },
        ),
        detail=alt.Detail("part:N"),
    )
    return [bars, numbers]


KIND = kind.of_rows("memory-ledger", figure, TABLE, ledger)
