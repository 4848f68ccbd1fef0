"""What the page of a model shows: one model over all campaigns, machines, formats and engines."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from sparkpub.record.metrics import METRICS, Metric
from sparkpub.record.record import metric_of
from sparkpub.record.text import listed
from sparkpub.review import recipe
from sparkpub.review.grouping import grouped
from sparkpub.review.leaderboard import Board, RankedModel
from sparkpub.review.models import ModelName
from sparkpub.review.names import parts_of
from sparkpub.review.results import Results
from sparkpub.review.setup import Setup
from sparkpub.review.speeds import GENERATION, RATES, Speed
from sparkpub.review.tables.column import TableRow
from sparkpub.site import kept
from sparkpub.site.cache import Cache, key
from sparkpub.site.content import File, Page
from sparkpub.site.figures import speeds as curves
from sparkpub.site.figures.draw import Drawings
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.library import Library
from sparkpub.site.pages import found_by, memory, model_links, placing, templating
from sparkpub.site.pages.leaderboard_page import entry_text
from sparkpub.site.pages.measure_page import identity
from sparkpub.site.publication import Publication

MakeCurves = Callable[[ModelName, Sequence[Speed], Mapping[Setup, str]], Figure | None]
ACCURACY = ("accuracy", "exact_match", "pass_at")
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


def begun(
    publication: Publication, drawings: Drawings, cache: Cache
) -> Iterator[Callable[[], Mapping[str, File]]]:
    """What gives the page of each model, and the files of its charts."""
    boards = [(board.machine, board.title) for board in publication.boards]
    keys = {
        campaign.name: {publication.names.entity(one).key for one in campaign.examples}
        for campaign in publication.campaigns
    }
    for model in models(publication):
        where = [name for name, known in keys.items() if model.name.key in known]
        of = kept.basis(publication.review, publication.names, where)
        about = kept.beside(publication.options), boards, model.uri
        name, make = of and key("model", of, about), partial(_page, publication, model)
        yield placing.once(name, model.uri, make, publication, drawings, cache)


def _page(publication: Publication, model: ModelPage, library: Library) -> Page:
    figures = (
        curve(publication, model, curves.users_of_model),
        versions_figure(publication, model),
        curve(publication, model, curves.context_of_model),
    )
    places = ["" if figure is None else library.add(figure) for figure in figures]
    found = context(publication, model, *places)
    made = templating.page("model", publication=publication, model=found)
    return replace(made, found_by=found_by.of_speeds(model.speeds))


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


def curve(
    publication: Publication, model: ModelPage, make: MakeCurves
) -> Figure | None:
    """A figure of the machine that comes first, or of the next that has one."""
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
    answers = [
        (board, row)
        for board in publication.boards
        for row in board.rows
        if row.model == model.name
    ]
    recipes = [
        _recipe(publication, name, speeds)
        for name, speeds in zip(names.values(), model.setups.values(), strict=True)
    ]
    of_all = set.intersection(*(set(recipe["notes"]) for recipe in recipes))
    # With one of these a comparison begins: what leads its first answer, else the smallest load.
    leading = [row.best.speed for _, row in answers]
    known = [speed for speed in model.speeds if not speed.doubts]
    compared = [
        speed
        for speed in [*leading, *sorted(known, key=_by_load)]
        if GENERATION in speed.figures
    ]
    return {
        **entry(model),
        "answers": answers,
        "is_home": {speed.machine for speed in model.speeds}
        & {board.machine for board in publication.boards[:1]},
        "reached": reached,
        "doubts": {campaign: checks for campaign, checks in doubts.items() if checks},
        "campaigns": publication.dataset.campaigns,
        "names": publication.names,
        "chart": chart,
        "context": context_chart,
        "versions": versions_chart,
        "recipes": recipes,
        "notes": [note for note in recipes[0]["notes"] if note in of_all],
        "compared": identity(compared[0]) if compared else "",
        "accuracy": [
            found[1:] for found in accuracy(publication) if found[0] == model.name
        ],
        "fits": memory.left(publication, model.speeds),
    }


def setup_names(publication: Publication, model: ModelPage) -> dict[Setup, str]:
    """Set-up to what parts it from the model's others: `NVFP4, vLLM 0.26.0, Docker`. Alike ones are numbered."""
    parts: dict[Setup, list[str]] = {}
    for setup, (speed, *_) in model.setups.items():
        place, *special = parts_of(
            publication.names.called(speed.campaign, "environment", speed.cell[1])
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
    return entry_text(row.best, board.metric), unit


# -- set-ups -----------------------------------------------------------------------------------------------


def _recipe(
    publication: Publication, name: str, speeds: Sequence[Speed]
) -> dict[str, Any]:
    """How to do it again, and what it reached, in cells without a rate, too: the commands are as a shell takes them,
    the server's where there is one."""
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
        "notes": _notes(publication, speeds),
        "campaigns": grouped(speeds, lambda speed: speed.campaign),
        "speeds": sorted(speeds, key=_by_load),
        "more": {
            metric: means
            for name, metric in METRICS.items()
            if name.startswith(MORE)
            and (means := _means(name, speeds, publication.results))
        },
    }


def _means(metric: str, speeds: Sequence[Speed], results: Results) -> list[float]:
    """What these reached, the smallest first, and what cells of the same builds did that have no rate."""
    found = [mean for speed in speeds if (mean := speed.mean(metric))]
    for campaign, *build in {(speed.campaign, *speed.cell[:2]) for speed in speeds}:
        rated = {
            row.cell
            for rate in RATES
            for row in results.cell_rows.where(campaign=campaign, metric=rate)
        }
        found += [
            row.mean
            for row in results.cell_rows.where(campaign=campaign, metric=metric)
            if [*row.cell[:2]] == build and row.cell not in rated
        ]
    return sorted(found)


def _notes(publication: Publication, speeds: Iterable[Speed]) -> Iterable[str]:
    """What those who measured say of these cells."""
    return dict.fromkeys(
        note.text
        for speed in speeds
        for note in publication.dataset.campaigns[speed.campaign].info.footnotes
        if any(fnmatchcase("/".join(speed.cell), cell) for cell in note.cells)
    )


def _by_load(speed: Speed) -> tuple[float, ...]:
    load = speed.load
    sizes = (load.request_rate, load.input_tokens, load.depth, load.output_tokens)
    return tuple(size or 0 for size in (*sizes, load.at_once))


# -- accuracy ---------------------------------------------------------------------------------------------


def accuracy(publication: Publication) -> Iterator[tuple[ModelName, TableRow, Metric]]:
    """How right the answers of models were, in campaigns that asked."""
    for row in publication.results.cell_rows:
        if not row.metric.startswith(ACCURACY):
            continue
        record = publication.review.campaigns[row.campaign].counted[row.cell][0].record
        known = METRICS.get(row.metric)
        metric = known or metric_of(row.metric, record.metrics[row.metric])
        yield publication.names.entity(record), row, metric
