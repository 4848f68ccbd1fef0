"""What tells builds of one model apart, in readers' words: the *variant*.

    {"engine": "vLLM", "weights": "NVFP4", "speculation": "MTP"}      vllm-nvfp4-mtp

It is made of what a tool says of itself, else of what people say beside its results.
"""

import re
from collections.abc import Mapping

from sparkpub.record import weights
from sparkpub.record.record import Observed, Record
from sparkpub.tools.asked import as_key

_NO = re.compile(
    r"(?:0|false|no|none|null|off|disabled|unset|n/?a)(?![\w.])", re.IGNORECASE
)
"""How words begin for an option that is not used: `NONE (llama.cpp)`."""
_METHOD = re.compile(r"['\"]?(?:method|algorithm)['\"]?\s*[:=]\s*['\"]?(\w+)")
_WORD = re.compile(r"[A-Za-z][\w-]*")


def is_used(said: str) -> bool:
    """Whether an option of these words is used."""
    said = said.strip()
    return bool(said) and _NO.match(said) is None


def speculation(settings: Mapping[str, str]) -> str | None:
    """How the server was told to decode speculatively: the method, or `speculative`; None where it was not."""
    said = {
        name: text
        for name, text in settings.items()
        if name.startswith(("speculative", "mtp")) and is_used(text)
    }
    for text in said.values():
        named = _METHOD.search(text)
        word = _WORD.match(text.strip("'\" "))
        if named is not None:
            return named[1].upper()
        if word is not None and word[0].lower() not in ("true", "on", "yes", "enabled"):
            return word[0]
    return "speculative" if said else None


def backend(settings: Mapping[str, str]) -> str | None:
    """What the engine computes with, where it says so: `Vulkan`, `ROCm RPC`."""
    said = settings.get("backends") or settings.get("backend")
    return " ".join(said.split(",")) if said and is_used(said) else None


def variant(seen: Observed, machines: int | None = None) -> dict[str, str]:
    """The variant of a run, by what each part says."""
    form = seen.quantization or seen.dtype
    parts = {
        "engine": seen.engine,
        "backend": backend(seen.settings),
        "weights": form and weights.called(form),
        "speculation": speculation(seen.settings),
        "machines": f"{machines} machines" if machines and machines > 1 else None,
    }
    if seen.speculative_decoding and parts["speculation"] is None:
        parts["speculation"] = "speculative"
    return {name: said for name, said in parts.items() if said}


def build_name(record: Record) -> str | None:
    """What readers call the environment of a run that is called as its variant: `vLLM NVFP4 MTP`; None for any
    other."""
    parts = variant(record.observed, record.machine.count)
    key = as_key("-".join(parts.values()))
    if not parts or not f"{record.environment}-".startswith(f"{key}-"):
        return None
    rest = record.environment.removeprefix(key).strip("-")
    return " ".join([*parts.values(), rest]).strip()
