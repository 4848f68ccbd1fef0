"""What a run was made with: the same words for the results of every tool.

Records hold what was requested and what was observed, each in the vocabulary of its tool. Whoever puts runs of several
campaigns beside each other reads them here. What no run says stays None; nothing is guessed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sparkpub.plan.requested import options_of
from sparkpub.record import catalogue
from sparkpub.record.record import Record

_ENGINES = {
    "ctranslate2": "CTranslate2",
    "generate": "transformers",
    "llama-bench": "llama.cpp",
    "trtllm-bench": "TensorRT-LLM",
    "vllm-bench": "vLLM",
}
"""Tools that measure one engine, for runs in which nothing names it."""
_PACKAGES = {
    "CTranslate2": "ctranslate2",
    "SGLang": "sglang",
    "TensorRT-LLM": "tensorrt-llm",
    "transformers": "transformers",
    "vLLM": "vllm",
}
"""Engine to its package in `pip freeze`."""
_DATA_TYPES = {
    "bfloat16": "BF16",
    "float16": "FP16",
    "float32": "FP32",
    "half": "FP16",
}
_WEIGHTS_FILE = re.compile(
    r"[-_.](?P<format>I?Q\d\w*|MXFP4\w*|BF16|F16|F32)(-\d{5}-of-\d{5})?$", re.IGNORECASE
)
"""The end of the name of a GGUF file: the format of its weights, and which part of several files it is."""
_UNIX_SEPARATOR, _WINDOWS_SEPARATOR = "/", "\\"


@dataclass(frozen=True)
class Setup:
    """What was measured: model, format of the weights, engine, machine and environment, in words for a reader."""

    model: str
    """The model's own name, without its owner: `Qwen2.5-32B-Instruct`."""
    model_id: str
    parameters: int | None
    quantization: str | None
    """Format of the weights: `BF16`, `Q4_K - Medium`, `MXFP4`."""
    engine: str | None
    engine_version: str | None
    machine: str | None
    environment: str
    environment_type: str | None
    random_weights: bool


def setup_of(record: Record) -> Setup:
    """What a run was made with."""
    engine = record.observed.engine or _engine_of_tool(record)
    environment_type = record.requested.environment.get("type")
    return Setup(
        model=_model_name(record),
        model_id=record.requested.model_id,
        parameters=_parameters(record),
        quantization=_quantization(record),
        engine=engine,
        engine_version=_engine_version(record, engine),
        machine=_machine(record),
        environment=record.environment,
        environment_type=_known_word(environment_type),
        random_weights=_random_weights(record),
    )


# -- the parts of a set-up ---------------------------------------------------------------------------------


def _tool(record: Record) -> str:
    return str(options_of(record).get("type", "unknown"))


def _engine_of_tool(record: Record) -> str | None:
    """The engine that a tool always measures; a client, such as `vllm-bench serve`, measures any server."""
    if options_of(record).get("mode") == "serve":
        return None
    return _ENGINES.get(_tool(record))


def _model_name(record: Record) -> str:
    """The last part of the id; of a file of weights its name without the format."""
    path = record.requested.model_id.replace(_WINDOWS_SEPARATOR, _UNIX_SEPARATOR)
    name = path.rstrip(_UNIX_SEPARATOR).rpartition(_UNIX_SEPARATOR)[2]
    if name.lower().endswith(".gguf"):
        name = _WEIGHTS_FILE.sub("", name[: -len(".gguf")])
    return name or record.model


def _parameters(record: Record) -> int | None:
    if record.observed.parameters is not None:
        return record.observed.parameters
    architecture = record.requested.architecture
    if architecture is None:
        return None
    return architecture.parameters


def _quantization(record: Record) -> str | None:
    """What the run showed, else the end of the file's name, else what was requested."""
    seen = record.observed
    if seen.quantization is not None:
        return _format(seen.quantization)
    if seen.dtype is not None:
        return _format(seen.dtype)
    file = (record.requested.model_path or record.requested.model_id).lower()
    found = _WEIGHTS_FILE.search(file.removesuffix(".gguf"))
    if found and file.endswith(".gguf"):
        return _format(found["format"])
    architecture = record.requested.architecture
    if architecture is not None:
        declared = architecture.quantization or architecture.dtype
        if declared is not None:
            return _format(declared)
    return None


def _format(name: str) -> str:
    """`BF16` for `bfloat16`, `MXFP4` for `mxfp4`; a name with capitals of its own stays."""
    if name in _DATA_TYPES:
        return _DATA_TYPES[name]
    if name.islower():
        return name.upper()
    return name


def _engine_version(record: Record, engine: str | None) -> str | None:
    """What the run showed, else the engine's package, else the tag of the image that ran."""
    if record.observed.engine_version is not None:
        return record.observed.engine_version
    packages: Mapping[str, str] = {}
    if record.reproducibility is not None:
        packages = record.reproducibility.packages
    package = _PACKAGES.get(engine or "", "")
    for name, version in packages.items():
        if name.lower().replace("_", "-") == package:
            return version
    return _image_tag(record)


def _image_tag(record: Record) -> str | None:
    """`image spark-single-gpu-dev`; None for no image and for a tag that says nothing."""
    image = record.requested.environment.get("image")
    if not isinstance(image, str):
        return None
    name = image.rpartition("/")[2].partition("@")[0]
    tag = name.partition(":")[2]
    if tag in ("", "latest"):
        return None
    return f"image {tag}"


def _machine(record: Record) -> str | None:
    """The catalogue's name of the machine, and how many served the model together; else its GPUs or processor."""
    machine = record.machine
    known = catalogue.machines().get(machine.kind or "")
    if known is not None:
        several = machine.count is not None and machine.count > 1
        return f"{machine.count} × {known.name}" if several else known.name
    if machine.gpus:
        name = machine.gpus[0].name
        if len(machine.gpus) > 1:
            return f"{len(machine.gpus)} × {name}"
        return name
    return machine.cpu or _known_word(record.observed.device)


def _random_weights(record: Record) -> bool:
    if record.observed.random_weights is not None:
        return record.observed.random_weights
    return record.requested.random_weights


def _known_word(value: object) -> str | None:
    if isinstance(value, str) and value not in ("", "unknown"):
        return value
    return None
