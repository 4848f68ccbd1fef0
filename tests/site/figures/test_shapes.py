"""Seven shapes: each is valid Vega-Lite, drawn at both widths in the colours of both modes, and the same every time."""

import re
from functools import partial
from typing import Any

import altair as alt
import pytest

from sparkpub.record.metrics import METRICS
from sparkpub.site.figures import explore, shapes
from sparkpub.site.figures.draw import Chart, draw
from sparkpub.site.figures.output import image
from sparkpub.site.figures.shapes import Row

GROUPS = ("native", "Docker")
RUNS: list[Row] = [
    {
        "kind": kind,
        "panel": panel,
        "name": name,
        "group": group,
        "value": 70.0 + place,
        **({"low": 71, "high": 73} if kind == "mean" else {"href": f"runs/r{place}/"}),
        **({"iteration": place + 1} if kind == "run" else {}),
        "tip": {"run": f"r{place}"},
    }
    for panel in ("8 users", "one user")
    for name in ("7B", "32B")
    for group in GROUPS
    for place, kind in enumerate(("run", "run", "mean"))
]
MEANS = [row for row in RUNS if row["kind"] == "mean"]
BOXES: list[Row] = [{**row, "least": 60.0, "most": 90.0} for row in RUNS]
DIFFERENCES: list[Row] = [
    {"panel": "Speed", "name": word, "value": 1.0, "low": -1.0, "high": 3.0}
    | {"verdict": word}
    for word in shapes.VERDICTS
]
LINES: list[Row] = [
    {"kind": kind, "group": group, "x": 2.0**x, "value": 10.0 * x, "href": "runs/r/"}
    | ({"label": f"{x}"} if kind == "mean" else {})
    for kind in ("run", "mean")
    for group in GROUPS
    for x in range(1, 5)
]
POINTS: list[Row] = [
    *({**row, "label": "m"} for row in LINES[:4]),
    *({"kind": "limit", "x": x, "value": 90 / x} for x in (1.0, 9.0)),
]
CELLS: list[Row] = [
    {"name": name, "column": f"{limit} s", "text": "≥ 1", "value": limit / 10}
    for name in ("7B", "32B")
    for limit in (2, 5)
]
STRETCHES: list[Row] = [
    {"name": "7B", "x": 0.0, "end": 4.0, "value": 3.0},
    {"name": "7B", "x": 4.0, "end": 9.0, "value": 99.0},
]
SAMPLES: list[Row] = [
    *({"panel": "CPU", "x": float(x), "value": 10.0 * x} for x in range(9)),
    {"kind": "phase", "panel": "CPU", "name": "loading", "x": 0.0, "end": 3.0},
]
NAMED: list[Row] = [
    {**row, "panel": panel} for panel in ("Speed", "Wait") for row in LINES
]
TICKS = {"ticks": (2, 4, 8, 16), "knee": 4.0}
CHARTS: dict[str, Chart] = {
    "dots": Chart(partial(shapes.dots, title="GiB", groups=GROUPS), RUNS),
    "boxes": Chart(partial(shapes.dots, title="GiB", groups=GROUPS), BOXES),
    "margin": Chart(partial(shapes.dots, title="%", band=1.0), RUNS),
    "forest": Chart(partial(shapes.forest, title="%", band=1.0), DIFFERENCES),
    "bars": Chart(partial(shapes.bars, title="GiB", groups=GROUPS, top=90.0), MEANS),
    "lines": Chart(
        partial(shapes.lines, across="Users", up="tok/s", groups=GROUPS, **TICKS), LINES
    ),
    "named": Chart(
        partial(shapes.lines, across="Users", up="tok/s", groups=GROUPS, **TICKS), NAMED
    ),
    "points": Chart(partial(shapes.points, across="GB", up="tok/s", log=True), POINTS),
    "grid": Chart(partial(shapes.grid, across="Within", shades=(0.1, 0.4)), CELLS),
    "heat": Chart(
        partial(shapes.grid, across="s", shades=(5, 50), unit="%"), STRETCHES
    ),
    "signals": Chart(partial(shapes.signals), SAMPLES),
    "explorer": Chart(
        partial(explore.draw, across="a", up="b", names={"k": "native"}), ()
    ),
}


def drawing(chart: Chart, *, narrow: bool = False) -> str:
    drawn = draw("k", chart)
    return drawn.svg_narrow if narrow else drawn.svg_wide


@pytest.mark.parametrize("name", CHARTS)
def test_a_shape_is_valid_and_drawn_at_both_widths_in_the_colours_of_both_modes(
    name: str,
) -> None:
    chart = CHARTS[name]
    for narrow, width in ((False, shapes.WIDE), (True, shapes.NARROW)):
        spec = chart.specification(narrow=narrow)
        assert "datasets" not in spec
        alt.Chart.from_dict(spec).to_dict()  # raises where Vega-Lite's schema is broken
        svg = drawing(chart, narrow=narrow)
        (drawn,) = re.findall(r'^<svg[^>]* width="([\d.]+)"', svg)
        assert float(drawn) == pytest.approx(width, rel=0.05)
        # Colours are variables, so that one drawing follows light, dark and print.
        plain = r'(?:fill|stroke)="#[0-9a-f]{3,6}"(?! stroke-width="0")'
        assert not re.findall(plain, svg)
        _, dark = image(svg).split("@media (prefers-color-scheme:dark)")
        used = set(re.findall(r"var\((--sp-\w+)", svg))
        assert used <= set(re.findall(r"--sp-\w+", dark))
        sizes = map(float, re.findall(r'font-size="([\d.]+)px"', svg))
        assert min(sizes, default=11) >= 11
    assert draw("k", chart) == draw("k", chart)


def test_channels_are_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Altair makes of anything else takes it most of the time of a specification: see `figures/altair.py`."""

    def searched(*given: Any, **_: Any) -> None:
        raise AssertionError(f"Altair looks for the class of {given}")

    monkeypatch.setattr("altair.utils.schemapi.SchemaBase.from_dict", searched)
    for name in CHARTS.keys() - {"explorer"}:
        CHARTS[name].specification()


@pytest.mark.parametrize("name", ["dots", "forest", "bars", "grid"])
def test_on_a_phone_long_names_stand_above_their_rows_and_leave_the_plot_its_width(
    name: str,
) -> None:
    """Cut to a third of a phone, names of builds of one model read alike."""
    long = "Nemotron-3-Nano-Omni-30B"
    chart = CHARTS[name]
    rows = [{**row, "name": long, "panel": None} for row in chart.rows]
    drawn = draw("k", Chart(chart.shape, rows))
    for svg, most in ((drawn.svg_wide, 300), (drawn.svg_narrow, 40)):
        assert f">{long}<" in svg
        left = re.search(r"translate\((\d+)", svg)
        assert left
        assert (int(left[1]) < 40) is (most == 40)


def test_what_a_shape_draws() -> None:
    """Two panels of eight runs each are sixteen points: no layer has data of its own. Bars start at zero, points leave
    it out; Vega draws the lines of rows above rectangles, through the words on them."""
    assert drawing(CHARTS["dots"]).count('href="') == 16
    bars = [{**row, "panel": None} for row in MEANS]
    assert ">0<" in drawing(Chart(CHARTS["bars"].shape, bars))
    assert ">0<" not in drawing(CHARTS["dots"])
    assert ">knee<" in drawing(CHARTS["lines"])
    assert "<line" not in drawing(CHARTS["grid"])


def test_the_explorer_leaves_what_no_machine_reaches_to_its_table() -> None:
    """One point at 275,040 tok/s made a line on the axis of all others, which end at 31,000."""
    a, b = METRICS["output_throughput_tok_s"], METRICS["prompt_throughput_tok_s"]
    rows = [
        {"run": run, "environment": "native", a.name: 1.0, b.name: rate, "flags": flags}
        | {"campaign": "c", "state": "counted", "href": f"{run}/"}
        for run, rate, flags in (
            ("slow", 20_000.0, "small-sample"),
            ("fast", 31_000.0, ""),
            ("impossible", 275_040.0, "repetitions, roofline"),
        )
    ]
    figure = explore.figure(rows, a, b, {})
    assert "1 run near or beyond the machine's limits" in figure.sample
    links = re.findall(r'href="[^"]*?(\w+)/"', drawing(figure.chart))
    assert sorted(links) == ["fast", "slow"]
    assert "roofline" not in explore.figure(rows[:2], a, b, {}).sample


def lines_ending(*names: str) -> Chart:
    """Lines of three points; each ends 5 tok/s below the one before, which at 300 px for 100 tok/s are 15 px."""
    rows: list[Row] = [
        {
            "kind": "mean",
            "group": name,
            "line": name,
            "x": x,
            "value": x * (100 - 5 * n) / 3,
        }
        for n, name in enumerate(names)
        for x in (1.0, 2.0, 3.0)
    ]
    ticks = {"ticks": (1, 2, 3), "groups": names, "legend": "Line"}
    return Chart(partial(shapes.lines, across="Users", up="tok/s", **ticks), rows)


def test_lines_are_named_at_their_ends_where_no_two_names_overlap() -> None:
    """The first has two lines of text of 14 px and begins at the top; each of the others moves below the one before. A
    letter's foot is 4 px below its middle."""
    svg = drawing(lines_ending("Nemotron-3-Nano-Omni-30B-A3B NVFP4", "a", "b", "c"))
    found = re.findall(r"translate\([\d.]+,([\d.]+)\)[^>]*>(?:<tspan>Nem|[abc]<)", svg)
    assert list(map(float, found)) == [7 + 4, 28 + 7 + 4, 42 + 7 + 4, 56 + 7 + 4]


def test_lines_whose_names_have_no_room_have_a_panel_each() -> None:
    """On a phone a name of five lines of text has none; two such lines have a legend."""
    long = [f"Nemotron-3-Nano-Omni-30B-A3B-Reasoning FP{n}" for n in range(3)]
    assert "facet" in lines_ending(*long).specification(narrow=True)
    assert "facet" not in lines_ending(*long).specification()
    two = lines_ending(*long[:2]).specification(narrow=True)
    assert "facet" not in two
    assert "Reasoning FP1" in drawing(lines_ending(*long[:2]), narrow=True)
