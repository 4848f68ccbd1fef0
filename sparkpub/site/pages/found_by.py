"""By which words the search finds a page: what its charts and tables say, which the search does not read, and words
that mean the same."""

from collections.abc import Iterable, Sequence

from sparkpub.review.dataset import CampaignData
from sparkpub.review.speeds import Speed
from sparkpub.site.publication import Publication

ALIKE = (
    ("docker", "container"),
    ("native", "host", "bare metal"),
    ("nvfp4", "mxfp4", "fp8", "int4", "awq", "gguf", "quantisation", "quantization"),
    ("users", "concurrency", "in flight", "batch"),
    ("dgx spark", "gb10"),
    ("ttft", "first token", "latency"),
    ("throughput", "tok/s", "speed", "faster", "slower"),
)
"""Words of which readers type one and pages say another."""
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
            *_about(mine),
        ]
    )


def of_speeds(speeds: Sequence[Speed], sentences: Sequence[str] = ()) -> str:
    """Words of a page about models: their names and ids, formats, engines and machines."""
    names = [speed.model.name for speed in speeds]
    return with_synonyms([*names, *sentences, *_about(speeds), "throughput"])


def _about(speeds: Sequence[Speed]) -> Iterable[str]:
    for speed in speeds:
        yield speed.setup.model_id
        yield from (speed.weights, speed.engine, speed.machine)
