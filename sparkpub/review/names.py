"""What readers call what the data name by keys: models, environments and loads.

    names = Names(dataset)
    names.campaign("h200").models["dense7b"]              DeepSeek-R1-Distill-Qwen-7B
    names.called("h200", "model", "dense7b")              7B
    names.called("h200", "environment", "container")      Docker
    names.called("h200-vllm", "workload", "serve-c8")     8 users, 512 in, 128 out

A key is short, and means something to whoever wrote the matrix. A name is made of what the records say; a `label:` in
the matrix goes before it. Within a campaign different keys have different names.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

from sparkpub.plan.requested import load_of
from sparkpub.record.load import Load
from sparkpub.record.record import Record
from sparkpub.record.text import counted
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.review.models import ModelName, model_name, named, short_name
from sparkpub.review.reviewed import Cell
from sparkpub.review.setup import setup_of
from sparkpub.tools.variant import build_name

_PLACES = {
    "host": "native",
    "chroot": "native",
    "nspawn": "systemd-nspawn",
    "docker": "Docker",
    "unknown": "",  # of imports that name no image: they are called by their keys
}
"""Type of an environment to what readers call it."""
_PLAIN_KEYS = {"native": "native", "container": "Docker"}
"""Keys of environments that say no more than the name of their type."""
_AXES = ("model", "environment", "workload")
_WORD = re.compile(r"(?<![\w./-])[A-Za-z0-9][\w.+-]*(?:/[A-Za-z0-9][\w.+-]*)*")
"""What can be a key in a text, or the keys of a cell with strokes between them."""


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


@dataclass(frozen=True, eq=False)
class Names:
    """The names of everything in a dataset. Every method takes the campaign, since keys belong to one."""

    dataset: Dataset
    known: Mapping[str, ModelName] = field(default_factory=dict)
    """`models`, where they are those of a larger dataset."""

    @cached_property
    def models(self) -> Mapping[str, ModelName]:
        """Key of a model to its name, the most frequent of its spellings."""
        if self.known:
            return self.known
        spellings: dict[str, Counter[str]] = {}
        for campaign in self.dataset.campaigns.values():
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

    @cached_property
    def _campaigns(self) -> Mapping[str, "CampaignNames"]:
        return {
            name: CampaignNames(data, self)
            for name, data in self.dataset.campaigns.items()
        }

    def campaign(self, name: str) -> "CampaignNames":
        """The names of a campaign."""
        return self._campaigns[name]

    def called(self, campaign: str, axis: str, key: str) -> str:
        """A model, environment or workload as rows and legends name it."""
        return self.campaign(campaign).by_axis[axis].get(key, key)

    def build(self, campaign: str, model: str, environment: str) -> str:
        """A model as it was served: `gemma-4-26B-A4B-it BF16`, and `Muse-Glimmer-30B, Docker (bf16-spec)` where the
        campaign has it in several environments."""
        known = self.campaign(campaign)
        records = known.data.records
        places = {record.environment for record in records if record.model == model}
        name = known.models.get(model, model)
        if len(places) < 2:
            return name
        return f"{name}, {known.environments.get(environment, environment)}"

    def cell(self, campaign: str, cell: Cell) -> Cell:
        """A cell in words, as rows and legends name it: `7B`, `Docker`, `8 users, 512 in, 128 out`."""
        model, environment, workload = map(self.called, [campaign] * 3, _AXES, cell)
        return model, environment, workload

    def in_words(self, campaign: str, text: str) -> str:
        """A text about a campaign with names in place of the keys that it holds: `deepseek/native` reads
        `DeepSeek-R1-Distill-Qwen-7B · native`. A key that is a word of the language stays, since the text may mean the
        word."""
        if campaign not in self._campaigns:
            return text
        known = self._campaigns[campaign]
        told = _WORD.sub(lambda found: known.told(found[0]), text)
        return _BEFORE_WITH.sub("", told)


@dataclass(frozen=True)
class CampaignNames:
    """The names of the keys of a campaign."""

    data: CampaignData
    of_all: Names

    @cached_property
    def models(self) -> Mapping[str, str]:
        """Key of a model to its name, with the format of its weights where others have the same name."""
        return self._told_apart(
            "model",
            lambda record: self.of_all.entity(record).name,
            lambda model: getattr(named(model.id), "name", None),
            lambda record: f" {setup_of(record).quantization or ''}".rstrip(),
        )

    @cached_property
    def short_models(self) -> Mapping[str, str]:
        """Key of a model to its size, `27B`; to its whole name where two models of the campaign have one size."""
        sizes = {key: short_name(name) for key, name in self.models.items()}
        return sizes if len(set(sizes.values())) == len(sizes) else self.models

    @cached_property
    def environments(self) -> Mapping[str, str]:
        """Key of an environment to its name, `Docker`, `native`; with what is special about it where the campaign has
        several of a kind."""
        return self._told_apart(
            "environment",
            lambda record: (
                build_name(record)
                or environment_name(record.requested.environment.get("type"))
            ),
            lambda options: environment_name(options.type),
        )

    @cached_property
    def workloads(self) -> Mapping[str, str]:
        """Key of a workload to its load in words, with the number of requests where others have the same."""
        return self._told_apart(
            "workload", lambda record: load_name(load_of(record)), more_of=_requests
        )

    @cached_property
    def by_axis(self) -> Mapping[str, Mapping[str, str]]:
        """Axis to key to the name in rows and legends."""
        names = (self.short_models, self.environments, self.workloads)
        return dict(zip(_AXES, names, strict=True))

    def told(self, word: str) -> str:
        """A word of a text: the name where it is a key, or the names where it is several with strokes between them."""
        whole = word.rstrip(".")
        keys = whole.split("/")
        # `deepseek` is no word of the language where the model is called so.
        called = self.models.get(whole, "").casefold()
        if whole.isalpha() and whole.casefold() not in called:
            return word
        for axes in combinations(_AXES, len(keys)):
            names = [self.by_axis[axis] for axis in axes]
            pairs = list(zip(keys, names, strict=True))
            if all(key in known for key, known in pairs):
                told = [known[key] for key, known in pairs]
                # What all cells have alike is not repeated.
                several = [known[key] for key, known in pairs if len(known) > 1]
                return " · ".join(several or told[:1]) + word[len(whole) :]
        return word

    def _told_apart(
        self,
        axis: str,
        name_of: Callable[[Record], str],
        declared_name: Callable[[Any], str | None] = lambda _: None,
        more_of: Callable[[Record], str] = lambda _: "",
    ) -> dict[str, str]:
        """Key to the label that the matrix gives it, else to its name: where others have the same with more of it, and
        with the key where that is the same, too."""
        records = _one_of_each(self.data, axis)
        declared = getattr(self.data.matrix, f"{axis}s", {})  # an import has no matrix
        plain = {key: name_of(record) or key for key, record in records.items()}
        for key, item in declared.items():
            plain.setdefault(key, declared_name(item) or key)
        more = {key: more_of(record) for key, record in records.items()}
        in_brackets = {
            key: f" ({_without_type(key)})"
            for key, name in plain.items()
            if _PLAIN_KEYS.get(key) != name
        }
        names = plain
        for added in (more, in_brackets):
            counts = Counter(names.values())
            names = {
                key: name if counts[name] == 1 else plain[key] + added.get(key, "")
                for key, name in names.items()
            }
        return names | {key: item.label for key, item in declared.items() if item.label}


def _requests(record: Record) -> str:
    """What tells a load from another of the same flow and lengths."""
    requests = load_of(record).requests
    return "" if requests is None else f", {counted(requests, 'request')}"


def _one_of_each(campaign: CampaignData, axis: str) -> dict[str, Record]:
    """Key to the first record that has it."""
    found: dict[str, Record] = {}
    for record in campaign.examples:
        found.setdefault(getattr(record, axis), record)
    return found


def _without_type(key: str) -> str:
    """`bf16-v23` of `container-bf16-v23`."""
    for plain in _PLAIN_KEYS:
        key = key.removeprefix(f"{plain}-")
    return key


def told_apart(names: Sequence[Sequence[str]]) -> list[str]:
    """What tells each name from the others, of names in parts of which the first is the model: that where there are
    several, and of the rest what others of the model have otherwise: `32B`, but `7B, 8 users` beside `7B, one user`."""
    shared: dict[str, set[str]] = {}
    for model, *rest in names:
        shared[model] = shared.get(model, set(rest)) & set(rest)
    found = []
    for model, *rest in names:
        own = [part for part in rest if part not in shared[model]]
        found.append(", ".join([model] * (len(shared) > 1) + own) or model)
    return found
