"""Capacity of every build at each limit of the time to first token, as a table of shades."""

from collections.abc import Iterator, Sequence
from typing import Any

from sparkpub.record.text import counted, listed, rounded
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.tables.capacities import (
    LIMIT_TPOT_MS,
    LIMITS,
    LIMITS_SECONDS,
    NOT_RANKED,
    TOLD_SECONDS,
    in_order,
)
from sparkpub.review.tables.column import TableRow, rows
from sparkpub.site.figures import kind, marks, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import Chart
from sparkpub.site.figures.figure import Figure, Table
from sparkpub.site.figures.rows import Row, cell_fields
from sparkpub.site.figures.selection import Scope, Selection
from sparkpub.site.publication import Publication

NAME = TABLE = "capacity"
MOST_NAMED = 4
"""Builds that the sentence names one by one."""
LETTER, MOST_LABEL = 7.5, 330
"""Room for a letter of a name and for the longest name, in pixels. On a phone names stand above their rows."""
SHADES = (0.05, 0.25, 0.6)
"""Requests/s between two shades. The darker shades of the ramp would hide the figures."""
ROW, NARROW_ROW = 20, 40
"""Height of a row in pixels, and with its name above it."""


def capacity(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per build, load and limit, the builds as they are ranked: the cell of its highest rate, `build, load,
    limit, rate` (0 where none holds), `text`, `short` (the same for a cell), `ttft_s, tpot_ms, served, in_flight, each`
    (at that rate, else at the lowest), `tokens` (tok/s at that rate), `note, steps, highest` of them."""
    table = publication.results.capacities
    found = rows(table[table["campaign"] == campaign.name])
    of_builds = grouped(found, lambda item: (item.model, item.environment, item.load))
    told = [item for item in found if item.limit_seconds == TOLD_SECONDS]
    for build in in_order(told):
        for item in of_builds[build.model, build.environment, build.load]:
            yield _row(publication, campaign, item)


def _row(publication: Publication, campaign: CampaignData, item: TableRow) -> Row:
    return {
        **cell_fields(
            publication, campaign, (item.model, item.environment, item.workload)
        ),
        "build": publication.names.build(campaign.name, item.model, item.environment),
        "load": item.load,
        "limit": f"{item.limit_seconds:g} s",
        "rate": item.rate or 0,
        "text": item.text,
        "short": f"all to {item.rate:g}" if item.at_least else item.text,
        "ttft_s": round(item.ttft_p95_ms / 1000, 3),
        "tpot_ms": item.tpot_p95_ms,
        "served": item.served_req_s,
        "in_flight": item.in_flight,
        "each": item.user_tok_s,
        "note": item.note or "",
        "at_least": item.at_least,
        "tokens": None if item.rate is None else item.output_throughput_tok_s,
        "steps": ", ".join(f"{rate:g}" for rate in item.rates),
        "highest": item.rates[-1],
    }


def figure(selection: Selection, key: str) -> Figure:
    """How many builds bear what within the limits."""
    shown = selection.rows(TABLE)
    builds = list(dict.fromkeys(row["build"] for row in shown))
    loads = list(dict.fromkeys(row["load"] for row in shown))
    names = min(MOST_LABEL, round(LETTER * max(map(len, builds))))
    return selection.figure(
        key,
        Chart(draw, (selection.scope, names), phone=(True,)),
        {TABLE: shown},
        title="Capacity: requests per second within limits of the time to first token and per output token",
        says=sentence(shown),
        sample=(
            "The highest arrival rate measured at which 95 % of the first tokens come within the limit, 95 % of the "
            f"times per output token are at most {LIMIT_TPOT_MS:g} ms, at most 1 % of the requests fail, and every "
            "lower rate holds, too. “All to”: every measured rate holds, so the limit is not known. "
            f"Load: {listed(loads)}."
        ),
        table=_table(shown),
    )


def sentence(shown: Sequence[Row]) -> str:
    """What rows of `capacity` show: `4 of 37 builds keep … at every rate up to 1.0 a second, 2 as far as theirs were
    measured, 12 up to a lower one, 18 at none. 1 is not ranked.` Empty where there are none."""
    rows = [row for row in shown if row["limit"] == f"{TOLD_SECONDS:g} s"]
    if not rows:
        return ""
    if len(rows) <= MOST_NAMED:
        each = [f"{row['build']} {row['text']}" for row in rows]
        return f"Requests a second with {LIMITS}: {'; '.join(each)}."
    ranked = [row for row in rows if row["text"] != NOT_RANKED]
    open_ended = [row for row in ranked if row["at_least"]]
    none = [row for row in ranked if not row["rate"]]
    between = len(ranked) - len(open_ended) - len(none)
    # A sweep that ended early, as where a server stopped, bears what it reached and no more is known.
    highest = max(row["highest"] for row in rows)
    to_the_end = [row for row in open_ended if row["highest"] == highest]
    short = len(open_ended) - len(to_the_end)
    ended = ""
    if short:
        ended = f"{short} as far as theirs were measured, "
    builds = counted(len(rows), "build")
    text = (
        f"{len(to_the_end)} of {builds} keep {LIMITS} at every rate up to {highest} a second, {ended}"
        f"{between} up to a lower one, {len(none)} at none."
    )
    if len(ranked) < len(rows):
        text += f" {len(rows) - len(ranked)} not ranked: the answers at some rates had another length than asked for."
    return text


def _table(shown: Sequence[Row]) -> Table:
    of_builds = grouped(shown, lambda row: (row["build"], row["load"]))
    body = []
    for (build, load), limits in of_builds.items():
        texts = [row["text"] for row in limits]
        told = limits[-1]
        means = [told[name] for name in _MEANS]
        figures = ["" if mean is None else rounded(mean) for mean in means]
        body.append([build, load, *texts, *figures, told["note"], told["steps"]])
    within = [f"Within {limit:g} s" for limit in LIMITS_SECONDS]
    head = ("Build", "Load", *within, *_MEANS.values(), "Note", "Rates measured")
    caption = f"Requests per second; from “{next(iter(_MEANS.values()))}” on at the rate within {TOLD_SECONDS:g} s"
    return Table(head, body, caption=f"{caption}, else at the lowest")


_MEANS = {
    "ttft_s": "First token, p95 in s",
    "tpot_ms": "Time per output token, p95 in ms",
    "served": "Completed a second",
    "in_flight": "In flight",
    "each": "tok/s for each user",
}


def draw(scope: Scope, names: int, narrow: bool = False) -> dict[str, Any]:
    """Rows `capacity`: a row per build, a column per limit, the darker the more; `names` is the room for the names."""
    axis = alt.Axis(labelLimit=names, minExtent=names, maxExtent=names)
    step, gap = ROW, 0.0
    if narrow:
        axis = alt.Axis(labels=False)
        step, gap = NARROW_ROW, 0.5
    y = alt.Y(
        "build:N",
        sort=None,
        title=None,
        axis=axis,
        scale=alt.Scale(paddingInner=gap, paddingOuter=gap),
    )
    x = alt.X(
        "limit:N",
        sort=None,
        title="Requests/s with the first token within",
        axis=alt.Axis(orient="top", labelAngle=0),
    )
    shades = alt.Scale(
        type="threshold",
        domain=list(SHADES),
        range=[theme.BACKGROUND, *theme.RAMP[: len(SHADES)]],
    )
    cells = marks.rows(scope, TABLE)
    shaded = cells.mark_rect(stroke=theme.GRID).encode(
        x=x,
        y=y,
        color=alt.Color("rate:Q", scale=shades, legend=None),
        tooltip=marks.tooltip(
            "build", "load", "limit", "text", *_MEANS, "note", "steps"
        ),
    )
    words = cells.mark_text(fontSize=12).encode(x=x, y=y, text=alt.Text("short:N"))
    layers = [shaded, words]
    if narrow:
        layers.append(marks.names(cells, y, "build"))
    return theme.finish(theme.layered(layers, height={"step": step}))


KIND = kind.of_rows(NAME, figure, TABLE, capacity)
