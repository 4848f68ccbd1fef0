"""What the leaderboard shows: the boards of `review.leaderboard` in words, and what they can be filtered by."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.record.text import (
    SPACE,
    counted,
    listed,
    rounded,
)
from sparkpub.review.grouping import grouped
from sparkpub.review.leaderboard import (
    REQUESTS,
    Board,
    RankedFigure,
    RankedModel,
)
from sparkpub.review.models import LARGE, is_large
from sparkpub.review.names import load_name, parts_of
from sparkpub.review.speeds import GENERATION, MILLISECONDS, Speed
from sparkpub.review.tables.capacities import LIMITS
from sparkpub.site import sentences
from sparkpub.site.pages import model_links
from sparkpub.site.publication import Publication

ADDRESS = "leaderboard/"
SHADES = 3
"""Steps of the colour that says how near to the best a figure is."""
WIDE_SPREAD = 0.1
"""Share of a figure from which the spread of its own repetitions stands beside it."""
SPREAD = "±: between the repetitions of one run."


def by_size(board: Board) -> dict[str, list[RankedModel]]:
    """The rows of a board, those of large models first; where both kinds are there, under a title for the others."""
    found = grouped(board.rows, lambda row: is_large(row.model.name))
    rest = f"Below {LARGE}B, or size not stated" if True in found else ""
    parts = {"": found.get(True, []), rest: found.get(False, [])}
    return {title: rows for title, rows in parts.items() if rows}


def columns_of(board: Board) -> dict[int | None, list[str]]:
    """The columns of a board: widths of weights, each with the formats in it."""
    return {
        bits: sorted({speed.weights for speed in board.speeds if speed.bits == bits})
        for bits in board.widths
    }


def cell(
    publication: Publication,
    board: Board,
    row: RankedModel,
    bits: int | None,
) -> Iterator[tuple[RankedFigure, str]]:
    """The best figure of each engine in a cell, the best first, and what tells it from others in the column, and from
    the model's on other boards: whether tokens were drafted, of the models of which they were."""
    engines = {speed.setup.engine for speed in board.speeds}
    drafted = publication.speeds.where(
        model=row.model, machine=board.machine, is_speculative=True
    )
    best = grouped(row.entries.get(bits, ()), lambda entry: entry.speed.setup.engine)
    for engine, (entry, *_) in best.items():
        speed, capacity = entry.speed, entry.capacity
        owners = {each.speed.owner for each in entry.agreeing}
        told = [
            speed.weights if len(columns_of(board)[bits]) > 1 else "",
            (engine or "engine not stated") if len(engines) > 1 else "",
            "speculative"
            if speed.is_speculative
            else "no speculation"
            if drafted
            else "",
            spread(speed) if board.metric.name == GENERATION else "",
            served(capacity) if capacity is not None and capacity.rate else "",
            speed.owner if len(owners) == 1 else "",
            agreement(entry.agreeing, board.metric),
        ]
        yield entry, ", ".join(filter(None, told))


def agreement(entries: Sequence[RankedFigure], metric: Metric) -> str:
    """`3 machines of 2 owners, 58.8 to 59.5`; empty of a single one."""
    if len(entries) < 2:
        return ""
    owners = {entry.speed.owner for entry in entries}
    of = f" of {len(owners)} owners" if len(owners) > 1 else ""
    ends = (
        figure_text(end([each.value for each in entries]), metric) for end in (min, max)
    )
    return f"{len(entries)} machines{of}, {' to '.join(ends)}"


def spread(speed: Speed) -> str:
    """`± 45`, where the repetitions of a single run lie far apart; without a space that breaks a line."""
    found, mean = speed.records[0].spreads.get(GENERATION), speed.mean(GENERATION)
    if len(speed.records) > 1 or found is None or not mean:
        return ""
    is_wide = found.deviation > WIDE_SPREAD * mean
    return f"±{SPACE}{rounded(found.deviation, 2)}" if is_wide else ""


def board_anchor(board: Board) -> str:
    """Where the board of a load stands on the page."""
    return f"{model_links.anchor(board.machine)}-{board.use.key}"


def width_name(bits: int | None) -> str:
    """`16 bits`; of weights whose format nobody states, that."""
    if bits is None:
        return "Weights not stated"
    return f"{bits}{SPACE}bits"


def entry_text(entry: RankedFigure, metric: Metric) -> str:
    """The figure of an entry; a bound in its own words."""
    if entry.capacity is None:
        return figure_text(entry.value, metric)
    if entry.capacity.at_least:
        return f"{rounded(entry.value, 2)} or more"
    text: str = entry.capacity.text
    return text


def served(capacity: Any) -> str:
    """`0.27 completed, 6.0 in flight, 15 tok/s each`: what a rate means for server and users."""
    figures = ((getattr(capacity, column), words) for column, words in _SERVED.items())
    told = [f"{rounded(figure, 2)} {words}" for figure, words in figures if figure]
    return ", ".join(told)


_SERVED = {
    "served_req_s": "completed",
    "in_flight": "in flight",
    "user_tok_s": "tok/s each",
}
"""Columns of the table of capacities in words."""


def figure_text(value: float, metric: Metric) -> str:
    """A figure in three digits; times in seconds."""
    if metric.unit == "ms":
        return rounded(value / MILLISECONDS)
    return rounded(value)


def unit_name(metric: Metric) -> str:
    """What the figures of a metric count, for readers."""
    if metric.unit == "ms":
        return "seconds to the first token, fewer are better"
    if metric == REQUESTS:
        return f"the highest rate, in requests a second, with {LIMITS}, at it and at every lower one"
    if metric.name == "prompt_throughput_tok_s":
        return "tokens of the prompt read per second"
    return "tokens generated per second"


def caption(publication: Publication, board: Board) -> str:
    """What the figures of a board are, and what they have in common."""
    what = unit_name(board.metric)
    if board.metric.name == "output_throughput_tok_s" and (board.load.at_once or 0) > 1:
        what += ", by all users together"
    places = sorted(
        {
            parts_of(
                publication.names.called(speed.campaign, "environment", speed.cell[1])
            )[0]
            for speed in board.speeds
        }
    )
    about = [engines_name(board.speeds), board.load.tool]
    if len(places) == 1:
        about.insert(0, places[0])
    return (
        f"{what[:1].upper()}{what[1:]}: {load_name(board.load)} ({'; '.join(about)})."
    )


def engines_name(speeds: Iterable[Speed]) -> str:
    """`vLLM 0.26.0`, `vLLM 0.26.0 and others` for several versions; of several engines their names."""
    engines = Counter(speed.engine for speed in speeds)
    names = {speed.setup.engine or "engine not stated" for speed in speeds}
    if len(engines) == 1:
        return next(iter(engines))
    if len(names) == 1:
        ((usual, _),) = engines.most_common(1)
        return f"{usual} and others"
    return listed(sorted(names))


def notes(board: Board) -> list[str]:
    """What a reader should know of the figures of a board, once."""
    speeds = board.speeds
    found = []
    random = {speed.model.name for speed in speeds if speed.setup.random_weights}
    if random:
        models = listed(sorted(random))
        found.append(
            f"Random weights (representative speed, meaningless answers): {models}."
        )
    bounds = {
        row.best.is_placed
        for row in board.rows
        if row.best.capacity is not None and row.best.capacity.at_least
    }
    found += [_BOUNDS[is_placed] for is_placed in (True, False) if is_placed in bounds]
    if board.metric.name == GENERATION and any(map(spread, speeds)):
        found.append(SPREAD)
    records = [record for speed in speeds for record in speed.records]
    found += filter(None, [sentences.about_prompts(board.metric, records)])
    alone = sum(len(speed.records) == 1 for speed in speeds)
    if alone:
        found.append(f"One run each: {alone} of {counted(len(speeds), 'figure')}.")
    return found


_BOUNDS = {
    True: "“Or more”: held every rate tried; listed first, not ranked.",
    False: "Listed last, not ranked: held every rate tried, of which the highest was lower than others held.",
}
"""Whether a figure that is a bound has a place, to what it means."""


Unranked = tuple[str, str, str]
"""A campaign, which of its models are not ranked, and why."""


def unranked(publication: Publication) -> Iterator[Unranked]:
    """What checks keep off the boards; and what is not ranked beside the others because it did other work (with the
    prefix cache, or in shorter answers), or because its mean says nothing."""
    why = "because their figures failed checks"
    reasons = [(speed, why) for speed in publication.speeds if speed.doubts]
    for board in publication.boards:
        sure = [speed for speed in board.unranked if not speed.doubts]
        reasons += [(speed, _why(board, speed)) for speed in sure]
    by_why = grouped(reasons, lambda item: (item[0].campaign, item[1]))
    for (campaign, why), items in by_why.items():
        yield campaign, listed(sorted({speed.model.name for speed, _ in items})), why


def _why(board: Board, speed: Speed) -> str:
    """Why a figure that no check doubts is not ranked."""
    if not speed.is_ranked(board.metric.name):
        return "because their own repetitions lie too far apart for a mean"
    if board.metric == REQUESTS:
        return "not in requests a second, because the answers at some rates had another length than asked for"
    return "because hits in the server's prefix cache tell them from the others"


def filters(publication: Publication) -> dict[str, Sequence[str]]:
    """What the boards can be filtered by: each field with its values, where there are several."""
    speeds = [speed for board in publication.boards for speed in board.speeds]
    fields = {
        "weights": sorted({speed.weights for speed in speeds}),
        "engine": sorted({speed.setup.engine or "not stated" for speed in speeds}),
    }
    return {name: values for name, values in fields.items() if len(values) > 1}
