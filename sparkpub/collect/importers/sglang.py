"""Results of SGLang's `bench_serving --output-file`: JSON lines, a run each, with the bare word `Infinity` in them.

A line names neither the model nor the time of the run.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparkpub.collect.importers.base import Draft, Given, Left
from sparkpub.collect.importers.reports import (
    Report,
    Tool,
    key_of,
    positive,
    read_reports,
)
from sparkpub.collect.importers.sidecars import Sidecars
from sparkpub.plan.workloads import WORKLOADS, reading, sglang


def read(path: Path, given: Given) -> Iterator[Draft | Left]:
    """Runs of a file or folder. Raises UsageError without the environment."""
    return read_reports(Tool("sglang", _report), path, given)


def _report(
    document: dict[str, Any], content: bytes, beside: Sidecars
) -> Report | None:
    if not sglang.is_report(document):
        return None
    answer = WORKLOADS["openai-endpoint"].parse(beside.log, {"report": content}, None)
    completed = reading.positive_int(document.get("completed"))
    # Other data sets bring their own lengths.
    is_random = str(document.get("dataset_name")).startswith("random")
    lengths = {
        "in": reading.positive_int(document.get("random_input_len")),
        "out": reading.positive_int(document.get("random_output_len")),
    }
    span = reading.number(document.get("random_range_ratio"))
    concurrency = reading.positive_int(document.get("max_concurrency"))
    rate = reading.number(document.get("request_rate"))
    workload = key_of(
        {
            "serve": "",
            "": document.get("backend"),
            "data-": None if is_random else document.get("dataset_name"),
            **(lengths if is_random else {}),
            "from": None if span == 1 or not is_random else span,
            "c": concurrency,
            "rate": rate,
        }
    )
    asked = positive(
        {
            "type": "openai-endpoint",
            "concurrency": concurrency,
            "request_rate": rate,
            "input_tokens": lengths["in"] if is_random and span == 1 else None,
            "output_tokens": lengths["out"] if is_random and span == 1 else None,
        }
    )
    observed = answer.observed
    sizes = (
        ()
        if is_random
        else (observed.input_tokens_mean or 0, observed.output_tokens_mean or 0)
    )
    failure = None if completed else "no request succeeded"
    return Report(
        answer, None, workload, asked, None, sizes if completed else (), failure
    )
