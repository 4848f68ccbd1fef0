"""Which model was asked for, and whether what ran contradicts it. A doubt is noted here; `checks` judges it."""

from contextlib import suppress
from pathlib import Path

from sparkpub.errors import SparkpubError
from sparkpub.matrix import Model
from sparkpub.record import Architecture, Observed, Requested
from sparkpub.workloads import architecture

_ROUNDED = 0.02
"""Some logs print the size of the cache in rounded GiB and its tokens, so bytes per token are good to a percent."""
_EXACT = ("config_sha256", "model_type", "layers", "kv_bytes_per_token", "parameters")


def declared_architecture(model: Model) -> Architecture | None:
    """Facts about the model asked for: from its folder or its configuration, else from the matrix."""
    found: Architecture | None = None
    with suppress(SparkpubError, OSError):
        if model.config is not None:
            found = architecture.from_config(model.config, "matrix")
        elif model.path is not None and (Path(model.path) / "config.json").is_file():
            found = architecture.read_model_folder(Path(model.path))
    return found or model.architecture


def contradictions(requested: Requested, observed: Observed) -> list[str]:
    """Where the run shows another model than the one asked for, in words."""
    asked = requested.architecture
    if asked is None:
        return []
    texts = []
    for name in _EXACT:
        wanted, seen = getattr(asked, name), getattr(observed, name)
        if name == "kv_bytes_per_token" and observed.kv_cache_dtype not in (None, "None", "auto", asked.dtype):
            continue  # a quantised cache holds fewer bytes of the same model
        if name == "kv_bytes_per_token" and wanted and seen and abs(wanted - seen) <= _ROUNDED * wanted:
            continue
        if wanted is not None and seen is not None and wanted != seen:
            texts.append(f"observed identity is not the requested one: {name} is {seen}, {wanted} was asked for")
    return texts
