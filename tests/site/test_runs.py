"""The file of a run: its samples travel as steps, and come back as they were."""

import json
from pathlib import Path

from sparkpub.review.dataset import load
from sparkpub.site.content import unpacked
from sparkpub.site.figures import telemetry
from sparkpub.site.figures.compile import Job, compile_chart
from sparkpub.site.pages.runs import recalled, samples

CSV = b"""elapsed_seconds,gpu_temp_celsius,gpu_power_watt
-1.5,40,0.29
0,39.95,0.57
2.25,41,1234.56
"""
"""0.29 and 0.57 have no binary form: 100 times each is not whole, 28.999999999999996 and 56.99999999999999."""


def test_samples_travel_as_steps_and_come_back(data: Path) -> None:
    stored = next(run for run in load(data).runs if run.record.file("telemetry"))
    next(stored.path.parent.glob("*.telemetry.csv")).write_bytes(CSV)
    figure = telemetry.figure(stored)
    assert figure is not None
    ((_, packed),) = samples(figure)
    document = json.loads(unpacked(packed))["samples"]
    times = [-150, 150, 225]
    assert document == {
        "GPU temperature": [times, [4000, -5, 105]],
        "GPU power": [times, [29, 28, 123399]],
    }
    trace = recalled(packed)
    again = telemetry.figure_of(stored, trace)
    assert again.data == figure.data
    assert again.table == figure.table
    assert again.job == figure.job
    assert [row["value"] for row in trace.samples[3:]] == [0.29, 0.57, 1234.56]


TWO_GPUS = b"""# gpus_used: 0 2
elapsed_seconds,gpu_power_watt,gpu0_power_watt,gpu1_power_watt,gpu2_power_watt,cpu_percent
0,300,100,15,200,5
1,310,110,15,200,6
"""


def test_of_several_gpus_each_that_the_run_used_has_a_line(data: Path) -> None:
    stored = next(run for run in load(data).runs if run.record.file("telemetry"))
    next(stored.path.parent.glob("*.telemetry.csv")).write_bytes(TWO_GPUS)
    figure = telemetry.figure(stored)
    assert figure is not None
    values = {
        name: [row["value"] for row in figure.data["samples"] if row["signal"] == name]
        for name in dict.fromkeys(row["signal"] for row in figure.data["samples"])
    }
    assert values == {
        "GPU power, GPU 0": [100, 110],
        "GPU power, GPU 2": [200, 200],
        "CPU": [5, 6],
    }
    assert figure.table.rows[0] == ["GPU power", "W", "100.0", "200.0"]
    drawn = compile_chart(Job("k", figure.chart, figure.data)).svg_wide
    assert ">GPU 0<" in drawn
    assert ">GPU 2<" in drawn
    assert ">GPU 1<" not in drawn
    assert 'stroke="var(--sp-c1)"' in drawn
    assert 'stroke="var(--sp-c2)"' in drawn
    ((_, packed),) = samples(figure)
    again = telemetry.figure_of(stored, recalled(packed))
    assert again.data == figure.data
    assert again.job == figure.job
