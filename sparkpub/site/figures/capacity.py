"""Capacity of every build at each limit of the time to first token, as a table of shades."""

from collections.abc import Iterator, Sequence
from typing import Any

from sparkpub.record.text import SPACE, counted, listed, rounded
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.tables.capacities import LIMITS_SECONDS, TOLD_SECONDS
from sparkpub.review.tables.column import TableRow, rows
from sparkpub.site.figures import kind, marks, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import Chart
from sparkpub.site.figures.figure import Figure, Table
from sparkpub.site.figures.rows import Row, cell_fields
from sparkpub.site.figures.selection import Scope, Selection
from sparkpub.site.publication import Publication

NAME = TABLE = "capacity"
FIRST_TOKENS = f"95{SPACE}% of the first tokens within {TOLD_SECONDS:g}{SPACE}s"
MOST_NAMED = 4
"""Builds that the sentence names one by one."""
LETTER, MOST_LABEL = 7.5, 330
"""Room for a letter of a name and for the longest name, in pixels. On a phone names stand above their rows."""
SHADES = (0.05, 0.25, 0.6)
"""Requests/s between two shades. The darker shades of the ramp would hide the figures."""
ROW, NARROW_ROW = 20, 40
"""Height of a row in pixels, and with its name above it."""


def capacity(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per build, load and limit, the build with the highest capacity first: the cell of its highest rate,
    `build, load, limit, rate` (0 where none holds), `text, ttft_s` (at that rate, else at the lowest), `tokens`
    (tok/s at that rate), `steps`, `highest` of them."""
    table = publication.results.capacities
    found = rows(table[table["campaign"] == campaign.name])
    of_builds = grouped(found, lambda item: (item.model, item.environment, item.load))
    told = {
        build: next(item for item in items if item.limit_seconds == TOLD_SECONDS)
        for build, items in of_builds.items()
    }
    for build in sorted(told, key=lambda build: _place(told[build]), reverse=True):
        for item in of_builds[build]:
            yield _row(publication, campaign, item)


def _place(item: TableRow) -> tuple[float, float]:
    """Sorts by rate, then by how long users wait at it."""
    return item.rate or 0.0, -item.ttft_p95_ms


def _row(publication: Publication, campaign: CampaignData, item: TableRow) -> Row:
    return {
        **cell_fields(
            publication, campaign, (item.model, item.environment, item.workload)
        ),
        "build": publication.names.build(campaign.name, item.model, item.environment),
        "load": item.load,
        "limit": f"{item.limit_seconds:g} s",
        "rate": item.rate or 0,
        "text": item.text.replace("at least ", "≥ ").replace("below ", "< "),
        "ttft_s": round(item.ttft_p95_ms / 1000, 3),
        "tokens": None if item.rate is None else item.output_throughput_tok_s,
        "steps": ", ".join(f"{rate:g}" for rate in item.rates),
        "highest": item.rates[-1],
    }


def figure(selection: Selection, key: str) -> Figure:
    """How many builds bear what within five seconds."""
    shown = selection.rows(TABLE)
    builds = list(dict.fromkeys(row["build"] for row in shown))
    loads = list(dict.fromkeys(row["load"] for row in shown))
    names = min(MOST_LABEL, round(LETTER * max(map(len, builds))))
    return selection.figure(
        key,
        Chart(draw, (selection.scope, names), phone=(True,)),
        {TABLE: shown},
        title="Capacity: requests per second within a limit of the time to first token",
        says=sentence(shown),
        sample=(
            "The highest arrival rate measured at which 95 % of the requests have their first token within the limit, "
            f"at most 1 % fail, and every lower rate holds, too. Load: {listed(loads)}."
        ),
        table=_table(shown),
    )


def sentence(shown: Sequence[Row]) -> str:
    """What rows of `capacity` show: `12 of 37 builds keep 95 % of the first tokens within 5 s up to 1 request/s, the
    highest rate, 3 as far as theirs were measured, 13 up to a lower one, 9 at none.` Empty where there are none."""
    rows = [row for row in shown if row["limit"] == f"{TOLD_SECONDS:g} s"]
    if not rows:
        return ""
    if len(rows) <= MOST_NAMED:
        each = [f"{row['build']} takes {row['text']} requests/s" for row in rows]
        return f"{listed(each)} with {FIRST_TOKENS}."
    open_ended = [row for row in rows if row["text"].startswith("≥")]
    none = [row for row in rows if row["text"].startswith("<")]
    between = len(rows) - len(open_ended) - len(none)
    # A sweep that ended early, as where a server stopped, bears what it reached and no more is known.
    highest = max(row["highest"] for row in rows)
    to_the_end = [row for row in open_ended if row["highest"] == highest]
    short = len(open_ended) - len(to_the_end)
    ended = ""
    if short:
        ended = f"{short} as far as theirs were measured, "
    builds = counted(len(rows), "build")
    return (
        f"{len(to_the_end)} of {builds} keep {FIRST_TOKENS} at every rate up to {highest:g} a second, {ended}"
        f"{between} up to a lower one, {len(none)} at none."
    )


def _table(shown: Sequence[Row]) -> Table:
    of_builds = grouped(shown, lambda row: (row["build"], row["load"]))
    body = []
    for (build, load), limits in of_builds.items():
        texts = [f"{row['text']} ({rounded(row['ttft_s'])} s)" for row in limits]
        body.append([build, load, *texts, limits[0]["steps"]])
    within = [f"Within {limit:g} s (p95 there)" for limit in LIMITS_SECONDS]
    head = ("Build", "Load", *within, "Rates measured")
    return Table(head, body, caption="Requests per second")


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
        tooltip=marks.tooltip("build", "load", "limit", "text", "ttft_s", "steps"),
    )
    words = cells.mark_text(fontSize=12).encode(x=x, y=y, text=alt.Text("text:N"))
    layers = [shaded, words]
    if narrow:
        layers.append(marks.names(cells, y, "build"))
    return theme.finish(theme.layered(layers, height={"step": step}))


KIND = kind.of_rows(NAME, figure, TABLE, capacity)
