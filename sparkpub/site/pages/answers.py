"""The questions that readers come with, each a card with figures made of tables, so that they cannot be wrong.

What was not measured is a card too, with the command that measures it. What fails a check leads nothing, and where
larger models were measured, no model below `LARGE` does.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, starmap
from operator import attrgetter, itemgetter
from typing import Any
from urllib.parse import urlencode

from sparkpub.record.metrics import METRICS
from sparkpub.record.text import between, counted, listed, rounded, span
from sparkpub.review.differences import is_of_weights, told
from sparkpub.review.grouping import grouped
from sparkpub.review.leaderboard import Board, RankedFigure, RankedModel
from sparkpub.review.models import LARGE, is_large
from sparkpub.review.names import environment_name, flow_name, lengths_name
from sparkpub.review.speeds import GENERATION, Speed
from sparkpub.review.tables.capacities import LIMITS
from sparkpub.review.tables.column import TableRow
from sparkpub.review.tables.over import REPEAT_PERCENT
from sparkpub.site.figures.speeds import before, decode, first_token, shows_context
from sparkpub.site.pages import campaign_page, memory, model_links, model_page
from sparkpub.site.pages.leaderboard_page import (
    ADDRESS,
    SPREAD,
    board_anchor,
    engines_name,
    figure_text,
    spread,
    width_name,
)
from sparkpub.site.publication import Publication

MOST = 4
"""Models on a card."""
SHORT = 1024
"""Tokens before an answer with which the card of long contexts begins, where they were measured."""
POWER, HEAT = "gpu_power_mean_watt", ("gpu_temp_max_celsius", "gpu_temp_end_celsius")
QUICK = "sparkpub quick localhost:8000"


@dataclass(frozen=True)
class Bar:
    """A model with its figure, and the share of the best."""

    name: str
    note: str
    figure: str
    share: float
    href: str
    spread: str = ""


@dataclass(frozen=True)
class Card:
    """A question with its answer: bars, a small table or one large figure, and one line of words.

    `scope` says of what the figures are, `href` leads to more.
    """

    text: str
    href: str
    link: str
    scope: str = ""
    question: str = ""
    """Where the answer asks more precisely than the list of `cards` does."""
    bars: Sequence[Bar] = ()
    large: str = ""
    unit: str = ""
    table: Sequence[Sequence[str]] = ()
    """Rows, of which the first has the names of the columns."""
    command: str = ""

    @property
    def anchor(self) -> str:
        """Its place in the page."""
        return re.sub(r"\W+", "-", self.question.lower()).strip("-")

    @property
    def plain(self) -> str:
        """All it says, for the search."""
        bars = (f"{bar.name} {bar.note}: {bar.figure}" for bar in self.bars)
        cells = (" ".join(row) for row in self.table)
        large = f"{self.large} {self.unit}".strip()
        return ". ".join(filter(None, [self.scope, *bars, *cells, large, self.text]))


MINE = Card(
    "Measure your server, or drop a result file: it stays in your browser. Half as fast? Compare clocks, format, "
    "speculation and tokens per step.",
    "measure/",
    "Measure yours",
    question="Is mine as fast?",
    command=QUICK,
)


def counts(publication: Publication) -> str:
    """`1,664 runs of 33 models in 9 campaigns`."""
    runs = counted(len(publication.dataset.runs), "run")
    models = {speed.model for speed in publication.speeds}
    of = f" of {counted(len(models), 'model')}" if models else ""
    return f"{runs}{of} in {counted(len(publication.campaigns), 'campaign')}"


def cards(publication: Publication) -> list[Card]:
    """Every question in the order in which readers ask, and what measures it where nobody did. Without a ranked model
    only what holds for any site."""
    every = publication.boards
    if not every:
        return [MINE]
    home = every[0].machine
    single = _SEVERAL.sub("", home)
    boards = {board.use.key: board for board in every.where(machine=home)}
    one = boards.get("one")
    mine = publication.speeds.where(machine=home)
    return [
        _card(
            "Which model is fastest for one user?",
            _fastest(one),
            "This command measures one user first:",
        ),
        _card(
            "And for ten users together?",
            _together(boards.get("some") or boards.get("many")),
            "This command measures several at once:",
            f"{QUICK} --at-once 10",
        ),
        _card(
            "What does long context do to it?",
            _context(publication, one),
            "This command measures three lengths:",
            f"{QUICK} --prompt 1024 --prompt 8192 --prompt 16384",
        ),
        _card(
            "Which format?",
            _formats(publication, one),
            "Serve one model in two formats, and measure each:",
        ),
        _card(
            "How many watts, how hot?",
            _power(mine),
            "Run it on the machine itself, whose sensors it reads:",
        ),
        _card(
            "How many requests a second can it serve?",
            _capacity(boards.get("capacity")),
            "A matrix with several request rates does:",
            "sparkpub collect MATRIX",
            "guide/servers/",
        ),
        _card(
            "What fits in the memory?",
            _fits(publication, mine),
            "A server that runs shows that its model fits:",
        ),
        _card(
            "Does Docker cost anything?",
            _containers(publication, home),
            "A matrix with environments of both kinds does:",
            "sparkpub collect MATRIX",
            "guide/spark/",
        ),
        MINE,
        _card(
            "vLLM or llama.cpp?",
            _engines(one),
            "Serve one model with both, and measure each:",
        ),
        _card(
            f"Two or more {single}s?",
            _several(every, single),
            "Serve one model across both, and measure the first:",
            href="guide/measure/",
        ),
    ]


def _card(
    question: str,
    answer: Card | None,
    how: str,
    command: str = QUICK,
    href: str = "measure/",
) -> Card:
    """The answer to a question, or what is shown where it was not measured. `how` says what measures it."""
    if answer is None:
        text = f"Not measured yet. {how}"
        answer = Card(text, href, "How to measure it", command=command)
    return replace(answer, question=answer.question or question)


def _of_board(board: Board, scope: str, text: str, link: str, **shown: Any) -> Card:
    """What a board answers, with the way to it."""
    href = f"{ADDRESS}#{board_anchor(board)}"
    return Card(text, href, link, f"{board.machine}, {scope}", **shown)


# -- how fast, how many users ------------------------------------------------------------------------------


def _fastest(board: Board | None) -> Card | None:
    if board is None:
        return None
    noise = f"differences under {REPEAT_PERCENT:g} % may be noise."
    lengths = lengths_name(board.load)
    return _ranking(board, f"{lengths}; {noise}" if lengths else noise.capitalize())


def _together(board: Board | None) -> Card | None:
    if board is None:
        return None
    leading = [row.best.speed.per_user for row in _leading(board)[:MOST]]
    text = f"Each user gets {_range(filter(None, leading))} tokens a second."
    question = f"And for {flow_name(board.load)} together?"
    return replace(_ranking(board, text), question=question)


def _ranking(board: Board, text: str) -> Card:
    """The best models of a board as bars."""
    leading = [row.best for row in _leading(board)[:MOST]]
    named = {entry.speed.model.name: entry for entry in leading}
    bars = _bars(board, named, lambda speed: model_links.page(speed.model))
    if any(bar.spread for bar in bars):
        text += f" {SPREAD}"
    models = len(board.rows)
    link = f"All {models} models" if models > 1 else "The leaderboard"
    scope = f"{_size(board)}tokens a second ({engines_name(board.speeds)})"
    return _of_board(board, scope, text, link, bars=bars)


def _bars(
    board: Board,
    named: Mapping[str, RankedFigure],
    page: Callable[[Speed], str],
) -> list[Bar]:
    """Figures as bars, each with what leads to more of it."""
    best = max(entry.value for entry in named.values())
    return [
        Bar(
            name,
            _recipe(entry.speed),
            figure_text(entry.value, board.metric),
            entry.value / best,
            page(entry.speed),
            spread(entry.speed),
        )
        for name, entry in named.items()
    ]


def _leading(board: Board | None) -> Sequence[RankedModel]:
    """The models that may lead, the best first: the large ones, or all where none is."""
    rows = board.rows if board else ()
    return [row for row in rows if is_large(row.model.name)] or rows


def _size(board: Board) -> str:
    """Of which models a card is, where it is of the large ones only."""
    return f"from {LARGE}B up, " if is_large(_leading(board)[0].model.name) else ""


def _range(values: Iterable[float], digits: int = 2) -> str:
    """The least and the greatest of measured figures."""
    return span([rounded(value, digits) for value in sorted(values)])


def _recipe(speed: Speed) -> str:
    """Format of the weights, and whose figure it is where another owner measured it; speculative decoding is said,
    since it is most of such a figure."""
    drafted = "speculative" if speed.is_speculative else ""
    return ", ".join(filter(None, [speed.setup.quantization, drafted, speed.owner]))


def _build(speed: Speed) -> str:
    """The model and its recipe."""
    return f"{speed.model.name} {_recipe(speed)}".strip()


def _capacity(board: Board | None) -> Card | None:
    if board is None:
        return None
    table = [["requests", "per s", "at once", "tok/s each"]]
    failed = []
    text = f"With {LIMITS}."
    for entry in (row.best for row in _leading(board)):
        found = entry.capacity
        if not entry.is_placed:
            most = f"{entry.value:g}, the most tried"
            text += f" {entry.speed.model.name} holds {most}: not ranked."
        elif not found.rate:
            failed.append(found)
        elif len(table) < MOST:
            numbers = rounded(found.in_flight, 2), rounded(found.user_tok_s, 2)
            table.append([_build(entry.speed), f"{found.rate:g}", *numbers])
    if failed:
        lowest = failed[0].rates[0]
        text += f" {counted(len(failed), 'model')} cannot take {lowest:g}."
    scope = f"{_size(board)}{lengths_name(board.load)}, arriving at random"
    rows = table if len(table) > 1 else ()
    return _of_board(board, scope, text, "Capacity", table=rows)


# -- context and formats -----------------------------------------------------------------------------------


def _context(publication: Publication, board: Board | None) -> Card | None:
    """Speed and wait of the best model that one user was measured with at several lengths."""
    found = next(_measured_at_lengths(publication, board), None)
    if found is None:
        return None
    first, *rest = found
    shown = [first, *rest[1 - MOST :]]
    rates = [*filter(None, map(decode, shown))]
    waits = [*filter(None, map(first_token, shown))]
    heads = [f"{round(before(speed) / 1000)}k" for speed in shown]
    table = [
        ["tokens read", *heads],
        ["tok/s", *map(rounded, rates)],
    ]
    if len(waits) == len(shown):
        table.append(["first token", *(f"{rounded(wait, 2)} s" for wait in waits)])
    kept = round(100 * rates[-1] / rates[0])
    return Card(
        f"At {heads[-1]} it generates at {kept} % of the speed at {heads[0]}.",
        f"{model_links.page(first.model)}#context-of-{first.model.slug}",
        "All lengths and formats",
        f"{first.machine}, one user, {_build(first)}",
        table=table,
    )


def _measured_at_lengths(
    publication: Publication, board: Board | None
) -> Iterator[Sequence[Speed]]:
    """What one user gets from each leading model at several lengths, from `SHORT` on and rising: of its best recipe, or
    of another, since the best may be another owner's who measured one length."""
    recipe = attrgetter("setup", "load.tool")
    for row in _leading(board):
        best = row.best.speed
        known = [
            speed
            for speed in publication.speeds.where(model=row.model, machine=best.machine)
            if shows_context(speed) and before(speed) >= SHORT
        ]
        known.sort(key=lambda speed: recipe(speed) != recipe(best))
        for mine in grouped(known, recipe).values():
            lengths = {before(speed): speed for speed in mine}
            if len(lengths) > 1:
                yield [lengths[at] for at in sorted(lengths)]


def _formats(publication: Publication, board: Board | None) -> Card | None:
    """What narrower weights change for one user, and what is known of how right the answers are."""
    rows = [row for row in _leading(board) if len(row.entries) > 1]
    if board is None or not rows:
        return None
    alike = [
        row
        for row in rows
        if all(starmap(_differ_in_weights, pairwise(row.bests.values())))
    ]
    shown = (alike or rows)[: MOST - 1]
    widths = [
        bits for bits in board.widths if any(bits in row.entries for row in shown)
    ]
    table = [["tok/s", *map(width_name, widths)]]
    for row in shown:
        bests = [row.bests.get(bits) for bits in widths]
        figures = [rounded(best.value) if best else "–" for best in bests]
        table.append([row.model.name, *figures])
    ratios = [
        f"{weights} {_range(ratio for *_, ratio in found)} ({counted(len({model for _, model, _ in found}), 'model')})"
        for weights, found in grouped(_ratios(board), itemgetter(0)).items()
    ]
    text = " ".join(_right(publication)) or "Quality was not measured."
    if ratios:
        text = f"Times as fast as 16 bits, where only the weights differ: {'; '.join(ratios)}. {text}"
    if not alike:
        text = f"The best of each: engine or settings differ, too. {text}"
    scope = f"one user, {lengths_name(board.load)}"
    return _of_board(board, scope, text, "All formats, one user", table=table)


def _right(publication: Publication) -> Iterator[str]:
    """`Tasks solved: Qwen3.6-35B-A3B 60 to 100 %.` of each metric that says how right answers are."""
    by_metric = grouped(model_page.accuracy(publication), itemgetter(2))
    for metric, found in by_metric.items():
        models = grouped(found, itemgetter(0))
        told = [
            f"{name.name} {_range(row.mean for _, row, _ in rows)}"
            for name, rows in models.items()
        ]
        yield f"{metric.label}, in {metric.unit}: {listed(told)}."


def _ratios(board: Board) -> list[tuple[str, str, float]]:
    """Format of the weights, model, and its figure as a multiple of that at 16 bits, where nothing but the weights and
    their kernels differs."""
    return [
        (narrow.speed.weights, row.model.key, narrow.value / wide.value)
        for row in board.rows
        for narrow in chain.from_iterable(row.entries.values())
        for wide in row.entries.get(16, ())
        if (narrow.speed.bits or 16) < 16 and _differ_in_weights(narrow, wide)
    ]


def _differ_in_weights(one: RankedFigure, other: RankedFigure) -> bool:
    return is_of_weights(*(told(each.speed.records[0]) for each in (one, other)))


# -- the machine -------------------------------------------------------------------------------------------


def _power(speeds: Sequence[Speed]) -> Card | None:
    """What the GPU drew, how warm it was and how fast it ran, over all runs that count."""
    drawn = [speed for speed in speeds if POWER in speed.figures]
    if not drawn:
        return None

    def seen(*metrics: str) -> list[TableRow]:
        found = (map(speed.figures.get, metrics) for speed in speeds)
        return [row for rows in found if (row := next(filter(None, rows), None))]

    said = []
    if clocks := seen("gpu_clock_sm_mean_mhz"):
        said.append(f"Clock {_range((mhz / 1000 for mhz in _ends(clocks)), 3)} GHz.")
    warm = [name for name in HEAT if any(name in speed.figures for speed in drawn)]
    if hot := seen(*HEAT):
        where = f"in {_runs(hot)}"
        if not warm:
            where += " of other campaigns: these recorded none"
        said.append(f"At most {max(_ends(hot)):.0f} °C, {where}.")
    view = {
        "campaign": sorted({speed.campaign for speed in drawn}),
        "x": POWER,
        "y": GENERATION,
        "sort": POWER,
        "columns": (POWER, *warm),
    }
    watts = seen(POWER)
    return Card(
        " ".join(said),
        f"runs/?{urlencode(view, doseq=True)}",
        "Watts and heat of each run" if warm else "Watts of each run",
        f"{drawn[0].machine}, GPU under load, means of {_runs(watts)}",
        large=_range(_ends(watts)),
        unit="W",
    )


def _ends(rows: Iterable[TableRow]) -> list[float]:
    """The least and the greatest of each cell."""
    return [end for row in rows for end in (row.min, row.max)]


def _runs(rows: Iterable[TableRow]) -> str:
    """How many runs cells have."""
    return counted(sum(row.n for row in rows), "run")


def _fits(publication: Publication, speeds: Sequence[Speed]) -> Card | None:
    """The largest model that ran in each width of the weights, with the memory that it leaves."""
    fits = memory.fits(publication, speeds)
    found = [fit for fit in fits if fit.total_gib and not fit.speed.doubts]
    if not found:
        return None
    found.sort(key=lambda fit: -fit.weights_gib)
    shown = [fits[0] for fits in grouped(found, attrgetter("speed.bits")).values()]
    rows = [[_build(fit.speed), fit.weights, fit.left] for fit in shown[:MOST]]
    first = found[0]
    return Card(
        "What is left holds KV cache, engine and system. ~: by the parameters in the name.",
        f"{model_links.page(first.speed.model)}#fits",
        f"Every format of {first.speed.model.name}",
        first.speed.machine,
        f"What fits in {first.total_gib:.1f} GiB?",
        table=[["largest of each width", "weights", "left"], *rows],
    )


# -- containers and engines --------------------------------------------------------------------------------


def _containers(publication: Publication, home: str) -> Card | None:
    """What Docker costs: as the newest campaign says that could tell, on the home machine where one could."""
    found = []
    for campaign in campaign_page.in_order(publication):
        mine = publication.speeds.where(campaign=campaign.name)
        kinds = {environment_name(speed.setup.environment_type) for speed in mine}
        rows = publication.results.comparison_rows
        compared = rows.where(campaign=campaign.name, metric=GENERATION)
        if (
            compared
            and kinds == {"native", "Docker"}
            and not publication.shared(campaign)
        ):
            cost = campaign_page.effect(publication, campaign, METRICS[GENERATION])
            found.append((cost is None, mine[0].machine != home, mine[0], cost))
    if not found:
        return None
    _, is_away, speed, cost = min(found, key=itemgetter(0, 1))
    scope = f"{speed.setup.engine or 'Engine not stated'} on {speed.machine}"
    text, large, unit = "", "not known", ""
    if is_away:
        text = f"On {home}: not known"
        measured = [item for item in found if not item[1]]
        text += "; it was measured in separate blocks of time." if measured else "."
    if cost is not None:
        text = f"{cost.words}. {text}".strip()
        large, unit = between(cost.low, cost.high, 1, signed=True), "%"
        machines = f", {cost.machines} machines" if cost.machines > 1 else ""
        if speed.records[0].requested.random_weights:
            machines += ", random weights"
        scope += f"{machines}: change of output throughput, 95 % interval"
    href = f"campaigns/{speed.campaign}/"
    return Card(text, href, "Evidence", scope, large=large, unit=unit)


def _engines(board: Board | None) -> Card | None:
    """One model and width in two engines."""
    if board is None:
        return None
    for row in board.rows:
        for entries in row.entries.values():
            best = {
                entry.speed.setup.engine or "not stated": entry
                for entry in reversed(entries)
            }
            if len(best) > 1:
                return _of_board(
                    board,
                    f"one user, {row.model.name}",
                    lengths_name(board.load),
                    "By model",
                    question="Which engine?",
                    bars=_bars(board, best, model_links.setup),
                )
    return None


_SEVERAL = re.compile(r"^\d+ [×x] ")
"""Before the name of a machine that is several."""


def _several(boards: Sequence[Board], single: str) -> Card | None:
    """What one user gets of several such machines that serve a model together."""
    for board in boards:
        several = board.machine != single == _SEVERAL.sub("", board.machine)
        if several and board.use.key in ("one", "some"):
            text = f"{lengths_name(board.load)}; {flow_name(board.load)}."
            return replace(_ranking(board, text), link="All models on several")
    return None
