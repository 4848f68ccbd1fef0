"""Records of `generate`, which drove PyTorch and transformers batch after batch.

Tools of the field generate such loads, so that nothing runs it any more. What it measured is read as it always was.
"""

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from sparkpub.plan.workloads.base import Command, RunCase
from sparkpub.plan.workloads.batches import BatchOptions
from sparkpub.record.errors import WorkloadError


class GenerateOptions(BatchOptions):
    """No longer run; records of it stay readable. `batches` × `batch_size` requests after `warmup` batches that do not
    count, with PyTorch and transformers. Use `vllm-bench`, `llama-bench` or `llama-benchy` instead.
    """

    type: Literal["generate"] = "generate"
    batch_size: PositiveInt = 1
    """Requests computed together."""
    batches: PositiveInt = 20
    """Batches measured, one after the other."""
    warmup: Annotated[int, Field(ge=0)] = 2
    """Batches before the measured ones; they do not count."""
    input_tokens: PositiveInt = 512
    """Tokens of each prompt, drawn from the seed."""
    output_tokens: Annotated[int, Field(ge=2)] = 128
    """Tokens generated per request."""
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"
    """Type of weights and KV cache."""
    device: Literal["auto", "cuda", "cpu"] = "auto"
    """Where it runs; auto: on the GPU where there is one."""
    attention: Literal["sdpa", "eager"] = "sdpa"
    """Attention kernel: PyTorch's fused one (`sdpa`) or plain matrix products (`eager`)."""
    cuda_graph: bool = False
    """Decode by replaying a CUDA graph: the cost of launching kernels from Python disappears."""


def command(case: RunCase, options: GenerateOptions) -> Command:
    """There is none. Raises WorkloadError."""
    raise WorkloadError(
        f"{options.type} is no longer run; its records stay readable",
        where=f"workloads.{case.workload_key}",
        remedy="use vllm-bench, llama-bench or llama-benchy",
    )
