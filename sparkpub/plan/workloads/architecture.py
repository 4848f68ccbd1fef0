"""Facts about a model from its config.json and the headers of its weights: nothing is loaded.

Parameters are counted for the families whose layers are known here; for any other a field stays null rather than
guessed. Where a folder holds safetensors files, bytes come from their headers, quantised or not.
"""

import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from sparkpub.record import outside
from sparkpub.record.errors import WorkloadError
from sparkpub.record.record import Architecture

_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4, "float64": 8}
_LONGEST_HEADER = 100_000_000
"""Bytes; the limit of the safetensors format itself."""

_WRONG = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What reading a config ends with where a value is of another kind than the family has, or missing."""

_FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "qwen3_moe")


def config_bytes(config: Mapping[str, Any]) -> bytes:
    """The one spelling of a config, so that its hash is the same wherever it is written."""
    return json.dumps(dict(config), sort_keys=True, separators=(",", ":")).encode()


def from_config(
    config: Mapping[str, Any], source: Literal["config.json", "matrix"]
) -> Architecture:
    """What a transformers config says. Bytes assume the config's own dtype, bfloat16 where it names none, and
    stay null for a quantisation, whose layout no config describes completely.

    Raises WorkloadError for a config whose values no model has.
    """
    try:
        return _facts(config, source)
    except _WRONG as error:
        said = outside.plain(f"{type(error).__name__}: {error}".partition("\n")[0])
        raise WorkloadError(
            f"the model's config cannot be used: {said[:200]}",
            where=source,
            remedy="correct the config, or download the model again",
        ) from None


def _facts(
    config: Mapping[str, Any], source: Literal["config.json", "matrix"]
) -> Architecture:
    text: Mapping[str, Any] = config.get("text_config") or config
    dtypes = config.get("dtype"), config.get("torch_dtype"), text.get("dtype")
    dtype = str(next(filter(None, dtypes), "bfloat16"))
    quantization = (config.get("quantization_config") or {}).get("quant_method")
    size = _BYTES.get(dtype)
    experts = _experts(text)
    return Architecture(
        source=source,
        model_type=text.get("model_type") or config.get("model_type"),
        experts=experts,
        experts_per_token=text.get("num_experts_per_tok") if experts else None,
        kv_bytes_per_token=_kv_bytes(text, size),
        layers=text.get("num_hidden_layers"),
        hidden_size=text.get("hidden_size"),
        attention_heads=text.get("num_attention_heads"),
        kv_heads=_kv_heads(text),
        head_dim=_head_dim(text),
        dtype=dtype,
        quantization=quantization,
        config_sha256=hashlib.sha256(config_bytes(config)).hexdigest(),
        **_counted(text, None if quantization else size),
    )


def read_model_folder(path: Path) -> Architecture:
    """Facts of a model folder. Raises WorkloadError where it has no readable config.json."""
    try:
        content = outside.content(path / "config.json")
        config = json.loads(content)
        facts = from_config(config, "config.json")
    except (OSError, ValueError, RecursionError) as error:
        raise WorkloadError(
            f"no readable config.json: {type(error).__name__}",
            where=str(path),
            remedy="give the model's folder",
        ) from None
    changes: dict[str, Any] = {"config_sha256": hashlib.sha256(content).hexdigest()}
    if files := sorted(path.glob("*.safetensors")):
        changes |= _stored_bytes(files) | {
            "weights_sha256": _weights_sha256(path, files)
        }
    return Architecture.model_validate(facts.model_dump() | changes)


def _stored_bytes(files: list[Path]) -> dict[str, int]:
    """Bytes of weights by what a decode step reads of them, from the headers of safetensors files."""
    sizes = {name: size for file in files for name, size in _tensor_bytes(file).items()}
    inputs = ("embed_tokens.weight", "wte.weight")
    experts = sum(size for name, size in sizes.items() if ".experts." in name)
    embedding = sum(size for name, size in sizes.items() if name.endswith(inputs))
    tied = not any(name.startswith("lm_head.") for name in sizes)
    total = sum(sizes.values())
    return {
        "weight_bytes": total,
        "expert_bytes": experts,
        "dense_bytes_per_step": total - experts - (0 if tied else embedding),
    }


def _tensor_bytes(file: Path) -> dict[str, int]:
    """Tensor name to bytes. The header is JSON after its length as eight bytes, little endian."""
    try:
        with file.open("rb") as handle:
            (length,) = struct.unpack("<Q", handle.read(8))
            header = json.loads(handle.read(min(length, _LONGEST_HEADER)))
        spans = {
            name: item["data_offsets"]
            for name, item in header.items()
            if name != "__metadata__"
        }
        return {name: int(end) - int(start) for name, (start, end) in spans.items()}
    except (OSError, struct.error, RecursionError, *_WRONG):
        raise WorkloadError(
            "not a safetensors file", where=str(file), remedy="download the model again"
        ) from None


def _weights_sha256(path: Path, files: list[Path]) -> str:
    """Of the index, or of the list of files with their sizes where there is none."""
    index = path / "model.safetensors.index.json"
    listed = json.dumps([[file.name, file.stat().st_size] for file in files]).encode()
    return hashlib.sha256(index.read_bytes() if index.is_file() else listed).hexdigest()


def _experts(text: Mapping[str, Any]) -> int | None:
    found = (
        text.get("num_local_experts")
        or text.get("num_experts")
        or text.get("n_routed_experts")
    )
    return int(found) if found else None


def _head_dim(text: Mapping[str, Any]) -> int | None:
    hidden, heads = text.get("hidden_size"), text.get("num_attention_heads")
    whole = hidden // heads if hidden and heads else None
    return text.get("head_dim") or whole


def _kv_heads(text: Mapping[str, Any]) -> int | None:
    return text.get("num_key_value_heads") or text.get("num_attention_heads")


def _kv_bytes(text: Mapping[str, Any], size: int | None) -> int | None:
    """Keys and values of one token over all attention layers; a latent cache (MLA) holds one vector per layer."""
    layers = _attention_layers(text)
    if layers is None or size is None:
        return None
    if text.get("kv_lora_rank"):
        return int(
            layers * (text["kv_lora_rank"] + text.get("qk_rope_head_dim", 0)) * size
        )
    heads = _kv_heads(text)
    head = _head_dim(text)
    return 2 * layers * heads * head * size if heads and head else None


def _attention_layers(text: Mapping[str, Any]) -> int | None:
    """Layers with keys and values; linear attention keeps none."""
    kinds = [
        kind for kind in text.get("layer_types") or () if kind != "linear_attention"
    ]
    attending = sum(1 for kind in kinds if kind.endswith("_attention"))
    return attending or text.get("num_hidden_layers")


def _counted(text: Mapping[str, Any], size: int | None) -> dict[str, Any]:
    """Parameters, and bytes where each takes `size` of them; nothing for a family that is not known here, or where the
    config leaves out what is its family's default."""
    family = text.get("model_type")
    if family not in _FAMILIES:
        return {}
    try:
        hidden, layers = text["hidden_size"], text["num_hidden_layers"]
        heads, inner = text["num_attention_heads"], text["intermediate_size"]
        embedding = text["vocab_size"] * hidden
        sparse, width, chosen = 0, 0, 0
        if family == "qwen3_moe":
            sparse, width = _sparse_layers(text), text["moe_intermediate_size"]
            chosen = text["num_experts_per_tok"]
    except KeyError:
        return {}
    head = _head_dim(text) or 0
    queries, keys = heads * head, (_kv_heads(text) or 0) * head
    attention = 2 * hidden * (queries + keys) + 2 * hidden  # and two norms
    if text.get("attention_bias"):
        attention += queries + 2 * keys + hidden
    elif family == "qwen2":
        attention += queries + 2 * keys
    if family.startswith("qwen3"):
        attention += 2 * head  # norms of queries and keys
    plain = 3 * hidden * inner
    if text.get("mlp_bias"):
        plain += 2 * inner + hidden
    count = _experts(text) or 1
    experts = sparse * count * 3 * hidden * width
    tied = bool(text.get("tie_word_embeddings", False))
    dense = layers * attention + (layers - sparse) * plain + sparse * hidden * count
    read = dense + hidden + embedding  # the embedding as output projection
    total = read + experts + (0 if tied else embedding)
    found: dict[str, Any] = {"parameters": total}
    if experts:
        routed = experts * chosen / count
        found["active_parameters"] = read + round(routed)
    if size is not None:
        found["dense_bytes_per_step"] = read * size
        found["expert_bytes"] = experts * size
        found["weight_bytes"] = total * size
    return found


def _sparse_layers(text: Mapping[str, Any]) -> int:
    """How many layers of a mixture have experts."""
    step, plain = text.get("decoder_sparse_step", 1), text.get("mlp_only_layers") or ()
    numbers = range(text["num_hidden_layers"])
    return sum(1 for n in numbers if n not in plain and (n + 1) % step == 0)
