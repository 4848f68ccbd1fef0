"""What readers call what the data name by keys: models, environments and loads.

    names = Names(dataset)
    names.model("h200", "dense7b")           DeepSeek-R1-Distill-Qwen-7B
    names.short_model("h200", "dense7b")     7B
    names.environment("h200", "container")   Docker
    names.workload("h200-vllm", "serve-c8")  8 users, 512 in, 128 out

A key is short, and means something to whoever wrote the matrix. A name is made of what the records say; a `label:` in
the matrix goes before it. Within a campaign different keys have different names.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sparkpub.plan.requested import load_of
from sparkpub.record.load import Load
from sparkpub.record.record import Record
from sparkpub.record.text import counted
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.review.models import ModelName, model_name, named, short_name
from sparkpub.review.reviewed import Cell
from sparkpub.review.setup import setup_of

_PLACES = {
    "host": "native",
    "chroot": "native",
    "nspawn": "systemd-nspawn",
    "docker": "Docker",
}
"""Type of an environment to what readers call it."""
_PLAIN_KEYS = ("container", "docker", "native", "host", "chroot", "nspawn")
"""Keys of environments that say no more than the type."""
_AXES = ("model", "environment", "workload")
_WORD = re.compile(r"(?<![\w./-])[A-Za-z0-9][\w.+-]*(?:/[A-Za-z0-9][\w.+-]*)*")
"""What can be a key in a text, or the keys of a cell with strokes between them."""
_READINGS = (
    _AXES,
    ("model", "environment"),
    ("model", "workload"),
    ("environment", "workload"),
    ("model",),
    ("environment",),
    ("workload",),
)
"""The axes of which keys can stand together in a text."""


def environment_name(kind: str | None) -> str:
    """What readers call a type of environment."""
    return _PLACES.get(kind or "", kind or "environment not stated")


def load_name(load: Load) -> str:
    """`8 users, 512 in, 128 out`; empty where nothing is known of it."""
    return ", ".join(filter(None, [flow_name(load), lengths_name(load)]))


def flow_name(load: Load) -> str:
    """How many requests come, or how often: `one user`, `8 users`, `0.3 requests/s`; empty where nothing says it."""
    if load.request_rate is not None:
        noun = "request" if load.request_rate == 1 else "requests"
        words = f"{load.request_rate:g} {noun}/s"
        if load.in_flight is not None:
            words += f", {load.in_flight:,} at most"
        return words
    if load.at_once is None:
        return ""
    if load.at_once == 1:
        return "one user"
    return f"{load.at_once:,} users"


def lengths_name(load: Load) -> str:
    """`512 in, 128 out, 2,048 in context`; the data set where prompts are not made to a length."""
    parts = []
    if load.dataset is not None:
        parts.append(f"{load.dataset.rpartition('/')[2]} prompts")
    elif load.input_tokens:
        parts.append(f"{load.input_tokens:,} in")
    if load.output_tokens:
        parts.append(f"{load.output_tokens:,} out")
    if load.depth:
        parts.append(f"{load.depth:,} in context")
    return ", ".join(parts)


def parts_of(environment: str) -> list[str]:
    """The parts of the name of an environment: `Docker` and `bf16-spec` of `Docker (bf16-spec)`."""
    kind, _, rest = environment.partition(" (")
    if not rest:
        return [kind]
    return [kind, *rest.removesuffix(")").split(", ")]


WITH = ("with ", "without ")
"""How the name of an environment may begin that says what is special about it: `with CUDA graphs`."""
_BEFORE_WITH = re.compile(r"\b(?:of|in|for|at) (?=with(?:out)? )")
"""What the text of a check says before an environment, and a name that begins with a preposition does without."""


def in_environment(environment: str) -> str:
    """Where something was measured: `in Docker`, `natively`, `with CUDA graphs`."""
    if environment == "native":
        return "natively"
    if environment.startswith(WITH):
        return environment
    return f"in {environment}"


def runs_of(environment: str) -> str:
    """What is compared with an environment, for `against …`: `native`, `runs without CUDA graphs`."""
    if environment.startswith(WITH):
        return f"runs {environment}"
    return environment


class Names:
    """The names of everything in a dataset. Every method takes the campaign, since keys belong to one."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._campaigns: dict[str, CampaignNames] = {}

    @cached_property
    def models(self) -> Mapping[str, ModelName]:
        """Key of a model to its name, the most frequent of its spellings."""
        spellings: dict[str, Counter[str]] = {}
        for campaign in self._dataset.campaigns.values():
            for record in _one_of_each(campaign, "model").values():
                found = model_name(record)
                own = record.requested.model_id.rpartition("/")[2] == found.name
                # Its publisher's own spelling goes before that of other formats.
                spellings.setdefault(found.key, Counter())[found.name] += 1 + 100 * own
        return {
            key: ModelName(key, counts.most_common(1)[0][0])
            for key, counts in spellings.items()
        }

    def entity(self, record: Record) -> ModelName:
        """The model of a run as one of `models`."""
        return self.models[model_name(record).key]

    def campaign(self, name: str) -> "CampaignNames":
        """The names of a campaign."""
        if name not in self._campaigns:
            self._campaigns[name] = CampaignNames(self._dataset.campaign(name), self)
        return self._campaigns[name]

    def model(self, campaign: str, key: str) -> str:
        """`Qwen3.6-27B`; with the format of its weights where the campaign has several."""
        return self.campaign(campaign).models.get(key, key)

    def short_model(self, campaign: str, key: str) -> str:
        """`27B`, for legends; the whole name where two models of the campaign have one size."""
        return self.campaign(campaign).short_models.get(key, key)

    def environment(self, campaign: str, key: str) -> str:
        """`Docker`, `native`; with what is special about it where the campaign has several of a kind."""
        return self.campaign(campaign).environments.get(key, key)

    def build(self, campaign: str, model: str, environment: str) -> str:
        """A model as it was served: `gemma-4-26B-A4B-it BF16`, and `Muse-Glimmer-30B, Docker (bf16-spec)` where the
        campaign has it in several environments."""
        name = self.model(campaign, model)
        if len(self.campaign(campaign).environments_of[model]) < 2:
            return name
        return f"{name}, {self.environment(campaign, environment)}"

    def cell(self, campaign: str, cell: Cell) -> Cell:
        """A cell in words, as rows and legends name it: `7B`, `Docker`, `8 users, 512 in, 128 out`."""
        model, environment, workload = cell
        known = self.campaign(campaign)
        return (
            known.short_models.get(model, model),
            known.environments.get(environment, environment),
            known.workloads.get(workload, workload),
        )

    def workload(self, campaign: str, key: str) -> str:
        """`8 users, 512 in, 128 out`; with its key where the campaign has several of this load."""
        return self.campaign(campaign).workloads.get(key, key)

    def in_words(self, campaign: str, text: str) -> str:
        """A text about a campaign with names in place of the keys that it holds: `deepseek/native` reads
        `DeepSeek-R1-Distill-Qwen-7B · native`. A key that is a word of the language stays, since the text may mean the
        word."""
        if campaign not in self._dataset.campaigns:
            return text
        known = self.campaign(campaign)
        told = _WORD.sub(lambda found: known.told(found[0]), text)
        if any(name.startswith(WITH) for name in known.environments.values()):
            return _BEFORE_WITH.sub("", told)
        return told


@dataclass(frozen=True)
class CampaignNames:
    """The names of the keys of a campaign."""

    data: CampaignData
    of_all: Names

    @cached_property
    def models(self) -> Mapping[str, str]:
        """Key of a model to its name."""
        names, weights = {}, {}
        for key, record in _one_of_each(self.data, "model").items():
            names[key] = self.of_all.entity(record).name
            weights[key] = setup_of(record).quantization or key
        for key, model in _declared(self.data, "models").items():
            known = named(model.id)
            names.setdefault(key, key if known is None else known.name)
        told = _told_apart(names, lambda key: f"{names[key]} {weights.get(key, key)}")
        return told | self._labels("models")

    @cached_property
    def short_models(self) -> Mapping[str, str]:
        """Key of a model to its size."""
        sizes = {key: short_name(name) for key, name in self.models.items()}
        if len(set(sizes.values())) < len(sizes):
            return self.models
        return sizes

    @cached_property
    def environments(self) -> Mapping[str, str]:
        """Key of an environment to its name."""
        kinds = {}
        for key, record in _one_of_each(self.data, "environment").items():
            kinds[key] = record.requested.environment.get("type")
        for key, options in _declared(self.data, "environments").items():
            kinds[key] = options.type
        names = {
            key: environment_name(kind if isinstance(kind, str) else None)
            for key, kind in kinds.items()
        }
        told = _told_apart(names, lambda key: _with(names[key], key))
        return told | self._labels("environments")

    @cached_property
    def environments_of(self) -> Mapping[str, set[str]]:
        """Key of a model to those of the environments in which it ran."""
        found: dict[str, set[str]] = defaultdict(set)
        for record in self.data.records:
            found[record.model].add(record.environment)
        return found

    @cached_property
    def workloads(self) -> Mapping[str, str]:
        """Key of a workload to its load in words."""
        names, requests = {}, {}
        for key, record in _one_of_each(self.data, "workload").items():
            load = load_of(record)
            names[key] = load_name(load) or key
            if load.requests is not None:
                requests[key] = counted(load.requests, "request")
        for key in _declared(self.data, "workloads"):
            names.setdefault(key, key)
        told = _told_apart(
            names, lambda key: ", ".join(filter(None, [names[key], requests.get(key)]))
        )
        return told | self._labels("workloads")

    @cached_property
    def by_axis(self) -> Mapping[str, Mapping[str, str]]:
        """Axis to key to the name in rows and legends."""
        names = (self.short_models, self.environments, self.workloads)
        return dict(zip(_AXES, names, strict=True))

    def told(self, word: str) -> str:
        """A word of a text: the name where it is a key, or the names where it is several with strokes between them."""
        whole = word.rstrip(".")
        end = word[len(whole) :]
        several = [axis for axis in _AXES if len(self.by_axis[axis]) > 1] or ["model"]
        for axes in _READINGS:
            keys = self._split(whole, axes)
            if keys is not None:
                shown = [axis for axis in axes if axis in several] or axes
                names = [self.by_axis[axis][keys[axis]] for axis in shown]
                return " · ".join(names) + end
        return word

    def _split(self, word: str, axes: tuple[str, ...]) -> Mapping[str, str] | None:
        """The word read as one key of each axis; None where it is not."""
        parts = word.split("/")
        if len(parts) != len(axes):
            return None
        # `deepseek` is no word of the language where the model is called so.
        called = self.models.get(word, "").casefold()
        if len(parts) == 1 and word.isalpha() and word.casefold() not in called:
            return None
        keys = dict(zip(axes, parts, strict=True))
        if all(keys[axis] in self.by_axis[axis] for axis in axes):
            return keys
        return None

    def _labels(self, axis: str) -> dict[str, str]:
        """The names that the matrix gives itself."""
        declared = _declared(self.data, axis).items()
        return {key: item.label for key, item in declared if item.label is not None}


def _declared(campaign: CampaignData, axis: str) -> Mapping[str, Any]:
    """What the matrix declares on an axis, by key; nothing for an import without one."""
    if campaign.matrix is None:
        return {}
    found: Mapping[str, Any] = getattr(campaign.matrix, axis)
    return found


def _one_of_each(campaign: CampaignData, axis: str) -> dict[str, Record]:
    """Key to the first record that has it."""
    found: dict[str, Record] = {}
    for record in campaign.records:
        found.setdefault(getattr(record, axis), record)
    return found


def _with(name: str, key: str) -> str:
    """`Docker (bf16-spec)`, the name with the rest of the key; the name alone where the key says no more, and the key
    alone where it stands for options of one kind of environment (`graphs`)."""
    if key in _PLAIN_KEYS:
        return name
    rest = _rest_of_key(key)
    if not rest:
        return key
    return f"{name} ({rest})"


def _rest_of_key(key: str) -> str:
    """`bf16-v23` of `container-bf16-v23`; empty where a key does not begin with a kind of environment."""
    for plain in _PLAIN_KEYS:
        if key.startswith(f"{plain}-"):
            return key.removeprefix(f"{plain}-")
    return ""


def _told_apart(
    names: Mapping[str, str], *longer: Callable[[str], str]
) -> dict[str, str]:
    """Key to its name, or to a longer one where others have the same; its key where even those are the same."""

    def with_key(key: str) -> str:
        return f"{names[key]} ({key})"

    told = dict(names)
    for make in (*longer, with_key):
        counts = Counter(told.values())
        for key, name in list(told.items()):
            if counts[name] > 1:
                told[key] = make(key)
    return told
