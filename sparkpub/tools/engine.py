"""What engines print of themselves, by `engines/*.yaml`: the name of a fact, and the line that says it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from sparkpub.record import documents, weights
from sparkpub.record.metrics import GIB
from sparkpub.record.record import Declared, MetricValue
from sparkpub.tools import reading

WEIGHTS = "weights"
"""The name of the fact that is a format of weights: a type of numbers, or a quantisation."""


class PrintedLine(Declared):
    """A line that says something; `{}` in it stands for the name of what it says."""

    line: str
    """Regular expression with one group; the last match counts."""
    says: str | bool | None = None
    """What it says, in place of the group."""
    written: str = "{}"
    """How the group is written."""
    scale: float | None = None
    """What a number is multiplied with; the product is a whole number."""

    def read(self, name: str, text: str) -> Any:
        """What a log says; None where it does not."""
        found = re.findall(self.line.replace("{}", name), text)
        if not found:
            return None
        if self.says is not None:
            return self.says
        number = reading.number(found[-1])
        if self.scale and number is not None:
            return round(self.scale * number)
        return self.written.replace("{}", found[-1].strip())


def _listed(said: Any) -> Any:
    """One line, or several of which the first that is there counts."""
    lines = said if isinstance(said, list) else [said]
    return tuple({"line": line} if isinstance(line, str) else line for line in lines)


PrintedLines = Annotated[tuple[PrintedLine, ...], BeforeValidator(_listed)]


class Engine(Declared):
    """What an engine prints."""

    engine: str
    sign: str
    """Regular expression of the line that only this engine has, with the path of the model."""
    facts: dict[str, PrintedLines]
    """Fields of `Observed`, and `weights`."""
    settings: dict[str, PrintedLines]
    metrics: dict[str, PrintedLines] = Field(default_factory=dict)


@dataclass(frozen=True)
class Printed:
    """What an engine printed: fields of `Observed`, and metrics; both empty where no engine did."""

    identity: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, MetricValue] = field(default_factory=dict)


def printed(log: Sequence[str]) -> Printed:
    """What the lines of a log say of the engine that printed them."""
    text = "\n".join(log)
    for engine in _engines():
        path = PrintedLine(line=engine.sign).read("", text)
        if path is not None:
            return _read(engine, path, text)
    return Printed()


def _read(engine: Engine, path: str, text: str) -> Printed:
    metrics = reading.metrics(_said(engine.metrics, text), "log")
    facts = {
        "engine": engine.engine,
        "model_path": path,
        **_bytes(metrics),
        **_said(engine.facts, text),
        "settings": _said(engine.settings, text),
    }
    return Printed(with_weights(facts), metrics)


def _said(places: Mapping[str, Sequence[PrintedLine]], text: str) -> dict[str, Any]:
    found = {}
    for name, lines in places.items():
        said = (line.read(name, text) for line in lines)
        value = next((value for value in said if value is not None), None)
        if value is not None:
            found[name] = value
    return found


def with_weights(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts with the format of the weights as type or as quantisation; what says nothing is left out."""
    found = {
        name: value for name, value in facts.items() if value not in (None, "None")
    }
    form = found.pop(WEIGHTS, None)
    return found if form is None else found | weights.facts(form)


def _bytes(metrics: Mapping[str, MetricValue]) -> dict[str, int]:
    """Bytes of the weights, and of a token in the KV cache."""
    size, cache, tokens = (
        metrics[name].value if name in metrics else None
        for name in ("weights_gib", "kv_cache_gib", "kv_cache_tokens")
    )
    found = {}
    if size:
        found["weight_bytes"] = round(size * GIB)
    if cache and tokens:
        found["kv_bytes_per_token"] = round(cache * GIB / tokens)
    return found


def merged(said: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `Observed` by a surer source, and by another where that says nothing."""
    settings = dict(more.get("settings", {})) | dict(said.get("settings", {}))
    return {**more, **said, "settings": settings}


@cache
def _engines() -> tuple[Engine, ...]:
    """Those that come with the package."""
    return tuple(map(Engine.model_validate, documents.shipped("tools/engines")))
