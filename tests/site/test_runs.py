"""The file of a run: its samples travel as steps, and come back as they were."""

import json
from pathlib import Path

from sparkpub.review.dataset import load
from sparkpub.site.content import unpacked
from sparkpub.site.figures import telemetry
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
