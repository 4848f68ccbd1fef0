"""The questions that readers come with, each with its answer: sentences made of tables, so that they cannot be wrong.

A sentence says the effect and how large it can be. Where nothing was measured it says so.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from sparkpub.record.text import (
    SPACE,
    between,
    counted,
    extent,
    listed,
    percent,
    rounded,
    span,
)
from sparkpub.review.differences import Told, is_of_weights, told
from sparkpub.review.grouping import grouped
from sparkpub.review.leaderboard import Board, RankedFigure, RankedModel
from sparkpub.review.names import environment_name, flow_name, lengths_name, load_name
from sparkpub.review.progress import VersionLine, in_words
from sparkpub.review.speeds import GENERATION, Speed
from sparkpub.review.statistics.estimate import ALPHA, deciding_level
from sparkpub.review.tables.capacities import LIMITS
from sparkpub.review.tables.column import rows
from sparkpub.review.tables.comparisons import deciding
from sparkpub.site import sentences
from sparkpub.site.pages import model_links
from sparkpub.site.pages.leaderboard_page import (
    ADDRESS,
    board_anchor,
    engines_name,
    figure_text,
    served,
)
from sparkpub.site.publication import Publication

LARGE = 20
"""Parameters in 10**9 from which on a model is large: readers ask for the best of these too."""
MOST_ENGINES = MOST_LINES = 3


@dataclass(frozen=True)
class FrontAnswer:
    """A question with its answer. `note` says what was measured; `href` leads to more."""

    question: str
    text: str
    href: str
    note: str = ""
    words: str = ""
    """Other words with which readers ask it."""

    @property
    def anchor(self) -> str:
        """Its place in the page."""
        return re.sub(r"\W+", "-", self.question.lower()).strip("-")


def answers(publication: Publication) -> list[FrontAnswer]:
    """Every question that the data answer, in the order in which readers ask."""
    boards = {}
    if publication.boards:
        home = publication.boards[0].machine
        mine = [board for board in publication.boards if board.machine == home]
        boards = {board.use.key: board for board in mine}
    found = [
        _fastest(boards),
        _users(boards),
        _containers(publication),
        _formats(boards),
        _versions(publication),
    ]
    return [answer for answer in found if answer is not None]


# -- how fast, how many users ------------------------------------------------------------------------------


def _fastest(boards: dict[str, Board]) -> FrontAnswer | None:
    board = boards.get("one") or next(iter(boards.values()), None)
    if board is None or board.metric.name != GENERATION:
        return None
    best, large = board.rows[0], _best_large(board)
    text = f"For {flow_name(board.load)}, {_named(best)} makes {_speed(best.best, board)} tok/s"
    if large not in (None, best):
        # What is no further from it than a repeat may be is named beside it.
        near = _near_large(board, large)[:MOST_LINES]
        verb = "is" if len(near) == 1 else "are"
        speeds = listed(_speed(row.best, board) for row in near)
        text += f"; from {LARGE}B up, {listed(map(_named, near))} {verb} fastest: {speeds} tok/s"
    question = "How fast, and what should I run?"
    words = "which model, tokens per second"
    return FrontAnswer(question, f"{text}.", ADDRESS, _about(board), words)


def _best_large(board: Board) -> RankedModel | None:
    """The best of the large models."""
    return next((row for row in board.rows if (row.billions or 0) >= LARGE), None)


def _near_large(board: Board, row: RankedModel) -> list[RankedModel]:
    """Large models whose order a repeat may turn, among them the one itself."""
    return [near for near in board.near(row) if (near.billions or 0) >= LARGE]


def _named(row: RankedModel) -> str:
    """`Nemotron-3-Nano-30B-A3B in NVFP4`; speculative decoding is said, since it is most of such a figure."""
    best = row.best.speed
    name = row.model.name
    if best.setup.quantization is not None:
        name += f" in {best.setup.quantization}"
    return f"{name} with speculative decoding" if best.is_speculative else name


def _speed(entry: RankedFigure, board: Board) -> str:
    return figure_text(entry.value, board.metric)


def _about(board: Board) -> str:
    """`24 models on a DGX Spark, vLLM 0.26.0; 1,024 in, 1,024 out (llama-benchy)`."""
    made_with = engines_name(board.speeds)
    models = counted(len(board.rows), "model")
    return f"{models} on {board.machine}, {made_with}; {lengths_name(board.load)} ({board.load.tool})"


def _users(boards: dict[str, Board]) -> FrontAnswer | None:
    board = boards.get("some") or boards.get("many")
    if board is None or not board.load.at_once:
        return None
    best, large = board.rows[0], _best_large(board)
    text = f"With {flow_name(board.load)}, {_named(best)} makes {_shared(best.best, board)}"
    if large is not None and large != best:
        text += f"; from {LARGE}B up, {_named(large)}: {_shared(large.best, board)}"
    text = f"{text}.{_capacity(boards.get('capacity'))}"
    href = f"{ADDRESS}#{board_anchor(board)}"
    question, words = "How many users can it serve?", "concurrency, parallel"
    return FrontAnswer(question, text, href, _about(board), words)


def _capacity(board: Board | None) -> str:
    """How many requests a second the best of the large models takes, and what that means for its users."""
    if board is None:
        return ""
    large = _best_large(board)
    row = large or board.rows[0]
    near = _near_large(board, row)
    who = f"{_named(row)} takes"
    if len(near) > 1 and row in near:
        who = f"{_named(row)} and {len(near) - 1} more take"
    if large is not None:
        who = f"From {LARGE}B up, {who}"
    best = row.best.capacity
    rate = f"{best.text} requests a second"
    means = f": {served([other.best.capacity for other in near] or [best])}"
    if best.at_least:
        rate = f"every rate up to {best.rate} requests a second, the highest measured,"
    elif best.rate is None:
        rate, means = f"fewer than {best.rates[0]:g} requests a second", ""
    return f" {who} {rate} ({lengths_name(board.load)}) with {LIMITS}{means}."


def _shared(entry: RankedFigure, board: Board) -> str:
    """`564 tok/s in all, 56 for each`."""
    each = entry.speed.per_user or entry.value / (board.load.at_once or 1)
    return f"{_speed(entry, board)} tok/s in all, {rounded(each, 2)} for each"


# -- containers --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """How a container changes the throughput of one cell, in percent: `change`, from `low` to `high` with the
    confidence `level`. `machines` are those that the figures are over."""

    row: Any
    speed: Speed
    change: float
    low: float
    high: float
    level: float
    machines: int = 1

    @property
    def where(self) -> str:
        """`one H200`, `2 H200 together`."""
        if self.machines == 1:
            return f"one {self.speed.machine}"
        return f"{self.machines} {self.speed.machine} together"

    @property
    def words(self) -> str:
        """`at most 0.8 %`, or between which bounds."""
        if self.high < 0:
            return f"{between(-self.high, -self.low, 1)}{SPACE}%"
        return sentences.at_most(-self.low) if self.low < 0 else "no"


def _containers(publication: Publication) -> FrontAnswer | None:
    """The largest cost that the runs leave open, for each engine."""
    costs = list(container_costs(publication))
    decided = [cost for cost in costs if cost.row.verdict != "confounded"]
    known = {cost.speed.machine for cost in decided}
    unknown = {cost.speed.machine for cost in costs} - known
    open_ended = ""
    if unknown:
        open_ended = (
            f"On {listed(sorted(unknown))} it is not known: one environment ran after the other, "
            "so time and Docker cannot be told apart."
        )
    question = "Does Docker cost anything?"
    if not decided:
        if not costs:
            return None
        return FrontAnswer(question, open_ended, f"campaigns/{costs[0].row.campaign}/")
    by_engine = grouped(decided, lambda cost: cost.speed.setup.engine)
    worst = [min(mine, key=lambda cost: cost.low) for mine in by_engine.values()]
    # The engine of most figures on this site comes first.
    used = Counter(speed.setup.engine for speed in publication.speeds)
    worst.sort(key=lambda cost: -used[cost.speed.setup.engine])
    first, *others = worst[:MOST_ENGINES]
    engine = first.speed.setup.engine
    of = "throughput" if first.words == "no" else "of throughput"
    measured = (
        f"{percent(first.change)}, {between(first.low, first.high, 1, signed=True)}"
    )
    if first.row.verdict == "undecided":
        measured += ", undecided"
    said = [
        f"On {first.where} a container costs {engine} {first.words} {of} (measured {measured})"
    ]
    for cost in others:
        words = "no throughput" if cost.words == "no" else cost.words
        said.append(f"on {cost.where} {cost.speed.setup.engine} {words}")
    rounds = ""
    if first.machines == 1:
        rounds = f"{first.row.n_candidate} rounds"
        if first.row.servers is not None:
            rounds += f" of {counted(first.row.servers, 'server')} a side"
        rounds += "; "
    level = f"{100 * first.level:.0f}{SPACE}% interval"
    return FrontAnswer(
        question,
        f"{', '.join(said)}. {open_ended}".strip(),
        f"campaigns/{first.row.campaign}/",
        f"{engine}: {rounds}in brackets the measured change and its {level}",
        "container, overhead, slower",
    )


def container_costs(publication: Publication) -> Iterator[Cost]:
    """Every comparison of a container with the same machine without one, in output throughput. Campaigns that a claim
    joins are one comparison, over all of their machines."""
    by_cell = {(speed.campaign, speed.cell): speed for speed in publication.speeds}
    told: set[str] = set()
    for campaign, data in publication.dataset.campaigns.items():
        if publication.shared(data) or campaign in told:
            continue
        joined = publication.joined(data)
        told.update(joined)
        over = {}
        if len(joined) > 1:
            _, together = publication.results.over(joined)
            over = {_compared(row): row for row in rows(together)}
        for row in publication.results.comparisons_of(campaign, GENERATION):
            sides = [
                by_cell.get((campaign, (row.model, side, row.workload)))
                for side in (row.baseline, row.candidate)
            ]
            kinds = [
                environment_name(speed.setup.environment_type)
                for speed in sides
                if speed
            ]
            if kinds == ["native", "Docker"] and sides[1] is not None:
                cost = _cost(sides[1], row, over.get(_compared(row)))
                if cost is not None:
                    yield cost


def _compared(row: Any) -> tuple[str, ...]:
    return row.model, row.workload, row.metric, row.baseline, row.candidate


def _cost(speed: Speed, row: Any, together: Any) -> Cost | None:
    """Of several machines together, else of one; None where no interval is known."""
    if together is not None and together.ci95_effect is not None:
        low, high = together.ci95_effect
        level, machines = 1 - ALPHA, together.machines
        return Cost(together, speed, together.effect, low, high, level, machines)
    interval = deciding(row)
    if interval is None:
        return None
    change, low, high = (
        100 * value / row.mean_baseline for value in (row.difference, *interval)
    )
    level = deciding_level(row.verdict, row.equivalence_p)
    return Cost(row, speed, change, low, high, level)


# -- formats -----------------------------------------------------------------------------------------------


def _formats(boards: dict[str, Board]) -> FrontAnswer | None:
    """What narrower weights change: speed for one user, and the time to the first token of a long prompt."""
    one, long = boards.get("one"), boards.get("long")
    if one is None or one.metric.name != GENERATION:
        return None
    said: list[str] = []
    for weights, of_models in _ratios(one).items():
        models = counted(len(of_models), "model")
        ratios = list(chain.from_iterable(of_models))
        sentence = f"{weights} {extent(ratios)} times ({models})"
        if not said:
            sentence = f"{weights} makes one user {extent(ratios)} times as fast as 16{SPACE}bits ({models})"
        said.append(sentence)
    if not said:
        return None
    text = "; ".join(said)
    if long is not None and long.metric.unit == "ms":
        found = chain.from_iterable(_ratios(long).values())
        ratios = list(chain.from_iterable(found))
        if ratios:
            prompt = f"{long.load.input_tokens or long.load.depth:,}"
            text += f". The first token after a prompt of {prompt} takes {extent(ratios)} times as long"
    note = f"Each {_runs(one)}, and only weights and kernels differ: {one.machine}, {load_name(one.load)}"
    words = "FP4, 4-bit, quantisation"
    return FrontAnswer("Do FP8 and NVFP4 pay?", f"{text}.", ADDRESS, note, words)


def _ratios(board: Board) -> dict[str, list[list[float]]]:
    """Format of the weights to the figures of each model in it, as multiples of those at 16 bits where nothing but the
    weights and their kernels differs."""
    found: dict[str, list[list[float]]] = {}
    for row in board.rows:
        wide = row.entries.get(16, ())
        for bits, entries in row.entries.items():
            if bits is None or bits >= 16:
                continue
            pairs = [
                (narrow, entry)
                for narrow in entries
                for entry in wide
                if is_of_weights(*(_told(each) for each in (narrow, entry)))
            ]
            if pairs:
                ratios = [narrow.value / entry.value for narrow, entry in pairs]
                found.setdefault(pairs[0][0].speed.weights, []).append(ratios)
    return found


def _told(entry: RankedFigure) -> Told:
    return told(entry.speed.records[0])


def _runs(board: Board) -> str:
    """`one run`, `1 to 10 runs`."""
    numbers = sorted({len(speed.records) for speed in board.speeds})
    if numbers == [1]:
        return "one run"
    return f"{span([str(number) for number in numbers])} runs"


# -- versions ----------------------------------------------------------------------------------------------


def _versions(publication: Publication) -> FrontAnswer | None:
    """What changed between versions or sessions of one set-up, on the home machine first."""
    if not publication.progress:
        return None
    machines = [board.machine for board in publication.boards]
    shown = {board.load for board in publication.boards}

    def order(line: VersionLine) -> tuple[bool, int, bool]:
        away = len(machines)
        if line.first.machine in machines:
            away = machines.index(line.first.machine)
        return line.first.load not in shown, away, line.first.load.at_once != 1

    ordered = sorted(publication.progress, key=order)
    first = ordered[0]
    alike = [
        line
        for line in ordered
        if (line.first.machine, line.first.load)
        == (first.first.machine, first.first.load)
    ]
    text = " ".join(line_in_words(line) for line in alike[:MOST_LINES])
    if not any(line.is_of_versions for line in alike):
        text = f"No two versions are measured yet. In two sessions of one: {line_in_words(first)}"
    note = f"{first.first.machine}, {load_name(first.first.load)}"
    return FrontAnswer(
        "Did the new version make it faster?",
        text,
        f"{model_links.page(first.first.model)}#versions",
        note,
        "release, upgrade",
    )


def line_in_words(line: VersionLine) -> str:
    """From the first point to the last: both figures, and the change with its bounds."""
    first, last = line.points[0], line.points[-1]
    who = f"{line.first.model.name} in {line.first.weights}"
    engines = [point.speed.engine for point in (first, last)]
    where = f"on {engines[0]}, {first.day} and {last.day}"
    if engines[0] != engines[1]:
        where = f"from {engines[0]} to {engines[1]}"
    figures = (
        f"{rounded(first.mean.value)} to {rounded(last.mean.value)} {line.metric.unit}"
    )
    change = in_words(line.total)
    if line.differs:
        change += f"; {line.differs}"
    return f"{who} {where}: {figures} ({change})."
