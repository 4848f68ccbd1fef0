"""Seven shapes: each is valid Vega-Lite, drawn at both widths in the colours of both modes, and the same every time."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import altair as alt
import pytest

from sparkpub.record.metrics import METRICS
from sparkpub.review.dataset import load
from sparkpub.site.build import publish
from sparkpub.site.figures import explore, shapes, telemetry
from sparkpub.site.figures.draw import Chart, draw
from sparkpub.site.figures.library import Library
from sparkpub.site.figures.output import image
from sparkpub.site.figures.shapes import Row
from tests.site.conftest import options_of, write_data
from tests.site.figures.building import a_library, bears

EVERY = {
    "dots": "output-throughput",
    "boxes": "output-throughput-box",
    "margin": "output-throughput-relative",
    "bars": "output-throughput-bars",
    "forest": "comparison",
    "order": "output-throughput-order",
    "states": "coverage",
    "heat": "gpu-utilisation",
}
"""Charts by the names of figures of the small campaign."""
OTHERS = ("panels", "lines", "points", "grid", "signals", "explorer")


@pytest.fixture(scope="module")
def charts(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> dict[str, Chart]:
    """Charts of every shape, as figures make them."""
    folder = tmp_path_factory.mktemp("charts")
    options = options_of(folder, cache)
    dataset = load(write_data(folder / "data"))
    small = Library(publish(dataset, options))
    bent = {1: 100, 2: 200, 4: 400, 8: 440}
    runs = {
        f"{model}/native/c{users}": [rate, rate + more]
        for users, rate in bent.items()
        for model, more in (("m", 1), ("n", 2))
    }
    swept = a_library(runs, options)
    run = next(run for run in dataset.runs if run.record.file("telemetry"))
    signals = telemetry.trace(run)
    assert signals is not None
    limit = [{"kind": "limit", "x": x, "value": 90 / x} for x in (1.0, 9.0)]
    named = [{"kind": "run", "x": 2.0, "value": 3.0, "label": "m"}]
    log = partial(shapes.points, across="GB", up="tok/s", log=True)
    explorer = partial(explore.draw, across="a", up="b", names={"k": "native"})
    return {
        **{shape: small.figure(name, "c").chart for shape, name in EVERY.items()},
        "panels": swept.figure("output-throughput", "c").chart,
        "lines": swept.figure("output-throughput-sweep", "c", model="m").chart,
        "points": Chart(log, limit + named),
        "grid": bears({"m": (1.0, 3.0)}, folder).figure("capacity", "c").chart,
        "signals": signals.chart,
        "explorer": Chart(explorer, ()),
    }


def drawing(chart: Chart, *, narrow: bool = False) -> str:
    drawn = draw("k", chart)
    return drawn.svg_narrow if narrow else drawn.svg_wide


@pytest.mark.parametrize("name", [*EVERY, *OTHERS])
def test_a_shape_is_valid_and_drawn_at_both_widths_in_the_colours_of_both_modes(
    name: str, charts: dict[str, Chart]
) -> None:
    chart = charts[name]
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
        image(svg)  # raises for a colour that a mode does not have
        sizes = map(float, re.findall(r'font-size="([\d.]+)px"', svg))
        assert min(sizes, default=11) >= 11
    assert draw("k", chart) == draw("k", chart)


def test_channels_are_objects(
    monkeypatch: pytest.MonkeyPatch, charts: dict[str, Chart]
) -> None:
    """What Altair makes of anything else takes it most of the time of a specification: see `figures/altair.py`."""

    def searched(*given: Any, **_: Any) -> None:
        raise AssertionError(f"Altair looks for the class of {given}")

    monkeypatch.setattr("altair.utils.schemapi.SchemaBase.from_dict", searched)
    for chart in charts.values():
        chart.specification()


@pytest.mark.parametrize("name", ["dots", "forest", "bars", "grid"])
def test_on_a_phone_long_names_stand_above_their_rows_and_leave_the_plot_its_width(
    name: str, charts: dict[str, Chart]
) -> None:
    """Cut to a third of a phone, names of builds of one model read alike."""
    long = "Nemotron-3-Nano-Omni-30B"
    chart = charts[name]
    rows = [{**row, "name": long, "panel": None} for row in chart.rows]
    drawn = draw("k", Chart(chart.shape, rows))
    for svg, most in ((drawn.svg_wide, 300), (drawn.svg_narrow, 40)):
        assert f">{long}<" in svg
        left = re.search(r"translate\((\d+)", svg)
        assert left
        assert (int(left[1]) < 40) is (most == 40)


def test_what_a_shape_draws(charts: dict[str, Chart]) -> None:
    """Four panels of two runs of two models are sixteen points: no layer has data of its own. Bars start at zero,
    points leave it out; Vega draws the lines of rows above rectangles, through the words on them."""
    assert drawing(charts["panels"]).count('href="') == 16
    assert ">0<" in drawing(charts["bars"])
    assert ">0<" not in drawing(charts["dots"])
    assert ">knee<" in drawing(charts["lines"])
    assert "<line" not in drawing(charts["grid"])


def test_the_explorer_leaves_what_no_machine_reaches_to_its_table() -> None:
    """One point at 275,040 tok/s made a line on the axis of all others, which end at 31,000."""
    a, b = METRICS["output_throughput_tok_s"], METRICS["prompt_throughput_tok_s"]
    rows = [
        {"environment": "native", "href": f"{run}/", "flags": flags}
        | {a.name: 1.0, b.name: rate}
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
