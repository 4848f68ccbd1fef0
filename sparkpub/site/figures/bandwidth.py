"""Tokens per second of one user against the bytes of weights that each token reads, and what the memory allows."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from sparkpub.record.text import (
    counted,
    extent,
    rounded,
)
from sparkpub.review.dataset import CampaignData
from sparkpub.review.tables.column import TableRow, rows
from sparkpub.site.figures import kind, marks, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import Chart
from sparkpub.site.figures.figure import Figure, Table
from sparkpub.site.figures.rows import Row, cell_fields
from sparkpub.site.figures.selection import Scope, Selection
from sparkpub.site.publication import Publication

NAME = TABLE = "memory-bandwidth"
FEWEST = 3
"""Builds from which on there is a picture."""
GIGA = 1e9


def bandwidth(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per build whose model and machine are known, the largest share of the bandwidth first: its cell, `build,
    weights, gigabytes` (read per token), `tokens` (tok/s), `milliseconds` (per token), `percent` (of the bandwidth),
    `limit` (GB/s)."""
    table = publication.results.bandwidths
    found = rows(table[table["campaign"] == campaign.name])
    names = publication.names.campaign(campaign.name)
    for item in sorted(_shortest(found), key=lambda item: -item.share_percent):
        build = names.models.get(item.model, item.model)
        if sum(item.model == other.model for other in _shortest(found)) > 1:
            build += f", {names.environments.get(item.environment, item.environment)}"
        yield {
            **cell_fields(publication, campaign, item.cell),
            "build": build,
            "weights": item.weights,
            "gigabytes": item.bytes_per_token / GIGA,
            "tokens": item.output_throughput_tok_s,
            "milliseconds": item.milliseconds_per_token,
            "percent": item.share_percent,
            "limit": item.bandwidth_bytes_s / GIGA,
        }


def _shortest(found: Sequence[TableRow]) -> list[TableRow]:
    """Of each build the load in which it is fastest: the one whose caches are the smallest."""
    best: dict[tuple[str, str], TableRow] = {}
    for item in found:
        build = (item.model, item.environment)
        if build not in best or item.share_percent > best[build].share_percent:
            best[build] = item
    return list(best.values())


def figure(selection: Selection, key: str) -> Figure:
    """How much of the bandwidth single users get."""
    shown = selection.rows(TABLE)
    formats = tuple(dict.fromkeys(row["weights"] for row in shown))
    limit = max(row["limit"] for row in shown)
    return selection.figure(
        key,
        Chart(draw, (selection.scope, formats, limit)),
        {TABLE: shown},
        title="One user: tokens per second against the weights read for each",
        says=_sentence(shown, limit),
        sample=(
            f"Dashed: all of the {limit:g} GB/s. Each build under its fastest load; bytes are the parameters of a "
            "token, as the publisher says, times the bits of the format, wider parts and caches not counted. Left out: "
            "speculative decoding, and models whose publisher says no such number."
        ),
        table=_table(shown),
    )


def _sentence(shown: Sequence[Row], limit: float) -> str:
    shares = [row["percent"] for row in shown]
    text = (
        f"One user takes {extent(shares)} % of the memory's {limit:g} GB/s, "
        f"half of the {counted(len(shown), 'build')} {rounded(median(shares), 2)} % or more."
    )
    above = sum(share > 100 for share in shares)
    if above:
        builds = counted(above, "build")
        text += f" Above 100 %, for {builds}, the format or the size cannot be true."
    return text


def _table(shown: Sequence[Row]) -> Table:
    body = [
        [
            row["build"],
            row["weights"],
            rounded(row["gigabytes"]),
            rounded(row["milliseconds"]),
            rounded(row["tokens"]),
            f"{rounded(row['percent'], 2)} %",
        ]
        for row in shown
    ]
    head = (
        "Build",
        "Weights",
        "GB per token",
        "ms per token",
        "tok/s",
        "Of the bandwidth",
    )
    return Table(head, body)


def draw(scope: Scope, formats: tuple[str, ...], limit: float) -> dict[str, Any]:
    """Rows `memory-bandwidth` on logarithmic axes; the line is what a memory of `limit` GB/s allows."""
    series = theme.Series("weights", formats, "Weights")
    builds = marks.rows(scope, TABLE)
    x = alt.X(
        "gigabytes:Q",
        title="GB of weights read per token",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(format="~g"),
    )
    y = alt.Y(
        "tokens:Q",
        title="Output tokens per second, one user",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(format="~g"),
    )
    points = builds.mark_point(size=60, filled=True, opacity=0.85).encode(
        x=x,
        y=y,
        color=series.colour,
        shape=series.shape,
        tooltip=marks.tooltip("build", "weights", "tokens", "milliseconds", "percent"),
    )
    allowed = builds.transform_calculate(allowed=f"{limit} / datum.gigabytes")
    line = allowed.mark_line(strokeDash=[4, 3], color=theme.FAINT).encode(
        x=x, y=alt.Y("allowed:Q", scale=alt.Scale(type="log")), order="gigabytes:Q"
    )
    return theme.finish(theme.layered([line, points], height=340))


def _offers(campaign: Selection) -> Iterator[kind.Offer]:
    if len(campaign.rows(TABLE)) >= FEWEST:
        yield NAME, figure


KIND = kind.Kind(of_campaign=_offers, tables={TABLE: bandwidth})
