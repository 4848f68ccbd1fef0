"""Facts about models and machines that sparkpub ships, each with its source: the last authority, after the run itself.

sources:  {key: {title: …, url: …}}
entries:  {name: {fact: {value: …, source: key, how: arithmetic for a derived fact}}}
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Literal, TypeVar

from pydantic import PositiveFloat, PositiveInt, ValidationError

from sparkpub import yaml_lines
from sparkpub.errors import CatalogueError, field_problems
from sparkpub.record import Architecture, Strict

Kind = Literal["models", "machines"]
T = TypeVar("T", bound=Strict)
Value = int | float | str | bool | tuple[str, ...]


class Source(Strict):
    """A public document that a fact was read in."""

    title: str
    url: str


class _Entry(Strict):
    value: Value
    source: str
    how: str | None = None


class _File(Strict):
    sources: dict[str, Source]
    entries: dict[str, dict[str, _Entry]]


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
    unified_memory: bool


@dataclass(frozen=True)
class SourcedFact:
    """One fact of the catalogue for a reader: `how` is the arithmetic where it was derived from other facts."""

    name: str
    value: Value
    source: Source
    how: str | None


@functools.cache
def models() -> Mapping[str, Architecture]:
    """Hugging Face id to architecture, `source` being "catalogue". Raises CatalogueError for a damaged file."""
    return _entries("models", Architecture, source="catalogue")


@functools.cache
def machines() -> Mapping[str, MachineFacts]:
    """Kind of machine (`dgx-spark`, `h200`) to its facts. Raises CatalogueError for a damaged file."""
    return _entries("machines", MachineFacts)


def machine_kind(gpu_name: str) -> str | None:
    """The kind of machine that has a GPU of the driver's name (`NVIDIA GB10`), None where the catalogue has none."""
    bare = gpu_name.removeprefix("NVIDIA ").strip()
    return next((kind for kind, facts in machines().items() if bare in facts.gpu_names), None)


def facts(kind: Kind, name: str) -> tuple[SourcedFact, ...]:
    """Every fact of one entry with its source. Raises CatalogueError where there is no such entry."""
    file = _read(kind)
    if name not in file.entries:
        raise CatalogueError(f"no {name!r} in the catalogue of {kind}", remedy=f"there are: {', '.join(file.entries)}")
    return tuple(
        SourcedFact(fact, entry.value, file.sources[entry.source], entry.how)
        for fact, entry in file.entries[name].items()
    )


def _entries(kind: Kind, model: type[T], **fixed: str) -> dict[str, T]:
    return {
        name: _validated(model, kind, fixed | {fact: entry.value for fact, entry in entries.items()}, f"{name}.")
        for name, entries in _read(kind).entries.items()
    }


@functools.cache
def _read(kind: Kind) -> _File:
    text = resources.files(__package__).joinpath(f"{kind}.yaml").read_text(encoding="utf-8")
    return parse(text, kind)


def parse(text: str, kind: str) -> _File:
    """A catalogue file from YAML text. Raises CatalogueError naming the entry and what is wrong with it."""
    document, _ = yaml_lines.parse(text, f"{kind}.yaml", CatalogueError)
    file = _validated(_File, kind, document)
    for name, entries in file.entries.items():
        for fact, entry in entries.items():
            if entry.source not in file.sources:
                what = f"{name}.{fact}: unknown source {entry.source!r}"
                raise CatalogueError(what, where=f"{kind}.yaml", remedy="list it in sources:")
    return file


def _validated(model: type[T], kind: str, document: object, entry: str = "") -> T:
    try:
        return model.model_validate(document, strict=False)
    except ValidationError as error:
        problem = entry + field_problems(error)[0]
        raise CatalogueError(problem, where=f"{kind}.yaml", remedy="correct the entry") from None
