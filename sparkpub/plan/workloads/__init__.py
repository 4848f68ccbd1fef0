"""The benchmark tools sparkpub knows. Adding one = a module here, a line in each list below, a fixture in tests."""

from typing import Annotated, Any

from pydantic import Field

from sparkpub.plan.workloads import (
    batches,
    command,
    ctranslate2,
    generate,
    llama_bench,
    llama_benchy,
    matmul,
    openai_endpoint,
    trtllm_bench,
    vllm_bench,
)
from sparkpub.plan.workloads.base import Workload

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
        generate.GenerateOptions, generate.command, batches.parse, batches.printed
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
        openai_endpoint.OpenaiEndpointOptions,
        openai_endpoint.command,
        openai_endpoint.parse,
        vllm_bench.printed,
    ),
}
