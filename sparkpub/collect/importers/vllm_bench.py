"""Results of `vllm bench serve`, `throughput` and `latency`, with the log beside them if there is one.

A log of `serve` begins with all options; without it the lengths asked for are not known, only their means. A file of
`latency` says neither batch nor lengths, so that its workload must be named.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparkpub.collect.importers.base import Draft, Given, Left, local_moment
from sparkpub.collect.importers.reports import (
    Report,
    Tool,
    key_of,
    positive,
    read_reports,
)
from sparkpub.plan.workloads import WORKLOADS, reading

_USUAL_BACKENDS = ("vllm", "openai")
"""Completions over HTTP; anything else is another load and part of the workload's key."""


def read(path: Path, given: Given) -> Iterator[Draft | Left]:
    """Runs of a file or folder. Raises UsageError without the environment."""
    return read_reports(Tool("vllm-bench", _report), path, given)


def _report(document: dict[str, Any], content: bytes, log: bytes) -> Report | None:
    if (
        "completed" in document
        and "total_output_tokens" in document
        and "backend" in document
    ):
        return _serve(document, content, log) if "num_prompts" in document else None
    if "elapsed_time" in document and "num_requests" in document:
        return _throughput(document, content, log)
    if "avg_latency" in document and "latencies" in document:
        answer = WORKLOADS["vllm-bench"].parse(log, {"report": content}, None)
        asked = {
            "type": "vllm-bench",
            "mode": "latency",
            "requests": len(document["latencies"]),
        }
        return Report(answer, reading.word(document.get("model_id")), None, asked, None)
    return None


def _serve(document: dict[str, Any], content: bytes, log: bytes) -> Report:
    answer = WORKLOADS["vllm-bench"].parse(log, {"report": content}, None)
    concurrency = reading.positive_int(document.get("max_concurrency"))
    rate = reading.number(document.get("request_rate"))
    burstiness = reading.number(document.get("burstiness"))
    requests = reading.positive_int(document.get("num_prompts"))
    backend = document.get("backend")
    completed = reading.number(document.get("completed"))
    lengths = {
        "in": _option(log, "random_input_len"),
        "out": _option(log, "random_output_len"),
    }
    if _word(log, "dataset_name") != "random" or None in lengths.values():
        lengths = {}
    ramp = None  # of the rate, which then has no one value
    if document.get("ramp_up_strategy"):
        ramp = f"{document['ramp_up_strategy']}-{document.get('ramp_up_start_rps')}-{document.get('ramp_up_end_rps')}"
    workload = key_of(
        {
            "serve": "",
            "": None if backend in _USUAL_BACKENDS else backend,
            **lengths,
            "c": concurrency,
            "rate": rate,
            "burst": None if burstiness == 1 else burstiness,
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
            "input_tokens": lengths.get("in"),
            "output_tokens": lengths.get("out"),
            "backend": None if backend in _USUAL_BACKENDS else backend,
            "burstiness": None if burstiness == 1 else burstiness,
            "ramp_up": ramp,
        }
    )
    sizes: tuple[float, ...] = ()
    if completed and not lengths:
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
        started=local_moment(document.get("date")),
        sizes=sizes,
        fits=_default_load(document),
        failure=None if completed else "no request succeeded",
    )


def _default_load(document: dict[str, Any]) -> dict[str, tuple[object, ...]]:
    """Limits that the client was told to do without: it says so, as null and as `inf`."""
    fits: dict[str, tuple[object, ...]] = {}
    if document.get("max_concurrency", 0) is None:
        fits["concurrency"] = (None,)
    if document.get("request_rate") == "inf":
        fits["request_rate"] = (None,)
    return fits


def _throughput(document: dict[str, Any], content: bytes, log: bytes) -> Report:
    answer = WORKLOADS["vllm-bench"].parse(log, {"report": content}, None)
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


def _option(log: bytes, name: str) -> int | None:
    """A number among the options that the client prints first."""
    return reading.positive_int(
        reading.search(
            reading.lines(log)[:20], rf"Namespace\(.*\b{name}=(\d+)[,)]", first=True
        )
    )


def _word(log: bytes, name: str) -> str | None:
    return reading.search(
        reading.lines(log)[:20],
        rf"Namespace\(.*\b{re.escape(name)}='([^']*)'",
        first=True,
    )
