"""Results of SGLang's `bench_serving --output-file`: JSON lines, a run each, with the bare word `Infinity` in them.

A line names neither the model nor the time of the run.
"""

from typing import Any

from sparkpub.collect.importers.reports import (
    Report,
    Tool,
    key_of,
    positive,
)
from sparkpub.collect.importers.sidecars import Sidecars
from sparkpub.plan.workloads import WORKLOADS, reading, sglang


def _report(
    document: dict[str, Any], content: bytes, beside: Sidecars
) -> Report | None:
    if not sglang.is_report(document):
        return None
    answer = WORKLOADS["openai-endpoint"].parse(beside.log, {"report": content}, None)
    completed = reading.positive_int(document.get("completed"))
    load = _load(document)
    workload = key_of(
        {
            "serve": "",
            "": document.get("backend"),
            "data-": load.get("dataset"),
            "in": load.get("input_tokens"),
            "out": load.get("output_tokens"),
            "from": load.get("range_ratio"),
            "c": load.get("concurrency"),
            "rate": load.get("request_rate"),
        }
    )
    observed = answer.observed
    sizes: tuple[float, ...] = ()
    if completed and "dataset" in load:
        sizes = (observed.input_tokens_mean or 0, observed.output_tokens_mean or 0)
    failure = None if completed else "no request succeeded"
    asked = {"type": "openai-endpoint", "client": "sglang"} | load
    return Report(answer, None, workload, asked, None, sizes, failure)


def _load(document: dict[str, Any]) -> dict[str, Any]:
    """What was asked for. Lengths are those of random data; other data sets bring their own."""
    load: dict[str, Any] = {
        "concurrency": reading.positive_int(document.get("max_concurrency")),
        "request_rate": reading.number(document.get("request_rate")),
    }
    if not str(document.get("dataset_name")).startswith("random"):
        return positive(load | {"dataset": document.get("dataset_name")})
    load["input_tokens"] = reading.positive_int(document.get("random_input_len"))
    load["output_tokens"] = reading.positive_int(document.get("random_output_len"))
    span = reading.number(document.get("random_range_ratio"))
    if span != 1:  # from this share of the lengths up to them
        load["range_ratio"] = span
    return positive(load)


TOOL = Tool("sglang", _report)
