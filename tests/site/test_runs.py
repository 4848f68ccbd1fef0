"""The file of a run: its samples travel as steps, and several GPUs are one line."""

import gzip
import json
from itertools import accumulate
from pathlib import Path

from sparkpub.review.dataset import load
from sparkpub.site.build import publish
from sparkpub.site.content import ROOT, Page, SiteOptions
from sparkpub.site.figures import telemetry
from sparkpub.site.figures.draw import draw
from sparkpub.site.pages import templating
from sparkpub.site.pages.runs import RunPages, in_shell, samples

TPUT = "output_throughput_tok_s"
CSV = b"""elapsed_seconds,gpu_temp_celsius,gpu_power_watt
-1.5,40,0.29
0,39.95,0.57
2.25,41,1234.56
"""
"""0.29 and 0.57 have no binary form: 100 times each is not whole, 28.999999999999996 and 56.99999999999999."""


def test_samples_travel_as_steps(data: Path) -> None:
    stored = next(run for run in load(data).runs if run.record.file("telemetry"))
    next(stored.path.parent.glob("*.telemetry.csv")).write_bytes(CSV)
    trace = telemetry.trace(stored)
    assert trace is not None
    document = json.loads(gzip.decompress(samples(stored, trace)))
    temperature, power, *phases = document["rows"]
    assert (temperature["panel"], temperature["values"]) == (
        "GPU temperature",
        [4000, -5, 105],
    )
    assert (power["panel"], power["values"]) == ("GPU power", [29, 28, 123399])
    assert temperature["times"] == power["times"] == [-150, 150, 225]
    sums = [total / 100 for total in accumulate(power["values"])]
    assert sums == [0.29, 0.57, 1234.56]
    names = [phase.name for phase in stored.record.phases]
    assert [phase["name"] for phase in phases] == names


def test_a_run_takes_the_place_of_the_shell() -> None:
    shell = '<title>sp-run-title</title><a href="x/runs/view/"><div data-sp-run><p>y</p></div>z'
    page = Page({"title": "A & B"}, "", {"run": f'<a href="{ROOT}runs/">'})
    assert in_shell(shell, "runs/one.md", page) == (
        '<title>A &amp; B</title><a href="x/runs/one/"><div data-sp-run><a href="../../runs/"></div>z'
    )


def test_a_finding_on_several_runs_says_what_it_is_on_the_page_of_each(
    data: Path, options: SiteOptions
) -> None:
    shares = {"iter02": 0.5, "iter03": 0.6}
    for iteration, share in shares.items():
        path = next((data / "c").glob(f"container_n_w_{iteration}_*.json"))
        record = json.loads(path.read_text())
        value = record["metrics"][TPUT]["value"]
        told = {"repetitions": None, "deviation": share * value, "divisor": None}
        path.write_text(json.dumps(record | {"spreads": {TPUT: told}}))
    publication = publish(load(data), options)
    pages = RunPages(publication, templating.Templates())
    (campaign,) = publication.campaigns
    for index, stored in enumerate(campaign.runs):
        html = pages.page(campaign, index, "").html["run"]
        own = [
            share
            for iteration, share in shares.items()
            if f"container_n_w_{iteration}" in stored.path.name
        ]
        assert html.count("This run: ") == len(own)
        for share in own:
            said = html.partition("This run: ")[2].partition(".</li>")[0]
            assert f"({100 * share:.0f} %)" in said


TWO_GPUS = b"""# gpus_used: 0 2
elapsed_seconds,gpu_power_watt,gpu0_power_watt,gpu1_power_watt,gpu2_power_watt,cpu_percent
0,300,100,15,200,5
1,310,110,15,200,6
"""


def test_several_gpus_are_drawn_as_their_sum_and_the_axes_have_no_rows(
    data: Path,
) -> None:
    stored = next(run for run in load(data).runs if run.record.file("telemetry"))
    next(stored.path.parent.glob("*.telemetry.csv")).write_bytes(TWO_GPUS)
    trace = telemetry.trace(stored)
    assert trace is not None
    assert trace.lines == {"GPU power": [(0, 300), (1, 310)], "CPU": [(0, 5), (1, 6)]}
    figure = telemetry.figure(stored, trace)
    assert figure.table.rows[0] == ["GPU power", "W", "300.0", "310.0"]
    assert trace.key == figure.drawn_as
    assert ">GPU power (W)<" in draw("k", figure.chart).svg_wide
