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

A shape gives a view: layers, and what all of them share unless they say otherwise, as is a rule of Vega-Lite. Layers
name no data of their own: in a chart of panels each of them would draw all rows. `finished` makes it a specification.
"""

import json
from collections.abc import Mapping, Sequence
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
WIDTHS = WIDE, NARROW = 760, 344
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
    scale = alt.Scale(domain=[0, strips], zero=False)
    offset = alt.YOffset("offset:Q", scale=scale)
    strip = f"max(indexof({list(groups)}, datum.group), 0)"
    last = max((row.get("iteration", 0) for row in rows), default=0) + 1
    place = f"{strip} + (0.35 + 0.3 * datum.iteration / {last})"
    runs = _runs(groups, "Environment").transform_calculate(offset=place)
    means = _of("mean").transform_calculate(offset=f"{strip} + 0.5").encode(offset)
    # Of axes that panels do not share the title stands once, below all.
    apart = title if band is None and len(_panels_of(rows)) > 1 else ""
    x = _across(None if apart else title)
    whisker = means.mark_rule(color=INK)
    interval = means.mark_rule(strokeWidth=10, opacity=0.22, color=FAINT)
    tick = means.mark_tick(thickness=2.5, size=18, color=INK)
    layers = [
        *_margin(band),
        whisker.encode(alt.X("least:Q"), alt.X2("most:Q")),
        interval.encode(*_interval()),
        runs.encode(x, offset),
        tick.encode(x, _tip()),
        # Without a place of its own it would ask for the height of the panel, which follows from its rows.
        _of("room").mark_point(opacity=0).encode(x, alt.YValue(0)),
    ]
    return _in_rows(layers, rows, narrow, max(34, 22 * strips), gap=0.2, apart=apart)


def forest(rows: Rows, *, title: str, band: float = 0.0, narrow: bool = False) -> Spec:
    """What is decided is filled, the rest hollow."""
    verdicts = {row["verdict"] for row in rows}
    seen = [name for name in VERDICTS if name in verdicts]
    scale = alt.Scale(domain=seen, range=[VERDICTS[name] for name in seen])
    legend = alt.Legend(labelExpr=f"{IN_WORDS}[datum.value] || datum.value")
    hollow = {"test": f"indexof({list(OPEN)}, datum.verdict) >= 0", "value": 0}
    point = alt.Chart().mark_point(
        size=70, fill=SERIES[0], strokeWidth=2, stroke=SERIES[0]
    )
    point = point.encode(
        _across(title, zero=True),
        alt.Shape("verdict:N", title="Verdict", scale=scale, legend=legend),
        alt.FillOpacityValue(1, condition=hollow),
        _tip(),
    )
    interval = alt.Chart().mark_rule(strokeWidth=2, color=INK).encode(*_interval())
    return _in_rows([*_margin(band), interval, point], rows, narrow, 24)


def bars(
    rows: Rows,
    *,
    title: str,
    groups: Sequence[str] = (),
    top: float | None = None,
    narrow: bool = False,
) -> Spec:
    """`top` is the end of the axis, where intervals would reach far beyond the means."""
    beside = [alt.YOffset("group:N", sort=list(groups))] if groups else []
    bar = alt.Chart().mark_bar(height=alt.RelativeBandSize(0.85), clip=True)
    bar = bar.encode(
        _across(title, zero=True, top=top),
        _look(alt.Color, groups, SERIES, "Environment"),
        _tip(),
    )
    interval = alt.Chart().mark_rule(color=INK, strokeWidth=1.5, clip=True)
    layers = [bar, interval.encode(*_interval())]
    step = max(24, 16 * len(groups))
    return _in_rows(layers, rows, narrow, step, *beside, gap=0.2)


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
    order = [alt.Order("order:Q")] if any("order" in row for row in rows) else []
    from_zero = bool(ticks or order)
    panels = _panels_of(rows)
    height = LINES_HEIGHT if panels else HEIGHT
    ends = _ends(rows, height, narrow) if from_zero and len(groups) > 1 else {}
    is_apart = not (ends or panels) and from_zero and len(groups) > MOST_IN_LEGEND
    legend = "" if ends or is_apart else legend
    colour = _look(alt.Color, groups, SERIES, legend)
    # Of other groups than its points have, so that no dashes run through their signs in the legend.
    dashes = _look(alt.StrokeDash, [*groups, ""], theme.DASHES)
    joined = _of("mean").mark_line()
    joined = joined.encode(colour, dashes, alt.Detail("line:N"), *order)
    layers = [joined, *_marked(groups, legend)]
    if knee is not None:
        layers += _knee(knee)
    if ends:
        layers += _named(colour, ends)
    x = alt.X("x:Q", title=across, scale=alt.Scale(zero=bool(order)))
    if ticks:
        x = _ticked(x, ticks)
    scale = alt.Scale(zero=True, nice=False) if ends else _spread(zero=from_zero)
    y = alt.Y("value:Q", title=None if is_apart else up, scale=scale)
    view = _view(layers, LOW if is_apart else height, x, y)
    width = WIDTHS[narrow] - AXIS
    if is_apart:
        columns = 1 if narrow else 2
        apart = _faceted(view, groups, width // columns - GAP, by="group")
        return {**apart, "columns": columns, "title": {"text": up, "anchor": "start"}}
    if not panels:
        return view
    named = (len(line) for end in ends.values() for line in end["text"])
    width -= round(max(named, default=0) * (LETTER + narrow))
    return _faceted(view, panels, width, "y")


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


def _named(colour: Any, ends: Mapping[str, Spec]) -> list["alt.Chart"]:
    """The name of each line, and where it had to move a stroke from the line's last point to it."""
    key = "(datum.panel || '') + '/' + datum.group"
    last = _of("mean").transform_calculate(end=f"{json.dumps(ends)}[{key}]")
    last = last.transform_filter("datum.x === datum.end.x")
    down = {"expr": "datum.end.down"}
    stroke = last.mark_rule(xOffset=4, x2Offset=10, y2Offset=down)
    # The first of several lines of text stands where one would.
    first = {"expr": f"datum.end.down - (datum.end.size - {LINE_PIXELS}) / 2"}
    name = last.mark_text(
        align="left", baseline="middle", dx=12, dy=first, lineHeight=LINE_PIXELS
    )
    return [
        stroke.encode(colour, alt.X2("x:Q"), alt.Y2("value:Q")),
        name.encode(alt.Text("end.text:N")),
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
    knee = _once().transform_calculate(x=f"{place}")
    rule = knee.mark_rule(strokeDash=[3, 3])
    word = knee.mark_text(align="right", dx=-5, color=FAINT, text="knee")
    whole = alt.YValue(0), alt.Y2Value("height")
    return [rule.encode(*whole), word.encode(alt.YValue(10))]


def points(
    _rows: Rows,
    *,
    across: str,
    up: str,
    groups: Sequence[str] = (),
    legend: str = "Environment",
    log: bool = False,
    **_: bool,
) -> Spec:
    """On logarithmic axes if asked. Rows of the kind `limit` are a dashed line."""
    look: Spec = {"scale": alt.Scale(zero=False)}
    if log:
        scale = alt.Scale(type="log", nice=False, padding=12)
        look = {"scale": scale, "axis": alt.Axis(format="~g")}
    limit = _of("limit").mark_line(strokeDash=[4, 3], color=FAINT)
    x = alt.X("x:Q", title=across, **look)
    y = alt.Y("value:Q", title=up, **look)
    return _view([limit, *_marked(groups, legend)], 330, x, y)


def grid(
    rows: Rows,
    *,
    across: str,
    shades: Sequence[float] = (),
    unit: str = "",
    narrow: bool = False,
) -> Spec:
    """`text` at `column` in the row of each name, in its `colour` or on a ground that is the darker the higher its
    `value`: `shades` are the limits between two. Rows with `x` and `end` are stretches of time instead, with a legend
    in their `unit`."""
    rect = alt.Chart().mark_rect(stroke=GRID)
    axis = alt.Axis(orient="top", labelAngle=0)
    x = alt.X("column:O", title=across, sort=None, axis=axis)
    ramp, legend = [GROUND, *theme.RAMP], None
    is_timed = any("x" in row for row in rows)
    if is_timed:
        rect = alt.Chart().mark_rect(height=alt.RelativeBandSize(0.8))
        rect, x = rect.encode(alt.X2("end:Q")), _across(across, "x", zero=True)
        ramp, legend = [*theme.RAMP], alt.Legend(title=unit)
    scale = alt.Scale(type="threshold", domain=list(shades), range=ramp)
    layers = [rect.encode(alt.Color("value:Q", scale=scale, legend=legend))]
    text = alt.Chart().mark_text(baseline="middle").encode(alt.Text("text:N"))
    if not shades:
        layers = [text.encode(alt.Color("colour:N", scale=None))]
    elif not is_timed:
        layers.append(text)
    shared: list[Any] = [x, _tip()]
    if any("href" in row for row in rows):
        shared.append(alt.Href("href:N"))
    # Vega draws lines above shades, through the words in them.
    return _in_rows(layers, rows, narrow, 22, *shared, lined=not shades)


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
    shade = _of("phase").mark_rect(opacity=0.12, color=SERIES[0])
    line = alt.Chart().transform_filter("datum.kind !== 'phase'")
    line = line.mark_line(interpolate="step-after", clip=True, color=SERIES[0])
    told = [alt.Tooltip("x:Q", title="seconds"), alt.Tooltip("value:Q")]
    layers = [
        shade.encode(alt.X2("end:Q"), alt.Tooltip("name:N")),
        line.encode(y, told),
    ]
    view = _view(layers, 40, seconds)
    return _faceted(view, _panels_of(rows), WIDTHS[narrow] - AXIS, "y")


# ---- Layers ----------------------------------------------------------------------------------------------------------


def _of(kind: str) -> "alt.Chart":
    """The rows of a kind, or of several, of which it is one."""
    return alt.Chart().transform_filter(f"indexof(datum.kind || '', {kind!r}) >= 0")


def _once(*by: str) -> "alt.Chart":
    """A layer with one mark, or one for each value of some columns, whatever the rows."""
    return alt.Chart().transform_aggregate(count="count()", groupby=list(by))


def _interval() -> tuple["alt.X", "alt.X2"]:
    return alt.X("low:Q"), alt.X2("high:Q")


def _tip() -> "alt.Tooltip":
    """What pointing at a mark tells."""
    return alt.Tooltip("tip:N")


def _runs(groups: Sequence[str], legend: str) -> "alt.Chart":
    """Runs as points by group that lead to them; of a run that is left out only the outline shows."""
    hollow = {"test": "datum.counts === false", "value": 0}
    points = _of("run").mark_point(size=46, filled=True)
    drawn: alt.Chart = points.encode(
        _tip(),
        alt.Href("href:N"),
        _look(alt.Color, groups, SERIES, legend),
        _look(alt.Stroke, groups, SERIES),
        _look(alt.Shape, groups, theme.SHAPES, legend),
        alt.FillOpacityValue(0.75, condition=hollow),
    )
    return drawn


def _marked(groups: Sequence[str], legend: str) -> list["alt.Chart"]:
    """Runs as points, with a `label` above to the right of one that has it, whose ground parts it from what it covers.
    Behind them what the axes have to show at least."""
    named = alt.Chart().transform_filter("isValid(datum.label)")
    named = named.encode(alt.Text("label:N"))
    place: Spec = {"align": "left", "dx": 8, "dy": -8}
    ground = named.mark_text(stroke=GROUND, strokeWidth=4, **place)
    room = _of("room").mark_point(opacity=0)
    return [_runs(groups, legend), ground, named.mark_text(**place), room]


def _look(
    channel: Any, groups: Sequence[str], looks: Sequence[Any], legend: str = ""
) -> Any:
    """A channel that gives each group one of the looks, which begin anew where there are more; with a legend where
    groups are several. Long names stand below each other."""
    if len(groups) < 2:
        return getattr(alt, f"{channel.__name__}Value")(looks[0])
    shown = None
    if legend:
        is_long = max(map(len, groups)) > 22
        shown = alt.Legend(title=legend, columns=1 if is_long else alt.Undefined)
    scale = alt.Scale(domain=list(groups), range=list(looks))
    return channel("group:N", scale=scale, legend=shown)


def _spread(*, zero: bool = False, top: float | None = None) -> "alt.Scale":
    """A scale of round ends. No point lies on the names at its beginning."""
    padding, most = 0 if zero else 6, top or alt.Undefined
    return alt.Scale(zero=zero, nice=True, padding=padding, domainMax=most)


def _across(title: str | None, column: str = "value", **ends: Any) -> "alt.X":
    axis = alt.Axis(labelOverlap="greedy", labelSeparation=8)
    return alt.X(f"{column}:Q", title=title, scale=_spread(**ends), axis=axis)


def _margin(band: float | None) -> list["alt.Chart"]:
    """The margin within which two sides are equivalent, and the place of no difference: in each row, since names may
    stand between two."""
    if band is None:
        return []
    shade = _once().mark_rect(opacity=0.14, color=SERIES[2])
    line = _once("name").mark_rule(strokeDash=[3, 3])
    begin, end = alt.Y("name:N", bandPosition=0), alt.Y2("name:N", bandPosition=1)
    return [
        shade.encode(
            alt.XDatum(-band),
            alt.X2Datum(band),
            alt.YValue(0),
            alt.Y2Value("height"),
        ),
        line.encode(alt.XDatum(0), begin, end),
    ]


# ---- Names, panels and widths ----------------------------------------------------------------------------------------


def _in_rows(
    layers: Sequence["alt.Chart"],
    rows: Rows,
    narrow: bool,
    step: int,
    *shared: Any,
    gap: float = 0.0,
    lined: bool = True,
    apart: str = "",
) -> Spec:
    """The layers in a row for each name, in the order of the rows, with a line through it if `lined`; once for each
    panel, below each other, under its name; a single one goes without. `apart` is the title of axes that panels do not
    share: it stands once, below the last.

    Names have the same room in all panels, so that plots stand in line; where that is too little they stand above their
    rows. Columns of words leave them more room than an axis does.
    """
    longest = max((len(row.get("name", "")) for row in rows), default=0)
    room = round(longest * LETTER) + 12
    has_words = any("text" in row for row in rows)
    most = BESIDE if narrow else MOST_BESIDE_WORDS if has_words else MOST_LABEL
    axis = alt.Axis(grid=lined, labelColor=INK, labelLimit=MOST_BESIDE_WORDS)
    is_above = room > most
    if is_above:
        axis.labelAlign, axis.labelOffset = "left", -step / 2 - 8
        axis.labelPadding = room = 0
        step += ABOVE
        gap = ABOVE / step
    axis.minExtent = axis.maxExtent = room
    # All of the outer padding is above, where the first name needs it.
    scale = alt.Scale(
        type="band",
        paddingInner=gap,
        paddingOuter=gap / 2,
        align=1 if is_above else alt.Undefined,
    )
    names = alt.Y("name:N", sort=None, title=None, axis=axis, scale=scale)
    view = _view(layers, {"step": step, "for": "position"}, names, *shared)
    panels = _panels_of(rows)
    if len(panels) < 2:
        return view
    width = WIDTHS[narrow] - room - GAP
    if not apart:
        return _faceted(view, panels, width, "y", "yOffset")
    title = {"text": apart, "orient": "bottom", "anchor": "end"}
    return {**_faceted(view, panels, width, "y", "yOffset", "x"), "title": title}


def _panels_of(rows: Rows) -> list[str]:
    return list(dict.fromkeys(row["panel"] for row in rows if row.get("panel")))


def _view(layers: Sequence["alt.Chart"], height: Any, *shared: Any) -> Spec:
    """Layers with the channels that they share.

    As plain values: Altair's own `layer`, `facet` and `vconcat` copy all that they hold several times, two thirds of
    the time of a chart.
    """
    base, *drawn = (
        each.to_dict(validate=False, context={"top_level": False, "data": None})
        for each in (alt.Chart().encode(*shared), *layers)
    )
    return {**base, "layer": drawn, "height": height}


def _faceted(
    view: Spec, names: Sequence[str], width: int, *own: str, by: str = "panel"
) -> Spec:
    """The view once for each panel, under its name, and below each other unless a panel is `by` another column; `own`
    are the scales that panels do not share."""
    broken = {name: wrap(name, round(width / BOLD_LETTER)) for name in names}
    header = {
        "title": None,
        "labelOrient": "top",
        "labelAnchor": "start",
        "labelExpr": f"{json.dumps(broken)}[datum.value]",
    }
    each = {"field": by, "type": "nominal", "sort": list(names), "header": header}
    return {
        "facet": {"row": each} if by == "panel" else each,
        "spec": {**view, "width": width},
        "spacing": 16,
        "resolve": {"scale": dict.fromkeys(own, "independent")},
    }


def finished(view: Spec, narrow: bool) -> Spec:
    """What a shape gives as a specification, with the rows and the look that all charts share; a single view is fitted
    by Vega to the total width. A phone's legend has room for two columns."""
    legend = {**theme.CONFIG["legend"], "columns": 2 if narrow else 3}
    fit = {"type": "fit-x", "contains": "padding"}
    size = {} if "facet" in view else {"width": WIDTHS[narrow], "autosize": fit}
    return {
        "$schema": alt.SCHEMA_URL,
        "data": {"name": "rows"},
        **view,
        **size,
        "config": {**theme.CONFIG, "legend": legend},
    }
