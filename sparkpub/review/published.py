"""A figure just measured beside those published of the same model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from sparkpub.plan.requested import load_of
from sparkpub.plan.workloads.load import Load
from sparkpub.record.record import Record
from sparkpub.record.text import number, percent
from sparkpub.review.checks import review
from sparkpub.review.dataset import Dataset, load
from sparkpub.review.models import model_name
from sparkpub.review.setup import Setup, setup_of

METRIC = "output_throughput_tok_s"


@dataclass(frozen=True)
class CellRate:
    """The mean output throughput of a cell."""

    campaign: str
    model: str
    """Its key over all campaigns."""
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
    others = [
        figure
        for figure in figures
        if figure.campaign != campaign and figure.model == own[0].model
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
                yield CellRate(
                    name,
                    model_name(first).key,
                    setup_of(first),
                    load_of(first),
                    rate,
                )


def _mean(records: Sequence[Record]) -> float | None:
    values = [record.value(METRIC) for record in records]
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


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
