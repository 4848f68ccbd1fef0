"""Figures of a campaign: which rows are drawn and in what order, what the sentence and the table say."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sparkpub.record.campaign import Campaign, Quarantine
from sparkpub.record.errors import SiteError
from sparkpub.record.store import to_json
from sparkpub.record.text import SPACE
from sparkpub.review.dataset import CampaignData, Dataset, load
from sparkpub.site.build import publish
from sparkpub.site.content import SiteOptions, placeholder
from sparkpub.site.figures.campaign import MOST_ROWS
from sparkpub.site.figures.draw import draw
from sparkpub.site.figures.figure import Entry, Figure, known
from sparkpub.site.figures.library import Library
from sparkpub.site.pages import campaign_page
from tests.leaderboards import LOAD, TPUT, dataset_of, published, runs_of
from tests.review.machines import a_fleet, drawn
from tests.site.figures.building import Values, a_library, bears, line

TTFT, MEMORY = "ttft_p50_ms", "device_used_peak_gib"


@pytest.fixture
def library(data: Path, options: SiteOptions) -> Library:
    """The figures of the small campaign, named and not drawn."""
    return Library(publish(load(data), options))


def names(figure: Figure) -> list[str]:
    """The names of the rows of a chart, each once, from top to bottom."""
    return list(
        dict.fromkeys(row["name"] for row in figure.chart.rows if "name" in row)
    )


def said(figure: Figure) -> str:
    return figure.says.replace(SPACE, " ")


def column(figure: Figure, head: str) -> list[Any]:
    return [row[head] for row in figure.table]


# ---- Which figures there are -----------------------------------------------------------------------------------------


def left_out(data: Path, *runs: str) -> None:
    found = tuple(Quarantine(run=run, reason="wrong cable") for run in runs)
    campaign = Campaign(campaign="c", title="t", quarantined=found)
    (data / "c" / "campaign.json").write_text(to_json(campaign))


def whole(_: Path) -> None:
    """As it is."""


def without_gpu(data: Path) -> None:
    """Telemetry of a machine without one."""
    (telemetry,) = (data / "c").glob("*.telemetry.csv")
    telemetry.write_text("elapsed_seconds,cpu_percent\n0,10\n1,20\n")


def without_runs_that_count(data: Path) -> None:
    """All of them are taken out."""
    left_out(data, *(run.run_id for run in load(data).runs))


def without_runs(data: Path) -> None:
    """Begun and not measured."""
    for path in (data / "c").glob("*iter*"):
        path.unlink()


@pytest.mark.parametrize(
    "poor", [whole, without_gpu, without_runs_that_count, without_runs]
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
        assert all(row.keys() == figure.table[0].keys() for row in figure.table)


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
    assert library.figure("comparison", "c", environment="container").table


LINE = line({1: 100, 2: 200, 4: 300})


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        (line({1: 100, 2: 200}), ["ranks"]),
        (LINE, ["sweeps"]),
        ({**LINE, **line({1: 200}, "n")}, ["sweeps", "ranks"]),
        # Each model along a line of its own.
        ({**LINE, **line({1: 200, 2: 300, 4: 400}, "n")}, ["sweeps"]),
    ],
)
def test_the_kind_of_a_campaign_is_what_it_has(
    values: Values, asked: list[str], options: SiteOptions
) -> None:
    found = campaign_page.asked(a_library(values, options).campaign("c"))._asdict()
    assert [name for name, is_asked in found.items() if is_asked] == asked


def test_two_environments_are_a_comparison_and_come_first(library: Library) -> None:
    """The small campaign of two models in two environments."""
    assert campaign_page.asked(library.campaign("c")) == (True, False, False)
    assert library.figure("coverage", "c").says == "Of 13 runs: 12 done, 1 failed."
    (campaign,) = library.publication.campaigns
    page = campaign_page.shown(library.publication, library, campaign)
    first = ("c-output-throughput-relative", "c-comparison")
    assert page.charts == list(map(placeholder, first))


# ---- Rows and their places -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "metric", "shown"),
    [
        ({"b": 20, "a": 30, "c": 10}, TPUT, ["a", "b", "c"]),
        ({"b": 20, "a": 30, "c": 10}, TTFT, ["c", "b", "a"]),
        # Of several models each has a row with its environments in it; of one model its environments have rows.
        ({"m/a": 1, "m/b": 2, "m/d": 3}, TPUT, [f"native ({each})" for each in "dba"]),
        ({"m/a": 1, "m/b": 2, "n/a": 3}, TPUT, ["n", "m"]),
    ],
)
def test_the_best_row_comes_first_and_is_called_what_differs(
    values: Mapping[str, float], metric: str, shown: list[str], options: SiteOptions
) -> None:
    cells = {
        "/".join([*cell.split("/"), "native"][:2]) + "/w": [float(value)]
        for cell, value in values.items()
    }
    figure = a_library(cells, options, metric).figure(
        "output-throughput-bars" if metric == TPUT else "ttft-p50-bars", "c"
    )
    assert names(figure) == shown
    best, worst = figure.says.split(" and ")
    assert f"for {shown[0]}" in best
    assert f"for {shown[-1]}" in worst


def test_of_two_hundred_cells_a_screen_is_drawn_and_the_table_has_all(
    options: SiteOptions,
) -> None:
    values = {f"m{number:03d}/native/w": [1000.0 - number] for number in range(200)}
    library = a_library(values, options)
    for name in ("output-throughput", "output-throughput-bars", "coverage"):
        figure = library.figure(name, "c")
        assert names(figure) == [f"m{number:03d}" for number in range(MOST_ROWS)]
        assert len(figure.table) == 200
        assert f"{MOST_ROWS} of 200 cells are drawn" in figure.sample


def test_a_load_is_a_panel_under_its_own_name(options: SiteOptions) -> None:
    """Models that a load does not have, have no row there; a single panel goes without a name."""
    values = {"m/native/c1": [1.0], "n/native/c1": [2.0]}
    alone = a_library(values, options).figure("output-throughput-bars", "c")
    assert not any("panel" in row for row in alone.chart.rows)
    values["m/native/c8"] = [3.0]
    made = a_library(values, options).figure("output-throughput-bars", "c")
    drawing = draw("k", made.chart).svg_wide
    found = [drawing.count(text) for text in (">one user", ">8 users", ">m<", ">n<")]
    assert found == [1, 1, 2, 1]


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
    native, container = values
    cells = {"m/native/w": [native], "m/container/w": [container]}
    chart = a_library(cells, options, MEMORY).figure("device-used-peak", "c").chart
    room = [row["value"] for row in chart.rows if row["kind"] == "room"]
    assert room == shown
    if 0 in shown:
        return
    numbers = re.findall(r">(−?[\d,]+\.\d+)<", draw("k", chart).svg_wide)
    assert len(set(numbers)) > 1
    assert all(len(text.partition(".")[2]) <= 3 for text in numbers)


def test_boxes_and_shares_follow_from_the_runs_that_count(
    data: Path, options: SiteOptions
) -> None:
    """Natively 100.2 and 100.3, without 100.1: quartiles 100.225 and 100.275, no run beyond one and a half of their
    distance; the runs lie 0.15 below, 0.05 below and 0.05 above the mean of 100.25."""
    left_out(data, load(data).runs[0].run_id)
    library = Library(publish(load(data), options))

    def rows(name: str, kind: str) -> list[Any]:
        return [
            row
            for row in library.figure(f"output-throughput-{name}", "c").chart.rows
            if (row["kind"], row["model"], row["environment"]) == (kind, "m", "native")
        ]

    (box,) = rows("box", "mean")
    ends = [box[name] for name in ("least", "low", "value", "high", "most")]
    assert ends == pytest.approx([100.2, 100.225, 100.25, 100.275, 100.3])
    shares = [row["value"] for row in rows("relative", "run")]
    assert shares == pytest.approx([-0.1496, -0.0499, 0.0499], abs=1e-3)


def test_runs_that_are_left_out_stand_in_brackets_and_are_drawn_hollow(
    data: Path, options: SiteOptions
) -> None:
    left_out(data, load(data).runs[0].run_id)
    figure = Library(publish(load(data), options)).figure("peak-memory", "c")
    each = column(figure, "Runs (in brackets: left out)")
    assert sum(entry.text.startswith("(") for run in each for entry in run) == 1
    assert [row["counts"] for row in figure.chart.rows if "counts" in row] == [False]


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
    assert column(figure, "Mean utilisation") == ["33.3 %"]
    assert all(row["x"] < row["end"] for row in figure.chart.rows)


def test_a_column_in_which_nothing_is_known_is_left_out() -> None:
    """But for the first, which says what the rows are about."""
    rows = [("", "", Entry(""), (), "3"), ("", "not known", "", "", "")]
    assert known([dict(zip("abcde", row, strict=True)) for row in rows]) == ["a", "e"]


# ---- Along a load ----------------------------------------------------------------------------------------------------


BENT = {1: 100, 2: 200, 4: 400, 8: 440}


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        # Of single runs nobody knows whether the last step is noise.
        ([line(BENT)], "grows from concurrency 1 to 8: 100 to 440 tok/s."),
        (
            [line(BENT, runs=2)],
            "grows from concurrency 1 to 8: 100 to 440 tok/s; the knee is at 4.",
        ),
        (
            [line({1: 100, 2: 102, 4: 104}, runs=2)],
            "changes by less than 5 % from concurrency 1 to 4: 100 to 104 tok/s.",
        ),
        (
            [line({1: 10, 2: 8}), line({1: 10, 2: 9}, "n")],
            "falls with concurrency on 2 of 2 lines, down to 8.00 tok/s (m).",
        ),
        (  # the line that ends highest does not grow
            [line({1: 90, 2: 80})]
            + [line({1: 10, 2: end}, name) for name, end in (("n", 11), ("o", 12))],
            "grows with concurrency on 2 of 3 lines, up to 12.0 tok/s (o).",
        ),
        (  # a small model is the fastest, and leads nothing beside a large one
            [line({1: 90, 2: 99}, "a-0.8b")]
            + [line({1: 10, 2: end}, f"a-{end}b") for end in (30, 20)],
            "grows with concurrency on 3 of 3 lines, up to 30.0 tok/s from 20B up (30B).",
        ),
    ],
)
def test_the_sentence_names_the_shape_and_the_knee(
    lines: list[Values], says: str, options: SiteOptions
) -> None:
    values = {cell: runs for each in lines for cell, runs in each.items()}
    figure = a_library(values, options).figure("output-throughput-sweep", "c")
    assert said(figure) == f"Output throughput {says}"
    assert figure.chart.shape.keywords["knee"] == (4 if "knee" in says else None)


def test_a_figure_of_a_sweep_has_every_run_and_its_cells(options: SiteOptions) -> None:
    """Runs of 90 and 110 have the mean 100."""
    values = {"m/native/c1": [90.0, 110.0], "m/native/c2": [250.0]}
    figure = a_library(values, options).figure("output-throughput-sweep", "c")
    rows = [[*row.values()][1:4] for row in figure.table]
    assert rows == [["1", "2", "100.00"], ["2", "1", "250.00"]]
    runs_of = [row["value"] for row in figure.chart.rows if row["kind"] == "run"]
    assert runs_of == [90.0, 110.0, 250.0]


def test_more_lines_than_colours_are_in_the_table_alone(options: SiteOptions) -> None:
    """A line has one colour whatever the metric, though what is best in throughput is worst in time."""
    values: dict[str, Sequence[float]] = {}
    for number in range(8):
        values |= line({1: 100.0 + number, 2: 200.0 + number}, f"m{number}")
    library = a_library(values, options, TPUT, "tpot_p50_ms")
    for name, best in (("output-throughput", range(2, 8)), ("tpot-p50", range(6))):
        figure = library.figure(f"{name}-sweep", "c")
        assert "6 of 8 lines are drawn" in figure.sample
        assert len(figure.table) == 16
        groups = figure.chart.shape.keywords["groups"]
        assert groups == [f"m{number}" for number in best]
        assert {row["group"] for row in figure.chart.rows} == {*groups}


# ---- Over machines ---------------------------------------------------------------------------------------------------


EFFECT = "effect-per-machine"
CLAIM = """
- id: both
  source: {document: d}
  about: world
  campaign: one
  repeated_in: [two]
  metric: output_throughput_tok_s
  compare: container / native
  scope: each model
  expect: {direction: higher}
  recorded: supported
"""


def of_machines(options: SiteOptions, *campaigns: CampaignData) -> Library:
    known = {campaign.name: campaign for campaign in campaigns}
    return Library(publish(Dataset(options.sources, known), options))


def is_asked(library: Library, campaign: str) -> bool:
    """Whether the page of a campaign asks whether it holds on other machines."""
    part = library.campaign(campaign)
    sections = campaign_page.answering(part, library, campaign_page.asked(part))
    return any("other machines" in section.title for section in sections)


def test_a_row_for_each_machine_and_one_for_all(options: SiteOptions) -> None:
    measured = {"abcdefgh": drawn(100, 5, 1), "12345678": drawn(140, 5, 2)}
    figure = of_machines(options, a_fleet(measured)).figure(EFFECT, "c")
    assert names(figure) == ["DGX Spark abcdef", "DGX Spark 123456", "all together"]
    first, second, together = figure.chart.rows
    assert first["value"] == pytest.approx(5, abs=0.5)
    for each in (first, second):
        assert each["low"] < each["value"] < each["high"]
    assert first["verdict"] == "higher"
    ends = sorted([first["value"], second["value"]])
    assert ends[0] <= together["value"] <= ends[1]
    # On one degree of freedom the interval of both is wider than that of either.
    assert together["high"] - together["low"] > first["high"] - first["low"]
    assert figure.says == "1 comparison over 2 machines: 1 replicated."
    assert column(figure, "n") == ["8 and 8"] * 2 + [""]


def test_runs_are_held_against_the_mean_that_the_drawing_takes(
    options: SiteOptions,
) -> None:
    """Of 100 and 104 with a hundredth of the spread, the cell's mean is near 100, and that of the runs 102: the shares
    of the runs, of which it is the zero, are none together."""
    steady, wavering = [99.9, 100.0, 100.1, 100.0], [94.0, 114.0, 94.0, 114.0]
    measured = {
        name: {("m", side): {TPUT: values} for side in ("native", "container")}
        for name, values in (("abcdefgh", steady), ("12345678", wavering))
    }
    library = of_machines(options, a_fleet(measured))
    figure = library.figure("output-throughput-relative", "c")
    assert column(figure, "n") == ["8 on 2 machines (4, 4)"] * 2
    shares = [row["value"] for row in figure.chart.rows]
    assert sum(shares) == pytest.approx(0)


def test_machines_may_disagree_or_leave_it_open(options: SiteOptions) -> None:
    """Of 5 % and 3.5 % the interval of the mean reaches 12.706 standard errors to either side, and the end of the 90 %
    interval, which is the bound, 6.314."""
    says = "1 comparison over 2 machines: 1"
    apart = {"a": drawn(100, 5, 1), "b": drawn(140, -5, 2)}
    figure = of_machines(options, a_fleet(apart)).figure(EFFECT, "c")
    assert figure.says == f"{says} not replicated."
    measured = {"a": drawn(100, 5, 1), "b": drawn(140, 3.5, 2)}
    figure = of_machines(options, a_fleet(measured)).figure(EFFECT, "c")
    together = figure.chart.rows[-1]
    half = (together["high"] - together["low"]) / 2
    most = math.ceil(10 * (together["value"] + half * 6.314 / 12.706)) / 10
    assert said(figure) == f"{says} undecided (at most {most:.1f} %)."


def test_campaigns_that_a_claim_joins_are_drawn_together(options: SiteOptions) -> None:
    """One session of each machine: the chart stands on both pages, its own session first. By itself neither has one."""
    one = a_fleet({"a": drawn(100, 5, 1)}, name="one")
    two = a_fleet({"b": drawn(140, 5, 2)}, name="two")
    alone = of_machines(options, one)
    assert EFFECT not in alone.makers("one")
    assert not is_asked(alone, "one")
    (options.sources / "claims.yaml").write_text(CLAIM)
    library = of_machines(options, one, two)
    figure = library.figure(EFFECT, "two")
    assert names(figure) == ["DGX Spark b", "DGX Spark a, one", "all together"]
    assert is_asked(library, "one")
    assert is_asked(library, "two")


# ---- Capacity and bandwidth ------------------------------------------------------------------------------------------


ALL = "all to 1"
LIMITS = (
    "95 % of the first tokens within 10 s "
    "and 95 % of the times per output token within 100 ms"
)


def test_the_best_build_comes_first_with_what_it_bears_within_each_limit(
    tmp_path: Path,
) -> None:
    waits = {"slow": (3, 12, 30), "none": (20, 30, 40), "fast": (1, 1.5, 4)}
    figure = bears(waits, tmp_path).figure("capacity", "c")
    assert [(row["name"], row["column"], row["text"]) for row in figure.chart.rows] == [
        *(("fast", "2 s", "0.5"), ("fast", "5 s", ALL), ("fast", "10 s", ALL)),
        *(
            ("slow", "2 s", "below 0.1"),
            ("slow", "5 s", "0.1"),
            ("slow", "10 s", "0.1"),
        ),
        *(("none", limit, "below 0.1") for limit in ("2 s", "5 s", "10 s")),
    ]
    end = "limit not reached (up to 1.0)"
    assert said(figure) == (
        f"Requests a second with {LIMITS}: fast {end}; slow 0.1; none below 0.1."
    )


def test_an_open_loop_is_answered_by_what_it_bears_and_not_by_its_throughput(
    tmp_path: Path,
) -> None:
    """The throughput of an open loop is that of its arrivals. Of more builds how many reached what, without the one
    whose server stopped before the last rate: it has shown nothing there."""
    builds = {f"fast{number}": (1.0, 1.0, 1.0) for number in range(3)}
    builds |= {"short": (1.0, 1.0), "none": (11.0, 11.0, 11.0)}
    publication = bears(builds, tmp_path).publication
    assert campaign_page.answers(publication, publication.campaigns[0]) == [
        "3 of 5 builds kept up with 1 request/s, the highest rate tried; "
        "1 with all of a shorter sweep; 1 with none."
    ]


def test_each_build_is_shown_where_it_is_fastest_and_what_is_not_known_is_told(
    tmp_path: Path,
) -> None:
    """Of 273 GB/s: 10 × 2 × 6.825 is 50 %, 2 × 2 × 27.3 is 40 %, 8 × 2 × 20.475 is 120 %."""
    records = []
    for name, weights, rate, prompt in (
        ("Big-10B", "bf16", 6.825, 512),
        ("Big-10B", "bf16", 5.0, 8192),
        ("Small-2B", "bf16", 27.3, 512),
        ("Narrow-4B", "nvfp4", 54.6, 512),
        ("Doubtful-8B", "bf16", 20.475, 512),
    ):
        (record,) = runs_of(
            name.lower(),
            [rate],
            model_id=f"x/{name}",
            load=LOAD | {"concurrency": 1, "requests": 10, "input_tokens": prompt},
            observed={"quantization": weights},
            machine={"kind": "dgx-spark"},
            workload=f"in{prompt}",
        )
        records.append(published(record, run_id=f"c-{name}-{prompt}"))
    publication = publish(dataset_of(*records), SiteOptions(tmp_path))
    figure = Library(publication).figure("memory-bandwidth", "c")
    shares = [
        row["tip"]["Of the bandwidth"] for row in figure.chart.rows if "tip" in row
    ]
    assert shares == ["120 %", "50 %", "40 %"]
    assert figure.says == (
        "One user takes 40 to 120 % of the memory's 273 GB/s, half of the 3 builds 50 % or more. "
        "For 1 more build the bytes of a token are not known for this format."
    )
    assert column(figure, "Who says so")[-1] == "not known for this format"
