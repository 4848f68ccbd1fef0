"""Types of workloads that are no longer run: what they measured is read as it always was."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ConfigDict

from sparkpub.plan.workloads import clients
from sparkpub.plan.workloads.base import Answer, Command, Options, RunCase

_INSTEAD = {
    "generate": "use vllm-bench, llama-bench or llama-benchy",
    "openai-endpoint": "use vllm-bench with mode: serve and url:, or command with reads: aiperf",
}
"""What to write in place of a type."""
CLIENTS = ("genai-perf", "aiperf", "sglang", "guidellm", "vllm-bench")
"""Tools whose reports runs of `openai-endpoint` have."""


class WithdrawnOptions(Options):
    """Options as somebody wrote them for a version that had the type, and what it took for those left out."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"deprecated": True})

    input_tokens: int | None = 512
    output_tokens: int = 128

    @property
    def measures_server(self) -> bool:
        """That it is no longer run is said first."""
        return True


class GenerateOptions(WithdrawnOptions):
    """PyTorch and transformers, batch after batch."""

    type: Literal["generate"] = "generate"
    batch_size: int = 1
    batches: int = 20


class OpenaiEndpointOptions(WithdrawnOptions):
    """vLLM's client or AIPerf on a server that runs already."""

    type: Literal["openai-endpoint"] = "openai-endpoint"
    requests: int = 100
    dataset: str | None = None

    def asked(self) -> dict[str, Any]:
        """With prompts of a file without the default length of random ones."""
        options = super().asked()
        if self.dataset is not None:
            options["input_tokens"] = None
        return options


def command(case: RunCase, options: GenerateOptions | OpenaiEndpointOptions) -> Command:
    """There is none. Raises WorkloadError with what to write instead."""
    what = f"{options.type} is no longer run; its records stay readable"
    raise case.refusal(what, _INSTEAD[options.type])


def parse_endpoint(
    log: bytes, files: Mapping[str, bytes], options: OpenaiEndpointOptions | None
) -> Answer:
    """Figures from the client's report; who answered from what the server said."""
    del options
    return clients.answer_of(CLIENTS, log, files)
