"""What the pages of a running server say: which engine and model answered, and whether anybody else used it meanwhile.

The drivers ask for the pages (`payload/pages.py`); `server_pages.yaml` says which of them holds what.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sparkpub.plan.workloads.payload import pages
from sparkpub.record import documents
from sparkpub.record.record import Declared, MetricValue
from sparkpub.tools import reading
from sparkpub.tools.engine import with_weights
from sparkpub.tools.where import Where, at

PAYLOAD = "pages.py"
ANSWERED = "the model answered before the test: "
"""What a note begins with that keeps an answer of the model."""
LONGEST_ANSWER = 2000
"""Characters of it that are kept."""
TOKENS_TOLERANCE = 0.02
"""Share of its tokens by which a run may generate more than it asked for."""
_PREEMPTED, _ANSWERED = "vllm:num_preemptions_total", "vllm:request_success_total"
"""Counters of requests that were taken out of the batch, and of those that were answered."""
_CACHE = "vllm:cache_config_info"
"""A figure whose labels say how the cache is set."""
_SAMPLE = re.compile(
    r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)"
)
_LABEL = re.compile(r'(?<!\w)(\w++)="((?:[^"\\]++|\\.)*+)"')
"""A label begins where no other word does, so that a long word is not tried at each of its letters."""


class PagePlaces(Declared):
    """Where pages say what, by paths of one document of all pages."""

    signed: dict[str, str]
    shown: dict[str, Where]
    facts: dict[str, Where]
    settings: dict[str, Where]
    generated: tuple[str, ...]
    """Counters of generated tokens."""
    shares: tuple[tuple[str, str, str], ...]
    """Metrics in percent, with the counters of a whole and of the part that they are; the last pair that is there
    counts."""


@cache
def _pages() -> PagePlaces:
    (document,) = documents.shipped("plan/workloads", "server_pages.yaml")
    return PagePlaces.model_validate(document)


def identity(server: Mapping[str, Any]) -> dict[str, Any]:
    """What the pages say of engine and model, as fields of `Observed`; what none of them says is left out."""
    said, places = server.get("said"), _pages()
    samples = _samples(server.get("metrics_after"))
    document = {
        **server,
        **(said if isinstance(said, dict) else {}),
        "entry": _model_entry(said, server.get("model")),
        "cache": next((labels for labels, _ in samples.get(_CACHE, ())), None),
    }
    facts = {
        name: _fact(name, at(document, place)) for name, place in places.facts.items()
    }
    facts["model_path"] = facts["model_path"] or _word(server.get("model"))
    settings = {name: at(document, place) for name, place in places.settings.items()}
    facts["settings"] = {
        name: str(value)[: pages.LONGEST_NAME]
        for name, value in settings.items()
        if isinstance(value, str | int | float)
    }
    facts["engine"] = _engine(document, samples)
    return with_weights(facts)


def _fact(name: str, value: Any) -> Any:
    """A number, or what can be a name."""
    if name in ("parameters", "weight_bytes", "batch_size"):
        return reading.positive_int(value)
    return _word(value)


def _word(value: Any) -> str | None:
    found = reading.word(value)
    if found is None or len(found) > pages.LONGEST_NAME or not found.isprintable():
        return None
    return found


def _engine(document: Mapping[str, Any], samples: Mapping[str, Any]) -> str | None:
    """The engine by the prefix of its metrics, else by who owns the model, else by a page that no other one has."""
    places = _pages()
    prefixes = {name.partition(":")[0] for name in samples if ":" in name}
    signs = [sign for sign in places.signed if sign in prefixes]
    for sign in (*signs, str(at(document, "entry.owned_by"))):
        if sign in places.signed:
            return places.signed[sign]
    shown = places.shown.items()
    return next((name for name, place in shown if at(document, place)), None)


def _model_entry(said: Any, name: Any) -> dict[str, Any]:
    """What /v1/models says of the model measured; LM Studio says more on its own page, by the names of its loaded
    instances."""
    listed = []
    for model in reading.objects(at(said, "/api/v1/models.models")):
        for instance in reading.objects(model.get("loaded_instances")):
            known = {
                "quantization": at(model, "quantization.name"),
                "loaded_context_length": at(instance, "config.context_length"),
            }
            listed.append({"id": instance.get("id"), **known})
    listed += reading.objects(at(said, f"{pages.MODELS}.data"))
    found: dict[str, Any] = {}
    for entry in listed:
        if entry.get("id") == name:
            found |= entry
    return found


def counted(server: Mapping[str, Any]) -> dict[str, MetricValue]:
    """What vLLM counts: the capacity of its KV cache, which it gives as blocks, how much of the prompts was in it, how
    long requests waited for their turn, and how often they lost it."""
    found, grown = {}, _grown(server)
    for labels, _ in _samples(server.get("metrics_after")).get(_CACHE, ()):
        blocks, size = (
            reading.number(labels.get(name))
            for name in ("num_gpu_blocks", "block_size")
        )
        if blocks and size:
            found["kv_cache_tokens"] = blocks * size
    for name, whole, part in _pages().shares:
        if 0 <= grown.get(part, -1) <= grown.get(whole, 0) > 0:
            found[name] = 100 * grown[part] / grown[whole]
    if grown.get(_PREEMPTED, 0) > 0 < grown.get(_ANSWERED, 0):
        found["preemptions_per_request"] = grown[_PREEMPTED] / grown[_ANSWERED]
    return reading.metrics(found, "report")


def _grown(server: Mapping[str, Any]) -> dict[str, float]:
    """By how much each counter grew between the two readings of the server's metrics."""
    before, after = (
        _samples(server.get(page)) for page in ("metrics_before", "metrics_after")
    )
    return {
        name: _total(after[name]) - _total(before[name])
        for name in after
        if name in before
    }


def _total(samples: Sequence[tuple[Any, float]]) -> float:
    return sum(value for _, value in samples)


def answered(server: Mapping[str, Any]) -> tuple[str, ...]:
    """The model's answer before the test, as a note by which the review judges it."""
    text = reading.word(at(server, "answer.text"))
    if text is None:
        return ()
    return (f"{ANSWERED}{' '.join(text.split())[:LONGEST_ANSWER]}",)


def other_users(server: Mapping[str, Any], most: int) -> list[str]:
    """Whether the server generated more tokens than the `most` that a run asked for."""
    grown = sum(_grown(server).get(name, 0.0) for name in _pages().generated)
    if grown <= (1 + TOKENS_TOLERANCE) * most:
        return []
    return [
        f"the server generated {grown:g} tokens and this run {most} at most: others used it meanwhile"
    ]


def _samples(page: Any) -> dict[str, list[tuple[dict[str, str], float]]]:
    """A page in Prometheus' text format: name to the labels and value of each sample."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    if not isinstance(page, str):
        return found
    for line in page.splitlines():
        sample = _SAMPLE.match(line)
        if sample is None:
            continue
        value = reading.number(sample["value"])
        if value is not None:
            labels = dict(_LABEL.findall(sample["labels"] or ""))
            found.setdefault(sample["name"], []).append((labels, value))
    return found
