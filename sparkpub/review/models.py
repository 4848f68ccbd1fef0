"""What is one model over all campaigns, whatever engine, format of weights or spelling a result has.

    model_name(record)      ModelName(key="llama-3-1-8-b", name="Llama-3.1-8B-Instruct")

Engines and people write one model in many ways: `llama3.1:8b-instruct-q4_K_M`, `meta-llama/Llama-3.1-8B-Instruct` and
`Meta-Llama-3.1-8B-Instruct-FP8` have one key. A model that was tuned to follow instructions has the shape of the one it
was made of and runs as fast, so that the ending that says so parts no models.
"""

import re
from dataclasses import dataclass

from sparkpub.record import catalogue, weights
from sparkpub.record.record import Record

_SIZE = re.compile(
    r"(?<![A-Za-z0-9.])(?P<mark>[EA]?)(?P<number>\d+(\.\d+)?)(?P<unit>B|(?<=\d\d)M)(?![A-Za-z0-9])",
    re.IGNORECASE,
)
"""A number of parameters in a name: `35B`, `A3B` for those of a mixture that take part in a token, `E2B` for those that
a model with embeddings for each layer works with. `1M` is the length of a context."""
_SHORT = re.compile(
    rf"(?!A){_SIZE.pattern}(-A\d+(\.\d+)?B(?![A-Za-z0-9]))?", re.IGNORECASE
)
"""The whole size in a name: `7B`, `30B-A3B`."""
_UNITS = {"B": 1e9, "M": 1e6}
_TUNED = ("instruct", "chat", "it", "latest")
"""Last words of a name that make no other model of it. Ollama ends names without a tag in `latest`."""
_WORD = re.compile(r"[^\W\d_]+|\d+")


@dataclass(frozen=True)
class ModelName:
    """A model over all campaigns and formats of its weights."""

    key: str
    """The same for every spelling of the name."""
    name: str
    """Its name without owner and format: `Qwen3.6-35B-A3B`."""

    @property
    def slug(self) -> str:
        """What it is called in addresses."""
        return re.sub(r"[^a-z0-9.]+", "-", self.name.casefold()).strip("-.") or "model"

    @property
    def billions(self) -> float | None:
        """The parameters that its name states, in 10**9; None where it states none."""
        sizes = stated_sizes(self.name)
        size = sizes.get("") or sizes.get("E")
        return None if size is None else size / 1e9


def model_name(record: Record) -> ModelName:
    """The model of a run, whatever the format of its weights."""
    return named(record.requested.model_id) or ModelName(
        _key(record.model), record.model
    )


def named(model_id: str) -> ModelName | None:
    """The model of an id, a path or a file of weights; None where that says none."""
    path = _base(model_id)
    owner, _, last = path.rpartition("/")
    name = weights.without(last)
    rest = name[len(owner) + 1 :]
    # `nvidia/NVIDIA-Nemotron-...` names its owner twice; in `meta-llama/Meta-Llama-3-8B` it is a part of the name.
    if owner and name.lower().startswith(f"{owner.lower()}-") and rest[0].isalpha():
        name = rest
    return ModelName(_key(name), name) if name else None


def _key(name: str) -> str:
    """The words and numbers of a name: `llama-3-1-8-b`."""
    words = _WORD.findall(name.casefold())
    # Its publisher left the first word out from Llama 3.1 on, of the same models, too.
    if words[:2] == ["meta", "llama"]:
        words.pop(0)
    while len(words) > 1 and words[-1] in _TUNED:
        words.pop()
    return "-".join(words) or name.casefold()


def _base(model_id: str) -> str:
    """The id of the model that these weights are, where the catalogue knows that they have another name."""
    build = catalogue.builds().get(model_id)
    if build is None or build.model is None:
        return model_id.replace("\\", "/").rstrip("/")
    return build.model


def short_name(name: str) -> str:
    """The size in a model's name, in capitals: `7B`, `30B-A3B`; the whole name where it holds none."""
    found = _SHORT.search(name)
    return name if found is None else found[0].upper()


LARGE = 20
"""Parameters in 10**9 from which on a model leads: smaller ones are faster, and nobody buys the machine for them."""


def is_large(name: str) -> bool:
    """Whether a model's name states at least `LARGE`."""
    return stated_sizes(name).get("", 0) >= LARGE * 1e9


def stated_sizes(name: str) -> dict[str, float]:
    """The numbers of parameters in a name by their mark, `A`, `E` or none: the first of each."""
    return {
        found["mark"].upper(): float(found["number"]) * _UNITS[found["unit"].upper()]
        for found in reversed(list(_SIZE.finditer(name)))
    }
