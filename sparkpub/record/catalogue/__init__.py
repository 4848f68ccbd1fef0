"""Facts about models and machines that sparkpub ships, each with its source: the last authority, after the run itself.

sources:  {key: {title: …, url: …}}
entries:  {name: {fact: {value: …, source: key, how: arithmetic for a derived fact}}}
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Literal, Self, TypeVar

import yaml
from pydantic import PositiveFloat, PositiveInt, model_validator

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

    @model_validator(mode="after")
    def _sourced(self) -> Self:
        for name, entries in self.entries.items():
            for fact, entry in entries.items():
                if entry.source not in self.sources:
                    raise ValueError(f"{name}.{fact}: unknown source {entry.source!r}")
        return self


class MachineFacts(Strict):
    """A kind of machine as its maker describes it. What a run read on the machine itself goes before."""

    name: str
    gpu_names: tuple[str, ...]
    """The driver's names of the GPU, without a leading "NVIDIA"."""
    architecture: str
    compute_capability: str
    memory: str
    memory_gb: PositiveFloat
    """Nominal, in 10**9 bytes."""
    memory_total_gib: PositiveFloat
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
    peak_16_bit_flops: PositiveInt
    """Most operations per second on numbers of 16 bits, without sparsity."""
    peak_8_bit_flops: PositiveInt
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


def machine_kind(gpu_name: str) -> str | None:
    """The kind of machine that has a GPU of the driver's name (`NVIDIA GB10`), None where the catalogue has none."""
    bare = gpu_name.removeprefix("NVIDIA ").strip()
    return next(
        (kind for kind, facts in machines().items() if bare in facts.gpu_names), None
    )


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
