"""The leaderboard: for each machine and use a row per model, a column per width of its weights.

    boards(speeds(...), home="dgx-spark")

A use is what a reader would do with the machine: chat alone, serve some users, read long prompts. Rates at different
lengths, or counted by different tools, cannot be compared. So each board shows one load: of those that fit its use, the
one under which most models were measured, and one that an engine served before one of batches that a library computed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log2
from typing import Any

from sparkpub.record.load import Load
from sparkpub.record.metrics import METRICS, Metric
from sparkpub.record.text import rounded
from sparkpub.review.grouping import grouped
from sparkpub.review.models import ModelName
from sparkpub.review.names import flow_name
from sparkpub.review.speeds import GENERATION, PROMPT, Speed
from sparkpub.review.tables.capacities import (
    NOT_RANKED,
    TOLD_SECONDS,
    in_order,
    is_placed,
)
from sparkpub.review.tables.over import REPEAT_PERCENT

LONG = 4096
"""Tokens before an answer from which on a prompt is long."""
USUAL = (512, 512)
"""Tokens in and out of a usual request: of loads with equally many models, the one nearest to it is shown."""
USUAL_LONG = (16384, 256)


@dataclass(frozen=True)
class Use:
    """A use of a machine: the loads that fit it, and the figure that answers for it."""

    key: str
    label: str
    metrics: tuple[str, ...]
    """Metrics that answer, the first that a load has."""
    users: int
    fits: Callable[[Load], bool]
    lengths: tuple[int, int] = USUAL

    def distance(self, load: Load) -> float:
        """How far a load is from a usual one of this use, in doublings."""
        wanted = [*self.lengths, self.users]
        sizes = [_before(load), load.output_tokens, load.at_once]
        return sum(
            abs(log2((size or 1) / want))
            for size, want in zip(sizes, wanted, strict=True)
        )


def _before(load: Load) -> int:
    """Tokens that are read before the answer begins."""
    return (load.input_tokens or 0) + load.depth


def _is_short(load: Load) -> bool:
    return load.request_rate is None and _before(load) < LONG


USES = (
    Use(
        "one",
        "One user",
        (GENERATION,),
        1,
        lambda load: _is_short(load) and load.at_once == 1,
    ),
    Use(
        "some",
        "Some users",
        (GENERATION,),
        8,
        lambda load: _is_short(load) and 1 < (load.at_once or 0) <= 16,
    ),
    Use(
        "many",
        "Many users",
        (GENERATION,),
        32,
        lambda load: _is_short(load) and (load.at_once or 0) > 16,
    ),
    Use(
        "long",
        "Long prompts",
        ("ttft_p50_ms", "ttft_mean_ms", PROMPT),
        1,
        lambda load: load.request_rate is None and _before(load) >= LONG,
        USUAL_LONG,
    ),
)


CAPACITY = Use("capacity", "Capacity", (), 1, lambda _: False)
"""How many requests a second users bear: from the table of capacities, not from one load."""
REQUESTS = METRICS["request_throughput_req_s"]
ALIKE = 1.1
"""Numbers of parameters within this ratio are one model: formats differ in what they count, as tied embeddings."""


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


@dataclass(frozen=True)
class RankedModel:
    """A model on a board: by width of the weights its figures, the best first. `size` tells it from models of the same
    name that have another number of parameters."""

    model: ModelName
    entries: Mapping[int | None, Sequence[RankedFigure]]
    size: str = ""

    @property
    def title(self) -> str:
        """`gemma (7.6B parameters)`."""
        if self.size:
            return f"{self.model.name} ({self.size})"
        return self.model.name

    @property
    def best(self) -> RankedFigure:
        """The best of all."""
        return max(
            (first for first, *_ in self.entries.values()),
            key=lambda entry: entry.share,
        )

    @property
    def billions(self) -> float | None:
        """The parameters in the model's name."""
        return self.model.billions


@dataclass(frozen=True)
class Board:
    """One machine, one use: the models, the best first."""

    machine: str
    use: Use
    load: Load
    metric: Metric
    widths: tuple[int | None, ...]
    """Columns: widths of the weights in bits, the widest first, unknown ones last."""
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

    def near(self, row: RankedModel) -> list[RankedModel]:
        """The models whose best figure is within `REPEAT_PERCENT` of a model's, itself included: as far as a campaign
        may be from its own repeat, so that their order is none of the models."""
        factor = 1 + REPEAT_PERCENT / 100
        mine = row.best.share
        return [
            other
            for other in self.rows
            if mine / factor <= other.best.share <= mine * factor
            and other.best.is_placed == row.best.is_placed
        ]

    @property
    def speeds(self) -> list[Speed]:
        """Everything that is ranked."""
        return [
            entry.speed
            for row in self.rows
            for entries in row.entries.values()
            for entry in entries
        ]


def machines(speeds: Iterable[Speed], home: str) -> list[str]:
    """The machines on which speeds were measured: the home machine first, then those with the most models.

    `home` is a kind in the catalogue, or a machine's name.
    """
    models: dict[str, set[str]] = {}
    at_home: set[str] = set()
    for speed in speeds:
        models.setdefault(speed.machine, set()).add(speed.model.key)
        if home in (speed.records[0].machine.kind, speed.machine):
            at_home.add(speed.machine)
    return sorted(
        models, key=lambda name: (name not in at_home, -len(models[name]), name)
    )


def boards(
    speeds: Sequence[Speed], home: str, capacities: Sequence[Any] = ()
) -> list[Board]:
    """Every board that has a ranked row, machine by machine. `capacities` are rows of that table."""
    found = []
    for machine in machines(speeds, home):
        mine = [speed for speed in speeds if speed.machine == machine]
        for use in USES:
            board = _board(machine, use, mine)
            if board is not None:
                found.append(board)
        board = _capacity(machine, mine, capacities)
        if board is not None:
            found.append(board)
    return found


def _capacity(
    machine: str, speeds: Sequence[Speed], capacities: Sequence[Any]
) -> Board | None:
    """How many requests a second each set-up bears, for the load of most models; None where none was swept."""
    by_cell = {(speed.campaign, speed.cell): speed for speed in speeds}
    found: dict[Load, list[tuple[Any, Speed]]] = {}
    for row in capacities:
        speed = by_cell.get((row.campaign, row.cell))
        if speed is None or speed.doubts or row.limit_seconds != TOLD_SECONDS:
            continue
        load = replace(speed.load, request_rate=None, named="")
        found.setdefault(load, []).append((row, speed))
    if not found:
        return None
    load, members = max(found.items(), key=lambda item: len(item[1]))
    speed_of = dict(members)
    ranked = [row for row in in_order(speed_of) if row.text != NOT_RANKED]
    if not ranked:
        return None
    highest = max(row.rates[-1] for row in ranked)
    best = max(row.rate or 0.0 for row in ranked) or 1.0
    entries = [
        RankedFigure(
            speed_of[row],
            row.rate or 0.0,
            (row.rate or 0.0) / best,
            row,
            is_placed(row, highest),
        )
        for row in ranked
    ]
    widths = {entry.speed.bits for entry in entries}
    return Board(
        machine=machine,
        use=CAPACITY,
        load=load,
        metric=REQUESTS,
        widths=_in_order(widths),
        rows=tuple(_rows(entries)),
        unranked=tuple(speed_of[row] for row in speed_of if row not in ranked),
    )


def _in_order(widths: Iterable[int | None]) -> tuple[int | None, ...]:
    """The widest first, unknown ones last."""
    return tuple(sorted(widths, key=lambda bits: -(bits or 0)))


def _board(machine: str, use: Use, speeds: Sequence[Speed]) -> Board | None:
    """The board of the load under which most models can be ranked, a served one first; None where no model can."""
    choices = []
    fitting = [speed for speed in speeds if use.fits(speed.load)]
    for load, members in grouped(fitting, lambda speed: speed.load).items():
        for name in use.metrics:
            having = [speed for speed in members if speed.mean(name)]
            ranked = _alike([speed for speed in having if speed.is_ranked(name)])
            if ranked:
                models = {speed.model.key for speed in ranked}
                choices.append((load, METRICS[name], having, ranked, len(models)))
                break
    if not choices:
        return None
    load, metric, having, ranked, _ = min(
        choices,
        key=lambda choice: (
            choice[0].is_in_step,
            -choice[4],
            use.distance(choice[0]),
        ),
    )
    shown = set(map(id, ranked))
    return Board(
        machine=machine,
        use=use,
        load=load,
        metric=metric,
        widths=_in_order({speed.bits for speed in ranked}),
        rows=tuple(_rows(_entries(ranked, metric))),
        unranked=tuple(speed for speed in having if id(speed) not in shown),
    )


def _alike(speeds: Sequence[Speed]) -> list[Speed]:
    """Those with hits in the prefix cache or those without, whichever are of more models; without, where equally many.
    The two did different work under one load."""
    groups = grouped(speeds, lambda speed: speed.cached)
    return max(
        (groups.get(cached, []) for cached in (False, True)),
        key=lambda group: len({speed.model.key for speed in group}),
    )


def _entries(speeds: Sequence[Speed], metric: Metric) -> list[RankedFigure]:
    """The figures of a metric, the best first."""
    is_higher = metric.direction == "higher"
    values = [speed.figures[metric.name].mean for speed in speeds]
    best = max(values) if is_higher else min(values)
    entries = []
    for speed, value in zip(speeds, values, strict=True):
        share = value / best if is_higher else best / value
        entries.append(RankedFigure(speed, value, share))
    entries.sort(key=lambda entry: -entry.share)
    return entries


def _rows(entries: Sequence[RankedFigure]) -> list[RankedModel]:
    """A row per model, in the order of the figures; one for each number of parameters that go by one name."""
    rows = []
    by_model = grouped(entries, lambda entry: entry.speed.model)
    for model, mine in by_model.items():
        sizes = _sizes(entry.speed.setup.parameters for entry in mine)
        by_size = grouped(mine, lambda entry: sizes[entry.speed.setup.parameters])  # noqa: B023 - used at once
        for size, alike in by_size.items():
            rows.append(
                RankedModel(model, grouped(alike, lambda entry: entry.speed.bits), size)
            )
    rows.sort(key=lambda row: (not row.best.is_placed, -row.best.share))
    return rows


def _sizes(counts: Iterable[int | None]) -> dict[int | None, str]:
    """Number of parameters to what is said of it: nothing where all that are known are alike."""
    known = sorted({count for count in counts if count is not None})
    groups: list[list[int]] = []
    for count in known:
        if groups and count <= ALIKE * groups[-1][-1]:
            groups[-1].append(count)
        else:
            groups.append([count])
    several = len(groups) > 1
    told: dict[int | None, str] = {None: "parameters not stated" if several else ""}
    for group in groups:
        for count in group:
            told[count] = f"{rounded(group[0] / 1e9, 2)}B parameters" if several else ""
    return told
