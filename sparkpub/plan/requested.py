"""What a run was asked for, read from its record through the types that a matrix has for it.

A record keeps options as somebody wrote them, and anybody may have written the record. An import knows some options at
most, and those of tools that a matrix cannot name.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from pydantic import NonNegativeFloat, NonNegativeInt, TypeAdapter, ValidationError

from sparkpub.plan.environments import OPTIONS, DockerOptions
from sparkpub.plan.options import TypedOptions
from sparkpub.plan.workloads import WORKLOADS
from sparkpub.record.errors import worded
from sparkpub.record.load import Load
from sparkpub.record.record import Record
from sparkpub.record.store import canonical_json

Number = NonNegativeInt | NonNegativeFloat
Readers = Mapping[str, TypeAdapter[Any]]
"""Option to what reads it."""
_REQUEST_COUNT = re.compile(r"-n\d+$")
"""Ends the key of an imported workload."""
AMOUNTS = (
    *("requests", "repetitions", "batches", "batch_size", "max_batch_size"),
    *("max_num_seqs", "concurrency", "max_concurrency", "request_rate"),
    *("input_tokens", "output_tokens", "depth"),
)
"""Options that are numbers in every tool, whatever else its options are."""
_NUMBER = TypeAdapter[Any](Number | None)


def options_of(record: Record) -> Mapping[str, Any]:
    """The options of a run's workload: numbers as numbers, however they were written. Without those that should be
    numbers and are not, as an import may have them."""
    options = record.requested.workload
    found = dict(options)
    for name, reader in _of_workload(options.get("type")).items():
        if name not in options:
            continue
        try:
            value = reader.validate_python(options[name])
        except ValidationError:
            if name in AMOUNTS:
                del found[name]
            continue
        if isinstance(value, str | int | float):
            found[name] = value
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
    workload = _of_workload(requested.workload.get("type"))
    kind = requested.environment.get("type")
    options = OPTIONS.get(kind, DockerOptions) if isinstance(kind, str) else None
    environment = {} if options is None else _readers(options)
    return [
        *_problems("workload", requested.workload, workload, imported=imported),
        *_problems("environment", requested.environment, environment, imported=False),
    ]


def _problems(
    part: str, options: Mapping[str, Any], readers: Readers, *, imported: bool
) -> Iterator[str]:
    """A number or a word of an import may be another than a matrix could name; a list in its place is damage."""
    if not isinstance(options.get("type"), str):
        yield f"requested.{part}.type: not a word"
    for name, value in options.items():
        if name not in readers or (imported and not isinstance(value, list | dict)):
            continue
        try:
            readers[name].validate_python(value)
        except ValidationError as error:
            message = worded(error.errors()[0])
            yield f"requested.{part}.{name}: {message[:1].lower()}{message[1:]}"


def _of_workload(kind: object) -> Readers:
    """What reads the options of a type of workload, those that it does not have included."""
    readers: dict[str, TypeAdapter[Any]] = dict.fromkeys(AMOUNTS, _NUMBER)
    if isinstance(kind, str) and kind in WORKLOADS:
        options: type[TypedOptions] = WORKLOADS[kind].options
        readers |= _readers(options)
    return readers


@cache
def _readers(options: type[TypedOptions]) -> Readers:
    """An option's reader is that of its field; `type` chose the fields."""
    return {
        name: TypeAdapter(field.rebuild_annotation())
        for name, field in options.model_fields.items()
        if name != "type"
    }
