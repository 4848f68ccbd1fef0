"""What served a model, and on what: as a result itself says it, and as notes beside it do, in the words of a mapping.

Layouts that are seen often come with the package (`layouts/*.yaml`); `about.yaml` describes any other.
"""

import functools
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import Field

from sparkpub.record import catalogue, documents, weights
from sparkpub.record.record import Declared, Observed
from sparkpub.tools import cells, reading
from sparkpub.tools.asked import as_key
from sparkpub.tools.forms import LONGEST_WORD, arguments, words
from sparkpub.tools.language import ResultMapping, SetupPlaces, ValuePlace
from sparkpub.tools.variant import speculation
from sparkpub.tools.where import Where, at

_ENGINES = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "llama": "llama.cpp",
    "trt": "TensorRT-LLM",
    "tensorrt": "TensorRT-LLM",
}
"""How the names begin that people and tools give to engines."""
_COUNTED = re.compile(
    r"\b(?:([2-9]|1\d)[ -]?[x×][ -]?|(two|dual|three|four|eight)[ -])(?:NVIDIA )?(?:DGX|GB10|Sparks?)\b"
    r"|\b(?:Sparks?|GB10)[ -]?[x×]([2-9])\b",
    re.IGNORECASE,
)
_NUMBERS = {"two": 2, "dual": 2, "three": 3, "four": 4, "eight": 8}
_PARALLEL = (
    ("tensor_parallel_size", "tp_size", "tensor_parallel", "tp"),
    ("pipeline_parallel_size", "pp_size", "pipeline_parallel"),
)
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_TENSOR_PARALLEL = re.compile(r"\bTP[ =]?(\d+)\b")
_OF_SETTINGS = ("options", "arguments", "variables")
_CLIENTS = "tokenizer"
"""The setting that is a client's: how it cut its prompts makes no other build."""
OF_ONE_GPU = ("dgx-spark",)
"""Machines of which each part of a model takes one."""


class TelemetryColumn(ValuePlace):
    """A column of a telemetry CSV."""

    unit: Literal["MiB", "MB", "mW", "GHz"] | None = None
    """Its unit, where it is another one than that of our column."""


class NotesLayout(Declared):
    """What lies beside results, and what is in it."""

    when: tuple[Where, ...] = ()
    """What the notes must have."""
    notes: tuple[Where, ...] = ()
    """Names of files of notes, besides `meta.json`, `metadata.yaml` and the like."""
    run: SetupPlaces = SetupPlaces()
    """Where the notes say what ran."""
    same: SetupPlaces = SetupPlaces()
    """What holds for all results of this layout."""
    telemetry: dict[str, TelemetryColumn] = Field(default_factory=dict)
    """Our column of telemetry to the column of the CSV beside the results."""
    answer: Where | None = None
    """Name of a text file beside the results with an answer of the model."""
    others: tuple[Where, ...] = ()
    """Names, with `*` for any letters, of files that lie beside the results and are none."""


@functools.cache
def known() -> tuple[NotesLayout, ...]:
    """The layouts that come with the package, the most particular first."""
    found = map(
        NotesLayout.model_validate, documents.shipped("collect/imports/layouts")
    )
    return tuple(sorted(found, key=lambda layout: -len(layout.when)))


@dataclass(frozen=True)
class Facts:
    """What is said of a run's server and machine. What nothing says is None."""

    model_id: str | None = None
    served_name: str | None = None
    variant: str | None = None
    """What people call this build: `bf16-spec`."""
    weights: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    image: str | None = None
    machine: str | None = None
    """A key of the catalogue, or what people call it."""
    nodes: int | None = None
    """How many such machines served the model together."""
    driver: str | None = None
    vbios: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    """Options of the server, in the engine's own words, and its environment variables."""
    answer: str | None = None
    """What the model answered before it was measured."""

    def weights_of_files(self, model_id: str | None) -> str | None:
        """The format of the weights as published, where the catalogue knows it and the server was told no other."""
        build = catalogue.builds().get(model_id or "")
        if build is None or "quantization" in self.settings:
            return None
        return build.weights

    def contradiction(self, model_id: str | None) -> str | None:
        """What is to be said of a label that the published files contradict."""
        known = self.weights_of_files(model_id)
        if known is None or self.weights in (None, known):
            return None
        return f"labelled {self.weights} beside the results; the publisher's files are {known}"

    def is_of(self, model: str | None) -> bool:
        """Whether the facts are about the model of a result, by either of its names."""
        names = {self.model_id, self.served_name} - {None}
        return model is None or not names or model in names


def of_the_server(settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The settings that make a build."""
    return tuple(sorted(item for item in settings.items() if item[0] != _CLIENTS))


def facts_in(
    document: Mapping[str, Any], places: SetupPlaces, same: SetupPlaces
) -> Facts:
    """The facts that notes hold, or a row of a table."""
    said: dict[str, Any] = {}
    for fact in SetupPlaces.model_fields:
        found = at(document, getattr(places, fact))
        said[fact] = getattr(same, fact) if found is None else found
    settings = dict(_settings(said))
    if said["backend"] is not None:
        settings["backend"] = str(said["backend"])
    others = (*_OF_SETTINGS, "backend")
    texts = {name: _text(said[name]) for name in said if name not in others}
    machine = texts["machine"] or ""
    read: dict[str, Any] = {
        "weights": _weights(texts["weights"], settings.get("quantization")),
        "engine": engine_named(texts["engine"]),
        "machine": machine_called(texts["machine"]),
        "nodes": reading.positive_int(said["nodes"]) or counted(machine),
    }
    return Facts(**{**texts, **read}, settings=settings)


def _text(value: Any) -> str | None:
    """Text, or a number as such, that says something."""
    said = None if isinstance(value, bool | list | dict) else cells.text(value)
    return said and said[:LONGEST_WORD]


def _settings(said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and value of each option, argument and variable of the server."""
    options, whole = said["options"], (said["arguments"], said["variables"])
    for name, value in options.items() if isinstance(options, Mapping) else ():
        if isinstance(value, bool | int | float):
            yield str(name), json.dumps(value)
        elif isinstance(value, str) and value and value not in whole:
            yield str(name), value[:LONGEST_WORD]
    yield from arguments(words(said["arguments"]))
    variables = said["variables"]
    if isinstance(variables, Mapping):
        variables = [f"{name}={value}" for name, value in variables.items()]
    for word in words(variables):
        name, equals, value = word.partition("=")
        if equals:
            yield name, value[:LONGEST_WORD]


@dataclass(frozen=True)
class SaidOfRun:
    """What a row of a table, or a report, itself says of its run, by the places of a mapping."""

    mapping: ResultMapping
    document: Mapping[str, Any]

    def text(self, name: str) -> str | None:
        """What is said of a name, else what holds for every run."""
        found = cells.text(at(self.document, getattr(self.mapping.run, name)))
        same: str | None = getattr(self.mapping.same, name, None)
        return same if found is None else found

    def number(self, name: str) -> float | None:
        """A number of a run that is not below zero."""
        found = reading.number(at(self.document, getattr(self.mapping.run, name)))
        return None if found is None or found < 0 else found

    def facts(self, beside: Facts) -> Facts:
        """What lies beside the results, and what is said here of machine and server."""
        told = facts_in(self.document, self.mapping.run, self.mapping.same)
        settings = {**beside.settings, **told.settings}
        for name, known in (("engine", engine_named), ("weights", weights_in)):
            text = self.text(name)
            if text is not None and text != known(text):
                settings[name] = text  # with more than the name
            parallel = _TENSOR_PARALLEL.search(text or "")
            if parallel is not None:
                settings["tensor_parallel_size"] = parallel[1]
        here = {
            name: value
            for name in ("variant", "machine", "nodes", "image", "driver", "vbios")
            if (value := getattr(told, name)) is not None
        }
        return replace(beside, settings=settings, **here)

    def observed(self, facts: Facts, model_id: str | None, seen: Observed) -> Observed:
        """What a run showed; else what is said here of what served the model, and what is known besides. A text such
        as `vLLM 0.25 (TP=2)` says the version, too."""
        engine, weights = self.text("engine"), self.text("weights")
        known = engine_named(engine)
        version = _VERSION.search(engine or "") if known != engine else None
        beside = {
            "engine": facts.engine,
            "engine_version": facts.engine_version,
            "quantization": facts.weights_of_files(model_id) or facts.weights,
            "kv_cache_dtype": facts.settings.get("kv_cache_dtype"),
            "speculative_decoding": True if speculation(facts.settings) else None,
        }
        here = {
            "engine": known,
            "engine_version": self.text("engine_version") or (version and version[0]),
            "quantization": weights_in(weights) or weights,
            "input_tokens_mean": self.number("input_tokens_mean"),
            "output_tokens_mean": self.number("output_tokens_mean"),
        }
        told = {
            name: value
            for part in (beside, here, seen.model_dump())
            for name, value in part.items()
            if value is not None
        }
        told["settings"] = {**facts.settings, **seen.settings}
        return Observed.model_validate(told)


def weights_in(text: str | None) -> str | None:
    """The first format of weights that a text speaks of, in small letters."""
    parts = re.split(r"[^A-Za-z0-9_]+", text or "")
    return next(filter(None, map(weights.only, parts)), None)


def _weights(said: str | None, asked: str | None) -> str | None:
    """The format of the weights; one that the server was asked for counts before that of the files."""
    name, online = weights.first_in(said or ""), weights.first_in(asked or "")
    if online is not None and name in (None, "bf16", "fp16", "fp32"):
        return online
    return name


def engine_named(said: str | None) -> str | None:
    """An engine by its own name; any other text as it is."""
    begins = (
        name
        for begin, name in _ENGINES.items()
        if (said or "").lower().startswith(begin)
    )
    return next(begins, said)


def machine_called(text: str | None) -> str | None:
    """The kind of machine that a text names: of the catalogue, else in the form of a key."""
    return text and (catalogue.machine_of(text) or as_key(text))


def counted(text: str) -> int | None:
    """How many machines a text speaks of: `4x NVIDIA GB10 DGX Spark`, `dual-spark`; None where it does not count."""
    found = _COUNTED.search(text.replace("_", " "))
    if found is None:
        return None
    said = next(filter(None, found.groups())).lower()
    return _NUMBERS.get(said) or int(said)


def leading_count(machine: str | None) -> int | None:
    """How many GPUs a machine has that is called so: 4 of `4x RTX 3090`."""
    found = re.match(r"(\d+) ?[x×]", machine or "")
    return found and int(found[1])


def parts(settings: Mapping[str, str]) -> int | None:
    """How many GPUs hold a part of the model each, as the server's options say."""
    found = (
        reading.positive_int(settings.get(name))
        for names in _PARALLEL
        for name in names
    )
    known = [number for number in found if number is not None]
    return math.prod(known) if known else None
