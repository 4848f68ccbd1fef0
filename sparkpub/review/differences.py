"""How two builds of one model differ: everything that their servers were told, and the difference in words.

told(record)                  {"weights": "FP8", "engine": "vLLM 0.26.0", "linear_backend": "marlin", ...}
difference(one, other)        "weights FP8 instead of BF16, linear backend marlin"
is_of_weights(one, other)     whether nothing but the weights and their kernels differs
differences(campaign, names)  a line for each build of a model that has several
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources

from sparkpub.record.record import Record
from sparkpub.record.weights import bits
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.names import Names
from sparkpub.review.setup import setup_of

Told = Mapping[str, str]
"""What to its value: weights, engine, image, number of machines, then options by the engine's names."""
_WORDS: Mapping[str, str] = tomllib.loads(
    resources.files(__package__).joinpath("differences.toml").read_text()
)
"""Option to what readers call it; any other is called by its name."""
_SWITCHES = {"true": "on", "false": "off"}
_OF_WEIGHTS = ("weights", "quantization", "linear_backend", "moe_backend")
_KERNELS = re.compile(r"^[A-Z0-9_]*(?:MARLIN|FP4|FP8)[A-Z0-9_]*$")
"""Variables that choose what computes in narrow weights."""
_NO_PART = ("enable_auto_tool_choice", "trust_remote_code", "server")
"""Options that change no speed, as those that end in a parser."""


@dataclass(frozen=True)
class Difference:
    """How a build differs from the first one of its model, in words. Both builds are named as readers call them."""

    build: str
    against: str
    text: str


def told(record: Record) -> Told:
    """Everything that is known of how a model was served."""
    setup, machines = setup_of(record), record.machine.count or 1
    parts = {
        "weights": setup.quantization,
        "engine": setup.engine and setup.engine_with_version,
        "image": record.requested.environment.get("image"),
        "machines": machines if machines > 1 else None,
    } | dict(record.observed.settings)
    return {
        name: str(value)
        for name, value in parts.items()
        if value and name not in _NO_PART and not name.endswith(("parser", "plugin"))
    }


def difference(one: Told, other: Told) -> str:
    """What the other was told differently, in words; empty where nothing is known to differ."""
    return ", ".join(_differing(one, other))


def _differing(one: Told, other: Told) -> Iterator[str]:
    for name in _names(one, other):
        before, after = one.get(name), other.get(name)
        words = _WORDS.get(name, name.replace("_", " "))
        if name.isupper():
            yield f"no {name}" if after is None else f"{name}={after}"
        elif after is None:
            yield f"no {words} {_value(str(before))}".strip()
        elif before is None or after in _SWITCHES:
            yield f"{words} {_value(after)}".strip()
        else:
            yield f"{words} {_value(after)} instead of {_value(before)}"


def _names(one: Told, other: Told) -> list[str]:
    """What was told differently, in the order met."""
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]


def _value(text: str) -> str:
    """A value for readers: `on`, `dflash, 15 tokens`, else as it is."""
    try:
        document = json.loads(text)
    except ValueError:
        return text
    if not isinstance(document, dict) or "method" not in document:
        return _SWITCHES.get(text, text)
    tokens = document.get("num_speculative_tokens")
    drafted = f", {tokens} tokens ahead" if isinstance(tokens, int) else ""
    return f"({document['method']}{drafted})"


def is_of_weights(one: Told, other: Told) -> bool:
    """Whether two builds differ in the format of their weights and what computes in it, and in nothing else known."""
    return all(
        name in _OF_WEIGHTS or _KERNELS.search(name) for name in _names(one, other)
    )


def differences(campaign: CampaignData, names: Names) -> list[Difference]:
    """Each build of a model that has several, against its first one: that with the widest weights."""
    found = []
    by_model = grouped(campaign.records, lambda record: names.entity(record).name)
    for _, records in sorted(by_model.items()):
        builds = {record.cell[:2]: record for record in reversed(records)}
        first, *others = sorted(builds.values(), key=_place)
        for other in others:
            build, against = (
                names.build(campaign.name, *one.cell[:2]) for one in (other, first)
            )
            text = difference(told(first), told(other))
            found.append(Difference(build, against, text))
    return found


def _place(record: Record) -> tuple[int, bool, str]:
    """Builds in the order of reading: wide weights before narrow ones, plain decoding before speculative."""
    width = bits(setup_of(record).quantization) or 0
    speculative = bool(record.observed.speculative_decoding)
    return -width, speculative, record.environment
