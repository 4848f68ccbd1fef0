"""Which model a run shows, and whether it is the one asked for: what a run proves, never what it is called."""

import re
from collections.abc import Mapping
from typing import Any

from sparkpub.record import catalogue, weights
from sparkpub.record.metrics import GIB
from sparkpub.record.record import Architecture, MetricValue, Observed, Requested

TOLERANCE, WEIGHTS_TOLERANCE, WIDE_TOLERANCE = 0.02, 0.2, 0.03
_PROOFS = (
    "config_sha256",
    "kv_bytes_per_token",
    "weight_bytes",
    "parameters",
    "model_type",
    "layers",
)

_TWICE = 2
"""Times the bits of its name that a file of llama.cpp may take for a parameter: Q2_K takes 3.4, and small models more,
because their embeddings are wider than the rest."""
_EXACT = ("vLLM", "llama.cpp")
"""Engines whose logs say the bytes of the weights as they lie in their files."""
_SHAPE = ("layers", "hidden_size", "attention_heads", "kv_heads", "experts")


def expected(requested: Requested) -> Architecture | None:
    """What is known about the requested model: from the run's own folder or matrix, else the catalogue."""
    return requested.architecture or catalogue.models().get(requested.model_id)


def shown(observed: Observed, metrics: Mapping[str, MetricValue]) -> dict[str, Any]:
    """What the run itself showed of its model, by name of the fact."""
    facts = {name: getattr(observed, name) for name in _PROOFS}
    for fact, metric, scale in (
        ("kv_bytes_per_token", "kv_bytes_per_token", 1),
        ("weight_bytes", "weights_gib", GIB),
    ):
        measured = metrics.get(metric)
        if facts[fact] is None and measured is not None and measured.value:
            facts[fact] = measured.value * scale
    return {name: value for name, value in facts.items() if value is not None}


def contradictions(
    requested: Requested, observed: Observed, metrics: Mapping[str, MetricValue]
) -> list[str]:
    """Where a run shows another model than the one asked for, in words."""
    problems = []
    if observed.random_weights not in (None, requested.random_weights):
        words = {True: "random", False: "trained"}
        problems.append(
            f"weights are {words[not requested.random_weights]} instead of {words[requested.random_weights]}"
        )
    problems += _other_format(observed)
    problems += _other_weights(requested, observed)
    problems += _other_width(requested, observed)
    problems += _other_configuration(requested)
    known = expected(requested)
    if known is None:
        return problems
    for name, got in shown(observed, metrics).items():
        want = _in_format_of_run(name, known, observed)
        if want is not None and not _agrees(name, want, got, observed):
            problems.append(
                f"{name.replace('_', ' ')} is {_number(got)} and that model has {_number(want)}"
            )
    return problems


def _other_configuration(requested: Requested) -> list[str]:
    """Where the model's folder says another architecture than the catalogue has of that name: layers that were cut out,
    or another model's folder."""
    given = requested.architecture
    known = catalogue.models().get(requested.model_id)
    if given is None or known is None:
        return []
    return [
        f"its folder has {_number(getattr(given, name))} {name.replace('_', ' ')} and that model has "
        f"{_number(getattr(known, name))}"
        for name in _SHAPE
        if None not in (getattr(given, name), getattr(known, name))
        and getattr(given, name) != getattr(known, name)
    ]


def _other_format(seen: Observed) -> list[str]:
    """Weights that take less than their parameters do in the format that they are said to have. llama.cpp names the
    format of what is not quantised: the experts of gpt-oss stay MXFP4 in a file that it calls F16."""
    bits, parameters, taken = _bits(seen.dtype), seen.parameters, seen.weight_bytes
    is_named_whole = seen.quantization is None and seen.engine != "llama.cpp"
    if bits is None or parameters is None or taken is None or not is_named_whole:
        return []
    want = parameters * bits // 8
    if taken >= (1 - WEIGHTS_TOLERANCE) * want:
        return []
    return [
        f"{parameters:,} parameters in {seen.dtype} take {want:,} bytes, not {taken:,}"
    ]


def _other_weights(requested: Requested, seen: Observed) -> list[str]:
    """Where the engine names another format of weights than the file has by its name."""
    path = requested.model_path or ""
    if seen.quantization is None or not path.endswith(".gguf"):
        return []
    called = weights.last_in(path.removesuffix(".gguf"))
    widths = weights.bits(called), weights.bits(seen.quantization)
    if None in widths or widths[0] == widths[1]:
        return []
    return [f"its name says {called} and its weights are {seen.quantization}"]


def _other_width(requested: Requested, seen: Observed) -> list[str]:
    """Where the model's name ends with a format of other bits than its weights have: FP8 on loading under a 16-bit
    name, NVFP4 filed as FP8, or a file of llama.cpp that takes more than twice the bits that it is called by."""
    path = requested.model_path or ""
    called = weights.last_in(requested.model_id.removesuffix(".gguf"))
    wanted = weights.bits(called)
    if called is None or wanted is None:
        return []
    got = weights.bits(seen.quantization)
    if got is not None and got != wanted and not path.endswith(".gguf"):
        return [f"its name says {called} and its weights are {seen.quantization}"]
    if seen.weight_bytes is None or not seen.parameters or not path.endswith(".gguf"):
        return []
    taken = 8 * seen.weight_bytes / seen.parameters
    if taken <= _TWICE * wanted:
        return []
    return [f"its name says {called} and its file has {taken:.1f} bits a parameter"]


def _in_format_of_run(name: str, known: Architecture, seen: Observed) -> Any:
    """A fact of the architecture, a size in the number format that the run used. None where it decides nothing."""
    want = getattr(known, name)
    if want is None or name not in ("kv_bytes_per_token", "weight_bytes"):
        return want
    if name == "weight_bytes" and seen.quantization is not None:
        return None
    own = _bits(seen.kv_cache_dtype) if name == "kv_bytes_per_token" else None
    stated = _bits(known.dtype) or 16
    used = own or _bits(seen.dtype) or stated
    return want * used / stated


def _agrees(name: str, want: Any, got: Any, seen: Observed) -> bool:
    """Whether a fact observed is the one expected; counts of layers and words exactly, sizes roughly. Weights of 16
    bits are neither padded nor packed by vLLM and llama.cpp: of 14.99 GiB in a log none are of a model of 14.29."""
    if not isinstance(want, int | float) or name == "layers":
        return bool(want == got)
    slack = TOLERANCE
    if name == "weight_bytes":
        is_exact = seen.engine in _EXACT and _bits(seen.dtype) == 16
        slack = WIDE_TOLERANCE if is_exact else WEIGHTS_TOLERANCE
    return bool(abs(got - want) <= slack * want)


def _bits(dtype: str | None) -> int | None:
    """Bits of a number format by its name: 16 of bfloat16, 8 of fp8; None for `auto`."""
    found = re.search(r"\d+", dtype or "")
    return int(found[0]) if found else None


def _number(value: Any) -> str:
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)
