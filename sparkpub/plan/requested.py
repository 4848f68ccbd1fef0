"""What a run was asked for, read from its record.

A record keeps options as somebody wrote them. An import knows some options at most, and those of tools that a matrix
cannot name.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from sparkpub.plan.workloads import WORKLOADS
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
    """The options of a run's workload: amounts as numbers, however they were written, without those that are none."""
    found = dict(record.requested.workload)
    for name in AMOUNTS:
        if isinstance(found.get(name), str):
            found[name] = reading.positive_int(found[name])
        if not isinstance(found.get(name), int | float):
            found.pop(name, None)
    return found


def load_of(record: Record) -> Load:
    """The load of a run, as it was written into its record; of an older record what its workload's options declare,
    defaults included where they are known."""
    if record.requested.load is not None:
        return record.requested.load
    # An import knows some of the options at most, and none of what it does not say is a default.
    is_complete = record.plan.order != "as-published"
    load = _load(canonical_json(options_of(record)), is_complete)
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
