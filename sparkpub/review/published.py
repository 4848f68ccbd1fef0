"""A figure just measured beside those published of the same model."""

from operator import attrgetter
from pathlib import Path

from sparkpub.record.text import SPACE, counted, number
from sparkpub.review.checks import review
from sparkpub.review.dataset import load
from sparkpub.review.names import Names, load_name
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
    """How far two figures are from each other: another tool before all, then format, machine, requests at once and
    lengths."""
    users, *lengths = (
        abs((getattr(mine.load, name) or 0) - (getattr(theirs.load, name) or 0))
        for name in ("at_once", "input_tokens", "output_tokens")
    )
    return (
        mine.load.tool != theirs.load.tool,
        mine.setup.quantization != theirs.setup.quantization,
        mine.setup.machine != theirs.setup.machine,
        users,
        sum(lengths),
    )


def _line(mine: Speed, theirs: Speed) -> str:
    """The share of the published figure that was reached (two loads have none), what is not the same, and the figures
    with the runs behind them."""
    ours, published = mine.figures[GENERATION], theirs.figures[GENERATION]
    share = f"{number(100.0 * ours.mean / published.mean, 0)}{SPACE}%, "
    unlike = []
    if _SHAPE(mine.load) != _SHAPE(theirs.load):
        unlike.append(f"{load_name(theirs.load)} by {theirs.load.tool}")
        share = ""
    for name, word in _PARTS.items():
        if getattr(mine.setup, name) != getattr(theirs.setup, name):
            said = getattr(theirs.setup, name) or "not stated"
            unlike.append(f"other {word}: {said}")
    what = f"the same model, format and load ({theirs.setup.machine_in_short})"
    if unlike:
        what = f"the nearest figure of the same model ({', '.join(unlike)})"
    rates = (
        f"{number(ours.mean, 1)} against {number(published.mean, 1)} tokens a second"
    )
    runs = f"{counted(ours.n, 'run')} against {published.n}"
    return f"against {what} in {theirs.campaign}: {share}{rates}, {runs}"


_PARTS = {
    "engine": "engine",
    "engine_version": "version",
    "quantization": "weights",
    "machine": "machine",
}
"""Part of a set-up to its word."""
_SHAPE = attrgetter("tool", "input_tokens", "output_tokens", "at_once", "depth")
"""What makes two loads the same."""
