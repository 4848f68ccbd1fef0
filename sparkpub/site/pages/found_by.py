"""By which words the search finds a page: what its charts and tables say, which the search does not read, and words
that mean the same."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sparkpub.record.metrics import METRICS, slug
from sparkpub.review.dataset import CampaignData
from sparkpub.review.leaderboard import Board
from sparkpub.review.speeds import Speed
from sparkpub.site.content import SearchAnswer
from sparkpub.site.pages.answers import Card
from sparkpub.site.pages.leaderboard_page import board_anchor
from sparkpub.site.publication import Publication

ALIKE = (
    ("docker", "container", "overhead", "faster", "slower"),
    ("native", "host", "bare metal"),
    ("nvfp4", "mxfp4", "fp8", "int4", "quantisation", "quantization"),
    ("nvfp4", "mxfp4", "fp4", "4-bit"),
    ("users", "concurrency", "in flight", "batch"),
    ("dgx spark", "gb10"),
    ("ttft", "first token"),
    ("request latency", "end-to-end latency", "response time"),
    ("requests a second", "requests per second", "arrival rate"),
    ("throughput", "tok/s", "speed", "tokens per second"),
    ("energy", "power", "watt", "kwh", "electricity"),
    ("cost", "price", "electricity"),
    ("gpu temperature", "heat", "thermal", "cooling"),
    ("kv cache", "peak memory", "vram", "unified memory"),
    ("speculative decoding", "draft model", "mtp", "eagle"),
    ("long prompt", "prefill", "context"),
    ("version", "release", "upgrade"),
)
"""Words of which readers type one and pages say another."""
RANKS = "fastest best model, which model should I run, how many users, cost of a token"
BANDWIDTH = "memory bandwidth of one user, roofline, memory-bound"
COST = "What does a million tokens cost?"
MEASURE = (
    "measure benchmark test my own Spark or server: vLLM, llama-server, Ollama, SGLang, LM Studio; "
    "compare mine with the published results"
)
"""What readers type who look for a page, and what the page says in other words."""
MOST = 2000
"""Letters for a page: the search is loaded as a whole."""


def with_synonyms(*texts: str) -> str:
    """The texts, each once, and behind them all words that mean the same as one of theirs."""
    said = " ".join(dict.fromkeys(filter(None, texts)))[:MOST]
    lower = said.casefold()
    more = []
    for words in ALIKE:
        if any(word in lower for word in words):
            more += [word for word in words if word not in lower]
    return " ".join([said, *more])


def of_campaign(publication: Publication, campaign: CampaignData) -> str:
    """Words of a campaign: its key, its models, environments and engines."""
    names = publication.names.campaign(campaign.name)
    mine = [speed for speed in publication.speeds if speed.campaign == campaign.name]
    has_bandwidths = campaign.name in set(publication.results.bandwidths["campaign"])
    return with_synonyms(
        campaign.name,
        BANDWIDTH if has_bandwidths else "",
        *names.models.values(),
        *names.environments.values(),
        *_about(mine),
    )


def of_front(answers: Sequence[Card]) -> list[SearchAnswer]:
    """The questions of the first page, each with its answer."""
    return [
        SearchAnswer(card.anchor, card.question, card.plain, with_synonyms(card.words))
        for card in answers
    ]


def of_loads(boards: Sequence[Board]) -> list[SearchAnswer]:
    """The leaderboard's tables of the machine that comes first: what each ranks by."""
    titles = {
        board_anchor(board): f"{board.title}: {board.metric.label}"
        for board in boards
        if board.machine == boards[0].machine
    }
    if titles:
        titles["cost"] = COST
    return [
        SearchAnswer(place, title, "", with_synonyms(title))
        for place, title in titles.items()
    ]


def of_glossary() -> list[SearchAnswer]:
    """The metrics that lead campaigns, each with its definition."""
    return [
        SearchAnswer(
            slug(metric.name),
            metric.label,
            metric.definition,
            with_synonyms(metric.label),
        )
        for metric in METRICS.values()
        if metric.headline is not None
    ]


def of_board(boards: Sequence[Board]) -> str:
    """Words of the leaderboard: what it answers, the names of its models, and how they were measured."""
    speeds = [speed for board in boards for speed in board.speeds]
    titles = [board.title for board in boards]
    return with_synonyms(RANKS, *titles, *_about(speeds), "throughput")


def of_model(speeds: Sequence[Speed], page: Mapping[str, Any]) -> str:
    """Words of the page of a model: its names and ids, formats, engines and machines, and what else it answers."""
    cost = "energy and cost of a token" if page["costs"] else ""
    version = "a new version of the engine" if page["versions"] else ""
    return with_synonyms("throughput", cost, version, *_about(speeds))


def _about(speeds: Iterable[Speed]) -> Iterator[str]:
    for speed in speeds:
        yield from (speed.model.name, speed.setup.model_id, speed.weights)
        yield from (speed.engine, speed.machine)
