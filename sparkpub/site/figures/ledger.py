"""Where the machine's memory went in one run of each cell."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.record.text import listed
from sparkpub.review.dataset import CampaignData
from sparkpub.site.drawing.chart import Chart
from sparkpub.site.figures import marks, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.figure import Entry, Figure, Table, Value
from sparkpub.site.figures.kind import Kind, Offer
from sparkpub.site.figures.rows import Row, cell_fields
from sparkpub.site.figures.scope import Scope
from sparkpub.site.figures.selection import Selection
from sparkpub.site.publication import Publication, cell_keys, run_address

TABLE = "ledger"
PARTS = (
    "weights",
    "KV cache",
    "engine and other",
    "page cache",
    "free",
    "used, not broken down",
)
"""Into which the machine's memory is divided, from left to right."""
LABELLED_GIB = 9
"""A part at least so large has room for its number."""


def offers(campaign: Selection) -> Iterator[Offer]:
    """`memory-ledger`, where a record says where memory went."""
    if campaign.rows(TABLE):
        yield "memory-ledger", figure


def ledger(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per cell and part of the memory: its cell, `part, rank, gib, run, href`."""
    for cell in cell_keys(campaign):
        chosen = _middle_run(publication, campaign, cell)
        if chosen is None:
            continue
        run, parts = chosen
        for rank, part in enumerate(PARTS):
            if parts.get(part, 0.0) > 0:
                yield {
                    **cell_fields(campaign, cell),
                    "part": part,
                    "rank": rank,
                    "gib": round(parts[part], 2),
                    "run": run.record.run_id,
                    "href": run_address(run),
                }


def _middle_run(
    publication: Publication, campaign: CampaignData, cell: tuple[str, str, str]
) -> tuple[Stored, Mapping[str, float]] | None:
    """One real run, the one in the middle by free memory, so that the parts add up to something that happened."""
    known = []
    for run in campaign.runs:
        if (
            run.record.cell == cell
            and publication.state(run.record.run_id) == "counted"
        ):
            parts = memory_parts(run.record)
            if parts:
                known.append((run, parts))
    known.sort(key=lambda item: item[1].get("free", 0.0))
    return known[len(known) // 2] if known else None


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
    other = "engine and other" if weights > 0 else "used, not broken down"
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
    own_memory = (
        record.machine.gpus[0].memory_total_gib if record.machine.gpus else None
    )
    if (
        record.machine.unified_memory is False
        and peak.gpu_used_gib is not None
        and own_memory
    ):
        return peak.gpu_used_gib, {"free": own_memory - peak.gpu_used_gib}
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
    """What is shown, and what these records do not say."""
    rows = selection.rows(TABLE)
    parts = tuple(dict.fromkeys(row["part"] for row in rows))
    missing = [part for part in ("weights", "page cache") if part not in parts]
    says = "Memory of the whole machine at the peak of one run of each cell, the middle one by free memory."
    if missing:
        says += f" These records do not say what was {listed(missing)}."
    return selection.figure(
        key,
        Chart(draw, (selection.scope, parts)),
        {TABLE: rows},
        narrow=Chart(draw, (selection.scope, parts, True)),
        title="Where memory went",
        says=says,
        sample=f"{len({row['cell'] for row in rows})} runs of campaign {selection.campaign.name}, one of each cell.",
        table=_table(rows, parts),
        rows=rows,
    )


def _table(rows: Sequence[Row], parts: Sequence[str]) -> Table:
    runs = {row["cell"]: row for row in rows}
    sizes = {(row["cell"], row["part"]): f"{row['gib']:.2f}" for row in rows}
    body: list[Sequence[Value]] = []
    for cell, row in runs.items():
        body.append(
            [
                cell,
                Entry(row["run"], row["href"]),
                *(sizes.get((cell, part), "unknown") for part in parts),
            ]
        )
    return Table(("Cell", "Run", *(f"{part} (GiB)" for part in parts)), body)


def draw(scope: Scope, parts: tuple[str, ...], narrow: bool = False) -> dict[str, Any]:
    """Rows `ledger`. `parts` are those that any of the runs has; what is free stands back."""
    rows, y = marks.rows(scope, TABLE), marks.y(scope, labels=not narrow)
    colours = [
        theme.GRID if part == "free" else theme.SERIES[place]
        for place, part in enumerate(PARTS)
    ]
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
        tooltip=marks.tooltip("cell", "part", "gib", "run"),
        href=alt.Href("href:N"),
    )
    numbers = (
        marks.rows(scope, TABLE, f"datum.gib >= {LABELLED_GIB}")
        .mark_text(fontSize=11)
        .encode(
            x=alt.X("gib:Q", stack="zero", bandPosition=0.5),
            y=y,
            color=alt.condition(
                "datum.part === 'free'",
                alt.value(theme.FAINT),
                alt.value(theme.BACKGROUND),
            ),
            order=alt.Order("rank:Q"),
            text=alt.Text("gib:Q", format=".0f"),
            detail=alt.Detail("part:N"),
        )
    )
    layers = [bars, numbers]
    if narrow:
        layers.append(marks.names(rows, y, "cell"))
    return theme.finish(
        alt.layer(*layers).properties(height=marks.height(scope, 44 if narrow else 28))
    )


KIND = Kind(of_campaign=offers, tables={TABLE: ledger})
