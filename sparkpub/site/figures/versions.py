"""Whether a new version changed a model's speed: each recipe and load over versions and days, in % of the first."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sparkpub.record.text import (
    between,
    counted,
    percent,
    rounded,
    spread,
)
from sparkpub.review.models import ModelName
from sparkpub.review.names import Names, load_name
from sparkpub.review.progress import (
    VersionLine,
    VersionPoint,
    beyond_noise,
    change_between,
)
from sparkpub.site.figures import marks, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import Chart
from sparkpub.site.figures.figure import Figure, Table
from sparkpub.site.figures.rows import Row

TABLE = "versions"
MOST_LINES = 4
"""Lines with room beside each other; the table has all."""


Session = tuple[str, str, str]
"""Campaign, engine and day."""


def of_model(
    model: ModelName, lines: Sequence[VersionLine], names: Names
) -> Figure | None:
    """The lines of a model, those to be drawn first; None where nothing was measured more than once."""
    if not lines:
        return None
    drawn = lines[:MOST_LINES]
    called = _called(lines, names)
    sessions = _sessions(drawn)
    rows: list[Row] = []
    for line, name in zip(drawn, called, strict=False):
        rows += _rows(line, name, sessions)
    sample = "Bars are 95 % intervals of the change from the first, each by itself; filled: without zero."
    if len(drawn) < len(lines):
        sample += f" {len(drawn)} of {len(lines)} loads are drawn; the table has all."
    return Figure(
        key=f"versions-of-{model.slug}",
        title="Output throughput of one load, measured again",
        says=_sentence(lines),
        sample=sample,
        chart=Chart(draw, (tuple(called[:MOST_LINES]), tuple(sessions.values()))),
        data={TABLE: rows},
        table=_table(lines, called),
    )


def _called(lines: Sequence[VersionLine], names: Names) -> list[str]:
    """`BF16, 8 users, 512 in, 128 out`; with environment and machine, `..., Docker, H200`, where that names several."""
    short = [f"{line.first.weights}, {load_name(line.first.load)}" for line in lines]
    times = Counter(short)
    called = []
    for line, name in zip(lines, short, strict=True):
        parts = [name]
        if times[name] > 1:
            first = line.points[0].speed
            environment = names.environment(first.campaign, first.cell[1])
            parts += [environment, line.first.machine]
        called.append(", ".join(parts))
    return called


def _session(point: VersionPoint) -> Session:
    return point.speed.campaign, point.speed.engine, point.day


def _sessions(lines: Sequence[VersionLine]) -> dict[Session, str]:
    """What stands below each session, in order of time: `2026-08-16, vLLM 0.26.0`; a second one of a day has a 2."""
    points = [point for line in lines for point in line.points]
    points.sort(key=lambda point: point.speed.records[0].started.value)
    found = dict.fromkeys(map(_session, points), "")
    times: Counter[tuple[str, str]] = Counter()
    for session in found:
        _, engine, day = session
        times[day, engine] += 1
        number = times[day, engine]
        several = f" ({number})" if number > 1 else ""
        found[session] = f"{day}{several}, {engine}"
    return found


def _rows(line: VersionLine, name: str, sessions: Mapping[Session, str]) -> list[Row]:
    """One row per point: `line, when, value` (tok/s), `percent, lo, hi` (change from the first, 95 %),
    `beyond` (whether the change from the point before is beyond the noise), `change` (in words)."""
    first = line.points[0].mean
    rows = []
    for point in line.points:
        since = change_between(first, point.mean)
        row = {
            "line": name,
            "when": sessions[_session(point)],
            "value": round(point.mean.value, 2),
            "percent": 0.0,
            "beyond": False,
            "change": "",
        }
        if point.change is not None:
            row["percent"] = round(since.percent, 3)
            row["lo"], row["hi"] = since.interval or (None, None)
            row["beyond"] = bool(point.change.is_beyond_noise)
            row["change"] = percent(point.change.percent) if row["beyond"] else ""
        rows.append(row)
    return rows


def _sentence(lines: Sequence[VersionLine]) -> str:
    """`10 of 30 loads changed beyond the noise of their runs, by −6.9 to +1.7 %.`, after a correction for their number;
    the range alone where the runs are too few to know their noise."""
    if len(lines) == 1:
        (line,) = lines
        engines = [point.speed.engine for point in (line.points[0], line.points[-1])]
        what = f"From {engines[0]} to {engines[1]}"
        if engines[0] == engines[1]:
            what = f"{engines[0]}, measured again"
        return f"{what}: {line.total.in_words}."
    loads = counted(len(lines), "load")
    if all(line.total.p is None for line in lines):
        return (
            f"{loads}, {_range(lines)}: too few runs to tell a change from their noise."
        )
    beyond = beyond_noise(lines)
    if not beyond:
        return f"None of {loads} is shown to change ({_range(lines)} measured; Holm)."
    return f"{len(beyond)} of {loads} changed beyond the noise of their runs (Holm), by {_range(beyond)}."


def _range(lines: Sequence[VersionLine]) -> str:
    """`−6.9 to +1.7 %`: the smallest and the largest change."""
    changes = [line.total.percent for line in lines]
    return spread([between(min(changes), max(changes), 1, signed=True)], "%")


def _table(lines: Sequence[VersionLine], called: Sequence[str]) -> Table:
    body = []
    for line, name in zip(lines, called, strict=True):
        points = [
            f"{rounded(point.mean.value)} ({point.day}, {point.speed.engine})"
            for point in line.points
        ]
        change = line.total.in_words
        body.append([name, " → ".join(points), line.differs, change])
    head = ("Weights and load", "Measured (tok/s)", "Set differently", "Change")
    return Table(head, body)


def draw(names: tuple[str, ...], places: tuple[str, ...]) -> dict[str, Any]:
    """Rows `versions`: lines of these names over versions and days. A change beyond the noise is filled and named."""
    rows = marks.every(TABLE).transform_filter(marks.among("line", names))
    series = marks.lines("line", names)
    axis = alt.Axis(labelAngle=-30, labelLimit=300)
    if len(places) < 4:
        axis = alt.Axis(labelAngle=0, labelExpr="split(datum.label, ', ')")
    x = alt.X(
        "when:N",
        sort=list(places),
        title=None,
        axis=axis,
        scale=alt.Scale(type="band", padding=0.4),
    )
    beside = alt.XOffset("line:N", sort=list(names))
    y = marks.y("percent", "Change from the first (%)", zero=True)
    line = rows.mark_line().encode(
        x=x, xOffset=beside, y=y, color=series.colour, strokeDash=series.dash
    )
    bars = rows.mark_rule(strokeWidth=2).encode(
        x=x, xOffset=beside, y=alt.Y("lo:Q"), y2=alt.Y2("hi:Q"), color=series.colour
    )
    points = rows.mark_point(size=70, filled=True, opacity=1).encode(
        x=x,
        xOffset=beside,
        y=y,
        color=series.colour,
        stroke=series.outline,
        shape=series.shape,
        fillOpacity=alt.FillOpacityValue(0, condition=marks.where("datum.beyond", 1)),
        tooltip=marks.tooltip("line", "when", "value", "percent", "lo", "hi"),
    )
    said = rows.mark_text(align="left", dx=8, fontSize=12).encode(
        x=x, xOffset=beside, y=y, text=alt.Text("change:N")
    )
    once = marks.once(TABLE)
    zero = once.mark_rule(strokeDash=[3, 3]).encode(y=alt.YDatum(0))
    return theme.finish(theme.layered([zero, bars, line, points, said], height=280))
