"""What a run was asked for, read from its record through the types that a matrix has for it.

A record keeps options as somebody wrote them, and anybody may have written the record. An import knows some options at
most, and those of tools that a matrix cannot name.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from sparkpub.plan.environments import OPTIONS, DockerOptions
from sparkpub.plan.options import TypedOptions
from sparkpub.plan.workloads import WORKLOADS
from sparkpub.record.errors import worded
from sparkpub.record.load import Load
from sparkpub.record.record import Record
from sparkpub.record.store import canonical_json
from sparkpub.tools import reading

_REQUEST_COUNT = re.compile(r"-n\d+$")
"""Ends the key of an imported workload."""
AMOUNTS = (
    *("requests", "repetitions", "batches", "batch_size", "max_batch_size"),
    *("max_num_seqs", "concurrency", "max_concurrency", "request_rate"),
    *("input_tokens", "output_tokens", "depth"),
)
"""Options that are numbers in every tool, whatever else its options are."""


def options_of(record: Record) -> Mapping[str, Any]:
    """The options of a run's workload: amounts as numbers, however they were written. Without those that should be
    numbers and are not, as an import may have them."""
    options = record.requested.workload
    found = dict(options)
    for name in AMOUNTS:
        if options.get(name) is None:
            continue
        number = reading.number(options[name])
        if number is None or number < 0:
            del found[name]
        else:
            found[name] = int(number) if number.is_integer() else number
    return found


def load_of(record: Record) -> Load:
    """The load of a run, as it was written into its record; of an older record what its workload's options declare,
    defaults included where they are known."""
    if record.requested.load is not None:
        return record.requested.load
    # An import knows some of the options at most, and none of what it does not say is a default.
    is_complete = record.plan.order != "as-published"
    # What of a complete run is no number must stay, or its default would stand in its place.
    asked = record.requested.workload if is_complete else options_of(record)
    load = _load(canonical_json(asked), is_complete)
    return replace(load, named=_telling_key(record))


@lru_cache
def _load(document: str, is_complete: bool) -> Load:
    """The load of a workload's options as JSON: a campaign has few of them and many runs."""
    asked: Mapping[str, Any] = json.loads(document)
    tool = str(asked.get("type"))
    if is_complete and tool in WORKLOADS:
        with suppress(ValidationError):
            asked = WORKLOADS[tool].options.model_validate(asked).asked()
    return Load.declared(asked)


def with_load(record: Record, said: Load | None = None) -> Record:
    """A record with its load: the one that the run's report said, else that of its options."""
    load = said or load_of(record)
    requested = record.requested.model_copy(update={"load": load})
    return record.model_copy(update={"requested": requested})


def is_of_running_server(record: Record) -> bool:
    """Whether a run measured a server that was there before it, at an address of its own."""
    return record.requested.workload.get("url") is not None


def _telling_key(record: Record) -> str:
    """The workload's key without the number of requests, for imports whose options say less than their key.

    The importers put all that a client was told into the key: prompts from a cache, answers in one piece, bursts. The
    key of a llama-bench test adds settings of the engine only, which are ranked against each other.
    """
    is_import = record.origin is not None or record.plan.order == "as-published"
    if not is_import or record.specification is not None:
        return ""
    if record.requested.workload.get("type") in ("llama-bench", "trtllm-bench"):
        return ""
    return without_requests(record.workload)


def without_requests(workload: str) -> str:
    """The key of an imported workload without the number of requests, which is no part of a load."""
    return _REQUEST_COUNT.sub("", workload)


def problems(record: Record) -> list[str]:
    """What no matrix can have asked for, as `field: what is wrong with it`."""
    requested = record.requested
    imported = record.plan.order == "as-published"
    kind, place = (
        part.get("type") for part in (requested.workload, requested.environment)
    )
    known = WORKLOADS.get(kind) if isinstance(kind, str) else None
    there = OPTIONS.get(place, DockerOptions) if isinstance(place, str) else None
    return [
        *_problems(
            "workload",
            requested.workload,
            None if known is None else known.options,
            imported,
        ),
        *_problems("environment", requested.environment, there, imported=False),
    ]


def _problems(
    part: str,
    asked: Mapping[str, Any],
    options: type[TypedOptions] | None,
    imported: bool,
) -> Iterator[str]:
    """A number or a word of an import may be another than a matrix could name; a list in its place is damage."""
    where = f"requested.{part}"
    if not isinstance(asked.get("type"), str):
        yield f"{where}.type: not a word"
    for name in AMOUNTS if part == "workload" else ():
        if isinstance(asked.get(name), list | dict):
            yield f"{where}.{name}: not a number"
    try:
        if options is not None:
            options.model_validate(asked)
    except ValidationError as error:
        for item in error.errors():
            is_kept = imported and not isinstance(item["input"], list | dict)
            if item["loc"] and item["type"] not in _OF_OTHERS and not is_kept:
                message = worded(item)
                said = f"{message[:1].lower()}{message[1:]}"
                yield f"{where}.{item['loc'][0]}: {said}"


_OF_OTHERS = ("missing", "extra_forbidden")
"""What another version may have asked for, and an import."""
