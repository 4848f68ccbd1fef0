"""What the charts of a scope are put together from: its rows, its axes, its runs as points."""

from collections.abc import Sequence
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.site.figures import theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.selection import Scope
from sparkpub.site.figures.theme import Series

FEWEST_STEPS = 6
"""Of a metric's last digit that an axis spans at least."""
Span = tuple[float, float]
"""Least and largest value."""


def equal(column: str, name: str) -> str:
    """A Vega expression that keeps the rows with this name in a column."""
    return f"datum.{column} === {name!r}"


def among(column: str, names: Sequence[str]) -> str:
    """A Vega expression that keeps the rows with one of these names in a column."""
    return f"indexof({list(names)!r}, datum.{column}) >= 0"


def has(column: str) -> str:
    """A Vega expression that keeps the rows with a value in a column."""
    return f"isValid(datum.{column})"


def about(metric: Metric) -> str:
    """A Vega expression that keeps a metric's rows of `cells` and `trends`."""
    return equal("metric", metric.name)


def where(test: str, value: float | str) -> dict[str, Any]:
    """The condition of a channel that has another value where a Vega expression is true."""
    return {"test": test, "value": value}


COUNTED = equal("state", "counted")
"""A Vega expression that keeps the runs in the figures."""


def every(name: str) -> "alt.Chart":
    """A chart on all rows called `name`."""
    return alt.Chart(alt.NamedData(name))


def rows(scope: Scope, name: str, *more: str) -> "alt.Chart":
    """A chart on the rows called `name`, cut to this scope."""
    kept = (
        equal("campaign", scope.campaign),
        among("model", scope.models),
        among("environment", scope.environments),
        among("workload", scope.workloads),
        *more,
    )
    return every(name).transform_filter(" && ".join(kept))


def least_axis(metric: Metric, values: Sequence[float]) -> Span | None:
    """What an axis has to show at least, in the metric's unit, where all values are equal or nearly so.

    Without it the axis would spread the rounding errors of the values over its whole length, and number them with
    digits that nobody measured. None where the values spread far enough by themselves.
    """
    if not values:
        return None
    step = 10.0**-metric.decimals
    low, high = min(values), max(values)
    if high - low >= FEWEST_STEPS * step:
        return None
    reach = FEWEST_STEPS // 2 * step
    middle = (low + high) / 2
    return (
        round(max(middle - reach, metric.minimum), metric.decimals),
        round(middle + reach, metric.decimals),
    )


HALF_POINT = 6
"""Pixels from the middle of a run's point to its edge."""


def scale(shown: Span | None, *, zero: bool = False) -> "alt.Scale":
    """A scale of round ends that has room for all values and for what `least_axis` found. No point lies on the names at
    its beginning."""
    found: alt.Scale = alt.Scale(
        zero=zero, nice=True, padding=0 if zero else HALF_POINT
    )
    if shown is not None:
        found.domain = alt.DomainUnionWith(unionWith=list(shown))
    return found


def x(
    column: str,
    title: str | None,
    *,
    zero: bool,
    labels: bool = True,
    shown: Span | None = None,
) -> "alt.X":
    """The values of a column along the bottom; the axis has room for `shown` as well."""
    return alt.X(
        f"{column}:Q",
        title=title,
        scale=scale(shown, zero=zero),
        axis=alt.Axis(labelOverlap="greedy", labelSeparation=8, labels=labels),
    )


def y(
    column: str, title: str | None, *, zero: bool = False, shown: Span | None = None
) -> "alt.Y":
    """The values of a column up the side; the axis has room for `shown` as well."""
    return alt.Y(f"{column}:Q", title=title, scale=scale(shown, zero=zero))


def seconds(column: str) -> "alt.X":
    """Time within a run along the bottom."""
    return alt.X(
        f"{column}:Q",
        title="Seconds since launch",
        scale=alt.Scale(nice=False, zero=False),
    )


def names(
    rows: "alt.Chart", y: "alt.Y", field: str, words: str = "", *, height: int = 20
) -> "alt.Chart":
    """Names above the rows instead of beside them, where they are long: they leave the plot its whole width. `words` is
    an expression for what stands there instead of the field, `height` that of a row in pixels."""
    each = rows.transform_aggregate(count="count()", groupby=[field])
    each = each.transform_calculate(said=words or f"datum.{field}")
    text = each.mark_text(align="left", dy=-height / 2 - 8, fontSize=12)
    named: alt.Chart = text.encode(x=alt.XValue(0), y=y, text=alt.Text("said:N"))
    return named


def margin_band(once: "alt.Chart", margin_percent: float) -> "alt.Chart":
    """The margin within which the campaign calls two environments equivalent."""
    band: alt.Chart = once.mark_rect(opacity=0.14, color=theme.SERIES[2]).encode(
        x=alt.XDatum(-margin_percent), x2=alt.X2Datum(margin_percent)
    )
    return band


def zero_line(once: "alt.Chart") -> "alt.Chart":
    """The place of no difference."""
    line: alt.Chart = once.mark_rule(strokeDash=[3, 3]).encode(x=alt.XDatum(0))
    return line


def once(name: str) -> "alt.Chart":
    """A chart with a single row, for what is drawn once."""
    return every(name).transform_aggregate(count="count()")


def environments(
    scope: Scope, title: str | None = "Environment", listed: Sequence[str] = ()
) -> Series:
    """The environments of a scope, with a legend of that title; `listed` are those in it, where not all are drawn."""
    called = [scope.name(key) for key in scope.environments]
    return Series("environment", scope.environments, title, called, listed)


def lines(column: str, names: Sequence[str], title: str = "Line") -> Series:
    """The lines of a sweep, with a legend where there are several: what all of them share is its title,
    else `title`."""
    if len(names) < 2:
        return Series(column, names)
    parts = [name.split(", ") for name in names]
    shared = [part for part in parts[0] if all(part in each for each in parts)]
    called = [", ".join(part for part in each if part not in shared) for each in parts]
    if not all(called):
        return Series(column, names, title)
    return Series(column, names, ", ".join(shared) or title, called)


def runs(rows: "alt.Chart", series: Series, **channels: Any) -> "alt.Chart":
    """Runs as points that lead to their pages; of a run that is left out only the outline shows."""
    points: alt.Chart = rows.mark_point(size=46, filled=True).encode(
        color=series.colour,
        stroke=series.outline,
        shape=series.shape,
        fillOpacity=counted_opacity(),
        href=alt.Href("href:N"),
        **channels,
    )
    return points


def counted_opacity() -> "alt.FillOpacity":
    """Filled where a run is in the figures, hollow where it is left out."""
    return alt.FillOpacity(
        "state:N",
        scale=alt.Scale(domain=["counted", "excluded"], range=[0.75, 0]),
        legend=None,
    )


def run_tooltip(title: str, column: str, *more: "alt.Tooltip") -> list["alt.Tooltip"]:
    """What pointing at a run tells."""
    return [
        alt.Tooltip("run:N", title="run"),
        alt.Tooltip(f"{column}:Q", title=title, format=",.5~r"),
        *more,
        alt.Tooltip("start_temp:Q", title="°C at start"),
        alt.Tooltip("state:N", title="in the figures"),
        alt.Tooltip("flags:N", title="flags"),
    ]


def tooltip(*columns: str) -> list["alt.Tooltip"]:
    """What pointing at a mark tells: these columns as they are."""
    return [alt.Tooltip(f"{column}:N") for column in columns]
