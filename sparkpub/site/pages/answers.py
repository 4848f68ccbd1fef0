"""The questions that readers come with, each a card with figures made of tables, so that they cannot be wrong.

What was not measured is a card too, with the command that measures it. What fails a check leads nothing, and where
larger models were measured, no model below `LARGE` does.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, starmap
from operator import itemgetter
from urllib.parse import urlencode

from sparkpub.record.metrics import METRICS, Metric
from sparkpub.record.text import between, counted, listed, rounded, span
from sparkpub.review.differences import is_of_weights, told
from sparkpub.review.grouping import grouped
from sparkpub.review.leaderboard import Board, RankedFigure, RankedModel
from sparkpub.review.models import LARGE, ModelName, is_large
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

    question: str
    text: str
    href: str
    link: str
    scope: str = ""
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


def counts(publication: Publication) -> str:
    """`1,664 runs of 33 models in 9 campaigns`."""
    runs = counted(len(publication.dataset.runs), "run")
    models = {speed.model for speed in publication.speeds}
    of = f" of {counted(len(models), 'model')}" if models else ""
    return f"{runs}{of} in {counted(len(publication.campaigns), 'campaign')}"


def cards(publication: Publication) -> list[Card]:
    """Every question in the order in which readers ask. Without a ranked model only what holds for any site."""
    every = publication.boards
    if not every:
        return [_mine()]
    home = every[0].machine
    boards = {board.use.key: board for board in every.where(machine=home)}
    one = boards.get("one")
    return [
        _fastest(one),
        _together(boards.get("some") or boards.get("many")),
        _context(publication, one),
        _formats(publication, one),
        _power(publication),
        _capacity(boards.get("capacity")),
        _fits(publication),
        _containers(publication),
        _mine(),
        _engines(one),
        _several(every, home),
    ]


def _missing(
    question: str, how: str, command: str = QUICK, href: str = "measure/"
) -> Card:
    """The card of what was not measured. `how` says what measures it."""
    text = f"Not measured yet. {how}"
    return Card(question, text, href, "How to measure it", command=command)


# -- how fast, how many users ------------------------------------------------------------------------------


def _fastest(board: Board | None) -> Card:
    question = "Which model is fastest for one user?"
    if board is None or board.metric.name != GENERATION:
        return _missing(question, "This command measures one user first:")
    noise = f"differences under {REPEAT_PERCENT:g} % may be noise."
    lengths = lengths_name(board.load)
    text = f"{lengths}; {noise}" if lengths else noise.capitalize()
    return _ranking(board, question, text, _all_of(board))


def _together(board: Board | None) -> Card:
    if board is None or not board.load.at_once:
        how = "This command measures several at once:"
        command = f"{QUICK} --at-once 10"
        return _missing("And for ten users together?", how, command)
    users = board.load.at_once
    leading = [row.best for row in _leading(board)[:MOST]]
    each = [entry.speed.per_user or entry.value / users for entry in leading]
    text = f"Each user gets {_range(each)} tokens a second."
    question = f"And for {flow_name(board.load)} together?"
    return _ranking(board, question, text, _all_of(board))


def _all_of(board: Board) -> str:
    """What leads to the leaderboard."""
    models = len(board.rows)
    return f"All {models} models" if models > 1 else "The leaderboard"


def _ranking(board: Board, question: str, text: str, link: str) -> Card:
    """The best models of a board as bars."""
    leading = [row.best for row in _leading(board)[:MOST]]
    named = [(entry.speed.model.name, entry) for entry in leading]
    bars = _bars(board, named, lambda speed: model_links.page(speed.model))
    if any(bar.spread for bar in bars):
        text += f" {SPREAD}"
    size = _size(board)
    return Card(
        question,
        text,
        f"{ADDRESS}#{board_anchor(board)}",
        link,
        scope=f"{board.machine}, {size}tokens a second ({engines_name(board.speeds)})",
        bars=bars,
    )


def _bars(
    board: Board,
    named: Sequence[tuple[str, RankedFigure]],
    page: Callable[[Speed], str],
) -> list[Bar]:
    """Figures as bars, each with what leads to more of it."""
    best = max(entry.value for _, entry in named)
    return [
        Bar(
            name,
            _recipe(entry.speed),
            figure_text(entry.value, board.metric),
            entry.value / best,
            page(entry.speed),
            spread(entry.speed),
        )
        for name, entry in named
    ]


def _leading(board: Board) -> list[RankedModel]:
    """The models that may lead, the best first: the large ones, or all where none is."""
    return [row for row in board.rows if is_large(row.model.name)] or list(board.rows)


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


def _capacity(board: Board | None) -> Card:
    question = "How many requests a second can it serve?"
    if board is None:
        how = "A matrix with several request rates does:"
        return _missing(question, how, "sparkpub collect MATRIX", "guide/servers/")
    leading = [row.best for row in _leading(board)]
    size = _size(board)
    held = [one for one in leading if one.capacity.rate and one.is_placed][: MOST - 1]
    failed = [entry for entry in leading if not entry.capacity.rate]
    table = [["requests", "per s", "at once", "tok/s each"]]
    for entry in held:
        found = entry.capacity
        speed = entry.speed
        numbers = rounded(found.in_flight, 2), rounded(found.user_tok_s, 2)
        name = f"{speed.model.name} {_recipe(speed)}".strip()
        table.append([name, f"{found.rate:g}", *numbers])
    text = f"With {LIMITS}."
    for entry in leading:
        if not entry.is_placed:
            most = f"{entry.value:g}, the most tried"
            text += f" {entry.speed.model.name} holds {most}: not ranked."
    if failed:
        lowest = failed[0].capacity.rates[0]
        text += f" {counted(len(failed), 'model')} cannot take {lowest:g}."
    scope = f"{board.machine}, {size}{lengths_name(board.load)}, arriving at random"
    href = f"{ADDRESS}#{board_anchor(board)}"
    rows = table if held else ()
    return Card(question, text, href, "Capacity", scope, table=rows)


# -- context and formats -----------------------------------------------------------------------------------


def _context(publication: Publication, board: Board | None) -> Card:
    """Speed and wait of the best model that one user was measured with at several lengths."""
    question = "What does long context do to it?"
    found = next(_measured_at_lengths(publication, board), None)
    if found is None:
        how = "This command measures three lengths:"
        command = f"{QUICK} --prompt 1024 --prompt 8192 --prompt 16384"
        return _missing(question, how, command)
    first, *rest = found
    shown = [first, *rest[1 - MOST :]]
    rates = [decode(speed) or 0.0 for speed in shown]
    waits = [wait for speed in shown if (wait := first_token(speed))]
    heads = [f"{round(before(speed) / 1000)}k" for speed in shown]
    table = [
        ["tokens read", *heads],
        ["tok/s", *map(rounded, rates)],
    ]
    if len(waits) == len(shown):
        table.append(["first token", *(f"{rounded(wait, 2)} s" for wait in waits)])
    kept = round(100 * rates[-1] / rates[0])
    text = f"At {heads[-1]} it generates at {kept} % of the speed at {heads[0]}."
    model = first.model
    scope = f"{first.machine}, one user, {model.name} {_recipe(first)}"
    page = f"{model_links.page(model)}#context-of-{model.slug}"
    return Card(question, text, page, "All lengths and formats", scope, table=table)


def _measured_at_lengths(
    publication: Publication, board: Board | None
) -> Iterator[Sequence[Speed]]:
    """What one user gets from each leading model at several lengths, from `SHORT` on and rising: of its best recipe, or
    of another, since the best may be another owner's who measured one length."""
    for row in _leading(board) if board else ():
        best = row.best.speed
        others = publication.speeds.where(model=row.model, machine=best.machine)
        for one in (best, *others):
            lengths = {
                before(speed): speed
                for speed in others
                if speed.setup == one.setup
                and speed.load.tool == one.load.tool
                and shows_context(speed)
                and before(speed) >= SHORT
            }
            if len(lengths) > 1:
                yield [lengths[at] for at in sorted(lengths)]


def _formats(publication: Publication, board: Board | None) -> Card:
    """What narrower weights change for one user, and what is known of how right the answers are."""
    question = "Which format?"
    rows = [row for row in _leading(board) if len(row.entries) > 1] if board else []
    if board is None or not rows or board.metric.name != GENERATION:
        how = "Serve one model in two formats, and measure each:"
        return _missing(question, how)
    alike = [
        row
        for row in rows
        if all(
            starmap(
                _differ_in_weights, pairwise(map(itemgetter(0), row.entries.values()))
            )
        )
    ]
    shown = (alike or rows)[: MOST - 1]
    asked = list(model_page.accuracy(publication))
    widths = [
        bits for bits in board.widths if any(bits in row.entries for row in shown)
    ]
    table = [["tok/s", *map(width_name, widths)]]
    for row in shown:
        cells = [row.entries.get(bits) for bits in widths]
        figures = [rounded(mine[0].value) if mine else "–" for mine in cells]
        table.append([row.model.name, *figures])
    ratios = [
        f"{weights} {_range(chain.from_iterable(of_models))} ({counted(len(of_models), 'model')})"
        for weights, of_models in _ratios(board).items()
    ]
    text = " ".join(_right(asked)) or "Quality was not measured."
    if ratios:
        text = f"Times as fast as 16 bits, where only the weights differ: {'; '.join(ratios)}. {text}"
    if not alike:
        text = f"The best of each: engine or settings differ, too. {text}"
    scope = f"{board.machine}, one user, {lengths_name(board.load)}"
    href = f"{ADDRESS}#{board_anchor(board)}"
    return Card(question, text, href, "All formats, one user", scope, table=table)


def _right(asked: Iterable[tuple[ModelName, TableRow, Metric]]) -> Iterator[str]:
    """`Tasks solved: Qwen3.6-35B-A3B 60 to 100 %.` of each metric that says how right answers are."""
    by_metric = grouped(asked, lambda found: found[2])
    for metric, found in by_metric.items():
        models = grouped(found, lambda one: one[0])
        told = [
            f"{name.name} {_range(row.mean for _, row, _ in rows)}"
            for name, rows in models.items()
        ]
        yield f"{metric.label}, in {metric.unit}: {listed(told)}."


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


# -- the machine -------------------------------------------------------------------------------------------


def _power(publication: Publication) -> Card:
    """What the GPU drew, how warm it was and how fast it ran, over all runs that count."""
    question = "How many watts, how hot?"
    home = publication.boards[0].machine
    mine = publication.speeds.where(machine=home)
    drawn = [speed for speed in mine if POWER in speed.figures]
    if not drawn:
        how = "Run it on the machine itself, whose sensors it reads:"
        return _missing(question, how)

    def seen(*metrics: str) -> list[float]:
        rows = [speed.figures.get(name) for speed in mine for name in metrics]
        return [end for row in filter(None, rows) for end in (row.min, row.max)]

    def runs(*metrics: str) -> str:
        having = [speed for speed in mine if speed.mean(*metrics) is not None]
        return counted(sum(len(speed.records) for speed in having), "run")

    said = []
    if clocks := seen("gpu_clock_sm_mean_mhz"):
        said.append(f"Clock {_range((mhz / 1000 for mhz in clocks), 3)} GHz.")
    warm = [name for name in HEAT if any(name in speed.figures for speed in drawn)]
    if hot := seen(*HEAT):
        where = f"in {runs(*HEAT)}"
        if not warm:
            where += " of other campaigns: these recorded none"
        said.append(f"At most {max(hot):.0f} °C, {where}.")
    view = {
        "campaign": sorted({speed.campaign for speed in drawn}),
        "x": POWER,
        "y": GENERATION,
        "sort": POWER,
        "columns": (POWER, *warm),
    }
    return Card(
        question,
        " ".join(said),
        f"runs/?{urlencode(view, doseq=True)}",
        "Watts and heat of each run" if warm else "Watts of each run",
        scope=f"{home}, GPU under load, means of {runs(POWER)}",
        large=_range(seen(POWER)),
        unit="W",
    )


def _fits(publication: Publication) -> Card:
    """The largest model that ran in each width of the weights, with the memory that it leaves."""
    home = publication.boards[0].machine
    mine = publication.speeds.where(machine=home)
    total = memory.of_machine(publication, home)
    found = [fit for fit in memory.fits(mine) if not fit.speed.doubts]
    if total is None or not found:
        how = "A server that runs shows that its model fits:"
        return _missing("What fits in the memory?", how)
    largest: dict[int | None, memory.Fit] = {}
    for fit in sorted(found, key=lambda fit: -fit.weights_gib):
        largest.setdefault(fit.speed.bits, fit)
    table = [["largest of each width", "weights", "left"]]
    first, *_ = shown = list(largest.values())[:MOST]
    for fit in shown:
        name = f"{fit.speed.model.name} {_recipe(fit.speed)}"
        table.append([name, fit.weights, fit.left(total)])
    return Card(
        f"What fits in {total:.1f} GiB?",
        "What is left holds KV cache, engine and system. ~: by the parameters in the name.",
        f"{model_links.page(first.speed.model)}#fits",
        f"Every format of {first.speed.model.name}",
        scope=home,
        table=table,
    )


# -- containers and engines --------------------------------------------------------------------------------


def _containers(publication: Publication) -> Card:
    """What Docker costs: as the newest campaign says that could tell, on the home machine where one could."""
    question = "Does Docker cost anything?"
    metric, home = METRICS[GENERATION], publication.boards[0].machine
    found = []
    for campaign in campaign_page.in_order(publication):
        mine = publication.speeds.where(campaign=campaign.name)
        kinds = {environment_name(speed.setup.environment_type) for speed in mine}
        every = publication.results.comparison_rows
        rows = every.where(campaign=campaign.name, metric=metric.name)
        if rows and kinds == {"native", "Docker"} and not publication.shared(campaign):
            cost = campaign_page.effect(publication, campaign, metric)
            found.append((cost is None, mine[0].machine != home, mine[0], cost))
    found.sort(key=itemgetter(0, 1))
    if not found:
        how = "A matrix with environments of both kinds does:"
        return _missing(question, how, "sparkpub collect MATRIX", "guide/spark/")
    _, is_away, speed, cost = found[0]
    where = f"{speed.setup.engine or 'Engine not stated'} on {speed.machine}"
    href, text = f"campaigns/{speed.campaign}/", ""
    if is_away:
        text = f"On {home}: not known"
        measured = [item for item in found if not item[1]]
        text += "; it was measured in separate blocks of time." if measured else "."
    if cost is None:
        return Card(question, text, href, "Evidence", where, large="not known")
    machines = f", {cost.machines} machines" if cost.machines > 1 else ""
    if speed.records[0].requested.random_weights:
        machines += ", random weights"
    return Card(
        question,
        f"{cost.words}. {text}".strip(),
        href,
        "Evidence",
        scope=f"{where}{machines}: change of output throughput, 95 % interval",
        large=between(cost.low, cost.high, 1, signed=True),
        unit="%",
    )


def _engines(board: Board | None) -> Card:
    """One model and width in two engines."""
    for row in board.rows if board else ():
        for entries in row.entries.values():
            best = {entry.speed.setup.engine: entry for entry in reversed(entries)}
            if len(best) > 1 and board is not None:
                named = [(name or "not stated", entry) for name, entry in best.items()]
                bars = _bars(board, named, model_links.setup)
                scope = f"{board.machine}, one user, {row.model.name}"
                href = f"{ADDRESS}#{board_anchor(board)}"
                text = lengths_name(board.load)
                return Card("Which engine?", text, href, "By model", scope, bars)
    how = "Serve one model with both, and measure each:"
    return _missing("vLLM or llama.cpp?", how)


_SEVERAL = re.compile(r"^\d+ [×x] ")
"""Before the name of a machine that is several."""


def _several(boards: Sequence[Board], home: str) -> Card:
    """What one user gets of several such machines that serve a model together."""
    single = _SEVERAL.sub("", home)
    question = f"Two or more {single}s?"
    for board in boards:
        several = board.machine != single == _SEVERAL.sub("", board.machine)
        if several and board.use.key in ("one", "some"):
            text = f"{lengths_name(board.load)}; {flow_name(board.load)}."
            return _ranking(board, question, text, "All models on several")
    how = "Serve one model across both, and measure the first:"
    return _missing(question, how, href="guide/measure/")


# -- yours -------------------------------------------------------------------------------------------------


def _mine() -> Card:
    return Card(
        "Is mine as fast?",
        "Measure your server, or drop a result file: it stays in your browser. Half as fast? Compare clocks, "
        "format, speculation and tokens per step.",
        "measure/",
        "Measure yours",
        command=QUICK,
    )
