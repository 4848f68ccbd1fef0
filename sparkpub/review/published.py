"""A figure just measured beside those published of the same model."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sparkpub.plan.requested import load_of
from sparkpub.plan.workloads.load import Load
from sparkpub.record.record import Record
from sparkpub.record.text import number, percent
from sparkpub.review.checks import review
from sparkpub.review.dataset import Dataset, load
from sparkpub.review.setup import Setup, setup_of
from sparkpub.review.statistics.describe import describe

METRIC = "output_throughput_tok_s"
_WORDS = re.compile(r"[^a-z0-9]+")
_ENDINGS = (
    *("instruct", "chat", "it", "latest", "gguf", "awq", "gptq", "4bit", "8bit"),
    *("fp8", "nvfp4", "mxfp4", "bf16", "fp16", "f16", "f32"),
)
_QUANTISED = re.compile(r"[-_.:]i?q\d(_[a-z0-9]+)*$")
"""What names of one model have or lack at their end, from one engine to the next."""


@dataclass(frozen=True)
class CellRate:
    """The mean output throughput of a cell."""

    campaign: str
    setup: Setup
    load: Load
    rate: float


def beside(campaign: str, data: Path, *more: Path) -> str | None:
    """The line that puts a campaign of the folder `data` beside the nearest published figure of its model.

    Campaigns of this folder and of `more` are looked at. None where none of them has the model, or the campaign no
    figure.
    """
    folders = [folder for folder in dict.fromkeys((data, *more)) if folder.is_dir()]
    figures = list(_figures(load(*folders, skip=lambda _: None)))
    own = [figure for figure in figures if figure.campaign == campaign]
    if not own:
        return None
    model = _same_name(own[0].setup.model)
    others = [
        figure
        for figure in figures
        if figure.campaign != campaign and _same_name(figure.setup.model) == model
    ]
    pairs = [(mine, theirs) for mine in own for theirs in others]
    if not pairs:
        return None
    mine, theirs = min(pairs, key=lambda pair: _distance(*pair))
    return _line(mine, theirs)


def _figures(dataset: Dataset) -> Iterator[CellRate]:
    """The cells that count and have the figure."""
    for name, reviewed in review(dataset).campaigns.items():
        for runs in reviewed.counted.values():
            records = [stored.record for stored in runs]
            rate = _mean(records)
            if rate is not None:
                first = records[0]
                yield CellRate(name, setup_of(first), load_of(first), rate)


def _mean(records: Sequence[Record]) -> float | None:
    values = [record.value(METRIC) for record in records]
    known = [value for value in values if value is not None]
    return describe(known).mean if known else None


def _same_name(model: str) -> str:
    """A model's name as every engine would write it: `llama3.1:8b-instruct-q4_K_M` as `llama318b`."""
    name = _QUANTISED.sub("", model.lower())
    words = [word for word in _WORDS.split(name) if word]
    while len(words) > 1 and words[-1] in _ENDINGS:
        words.pop()
    return "".join(words).removeprefix("meta")


def _distance(mine: CellRate, theirs: CellRate) -> tuple[float, ...]:
    """How far two loads are from each other: requests at once before lengths, another tool before all."""
    one, other = mine.load, theirs.load
    lengths = (
        (one.input_tokens, other.input_tokens),
        (one.output_tokens, other.output_tokens),
    )
    return (
        one.tool != other.tool,
        mine.setup.quantization != theirs.setup.quantization,
        abs((one.at_once or 0) - (other.at_once or 0)),
        sum(abs((left or 0) - (right or 0)) for left, right in lengths),
    )


def _line(mine: CellRate, theirs: CellRate) -> str:
    """One line: both figures with their loads, and the difference, with what is not the same."""
    change = percent(100.0 * (mine.rate / theirs.rate - 1.0), 0)
    unlike = []
    if _shape(mine.load) != _shape(theirs.load):
        unlike.append("another load")
    for name in ("engine", "quantization", "machine"):
        if getattr(mine.setup, name) != getattr(theirs.setup, name):
            word = "weights" if name == "quantization" else name
            unlike.append(f"another {word} or none stated")
    under = f" ({', '.join(unlike)})" if unlike else ""
    where = ", ".join(
        part
        for part in (
            theirs.setup.engine,
            theirs.setup.quantization,
            theirs.setup.machine,
        )
        if part
    )
    return (
        f"published: {number(theirs.rate, 1)} tok/s, campaign {theirs.campaign}"
        f"{f' ({where})' if where else ''}, {theirs.load.label}; "
        f"yours: {number(mine.rate, 1)} tok/s, {mine.load.label}: {change}{under}"
    )


def _shape(load: Load) -> tuple[object, ...]:
    return (load.tool, load.input_tokens, load.output_tokens, load.at_once, load.depth)
