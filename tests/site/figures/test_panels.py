"""Where cells stand in a chart: the best rows first, as many as there is room for, a panel for each workload."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from sparkpub.record.campaign import Campaign
from sparkpub.record.metrics import METRICS
from sparkpub.record.record import MetricValue, Moment, Plan
from sparkpub.record.store import Stored
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.site.build import publish
from sparkpub.site.content import SiteOptions
from sparkpub.site.figures import panels
from sparkpub.site.figures.compile import compile_chart
from sparkpub.site.figures.library import Library
from sparkpub.site.figures.panels import LEAST_ROWS, MOST_PANELS, MOST_ROWS
from tests.building import a_record

THROUGHPUT, TTFT = "output_throughput_tok_s", "ttft_p50_ms"
Means = Mapping[tuple[str, str, str], float]
"""Model, environment and workload to the value of the one run."""


def a_library(means: Means, options: SiteOptions, metric: str = THROUGHPUT) -> Library:
    stored = []
    for position, ((model, environment, workload), mean) in enumerate(means.items()):
        record = a_record(
            run_id=f"c-{environment}_{model}_{workload}_iter01",
            model=model,
            environment=environment,
            workload=workload,
            started=Moment(
                value=f"2026-11-20T{10 + position // 60}:{position % 60:02d}:00Z",
                zone="utc",
            ),
            plan=Plan(position=position, order="random"),
        )
        value = MetricValue(value=mean, unit=METRICS[metric].unit, source="published")
        record = record.model_copy(update={"metrics": {metric: value}})
        stored.append(Stored(record, Path(f"c/{record.run_id}.json")))
    campaign = CampaignData(Campaign(campaign="c", title="t"), Path("c"), tuple(stored))
    dataset = Dataset(Path(), MappingProxyType({"c": campaign}))
    publication = publish(dataset, options)
    return Library(publication)


def heights(drawing: str) -> int:
    """The height of a drawing in pixels."""
    found = re.search(r'height="(\d+)"', drawing)
    assert found is not None
    return int(found[1])


def below_each_other(drawing: str, *texts: str) -> bool:
    """Whether texts come in this order in a drawing, as its axis lists them."""
    places = [drawing.index(f">{text}<") for text in texts]
    return places == sorted(places)


@pytest.mark.parametrize(
    ("metric", "figure", "order"),
    [
        (THROUGHPUT, "output-throughput-bars", ("fast", "middle", "slow")),
        (TTFT, "ttft-p50-bars", ("slow", "middle", "fast")),
    ],
)
def test_the_best_row_comes_first(
    metric: str, figure: str, order: tuple[str, ...], options: SiteOptions
) -> None:
    """The highest throughput, the lowest time."""
    means = {
        ("middle", "native", "w"): 20.0,
        ("fast", "native", "w"): 30.0,
        ("slow", "native", "w"): 10.0,
    }
    made = a_library(means, options, metric).figure(figure)
    assert below_each_other(compile_chart(made.job).svg_wide, *order)


def test_the_sentence_names_the_best_and_the_worst(options: SiteOptions) -> None:
    means = {("a", "native", "w"): 30.0, ("b", "native", "w"): 10.0}
    made = a_library(means, options).figure("output-throughput-bars")
    assert (
        made.says
        == "Output throughput is highest for a (30.0 tok/s) and lowest for b (10.0 tok/s)."
    )
    made = a_library(means, options, TTFT).figure("ttft-p50-bars")
    assert (
        made.says
        == "Median time to first token is lowest for b (10.0 ms) and highest for a (30.0 ms)."
    )


def test_of_two_hundred_cells_a_screen_is_drawn_and_the_table_has_all(
    options: SiteOptions,
) -> None:
    means = {
        (f"m{number:03d}", "native", "w"): 1000.0 - number for number in range(200)
    }
    library = a_library(means, options)
    for name in (
        "output-throughput",
        "output-throughput-bars",
        "coverage",
    ):
        figure = library.figure(name)
        drawing = compile_chart(figure.job)
        assert heights(drawing.svg_wide) < 1000
        assert heights(drawing.svg_narrow) < 1400
        assert len(figure.table.rows) == 200
        assert f"{MOST_ROWS} of 200 cells are drawn" in figure.sample
        assert f">m{MOST_ROWS - 1:03d}<" in drawing.svg_wide
        assert f">m{MOST_ROWS:03d}<" not in drawing.svg_wide


@pytest.mark.parametrize(("apart", "piled"), [(1.0, ("w",)), (300.0, ())])
def test_runs_that_the_axis_does_not_part_are_drawn_on_one_line(
    apart: float, piled: tuple[str, ...], options: SiteOptions
) -> None:
    """Rows at 100 and 900: a spread of 1 is an 800th of the axis, one of 300 more than a third."""
    means = {("m", "native", "w"): 100.0, ("n", "native", "w"): 900.0}
    library = a_library(means, options)
    (campaign,) = library.publication.campaigns
    runs = [
        {"model": model, "environment": "native", "workload": "w", "v": mean + more}
        for (model, _, _), mean in means.items()
        for more in (0.0, apart)
    ]
    layout = library.figure("output-throughput", campaign.name).chart.subject[1]
    assert panels._piled(runs, "v", layout, shared=False) == piled


def test_a_workload_is_a_panel_under_its_own_name(options: SiteOptions) -> None:
    """Models that a workload does not have, have no row there."""
    means = {
        ("m", "native", "decode"): 1.0,
        ("n", "native", "decode"): 2.0,
        ("m", "native", "prefill"): 3.0,
    }
    drawing = compile_chart(
        a_library(means, options).figure("output-throughput-bars").job
    ).svg_wide
    assert drawing.count(">decode<") == drawing.count(">prefill<") == 1
    assert drawing.count(">m<") == 2
    assert drawing.count(">n<") == 1
    alone = {key: mean for key, mean in means.items() if key[2] == "decode"}
    drawing = compile_chart(
        a_library(alone, options).figure("output-throughput-bars").job
    ).svg_wide
    assert ">decode<" not in drawing


@pytest.mark.parametrize(
    ("means", "field", "names", "environments"),
    [
        ({("m", "a", "w"): 1.0, ("n", "a", "w"): 2.0}, "model", ("n", "m"), ("a",)),
        (
            {("m", "a", "w"): 1.0, ("m", "b", "w"): 2.0},
            "environment",
            ("a", "b"),
            ("a",),
        ),
        (
            {("m", "a", "w"): 1.0, ("m", "b", "w"): 2.0, ("m", "d", "w"): 3.0},
            "environment",
            ("d", "b", "a"),
            ("a",),
        ),
        (
            {("m", "a", "w"): 1.0, ("m", "b", "w"): 2.0, ("n", "a", "w"): 5.0},
            "model",
            ("n", "m"),
            ("a", "b"),
        ),
    ],
)
def test_a_row_is_what_differs(
    means: Means,
    field: str,
    names: tuple[str, ...],
    environments: tuple[str, ...],
    options: SiteOptions,
) -> None:
    """Of several models each has a row with its environments in it; of one model its environments have rows, two of
    them in their own order."""
    library = a_library(means, options)
    figure = library.figure("output-throughput-bars")
    layout = figure.chart.subject[1]
    assert (layout.field, layout.rows[0][1], layout.environments) == (
        field,
        names,
        environments,
    )


@pytest.mark.parametrize(
    ("counts", "most"),
    [
        ([], LEAST_ROWS),
        ([3], LEAST_ROWS),
        ([MOST_ROWS], MOST_ROWS),
        ([200], MOST_ROWS),
        ([20, 3], 20),
        ([20, 5], 19),
        ([200, 200], MOST_ROWS // 2),
        ([9] * MOST_PANELS, LEAST_ROWS),
    ],
)
def test_panels_share_the_rows_of_a_chart(counts: list[int], most: int) -> None:
    assert panels.room_for(counts) == most


def test_workloads_beyond_the_panels_have_charts_of_their_own(
    options: SiteOptions,
) -> None:
    """Ten workloads, the third and the ninth with two models: those stand first in line, and two are left."""
    means = {("m", "native", f"w{number}"): 1.0 for number in range(10)}
    means |= {("n", "native", f"w{number}"): 2.0 for number in (3, 9)}
    library = a_library(means, options)
    (campaign,) = library.publication.campaigns
    assert panels.without_room(campaign) == ["w7", "w8"]
