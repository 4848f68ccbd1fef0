"""Results of `vllm bench serve`, `throughput` and `latency`, with the log beside them if there is one.

A log of `serve` begins with all options, and the command may stand in what people wrote beside it; without either, and
without notes that say them, the lengths asked for are not known, only their means. A data set other than random prompts
is named, and its lengths are its own. A file of `latency` says neither batch nor lengths: notes beside it do, or its
workload must be named.
"""

import re
from datetime import datetime, timedelta
from typing import Any

from sparkpub.collect.importers.base import local_moment
from sparkpub.collect.importers.layout import arguments
from sparkpub.collect.importers.reports import (
    Report,
    Tool,
    key_of,
    positive,
)
from sparkpub.collect.importers.sidecars import Sidecars
from sparkpub.plan.workloads import WORKLOADS, reading
from sparkpub.record.record import Moment

_USUAL_BACKENDS = ("vllm", "openai")
"""Completions over HTTP; anything else is another load and part of the workload's key."""


def _report(
    document: dict[str, Any], content: bytes, beside: Sidecars
) -> Report | None:
    if {"completed", "total_output_tokens", "backend", "num_prompts"} <= set(document):
        return _serve(document, content, beside)
    if {"elapsed_time", "num_requests"} <= set(document):
        return _throughput(document, content, beside)
    if {"avg_latency", "latencies"} <= set(document):
        return _latency(document, content, beside)
    return None


def _serve(document: dict[str, Any], content: bytes, beside: Sidecars) -> Report:
    answer = WORKLOADS["vllm-bench"].parse(beside.log, {"report": content}, None)
    concurrency = reading.positive_int(document.get("max_concurrency"))
    rate = reading.number(document.get("request_rate"))
    burstiness = reading.number(document.get("burstiness"))
    requests = reading.positive_int(document.get("num_prompts"))
    backend = document.get("backend")
    completed = reading.number(document.get("completed"))
    declared = _declared(beside)
    other_backend = None if backend in _USUAL_BACKENDS else backend
    uneven = None if burstiness == 1 else burstiness
    ramp = None  # of the rate, which then has no one value
    if document.get("ramp_up_strategy"):
        ramp = f"{document['ramp_up_strategy']}-{document.get('ramp_up_start_rps')}-{document.get('ramp_up_end_rps')}"
    workload = key_of(
        {
            "serve": "",
            "": other_backend,
            "data-": declared.get("dataset"),
            "in": declared.get("input_tokens"),
            "out": declared.get("output_tokens"),
            "range": declared.get("range_ratio"),
            "c": concurrency,
            "rate": rate,
            "burst": uneven,
            "ramp-": ramp,
            "probed": "" if "probe_completed" in document else None,
            "n": requests,
        }
    )
    asked = positive(
        {
            "type": "vllm-bench",
            "mode": "serve",
            "requests": requests,
            "concurrency": concurrency,
            "request_rate": rate,
            "backend": other_backend,
            "burstiness": uneven,
            "ramp_up": ramp,
        }
        | declared
    )
    sizes: tuple[float, ...] = ()
    if completed and not declared:
        totals = [
            reading.number(document.get(f"total_{kind}_tokens")) or 0
            for kind in ("input", "output")
        ]
        sizes = tuple(total / completed for total in totals)
    return Report(
        answer,
        model=reading.word(document.get("model_id")),
        workload=workload,
        asked=asked,
        started=_started(document),
        sizes=sizes,
        fits=_default_load(document),
        failure=None if completed else "no request succeeded",
    )


def _started(document: dict[str, Any]) -> Moment | None:
    """When the client began: it writes the time of day after the measurement, which took `duration` seconds."""
    ended = local_moment(document.get("date"))
    duration = reading.number(document.get("duration"))
    if ended is None or duration is None:
        return ended
    try:
        took = timedelta(seconds=round(duration))
    except OverflowError:
        return ended
    return local_moment(datetime.fromisoformat(ended.value) - took) or ended


def _default_load(document: dict[str, Any]) -> dict[str, tuple[object, ...]]:
    """Limits that the client was told to do without: it says so, as null and as `inf`."""
    fits: dict[str, tuple[object, ...]] = {}
    if document.get("max_concurrency", 0) is None:
        fits["concurrency"] = (None,)
    if document.get("request_rate") == "inf":
        fits["request_rate"] = (None,)
    return fits


def _throughput(document: dict[str, Any], content: bytes, beside: Sidecars) -> Report:
    answer = WORKLOADS["vllm-bench"].parse(beside.log, {"report": content}, None)
    requests = reading.positive_int(document.get("num_requests"))
    tokens = reading.number(document.get("total_num_tokens"))
    return Report(
        answer,
        model=reading.word(document.get("model_id")),
        workload=key_of({"throughput": "", "n": requests}),
        asked=positive(
            {"type": "vllm-bench", "mode": "throughput", "requests": requests}
        ),
        started=None,
        sizes=(tokens / requests,) if tokens and requests else (),
    )


def _latency(document: dict[str, Any], content: bytes, beside: Sidecars) -> Report:
    """A workload only where notes beside the file say batch and lengths, which the file does not."""
    answer = WORKLOADS["vllm-bench"].parse(beside.log, {"report": content}, None)
    noted = {name: _noted(beside, *names) for name, names in _NOTED.items()}
    asked = positive(
        {
            "type": "vllm-bench",
            "mode": "latency",
            "requests": len(document["latencies"]),
        }
        | noted
    )
    workload = None
    if None not in noted.values():
        workload = key_of(
            {
                "latency": "",
                "b": noted["batch_size"],
                "in": noted["input_tokens"],
                "out": noted["output_tokens"],
                "n": asked["requests"],
            }
        )
    model = reading.word(document.get("model_id"))
    return Report(answer, model, workload, asked, None)


_NOTED = {
    "batch_size": ("batch_size",),
    "input_tokens": ("input_tokens", "input_len", "random_input_len"),
    "output_tokens": ("output_tokens", "output_len", "random_output_len"),
}
"""Our options, and what notes beside a file call them: as we do, or as the flags of the tool."""


def _noted(beside: Sidecars, *names: str) -> int | None:
    """A whole number of the notes, under one of several names."""
    for name in names:
        found = reading.positive_int(beside.notes.get(name))
        if found is not None:
            return found
    return None


def _declared(beside: Sidecars) -> dict[str, Any]:
    """The data that the client was told to send, and their lengths, where its options or the notes say them."""
    options = _options(beside)
    data = options.get("dataset_name")
    if data is None:
        noted = {
            name: _noted(beside, *_NOTED[name])
            for name in ("input_tokens", "output_tokens")
        }
        return {} if None in noted.values() else noted
    if data != "random":
        return {"dataset": data}
    span = reading.number(options.get("random_range_ratio"))
    found = {
        "input_tokens": reading.positive_int(options.get("random_input_len")),
        "output_tokens": reading.positive_int(options.get("random_output_len")),
    }
    if None in found.values():
        return {}
    # Lengths are spread evenly over this share of them, below and above.
    return positive(found | {"range_ratio": span or None})


def _options(beside: Sidecars) -> dict[str, str]:
    """The client's options: as it printed them, else as the command beside the report says."""
    for line in reading.lines(beside.log)[:20]:
        if "Namespace(" in line:
            return dict(_OPTION.findall(line))
    for text in (beside.told, beside.log):
        said = " ".join(reading.text(text).replace("\\\n", " ").split("\n"))
        _, found, command = said.partition(_COMMAND)
        if found:
            return dict(arguments(command.partition("```")[0].split()))
    return {}


_OPTION = re.compile(r"\b(\w+)='?([^',)]*)'?")
"""`random_input_len=4000` and `dataset_name='random'` of the options that the client prints."""
_COMMAND = "vllm bench serve "


TOOL = Tool("vllm-bench", _report)
