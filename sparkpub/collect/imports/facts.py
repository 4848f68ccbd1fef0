"""What served a model, and on what: as a result itself says it, and as notes beside it do, in the words of a mapping.

Layouts that are seen often come with the package (`layouts/*.yaml`); `about.yaml` describes any other.
"""

import functools
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import Field

from sparkpub.record import catalogue, documents, weights
from sparkpub.record.record import Declared, Gpu, Machine, Observed
from sparkpub.tools import cells, reading
from sparkpub.tools.asked import as_key
from sparkpub.tools.forms import LONGEST_WORD, arguments, words
from sparkpub.tools.language import SetupPlaces, ValuePlace
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
_TEXTS = (
    *("model_id", "served_name", "variant", "weights", "engine", "engine_version"),
    *("image", "machine", "driver", "vbios"),
)
"""Facts that are words."""
SaidByName = defaultdict[str, Any]
"""What is said by the name of each place, None where nothing is."""
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
    """What is said beside the results of their format."""
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

    def weights_of_files(self, model_id: str | None) -> str | None:
        """The format of the weights as published, where the catalogue knows it and the server was told no other."""
        build = catalogue.builds().get(model_id or "")
        is_told = "quantization" in self.settings
        return None if build is None or is_told else build.weights

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

    def with_own(self, said: SaidByName) -> "Facts":
        """What lies beside results, and what they say themselves of machine and server. A text with more than a name,
        such as `vLLM 0.25 (TP=2)`, is a setting, too."""
        own = facts_in(said)
        settings = {**self.settings, **own.settings}
        for name, known in (("engine", engine_named), ("weights", weights_in)):
            text = cells.text(said[name])
            if text is not None and text != known(text):
                settings[name] = text
            parallel = _TENSOR_PARALLEL.search(text or "")
            if parallel is not None:
                settings["tensor_parallel_size"] = parallel[1]
        here = reading.said({**vars(own), "weights": None})
        return replace(self, **{**here, "settings": settings})

    def observed(
        self, said: SaidByName, model_id: str | None, seen: Observed
    ) -> Observed:
        """What a run showed; else what its results say of what served the model, and what is known besides."""
        weights = cells.text(said["weights"])
        told = {
            "engine": self.engine,
            "engine_version": self.engine_version,
            "quantization": weights_in(weights)
            or weights
            or self.weights_of_files(model_id)
            or self.weights,
            "kv_cache_dtype": self.settings.get("kv_cache_dtype"),
            "speculative_decoding": True if speculation(self.settings) else None,
            "input_tokens_mean": amount(said["input_tokens_mean"]),
            "output_tokens_mean": amount(said["output_tokens_mean"]),
            **reading.said(seen.model_dump()),
            "settings": {**self.settings, **seen.settings},
        }
        return Observed.model_validate(told)

    def machine_of(
        self, described: Machine, named: str | None, device: str | None
    ) -> Machine:
        """The machine as people describe it, else as the command line, the results or their device name it."""
        called = described.kind or machine_called(named) or self.machine
        kind = called or catalogue.machine_of(device or "")
        known, is_of_one = catalogue.machines().get(kind or ""), kind in OF_ONE_GPU
        held = parts(self.settings)
        nodes = described.count or self.nodes
        told: dict[str, Any] = {
            "kind": kind,
            "count": held if nodes is None and is_of_one else nodes,
            "driver": described.driver or self.driver,
        }
        if known is not None and not described.gpus:
            cards = 1 if is_of_one else held or leading_count(named) or 1
            gpu = Gpu(name=known.gpu_names[0], vbios=self.vbios)
            told["gpus"] = (gpu,) * cards
        if known is not None and described.unified_memory is None:
            told["unified_memory"] = known.unified_memory
        return described.model_copy(update=told)


def of_the_server(settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The settings that make a build."""
    return tuple(sorted(item for item in settings.items() if item[0] != _CLIENTS))


def said_in(document: Any, places: SetupPlaces, same: SetupPlaces) -> SaidByName:
    """What a document says by the name of each place, else what holds for every run; None for any other name."""
    said: SaidByName = defaultdict(lambda: None, same)
    for name, place in places:
        found = at(document, place)
        if cells.text(found) is not None:
            said[name] = found
    return said


def facts_in(said: SaidByName) -> Facts:
    """The facts among what notes, a row of a table or a report say."""
    settings = dict(_settings(said))
    texts = {name: _text(said[name]) for name in _TEXTS}
    engine, machine = texts["engine"], texts["machine"]
    version = _VERSION.search(engine or "")
    known: dict[str, Any] = {
        "weights": _weights(texts["weights"], settings.get("quantization")),
        "engine": engine_named(engine),
        "engine_version": texts["engine_version"] or (version and version[0]),
        "machine": machine_called(machine),
        "nodes": reading.positive_int(said["nodes"]) or counted(machine or ""),
    }
    return Facts(**{**texts, **known}, settings=settings)


def _text(value: Any) -> str | None:
    """Text, or a number as such, that says something."""
    said = None if isinstance(value, bool | list | dict) else cells.text(value)
    return said and said[:LONGEST_WORD]


def amount(value: Any) -> float | None:
    """A number that is not below zero."""
    found = reading.number(value)
    return None if found is None or found < 0 else found


def _settings(said: SaidByName) -> Iterator[tuple[str, str]]:
    """Name and value of each option, argument and variable of the server, and what it computes with."""
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
    if said["backend"] is not None:
        yield "backend", str(said["backend"])


def weights_in(text: str | None) -> str | None:
    """The first format of weights that a text speaks of, in small letters."""
    parts = re.split(r"[^A-Za-z0-9_]+", text or "")
    return next(filter(None, map(weights.first_in, parts)), None)


def _weights(said: str | None, asked: str | None) -> str | None:
    """The format of the weights; one that the server was asked for counts before that of the files."""
    name, online = weights_in(said), weights_in(asked)
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
