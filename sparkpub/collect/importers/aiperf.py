"""Results of AIPerf: the summary of each artifact folder, `profile_export_aiperf.json`.

The other files of such a folder, and the summaries of its phases, of which the warm-up is one, are passed over.
"""

from pathlib import Path
from typing import Any

from sparkpub.collect.importers.base import local_moment
from sparkpub.collect.importers.files import ResultFile
from sparkpub.collect.importers.reports import (
    Report,
    Tool,
    key_of,
    positive,
)
from sparkpub.collect.importers.sidecars import Sidecars
from sparkpub.plan.workloads import WORKLOADS, aiperf, reading


def _is_summary(file: ResultFile) -> bool:
    return (
        file.name.endswith("_aiperf.json") and "phases" not in Path(file.source).parts
    )


def _report(
    document: dict[str, Any], content: bytes, beside: Sidecars
) -> Report | None:
    if not aiperf.is_report(document):
        return None
    answer = WORKLOADS["openai-endpoint"].parse(beside.log, {"report": content}, None)
    settings = document.get("input_config")
    phases = reading.objects(reading.at(settings, "phases"))
    phase = next((phase for phase in phases if phase.get("kind") == "profiling"), None)
    succeeded = reading.positive_int(reading.at(document, "request_count.avg"))
    return Report(
        answer,
        model=reading.word(reading.at(settings, "models.items.0.name")),
        workload=None if phase is None else _workload(settings, phase),
        asked={"type": "openai-endpoint", "client": "aiperf"}
        | _asked(settings, phase or {}),
        started=local_moment(document.get("start_time")),
        failure=None if succeeded else "no request succeeded",
    )


def _workload(settings: Any, phase: dict[str, Any]) -> str:
    """`chat-in48-out12-c2-n10`; answers in one piece instead of a stream are another load."""
    prompts = reading.at(settings, "datasets.0.prompts")
    streaming = reading.at(settings, "endpoint.streaming") is True
    return key_of(
        {
            "": reading.at(settings, "endpoint.type"),
            "whole": None if streaming else "",
            "in": reading.number(reading.at(prompts, "isl.mean")),
            "sd": reading.positive_int(reading.at(prompts, "isl.stddev")),
            "out": reading.number(reading.at(prompts, "osl.mean")),
            "c": reading.positive_int(phase.get("concurrency")),
            "rate": reading.number(phase.get("rate")),
            "n": reading.positive_int(phase.get("requests")),
        }
    )


def _asked(settings: Any, phase: dict[str, Any]) -> dict[str, Any]:
    prompts = reading.at(settings, "datasets.0.prompts")
    endpoint = reading.at(settings, "endpoint.type")
    streaming = reading.at(settings, "endpoint.streaming") is True
    return positive(
        {
            "requests": reading.positive_int(phase.get("requests")),
            "concurrency": reading.positive_int(phase.get("concurrency")),
            "request_rate": reading.number(phase.get("rate")),
            "input_tokens": reading.positive_int(reading.at(prompts, "isl.mean")),
            "output_tokens": reading.positive_int(reading.at(prompts, "osl.mean")),
            "endpoint": None if endpoint == "completions" else endpoint,
            "streaming": None if streaming else False,
        }
    )


TOOL = Tool("aiperf", _report, _is_summary)
