"""A figure just measured beside those published of the same model."""

from operator import attrgetter
from pathlib import Path

from sparkpub.record.text import number, percent
from sparkpub.review.checks import review
from sparkpub.review.dataset import load
from sparkpub.review.names import Names
from sparkpub.review.results import Results
from sparkpub.review.speeds import GENERATION, Speed, speeds


def beside(campaign: str, data: Path, *more: Path) -> str | None:
    """The line that puts a campaign of the folder `data` beside the nearest published figure of its model.

    Campaigns of this folder and of `more` are looked at, without figures that checks doubt. None where none of them
    has the model, or the campaign no figure.
    """
    folders = [folder for folder in dict.fromkeys((data, *more)) if folder.is_dir()]
    dataset = load(*folders, skip=lambda _: None)
    reviewed = review(dataset)
    measured = speeds(reviewed, Results(reviewed).cell_rows, Names(dataset))
    known = [speed for speed in measured if GENERATION in speed.figures]
    own = [speed for speed in known if speed.campaign == campaign]
    pairs = [
        (mine, theirs)
        for mine in own
        for theirs in known
        if theirs.campaign != campaign
        and theirs.model.key == mine.model.key
        and not theirs.doubts
    ]
    if not pairs:
        return None
    mine, theirs = min(pairs, key=lambda pair: _distance(*pair))
    return _line(mine, theirs)


def _distance(mine: Speed, theirs: Speed) -> tuple[float, ...]:
    """How far two loads are from each other: requests at once before lengths, another tool before all."""
    users, *lengths = (
        abs((getattr(mine.load, name) or 0) - (getattr(theirs.load, name) or 0))
        for name in ("at_once", "input_tokens", "output_tokens")
    )
    return (
        mine.load.tool != theirs.load.tool,
        mine.setup.quantization != theirs.setup.quantization,
        users,
        sum(lengths),
    )


def _line(mine: Speed, theirs: Speed) -> str:
    """One line: both figures with their loads, and the difference, with the runs behind it and what is not the same."""
    ours, published = mine.figures[GENERATION], theirs.figures[GENERATION]
    change = percent(100.0 * (ours.mean / published.mean - 1.0), 0)
    unlike = [f"{published.n} and {ours.n} runs"]
    if published.n == ours.n == 1:
        unlike = ["one run each"]
    if _SHAPE(mine.load) != _SHAPE(theirs.load):
        unlike.append("another load")
    for name, word in _PARTS.items():
        if getattr(mine.setup, name) != getattr(theirs.setup, name):
            unlike.append(f"another {word} or none stated")
    setup = theirs.setup
    where = ", ".join(filter(None, (setup.engine, setup.quantization, setup.machine)))
    return (
        f"published: {number(published.mean, 1)} tok/s, campaign {theirs.campaign}"
        f"{f' ({where})' if where else ''}, {theirs.load.label}; "
        f"yours: {number(ours.mean, 1)} tok/s, {mine.load.label}: {change} ({', '.join(unlike)})"
    )


_PARTS = {
    "engine": "engine",
    "engine_version": "version",
    "quantization": "weights",
    "machine": "machine",
}
"""Part of a set-up to its word."""
_SHAPE = attrgetter("tool", "input_tokens", "output_tokens", "at_once", "depth")
"""What makes two loads the same."""
