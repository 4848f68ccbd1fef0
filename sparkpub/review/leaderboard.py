"""The leaderboard: for each machine and use a row per model, a column per width of its weights.

    boards(speeds(...), home="dgx-spark")

A use is what a reader would do with the machine: chat alone, serve some users, read long prompts. Rates at different
lengths, or counted by different tools, cannot be compared. So each board shows one load: of those that fit its use, the
one under which most models were measured, and one that an engine served before one of batches that a library computed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf, log2, nan
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np

from sparkpub.record.load import Load
from sparkpub.record.metrics import METRICS, Metric
from sparkpub.review.grouping import grouped
from sparkpub.review.models import ModelName
from sparkpub.review.names import flow_name
from sparkpub.review.speeds import GENERATION, PROMPT, Speed
from sparkpub.review.statistics.estimate import Estimate, together
from sparkpub.review.tables.capacities import (
    NOT_RANKED,
    TOLD_SECONDS,
    in_order,
    is_placed,
)

LONG = 4096
"""Tokens before an answer from which on a prompt is long."""
USUAL = (512, 512)
"""Tokens in and out of a usual request: of loads with equally many models, the one nearest to it is shown."""
RATES, WAITS = (GENERATION,), ("ttft_p50_ms", "ttft_mean_ms", PROMPT)


class Use(NamedTuple):
    """A use of a machine: what a load needs to fit it, and the figure that answers for it."""

    key: str
    label: str
    metrics: tuple[str, ...] = ()
    """Metrics that answer, the first that a load has."""
    at_once: tuple[float, float] = (1, 1)
    """Fewest and most requests at once."""
    before: tuple[float, float] = (0, LONG - 1)
    """Fewest and most tokens that are read before the answer begins."""
    usual: tuple[int, int, int] = (*USUAL, 1)
    """Tokens in and out, and requests at once, of a usual load."""

    def fits(self, load: Load) -> bool:
        """Whether a load is one of this use. Requests that arrive at a rate fit none."""
        return (
            load.request_rate is None
            and self.at_once[0] <= (load.at_once or 0) <= self.at_once[1]
            and self.before[0] <= _before(load) <= self.before[1]
        )

    def distance(self, load: Load) -> float:
        """How far a load is from a usual one of this use, in doublings."""
        sizes = (_before(load), load.output_tokens, load.at_once)
        pairs = zip(sizes, self.usual, strict=True)
        return sum(abs(log2((size or 1) / want)) for size, want in pairs)


USES = (
    Use("one", "One user", RATES),
    Use("some", "Some users", RATES, (2, 16), usual=(*USUAL, 8)),
    Use("many", "Many users", RATES, (17, inf), usual=(*USUAL, 32)),
    Use("long", "Long prompts", WAITS, (0, inf), (LONG, inf), (16384, 256, 1)),
)
CAPACITY = Use("capacity", "Capacity")
"""How many requests a second users bear: from the table of capacities, not from one load."""
REQUESTS = METRICS["request_throughput_req_s"]


@dataclass(frozen=True)
class RankedFigure:
    """The figure of a set-up on a board. `share` is its part of the best on the board: 1 is the best."""

    speed: Speed
    value: float
    share: float
    capacity: Any = None
    """The row of the table of capacities that it is from: its text may be a bound."""
    is_placed: bool = True
    """Whether it has a place among the others."""
    agreeing: tuple["RankedFigure", ...] = ()
    """The best of its recipe on each machine of each owner. What they show together is the value: as far as they lie
    apart, so far do owners agree."""


@dataclass(frozen=True)
class RankedModel:
    """A model on a board: by width of the weights its figures, the best first."""

    model: ModelName
    entries: Mapping[int | None, Sequence[RankedFigure]]

    @property
    def bests(self) -> dict[int | None, RankedFigure]:
        """The best of each width."""
        return {bits: best for bits, (best, *_) in self.entries.items()}

    @property
    def best(self) -> RankedFigure:
        """The best of all."""
        return max(self.bests.values(), key=attrgetter("share"))


@dataclass(frozen=True)
class Board:
    """One machine, one use: the models, the best first."""

    machine: str
    use: Use
    load: Load
    metric: Metric
    rows: tuple[RankedModel, ...]
    unranked: tuple[Speed, ...] = ()
    """Figures of this load that are not ranked: checks doubt what they mean, the others were measured without hits
    in the prefix cache and these with them, or the other way round, or rates were answered at other lengths."""

    @property
    def title(self) -> str:
        """`One user`, `10 users`, `Long prompts`."""
        if self.use.key in ("some", "many"):
            return flow_name(self.load).capitalize()
        return self.use.label

    @property
    def widths(self) -> list[int | None]:
        """Columns: widths of the weights in bits, the widest first, unknown ones last."""
        return sorted(
            {speed.bits for speed in self.speeds}, key=lambda bits: -(bits or 0)
        )

    @property
    def speeds(self) -> list[Speed]:
        """Everything that is ranked."""
        every = chain(*(row.entries.values() for row in self.rows))
        return [entry.speed for entry in chain(*every)]


def machines(speeds: Iterable[Speed], home: str) -> list[str]:
    """The machines on which speeds were measured: the home machine first, one before several, then those
    with the most models.

    `home` is a kind in the catalogue, or a machine's name.
    """
    by_machine = grouped(speeds, lambda speed: speed.machine)

    def place(name: str) -> tuple[bool, bool, int, str]:
        kinds = {speed.records[0].machine.kind for speed in by_machine[name]}
        return (
            home not in {name, *kinds},
            " × " in name,
            -_models(by_machine[name]),
            name,
        )

    return sorted(by_machine, key=place)


def boards(
    speeds: Sequence[Speed], home: str, capacities: Sequence[Any] = ()
) -> list[Board]:
    """Every board that has a ranked row, machine by machine. `capacities` are rows of that table."""
    found: list[Board | None] = []
    for machine in machines(speeds, home):
        mine = [speed for speed in speeds if speed.machine == machine]
        found += [_board(machine, use, mine) for use in USES]
        found.append(_capacity(machine, mine, capacities))
    return [board for board in found if board is not None]


def _capacity(
    machine: str, speeds: Sequence[Speed], capacities: Sequence[Any]
) -> Board | None:
    """How many requests a second each set-up bears, for the load of most models; None where none was swept."""
    sure = {(speed.campaign, speed.cell): speed for speed in speeds if not speed.doubts}
    speed_of = {
        row: sure[row.campaign, row.cell]
        for row in capacities
        if row.limit_seconds == TOLD_SECONDS and (row.campaign, row.cell) in sure
    }
    by_load = grouped(
        speed_of, lambda row: replace(speed_of[row].load, request_rate=None, named="")
    )
    load, swept = max(
        by_load.items(), key=lambda item: len(item[1]), default=(None, [])
    )
    ranked = [row for row in in_order(swept) if row.text != NOT_RANKED]
    if load is None or not ranked:
        return None
    highest = max(row.rates[-1] for row in ranked)
    best = max(row.rate or 0.0 for row in ranked) or 1.0
    entries = []
    for row in ranked:
        rate = row.rate or 0.0
        place = is_placed(row, highest)
        entries.append(RankedFigure(speed_of[row], rate, rate / best, row, place))
    return Board(
        machine=machine,
        use=CAPACITY,
        load=load,
        metric=REQUESTS,
        rows=tuple(_rows(list(_with_agreeing(entries)))),
        unranked=tuple(speed_of[row] for row in swept if row not in ranked),
    )


def _before(load: Load) -> int:
    """Tokens that are read before the answer begins."""
    return (load.input_tokens or 0) + load.depth


def _board(machine: str, use: Use, speeds: Sequence[Speed]) -> Board | None:
    """The board of the load under which most models can be ranked, a served one first; None where no model can."""
    choices = []
    fitting = [speed for speed in speeds if use.fits(speed.load)]
    for load, members in grouped(fitting, lambda speed: speed.load).items():
        for name in use.metrics:
            having = [speed for speed in members if speed.mean(name)]
            ranked = _alike([speed for speed in having if speed.is_ranked(name)])
            if ranked:
                order = (load.is_in_step, -_models(ranked), use.distance(load))
                choices.append((order, load, METRICS[name], having, ranked))
                break
    if not choices:
        return None
    _, load, metric, having, ranked = min(choices, key=itemgetter(0))
    shown = set(map(id, ranked))
    return Board(
        machine=machine,
        use=use,
        load=load,
        metric=metric,
        rows=tuple(_rows(_entries(ranked, metric))),
        unranked=tuple(speed for speed in having if id(speed) not in shown),
    )


def _models(speeds: Iterable[Speed]) -> int:
    return len({speed.model.key for speed in speeds})


def _alike(speeds: Sequence[Speed]) -> list[Speed]:
    """Those with hits in the prefix cache or those without, whichever are of more models; without, where equally many.
    The two did different work under one load."""
    groups = grouped(speeds, lambda speed: speed.cached)
    return max((groups.get(cached, []) for cached in (False, True)), key=_models)


def _entries(speeds: Sequence[Speed], metric: Metric) -> list[RankedFigure]:
    """The figures of a metric, the best first. Machines of one recipe show one figure, to which each counts with its
    own error."""
    power = 1 if metric.direction == "higher" else -1
    alone = [
        RankedFigure(speed, mean, mean**power)
        for speed in speeds
        for mean in [speed.figures[metric.name].mean]
    ]
    entries = []
    for entry in _with_agreeing(sorted(alone, key=_place)):
        value = entry.value
        if len(entry.agreeing) > 1:
            rows = [each.speed.figures[metric.name] for each in entry.agreeing]
            figures = [(row.mean, row.error or nan, nan) for row in rows]
            value = together(Estimate(*np.array(figures).T)).value
        entries.append(replace(entry, value=value, share=value**power))
    best = max(entry.share for entry in entries)
    shares = [replace(entry, share=entry.share / best) for entry in entries]
    return sorted(shares, key=_place)


def _with_agreeing(entries: Iterable[RankedFigure]) -> Iterator[RankedFigure]:
    """Figures, the best first, each with those of its recipe."""
    alike = grouped(entries, lambda entry: (entry.speed.model, entry.speed.recipe))
    for members in alike.values():
        best: dict[tuple[str, str], RankedFigure] = {}
        for entry in members:
            speed = entry.speed
            machine = speed.records[0].machine.id or ""
            best.setdefault((speed.owner, machine), entry)
        for entry in members:
            yield replace(entry, agreeing=tuple(best.values()))


def _place(entry: RankedFigure) -> float:
    return -entry.share


def _rows(entries: Sequence[RankedFigure]) -> list[RankedModel]:
    """A row per model, in the order of the figures."""
    rows = [
        RankedModel(model, grouped(mine, lambda entry: entry.speed.bits))
        for model, mine in grouped(entries, lambda entry: entry.speed.model).items()
    ]
    return sorted(rows, key=lambda row: (not row.best.is_placed, -row.best.share))
