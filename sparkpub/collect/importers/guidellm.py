"""Results of GuideLLM in JSON: a file holds a benchmark of each strategy, and each is a run.

The CSV that the tool writes beside it says the same with less, and is passed over.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
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
from sparkpub.plan.workloads import WORKLOADS, guidellm, reading
from sparkpub.record.record import Moment


def read(path: Path, given: Given) -> Iterator[Draft | Left]:
    """Runs of a file or folder. Raises UsageError without the environment."""
    return read_reports(Tool("guidellm", _report, runs=_runs), path, given)


def _runs(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The benchmarks, each with the data that all of them sent."""
    data = reading.at(document, "config.spec.data")
    found = []
    for benchmark in reading.objects(document.get("benchmarks")):
        if guidellm.is_report(benchmark):
            found.append({**benchmark, "data": data})
    return found


def _report(document: dict[str, Any], content: bytes, beside: Sidecars) -> Report:
    answer = WORKLOADS["openai-endpoint"].parse(beside.log, {"report": content}, None)
    backend = reading.at(document, "config.backend")
    strategy = reading.at(document, "config.strategy")
    kind = reading.word(reading.at(strategy, "type_"))
    streams = reading.positive_int(reading.at(strategy, "streams"))
    load = {
        "input_tokens": reading.positive_int(
            reading.at(document, "data.0.prompt_tokens")
        ),
        "output_tokens": reading.positive_int(
            reading.at(document, "data.0.output_tokens")
        ),
        "concurrency": 1 if kind == "synchronous" else streams,
        "request_rate": reading.number(reading.at(strategy, "rate")),
        "requests": reading.positive_int(
            reading.at(document, "config.constraints.max_requests.args.count")
        ),
    }
    endpoint = str(reading.at(backend, "request_format")).removeprefix("/v1/")
    whole = None if reading.at(backend, "stream") is True else ""
    workload = None
    if None not in (load["input_tokens"], load["output_tokens"], kind):
        workload = key_of(
            {
                "": endpoint.replace("/", "-"),
                "whole": whole,
                # One or as many as asked for at a time; every other strategy is a load of its own kind.
                "at-": None if kind == "concurrent" else kind,
                "in": load["input_tokens"],
                "out": load["output_tokens"],
                "c": streams,
                "rate": load["request_rate"],
                "n": load["requests"],
            }
        )
    asked = {
        "type": "openai-endpoint",
        "client": "guidellm",
        "endpoint": None if endpoint == "completions" else endpoint,
        "streaming": None if whole is None else False,
    }
    return Report(
        answer,
        model=reading.word(reading.at(backend, "model")),
        workload=workload,
        asked=positive(asked | load),
        started=_moment(document.get("start_time")),
        notes=tuple(guidellm.warnings(document)),
        failure=None if answer.observed.requests else "no request succeeded",
    )


def _moment(seconds: Any) -> Moment | None:
    """UNIX time in seconds."""
    known = reading.number(seconds)
    if known is None or not 0 < known < 1e11:
        return None
    return Moment.at(datetime.fromtimestamp(known, UTC))
