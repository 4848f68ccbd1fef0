"""What a run was made with: the same words for the results of every tool.

Records hold what was requested and what was observed, each in the vocabulary of its tool. Whoever puts runs of several
campaigns beside each other reads them here. What no run says stays None; nothing is guessed.
"""

import hashlib
from dataclasses import dataclass, field

from sparkpub.plan.requested import options_of
from sparkpub.record import catalogue, weights
from sparkpub.record.record import Record
from sparkpub.record.store import canonical_json

_ENGINES = {
    "ctranslate2": "CTranslate2",
    "generate": "transformers",
    "llama-bench": "llama.cpp",
    "trtllm-bench": "TensorRT-LLM",
    "vllm-bench": "vLLM",
}
"""Tools that measure one engine, for runs in which nothing names it."""


@dataclass(frozen=True)
class Setup:
    """What was measured: weights, engine, machine and environment, in words for a reader. It is set up once, for every
    load and over all campaigns: two figures of one set-up differ in their loads and days alone."""

    model_id: str
    """Id of the weights."""
    quantization: str | None
    """Format of the weights: `BF16`, `Q4_K - Medium`, `MXFP4`."""
    engine: str | None
    engine_version: str | None
    machine: str | None
    environment: str
    """Key of the environment."""
    options: str
    """The environment's options as JSON."""
    environment_type: str | None
    parameters: int | None = field(compare=False)
    random_weights: bool = field(compare=False)

    @property
    def weights(self) -> str:
        """Format of the weights in words."""
        return self.quantization or "not stated"

    @property
    def engine_with_version(self) -> str:
        """Engine and version: `vLLM 0.26.0`."""
        parts = [self.engine or "engine not stated", self.engine_version]
        return " ".join(filter(None, parts))

    @property
    def machine_in_short(self) -> str:
        """The machine in short: `DGX Spark` of `NVIDIA DGX Spark (GB10)`."""
        if self.machine is None:
            return "machine not stated"
        return self.machine.replace("NVIDIA ", "").partition(" (")[0]

    @property
    def digest(self) -> str:
        """Six digits that part it from other set-ups of its model."""
        told = {
            "model": self.model_id,
            "weights": self.weights,
            "engine": self.engine_with_version,
            "environment": self.environment,
            "machine": self.machine_in_short,
            "options": self.options,
        }
        return hashlib.sha256(canonical_json(told).encode()).hexdigest()[:6]


def setup_of(record: Record) -> Setup:
    """What a run was made with."""
    asked, seen = record.requested, record.observed
    engine = seen.engine or _engine_of_tool(record)
    parameters, random = seen.parameters, seen.random_weights
    if parameters is None and asked.architecture is not None:
        parameters = asked.architecture.parameters
    return Setup(
        model_id=asked.model_id,
        quantization=_quantization(record),
        engine=engine,
        engine_version=_engine_version(record, engine),
        machine=_machine(record),
        environment=record.environment,
        options=canonical_json(asked.environment),
        environment_type=_known_word(asked.environment.get("type")),
        parameters=parameters,
        random_weights=asked.random_weights if random is None else random,
    )


# -- the parts of a set-up ---------------------------------------------------------------------------------


def _engine_of_tool(record: Record) -> str | None:
    """The engine that a tool always measures; a client, such as `vllm-bench serve`, measures any server."""
    options = options_of(record)
    if options.get("mode") == "serve":
        return None
    return _ENGINES.get(str(options.get("type")))


def _quantization(record: Record) -> str | None:
    """What the run showed, else the end of the file's name, else what was requested."""
    seen = record.observed
    said = seen.quantization or seen.dtype
    file = (record.requested.model_path or record.requested.model_id).lower()
    if said is None and file.endswith(".gguf"):
        said = weights.last_in(file.removesuffix(".gguf"))
    architecture = record.requested.architecture
    if said is None and architecture is not None:
        said = architecture.quantization or architecture.dtype
    return None if said is None else weights.called(said)


def _engine_version(record: Record, engine: str | None) -> str | None:
    """What the run showed, else the engine's package, which is called as the engine, else the tag of the image that
    ran, where it says something: `image spark-single-gpu-dev`."""
    known, image = record.reproducibility, record.requested.environment.get("image")
    if record.observed.engine_version is not None:
        return record.observed.engine_version
    for name, version in known.packages.items() if known else ():
        if name.lower().replace("_", "-") == (engine or "").lower():
            return version
    name = image.rpartition("/")[2].partition("@")[0] if isinstance(image, str) else ""
    tag = name.partition(":")[2]
    return None if tag in ("", "latest") else f"image {tag}"


def _machine(record: Record) -> str | None:
    """The catalogue's name of the machine, and how many served the model together; else its GPUs or processor."""
    machine = record.machine
    known = catalogue.machines().get(machine.kind or "")
    if known is not None:
        count, name = machine.count or len(machine.gpus), known.name
    elif machine.gpus:
        count, name = len(machine.gpus), machine.gpus[0].name
    else:
        return machine.kind or machine.cpu or _known_word(record.observed.device)
    return f"{count} × {name}" if count > 1 else name


def _known_word(value: object) -> str | None:
    if isinstance(value, str) and value not in ("", "unknown"):
        return value
    return None
