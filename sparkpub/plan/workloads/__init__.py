"""The benchmark tools sparkpub knows. Adding one = a module here, a line in each list below, a fixture in tests."""

from typing import Annotated, Any

from pydantic import Field

from sparkpub.plan.workloads import (
    batches,
    clients,
    command,
    ctranslate2,
    llama_bench,
    llama_benchy,
    matmul,
    trtllm_bench,
    vllm_bench,
    withdrawn,
)
from sparkpub.plan.workloads.base import Parse, Workload
from sparkpub.tools.language import TABLE, of_tools

WorkloadOptions = Annotated[
    command.CommandOptions
    | ctranslate2.Ctranslate2Options
    | llama_bench.LlamaBenchOptions
    | llama_benchy.LlamaBenchyOptions
    | matmul.MatmulOptions
    | trtllm_bench.TrtllmBenchOptions
    | vllm_bench.VllmBenchOptions
    | withdrawn.WithdrawnOptions,
    Field(discriminator="type"),
]
"""The options of any workload, told apart by `type`."""

WORKLOADS: dict[str, Workload[Any]] = {
    "matmul": Workload(
        matmul.MatmulOptions, matmul.command, matmul.parse, matmul.printed
    ),
    "generate": Workload(
        withdrawn.WithdrawnOptions, withdrawn.command, batches.parse, batches.printed
    ),
    "ctranslate2": Workload(
        ctranslate2.Ctranslate2Options,
        ctranslate2.command,
        batches.parse,
        batches.printed,
    ),
    "command": Workload(command.CommandOptions, command.command, command.parse),
    "trtllm-bench": Workload(
        trtllm_bench.TrtllmBenchOptions,
        trtllm_bench.command,
        trtllm_bench.parse,
        trtllm_bench.printed,
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
        withdrawn.WithdrawnOptions,
        withdrawn.command,
        withdrawn.parse_endpoint,
        vllm_bench.printed,
    ),
}


def parser_of(kind: str) -> Parse | None:
    """What reads the evidence of a workload, or of an import by the tool that made it; None for any other."""
    if kind in WORKLOADS:
        return WORKLOADS[kind].parse
    if kind in of_tools() and kind != TABLE:
        return lambda log, files, _: clients.answer_of((kind,), log, files)
    return None
