"""How a metric spreads: all points, boxes, and means from zero."""

from typing import Any

import altair as alt

from sparkpub.record.metrics import Metric
from sparkpub.site.figures import marks, theme
from sparkpub.site.figures.scope import Scope


def _of(metric: Metric) -> str:
    return f"datum.metric === {metric.name!r}"


def _x(metric: Metric, field: str, *, zero: bool) -> alt.X:
    title = theme.axis_title(metric.label, metric.unit)
    axis = alt.Axis(labelOverlap="greedy", labelSeparation=8)
    return alt.X(f"{field}:Q", title=title, scale=alt.Scale(zero=zero, nice=True), axis=axis)


def _height(scope: Scope, step: int = theme.ROW) -> int:
    return max(2, len(scope.cells)) * step


def strip(scope: Scope, metric: Metric) -> dict[str, Any]:
    """Every run as a point, in a row per cell; from top to bottom of a row in order of iteration.

    The bar behind is the 95 % confidence interval of the mean, the tick the mean. Runs that are not in the
    figures are hollow.
    """
    name = metric.name
    points = marks.points(
        scope,
        marks.rows(scope, "runs", f"isValid(datum.{name})"),
        title=None,
        x=_x(metric, name, zero=False),
        y=marks.y(scope),
        yOffset=alt.YOffset("iteration:Q", scale=alt.Scale(zero=False)),
        tooltip=marks.run_tooltip(metric.label, name),
    )
    cells = marks.rows(scope, "cells", _of(metric))
    interval = cells.mark_bar(height=10, opacity=0.22, color=theme.FAINT).encode(
        x=_x(metric, "lo", zero=False), x2=alt.X2("hi:Q"), y=marks.y(scope)
    )
    mean = cells.mark_tick(thickness=2.5, size=26, color=theme.TEXT).encode(
        x=_x(metric, "mean", zero=False),
        y=marks.y(scope),
        tooltip=[alt.Tooltip("cell:N"), *(alt.Tooltip(f"{field}:Q") for field in ("mean", "lo", "hi", "n"))],
    )
    return theme.finish(alt.layer(interval, points, mean).properties(height=_height(scope)))


def relative(scope: Scope, metric: Metric, baseline: str, margin_percent: float) -> dict[str, Any]:
    """Every run in per cent of the mean of its model and workload in the baseline, so that cells of any size compare.

    The band is the margin within which the campaign calls two environments equivalent. Runs that are not in the
    figures are hollow, and not in the mean.
    """
    name, band = metric.name, alt.Chart(alt.NamedData("runs")).transform_aggregate(count="count()")
    inside = band.mark_rect(opacity=0.14, color=theme.SERIES[2]).encode(
        x=alt.XDatum(-margin_percent), x2=alt.X2Datum(margin_percent)
    )
    zero = band.mark_rule(strokeDash=[3, 3]).encode(x=alt.XDatum(0))
    counted = f"datum.state === 'counted' && datum.environment === {baseline!r} ? datum.{name} : null"
    points = marks.points(
        scope,
        marks.rows(scope, "runs", f"isValid(datum.{name})")
        .transform_calculate(base=counted)
        .transform_joinaggregate(mean="mean(base)", groupby=["model", "workload"])
        .transform_calculate(percent=f"100 * (datum.{name} / datum.mean - 1)")
        .transform_filter("isValid(datum.mean)"),
        title=None,
        x=alt.X("percent:Q", title=f"{metric.label}, in % from the mean of {baseline}", scale=alt.Scale(padding=10)),
        y=marks.y(scope),
        yOffset=alt.YOffset("iteration:Q", scale=alt.Scale(zero=False)),
        tooltip=marks.run_tooltip(
            metric.label, name, [alt.Tooltip("percent:Q", title="% from the baseline's mean", format="+.2f")]
        ),
    )
    return theme.finish(alt.layer(inside, zero, points).properties(height=_height(scope)))


def bars(scope: Scope, metric: Metric) -> dict[str, Any]:
    """Mean of each cell as a bar from zero, with the 95 % confidence interval of the mean."""
    cells = marks.rows(scope, "cells", _of(metric))
    bar = cells.mark_bar(height=alt.RelativeBandSize(0.8)).encode(
        x=_x(metric, "mean", zero=True), y=marks.y(scope), color=marks.environment_colour(scope, None)
    )
    whisker = cells.mark_errorbar(ticks=True, color=theme.TEXT).encode(
        x=alt.X("lo:Q", title=theme.axis_title(metric.label, metric.unit)), x2=alt.X2("hi:Q"), y=marks.y(scope)
    )
    return theme.finish(alt.layer(bar, whisker).properties(height=_height(scope, 26)))


def box(scope: Scope, metric: Metric) -> dict[str, Any]:
    """Box plots: median, quartiles, whiskers to the farthest run within 1.5 interquartile ranges (Tukey)."""
    name = metric.name
    rows = marks.rows(scope, "runs", f"isValid(datum.{name})", "datum.state === 'counted'")
    boxes = rows.mark_boxplot(
        size=18, median={"color": theme.TEXT}, rule={"color": theme.FAINT}, outliers={"size": 30, "filled": False}
    ).encode(x=_x(metric, name, zero=False), y=marks.y(scope), color=marks.environment_colour(scope, None))
    return theme.finish(alt.layer(boxes).properties(height=_height(scope)))


def order(scope: Scope, metric: Metric) -> dict[str, Any]:
    """Every run against its place in the campaign, with the trend of each cell (Theil-Sen)."""
    name = metric.name
    x = alt.X("order:Q", title="Run order in the campaign", scale=alt.Scale(nice=True, zero=False))
    y = alt.Y(f"{name}:Q", title=theme.axis_title(metric.label, metric.unit), scale=alt.Scale(zero=False, nice=True))
    points = marks.points(
        scope,
        marks.rows(scope, "runs", f"isValid(datum.{name})"),
        x=x,
        y=y,
        tooltip=[*marks.run_tooltip(metric.label, name), alt.Tooltip("order:Q", title="place")],
    )
    trend = (
        marks.rows(scope, "trends", _of(metric))
        .transform_calculate(line="'trend in ' + datum.environment")  # a name shared would dash the points' legend
        .mark_line(strokeWidth=2, opacity=0.8)
        .encode(
            x=x,
            y=alt.Y("value:Q", title=theme.axis_title(metric.label, metric.unit)),
            detail=alt.Detail("cell:N"),
            color=marks.environment_colour(scope),
            strokeDash=theme.dash("line", [f"trend in {name}" for name in scope.environments]),
        )
    )
    # One name per pair of lines: those of the environments lie close to each other. Workloads alternate in side.
    several = len(scope.workloads) > 1
    first = ("datum.end === 'first'", f"datum.environment === {scope.environments[0]!r}")
    names = [
        marks.rows(scope, "trends", _of(metric), *first, f"datum.workload === {workload!r}")
        .transform_calculate(name="datum.model" + (" + ' · ' + datum.workload" if several else ""))
        .mark_text(align="left", dy=14 if place % 2 else -10, fontSize=11, color=theme.FAINT)
        .encode(x=x, y=alt.Y("value:Q"), text=alt.Text("name:N"))
        for place, workload in enumerate(scope.workloads)
    ]
    return theme.finish(alt.layer(trend, points, *names).properties(height=280))


def scatter(scope: Scope, across: Metric, up: Metric) -> dict[str, Any]:
    """Two metrics of the same runs against each other."""
    points = (
        marks.rows(scope, "runs", f"isValid(datum.{across.name})", f"isValid(datum.{up.name})")
        .mark_point(size=50, filled=True, opacity=0.75)
        .encode(
            x=_x(across, across.name, zero=False),
            y=alt.Y(f"{up.name}:Q", title=theme.axis_title(up.label, up.unit), scale=alt.Scale(zero=False)),
            color=marks.environment_colour(scope),
            shape=marks.environment_shape(scope),
            tooltip=marks.run_tooltip(across.label, across.name, [alt.Tooltip(f"{up.name}:Q", title=up.label)]),
            href=alt.Href("href:N"),
        )
    )
    return theme.finish(alt.layer(points).properties(height=300))


def sweep(scope: Scope, metric: Metric) -> dict[str, Any]:
    """A metric against batch size: every run as a point, means joined by lines, one line per model and environment."""
    x = alt.X("batch:Q", title="Batch size", scale=alt.Scale(type="log", base=2), axis=alt.Axis(format="d"))
    title = theme.axis_title(metric.label, metric.unit)
    points = (
        marks.rows(scope, "runs", f"isValid(datum.{metric.name})", "isValid(datum.batch)")
        .mark_point(size=40, filled=True, opacity=0.6)
        .encode(
            x=x,
            y=alt.Y(f"{metric.name}:Q", title=title),
            color=theme.colour("model", scope.models, "Model"),
            shape=theme.shape("environment", scope.environments, "Environment"),
            tooltip=marks.run_tooltip(metric.label, metric.name, [alt.Tooltip("batch:Q", title="batch size")]),
            href=alt.Href("href:N"),
        )
    )
    lines = (
        marks.rows(scope, "cells", _of(metric), "isValid(datum.batch)")
        .mark_line()
        .encode(
            x=x,
            y=alt.Y("mean:Q", title=title),
            color=theme.colour("model", scope.models, "Model"),
            strokeDash=theme.dash("environment", scope.environments),
            detail=alt.Detail("environment:N"),
        )
    )
    return theme.finish(alt.layer(lines, points).properties(height=300))
