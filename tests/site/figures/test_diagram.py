"""Diagrams: every box and its text is drawn within the page, arrows lead from box to box."""

import re

import altair as alt
import pytest

from sparkpub.site.figures import diagram
from sparkpub.site.figures.compile import NARROW, compile_chart

LETTER = 6.2
"""Mean width of a letter of 12 or 13 pixels, in pixels."""


@pytest.mark.parametrize("name", diagram.names())
def test_a_diagram_is_drawn_with_all_its_texts(name: str) -> None:
    figure = diagram.figure(name)
    alt.Chart.from_dict(figure.chart.specification()).to_dict()
    drawn = compile_chart(figure.job)
    for line in figure.data["lines"]:
        assert f">{line['text']}<" in drawn.svg_wide
        assert f">{line['text']}<" in drawn.svg_narrow
    assert re.search(r"#[0-9a-f]{6}", drawn.svg_wide) is None
    assert figure.says.endswith(".")
    assert len(figure.says.split()) <= 20
    assert len(figure.table.rows) == len(figure.data["boxes"])


@pytest.mark.parametrize("name", diagram.names())
def test_no_text_is_wider_than_its_box_on_a_phone(name: str) -> None:
    """A line stands in the middle of its box, whose width is its share of the phone's."""
    figure = diagram.figure(name)
    for line in figure.data["lines"]:
        (box,) = (
            box
            for box in figure.data["boxes"]
            if box["y"] <= line["y"] <= box["y2"] and box["x"] < line["x"] < box["x2"]
        )
        room = (box["x2"] - box["x"]) / diagram.COLUMNS * NARROW
        assert len(line["text"]) * LETTER <= room, line["text"]


@pytest.mark.parametrize("name", diagram.names())
def test_boxes_do_not_overlap_and_arrows_lead_downwards(name: str) -> None:
    figure = diagram.figure(name)
    boxes = list(figure.data["boxes"])
    for place, one in enumerate(boxes):
        for other in boxes[place + 1 :]:
            beside = one["x2"] <= other["x"] or other["x2"] <= one["x"]
            apart = one["y2"] <= other["y"] or other["y2"] <= one["y"]
            assert beside or apart, (one["name"], other["name"])
    for arrow in figure.data["arrows"]:
        assert arrow["y2"] - arrow["y"] > diagram.HEAD
        starts = [box for box in boxes if box["y2"] == arrow["y"] - 2]
        ends = [box for box in boxes if box["y"] == arrow["y2"] + 2]
        assert any(box["x"] < arrow["x"] < box["x2"] for box in starts)
        assert any(box["x"] < arrow["x"] < box["x2"] for box in ends)


def test_a_page_asks_for_a_diagram_as_for_any_figure() -> None:
    assert diagram.names() == ["data-flow", "turns", "unified-memory"]
