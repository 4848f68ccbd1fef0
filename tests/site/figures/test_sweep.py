"""Lines against the load: their sentence names shape and knee, their tables have the cells, the front is the front."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from sparkpub.review.dataset import load as load_folder
from sparkpub.site.build import publish
from sparkpub.site.content import SiteOptions, placeholder
from sparkpub.site.figures.draw import draw
from sparkpub.site.figures.library import Library
from sparkpub.site.pages import campaign_page
from tests.site.figures.building import THROUGHPUT, Runs, a_library


def throughput(values: Mapping[int, float], model: str = "m", runs: int = 1) -> Runs:
    """Some runs at each concurrency."""
    each = {load: [{THROUGHPUT: value}] * runs for load, value in values.items()}
    return {(model, "native", f"c{load}"): found for load, found in each.items()}


BENT = {1: 100, 2: 200, 4: 400, 8: 440}


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        (  # of single runs nobody knows whether the last step is noise
            throughput(BENT),
            "grows from concurrency 1 to 8: 100 to 440 tok/s.",
        ),
        (
            throughput(BENT, runs=2),
            "grows from concurrency 1 to 8: 100 to 440 tok/s; the knee is at 4.",
        ),
        (
            throughput({1: 100, 2: 102, 4: 104}, runs=2),
            "changes by less than 5 % from concurrency 1 to 4: 100 to 104 tok/s.",
        ),
        (
            throughput({1: 10, 2: 8}) | throughput({1: 10, 2: 9}, "n"),
            "falls with concurrency on 2 of 2 lines, down to 8.00 tok/s (m).",
        ),
        (
            throughput({1: 10, 2: 8})
            | throughput({1: 10, 2: 11}, "n")
            | throughput({1: 10, 2: 12}, "o"),
            "grows with concurrency on 2 of 3 lines, up to 12.0 tok/s (o).",
        ),
        (  # the line that ends highest does not grow
            throughput({1: 90, 2: 80})
            | throughput({1: 10, 2: 11}, "n")
            | throughput({1: 10, 2: 12}, "o"),
            "grows with concurrency on 2 of 3 lines, up to 12.0 tok/s (o).",
        ),
        (  # a small model is the fastest, and leads nothing beside a large one
            throughput({1: 90, 2: 99}, "a-0.8b")
            | throughput({1: 10, 2: 11}, "a-30b")
            | throughput({1: 10, 2: 12}, "a-20b"),
            "grows with concurrency on 3 of 3 lines, up to 12.0 tok/s from 20B up (20B).",
        ),
    ],
)
def test_the_sentence_names_the_shape_and_the_knee(
    runs: Runs, says: str, options: SiteOptions
) -> None:
    figure = a_library(runs, options).figure("output-throughput-sweep", "c")
    words = figure.says.replace("\N{NO-BREAK SPACE}", " ")
    assert words == f"Output throughput {says}"
    knee = figure.chart.shape.keywords["knee"]
    assert knee == (4 if "knee" in says else None)


def test_a_figure_of_a_sweep_has_every_run_and_its_cells(options: SiteOptions) -> None:
    """Runs of 90 and 110 have the mean 100."""
    runs = {
        ("m", "native", "c1"): [{THROUGHPUT: 90.0}, {THROUGHPUT: 110.0}],
        ("m", "native", "c2"): [{THROUGHPUT: 250.0}],
    }
    figure = a_library(runs, options).figure("output-throughput-sweep", "c")
    assert figure.table.head[:4] == ("Line", "Concurrency", "n", "Mean (tok/s)")
    rows = [row[1:4] for row in figure.table.rows]
    assert rows == [["1", "2", "100.00"], ["2", "1", "250.00"]]
    runs_of = [row["value"] for row in figure.chart.rows if row["kind"] == "run"]
    assert runs_of == [90.0, 110.0, 250.0]
    assert draw("k", figure.chart).svg_wide.count('href="') == 3


def test_more_lines_than_colours_are_in_the_table_alone(options: SiteOptions) -> None:
    runs: Runs = {}
    for number in range(8):
        values = {1: 100.0 + number, 2: 200.0 + number}
        runs = {**runs, **throughput(values, f"m{number}")}
    figure = a_library(runs, options).figure("output-throughput-sweep", "c")
    assert "6 of 8 lines are drawn" in figure.sample
    assert len(figure.table.rows) == 16
    drawn = {row["group"] for row in figure.chart.rows}
    assert drawn == {f"m{number}" for number in range(2, 8)}


LINE = throughput({1: 100, 2: 200, 4: 300})


@pytest.mark.parametrize(
    ("runs", "asked"),
    [
        (throughput({1: 100, 2: 200}), ["ranks"]),
        (LINE, ["sweeps"]),
        (LINE | throughput({1: 200}, "n"), ["sweeps", "ranks"]),
        # Each model along a line of its own.
        (LINE | throughput({1: 200, 2: 300, 4: 400}, "n"), ["sweeps"]),
    ],
)
def test_the_kind_of_a_campaign_is_what_it_has(
    runs: Runs, asked: list[str], options: SiteOptions
) -> None:
    library = a_library(runs, options)
    (campaign,) = library.publication.campaigns
    found = campaign_page.asked(library.campaign(campaign.name))._asdict()
    assert [name for name, is_asked in found.items() if is_asked] == asked


def test_two_environments_are_a_comparison_and_come_first(
    data: Path, options: SiteOptions
) -> None:
    """The small campaign of two models in two environments."""
    publication = publish(load_folder(data), options)
    library = Library(publication)
    (campaign,) = publication.campaigns
    asked = campaign_page.asked(library.campaign(campaign.name))
    assert asked == (True, False, False)
    page = campaign_page.shown(publication, library, campaign)
    shown = [
        key
        for key, figure in library.wanted.items()
        if placeholder(figure.key) in page.charts
    ]
    assert shown == ["c-output-throughput-relative", "c-comparison"]


def test_a_line_has_one_colour_whatever_the_metric(options: SiteOptions) -> None:
    """`m` ends best in throughput and worst in time; it is the first line of both charts."""
    loads = (1, 2, 4)
    runs: Runs = {
        (model, "native", f"c{load}"): [
            {THROUGHPUT: all_of * load, "tpot_p50_ms": each * load}
        ]
        for model, all_of, each in (("m", 10.0, 5.0), ("n", 5.0, 4.0))
        for load in loads
    }
    library = a_library(runs, options)
    for name in ("output-throughput-sweep", "tpot-p50-sweep"):
        figure = library.figure(name, "c")
        assert figure.chart.shape.keywords["groups"] == ["m", "n"]
