"""Facts about models and machines that sparkpub ships, each with its source: the last authority, after the run itself.

sources:  {key: {title: …, url: …}}
entries:  {name: {fact: {value: …, source: key, how: arithmetic for a derived fact}}}
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Literal, TypeVar

import yaml
from pydantic import PositiveFloat, PositiveInt

from sparkpub.record.documents import LOADER
from sparkpub.record.errors import CatalogueError
from sparkpub.record.record import Architecture, Strict

CatalogueFile = Literal["models", "machines", "builds"]
T = TypeVar("T", bound=Strict)
FactValue = int | float | str | bool | tuple[str, ...]


class CatalogueSource(Strict):
    """A public document that a fact was read in."""

    title: str
    url: str


class _SourcedValue(Strict):
    value: FactValue
    source: str
    how: str | None = None


class _File(Strict):
    sources: dict[str, CatalogueSource]
    entries: dict[str, dict[str, _SourcedValue]]


class MachineFacts(Strict):
    """A kind of machine as its maker describes it. What a run read on the machine itself goes before."""

    name: str
    gpu_names: tuple[str, ...]
    """The driver's names of the GPU."""
    called: tuple[str, ...] = ()
    """What people and makers call it besides."""
    architecture: str | None = None
    compute_capability: str | None = None
    memory: str | None = None
    memory_gb: PositiveFloat | None = None
    """Nominal, in 10**9 bytes."""
    memory_total_gib: PositiveFloat | None = None
    """The most that an operating system or driver has been seen to report, in 2**30 bytes."""
    bandwidth_bytes_s: PositiveInt
    """Nominal memory bandwidth in bytes per second."""
    memory_clock_mhz: PositiveFloat | None = None
    """As NVML reads it at that bandwidth; None where it reads none."""
    power_limit_watt: PositiveFloat | None = None
    """What the GPU's module draws at most by its specification."""
    slowdown_celsius: PositiveFloat | None = None
    """Temperature of the GPU from which its driver lowers the clock."""
    clock_max_sm_mhz: PositiveFloat | None = None
    peak_16_bit_flops: PositiveInt | None = None
    """Most operations per second on numbers of 16 bits, without sparsity."""
    peak_8_bit_flops: PositiveInt | None = None
    peak_4_bit_flops: PositiveInt | None = None
    """None where it computes with no format so narrow."""
    unified_memory: bool


class BuildFacts(Strict):
    """What the name of published weights does not say. What nobody says is None."""

    model: str | None = None
    """Hugging Face id of the model that they are, in another format."""
    weights: str | None = None
    """Format of most of the weights in the files: `fp8`."""
    active_parameters: PositiveInt | None = None
    """Parameters that take part in a token, where the model is a mixture of experts."""


@dataclass(frozen=True)
class SourcedFact:
    """One fact of the catalogue for a reader: `how` is the arithmetic where it was derived from other facts."""

    name: str
    value: FactValue
    source: CatalogueSource
    how: str | None


@functools.cache
def models() -> Mapping[str, Architecture]:
    """Hugging Face id to architecture, `source` being "catalogue"."""
    return _entries("models", Architecture, source="catalogue")


@functools.cache
def machines() -> Mapping[str, MachineFacts]:
    """Kind of machine (`dgx-spark`, `h200`) to its facts."""
    return _entries("machines", MachineFacts)


@functools.cache
def builds() -> Mapping[str, BuildFacts]:
    """Hugging Face id of weights to what their name does not say."""
    return _entries("builds", BuildFacts)


_MAKERS = re.compile("^(NVIDIA (GeForce )?|AMD )")
_OTHER_MODEL = r"(?![\s_-]?(?:ti|super|laptop|mobile|pro|max|ultra|max-q|mig)\b)"
"""A word behind a name that makes it one of another machine: `RTX 3090 Ti`, `Apple M4 Max`."""


@functools.cache
def _names() -> tuple[Mapping[str, str], re.Pattern[str]]:
    """Each name of a machine as small letters and digits, with the kind; and what finds any of them in a text."""
    kinds, patterns = {}, []
    for kind, known in machines().items():
        bare = (_MAKERS.sub("", name) for name in known.gpu_names)
        for name in (kind, *bare, *known.called):
            kinds[_letters(name)] = kind
            patterns.append(r"[\s_-]?".join(map(re.escape, re.split(r"[\s-]", name))))
    either = "|".join(sorted(patterns, key=len, reverse=True))
    return kinds, re.compile(
        rf"(?<![a-z0-9])(?:{either}){_OTHER_MODEL}(?=s?(?![a-z0-9+]))", re.IGNORECASE
    )


def _letters(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.lower())


def machine_of(text: str) -> str | None:
    """The kind of machine that a text names, by its key, its GPU or a maker's name: `NVIDIA GB10`, `Apple M4 Max`,
    `4 x RTX 3090`, `dgx_spark`. None where it names none of the catalogue, or several."""
    kinds, pattern = _names()
    found = {kinds[_letters(name)] for name in pattern.findall(text)}
    return found.pop() if len(found) == 1 else None


def facts(kind: CatalogueFile, name: str) -> tuple[SourcedFact, ...]:
    """Every fact of one entry with its source. Raises CatalogueError where there is no such entry."""
    file = _read(kind)
    if name not in file.entries:
        raise CatalogueError(
            f"no {name!r} in the catalogue of {kind}",
            remedy=f"there are: {', '.join(file.entries)}",
        )
    return tuple(
        SourcedFact(fact, entry.value, file.sources[entry.source], entry.how)
        for fact, entry in file.entries[name].items()
    )


def _entries(kind: CatalogueFile, model: type[T], **fixed: str) -> dict[str, T]:
    return {
        name: model.model_validate(
            fixed | {fact: entry.value for fact, entry in entries.items()}, strict=False
        )
        for name, entries in _read(kind).entries.items()
    }


@functools.cache
def _read(kind: CatalogueFile) -> _File:
    return parse(
        resources.files(__package__)
        .joinpath(f"{kind}.yaml")
        .read_text(encoding="utf-8")
    )


def parse(text: str) -> _File:
    """A catalogue file from YAML text. Raises pydantic's ValidationError: what is shipped is mended by whoever edits
    it, and a test reads it."""
    document = yaml.load(text, LOADER)  # noqa: S506 - a safe loader
    return _File.model_validate(document, strict=False)
