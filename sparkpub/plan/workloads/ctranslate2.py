"""Text generation with CTranslate2 on the processor: a real engine that installs in seconds, for any small Llama.

Our own payload makes the model with random weights from the configuration in the matrix, and is the demo's engine.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from sparkpub.plan.workloads.architecture import config_bytes
from sparkpub.plan.workloads.base import (
    MEASURING,
    PYTHON,
    WORKDIR,
    Command,
    Options,
    RunCase,
    flags,
    timed_payload,
)
from sparkpub.record.errors import WorkloadError

_SCRIPT, _CONFIG = "ctranslate.py", "config.json"
_OUTPUTS = {"report": "report.json", "requests": "requests.json"}


class Ctranslate2Options(Options):
    """`batches` × `batch_size` requests of random tokens, after `warmup` batches that do not count, on the processor.

    The model is a `config` of type llama in the matrix. How many threads compute is the environment's:
    `OMP_NUM_THREADS` in its `env`.

    Example: {type: ctranslate2, batch_size: 1, batches: 8, input_tokens: 64, output_tokens: 32, compute_type: int8}
    """

    type: Literal["ctranslate2"] = "ctranslate2"
    batch_size: PositiveInt = 1
    """Requests computed together."""
    batches: PositiveInt = 8
    """Batches measured, one after the other."""
    warmup: Annotated[int, Field(ge=0)] = 1
    """Batches before the measured ones; they do not count."""
    input_tokens: PositiveInt = 64
    """Tokens of each prompt, drawn from the seed."""
    output_tokens: Annotated[int, Field(ge=2)] = 32
    """Tokens generated per request."""
    compute_type: Literal["float32", "int16", "int8"] = "float32"
    """Type that weights are stored and multiplied in."""

    @property
    def modules(self) -> Mapping[str, str]:
        """The engine."""
        return {"ctranslate2": "demo"}


def command(case: RunCase, options: Ctranslate2Options) -> Command:
    """The payload with its options as flags. Raises WorkloadError for a model that is no Llama in the matrix."""
    if case.model_config is None or case.model_config.get("model_type") != "llama":
        where = f"models.{case.model_key}"
        remedy = "add config: with model_type: llama"
        raise WorkloadError(
            "ctranslate2 needs the configuration of a Llama", where=where, remedy=remedy
        )
    config = config_bytes(case.model_config)
    written = {f"--{role}": f"{WORKDIR}/{name}" for role, name in _OUTPUTS.items()}
    argv = flags(
        {
            "--config": f"{WORKDIR}/{_CONFIG}",
            **options.flags(),
            "--seed": case.seed,
            **written,
        }
    )
    return Command(
        (PYTHON, f"{WORKDIR}/{_SCRIPT}", *argv),
        {},
        lambda: {**timed_payload(_SCRIPT), _CONFIG: config},
        _OUTPUTS,
        MEASURING,
    )
