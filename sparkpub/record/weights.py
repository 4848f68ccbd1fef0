"""Formats of weights: how people and tools spell them, what they are called here, and how wide they are."""

import re

_SPELLINGS = {
    "bfloat16": "BF16",
    "f16": "FP16",
    "float16": "FP16",
    "half": "FP16",
    "f32": "FP32",
    "float32": "FP32",
}
"""Other spellings of formats, in small letters."""
_FORMAT = (
    r"BFLOAT16|BF16|(?:FP|F|FLOAT)(?:16|32)|FP8(?:-dynamic|-block)?|NVFP4(?:A16)?|MXFP[48]|FP4|INT[48]"
    r"|W\d+A\d+|AWQ|GPTQ(?:-Int[48])?|I?Q\d\w*"
)
_ALONE = re.compile(_FORMAT, re.IGNORECASE)
_FIRST = re.compile(rf"(?:{_FORMAT})(?![a-z0-9])", re.IGNORECASE)
_LAST = re.compile(
    rf"[-_.:](?:(?P<format>{_FORMAT})|[48]-?bit|GGUF)(?:-\d{{5}}-of-\d{{5}})?$",
    re.IGNORECASE,
)
"""The end of the name of a model, or of a file of weights, which says which part of several files it is, too."""
_DIGITS = re.compile(r"\d+")
_FOUR_BITS = ("AWQ", "GPTQ")
"""Formats without a number, of four bits."""

_PLAIN = {
    "F32": "float32",
    "all F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
}
"""Formats of llama.cpp that are no quantisation, and their usual names."""


def facts(name: str) -> dict[str, str]:
    """A format as llama.cpp calls it, as type or as quantisation."""
    plain = _PLAIN.get(name)
    return {"quantization": name} if plain is None else {"dtype": plain}


def called(spelling: str) -> str:
    """`BF16` of `bfloat16`, `MXFP4` of `mxfp4`; a name with capitals of its own stays: `Q4_K - Medium`."""
    known = _SPELLINGS.get(spelling.lower())
    if known is not None:
        return known
    return spelling.upper() if spelling.islower() else spelling


def first_in(text: str) -> str | None:
    """The format that a text begins with, in small letters: `bf16` of `BF16-spec`."""
    return _small(_FIRST.match(text))


def only(word: str) -> str | None:
    """The format that a word is, in small letters; None for any other word."""
    return _small(_ALONE.fullmatch(word))


def _small(found: re.Match[str] | None) -> str | None:
    return None if found is None else called(found[0]).lower()


def last_in(name: str) -> str | None:
    """The format that ends the name of a model or of a file of weights; None where none does."""
    found = _LAST.search(name)
    if found is None or found["format"] is None:
        return None
    return called(found["format"])


def without(name: str) -> str:
    """A name without the formats that end it: `Qwen2.5-7B` of `Qwen2.5-7B-Q4_K_M-GGUF`."""
    while (shorter := _LAST.sub("", name)) != name and shorter:
        name = shorter
    return name


def bits(weights: str | None) -> int | None:
    """The width of a format in bits: 16 of `BF16`, 4 of `NVFP4` and `Q4_K - Medium`; None where it is not known."""
    if weights is None:
        return None
    number = _DIGITS.search(weights)
    if number is not None:
        return int(number[0])
    return 4 if weights.upper() in _FOUR_BITS else None
