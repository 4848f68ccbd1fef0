"""The page of a run and the file beside it."""

import json
from pathlib import Path

from sparkpub.review.dataset import load
from sparkpub.site.build import publish
from sparkpub.site.content import ROOT, Page, SiteOptions
from sparkpub.site.figures import telemetry
from sparkpub.site.figures.draw import draw
from sparkpub.site.pages.runs import in_shell, samples
from sparkpub.site.pages.runs import page as page_of

TPUT = "output_throughput_tok_s"


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
    (campaign,) = publication.campaigns
    for index, stored in enumerate(campaign.runs):
        html = page_of(publication, publication.names, campaign, index, "").html["run"]
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
    assert trace.lines == {
        "GPU power (W)": [(0, 300), (1, 310)],
        "CPU (%)": [(0, 5), (1, 6)],
    }
    power, *_ = json.loads(samples(stored, trace))["rows"]
    assert power == {"panel": "GPU power (W)", "x": [0, 1], "value": [300, 310]}
    figure = telemetry.figure(stored, trace)
    assert [*figure.table[0].values()] == ["GPU power (W)", "300.0", "310.0"]
    assert trace.key == figure.drawn_as
    assert ">GPU power (W)<" in draw("k", figure.chart).svg_wide
