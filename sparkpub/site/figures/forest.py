"""Environments against each other: the difference of each pair of cells, with its interval and its verdict."""

from collections.abc import Iterator
from typing import Any

from sparkpub.record.text import listed, percent
from sparkpub.review.dataset import CampaignData
from sparkpub.site.drawing.chart import Chart
from sparkpub.site.figures import marks, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.figure import Figure, Table
from sparkpub.site.figures.kind import Kind, Offer
from sparkpub.site.figures.rows import Row
from sparkpub.site.figures.scope import Scope
from sparkpub.site.figures.selection import Selection
from sparkpub.site.publication import Publication

TABLE = "comparisons"
SHAPES = {
    "higher": "triangle-right",
    "lower": "triangle-left",
    "equivalent": "circle",
    "undecided": "diamond",
    "confounded": "cross",
}
OPEN = "datum.verdict === 'undecided' || datum.verdict === 'confounded'"
"""What is drawn hollow: nothing is shown."""


def offers(campaign: Selection) -> Iterator[Offer]:
    """`comparison`, where there is one in per cent."""
    if campaign.rows(TABLE):
        yield "comparison", figure


def comparisons(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per comparison of a leading metric on a scale with a true zero.

    Its cell, `label, metric, percent, lo, hi` (the interval that decides), `verdict, p` (adjusted).
    """
    several = len(campaign.axes[2]) > 1
    for metric in publication.headlines(campaign):
        for row in publication.comparisons_of(campaign, metric):
            if row.ratio is None or row.deciding_ratio is None:
                continue
            names = (
                [row.model, row.workload, metric.label]
                if several
                else [row.model, metric.label]
            )
            low, high = row.deciding_ratio
            yield {
                "campaign": campaign.name,
                "model": row.model,
                "environment": row.candidate,
                "workload": row.workload,
                "label": " · ".join(names),
                "metric": metric.name,
                "percent": 100 * (row.ratio - 1),
                "lo": 100 * (low - 1),
                "hi": 100 * (high - 1),
                "verdict": row.verdict,
                "p": row.p_adjusted,
            }


def figure(selection: Selection, key: str) -> Figure:
    """How many comparisons have which verdict."""
    rows = selection.rows(TABLE)
    margin = selection.campaign.margin_percent
    verdicts = [row["verdict"] for row in rows]
    count = ", ".join(
        f"{verdicts.count(word)} {word}" for word in dict.fromkeys(verdicts)
    )
    environments = listed(row["environment"] for row in rows)
    return selection.figure(
        key,
        Chart(draw, (selection.scope, margin)),
        {TABLE: rows},
        narrow=Chart(draw, (selection.scope, margin, True)),
        title="Difference from the baseline",
        says=f"Difference of each model in {environments} from the baseline, with the interval that decides: {count}."
        f" The band is ±{margin:g} %: inside it the two are equivalent.",
        sample="Verdicts are corrected for the number of comparisons (Holm).",
        table=Table(
            ("Comparison", "Difference", "Deciding interval", "p, adjusted", "Verdict"),
            [_table_row(row) for row in rows],
        ),
        rows=rows,
    )


def _table_row(row: Row) -> list[str]:
    interval = f"{percent(row['lo'])} to {percent(row['hi'])}"
    p = "n/a" if row["p"] is None else f"{row['p']:.2g}"
    return [row["label"], percent(row["percent"]), interval, p, row["verdict"]]


def draw(scope: Scope, margin_percent: float, narrow: bool = False) -> dict[str, Any]:
    """Rows `comparisons`. The band is the margin within which the campaign calls two environments equivalent.

    What is decided is filled, the rest hollow.
    """
    rows = marks.rows(scope, TABLE)
    axis = alt.Axis(grid=True, labelColor=theme.TEXT, labelLimit=300, labels=not narrow)
    y = alt.Y(
        "label:N",
        sort=None,
        title=None,
        axis=axis,
        scale=alt.Scale(padding=0.75 if narrow else 0),
    )
    x = alt.X(
        "percent:Q",
        title="Difference in % of the baseline",
        scale=alt.Scale(zero=True, nice=True),
    )
    span = rows.mark_rule(strokeWidth=2, color=theme.TEXT).encode(
        x=alt.X("lo:Q"), x2=alt.X2("hi:Q"), y=y
    )
    shapes = alt.Scale(domain=list(SHAPES), range=list(SHAPES.values()))
    point = rows.mark_point(
        size=70,
        filled=True,
        color=theme.SERIES[0],
        strokeWidth=2,
        stroke=theme.SERIES[0],
    ).encode(
        x=x,
        y=y,
        shape=alt.Shape("verdict:N", title="Verdict", scale=shapes),
        fillOpacity=alt.condition(OPEN, alt.value(0), alt.value(1)),
        tooltip=marks.tooltip("label", "percent", "lo", "hi", "verdict", "p"),
    )
    once = marks.once(TABLE)
    layers = [
        marks.margin_band(once, margin_percent),
        marks.zero_line(once),
        span,
        point,
    ]
    if narrow:
        layers.append(marks.names(rows, y, "label"))
    return theme.finish(
        alt.layer(*layers).properties(height={"step": 38 if narrow else 26})
    )


KIND = Kind(of_campaign=offers, tables={TABLE: comparisons})
