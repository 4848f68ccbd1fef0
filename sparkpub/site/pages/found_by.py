"""By which words the search finds a page: what its charts and tables say, which the search does not read, and words
that mean the same."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.review.dataset import CampaignData
from sparkpub.review.leaderboard import Board
from sparkpub.review.speeds import Speed
from sparkpub.site.pages.campaign_kind import asked
from sparkpub.site.publication import Publication

ALIKE = (
    ("docker", "container", "overhead"),
    ("native", "host", "bare metal"),
    ("nvfp4", "mxfp4", "fp8", "int4", "awq", "gguf", "quantisation", "quantization"),
    ("users", "concurrency", "in flight", "batch"),
    ("dgx spark", "gb10"),
    ("ttft", "first token", "latency"),
    ("throughput", "tok/s", "speed", "tokens per second"),
    ("energy", "power", "watt", "kwh", "electricity", "price"),
    ("gpu temperature", "heat", "thermal", "cooling"),
    ("kv cache", "peak memory", "vram", "unified memory"),
    ("speculative decoding", "draft model", "mtp", "eagle"),
    ("long prompt", "prefill", "context"),
    ("version", "release", "upgrade"),
)
"""Words of which readers type one and pages say another."""
RANKS = "fastest best model, which model should I run, how many users, energy and cost of a token"
COMPARES = "faster or slower"
MEASURE = (
    "measure benchmark test my own Spark or server: vLLM, llama-server, Ollama, SGLang, LM Studio; "
    "compare mine with the published results"
)
"""What readers type who look for a page, and what the page says in other words."""
MOST = 2000
"""Letters for a page: the search is loaded as a whole."""


def with_synonyms(texts: Iterable[str]) -> str:
    """The texts, each once, and behind them all words that mean the same as one of theirs."""
    said = " ".join(dict.fromkeys(filter(None, texts)))[:MOST]
    lower = said.casefold()
    more = []
    for words in ALIKE:
        if any(word in lower for word in words):
            more += [word for word in words if word not in lower]
    return " ".join([said, *more])


def of_campaign(
    publication: Publication, campaign: CampaignData, sentences: Sequence[str]
) -> str:
    """Words of a campaign: its key, its answers, its models, environments and engines."""
    names = publication.names.campaign(campaign.name)
    mine = [speed for speed in publication.speeds if speed.campaign == campaign.name]
    return with_synonyms(
        [
            campaign.name,
            *sentences,
            *names.models.values(),
            *names.environments.values(),
            COMPARES if asked(publication, campaign).compares else "",
            *_about(mine),
        ]
    )


def of_front(texts: Sequence[str]) -> str:
    """Words of the first page: its questions and answers."""
    return with_synonyms([COMPARES, *texts])


def of_metric(metric: Metric) -> str:
    """Words of a metric that leads campaigns; nothing of one that a reader reaches from it."""
    if metric.headline is None:
        return ""
    # Said several times, the words of a short page go before those that a long one says by the way.
    return " ".join(3 * [with_synonyms([metric.label])])


def of_board(boards: Sequence[Board]) -> str:
    """Words of the leaderboard: what it answers, the names of its models, and how they were measured."""
    titles = [board.title for board in boards]
    speeds = [speed for board in boards for speed in board.speeds]
    names = [speed.model.name for speed in speeds]
    engines = [speed.engine for speed in speeds]
    return with_synonyms([RANKS, *titles, *names, *engines, "throughput"])


def of_model(speeds: Sequence[Speed], page: Mapping[str, Any]) -> str:
    """Words of the page of a model: its names and ids, formats, engines and machines, and what else it answers."""
    names = [speed.model.name for speed in speeds]
    more = ["throughput"]
    if page["costs"]:
        more.append("energy and cost of a token")
    if page["versions"]:
        more.append("a new version of the engine")
    return with_synonyms([*names, *_about(speeds), *more])


def _about(speeds: Sequence[Speed]) -> Iterable[str]:
    for speed in speeds:
        yield speed.setup.model_id
        yield from (speed.weights, speed.engine, speed.machine)
