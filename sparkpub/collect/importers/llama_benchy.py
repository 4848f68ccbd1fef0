"""Results of llama-benchy in JSON, and of sparkrun, which keeps llama-benchy's: one file, a run for each load.

A load is a length of the prompt, of the answer and of the context before it, at one concurrency. Its figures are lists
of repetitions. A request that failed is missing from them, and nothing else in the file says so; where all failed they
are null. sparkrun keeps llama-benchy's files in its folder `runs`, which are read; what it makes of them
(`consolidated.json`, and the result that it exports) does not say whether prefixes were cached, and is not.

The tool's rate of the prompt counts the tokens of a prompt that it may have made shorter for the chat template
(version 0.4.0: 46 of 64), and its rate of the answer begins at the first token.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparkpub.collect.importers.base import Draft, Given, Left
from sparkpub.collect.importers.files import ResultFile
from sparkpub.collect.importers.reports import (
    Report,
    Tool,
    key_of,
    positive,
    read_reports,
)
from sparkpub.plan.workloads import reading
from sparkpub.plan.workloads.base import Answer
from sparkpub.record.record import MetricValue, Moment, Observed

_RATES = {
    "output_throughput_tok_s": "tg_throughput",
    "prompt_throughput_tok_s": "pp_throughput",
}


def read(path: Path, given: Given) -> Iterator[Draft | Left]:
    """Runs of a file or folder. Raises UsageError without the environment."""
    return read_reports(Tool("llama-benchy", _report, _is_result, _runs), path, given)


def _is_result(file: ResultFile) -> bool:
    return file.name != "consolidated.json"


def _runs(document: dict[str, Any]) -> list[dict[str, Any]]:
    """An object for each load, with what the file says of all."""
    loads = reading.objects(document.get("benchmarks"))
    if not all("tg_throughput" in load for load in loads):
        return []
    if "prefix_caching_enabled" not in document:
        return [document] if loads else []
    return [{**document, "benchmarks": [load]} for load in loads]


def _report(document: dict[str, Any], _content: bytes, _log: bytes) -> Report | None:
    load = document["benchmarks"][0]
    refusal = None
    if "prefix_caching_enabled" not in document:
        refusal = "it does not say whether prefixes were cached; import the folder `runs` that sparkrun keeps instead"
    answer = _answer(load)
    lengths = {
        "input_tokens": reading.positive_int(load.get("prompt_size")),
        "output_tokens": reading.positive_int(load.get("response_size")),
        "depth": reading.positive_int(load.get("context_size")),
        "concurrency": reading.positive_int(load.get("concurrency")),
    }
    workload = key_of(
        {
            "pp": lengths["input_tokens"],
            "tg": lengths["output_tokens"],
            "d": lengths["depth"],
            "c": lengths["concurrency"],
            "cached": "" if document.get("prefix_caching_enabled") is True else None,
            "prefill": "" if load.get("is_context_prefill_phase") is True else None,
        }
    )
    return Report(
        answer,
        model=reading.word(document.get("model")),
        workload=workload,
        asked={"type": "llama-benchy"} | positive(lengths),
        started=_moment(document.get("timestamp")),
        failure=None if answer.complete else "no request succeeded",
        refusal=refusal,
    )


def _answer(load: dict[str, Any]) -> Answer:
    metrics: dict[str, MetricValue] = {}
    samples: dict[str, tuple[float, ...]] = {}
    for name, theirs in _RATES.items():
        values = reading.numbers(reading.at(load, f"{theirs}.values"))
        if values:
            metrics[name] = reading.metric(
                name, reading.at(load, f"{theirs}.mean"), "report"
            )
        if len(values) > 1:
            samples[name] = tuple(values)
    metrics |= reading.distribution(
        "ttft", reading.numbers(reading.at(load, "e2e_ttft.values")), "report"
    )
    problems = []
    counts = {
        len(reading.numbers(reading.at(load, f"{theirs}.values")))
        for theirs in _RATES.values()
    }
    if len(counts) > 1:
        fewest, most = sorted(counts)
        problems.append(
            f"a rate has {fewest} repetitions and the other {most}: the tool leaves out what failed"
        )
    observed = Observed(
        input_tokens_mean=reading.number(load.get("prompt_size")),
        output_tokens_mean=reading.number(load.get("response_size")),
    )
    complete = reading.known(metrics, "output_throughput_tok_s")
    return Answer(
        metrics, observed, complete=complete, problems=tuple(problems), samples=samples
    )


def _moment(text: Any) -> Moment | None:
    """`2026-11-21 15:22:19Z`."""
    try:
        return Moment(value=str(text).replace(" ", "T"), zone="utc")
    except ValueError:
        return None
