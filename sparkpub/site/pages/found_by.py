"""By which words the search finds a page: what its charts and tables say, which the search does not read, and words
that mean the same."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sparkpub.record.metrics import METRICS, slug
from sparkpub.review.dataset import CampaignData
from sparkpub.review.leaderboard import REQUESTS, Board
from sparkpub.review.speeds import Speed
from sparkpub.site.content import SearchAnswer
from sparkpub.site.pages.answers import FrontAnswer
from sparkpub.site.pages.campaign_page import asked
from sparkpub.site.pages.leaderboard_page import board_anchor, unit_name
from sparkpub.site.publication import Publication

ALIKE = (
    ("docker", "container", "overhead", "slower"),
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
RANKS = "fastest best model, which model should I run, how many users, energy and cost of a token"
COMPARES = "faster or slower"
BANDWIDTH = "memory bandwidth of one user, roofline, memory-bound"
COST = "What does a million tokens cost?"
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
    bandwidth = ""
    if _has_bandwidths(publication, campaign):
        bandwidth = _said_often(BANDWIDTH)
    return with_synonyms(
        [
            campaign.name,
            bandwidth,
            *sentences,
            *names.models.values(),
            *names.environments.values(),
            COMPARES if asked(publication, campaign).compares else "",
            *_about(mine),
        ]
    )


def _has_bandwidths(publication: Publication, campaign: CampaignData) -> bool:
    """Whether its page shows what share of the memory's bandwidth a user takes."""
    return campaign.name in set(publication.results.bandwidths["campaign"])


def of_front(answers: Sequence[FrontAnswer]) -> list[SearchAnswer]:
    """Words of the first page: its questions, each with its answer."""
    return [
        SearchAnswer(
            answer.anchor,
            f"{answer.question} ({answer.words})" if answer.words else answer.question,
            f"{answer.text} {_said_often(answer.words)}",
        )
        for answer in answers
    ]


def _said_often(words: str) -> str:
    """Said several times, the words of a short text go before those that a long one says by the way."""
    return " ".join(3 * [words])


def of_loads(publication: Publication) -> list[SearchAnswer]:
    """Words of the leaderboard's tables of the machine that comes first: what each ranks by."""
    boards = publication.boards
    if not boards:
        return []
    titles = {
        board_anchor(board): f"{board.title}: {_unit(board)}"
        for board in boards
        if board.machine == boards[0].machine
    }
    titles["cost"] = COST
    return [
        SearchAnswer(place, title, _said_often(with_synonyms([title])))
        for place, title in titles.items()
    ]


def _unit(board: Board) -> str:
    """What a board ranks by, in few words."""
    if board.metric == REQUESTS:
        return "requests per second"
    return unit_name(board.metric)


def of_glossary() -> list[SearchAnswer]:
    """Words of the page that defines metrics: each that leads campaigns, with its definition."""
    return [
        SearchAnswer(
            slug(metric.name),
            metric.label,
            f"{metric.definition} {_said_often(with_synonyms([metric.label]))}",
        )
        for metric in METRICS.values()
        if metric.headline is not None
    ]


def of_board(boards: Sequence[Board]) -> str:
    """Words of the leaderboard: what it answers, the names of its models, and how they were measured."""
    titles = [board.title for board in boards]
    speeds = [speed for board in boards for speed in board.speeds]
    names = [speed.model.name for speed in speeds]
    engines = [speed.engine for speed in speeds]
    rivals = sorted({speed.setup.engine for speed in speeds if speed.setup.engine})
    contest = " vs ".join(rivals) if len(rivals) > 1 else ""
    return with_synonyms([RANKS, contest, *titles, *names, *engines, "throughput"])


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
