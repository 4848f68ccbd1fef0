"""Figures of a campaign's metrics: which rows are drawn and in what order, what the sentence and the table say."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sparkpub.record.campaign import Campaign, Quarantine
from sparkpub.record.errors import SiteError
from sparkpub.record.metrics import METRICS
from sparkpub.review.dataset import load
from sparkpub.review.reviewed import Cell
from sparkpub.site.build import publish
from sparkpub.site.content import SiteOptions
from sparkpub.site.figures.campaign import MOST_ROWS
from sparkpub.site.figures.draw import draw
from sparkpub.site.figures.figure import Entry, Figure
from sparkpub.site.figures.library import Library
from tests.site.conftest import to_json
from tests.site.figures.building import MEMORY, THROUGHPUT, TTFT, a_library

Means = Mapping[Cell, float]
"""Model, environment and workload to the value of the one run."""


def of_means(means: Means, options: SiteOptions, metric: str = THROUGHPUT) -> Library:
    return a_library({cell: [{metric: mean}] for cell, mean in means.items()}, options)


@pytest.fixture
def library(data: Path, options: SiteOptions) -> Library:
    """The figures of the small campaign, named and not drawn."""
    return Library(publish(load(data), options))


def whole(_: Path) -> None:
    """As it is."""


def without_gpu(data: Path) -> None:
    """Telemetry of a machine without one."""
    (telemetry,) = (data / "c").glob("*.telemetry.csv")
    telemetry.write_text("elapsed_seconds,cpu_percent\n0,10\n1,20\n")


def without_runs_that_count(data: Path) -> None:
    """All of them are taken out."""
    found = [
        Quarantine(run=run.run_id, reason="wrong cable") for run in load(data).runs
    ]
    campaign = Campaign(campaign="c", title="t", quarantined=tuple(found))
    (data / "c" / "campaign.json").write_text(to_json(campaign))


def without_runs(data: Path) -> None:
    """Begun and not measured."""
    for path in (data / "c").glob("*iter*"):
        path.unlink()


@pytest.mark.parametrize(
    "poor",
    [
        whole,
        without_gpu,
        without_runs_that_count,
        without_runs,
    ],
)
def test_every_figure_that_a_campaign_has_can_be_made_and_says_something(
    poor: Callable[[Path], None], data: Path, options: SiteOptions
) -> None:
    """What has nothing to show is not offered, or says so."""
    poor(data)
    library = Library(publish(load(data), options))
    found = {name: library.figure(name, "c") for name in library.makers("c")}
    assert ("gpu-utilisation" in found) == (poor in (whole, without_runs_that_count))
    for figure in found.values():
        assert figure.title
        assert figure.says.endswith(".")
        head, body = figure.table.head, figure.table.rows
        assert all(len(row) == len(head) for row in body)


def test_how_busy_a_short_run_was_is_the_mean_of_its_samples(
    data: Path, options: SiteOptions
) -> None:
    """24 samples, a tenth of a second apart, of which every third has 100 %."""
    (telemetry,) = (data / "c").glob("*.telemetry.csv")
    samples = [f"{at / 10},{100 * (at % 3 == 0)}" for at in range(24)]
    head = "elapsed_seconds,gpu_utilization_percent"
    telemetry.write_text("\n".join([head, *samples, ""]))
    figure = Library(publish(load(data), options)).figure("gpu-utilisation", "c")
    assert figure.says.startswith("The GPU was busy 33 % of the time")
    assert figure.table.rows[0][-1] == "33.3 %"
    assert all(row["x"] < row["end"] for row in figure.chart.rows)


def names(figure: Figure) -> list[str]:
    """The names of the rows of a chart, each once, from top to bottom."""
    return list(
        dict.fromkeys(row["name"] for row in figure.chart.rows if "name" in row)
    )


@pytest.mark.parametrize(
    ("metric", "figure", "order"),
    [
        (THROUGHPUT, "output-throughput-bars", ["fast", "middle", "slow"]),
        (TTFT, "ttft-p50-bars", ["slow", "middle", "fast"]),
    ],
)
def test_the_best_row_comes_first(
    metric: str, figure: str, order: list[str], options: SiteOptions
) -> None:
    """The highest throughput, the lowest time; the sentence names the best and the worst."""
    values = {"middle": 20.0, "fast": 30.0, "slow": 10.0}
    means = {(name, "native", "w"): value for name, value in values.items()}
    made = of_means(means, options, metric).figure(figure, "c")
    assert names(made) == order
    first, last = made.says.split(" and ")
    assert f"{order[0]} (" in first
    assert f"{order[-1]} (" in last


def test_of_two_hundred_cells_a_screen_is_drawn_and_the_table_has_all(
    options: SiteOptions,
) -> None:
    means = {
        (f"m{number:03d}", "native", "w"): 1000.0 - number for number in range(200)
    }
    library = of_means(means, options)
    for name in ("output-throughput", "output-throughput-bars", "coverage"):
        figure = library.figure(name, "c")
        assert names(figure) == [f"m{number:03d}" for number in range(MOST_ROWS)]
        assert len(figure.table.rows) == 200
        assert f"{MOST_ROWS} of 200 cells are drawn" in figure.sample


def test_a_workload_is_a_panel_under_its_own_name(options: SiteOptions) -> None:
    """Models that a workload does not have, have no row there; a single panel goes without a name."""
    means = {
        ("m", "native", "decode"): 1.0,
        ("n", "native", "decode"): 2.0,
        ("m", "native", "prefill"): 3.0,
    }
    made = of_means(means, options).figure("output-throughput-bars", "c")
    drawing = draw("k", made.chart).svg_wide
    assert drawing.count(">decode<") == drawing.count(">prefill<") == 1
    assert drawing.count(">m<") == 2
    assert drawing.count(">n<") == 1
    alone = {key: mean for key, mean in means.items() if key[2] == "decode"}
    rows = of_means(alone, options).figure("output-throughput-bars", "c").chart.rows
    assert not any("panel" in row for row in rows)


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        (["m/a", "m/b", "m/d"], ["native (d)", "native (b)", "native (a)"]),
        (["m/a", "m/b", "n/a"], ["n", "m"]),
    ],
)
def test_a_row_is_what_differs(
    cells: list[str], shown: list[str], options: SiteOptions
) -> None:
    """Of several models each has a row with its environments in it; of one model its environments have rows."""
    means = {}
    for place, cell in enumerate(cells, 1):
        model, environment = cell.split("/")
        means[model, environment, "w"] = float(place)
    assert (
        names(of_means(means, options).figure("output-throughput-bars", "c")) == shown
    )


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ((5.0, 5.0), [4.997, 5.003]),  # three steps of 0.001 to either side
        ((5.0, 5.0061), []),  # six steps apart: the axis has its digits by itself
        ((0.0, 0.0), [0.0, 0.003]),  # there is no memory below zero
    ],
)
def test_an_axis_spans_at_least_six_steps_of_the_last_digit(
    values: tuple[float, ...], shown: list[float], options: SiteOptions
) -> None:
    """Else it would number the rounding errors of equal values with digits that nobody measured: readings that differ
    by 8 bytes need nine decimals to tell their ticks apart."""
    assert METRICS[MEMORY].decimals == 3
    names = (("m", "native", "w"), ("m", "container", "w"))
    means = dict(zip(names, values, strict=True))
    chart = of_means(means, options, MEMORY).figure("device-used-peak", "c").chart
    room = [row["value"] for row in chart.rows if row["kind"] == "room"]
    assert room == shown
    if 0 in shown:
        return
    numbers = re.findall(r">(−?[\d,]+\.\d+)<", draw("k", chart).svg_wide)
    assert len(set(numbers)) > 1
    assert all(len(text.partition(".")[2]) <= 3 for text in numbers)


def test_a_box_is_quartiles_and_the_ends_within_one_and_a_half_of_their_distance(
    library: Library,
) -> None:
    """Values 100.1, 100.2, 100.3 of natively run `m`: quartiles 100.15 and 100.25, and no run beyond the whiskers."""
    rows = library.figure("output-throughput-box", "c").chart.rows
    (box,) = (
        row
        for row in rows
        if row["kind"] == "mean"
        and (row["model"], row["environment"]) == ("m", "native")
    )
    ends = [box[name] for name in ("least", "low", "value", "high", "most")]
    assert ends == pytest.approx([100.1, 100.15, 100.2, 100.25, 100.3])


def test_runs_stand_in_per_cent_of_the_mean_of_the_counted_runs_of_the_baseline(
    library: Library,
) -> None:
    """Natively 100.1 to 100.3 with the mean 100.2: the last is 100 × 0.1 / 100.2 above it."""
    rows = library.figure("output-throughput-relative", "c").chart.rows
    mine = [
        row["value"]
        for row in rows
        if (row["model"], row["environment"]) == ("m", "native")
    ]
    assert mine == pytest.approx([-0.0998, 0.0, 0.0998], abs=1e-3)


def test_runs_that_are_left_out_stand_in_brackets_and_are_drawn_hollow(
    data: Path, options: SiteOptions
) -> None:
    run = load(data).runs[0].run_id
    out = (Quarantine(run=run, reason="wrong cable"),)
    campaign = Campaign(campaign="c", title="t", quarantined=out)
    (data / "c" / "campaign.json").write_text(to_json(campaign))
    figure = Library(publish(load(data), options)).figure("peak-memory", "c")
    assert figure.table.head[-1] == "Runs (in brackets: left out)"
    entries = [entry for row in figure.table.rows for entry in row[-1]]
    texts = [entry.text for entry in entries if isinstance(entry, Entry)]
    assert sum(text.startswith("(") for text in texts) == 1
    assert [row["counts"] for row in figure.chart.rows if "counts" in row] == [False]


@pytest.mark.parametrize(
    ("name", "part"),
    [("comparison", {"environment": "native"}), ("output-throughput-sweep", {})],
)
def test_a_figure_that_a_part_does_not_have_is_refused_in_one_line(
    name: str, part: dict[str, str], library: Library
) -> None:
    """The baseline is compared with nothing; a campaign of one load has no sweep."""
    with pytest.raises(
        SiteError, match=r"figure c-comparison-native: this part|no figure"
    ):
        library.figure(name, "c", **part)
    assert library.figure("comparison", "c", environment="container").table.rows
