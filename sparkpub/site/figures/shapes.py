"""Seven shapes of charts. Each takes the rows that it draws and nothing else, and gives a Vega-Lite specification.

A row has words for readers in it. `name` stands beside it, `panel` above those that belong together, `group` decides
colour and shape; `kind` tells the rows of one layer from those of another (`mean` beside runs, `mean run` for both at
once, `room` for what an axis has to show at least). `href` leads to a run, `tip` is what pointing at the mark tells,
`counts` is False for a run that is left out: it is drawn hollow.

    dots      every `value` in a row per name; a mean with `low`, `high`, and the margin     every run, relative, box
    forest    a difference `value` with its interval and `verdict`, and the margin           comparison, per machine
    bars      `value` from zero, side by side by group, with `low`, `high`                   means
    lines     `value` against `x`, means joined                                              sweeps, order, users
    points    `value` against `x`                                                            models, bandwidth, explorer
    grid      `text` and shade, per name and column or over time                             capacity, coverage, heat
    signals   `value` over `x` as steps, a panel each                                        telemetry

Layers name no data of their own: in a chart of panels each of them would draw all rows.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from operator import itemgetter
from textwrap import wrap
from typing import Any

from sparkpub.site.figures import theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.theme import FAINT, GRID, GROUND, INK, SERIES

Row = Mapping[str, Any]
Rows = Sequence[Row]
Spec = dict[str, Any]
"""Vega-Lite as plain values, on rows called `rows`."""
WIDE, NARROW = 760, 344
"""Total widths in CSS pixels: a column of the site, and a phone."""
LETTER, BOLD_LETTER, MOST_LABEL, BESIDE = 7.0, 8.0, 232, 96
"""Mean width of a letter, and of one above a panel; most room for a name beside its row, and that on a phone; longer
ones stand above theirs."""
MOST_BESIDE_WORDS = 400
ABOVE, GAP = 18, 24
"""Room for a name above its row; beside a panel the distance from its names, and half a number at its right end."""
AXIS, HEIGHT, LINES_HEIGHT, LOW = 50, 300, 170, 110
"""Room for the numbers of an axis beside panels of lines; the height of a plot, of such a panel, and of one of many."""
VERDICTS = {
    "higher": "triangle-right",
    "lower": "triangle-left",
    "equivalent": "circle",
    "undecided": "diamond",
    "confounded": "cross",
    "changed": "circle",
    "not shown": "diamond",
}
"""Verdict to its sign, in the order of the legend."""
IN_WORDS = {
    "equivalent": "equal",
    "undecided": "not clear",
    "confounded": "not separable",
}
"""Verdict to what the legend calls it, as sentences do."""
OPEN = ("undecided", "confounded", "not shown")
"""Verdicts whose signs are hollow: nothing is shown."""
LETTERS, LINE_PIXELS, MOST_LINES = (24, 12), 14, 3
"""Of the name of a line at its end: letters of a line of text, wide and on a phone; its height; and most such lines."""
MOST_IN_LEGEND = 2
"""Of lines without room for their names at their ends more have a panel each."""
WIDE_RANGE = 4
"""From this ratio of the last tick to the first on, an axis is logarithmic."""


def dots(
    rows: Rows,
    *,
    title: str,
    groups: Sequence[str] = (),
    band: float | None = None,
    narrow: bool = False,
) -> Spec:
    """Runs lie below each other in order of `iteration`, in the strip of their group. A mean is a tick before the bar
    of its interval, and `least` and `most` are the ends of a box's whiskers. `band` is a margin around zero, in the
    unit of the values. Panels have axes of their own unless they show a margin."""
    strips = max(len(groups), 1)
    step = max(34, 22 * strips)
    last = max((row.get("iteration", 0) for row in rows), default=0) + 1
    strip = f"max(indexof({list(groups)}, datum.group), 0)"
    within = f"isValid(datum.iteration) ? 0.35 + 0.3 * datum.iteration / {last} : 0.5"
    scale = alt.Scale(domain=[0, strips], zero=False)
    base = layer().encode(
        y=_names(rows, narrow, step, gap=0.2),
        yOffset=alt.YOffset("offset:Q", scale=scale),
    )
    # Of axes that panels do not share the title stands once, below all.
    apart = title if band is None and len(_panels_of(rows)) > 1 else ""
    x = _across(None if apart else title)
    means = _of("mean", base)
    whisker = means.mark_rule(color=INK)
    interval = means.mark_rule(
        strokeWidth=10,
        opacity=0.22,
        color=FAINT,
    )
    tick = means.mark_tick(
        thickness=2.5,
        size=18,
        color=INK,
    )
    layers = [
        *_margin(band, _names(rows, narrow, step, gap=0.2)),
        whisker.encode(x=alt.X("least:Q"), x2=alt.X2("most:Q")),
        _interval(interval),
        _runs(base, groups, "Environment").encode(x=x),
        tick.encode(x=x, tooltip=_tip()),
        # Without a place of its own it would ask for the height of the panel, which follows from its rows.
        _of("room", layer()).mark_point(opacity=0).encode(x=x, y=alt.YValue(0)),
    ]
    offset = {"calculate": f"{strip} + ({within})", "as": "offset"}
    return {**_panels(layers, rows, narrow, step, apart), "transform": [offset]}


def forest(rows: Rows, *, title: str, band: float = 0.0, narrow: bool = False) -> Spec:
    """What is decided is filled, the rest hollow."""
    verdicts = {row["verdict"] for row in rows}
    seen = [name for name in VERDICTS if name in verdicts]
    scale = alt.Scale(domain=seen, range=[VERDICTS[name] for name in seen])
    hollow = {"test": f"indexof({list(OPEN)}, datum.verdict) >= 0", "value": 0}
    names = _names(rows, narrow, 24)
    base = layer().encode(y=names)
    point = base.mark_point(
        size=70, filled=True, color=SERIES[0], strokeWidth=2, stroke=SERIES[0]
    )
    point = point.encode(
        x=_across(title, zero=True),
        shape=alt.Shape(
            "verdict:N",
            title="Verdict",
            scale=scale,
            legend=alt.Legend(labelExpr=f"{IN_WORDS}[datum.value] || datum.value"),
        ),
        fillOpacity=alt.FillOpacityValue(1, condition=hollow),
        tooltip=_tip(),
    )
    interval = _interval(base.mark_rule(strokeWidth=2, color=INK))
    return _panels([*_margin(band, names), interval, point], rows, narrow, 24)


def bars(
    rows: Rows,
    *,
    title: str,
    groups: Sequence[str] = (),
    top: float | None = None,
    narrow: bool = False,
) -> Spec:
    """`top` is the end of the axis, where intervals would reach far beyond the means."""
    step = max(24, 16 * len(groups))
    base = layer().encode(y=_names(rows, narrow, step, gap=0.2))
    if groups:
        base = base.encode(yOffset=alt.YOffset("group:N", sort=list(groups)))
    scale = alt.Scale(
        zero=True,
        nice=True,
        domainMax=top or alt.Undefined,
    )
    bar = base.mark_bar(height=alt.RelativeBandSize(0.85), clip=True)
    bar = bar.encode(
        x=_across(title).scale(scale),
        color=_look(alt.Color, groups, SERIES, "Environment"),
        tooltip=_tip(),
    )
    interval = _interval(
        base.mark_rule(
            color=INK,
            strokeWidth=1.5,
            clip=True,
        )
    )
    return _panels([bar, interval], rows, narrow, step)


def lines(
    rows: Rows,
    *,
    across: str,
    up: str,
    groups: Sequence[str] = (),
    legend: str = "",
    ticks: Sequence[float] = (),
    knee: float | None = None,
    narrow: bool = False,
) -> Spec:
    """Means joined by `line` in the order of `x`, or of `order` where they have one, and runs as points. Ticks stand at
    `ticks`; a dashed line marks the knee. Lines are named at their ends where there is room for that, else above panels
    of their own, and in a legend of two, or of lines without a load."""
    is_ordered = any("order" in row for row in rows)
    from_zero = bool(ticks) or is_ordered
    panels = _panels_of(rows)
    height = LINES_HEIGHT if panels else HEIGHT
    ends = _ends(rows, height, narrow) if from_zero and len(groups) > 1 else {}
    is_apart = not (ends or panels) and from_zero and len(groups) > MOST_IN_LEGEND
    legend = "" if ends or is_apart else legend
    x = alt.X("x:Q", title=across, scale=alt.Scale(zero=is_ordered))
    if ticks:
        x = _ticked(x, ticks)
    scale = alt.Scale(zero=True, nice=False) if ends else _spread(zero=from_zero)
    y = alt.Y("value:Q", title=None if is_apart else up, scale=scale)
    base = layer().encode(x=x, y=y)
    # Of other groups than its points have, so that no dashes run through their signs in the legend.
    dashes = [*_looks(groups, theme.DASHES), [1, 0]]
    colour = _look(alt.Color, groups, SERIES, legend)
    joined = _of("mean", base).mark_line()
    joined = joined.encode(
        color=colour,
        strokeDash=_look(alt.StrokeDash, [*groups, ""], dashes),
        detail=alt.Detail("line:N"),
    )
    if is_ordered:
        joined = joined.encode(order=alt.Order("order:Q"))
    layers = [joined, *_marked(base, groups, legend)]
    if knee is not None:
        layers += _knee(knee)
    if ends:
        layers += _named(base.encode(color=colour), ends)
    total = NARROW if narrow else WIDE
    if is_apart:
        columns = 1 if narrow else 2
        view = {**_layered(layers, LOW), "width": (total - AXIS) // columns - GAP}
        apart = _faceted(view, groups, narrow, [], by="group")
        return {**apart, "columns": columns, "title": {"text": up, "anchor": "start"}}
    if not panels:
        return one(layers, narrow, HEIGHT)
    longest = max(
        (len(line) for end in ends.values() for line in end["text"]), default=0
    )
    view = _layered(layers, LINES_HEIGHT)
    view["width"] = total - AXIS - round(longest * (LETTER + narrow))
    return _faceted(view, panels, narrow, ["y"])


def _ends(rows: Rows, height: int, narrow: bool) -> dict[str, Spec]:
    """Panel and group of each line to its last `x`, its name as lines of `text`, and how far `down` that stands from
    the point, so that no two overlap. Empty where names have no room: more lines of text than the height or a name may
    have, or, of lines that end apart, names of several."""
    found: dict[str, Spec] = {}
    for panel in _panels_of(rows) or [""]:
        mine = [row for row in rows if row.get("panel", "") == panel]
        means = sorted(
            (row for row in mine if "mean" in row["kind"]), key=itemgetter("x")
        )
        last = {row["group"]: row for row in means}
        highest, below = max(row["value"] for row in mine) or 1, 0.0
        for group, row in sorted(last.items(), key=lambda end: -end[1]["value"]):
            text = wrap(group, LETTERS[narrow])
            end_apart = len({end["x"] for end in last.values()}) > 1
            if len(text) > (1 if end_apart else MOST_LINES):
                return {}
            size = len(text) * LINE_PIXELS
            at = height * (1 - row["value"] / highest)
            below = max(at - size / 2, below) + size
            # A number stands above the point.
            down = below - size / 2 - at + ("label" in row) * LINE_PIXELS / 2
            end = {"x": row["x"], "text": text, "down": down, "size": size}
            found[f"{panel}/{group}"] = end
        if below > height + LINE_PIXELS:
            return {}
    return found


def _named(base: "alt.Chart", ends: Mapping[str, Spec]) -> list["alt.Chart"]:
    """The name of each line, and where it had to move a stroke from the line's last point to it."""
    key = "(datum.panel || '') + '/' + datum.group"
    last = base.transform_calculate(end=f"{json.dumps(ends)}[{key}]")
    last = _of("mean", last).transform_filter("datum.x === datum.end.x")
    down = {"expr": "datum.end.down"}
    stroke = last.mark_rule(xOffset=4, x2Offset=10, y2Offset=down)
    # The first of several lines of text stands where one would.
    first = {"expr": f"datum.end.down - (datum.end.size - {LINE_PIXELS}) / 2"}
    name = last.mark_text(
        align="left", baseline="middle", dx=12, dy=first, lineHeight=LINE_PIXELS
    )
    return [
        stroke.encode(x2=alt.X2("x:Q"), y2=alt.Y2("value:Q")),
        name.encode(text=alt.Text("end.text:N"), color=alt.ColorValue(INK)),
    ]


def _ticked(x: "alt.X", ticks: Sequence[float]) -> "alt.X":
    """An axis with these ticks, logarithmic where they reach far."""
    is_log = ticks[0] > 0 and ticks[-1] / ticks[0] >= WIDE_RANGE
    kind: Spec = {"type": "log", "base": 2} if is_log else {"zero": False}
    # A logarithmic axis leaves out numbers that it finds too many, unless their text is an expression.
    axis = alt.Axis(
        values=list(ticks),
        tickCount=len(ticks),
        labelExpr="format(datum.value, ',')",
        labelOverlap=True,
    )
    return x.scale(alt.Scale(nice=False, padding=14, **kind)).axis(axis)


def _knee(place: float) -> list["alt.Chart"]:
    """A dashed line with its word."""
    rule = _once().mark_rule(strokeDash=[3, 3])
    word = _once().mark_text(
        align="right", dx=-5, fontSize=12, color=FAINT, text="knee"
    )
    x = alt.XDatum(place)
    return [rule.encode(x=x), word.encode(x=x, y=alt.YValue(10))]


def points(
    _rows: Rows,
    *,
    across: str,
    up: str,
    groups: Sequence[str] = (),
    legend: str = "Environment",
    log: bool = False,
    narrow: bool = False,
) -> Spec:
    """On logarithmic axes if asked. Rows of the kind `limit` are a dashed line."""
    scale, axis = alt.Scale(zero=False), alt.Axis()
    if log:
        scale = alt.Scale(
            type="log",
            nice=False,
            padding=12,
        )
        axis = alt.Axis(format="~g")
    base = layer().encode(
        x=alt.X(
            "x:Q",
            title=across,
            scale=scale,
            axis=axis,
        ),
        y=alt.Y(
            "value:Q",
            title=up,
            scale=scale,
            axis=axis,
        ),
    )
    limit = _of("limit", base).mark_line(strokeDash=[4, 3], color=FAINT)
    return one([limit, *_marked(base, groups, legend)], narrow, 330)


def grid(
    rows: Rows,
    *,
    across: str,
    shades: Sequence[float] = (),
    unit: str = "",
    narrow: bool = False,
) -> Spec:
    """`text` at `column` in the row of each name, in its `colour` or on a ground that is the darker the higher its
    `value`: `shades` are the limits between two. Rows with `x` and `end` are stretches of time instead."""
    # Vega draws lines above shades, through the words in them.
    base = layer().encode(y=_names(rows, narrow, 22, lined=not shades), tooltip=_tip())
    if any("href" in row for row in rows):
        base = base.encode(href=alt.Href("href:N"))
    scale = alt.Scale(
        type="threshold",
        domain=list(shades),
        range=list(theme.RAMP),
    )
    shade = alt.Color(
        "value:Q",
        scale=scale,
        legend=alt.Legend(title=unit),
    )
    if any("x" in row for row in rows):
        stretch = base.mark_rect(height=alt.RelativeBandSize(0.8))
        x = _across(across, "x", zero=True)
        stretch = stretch.encode(
            x=x,
            x2=alt.X2("end:Q"),
            color=shade,
        )
        return _panels([stretch], rows, narrow, 22)
    axis = alt.Axis(orient="top", labelAngle=0)
    base = base.encode(
        x=alt.X(
            "column:O",
            title=across,
            sort=None,
            axis=axis,
        )
    )
    text = base.mark_text(baseline="middle").encode(text=alt.Text("text:N"))
    if not shades:
        coloured = text.encode(color=alt.Color("colour:N", scale=None))
        return _panels([coloured], rows, narrow, 22)
    scale.range = [GROUND, *theme.RAMP[: len(shades)]]
    rect = base.mark_rect(stroke=GRID).encode(color=shade.legend(None))
    return _panels([rect, text], rows, narrow, 22)


def signals(rows: Rows, *, narrow: bool = False) -> Spec:
    """A panel for each signal, in seconds since launch; rows of the kind `phase` shade `x` to `end` and have a name."""
    seconds = alt.X(
        "x:Q",
        title="Seconds since launch",
        axis=alt.Axis(grid=False),
        scale=alt.Scale(nice=False, zero=False),
    )
    axis = alt.Axis(title=None, tickCount=2, minExtent=40, maxExtent=40)
    y = alt.Y("value:Q", axis=axis, scale=alt.Scale(zero=False, nice=2))
    base = layer().encode(x=seconds)
    shade = _of("phase", base).mark_rect(opacity=0.12, color=SERIES[0])
    line = base.transform_filter("datum.kind !== 'phase'")
    line = line.mark_line(interpolate="step-after", clip=True, color=SERIES[0])
    told = [alt.Tooltip("x:Q", title="seconds"), alt.Tooltip("value:Q")]
    layers = [
        shade.encode(x2=alt.X2("end:Q"), tooltip=alt.Tooltip("name:N")),
        line.encode(y=y, tooltip=told),
    ]
    view = {**_layered(layers, 40), "width": (NARROW if narrow else WIDE) - AXIS}
    return _faceted(view, _panels_of(rows), narrow, ["y"])


# ---- Layers ----------------------------------------------------------------------------------------------------------


def layer() -> "alt.Chart":
    """A layer without marks."""
    return alt.Chart(alt.NamedData("rows"))


def _of(kind: str, base: "alt.Chart") -> "alt.Chart":
    """The rows of a kind, or of several, of which it is one."""
    return base.transform_filter(f"indexof(datum.kind || '', {kind!r}) >= 0")


def _once() -> "alt.Chart":
    """A layer with one mark, whatever the rows."""
    return layer().transform_aggregate(count="count()")


def _interval(marks: "alt.Chart") -> "alt.Chart":
    drawn: alt.Chart = marks.encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"))
    return drawn


def _tip() -> "alt.Tooltip":
    """What pointing at a mark tells."""
    return alt.Tooltip("tip:N")


def _runs(base: "alt.Chart", groups: Sequence[str], legend: str) -> "alt.Chart":
    """Runs as points by group that lead to them; of a run that is left out only the outline shows."""
    hollow = {"test": "datum.counts === false", "value": 0}
    points = _of("run", base).mark_point(size=46, filled=True)
    drawn: alt.Chart = points.encode(
        tooltip=_tip(),
        href=alt.Href("href:N"),
        color=_look(alt.Color, groups, SERIES, legend),
        stroke=_look(alt.Stroke, groups, SERIES),
        shape=_look(alt.Shape, groups, theme.SHAPES, legend),
        fillOpacity=alt.FillOpacityValue(0.75, condition=hollow),
    )
    return drawn


def _marked(base: "alt.Chart", groups: Sequence[str], legend: str) -> list["alt.Chart"]:
    """Runs as points, with a `label` above to the right of one that has it, whose ground parts it from what it covers.
    Behind them what the axes have to show at least, which nobody sees."""
    named = base.transform_filter("isValid(datum.label)")
    named = named.encode(text=alt.Text("label:N"))
    shown: Spec = {
        "align": "left",
        "dx": 8,
        "dy": -8,
        "limit": 190,
    }
    return [
        _runs(base, groups, legend),
        named.mark_text(
            stroke=GROUND,
            strokeWidth=4,
            **shown,
        ),
        named.mark_text(**shown),
        _of("room", base).mark_point(opacity=0),
    ]


def _look(
    channel: Any, groups: Sequence[str], looks: Sequence[Any], legend: str = ""
) -> Any:
    """A channel that gives each group one of the looks, and begins anew where there are more; with a legend where
    groups are several. Long names stand below each other."""
    if len(groups) < 2:
        return getattr(alt, f"{channel.__name__}Value")(looks[0])
    shown = None
    if legend:
        is_long = max(map(len, groups)) > 22
        shown = alt.Legend(title=legend, columns=1 if is_long else alt.Undefined)
    scale = alt.Scale(domain=list(groups), range=_looks(groups, looks))
    return channel(
        "group:N",
        scale=scale,
        legend=shown,
    )


def _looks(groups: Sequence[str], looks: Sequence[Any]) -> list[Any]:
    return list(islice(cycle(looks), len(groups)))


def _spread(*, zero: bool = False) -> "alt.Scale":
    """A scale of round ends. No point lies on the names at its beginning."""
    return alt.Scale(
        zero=zero,
        nice=True,
        padding=0 if zero else 6,
    )


def _across(title: str | None, column: str = "value", *, zero: bool = False) -> "alt.X":
    axis = alt.Axis(labelOverlap="greedy", labelSeparation=8)
    return alt.X(
        f"{column}:Q",
        title=title,
        scale=_spread(zero=zero),
        axis=axis,
    )


def _margin(band: float | None, names: "alt.Y") -> list["alt.Chart"]:
    """The margin within which two sides are equivalent, and the place of no difference: in each row, since names may
    stand between two."""
    if band is None:
        return []
    line = layer().transform_aggregate(count="count()", groupby=["name"])
    line = line.mark_rule(strokeDash=[3, 3]).encode(
        x=alt.XDatum(0), y=names.bandPosition(0), y2=alt.Y2("name:N", bandPosition=1)
    )
    shade = _once().mark_rect(opacity=0.14, color=SERIES[2])
    return [shade.encode(x=alt.XDatum(-band), x2=alt.X2Datum(band)), line]


# ---- Names, panels and widths ----------------------------------------------------------------------------------------


def _room(rows: Rows) -> int:
    """Room for the longest name beside its row, in pixels."""
    longest = max((len(row.get("name", "")) for row in rows), default=0)
    return round(longest * LETTER) + 12


def _stand_above(rows: Rows, narrow: bool) -> bool:
    """Columns of words leave names more room than an axis does."""
    has_words = any("text" in row for row in rows)
    most = MOST_BESIDE_WORDS if has_words else MOST_LABEL
    return _room(rows) > (BESIDE if narrow else most)


def _names(
    rows: Rows, narrow: bool, step: int, gap: float = 0.0, lined: bool = True
) -> "alt.Y":
    """The names, in the order of the rows, each with a line through its row if `lined`. They have the same room in all
    panels, so that plots stand in line; where that is too little they stand above their rows."""
    axis = alt.Axis(
        grid=lined,
        labelColor=INK,
        labelLimit=MOST_BESIDE_WORDS,
    )
    axis.minExtent = axis.maxExtent = _room(rows)
    above = _stand_above(rows, narrow)
    if above:
        gap = ABOVE / (step + ABOVE)
        axis.minExtent = axis.maxExtent = axis.labelPadding = 0
        axis.labelAlign, axis.labelOffset = "left", -step / 2 - 8
    # All of the outer padding is above, where the first name needs it.
    scale = alt.Scale(
        type="band",
        paddingInner=gap,
        paddingOuter=gap / 2,
        align=1 if above else alt.Undefined,
    )
    return alt.Y(
        "name:N",
        sort=None,
        title=None,
        axis=axis,
        scale=scale,
    )


def _panels_of(rows: Rows) -> list[str]:
    return list(dict.fromkeys(row["panel"] for row in rows if row.get("panel")))


def _panels(
    layers: Sequence["alt.Chart"],
    rows: Rows,
    narrow: bool,
    step: int,
    apart: str = "",
) -> Spec:
    """The layers once for each panel, below each other, under its name; a single one goes without. `apart` is the title
    of axes that panels do not share: it stands once, below the last."""
    above = _stand_above(rows, narrow)
    height = step + (ABOVE if above else 0)
    view = _layered(layers, {"step": height, "for": "position"})
    names = _panels_of(rows)
    if len(names) < 2:
        return _fitted(view, narrow)
    total = NARROW if narrow else WIDE
    view["width"] = total - (0 if above else _room(rows)) - GAP
    own = ["y", "yOffset", "x"] if apart else ["y", "yOffset"]
    panels = _faceted(view, names, narrow, own)
    if apart:
        panels["title"] = {"text": apart, "orient": "bottom", "anchor": "end"}
    return panels


def _faceted(
    view: Spec,
    names: Sequence[str],
    narrow: bool,
    own: list[str],
    by: str = "panel",
) -> Spec:
    """The view once for each panel, under its name, and below each other unless a panel is `by` another column; `own`
    are the scales that panels do not share."""
    broken = {name: wrap(name, round(view["width"] / BOLD_LETTER)) for name in names}
    header = {
        "title": None,
        "labelOrient": "top",
        "labelAnchor": "start",
        "labelLimit": view["width"],
        "labelExpr": f"{json.dumps(broken)}[datum.value]",
    }
    each = {
        "field": by,
        "type": "nominal",
        "sort": list(names),
        "header": header,
    }
    panels = {
        "facet": {"row": each} if by == "panel" else each,
        "spec": view,
        "spacing": 16,
        "resolve": {"scale": dict.fromkeys(own, "independent")},
    }
    return _finished(panels, narrow)


def one(layers: Sequence["alt.Chart"], narrow: bool, height: int) -> Spec:
    """Layers in a single view, fitted to the width."""
    return _fitted(_layered(layers, height), narrow)


def _layered(layers: Sequence["alt.Chart"], height: Any) -> Spec:
    """Plain values: Altair's own `layer`, `facet` and `vconcat` copy all that they hold several times, two thirds of
    the time of a chart."""
    drawn = []
    for each in layers:
        spec = each.to_dict(validate=False, context={"top_level": False})
        del spec["data"]
        drawn.append(spec)
    return {"layer": drawn, "height": height}


def _fitted(view: Spec, narrow: bool) -> Spec:
    """A single view, fitted by Vega to the total width."""
    fit = {"type": "fit-x", "contains": "padding"}
    width = NARROW if narrow else WIDE
    return _finished({**view, "width": width, "autosize": fit}, narrow)


def _finished(spec: Spec, narrow: bool) -> Spec:
    """With the rows and the look that all charts share; a phone's legend has room for two columns."""
    legend = {**theme.CONFIG["legend"], "columns": 2 if narrow else 3}
    config = {**theme.CONFIG, "legend": legend}
    data = {"name": "rows"}
    return {
        "$schema": alt.SCHEMA_URL,
        "data": data,
        **spec,
        "config": config,
    }
