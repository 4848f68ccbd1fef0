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


_TAKEN: Mapping[str, Mapping[str, int]] = {
    "generate": {"batch_size": 1, "batches": 20},
    "openai-endpoint": {"requests": 100},
}
"""What a type took for options that were left out, besides the lengths of prompts and answers."""


class WithdrawnOptions(Options):
    """Options as somebody wrote them for a version that had the type."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"deprecated": True})

    type: Literal["generate", "openai-endpoint"]

    @property
    def measures_server(self) -> bool:
        """That it is no longer run is said first."""
        return True

    def asked(self) -> dict[str, Any]:
        """With what the type took for options that were left out; prompts of a file have no length."""
        options: dict[str, Any] = {"input_tokens": 512, "output_tokens": 128}
        options |= {**_TAKEN[self.type], **dict(self)}
        if options.get("dataset") is not None:
            options["input_tokens"] = None
        return options


def command(case: RunCase, options: WithdrawnOptions) -> Command:
    """There is none. Raises WorkloadError with what to write instead."""
    what = f"{options.type} is no longer run; its records stay readable"
    raise case.refusal(what, _INSTEAD[options.type])


def parse_endpoint(
    log: bytes, files: Mapping[str, bytes], options: WithdrawnOptions | None
) -> Answer:
    """Figures from the client's report; who answered from what the server said."""
    del options
    return clients.answer_of(CLIENTS, log, files)
