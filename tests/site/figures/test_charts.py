"""Every kind of chart is valid, holds no rows, compiles, and takes its colours from variables."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import altair as alt
import pytest

from sparkpub.record.errors import SiteError
from sparkpub.record.metrics import METRICS
from sparkpub.review.dataset import load
from sparkpub.site.build import publish
from sparkpub.site.content import SiteOptions
from sparkpub.site.figures import (
    bars,
    cell_table,
    coverage,
    explore,
    forest,
    heat,
    kinds,
    order,
    relative,
    scatter,
    strip,
    sweep,
    telemetry,
    users,
    versions,
)
from sparkpub.site.figures.compile import (
    Chart,
    Compiled,
    Job,
    compile_chart,
    specifications,
    vega,
)
from sparkpub.site.figures.converter import VEGA_LITE, converter
from sparkpub.site.figures.figure import Entry, Figure, Table
from sparkpub.site.figures.forest import MetricRows
from sparkpub.site.figures.kind import Kind, Offer
from sparkpub.site.figures.library import Library
from sparkpub.site.figures.panels import Layout
from sparkpub.site.figures.rows import SHARED
from sparkpub.site.figures.selection import Scope, Selection
from sparkpub.site.sweeps import LOAD

CUT = Scope(
    "c", ("m", "n"), ("native", "container"), ("w",), ("m · native", "m · container")
)
PEAK, CACHE = METRICS["peak_memory_gib"], METRICS["kv_cache_gib"]
AXES = {
    "campaign": "c",
    "model": "m",
    "environment": "native",
    "workload": "w",
    "cell": "m · native",
}
ROWS: dict[str, list[dict[str, Any]]] = {
    "runs": [
        {
            **AXES,
            "run": f"r{i}",
            "iteration": i,
            "order": i,
            "state": "counted",
            "flags": "",
            "href": "runs/r/",
            "start_temp": 40,
            "load": 2.0**i,
            "load_line": "m",
            PEAK.name: 70.0 + i,
            CACHE.name: 40.0 - i,
        }
        for i in (1, 2, 3)
    ],
    "cells": [
        {
            **AXES,
            "metric": PEAK.name,
            "n": 3,
            "mean": 72.0,
            "lo": 69.5,
            "hi": 74.5,
            "load": 2.0,
            "load_line": "m",
        }
    ],
    "pareto": [
        {
            **AXES,
            "load": 2.0**i,
            "load_line": "m",
            "n": 1,
            "machine": 100.0 * i,
            "user": 50.0 - i,
            "front": i < 3,
        }
        for i in (1, 2, 3)
    ],
    "versions": [
        {
            "line": "m",
            "when": when,
            "value": 100.0,
            "percent": change,
            "lo": change - 1,
            "hi": change + 1,
            "beyond": change > 1,
            "change": "",
        }
        for when, change in (("one, v1", 0.0), ("two, v2", 5.0))
    ],
    "trends": [
        {**AXES, "metric": PEAK.name, "end": end, "order": at, "value": 70.0 + at}
        for end, at in (("first", 1), ("last", 3))
    ],
    "comparisons": [
        {
            **AXES,
            "label": "m",
            "metric": PEAK.name,
            "place": 0,
            "percent": 44.0,
            "lo": 40.0,
            "hi": 48.0,
            "verdict": "higher",
            "p": 0.01,
        }
    ],
    "slots": [
        {
            **AXES,
            "iteration": 1,
            "state": "done",
            "glyph": "●",
            "run": "r1",
            "href": "runs/r/",
        }
    ],
    "heat": [
        {
            **AXES,
            "run": "r1",
            "label": "m 1",
            "start": 0,
            "end": 5,
            "percent": 80.0,
            "href": "runs/r/",
        }
    ],
    "samples": [{"signal": "GPU power", "t": t, "value": 50.0 + t} for t in range(5)],
    "phases": [{"name": "measure", "start": 1, "end": 4}],
}
ROOM = Layout(CUT, "model", (("w", ("m",)),), ("native", "container"))
PAIRS = Layout(CUT, "pair", (("w", ("m, native", "m, container")),), ("native",))
GROUPS = (MetricRows(PEAK.name, PEAK.label, ("m",)),)
SWEEP = (CUT, PEAK, LOAD, ("m",), (2.0, 4.0, 8.0), "Concurrency", 4.0)
CHARTS = {
    "strip": Chart(strip.draw, (PEAK, ROOM)),
    "bars": Chart(bars.draw, (PEAK, ROOM, 80.0)),
    "order": Chart(order.draw, (CUT, PEAK)),
    "sweep": Chart(sweep.draw, SWEEP),
    "users": Chart(users.draw, (("m",), CUT)),
    "versions": Chart(versions.draw, (("m", "n"), ("one, v1", "two, v2"))),
    "scatter": Chart(scatter.draw, (CUT, PEAK, CACHE)),
    "relative": Chart(relative.draw, (PEAK, ROOM, "native", 1.0)),
    "forest": Chart(forest.draw, (CUT, "comparisons", GROUPS, 1.0, ("higher",))),
    "coverage": Chart(coverage.draw, (PAIRS, ("one", "two"))),
    "heat": Chart(heat.draw, (PAIRS,)),
    "telemetry": Chart(telemetry.draw, ((("GPU power", "W"),),)),
}
MARKS = {
    "strip": 3,
    "relative": 3,
    "order": 3,
    "scatter": 3,
    "sweep": 3,
}


def compiled(kind: str, rows: dict[str, list[dict[str, Any]]] = ROWS) -> Compiled:
    return compile_chart(Job(kind, CHARTS[kind], rows))


@pytest.mark.parametrize("kind", CHARTS)
def test_a_chart_is_valid_and_drawn_in_variables(kind: str) -> None:
    spec = CHARTS[kind].specification()
    assert "datasets" not in spec
    alt.Chart.from_dict(spec).to_dict()  # raises where Vega-Lite's schema is broken
    drawn = compiled(kind)
    assert (
        set(
            re.findall(
                r'(?:fill|stroke)="(#[0-9a-f]{3,6})"(?! stroke-width="0")',
                drawn.svg_wide,
            )
        )
        == set()
    )
    assert "var(--sp-" in drawn.svg_wide
    for svg in (drawn.svg_wide, drawn.svg_narrow):
        assert min(map(float, re.findall(r'font-size="([\d.]+)px"', svg))) >= 11
    assert drawn.svg_wide.count('href="') >= MARKS.get(kind, 0)


@pytest.mark.parametrize("kind", CHARTS)
def test_channels_are_objects(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Altair makes of anything else takes it most of the time of a specification: see `figures/altair.py`."""

    def searched(*given: Any, **_: Any) -> None:
        raise AssertionError(f"Altair looks for the class of {given}")

    monkeypatch.setattr("altair.utils.schemapi.SchemaBase.from_dict", searched)
    CHARTS[kind].specification()


def test_a_chart_that_the_reader_fills_is_valid() -> None:
    chart = Chart(explore.draw, ("a", "b", ("native",), ("native",)))
    alt.Chart.from_dict(chart.specification()).to_dict()


def test_the_explorer_leaves_what_no_machine_reaches_to_its_table() -> None:
    """One point at 275,040 tok/s made a line on the axis of all others, which end at 31,000."""
    rows = [
        {"run": run, "environment": "native", "a": 1.0, "b": rate, "flags": flags}
        | {"cell": "m", "campaign": "c", "state": "counted", "href": f"{run}/"}
        for run, rate, flags in (
            ("slow", 20_000.0, "small-sample"),
            ("fast", 31_000.0, ""),
            ("impossible", 275_040.0, "repetitions, roofline"),
        )
    ]
    a, b = METRICS["output_throughput_tok_s"], METRICS["prompt_throughput_tok_s"]
    figure = explore.figure(rows, {"runs": "runs.json"}, a, b, {})
    assert figure.sample.startswith("3 runs of all campaigns.")
    assert "1 run near or beyond the machine's limits" in figure.sample
    chart = Chart(explore.draw, ("a", "b", ("native",), ("native",)))
    drawn = compile_chart(Job("explorer", chart, figure.data)).svg_wide
    assert re.findall(r'href="[^"]*?(\w+)/"', drawn) == ["slow", "fast"]
    sure = explore.figure(rows[:2], {"runs": "runs.json"}, a, b, {})
    assert "roofline" not in sure.sample


def test_a_legend_names_what_parts_lines_under_what_they_share_and_its_signs_are_whole() -> (
    None
):
    names = ("m, Docker, 512 in", "m, Docker, 1,024 in")
    found = json.loads(
        compile_chart(Job("k", Chart(users.draw, (names,)), ROWS)).vega_json
    )
    (legend,) = found["legends"]
    assert legend["title"] == "m, Docker"
    assert "512 in" in json.dumps(legend["encode"])
    assert "strokeDash" not in legend


@pytest.fixture
def library(data: Path, options: SiteOptions) -> Library:
    """The figures of the small campaign, named and not drawn."""
    publication = publish(load(data), options)
    return Library(publication)


def test_rows_are_made_once_for_proofreading_files_and_charts(
    data: Path, options: SiteOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def counted(publication: Any, campaign: Any) -> Iterator[dict[str, Any]]:
        made.append(campaign.name)
        yield from SHARED["runs"](publication, campaign)

    monkeypatch.setattr(kinds, "SHARED", {**SHARED, "runs": counted})
    dataset = load(data)
    for _ in ("proofread", "built"):
        publication = publish(dataset, options)
        Library(publication).figure("peak-memory", "c")
    assert made == ["c"]
    elsewhere = replace(options, home="elsewhere")
    assert publish(dataset, elsewhere) is not publication


def test_every_kind_that_a_campaign_has_compiles_with_its_rows_and_says_something(
    library: Library,
) -> None:
    (campaign,) = library.publication.campaigns
    figures = {name: library.figure(name) for name in library.makers(campaign.name)}
    draws = {figure.chart.draw: figure for figure in figures.values()}
    assert {
        "peak-memory",
        "comparison",
        "coverage",
        "gpu-utilisation",
    } <= figures.keys()
    for figure in draws.values():
        alt.Chart.from_dict(figure.chart.specification()).to_dict()
        drawn = compile_chart(figure.job)
        assert figure.says.endswith(".")
        assert figure.table.rows
        assert figure.sources.keys() == figure.data.keys()
        assert all(f'"name":"{name}"' in drawn.vega_json for name in figure.data)


def test_a_new_kind_is_one_module_and_one_line(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A constant `KIND`, named in `KINDS`: then the figure is listed, made, and its rows are published."""

    def offers(campaign: Selection) -> Iterator[Offer]:
        yield "count", figure

    def figure(selection: Selection, key: str) -> Figure:
        rows = selection.rows("counts")
        chart = Chart(bars.draw, (PEAK, ROOM, None))
        return selection.figure(
            key,
            chart,
            {"counts": rows},
            title="Count",
            says="",
            table=Table((), ()),
        )

    def counts(publication: Any, campaign: Any) -> Iterator[dict[str, Any]]:
        yield {**AXES, "count": len(campaign.runs)}

    new = Kind(of_campaign=offers, tables={"counts": counts})
    monkeypatch.setattr(kinds, "KINDS", (*kinds.KINDS, new))
    kinds.tables_of.cache_clear()  # the fixture has made the rows of the kinds before
    made = Library(library.publication).figure("count", "c")
    row = {**AXES, "count": 13}
    assert made.data["counts"] == [row]
    files = made.files()
    assert json.loads(files[made.address("json")]) == {"counts": [row]}
    assert made.sources == {"counts": f"{made.address('json')}#counts"}
    head, line = files[made.address("csv")].decode().split("\n")[:2]
    assert dict(zip(head.split(","), line.split(","), strict=True))["count"] == "13"


LONG = "a-model-with-a-long-name"
LONG_SCOPE = Scope("c", (LONG,), ("native", "container"), ("w",), (LONG,))
LONG_ROOM = Layout(LONG_SCOPE, "model", (("w", (LONG,)),), ("native",))


@pytest.mark.parametrize(
    ("draw", "subject"),
    [
        (
            forest.draw,
            (
                LONG_SCOPE,
                "comparisons",
                (MetricRows(PEAK.name, PEAK.label, (LONG,)),),
                1.0,
                ("higher",),
            ),
        ),
        (strip.draw, (PEAK, LONG_ROOM)),
    ],
)
def test_on_a_phone_long_names_stand_above_their_rows_and_leave_the_plot_its_width(
    draw: Any, subject: tuple[Any, ...]
) -> None:
    chart = Chart(draw, subject, phone=(True,))
    alt.Chart.from_dict(chart.specification(True)).to_dict()
    rows = {
        table: [{**row, "label": LONG, "model": LONG} for row in found]
        for table, found in ROWS.items()
    }
    drawn = compile_chart(Job("k", chart, rows))
    assert f">{LONG}<" in drawn.svg_wide
    assert f">{LONG}<" in drawn.svg_narrow
    beside, below = (
        int(re.search(r"translate\((\d+)", svg)[1])  # type: ignore[index]
        for svg in (drawn.svg_wide, drawn.svg_narrow)
    )
    assert beside > 150
    assert below < 40


def test_runs_stand_in_per_cent_of_the_mean_of_the_counted_runs_of_the_baseline() -> (
    None
):
    """Values 71, 72 and 73 of the baseline, 73 left out: the mean is 71.5, and 78.65 in the other is +10 %."""
    runs = [
        {**row, "state": "excluded" if row["run"] == "r3" else "counted"}
        for row in ROWS["runs"]
    ]
    runs.append(
        {
            **runs[0],
            "run": "r4",
            "environment": "container",
            "cell": "m · container",
            PEAK.name: 78.65,
        }
    )
    chart = compiled("relative", {"runs": runs})
    circles = sorted(
        float(x)
        for x in re.findall(r'translate\(([\d.]+),[\d.]+\)" d="M3.4,0A', chart.svg_wide)
    )
    square = re.search(
        r'translate\(([\d.]+),[\d.]+\)" d="M-3.4,-3.4h6.8', chart.svg_wide
    )
    ticks = re.findall(
        r'<text transform="translate\(([\d.]+),15\)">(\d+)</text>', chart.svg_wide
    )
    assert square
    (zero, _), (ten, _) = ticks[0], ticks[-1]
    assert [text for _, text in (ticks[0], ticks[-1])] == ["0", "10"]
    step = (float(ten) - float(zero)) / 10
    expected = [float(zero) + step * 100 * (value / 71.5 - 1) for value in (71, 72, 73)]
    assert circles == pytest.approx(expected, abs=1)
    assert float(square[1]) == pytest.approx(float(ten), abs=1)


def test_runs_that_are_left_out_stand_in_brackets() -> None:
    runs = [
        {
            "cell": "m",
            "model": "m",
            "environment": "native",
            "workload": "w",
            "state": state,
            PEAK.name: value,
        }
        for state, value in (("counted", 70.0), ("excluded", 72.5))
    ]
    table = cell_table.cell_table(PEAK, [], runs, ["m"], "listed")
    assert table.head[-1] == "Runs (in brackets: left out)"
    assert table.rows[0][-1] == [Entry("70.00"), Entry("(72.50)")]
    counted = cell_table.cell_table(PEAK, [], runs[:1], ["m"], "listed")
    assert counted.head[-1] == "Runs"


def test_a_run_that_is_left_out_is_in_no_row_of_the_table() -> None:
    """-2, +4 and, left out, +40 %: the mean of the two that count is +1 %."""
    scope = Scope("c", ("m",), ("native",), ("w",), ("m", "k"))
    shown = [
        {"cell": "m", "percent": -2.0, "state": "counted"},
        {"cell": "m", "percent": 4.0, "state": "counted"},
        {"cell": "m", "percent": 40.0, "state": "excluded"},
        {"cell": "k", "percent": 40.0, "state": "excluded"},
    ]
    space = "\N{NO-BREAK SPACE}"
    expected = ["m", "2", f"−2.00{space}%", f"+1.00{space}%", f"+4.00{space}%"]
    assert relative._table(scope, shown).rows == [expected]


def test_bars_start_at_zero() -> None:
    found = json.loads(compiled("bars").vega_json)
    scale = next(scale for scale in found["scales"] if scale["name"] == "x")
    assert scale.get("zero") is True


def test_points_leave_zero_out() -> None:
    found = json.loads(compiled("strip").vega_json)
    assert (
        next(scale for scale in found["scales"] if scale["name"] == "x").get("zero")
        is False
    )


@pytest.mark.parametrize("kind", CHARTS)
def test_what_both_drawings_share_is_what_vega_lite_makes_of_each(kind: str) -> None:
    for specification in specifications(CHARTS[kind]):
        alone = converter().vegalite_to_vega(specification, vl_version=VEGA_LITE)
        assert vega(specification) == alone


def test_verdicts_that_are_equally_frequent_are_counted_in_the_order_met() -> None:
    words = ("undecided", "higher", "equivalent", "lower", "confounded")
    rows = [{"verdict": word, "lo": -2.31, "hi": 1.0} for word in words]
    said = forest._sentence(rows, "native", 1).replace("\N{NO-BREAK SPACE}", " ")
    assert said == (
        "5 differences from native: 1 at most 2.4 %, 1 higher, 1 within ±1 %, 1 lower and 1 perhaps due to time."
    )


def test_a_row_of_differences_says_of_its_load_what_other_rows_have_otherwise() -> None:
    """`7B` was measured under two loads, which share their lengths, and `2B` under one."""
    names = SimpleNamespace(
        cell=lambda campaign, cell: (
            {"a": "7B", "b": "2B"}[cell[0]],
            "Docker",
            {"x": "8 users, 512 in", "y": "one user, 512 in"}[cell[2]],
        )
    )
    cells = [("a", "docker", "x"), ("a", "docker", "y"), ("b", "docker", "x")]
    told = forest._row_names(names, "c", cells)  # type: ignore[arg-type]
    assert list(told.values()) == ["7B, 8 users", "7B, one user", "2B"]
    alone = forest._row_names(names, "c", cells[:1])  # type: ignore[arg-type]
    assert list(alone.values()) == ["7B"]


def test_numbers_beside_points_do_not_stand_over_each_other() -> None:
    """Two curves meet at one user: the point that nothing beats keeps its number. The others are far apart."""
    rows = [
        {"load": 1, "user": 40.0, "machine": 40.0},
        {"load": 1, "user": 40.5, "machine": 40.5},
        {"load": 8, "user": 20.0, "machine": 160.0},
        {"load": 8, "user": 15.0, "machine": 120.0},
    ]
    shown = users._with_labels(users._with_front(rows))
    assert [row["label"] for row in shown] == ["", "1", "8", "8"]


def test_a_part_that_is_compared_with_nothing_is_refused_in_one_line(
    library: Library,
) -> None:
    with pytest.raises(SiteError, match="figure c-comparison-native: nothing of this"):
        library.figure("comparison", "c", environment="native")
    assert library.figure("comparison", "c", environment="container").table.rows
