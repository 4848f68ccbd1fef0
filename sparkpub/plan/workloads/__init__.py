"""The benchmark tools sparkpub knows. Adding one = a module here, a line in each list below, a fixture in tests."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any

from pydantic import Field, ValidationError

from sparkpub.plan.workloads import (
    command,
    ctranslate2,
    generate,
    llama_bench,
    llama_benchy,
    matmul,
    openai_endpoint,
    trtllm_answer,
    trtllm_bench,
    vllm_bench,
)
from sparkpub.plan.workloads.base import Workload
from sparkpub.plan.workloads.load import Load
from sparkpub.record.record import Record
from sparkpub.record.store import canonical_json

WorkloadOptions = Annotated[
    command.CommandOptions
    | ctranslate2.Ctranslate2Options
    | generate.GenerateOptions
    | llama_bench.LlamaBenchOptions
    | llama_benchy.LlamaBenchyOptions
    | matmul.MatmulOptions
    | openai_endpoint.OpenaiEndpointOptions
    | trtllm_bench.TrtllmBenchOptions
    | vllm_bench.VllmBenchOptions,
    Field(discriminator="type"),
]
"""The options of any workload, told apart by `type`."""

WORKLOADS: dict[str, Workload[Any]] = {
    "matmul": Workload(
        matmul.MatmulOptions, matmul.command, matmul.parse, matmul.printed
    ),
    "generate": Workload(
        generate.GenerateOptions, generate.command, generate.parse, generate.printed
    ),
    "ctranslate2": Workload(
        ctranslate2.Ctranslate2Options,
        ctranslate2.command,
        generate.parse,
        generate.printed,
    ),
    "command": Workload(command.CommandOptions, command.command, command.parse),
    "trtllm-bench": Workload(
        trtllm_bench.TrtllmBenchOptions,
        trtllm_bench.command,
        trtllm_bench.parse,
        trtllm_answer.printed,
    ),
    "vllm-bench": Workload(
        vllm_bench.VllmBenchOptions,
        vllm_bench.command,
        vllm_bench.parse,
        vllm_bench.printed,
    ),
    "llama-bench": Workload(
        llama_bench.LlamaBenchOptions, llama_bench.command, llama_bench.parse
    ),
    "llama-benchy": Workload(
        llama_benchy.LlamaBenchyOptions, llama_benchy.command, llama_benchy.parse
    ),
    "openai-endpoint": Workload(
        openai_endpoint.OpenaiEndpointOptions,
        openai_endpoint.command,
        openai_endpoint.parse,
        vllm_bench.printed,
    ),
}

_REQUEST_COUNT = re.compile(r"-n\d+$")


def load_of(record: Record) -> Load:
    """The load of a run: what its workload's options declare, defaults included where they are known."""
    # An import knows some of the options at most, and none of what it does not say is a default.
    is_complete = record.plan.order != "as-published"
    load = _load(canonical_json(record.requested.workload), is_complete)
    return replace(load, named=_telling_key(record))


@lru_cache
def _load(document: str, is_complete: bool) -> Load:
    """The load of a workload's options as JSON: a campaign has few of them and many runs."""
    asked: Mapping[str, Any] = json.loads(document)
    tool = str(asked.get("type"))
    if tool not in WORKLOADS:
        return Load.declared(asked)
    options = WORKLOADS[tool].options
    if is_complete:
        with suppress(ValidationError):
            asked = options.model_validate(asked).asked()
    found: Load = options.load(asked)
    return found


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
    return _REQUEST_COUNT.sub("", record.workload)
