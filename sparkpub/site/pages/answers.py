"""The questions that readers come with, each with its answer: sentences made of tables, so that they cannot be wrong.

A sentence says the effect and how large it can be. Where nothing was measured it says so.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter

from sparkpub.record.metrics import METRICS
from sparkpub.record.text import counted, extent, rounded, span
from sparkpub.review.differences import is_of_weights, told
from sparkpub.review.leaderboard import Board, RankedFigure, RankedModel
from sparkpub.review.names import environment_name, flow_name, lengths_name, load_name
from sparkpub.review.speeds import GENERATION
from sparkpub.review.tables.capacities import LIMITS
from sparkpub.site.pages import campaign_page
from sparkpub.site.pages.leaderboard_page import (
    ADDRESS,
    board_anchor,
    engines_name,
    figure_text,
    served,
)
from sparkpub.site.publication import Publication, newest_first

LARGE = 20
"""Parameters in 10**9 from which on a model is large: readers ask for the best of these too."""
MOST = 3
"""Models and engines that a sentence names."""


@dataclass(frozen=True)
class FrontAnswer:
    """A question with its answer. `note` says what was measured, `href` leads to more, `words` are others with which
    readers ask it."""

    question: str
    text: str
    href: str
    note: str
    words: str

    @property
    def anchor(self) -> str:
        """Its place in the page."""
        return re.sub(r"\W+", "-", self.question.lower()).strip("-")


def answers(publication: Publication) -> list[FrontAnswer]:
    """Every question that the data answer, in the order in which readers ask."""
    boards = home_boards(publication)
    found = [
        _fastest(boards),
        _users(boards),
        _containers(publication),
        _formats(boards),
    ]
    return [answer for answer in found if answer is not None]


def home_boards(publication: Publication) -> dict[str, Board]:
    """The boards of the machine that comes first, by their use."""
    boards = publication.boards
    return {
        board.use.key: board for board in boards if board.machine == boards[0].machine
    }


# -- how fast, how many users ------------------------------------------------------------------------------


def _fastest(boards: Mapping[str, Board]) -> FrontAnswer | None:
    board = boards.get("one") or next(iter(boards.values()), None)
    if board is None or board.metric.name != GENERATION:
        return None

    def speed(entry: RankedFigure) -> str:
        return f"{figure_text(entry.value, board.metric)} tok/s"

    return FrontAnswer(
        "How fast, and what should I run?",
        f"For {flow_name(board.load)}, {_leaders(board, speed)}.",
        ADDRESS,
        _about(board),
        "which model, tokens per second",
    )


def _users(boards: Mapping[str, Board]) -> FrontAnswer | None:
    board = boards.get("some") or boards.get("many")
    if board is None or not board.load.at_once:
        return None
    users = board.load.at_once

    def shared(entry: RankedFigure) -> str:
        each = rounded(entry.speed.per_user or entry.value / users, 2)
        return f"{figure_text(entry.value, board.metric)} tok/s in all, {each} for each"

    text = f"With {flow_name(board.load)}, {_leaders(board, shared)}."
    return FrontAnswer(
        "How many users can it serve?",
        f"{text} {_capacity(boards.get('capacity'))}".strip(),
        f"{ADDRESS}#{board_anchor(board)}",
        _about(board),
        "concurrency, parallel",
    )


def _leaders(board: Board, figure: Callable[[RankedFigure], str]) -> str:
    """The best model; and of the large ones the best, with those that are no further from it than a repeat may be."""
    best, near = board.rows[0], _best_large(board)
    text = f"{_named(best)} makes {figure(best.best)}"
    if near and best not in near:
        said = (f"{_named(row)}: {figure(row.best)}" for row in near[:MOST])
        text += f"; from {LARGE}B up, {'; '.join(said)}"
    return text


def _best_large(board: Board) -> list[RankedModel]:
    """The best of the large models and those of them whose order a repeat may turn."""
    large = [row for row in board.rows if (row.billions or 0) >= LARGE]
    return [row for row in board.near(large[0]) if row in large] if large else []


def _named(row: RankedModel) -> str:
    """`Nemotron-3-Nano-30B-A3B in NVFP4`; speculative decoding is said, since it is most of such a figure."""
    best = row.best.speed
    name = row.model.name
    if best.setup.quantization is not None:
        name += f" in {best.setup.quantization}"
    return f"{name} with speculative decoding" if best.is_speculative else name


def _about(board: Board) -> str:
    """`24 models on a DGX Spark, vLLM 0.26.0; 1,024 in, 1,024 out (llama-benchy)`."""
    made_with = engines_name(board.speeds)
    models = counted(len(board.rows), "model")
    return f"{models} on {board.machine}, {made_with}; {lengths_name(board.load)} ({board.load.tool})"


def _capacity(board: Board | None) -> str:
    """How many requests a second the best of the large models takes, and what that means for its users."""
    if board is None:
        return ""
    near = _best_large(board) or board.rows[:1]
    best = near[0].best.capacity
    who = f"{_named(near[0])} takes"
    if len(near) > 1:
        who = f"{_named(near[0])} and {len(near) - 1} more take"
    if (near[0].billions or 0) >= LARGE:
        who = f"From {LARGE}B up, {who}"
    rate = f"{best.text} requests a second"
    means = f": {served([row.best.capacity for row in near])}"
    if best.at_least:
        rate = f"every rate up to {best.rate} requests a second, the highest measured,"
    elif best.rate is None:
        rate, means = f"fewer than {best.rates[0]:g} requests a second", ""
    return f"{who} {rate} ({lengths_name(board.load)}) with {LIMITS}{means}."


# -- containers --------------------------------------------------------------------------------------------


def _containers(publication: Publication) -> FrontAnswer | None:
    """What the newest comparison of each engine with Docker shows, on the home machine first."""
    metric = METRICS[GENERATION]
    home = publication.boards[0].machine if publication.boards else ""
    found: dict[str, tuple[bool, str, str]] = {}
    for campaign in newest_first(publication.campaigns):
        mine = [
            speed for speed in publication.speeds if speed.campaign == campaign.name
        ]
        kinds = {environment_name(speed.setup.environment_type) for speed in mine}
        text = campaign_page.compared(publication, campaign, metric)
        if text and kinds == {"native", "Docker"} and not publication.shared(campaign):
            engine = (
                f"{mine[0].setup.engine or 'Engine not stated'} on {mine[0].machine}"
            )
            away = mine[0].machine != home
            found.setdefault(engine, (away, f"{engine}: {text}", campaign.name))
    if not found:
        return None
    told = sorted(found.values(), key=itemgetter(0))[:MOST]
    return FrontAnswer(
        "Does Docker cost anything?",
        " ".join(text for _, text, _ in told),
        f"campaigns/{told[0][2]}/",
        "In brackets: the interval that decides, and the verdict",
        "container, overhead, slower",
    )


# -- formats -----------------------------------------------------------------------------------------------


def _formats(boards: Mapping[str, Board]) -> FrontAnswer | None:
    """What narrower weights change: speed for one user, and the time to the first token of a long prompt."""
    one, long = boards.get("one"), boards.get("long")
    if one is None or one.metric.name != GENERATION:
        return None
    said = [
        f"{weights} {extent(chain.from_iterable(of_models))} times ({counted(len(of_models), 'model')})"
        for weights, of_models in _ratios(one).items()
    ]
    if not said:
        return None
    text = f"For one user, as fast as 16 bits: {'; '.join(said)}."
    if long is not None and long.metric.unit == "ms":
        ratios = [*chain.from_iterable(chain.from_iterable(_ratios(long).values()))]
        if ratios:
            prompt = f"{long.load.input_tokens or long.load.depth:,}"
            text += f" The first token after a prompt of {prompt} takes {extent(ratios)} times as long."
    numbers = sorted({len(speed.records) for speed in one.speeds})
    runs = "one run"
    if numbers != [1]:
        runs = f"{span([str(number) for number in numbers])} runs"
    return FrontAnswer(
        "Do FP8 and NVFP4 pay?",
        text,
        ADDRESS,
        f"Each {runs}, and only weights and kernels differ: {one.machine}, {load_name(one.load)}",
        "FP4, 4-bit, quantisation",
    )


def _ratios(board: Board) -> dict[str, list[list[float]]]:
    """Format of the weights to the figures of each model in it, as multiples of those at 16 bits where nothing but the
    weights and their kernels differs."""
    found: dict[str, list[list[float]]] = {}
    for row in board.rows:
        for bits, entries in row.entries.items():
            if bits is None or bits >= 16:
                continue
            ratios = [
                narrow.value / wide.value
                for narrow in entries
                for wide in row.entries.get(16, ())
                if _differ_in_weights(narrow, wide)
            ]
            if ratios:
                found.setdefault(entries[0].speed.weights, []).append(ratios)
    return found


def _differ_in_weights(one: RankedFigure, other: RankedFigure) -> bool:
    return is_of_weights(*(told(each.speed.records[0]) for each in (one, other)))
