"""Diagrams: boxes and arrows written as text, drawn like every chart: light, dark, for a phone, as SVG and PNG.

A file of `diagrams/` has `title`, `says`, `sample` and boxes: `name`, further `lines`, `kind`, `row` (0 at the top),
`columns` (from and to, of twelve), and the names of boxes that it hangs `below`, each joined by an arrow.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from sparkpub.site.figures import marks, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import Chart
from sparkpub.site.figures.figure import Figure, Table
from sparkpub.site.figures.rows import Row

COLUMNS = 12
LINE = 16
"""Height of a line of text, in pixels."""
PADDING = 9
"""Between the edge of a box and its text."""
GAP = 24
"""Between two rows: room for an arrow."""
MARGIN = 0.15
"""Between two boxes of a row, in columns."""
ON_A_PHONE = (11, 10)
"""Sizes of a name and of a line of text there, in pixels: the boxes are half as wide."""
HEAD = 5
"""Height of an arrow's head."""
FILLS = {
    "part": "transparent",
    "step": "var(--sp-r1)",
    "memory": "var(--sp-grid)",
    "note": "transparent",
    "title": "transparent",
}
"""Kind of a box to its ground."""
OUTLINED = ("part", "step", "memory")
"""Kinds with an outline; the others are text alone."""


def names() -> list[str]:
    """The diagrams there are."""
    return sorted(
        path.name.removesuffix(".toml")
        for path in _folder().iterdir()
        if path.name.endswith(".toml")
    )


def figure(name: str) -> Figure:
    """A diagram by name. Raises FileNotFoundError where there is none."""
    text = _folder().joinpath(f"{name}.toml").read_text(encoding="utf-8")
    told = tomllib.loads(text)
    boxes = list(_placed(told["box"]))
    height = max(box["y2"] for box in boxes)
    body = _table(told["box"])
    return Figure(
        key=f"diagram-{name}",
        title=told["title"],
        says=told["says"],
        sample=told["sample"],
        chart=Chart(draw, (height,), phone=ON_A_PHONE),
        data={
            "boxes": boxes,
            "lines": list(_lines(told["box"], boxes)),
            "arrows": list(_arrows(told["box"], boxes)),
        },
        table=Table(("Part", "What it says", "Below"), body),
    )


def _folder() -> Any:
    return resources.files(__package__).joinpath("diagrams")


def _table(boxes: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """What each box is called, what it says, and the boxes that it hangs below."""
    body = []
    for box in boxes:
        # A name that another box has too ends in a space.
        name, above = box["name"].strip(), map(str.strip, box.get("below", ()))
        body.append((name, " ".join(box.get("lines", ())), ", ".join(above)))
    return body


def _placed(boxes: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    """Each box with its edges: `x, x2` in columns, `y, y2` in pixels from the top."""
    tops = _tops(boxes)
    for box in boxes:
        left, right = box["columns"]
        yield {
            "name": box["name"],
            "kind": box["kind"],
            "x": left + MARGIN,
            "x2": right - MARGIN,
            "y": tops[box["row"]],
            "y2": tops[box["row"] + 1] - GAP,
        }


def _tops(boxes: Sequence[Mapping[str, Any]]) -> list[int]:
    """The upper edge of each row, and where a further one would begin."""
    tops = [0]
    for row in range(max(box["row"] for box in boxes) + 1):
        counts = [1 + len(box.get("lines", ())) for box in boxes if box["row"] == row]
        tops.append(tops[-1] + max(counts) * LINE + 2 * PADDING + GAP)
    return tops


def _lines(boxes: Sequence[Mapping[str, Any]], placed: Sequence[Row]) -> Iterator[Row]:
    """Each line of text with the middle of its box: the name in bold."""
    for box, place in zip(boxes, placed, strict=True):
        middle = (place["x"] + place["x2"]) / 2
        texts = [box["name"].strip(), *box.get("lines", ())]
        top = (place["y"] + place["y2"] - len(texts) * LINE) / 2
        for number, text in enumerate(texts):
            yield {
                "text": text,
                "x": middle,
                "y": top + (number + 0.5) * LINE,
                "name": number == 0 and box["kind"] != "note",
            }


def _arrows(boxes: Sequence[Mapping[str, Any]], placed: Sequence[Row]) -> Iterator[Row]:
    """From each box to those below it: straight down, in the middle of what both cover."""
    by_name = {place["name"]: place for place in placed}
    for box, place in zip(boxes, placed, strict=True):
        for name in box.get("below", ()):
            above = by_name[name]
            left, right = max(above["x"], place["x"]), min(above["x2"], place["x2"])
            yield {
                "x": (left + right) / 2,
                "y": above["y2"] + 2,
                "y2": place["y"] - 2,
            }


def draw(height: int, name_size: int = 13, line_size: int = 12) -> dict[str, Any]:
    """Rows `boxes`, `lines` and `arrows`, in columns across and pixels down."""
    across = alt.Scale(domain=[0, COLUMNS], nice=False, zero=False)
    down = alt.Scale(domain=[0, height], nice=False, zero=False, reverse=True)
    x = alt.X("x:Q", axis=None, scale=across)
    y = alt.Y("y:Q", axis=None, scale=down)
    fills = alt.Scale(domain=list(FILLS), range=list(FILLS.values()))
    outline = alt.StrokeValue(
        "transparent",
        condition=marks.where(marks.among("kind", OUTLINED), theme.FAINT),
    )
    boxes = (
        marks.every("boxes")
        .mark_rect(cornerRadius=6, strokeWidth=1.2)
        .encode(
            x=x,
            x2=alt.X2("x2:Q"),
            y=y,
            y2=alt.Y2("y2:Q"),
            fill=alt.Fill("kind:N", scale=fills, legend=None),
            stroke=outline,
        )
    )
    arrows = marks.every("arrows")
    shafts = arrows.mark_rule(color=theme.FAINT, strokeWidth=1.5)
    heads = arrows.transform_calculate(tip=f"datum.y2 - {HEAD}").mark_point(
        shape="triangle-down", size=70, filled=True, color=theme.FAINT
    )
    texts = marks.every("lines")
    names = texts.transform_filter("datum.name").mark_text(
        fontSize=name_size, fontWeight="bold"
    )
    lines = texts.transform_filter("!datum.name").mark_text(fontSize=line_size)
    layers = [
        boxes,
        shafts.encode(x=x, y=y, y2=alt.Y2("y2:Q")),
        heads.encode(x=x, y=alt.Y("tip:Q", axis=None, scale=down)),
        names.encode(x=x, y=y, text=alt.Text("text:N")),
        lines.encode(x=x, y=y, text=alt.Text("text:N")),
    ]
    return theme.finish(theme.layered(layers, height=height))
