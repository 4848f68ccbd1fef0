"""What the page of a model shows: one model over all campaigns, machines, formats and engines."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparkpub.record.metrics import METRICS, Metric
from sparkpub.record.record import metric_of
from sparkpub.record.text import listed, rounded, span
from sparkpub.review import recipe
from sparkpub.review.grouping import grouped
from sparkpub.review.leaderboard import Board, RankedModel
from sparkpub.review.models import ModelName
from sparkpub.review.names import parts_of
from sparkpub.review.setup import Setup
from sparkpub.review.speeds import GENERATION, Speed
from sparkpub.review.tables.column import TableRow
from sparkpub.site.figures import speeds as curves
from sparkpub.site.figures.figure import Figure
from sparkpub.site.pages import memory, model_links
from sparkpub.site.pages.leaderboard_page import entry_text
from sparkpub.site.pages.measure_page import identity
from sparkpub.site.publication import Publication

MakeCurves = Callable[[ModelName, Sequence[Speed], Mapping[Setup, str]], Figure | None]
ACCURACY = ("accuracy", "exact_match")
"""How the metrics begin that say how right a model's answers are."""
MORE = ("draft_acceptance", "acceptance_length", "request_goodput", "model_load")
"""How the metrics begin that explain a recipe's figures beside its loads."""


@dataclass(frozen=True)
class ModelPage:
    """A model with everything that was measured of it."""

    name: ModelName
    speeds: Sequence[Speed]

    @property
    def uri(self) -> str:
        """The source of its page."""
        return model_links.source(self.name)

    @property
    def setups(self) -> Mapping[Setup, Sequence[Speed]]:
        """Set-up to its speeds over all campaigns, in the order met."""
        return grouped(self.speeds, lambda speed: speed.setup)


def models(publication: Publication) -> list[ModelPage]:
    """Every model whose speed was measured, in the order of their names."""
    found = grouped(publication.speeds, lambda speed: speed.model)
    ordered = sorted(found.items(), key=lambda item: item[0].key)
    return [ModelPage(name, speeds) for name, speeds in ordered]


def entry(model: ModelPage) -> dict[str, Any]:
    """The model in the list of all."""
    stated = [speed.weights for speed in model.speeds if speed.setup.quantization]
    formats = dict.fromkeys(stated or ["weights not stated"])
    machines = dict.fromkeys(speed.machine for speed in model.speeds)
    return {
        "name": model.name.name,
        "href": model_links.page(model.name),
        "about": f"{listed(formats)} on {listed(machines)}",
        "runs": sum(len(speed.records) for speed in model.speeds),
    }


def figure(publication: Publication, model: ModelPage) -> Figure | None:
    """Throughput of the machine against the speed of one user, on the machine that comes first."""
    return _of_machine(publication, model, curves.users_of_model)


def context_figure(publication: Publication, model: ModelPage) -> Figure | None:
    """Decode speed and the wait for the first token against what stands in the context, on the machine that comes
    first."""
    return _of_machine(publication, model, curves.context_of_model)


def _of_machine(
    publication: Publication, model: ModelPage, make: MakeCurves
) -> Figure | None:
    """A figure of the first machine that has one."""
    names = setup_names(publication, model)
    order = [board.machine for board in publication.boards]
    sure = [speed for speed in model.speeds if not speed.doubts]
    machines = grouped(sure, lambda speed: speed.machine)
    found = (
        make(model.name, machines.get(machine, ()), names)
        for machine in dict.fromkeys([*order, *machines])
    )
    return next(filter(None, found), None)


def versions_figure(publication: Publication, model: ModelPage) -> Figure | None:
    """What was measured more than once over versions and days, the loads of the leaderboard first."""
    lines = [line for line in publication.progress if line.first.model == model.name]
    shown = {board.load for board in publication.boards}
    lines.sort(key=lambda line: line.first.load not in shown)
    return curves.versions_of_model(model.name, lines, publication.names)


def _to_compare(speeds: Sequence[Speed]) -> Speed | None:
    """With what a comparison begins: the fastest for the fewest users. Where requests arrive at a rate, throughput
    follows the rate and ranks nothing."""
    known = [
        speed
        for speed in speeds
        if not speed.doubts and speed.load.request_rate is None
    ]
    return min(
        known,
        key=lambda speed: (speed.load.at_once or 1, -(speed.mean(GENERATION) or 0)),
        default=None,
    )


def context(
    publication: Publication,
    model: ModelPage,
    chart: str,
    versions_chart: str,
    context_chart: str = "",
) -> dict[str, Any]:
    """What the template needs, with the placeholders of its charts; each may be empty."""
    names = setup_names(publication, model)
    doubts: dict[str, list[str]] = {}
    for speed in model.speeds:
        doubts.setdefault(speed.campaign, []).extend(speed.doubts)
    lines = [line for line in publication.progress if line.first.model == model.name]
    compared = _to_compare(model.speeds)
    return {
        **entry(model),
        "answers": [
            (board, row)
            for board in publication.boards
            for row in board.rows
            if row.model == model.name
        ],
        "is_home": {speed.machine for speed in model.speeds}
        & {board.machine for board in publication.boards[:1]},
        "reached": reached,
        "place": place,
        "doubts": {campaign: checks for campaign, checks in doubts.items() if checks},
        "campaigns": publication.dataset.campaigns,
        "names": publication.names,
        "chart": chart,
        "context": context_chart,
        "versions": versions_chart,
        "is_of_versions": any(line.is_of_versions for line in lines),
        "recipes": [
            _recipe(name, speeds)
            for name, speeds in zip(names.values(), model.setups.values(), strict=True)
        ],
        "compared": "" if compared is None else identity(compared),
        "accuracy": list(_accuracy(publication, model)),
        "fits": [
            (fit, memory.of_machine(publication, fit.speed.machine))
            for fit in memory.fits(model.speeds)
        ],
    }


def setup_names(publication: Publication, model: ModelPage) -> dict[Setup, str]:
    """Set-up to what parts it from the model's others: `NVFP4, vLLM 0.26.0, Docker`. Alike ones are numbered."""
    parts: dict[Setup, list[str]] = {}
    for setup, (speed, *_) in model.setups.items():
        place, *special = parts_of(
            publication.names.environment(speed.campaign, speed.cell[1])
        )
        more = ", ".join(word for word in special if word.upper() != speed.weights)
        parts[setup] = [speed.weights, speed.engine, place, speed.machine, more]
    columns = list(zip(*parts.values(), strict=True))
    varied = [place for place, told in enumerate(columns) if len(set(told)) > 1]
    # What is special about some is nothing to call the others by.
    if varied in ([], [len(columns) - 1]):
        varied.insert(0, 0)
    names = {
        setup: ", ".join(told[place] for place in varied if told[place])
        for setup, told in parts.items()
    }
    for alike in grouped(names, names.__getitem__).values():
        if len(alike) > 1:
            for number, setup in enumerate(alike, 1):
                names[setup] += f" ({number})"
    return names


# -- answers -----------------------------------------------------------------------------------------------


_UNITS = {"ms": "s to the first token", "req/s": "requests/s"}
"""Unit of a board's metric to what its figures are called here."""


def reached(board: Board, row: RankedModel) -> tuple[str, str]:
    """The best figure of a model on a board, and its unit. A rate that is no limit is said to be none."""
    unit = _UNITS.get(board.metric.unit, "tok/s")
    capacity = row.best.capacity
    if capacity is not None and capacity.at_least:
        return rounded(capacity.rate, 2), f"{unit} or more"
    return entry_text(row.best, board.metric), unit


def place(board: Board, row: RankedModel) -> str:
    """`2 to 3 of 24`, a place that the model shares with what is near; empty where nothing else is ranked, all that is
    ranked is alike, or it has no place."""
    near = [board.rows.index(other) + 1 for other in board.near(row)]
    if len(near) == len(board.rows) or not row.best.is_placed:
        return ""
    return f"{span([str(near[0]), str(near[-1])])} of {len(board.rows)}"


# -- set-ups -----------------------------------------------------------------------------------------------


def _recipe(name: str, speeds: Sequence[Speed]) -> dict[str, Any]:
    """How to do it again, and what it reached: the commands are as a shell takes them, the server's where there is
    one."""
    record, commands = speeds[0].records[0], {}
    server = record.requested.environment.get("server")
    if isinstance(server, dict) and server.get("argv"):
        commands["Server"] = shlex.join(map(str, server["argv"]))
    elif rebuilt := recipe.command(record):
        commands[f"Server, {recipe.REBUILT}"] = rebuilt
    if record.argv:
        commands["Client" if commands else "Command"] = shlex.join(record.argv)
    return {
        "name": name,
        "anchor": model_links.setup_anchor(speeds[0]),
        "first": speeds[0],
        "record": record,
        "commands": commands,
        "campaigns": grouped(speeds, lambda speed: speed.campaign),
        "speeds": sorted(speeds, key=_by_load),
        "more": {
            metric: sorted(mean for speed in speeds if (mean := speed.mean(name)))
            for name, metric in METRICS.items()
            if name.startswith(MORE) and any(name in one.figures for one in speeds)
        },
    }


def _by_load(speed: Speed) -> tuple[float, ...]:
    load = speed.load
    sizes = (load.request_rate, load.input_tokens, load.depth, load.output_tokens)
    return tuple(size or 0 for size in (*sizes, load.at_once))


# -- accuracy ---------------------------------------------------------------------------------------------


def _accuracy(
    publication: Publication, model: ModelPage
) -> Iterator[tuple[TableRow, Metric]]:
    """How right the model's answers were, in campaigns that asked."""
    for row in publication.results.cell_rows:
        if not row.metric.startswith(ACCURACY):
            continue
        record = publication.review.campaigns[row.campaign].counted[row.cell][0].record
        if publication.names.entity(record) == model.name:
            known = METRICS.get(row.metric)
            yield row, known or metric_of(row.metric, record.metrics[row.metric])
