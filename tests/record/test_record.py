"""The record: strict on write, and never a value without its unit."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from sparkpub.record import record
from sparkpub.record.record import Moment, Record
from tests.building import a_record


def damaged(**changes: Any) -> dict[str, Any]:
    return json.loads(a_record().model_dump_json()) | changes


def test_a_record_survives_the_disk() -> None:
    original = a_record(
        metrics={"peak_memory_gib": 70.47, "output_throughput_tok_s": 119.79}
    )
    assert Record.model_validate_json(original.model_dump_json()) == original


def metric(name: str, value: Any, unit: str, **more: str) -> dict[str, Any]:
    """A change of the metrics to this one."""
    return {"metrics": {name: {"value": value, "unit": unit, "source": "log", **more}}}


PEAK = "peak_memory_gib"
OWN = {"label": "Peak", "direction": "lower"}
LOG = {"role": "log", "path": "x", "sha256": "0" * 64, "bytes": 1}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"throughput": 3}, "throughput"),
        (
            metric("peak_memory", 1.0, "x", **OWN),
            "would have the address of another page: peak-memory",
        ),
        ({"origin": {"title": "t", "url": "https://a:99999/"}}, "is no address"),
        (metric(PEAK, 70.0, "GB"), "'GB' should be 'GiB'"),
        (metric("gpu_temp_end_celsius", 900.0, "°C"), "outside"),
        (metric(PEAK, None, "GiB"), "needs a reason"),
        (metric("speed", 1.0, "m/s"), "unknown metric"),
        (metric(PEAK, "70", "GiB"), "number"),
        ({"status": "failed"}, "status_reason"),
        ({"exit_code": 3}, "status ok"),
        ({"model": "../../etc"}, "pattern"),
        ({"model": "index"}, "index is the name of a page"),
        ({"samples": {"ttft_mean_ms": [1.0]}}, "samples.ttft_mean_ms: not a metric"),
        ({"iteration": 0}, "greater than 0"),
        (
            {"started": {"value": "2025-11-08T19:51:54Z", "zone": "unknown"}},
            "Z exactly",
        ),
        ({"evidence": [LOG | {"path": "../x"}]}, "pattern"),
        ({"evidence": [LOG, LOG | {"role": "report"}]}, "two entries share a path"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Record.model_validate_json(json.dumps(damaged(**change)))


def test_a_metric_of_ones_own_says_what_it_is() -> None:
    own = metric("frame_rate_fps", 3.0, "frames/s", **OWN)
    found = Record.model_validate_json(json.dumps(damaged(**own)))
    value = found.metrics["frame_rate_fps"]
    assert record.metric_of("frame_rate_fps", value).label == OWN["label"]


def test_a_local_time_never_gets_a_zone() -> None:
    assert (
        Moment(value="2025-11-08T19:51:54", zone="unknown").compact == "20251108T195154"
    )
    assert (
        Moment(value="2026-11-20T10:00:00.250Z", zone="utc").compact
        == "20261120T100000Z"
    )
