"""Tokens per second of one user against the bytes of weights that each token reads, and what the memory allows."""

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from sparkpub.record.text import counted, outward, rounded
from sparkpub.review.dataset import CampaignData
from sparkpub.review.tables.bandwidths import UNKNOWN
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
    """One row per build, the largest share of the bandwidth first: its cell, `build, weights, gigabytes` (read per
    token), `experts` (of them those of routed experts), `source` (who says so), `tokens` (tok/s), `milliseconds` (per
    token), `percent` (of the bandwidth), `plausible`, `limit` (GB/s). Builds whose bytes nobody knows come last, with
    None in their place."""
    table = publication.results.bandwidths
    found = rows(table[table["campaign"] == campaign.name])
    names = publication.names.campaign(campaign.name)
    alike = _under_one_load(found)
    for item in sorted(alike, key=lambda item: -(item.share_percent or 0)):
        build = names.models.get(item.model, item.model)
        if sum(item.model == other.model for other in alike) > 1:
            build += f", {names.environments.get(item.environment, item.environment)}"
        yield {
            **cell_fields(publication, campaign, item.cell),
            "build": build,
            "weights": item.weights,
            "gigabytes": _giga(item.bytes_per_token),
            "experts": _giga(item.expert_bytes_per_token),
            "source": item.source,
            "tokens": item.output_throughput_tok_s,
            "milliseconds": item.milliseconds_per_token,
            "percent": item.share_percent,
            "plausible": item.is_plausible,
            "limit": item.bandwidth_bytes_s / GIGA,
        }


def _giga(size: float | None) -> float | None:
    return None if size is None else size / GIGA


def _under_one_load(found: Sequence[TableRow]) -> list[TableRow]:
    """The builds under the load of most of them."""
    loads = Counter(item.workload for item in found)
    return [
        item for item in found if item.workload == max(loads, key=loads.__getitem__)
    ]


def figure(selection: Selection, key: str) -> Figure:
    """How much of the bandwidth single users get."""
    listed = selection.rows(TABLE)
    shown = [row for row in listed if row["percent"] is not None]
    formats = tuple(dict.fromkeys(row["weights"] for row in shown))
    limit = max(row["limit"] for row in shown)
    return selection.figure(
        key,
        Chart(draw, (selection.scope, formats, limit)),
        {TABLE: shown},
        title="One user: tokens per second against the weights read for each",
        says=_sentence(shown, len(listed) - len(shown), limit),
        sample=(
            f"Dashed: all of the {limit:g} GB/s. Every build under one load; caches are not counted. Bytes are "
            "those of the parts of a checkpoint, or two for each parameter that the publisher states, where all parts "
            "have 16 bits. Left out: speculative decoding, and models whose publisher states no such number."
        ),
        table=_table(listed),
    )


def _sentence(shown: Sequence[Row], unknown: int, limit: float) -> str:
    shares = [row["percent"] for row in shown]
    low, high = outward(min(shares), max(shares), decimals=0)
    text = (
        f"One user takes {low:g} to {high:g} % of the memory's {limit:g} GB/s, "
        f"half of the {counted(len(shown), 'build')} {rounded(median(shares), 2)} % or more."
    )
    if unknown:
        text += (
            f" For {counted(unknown, 'more build')} the bytes of a token are {UNKNOWN}."
        )
    doubtful = sum(not row["plausible"] for row in shown)
    if doubtful:
        builds = counted(doubtful, "build")
        text += f" For {builds} that is more than engines reach: the format or the size may be wrong."
    return text


def _table(listed: Sequence[Row]) -> Table:
    head = (
        "Build",
        "Weights",
        "GB per token",
        "Of them experts",
        "Who says so",
        "ms per token",
        "tok/s",
        "Of the bandwidth",
    )
    return Table(head, [_cells(row) for row in listed])


def _cells(row: Row) -> list[str]:
    size = experts = share = ""
    if row["percent"] is not None:
        size = rounded(row["gigabytes"])
        experts = rounded(row["experts"]) if row["experts"] else ""
        share = f"{rounded(row['percent'], 2)} %"
    rates = (rounded(row["milliseconds"]), rounded(row["tokens"]))
    return [row["build"], row["weights"], size, experts, row["source"], *rates, share]


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
    known = [row for row in campaign.rows(TABLE) if row["percent"] is not None]
    if len(known) >= FEWEST:
        yield NAME, figure


KIND = kind.Kind(of_campaign=_offers, tables={TABLE: bandwidth})
